# SPDX-License-Identifier: Apache-2.0
"""What scripts know as tensorflow.lite.python.convert: quantizing a model that a converter calibrated."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from leadline import _leadline
from leadline._leadline import Budget, Error, InvalidArgumentError, Model, QuantizeJob, RecipeRule
from leadline._native.arguments import as_budget, as_model
from leadline.jobs.quantize import keep_float_rules, make_options, quantize, quantize_to_model, type_name
from leadline.lite.converter_quantization import QUANTIZED_NAME

ConverterError = Error


def recipe_of_denylists(ops: Iterable[str] | None, nodes: Iterable[str] | None) -> list[RecipeRule]:
    """Rules that keep these ops, and the nodes that write these tensors, in float. As in TensorFlow a list of ops may
    name some that the model does not have."""
    return keep_float_rules(nodes or (), ops or (), optional=True)


def has_integers(model: Model, mode: str, **choice: Any) -> bool:
    """Whether anything is left to compute in integers where a recipe or lists keep nodes in float."""
    return QuantizeJob(model, make_options(mode, **choice)).uses_samples


def mlir_quantize(
    input_data_str: bytes | str | os.PathLike[str] | Model,
    disable_per_channel: bool = False,
    fully_quantize: bool = False,
    inference_type: Any = "int8",
    input_data_type: Any = "float32",
    output_data_type: Any = "float32",
    enable_numeric_verify: bool = False,
    enable_whole_model_verify: bool = False,
    denylisted_ops: Iterable[str] | None = None,
    denylisted_nodes: Iterable[str] | None = None,
    enable_variable_quantization: bool = False,
    disable_per_channel_for_dense_layers: bool = False,
    debug_options_str: str | bytes = "",
    *,
    budget: Budget | int | str | None = None,
) -> bytes:
    """Quantizes a model that a converter with `_experimental_calibrate_only` made: its file has the ranges.

    Args:
      input_data_str: the calibrated model: bytes, path or leadline.Model.
      disable_per_channel: one scale for all weights of a node; disable_per_channel_for_dense_layers: of a dense one.
      fully_quantize: inputs and outputs are integers too, unless input_data_type and output_data_type say otherwise.
      inference_type: "int8" or "int16", which is int16 activations with int8 weights; also a type of numpy or
        TensorFlow.
      input_data_type, output_data_type: of the model's inputs and outputs.
      enable_numeric_verify: adds a float node and a NumericVerify to each quantized node, for QuantizationDebugger.
      denylisted_ops, denylisted_nodes: ops, and output tensors of nodes, that stay float.
      enable_whole_model_verify, enable_variable_quantization: must be False.
      debug_options_str: ignored, it is about TensorFlow's own logs.
    """
    del debug_options_str
    for name, value in (
        ("enable_whole_model_verify", enable_whole_model_verify),
        ("enable_variable_quantization", enable_variable_quantization),
    ):
        if value:
            raise _leadline.UnsupportedError(f"{name} is not supported; leadline.debug compares whole models")
    limit = as_budget(budget)
    model = as_model(input_data_str, limit)
    kind = _integer_type(inference_type)
    mode = "int16x8" if kind == "int16" else "int8"
    recipe = recipe_of_denylists(denylisted_ops, denylisted_nodes)
    types = [type_name(input_data_type), type_name(output_data_type)]
    if fully_quantize and has_integers(model, mode, recipe=recipe):
        types = [kind if name == "float32" else name for name in types]
    settings: dict[str, Any] = {
        "calibration": _leadline.calibration_of(model, limit),
        "per_channel": not disable_per_channel,
        "per_channel_dense": not disable_per_channel_for_dense_layers,
        "input_type": types[0],
        "output_type": types[1],
        "recipe": recipe,
        "budget": limit,
        "quantized_name": QUANTIZED_NAME if mode == "int8" else "",
    }
    if not enable_numeric_verify:
        return quantize(model, mode, progress=False, **settings)
    return _leadline.make_debug_model(model, quantize_to_model(model, mode, **settings))


def _integer_type(inference_type: Any) -> str:
    # TensorFlow passes a number of its protocol buffers.
    name = {9: "int8", 18: "int8", 6: "int16"}.get(inference_type) if isinstance(inference_type, int) else None
    name = name or type_name(inference_type)
    if name not in ("int8", "int16"):
        raise InvalidArgumentError(f"inference_type should be int8 or int16; got {inference_type!r}")
    return name
