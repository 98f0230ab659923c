# SPDX-License-Identifier: Apache-2.0
"""leadline.lite.experimental: what tf.lite.experimental has."""

from leadline.lite.debugger import QuantizationDebugger, QuantizationDebugOptions
from leadline.lite.interpreter import OpResolverType, load_delegate

__all__ = ["OpResolverType", "QuantizationDebugOptions", "QuantizationDebugger", "load_delegate"]
