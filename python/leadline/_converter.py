# SPDX-License-Identifier: Apache-2.0
"""tf.lite's TFLiteConverter and the classes that describe its target, over Leadline's converter."""

from __future__ import annotations

import enum
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from leadline._leadline import Budget, ConversionPlan, Converter, InvalidArgumentError, UnsupportedError


@enum.unique
class Optimize(enum.Enum):
    """What tf.lite calls optimizations: all of them quantize."""

    DEFAULT = "DEFAULT"
    OPTIMIZE_FOR_SIZE = "OPTIMIZE_FOR_SIZE"
    OPTIMIZE_FOR_LATENCY = "OPTIMIZE_FOR_LATENCY"
    EXPERIMENTAL_SPARSITY = "EXPERIMENTAL_SPARSITY"


@enum.unique
class OpsSet(enum.Enum):
    """Sets of ops that a converted model may use."""

    TFLITE_BUILTINS = "TFLITE_BUILTINS"
    SELECT_TF_OPS = "SELECT_TF_OPS"
    TFLITE_BUILTINS_INT8 = "TFLITE_BUILTINS_INT8"
    EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8 = (
        "EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8"
    )
    EXPERIMENTAL_STABLEHLO_OPS = "EXPERIMENTAL_STABLEHLO_OPS"


class RepresentativeDataset:
    """Samples of what a model will see; `input_gen` gives them one by one."""

    def __init__(self, input_gen: Callable[[], Iterable]) -> None:
        self.input_gen = input_gen


class TargetSpec:
    """What the device of a converted model can do."""

    def __init__(self, supported_ops: Iterable[OpsSet] | None = None, supported_types: Iterable | None = None) -> None:
        self.supported_ops = {OpsSet.TFLITE_BUILTINS} if supported_ops is None else set(supported_ops)
        self.supported_types = set() if supported_types is None else set(supported_types)


class TFLiteConverter:
    """Converts Keras models and SavedModels to .tflite, without TensorFlow.

    >>> converter = leadline.lite.TFLiteConverter.from_keras_model(model)
    >>> content = converter.convert()

    Quantization is not part of this version: convert() refuses settings that ask for it.
    """

    def __init__(self, converter: Converter, folder: tempfile.TemporaryDirectory | None = None) -> None:
        self._converter = converter
        self._folder = folder  # what the weights are read from, until this converter goes
        self.optimizations: list[Optimize] = []
        self.representative_dataset: RepresentativeDataset | Callable | None = None
        self.target_spec = TargetSpec()
        self.inference_input_type = None
        self.inference_output_type = None
        self.allow_custom_ops = False
        self.exclude_conversion_metadata = False

    @classmethod
    def from_keras_model(cls, model, *, budget: Budget | None = None) -> TFLiteConverter:
        """A live model of Keras 3 (any backend) or tf_keras. It is saved to a temporary file and read from there."""
        if not hasattr(model, "save") or not hasattr(model, "get_config"):
            raise InvalidArgumentError(f"expected a Keras model, got {type(model).__name__}")
        folder = tempfile.TemporaryDirectory(prefix="leadline-")
        path = Path(folder.name) / ("model.keras" if _is_keras_3(model) else "model.h5")
        model.save(path)
        return cls(Converter.from_keras(path, budget), folder)

    @classmethod
    def from_keras_file(cls, path, *, budget: Budget | None = None) -> TFLiteConverter:
        """A saved model: .keras, or a whole-model .h5."""
        return cls(Converter.from_keras(path, budget))

    @classmethod
    def from_saved_model(
        cls, saved_model_dir, signature_keys=None, tags=None, *, budget: Budget | None = None
    ) -> TFLiteConverter:
        """A SavedModel directory. Without signature_keys: all signatures, of a Keras export serving_default."""
        return cls(Converter.from_saved_model(saved_model_dir, list(signature_keys or []), sorted(tags or []), budget))

    def plan(self) -> ConversionPlan:
        """What the conversion gives and takes, before weights are read."""
        return self._converter.plan()

    def convert(self) -> bytes:
        """The .tflite file. Raises BudgetError before anything is taken when it does not fit."""
        self._refuse_quantization()
        return self._converter.convert()

    def _refuse_quantization(self) -> None:
        spec = self.target_spec
        asked = {
            "optimizations": self.optimizations,
            "representative_dataset": self.representative_dataset,
            "target_spec.supported_types": spec.supported_types,
            "inference_input_type": self.inference_input_type,
            "inference_output_type": self.inference_output_type,
        }
        names = [name for name, value in asked.items() if value]
        if OpsSet.TFLITE_BUILTINS not in spec.supported_ops:
            names.append("target_spec.supported_ops")
        if names:
            raise UnsupportedError(f"quantization is not part of this version, but these ask for it: {', '.join(names)}")


def _is_keras_3(model) -> bool:
    """Both are subclasses of a class Model; only Keras 3's is in the package keras.src."""
    return any(base.__module__.startswith("keras.src") for base in type(model).__mro__)
