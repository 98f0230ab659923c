# SPDX-License-Identifier: Apache-2.0
"""leadline.lite.experimental: what tf.lite.experimental has."""

from leadline.lite.debugger import QuantizationDebugger, QuantizationDebugOptions

__all__ = ["QuantizationDebugOptions", "QuantizationDebugger"]
