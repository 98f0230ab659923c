# SPDX-License-Identifier: Apache-2.0
"""leadline.quantize: a float .tflite model to one with smaller numbers."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path

from leadline import _leadline
from leadline._leadline import Budget, DType, InvalidArgumentError, JobPlan, Model
from leadline._native.arguments import as_budget, as_method, as_mode, as_model
from leadline.jobs.job import planned_by
from leadline.jobs.progress import progress_of, tell, with_timeout


def _plan(
    model,
    mode="int8",
    representative_dataset=None,
    *,
    calibration=None,
    executor=None,
    budget=None,
    progress=None,
    timeout=None,
    **settings,
) -> JobPlan:
    budget = as_budget(budget)
    return _job(as_model(model, budget), make_options(mode, budget=budget, **settings), calibration).plan()


def _job(model: Model, options: _leadline.QuantizerOptions, calibration) -> _leadline.QuantizeJob:
    if calibration is not None:
        options.set_calibration(calibration)
    return _leadline.QuantizeJob(model, options)


@planned_by(_plan)
@with_timeout
def quantize(
    model,
    mode: str = "int8",
    representative_dataset=None,
    *,
    input_type=None,
    output_type=None,
    per_channel: bool = True,
    per_channel_dense: bool = True,
    recipe=None,
    method: str = "min_max",
    percentile: float | None = None,
    calibration=None,
    allow_float: bool = True,
    bias_correction: bool = False,
    equalize: bool = False,
    min_weight_elements: int = 1024,
    executor=None,
    budget: Budget | str | int | None = None,
    progress=None,
    timeout: float | None = None,
) -> bytes:
    """The bytes of a quantized .tflite file.

    >>> print(leadline.quantize.plan("model.tflite", "int8"))  # what it will take, phase by phase
    >>> content = leadline.quantize("model.tflite", "int8", [[sample] for sample in samples])

    model: path, bytes, or leadline.Model.
    mode: 'int8', 'int16x8' (these need representative_dataset or calibration), 'dynamic', 'float16',
        'weight_only_int8', 'weight_only_int4'.
    representative_dataset: samples in any form that tf.lite takes, or a function that gives them.
    input_type, output_type: of the model's float inputs and outputs with full integers: 'float32' (the default),
        'int8', 'uint8' or 'int16', or the same as a dtype of numpy, TensorFlow or Leadline.
    recipe: which nodes are quantized how: a list of rules, {'rules': [...]}, such JSON, or the path of such a file; a
        rule is {'op': ..., 'name': regular expression, 'node': number, 'mode': 'float' or a mode}. Recipes of
        ai-edge-quantizer are taken as they are. The last rule that matches a node decides; without one: mode.
    method: how ranges are chosen from the samples: 'min_max', 'moving_average', 'percentile', 'mse' or
        'kl'; percentile: the share of values inside the range, 99.99 if not given.
    calibration: a leadline.Calibration made before, instead of representative_dataset.
    allow_float: nodes without an integer form stay float; otherwise they are an error that lists them.
    executor, budget, progress, timeout: as in leadline.calibrate.
    """
    del timeout  # kept by with_timeout
    return _quantize(
        "quantize",
        model,
        mode,
        representative_dataset,
        input_type=input_type,
        output_type=output_type,
        per_channel=per_channel,
        per_channel_dense=per_channel_dense,
        recipe=recipe,
        method=method,
        percentile=percentile,
        calibration=calibration,
        allow_float=allow_float,
        bias_correction=bias_correction,
        equalize=equalize,
        min_weight_elements=min_weight_elements,
        executor=executor,
        budget=budget,
        progress=progress,
    )


def quantize_to_model(model, mode: str, representative_dataset=None, **settings) -> Model:
    """The same as a model to run; its memory goes back to the system with it."""
    return _quantize("quantize_to_model", model, mode, representative_dataset, **settings)


def _quantize(
    result: str,
    model,
    mode: str,
    representative_dataset=None,
    *,
    calibration=None,
    executor=None,
    budget=None,
    progress=None,
    bias_correction: bool = False,
    equalize: bool = False,
    **settings,
):
    budget = as_budget(budget)
    source, model = model, as_model(model, budget)
    options = make_options(mode, bias_correction=bias_correction, equalize=equalize, budget=budget, **settings)
    job = _job(model, options, calibration)
    for rule in job.unmatched_rules:
        warnings.warn(f"a rule of the recipe matches no node: {rule}", stacklevel=4)
    if executor is None:
        job.admit()
    quantizer = _leadline.Quantizer(model, options)
    if calibration is None and needs_calibration(quantizer):
        if representative_dataset is None:
            raise InvalidArgumentError(
                f"mode '{mode}' needs representative_dataset: samples of what the model will see"
                if _leadline.is_integer(options.mode)
                else "the recipe quantizes activations and needs representative_dataset"
            )
        from leadline.jobs.calibrate import run_calibration

        if bias_correction and hasattr(representative_dataset, "__next__"):
            representative_dataset = list(representative_dataset)  # it is read twice
        # Workers of an executor can read a file themselves.
        calibration = run_calibration(
            quantizer.model if executor is None or equalize else source,
            representative_dataset,
            options.calibration_rule.method,
            executor=executor,
            budget=budget,
            progress=progress,
            admitted=True,
        )
    means = None
    if bias_correction and representative_dataset is not None and needs_calibration(quantizer):
        means = _channel_means(quantizer.model, representative_dataset, budget, progress)
    # A function counts samples; the file is written in a moment, and only a bar would tell of it.
    with progress_of(False if callable(progress) else progress, "Quantizing") as report:
        return getattr(quantizer, result)(calibration, means, report)


def _channel_means(model: Model, dataset, budget: Budget | None, progress) -> _leadline.ChannelMeans:
    from leadline._native import tensors
    from leadline.jobs.dataset import DatasetReader, open_dataset

    means = _leadline.ChannelMeans(model, 1, budget)
    interpreter = means.interpreter
    specs: list[tensors.TensorSpec] = []
    samples, total = open_dataset(dataset)
    with progress_of(False if callable(progress) else progress, "Correcting biases") as report:
        for number, sample in enumerate(DatasetReader(model).samples(samples)):
            if sample.subgraph != 0:
                continue
            if [spec.shape for spec in specs] != [array.shape for array in sample.arrays]:
                for index, array in zip(interpreter.inputs, sample.arrays, strict=True):
                    interpreter.resize_input(index, array.shape)
                specs = [tensors.TensorSpec.of(interpreter.tensor_info(index)) for index in interpreter.inputs]
            for spec, array in zip(specs, sample.arrays, strict=True):
                interpreter.set_tensor(spec.index, tensors.to_bytes(array, spec))
            means.add_sample()
            tell(report, number + 1, total)
    return means


def equalized(model: Model, budget: Budget | None = None) -> Model:
    """What quantize(equalize=True) makes of a float model before it quantizes: the same function, even channels."""
    options = make_options("int8", equalize=True, budget=budget)
    return _leadline.Quantizer(model, options).model


def needs_calibration(quantizer: _leadline.Quantizer) -> bool:
    """Whether any node gets integer activations, whose ranges samples must tell."""
    return any(_leadline.is_integer(node.mode) for node in quantizer.nodes())


def make_options(
    mode: str,
    *,
    input_type=None,
    output_type=None,
    recipe=None,
    method: str = "min_max",
    percentile: float | None = None,
    **settings,
) -> _leadline.QuantizerOptions:
    """Checks and gathers the arguments of quantize()."""
    options = _leadline.QuantizerOptions()
    options.mode = as_mode(mode)
    options.input_type = _io_type("input_type", input_type)
    options.output_type = _io_type("output_type", output_type)
    options.recipe = read_recipe(recipe)
    rule = _leadline.CalibrationRule()
    rule.method = as_method(method)
    if percentile is not None:
        rule.percentile = float(percentile)
    options.calibration_rule = rule
    for name, value in settings.items():
        setattr(options, name, value)
    return options


def read_recipe(recipe) -> list[_leadline.RecipeRule]:
    """Rules from a list or dict, JSON text, or the path of a JSON file."""
    if recipe is None:
        return []
    if isinstance(recipe, os.PathLike) or (isinstance(recipe, str) and recipe.lstrip()[:1] not in ("[", "{", "")):
        try:
            recipe = Path(recipe).read_text(encoding="utf-8")
        except OSError as error:
            raise _leadline.IoError(f"recipe '{recipe}' cannot be read: {error.strerror or error}") from error
        except UnicodeDecodeError as error:
            raise InvalidArgumentError(f"recipe '{recipe}' is not UTF-8 text") from error
    elif not isinstance(recipe, str):
        rules = recipe.get("rules", recipe) if isinstance(recipe, dict) else list(recipe)
        if all(isinstance(rule, _leadline.RecipeRule) for rule in rules):
            return list(rules)
        try:
            recipe = json.dumps(rules)
        except TypeError as error:
            raise InvalidArgumentError(f"recipe: {error}") from error
    return _leadline.parse_recipe(recipe)


def type_name(dtype) -> str:
    """'int8' for 'int8', numpy.int8, tf.int8, DType.INT8 and such; what is no type is named by its text."""
    if isinstance(dtype, str):
        return dtype
    if isinstance(dtype, DType):
        return dtype.name.lower()
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None)
    return name if isinstance(name, str) else str(dtype)


def _io_type(argument: str, dtype) -> DType:
    return DType.FLOAT32 if dtype is None else _leadline.parse_io_type(type_name(dtype), argument)
