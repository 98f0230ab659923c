# SPDX-License-Identifier: Apache-2.0
"""leadline.quantize: a float .tflite model to one with smaller numbers."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from leadline import _leadline
from leadline._leadline import Budget, DType, InvalidArgumentError, Model, QuantizeJob, QuantizerOptions
from leadline._native.arguments import as_budget, as_method, as_mode, as_model
from leadline.jobs.calibrate import calibrate_on
from leadline.jobs.job import Job, Planned
from leadline.jobs.progress import observing
from leadline.jobs.samples import sample_source, warn_of

_R = TypeVar("_R")


@Job
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
    **pictures: Any,
) -> Planned[bytes]:
    """The bytes of a quantized .tflite file.

    >>> print(leadline.quantize.plan("model.tflite", "int8"))  # what it will take, phase by phase
    >>> content = leadline.quantize("model.tflite", "int8", [[sample] for sample in samples])

    model: path, bytes, or leadline.Model.
    mode: 'int8', 'int16x8' (these need representative_dataset or calibration), 'dynamic', 'float16',
        'weight_only_int8', 'weight_only_int4'.
    representative_dataset: samples, or their path, as leadline.calibrate takes them.
    input_type, output_type: of the model's float inputs and outputs with full integers: 'float32' (the default),
        'int8', 'uint8' or 'int16', or the same as a dtype of numpy, TensorFlow or Leadline.
    recipe: which nodes are quantized how: a list of rules, {'rules': [...]}, such JSON, or the path of such a file; a
        rule is {'op': ..., 'name': regular expression, 'node': number, 'mode': 'float' or a mode}. Recipes of
        ai-edge-quantizer are taken as they are. The last rule that matches a node decides; without one: mode.
    method: how ranges are chosen from the samples: 'min_max', 'moving_average', 'percentile', 'mse' or
        'kl'; percentile: the share of values inside the range, 99.99 if not given.
    calibration: a leadline.Calibration made before, instead of representative_dataset.
    allow_float: nodes without an integer form stay float; otherwise they are an error that lists them.
    executor, budget, progress, timeout, pictures: as in leadline.calibrate.
    """
    del timeout  # kept by Job
    options = make_options(
        mode,
        input_type=input_type,
        output_type=output_type,
        per_channel=per_channel,
        per_channel_dense=per_channel_dense,
        recipe=recipe,
        method=method,
        percentile=percentile,
        allow_float=allow_float,
        bias_correction=bias_correction,
        equalize=equalize,
        min_weight_elements=min_weight_elements,
        budget=as_budget(budget),
    )
    return (
        yield from _quantize(
            QuantizeJob.run, model, options, representative_dataset, calibration, executor, progress, pictures
        )
    )


@Job
def quantize_to_model(model, mode: str, *, calibration=None, budget=None, **settings) -> Planned[Model]:
    """The same as a model to run; its memory is returned to the system with it."""
    options = make_options(mode, budget=as_budget(budget), **settings)
    return (yield from _quantize(QuantizeJob.run_to_model, model, options, None, calibration, None, False, {}))


def _quantize(
    run: Callable[..., tuple[_R, list[tuple]]],
    given: Any,
    options: QuantizerOptions,
    dataset: Any,
    calibration: Any,
    executor: Any,
    progress: Any,
    pictures: dict[str, Any],
) -> Planned[_R]:
    model = as_model(given, options.budget)
    if calibration is not None:
        options.set_calibration(calibration)
        if dataset is None:
            options.bias_correction = False  # it takes samples
    source = None if dataset is None else sample_source(dataset, None, model, budget=options.budget, **pictures)
    job = QuantizeJob(model, options)
    yield lambda: job.plan(source)
    for rule in job.unmatched_rules:
        warnings.warn(f"a rule of the recipe matches no node: {rule}", stacklevel=4)
    if job.needs_samples and source is None:
        raise InvalidArgumentError(
            f"mode '{options.mode.name.lower()}' needs representative_dataset: samples of what the model will see"
            if _leadline.is_integer(options.mode)
            else "the recipe quantizes activations and needs representative_dataset"
        )
    if options.bias_correction and hasattr(dataset, "__next__"):
        dataset = list(dataset)  # it is read twice
        source = sample_source(dataset, None, model)
    if executor is not None and source is not None and job.needs_samples and calibration is None:
        if options.equalize:
            given = model = _leadline.equalized_model(model, options.budget)
            options.equalize = False
        needs = {"histograms": _leadline.needs_histograms(options.calibration_rule.method), "keep_state": False}
        found, findings = calibrate_on(
            executor, given, model, source, options.budget, needs | {"num_threads": 1}, progress
        )
        warn_of(findings, 4)
        options.set_calibration(found)
        job = QuantizeJob(model, options)
        source = sample_source(dataset, None, model, budget=options.budget, **pictures)
    titles = {"calibrate": "Calibrating", "correct_biases": "Correcting biases", "quantize": "Quantizing"}
    with observing(progress, **titles) as observer:
        result, findings = run(job, source, observer)
    warn_of(findings, 4)
    return result


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
        if not hasattr(options, name):
            raise TypeError(f"unexpected keyword argument {name!r}")
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
    """'int8' for 'int8', numpy.int8, tf.int8, DType.INT8 and such; what is not a type is named by its text."""
    if isinstance(dtype, str):
        return dtype
    if isinstance(dtype, DType):
        return dtype.name.lower()
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None)
    return name if isinstance(name, str) else str(dtype)


def _io_type(argument: str, dtype) -> DType:
    return DType.FLOAT32 if dtype is None else _leadline.parse_io_type(type_name(dtype), argument)
