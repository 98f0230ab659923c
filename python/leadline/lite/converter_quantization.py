# SPDX-License-Identifier: Apache-2.0
"""What the attributes of a TFLiteConverter ask for, by TensorFlow's rules, and its fulfilment."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

from leadline._leadline import InvalidArgumentError, Model, QuantizeJob, UnsupportedError
from leadline.jobs.quantize import make_options, quantize, type_name

# Attributes of tf.lite.TFLiteConverter that are about quantization, with its defaults.
ATTRIBUTES = {
    "experimental_use_stablehlo_quantizer": False,
    "_experimental_qdq_conversion_mode": None,
    "_experimental_disable_per_channel": False,
    "_experimental_disable_per_channel_quantization_for_dense_layers": False,
    "_experimental_calibrate_only": False,
    "_experimental_variable_quantization": False,
    "_experimental_full_integer_quantization_bias_type": None,
}
# Leadline's own: which nodes are quantized how, as leadline.quantize takes it.
CHOICES: dict[str, Any] = {"recipe": None, "denylisted_nodes": (), "denylisted_ops": ()}
_BITS = {"int8": 8, "uint8": 8, "float16": 16, "bfloat16": 16, "int16": 16, "float32": 32, "int32": 32, "float64": 64}


# What TensorFlow's quantizer of today calls the integers that it makes of float inputs; the one before it, which still
# makes int16, calls them like the float tensor with the type, and so does Leadline.
QUANTIZED_NAME = "tfl.quantize"
# Weights of fewer elements stay float where TensorFlow quantizes nothing but weights.
TENSORFLOWS_LEAST_ELEMENTS = 1024
_QDQ_MODES = ("NONE", "STATIC", "DYNAMIC")


class Request(NamedTuple):
    """What a converter is asked for."""

    mode: str
    representative_dataset: Any
    settings: dict[str, Any]
    trained: dict[str, Any] | None = None  # int8 instead, with these settings, of a model that was trained for it
    refusal: InvalidArgumentError | None = None  # of all other models


def add_attributes(converter: Any) -> None:
    """Sets the attributes that users of tf.lite know on a new converter."""
    for name, value in (ATTRIBUTES | CHOICES).items():
        setattr(converter, name, value)


def fulfil(asked: Request, model: Model, progress: Any = None) -> bytes:
    """The float model, quantized. Samples of a model with state are one stream, as in TensorFlow."""
    ops = {node.op for number in range(model.subgraph_count) for node in model.subgraph(number).nodes}
    # A model may have fake quantization nodes of other widths than 8 bits alone, which do not replace samples.
    if asked.trained is not None and "FAKE_QUANT" in ops and not QuantizeJob(model, make_options("int8")).needs_samples:
        return quantize(model, "int8", None, progress=progress, **asked.trained)
    if asked.refusal is not None:
        raise asked.refusal
    settings = {**asked.settings, "keep_state": "READ_VARIABLE" in ops}
    return quantize(model, asked.mode, asked.representative_dataset, progress=progress, **settings)


def request(converter: Any, *, quantizes: bool = False) -> Request | None:
    """What the attributes ask for; None: a float model. The converter is only read. `quantizes`: its model is to be
    quantized also where the converter is to calibrate only.

    Raises what TensorFlow raises, with clearer messages. A model that was trained for quantization brings ranges along
    and needs no samples; whether it is one is known when it is converted.
    """
    target = _Target(converter)
    trained = target.trained_settings(converter)
    try:
        asked = _request(converter, target, quantizes)
    except InvalidArgumentError as error:
        if trained is None:
            raise
        return Request("", None, {}, trained, error.with_traceback(None))
    return asked if trained is None else (asked or Request("float", None, {}))._replace(trained=trained)


def _request(converter: Any, target: _Target, quantizes: bool) -> Request | None:
    """The same of a model that was not trained for it."""
    mode = target.mode()
    target.check_io_types(mode)
    _check_switches(converter, mode)
    if mode is None:
        return Request("float", None, {"sparsify": True}) if target.sparsify else None
    if _attribute(converter, "experimental_use_stablehlo_quantizer"):
        warnings.warn(
            "the model stays float: experimental_use_stablehlo_quantizer quantizes StableHLO, and there is none",
            stacklevel=5,
        )
        return None
    settings = target.settings(converter)
    if mode in ("int8", "int16x8"):
        settings |= {
            "allow_float": target.allow_float,
            "input_type": target.input_type,
            "output_type": target.output_type,
        }
        if _attribute(converter, "_experimental_calibrate_only") and not quantizes:
            settings = {"ranges_only": True, "budget": settings["budget"]}
        return Request(mode, target.dataset, settings)
    return Request(mode, None, settings | {"min_weight_elements": TENSORFLOWS_LEAST_ELEMENTS})


def _check_switches(converter: Any, mode: str | None) -> None:
    """Refuses what goes with other modes only, in the words of TensorFlow that people look for."""
    integers = mode in ("int8", "int16x8")
    bias = _attribute(converter, "_experimental_full_integer_quantization_bias_type")
    expected = "int64" if mode == "int16x8" else "int32"
    if bias is not None and integers and type_name(bias) != expected:
        raise InvalidArgumentError(
            f"Expected bias type to be {expected} with {mode} activations; got {type_name(bias)}"
        )
    if _attribute(converter, "_experimental_calibrate_only") and not integers:
        raise InvalidArgumentError(
            "_experimental_calibrate_only needs Optimize.DEFAULT and a representative_dataset to calibrate with"
        )
    if _attribute(converter, "_experimental_variable_quantization"):
        if not integers:
            raise InvalidArgumentError(
                "`_experimental_variable_quantization` is only supported for full integer quantization."
            )
        warnings.warn("_experimental_variable_quantization: variables stay float", stacklevel=6)
    qdq = _attribute(converter, "_experimental_qdq_conversion_mode")
    if qdq is not None and str(qdq) not in _QDQ_MODES:
        raise UnsupportedError(f"Unknown QDQ conversion mode: {qdq}; expected one of: {', '.join(_QDQ_MODES)}")
    if _attribute(converter, "experimental_use_stablehlo_quantizer") and not integers:
        raise InvalidArgumentError(
            "experimental_use_stablehlo_quantizer only supports static-range and weight-only PTQ, which need "
            "Optimize.DEFAULT and a representative_dataset"
        )


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
        self.sparsify = "EXPERIMENTAL_SPARSITY" in self.optimizations
        self.enabled = bool(self.optimizations & {"DEFAULT", "OPTIMIZE_FOR_SIZE", "OPTIMIZE_FOR_LATENCY"})

    def settings(self, converter: Any) -> dict[str, Any]:
        dense = "_experimental_disable_per_channel_quantization_for_dense_layers"
        return {
            "per_channel": not _attribute(converter, "_experimental_disable_per_channel"),
            "per_channel_dense": not _attribute(converter, dense),
            "budget": getattr(converter, "_budget", None),
            "sparsify": self.sparsify,
            **{name: getattr(converter, name, default) for name, default in CHOICES.items()},
            "quantized_name": QUANTIZED_NAME if not self.int16x8 and _new_quantizer(converter) else "",
        }

    def trained_settings(self, converter: Any) -> dict[str, Any] | None:
        """How a model that was trained for quantization is quantized; None: not without samples, or not at all."""
        mode = _attribute(converter, "_experimental_qdq_conversion_mode") or "NONE"
        asked = self.enabled or mode != "NONE"
        if _attribute(converter, "_experimental_calibrate_only"):
            return None
        if not asked or self.dataset is not None or self.int16x8 or self.types - {"int8", "float32"}:
            return None
        if not {self.input_type, self.output_type} <= {"float32", "int8", "uint8"}:
            return None
        outside = {"float32": "int8"} if mode == "STATIC" else {}
        return {
            **self.settings(converter),
            "allow_float": self.allow_float,
            "input_type": outside.get(self.input_type, self.input_type),
            "output_type": outside.get(self.output_type, self.output_type),
        }

    def _refuse_unknown(self, converter: Any) -> None:
        if unknown := sorted(self.types - set(_BITS)):
            raise InvalidArgumentError(f"target_spec.supported_types has {', '.join(unknown)}, which are not types")
        if "EXPERIMENTAL_STABLEHLO_OPS" in self.ops:
            raise UnsupportedError(
                "target_spec.supported_ops has EXPERIMENTAL_STABLEHLO_OPS, which Leadline does not make"
            )

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


def _new_quantizer(converter: Any) -> bool:
    return all(getattr(converter, name, True) for name in ("experimental_new_quantizer", "_experimental_new_quantizer"))


def _attribute(converter: Any, name: str) -> Any:
    return getattr(converter, name, ATTRIBUTES[name])


def _text(value: Any) -> str:
    """'DEFAULT' for Leadline's and TensorFlow's member of that name."""
    return getattr(value, "name", None) or str(value)


def _io_type(dtype: Any) -> str:
    return "float32" if dtype is None else type_name(dtype)
