# SPDX-License-Identifier: Apache-2.0
"""Jobs that take a while: calibrate, quantize, debug and tune a model, with progress and data sets."""
