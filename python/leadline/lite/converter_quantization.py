# SPDX-License-Identifier: Apache-2.0
"""What the attributes of a TFLiteConverter ask for, by TensorFlow's rules, and its fulfilment."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

from leadline._leadline import InvalidArgumentError, Model, UnsupportedError
from leadline.jobs.quantize import quantize, type_name

# Attributes of tf.lite.TFLiteConverter that are about quantization, with its defaults.
ATTRIBUTES = {
    "experimental_new_quantizer": True,
    "experimental_new_dynamic_range_quantizer": True,
    "_experimental_new_quantizer": True,
    "_experimental_disable_per_channel": False,
    "_experimental_disable_per_channel_quantization_for_dense_layers": False,
    "_experimental_calibrate_only": False,
    "_experimental_variable_quantization": False,
    "_experimental_full_integer_quantization_bias_type": None,
}
_BITS = {"int8": 8, "uint8": 8, "float16": 16, "bfloat16": 16, "int16": 16, "float32": 32, "int32": 32, "float64": 64}


class Request(NamedTuple):
    """What a converter is asked for."""

    mode: str
    representative_dataset: Any
    settings: dict[str, Any]


def add_attributes(converter: Any) -> None:
    """Sets the attributes that users of tf.lite know on a new converter."""
    for name, value in ATTRIBUTES.items():
        setattr(converter, name, value)


def fulfil(asked: Request, model: Model, progress: Any = None) -> bytes:
    """The float model, quantized."""
    return quantize(model, asked.mode, asked.representative_dataset, progress=progress, **asked.settings)


def request(converter: Any) -> Request | None:
    """What the attributes ask for; None: a float model. The converter is only read.

    Raises what TensorFlow raises, with clearer messages.
    """
    target = _Target(converter)
    mode = target.mode()
    target.check_io_types(mode)
    if mode is None:
        return None
    settings = {
        "per_channel": not _attribute(converter, "_experimental_disable_per_channel"),
        "per_channel_dense": not _attribute(
            converter, "_experimental_disable_per_channel_quantization_for_dense_layers"
        ),
        "budget": getattr(converter, "_budget", None),
    }
    if mode in ("int8", "int16x8"):
        settings |= {
            "allow_float": target.allow_float,
            "input_type": target.input_type,
            "output_type": target.output_type,
        }
        return Request(mode, target.dataset, settings)
    return Request(mode, None, settings)


class _Target:
    """The attributes of a converter in plain words."""

    def __init__(self, converter: Any) -> None:
        self.optimizations = {_text(value) for value in converter.optimizations or ()}
        self.dataset = converter.representative_dataset
        self.ops = {_text(value) for value in converter.target_spec.supported_ops or ()}
        self.types = {type_name(value) for value in converter.target_spec.supported_types or ()}
        self.input_type = _io_type(converter.inference_input_type)
        self.output_type = _io_type(converter.inference_output_type)
        self._refuse_unknown(converter)
        if self.types == {"int8"}:
            self.ops = {"TFLITE_BUILTINS_INT8"}
        self.allow_float = bool(self.ops & {"TFLITE_BUILTINS", "SELECT_TF_OPS"})
        self.int8 = "TFLITE_BUILTINS_INT8" in self.ops
        self.int16x8 = "EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8" in self.ops
        # Any of the three optimizations that quantize; the other one is about sparsity.
        self.enabled = bool(self.optimizations & {"DEFAULT", "OPTIMIZE_FOR_SIZE", "OPTIMIZE_FOR_LATENCY"})

    def _refuse_unknown(self, converter: Any) -> None:
        if unknown := sorted(self.types - set(_BITS)):
            raise InvalidArgumentError(f"target_spec.supported_types has {', '.join(unknown)}, which are not types")
        if "EXPERIMENTAL_STABLEHLO_OPS" in self.ops:
            raise UnsupportedError(
                "target_spec.supported_ops has EXPERIMENTAL_STABLEHLO_OPS, which Leadline does not make"
            )
        for name in ("_experimental_calibrate_only", "_experimental_variable_quantization"):
            if _attribute(converter, name):
                raise UnsupportedError(f"{name} is not supported; calibrate with leadline.calibrate")
        bias = _attribute(converter, "_experimental_full_integer_quantization_bias_type")
        expected = "int64" if "EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8" in self.ops else "int32"
        if bias is not None and type_name(bias) != expected:
            raise UnsupportedError(f"biases of this kind of quantization are {expected}, not {type_name(bias)}")

    def mode(self) -> str | None:
        if self.ops == {"TFLITE_BUILTINS_INT8"} and not self.types <= {"int8"}:
            raise InvalidArgumentError(
                "As full integer quantization has been enabled by setting `target_spec.supported_ops`="
                "{tf.lite.OpsSet.TFLITE_BUILTINS_INT8}, thus `target_spec.supported_types` should be left "
                "uninitizalized or set to {tf.int8}."
            )
        if self.int8 and self.int16x8:
            raise InvalidArgumentError(
                "target_spec.supported_ops asks for int8 and for int16 activations; choose one of TFLITE_BUILTINS_INT8 "
                "and EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8"
            )
        if (self.int8 or self.int16x8) and self.dataset is None:
            raise InvalidArgumentError("For full integer quantization, a `representative_dataset` must be specified.")
        if not self.enabled:
            self._warn_about_no_optimization()
            return None
        if "bfloat16" in self.types:
            raise UnsupportedError(
                "target_spec.supported_types has bfloat16, which Leadline does not make; use float16"
            )
        smallest = min((_BITS[name] for name in self.types), default=8)
        if self.int16x8 and self.dataset is not None:
            return "int16x8"
        if smallest == 8:
            return "dynamic" if self.dataset is None else "int8"
        return "float16" if "float16" in self.types and smallest == 16 else None

    def _warn_about_no_optimization(self) -> None:
        asked = [
            name
            for name, value in {
                "representative_dataset": self.dataset is not None,
                "target_spec.supported_ops": self.int8 or self.int16x8,
                "target_spec.supported_types": self.types - {"float32"},
            }.items()
            if value
        ]
        if asked:
            warnings.warn(
                f"the model stays float: {' and '.join(asked)} ask for quantization, but optimizations is empty; "
                "set converter.optimizations = [Optimize.DEFAULT]",
                stacklevel=6,
            )

    def check_io_types(self, mode: str | None) -> None:
        allowed = {"int8": ("float32", "int8", "uint8", "int16"), "int16x8": ("float32", "int16")}.get(mode or "")
        if allowed is None:
            if (self.input_type, self.output_type) != ("float32", "float32"):
                raise InvalidArgumentError("The inference_input_type and inference_output_type must be tf.float32.")
        elif self.input_type not in allowed or self.output_type not in allowed:
            names = [f"tf.{name}" for name in allowed]
            raise InvalidArgumentError(f"The inference_input_type and inference_output_type must be in {names}.")


def _attribute(converter: Any, name: str) -> Any:
    return getattr(converter, name, ATTRIBUTES[name])


def _text(value: Any) -> str:
    """'DEFAULT' for Leadline's and TensorFlow's member of that name."""
    return getattr(value, "name", None) or str(value)


def _io_type(dtype: Any) -> str:
    return "float32" if dtype is None else type_name(dtype)
