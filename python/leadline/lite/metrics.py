# SPDX-License-Identifier: Apache-2.0
"""TFLiteMetrics, as tf.lite and LiteRT call it where an interpreter, a converter or a debugger is made.

Leadline counts and sends nothing: every method does nothing, and is there to be replaced or watched.
"""

from __future__ import annotations

from typing import Any


class TFLiteMetrics:
    """What tf.lite reports about its use. Replace a method to be told."""

    __module__ = "leadline.lite.metrics"

    def __init__(self, model_hash: str | None = None, model_path: str | None = None) -> None:
        self.model_hash = model_hash
        self.model_path = model_path

    def increase_counter_interpreter_creation(self) -> None:
        """An Interpreter was made."""

    def increase_counter_debugger_creation(self) -> None:
        """A QuantizationDebugger was made, or got a new model."""

    def increase_counter_converter_attempt(self) -> None:
        """A conversion began."""

    def increase_counter_converter_success(self) -> None:
        """A conversion ended well."""

    def set_converter_param(self, name: str, value: Any) -> None:
        """A setting of a conversion."""

    def set_converter_error(self, error_data: Any) -> None:
        """What a conversion failed with."""

    def set_converter_latency(self, value: float) -> None:
        """Milliseconds that a conversion took."""
