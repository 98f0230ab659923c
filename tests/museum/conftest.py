# SPDX-License-Identifier: Apache-2.0
"""Keras without TensorFlow, as in tests/python."""

import os

os.environ.setdefault("KERAS_BACKEND", "numpy")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
