# SPDX-License-Identifier: Apache-2.0
"""leadline.lite.experimental: what tf.lite.experimental has."""

from leadline._debugger import QuantizationDebugger, QuantizationDebugOptions

__all__ = ["QuantizationDebugOptions", "QuantizationDebugger"]
