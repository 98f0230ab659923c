# SPDX-License-Identifier: Apache-2.0
"""leadline.quantize: a float .tflite model to one with smaller numbers."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from leadline import _leadline
from leadline._leadline import Budget, DType, InvalidArgumentError, Model, QuantizeJob, QuantizerOptions
from leadline._native.arguments import as_budget, as_method, as_mode, as_model
from leadline.jobs.calibrate import calibrate_on
from leadline.jobs.job import Job, Planned
from leadline.jobs.progress import observing
from leadline.jobs.samples import check_picture_arguments, sample_source, warn_of

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
    denylisted_nodes: Iterable[str] = (),
    denylisted_ops: Iterable[str] = (),
    method: str = "min_max",
    percentile: float | None = None,
    calibration=None,
    allow_float: bool = True,
    bias_correction: bool = False,
    equalize: bool = False,
    ranges_only: bool = False,
    keep_state: bool = False,
    sparsify: bool = False,
    quantized_name: str = "",
    min_weight_elements: int = 256,
    rounding: str = "nearest",
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
        'weight_only_int8', 'weight_only_int4', 'dynamic_int4', 'dynamic_int2'.
    representative_dataset: samples, or their path, as leadline.calibrate takes them.
    input_type, output_type: of the model's float inputs and outputs with full integers: 'float32' (the default),
        'int8', 'uint8' or 'int16', or the same as a dtype of numpy, TensorFlow or Leadline.
    recipe: which nodes are quantized how: a list of rules, {'rules': [...]}, such JSON, or the path of such a file; a
        rule is {'op': ..., 'name': regular expression, 'node': number, 'mode': 'float' or a mode}, and may say of
        weights 'rounding', 'block_size', 'symmetric', 'rotation' and 'min_weight_elements'. Recipes of
        ai-edge-quantizer are taken as they are. The last rule that matches a node decides; without one: mode. A rule
        that matches no node is an error, unless it is 'optional'. Settings that stand beside 'rules' (mode, method,
        percentile, per_channel, equalize, bias_correction, rounding) replace the arguments of the same names.
    denylisted_nodes, denylisted_ops: names of tensors whose nodes stay float, and of ops that do.
    method: how ranges are chosen from the samples: 'min_max', 'moving_average', 'percentile', 'mse' or
        'kl'; percentile: the share of values inside the range, 99.99 if not given.
    calibration: a leadline.Calibration made before, instead of representative_dataset.
    allow_float: nodes without an integer form stay float; otherwise they are an error that lists them.
    ranges_only: quantizes nothing; the float model gets the ranges that samples gave its tensors, for a quantizer that
        takes them from the file (tf.lite's calibrate_only).
    sparsify: weights of dense layers are stored without their zeros, where that is smaller; with mode 'float' that is
        all that is done.
    quantized_name: of tensors that floats are quantized into; otherwise the float tensor's with '_int8' or '_int16'.
    min_weight_elements: weights of fewer elements stay float in modes that quantize only weights. TFLiteConverter takes
        1024, as TensorFlow does.
    rounding: how weights become integers: 'nearest'; 'mse', with scales that cut off the rarest weights where that
        loses less; or 'comq', which changes the results of each layer least and takes samples in every mode.
    keep_state, executor, budget, progress, timeout, pictures: as in leadline.calibrate.
    """
    del timeout  # kept by Job
    check_picture_arguments(pictures)
    options = make_options(
        mode,
        input_type=input_type,
        output_type=output_type,
        per_channel=per_channel,
        per_channel_dense=per_channel_dense,
        recipe=recipe,
        denylisted_nodes=denylisted_nodes,
        denylisted_ops=denylisted_ops,
        method=method,
        percentile=percentile,
        allow_float=allow_float,
        bias_correction=bias_correction,
        equalize=equalize,
        ranges_only=ranges_only,
        keep_state=keep_state,
        sparsify=sparsify,
        quantized_name=quantized_name,
        min_weight_elements=min_weight_elements,
        rounding=rounding,
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
    if job.needs_samples and source is None:
        raise InvalidArgumentError(
            f"mode '{options.mode.name.lower()}' needs representative_dataset: samples of what the model will see"
            if _leadline.is_integer(options.mode)
            else "rounding 'comq' needs representative_dataset: samples of what the model will see"
            if job.needs_gram_matrices
            else "the recipe quantizes activations and needs representative_dataset"
        )
    if options.bias_correction and hasattr(dataset, "__next__"):
        dataset = list(dataset)  # it is read twice
        source = sample_source(dataset, None, model)
    if executor is not None and source is not None and job.uses_samples and calibration is None:
        if options.keep_state:
            raise InvalidArgumentError("samples with keep_state are one stream, which an executor cannot split")
        if options.equalize:
            given = model = _leadline.equalized_model(model, options.budget)
            options.equalize = False
        needs = {
            "histograms": _leadline.needs_histograms(options.calibration_rule.method),
            "keep_state": False,
            "gram_matrices": job.needs_gram_matrices,
        }
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
    denylisted_nodes: Iterable[str] = (),
    denylisted_ops: Iterable[str] = (),
    method: str = "min_max",
    percentile: float | None = None,
    rounding: str = "nearest",
    **settings,
) -> _leadline.QuantizerOptions:
    """Checks and gathers the arguments of quantize()."""
    options = _leadline.QuantizerOptions()
    options.mode = as_mode(mode)
    options.input_type = _io_type("input_type", input_type)
    options.output_type = _io_type("output_type", output_type)
    rule = _leadline.CalibrationRule()
    rule.method = as_method(method)
    if percentile is not None:
        rule.percentile = float(percentile)
    options.calibration_rule = rule
    options.rounding = _leadline.parse_weight_rounding(str(rounding).lower())
    for name, value in settings.items():
        if not hasattr(options, name):
            raise TypeError(f"unexpected keyword argument {name!r}")
        setattr(options, name, value)
    apply_recipe(recipe, options)
    options.recipe = [*options.recipe, *keep_float_rules(denylisted_nodes, denylisted_ops)]
    return options


def keep_float_rules(nodes: Iterable[str], ops: Iterable[str], optional: bool = False) -> list[_leadline.RecipeRule]:
    """Rules that keep the nodes that write these tensors, and these ops, in float. `optional`: ops that a model does
    not have are no error."""
    for what, names in (("denylisted_nodes", nodes), ("denylisted_ops", ops)):
        if isinstance(names, str):
            raise TypeError(f"{what} should be a list of names; got the text {names!r}")
    rules = []
    for op in ops:
        rule = _leadline.RecipeRule()
        rule.op = op
        rule.optional = optional
        rules.append(rule)
    return rules + [_leadline.rule_for_tensor(name, _leadline.QuantizationMode.FLOAT) for name in nodes]


def apply_recipe(recipe, options: QuantizerOptions) -> None:
    """Adds what a recipe says to options: a list or dict, JSON text, or the path of a JSON file."""
    if recipe is None:
        return
    if isinstance(recipe, os.PathLike) or (isinstance(recipe, str) and recipe.lstrip()[:1] not in ("[", "{", "")):
        try:
            recipe = Path(recipe).read_text(encoding="utf-8")
        except OSError as error:
            raise _leadline.IoError(f"recipe '{recipe}' cannot be read: {error.strerror or error}") from error
        except UnicodeDecodeError as error:
            raise InvalidArgumentError(f"recipe '{recipe}' is not UTF-8 text") from error
    elif not isinstance(recipe, str):
        recipe = recipe if isinstance(recipe, dict) else list(recipe)
        if isinstance(recipe, list) and all(isinstance(rule, _leadline.RecipeRule) for rule in recipe):
            options.recipe = [*options.recipe, *recipe]
            return
        try:
            recipe = json.dumps(recipe)
        except TypeError as error:
            raise InvalidArgumentError(f"recipe: {error}") from error
    _leadline.apply_recipe(recipe, options)


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
