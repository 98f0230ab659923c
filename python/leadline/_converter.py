# SPDX-License-Identifier: Apache-2.0
"""tf.lite.TFLiteConverter's interface over Leadline's converter."""

from __future__ import annotations

import tempfile
from pathlib import Path

from leadline._leadline import Budget, ConversionPlan, Converter, InvalidArgumentError, UnsupportedError


class TFLiteConverter:
    """Converts Keras models to .tflite, without TensorFlow.

    >>> converter = leadline.lite.TFLiteConverter.from_keras_model(model)
    >>> content = converter.convert()

    Quantization is not part of this version: `optimizations` and what belongs to it must stay as they are.
    """

    def __init__(self, converter: Converter, folder: tempfile.TemporaryDirectory | None = None) -> None:
        self._converter = converter
        self._folder = folder  # what the weights are read from, until this converter goes
        self.optimizations: list = []
        self.representative_dataset = None
        self.allow_custom_ops = False
        self.exclude_conversion_metadata = False

    @classmethod
    def from_keras_model(cls, model, *, budget: Budget | None = None) -> TFLiteConverter:
        """A live model of Keras 3 (any backend) or tf_keras. It is saved to a temporary file and read from there."""
        if not hasattr(model, "save") or not hasattr(model, "get_config"):
            raise InvalidArgumentError(f"expected a Keras model, got {type(model).__name__}")
        folder = tempfile.TemporaryDirectory(prefix="leadline-")
        # tf_keras writes other archives than Keras 3; both write the same HDF5 layout.
        suffix = ".keras" if type(model).__module__.startswith("keras.") else ".h5"
        path = Path(folder.name) / f"model{suffix}"
        model.save(path)
        return cls(Converter.from_keras(path, budget), folder)

    @classmethod
    def from_keras_file(cls, path, *, budget: Budget | None = None) -> TFLiteConverter:
        """A saved model: .keras, or a whole-model .h5."""
        return cls(Converter.from_keras(path, budget))

    def plan(self) -> ConversionPlan:
        """What the conversion gives and takes, before weights are read."""
        return self._converter.plan()

    def convert(self) -> bytes:
        """The .tflite file. Raises BudgetError before anything is taken when it does not fit."""
        if self.optimizations or self.representative_dataset is not None:
            raise UnsupportedError("quantization is not part of this version: leave optimizations empty")
        return self._converter.convert()
