# SPDX-License-Identifier: Apache-2.0
"""tf.lite.experimental's QuantizationDebugger: runs debug models and gathers statistics of their layers."""

from __future__ import annotations

import copy
import csv
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import IO, Any, TypeVar

import numpy as np

from leadline import _leadline
from leadline._leadline import Budget, Calibration, InvalidArgumentError, Model
from leadline._native import tensors
from leadline._native.arguments import as_budget, as_model, as_threads
from leadline._native.tensors import Array
from leadline.jobs.calibrate import calibrate
from leadline.jobs.progress import progress_of, tell, with_timeout
from leadline.jobs.quantize import quantize, quantize_to_model
from leadline.jobs.samples import open_dataset, to_array
from leadline.lite import converter_quantization, metrics
from leadline.lite.convert import has_integers, recipe_of_denylists

T = TypeVar("T")


def _get_quant_params(tensor_detail: Mapping[str, Any]) -> tuple[float, int] | None:
    """The first scale and zero point in the details of a tensor, as scripts ask tf.lite's debugger for them."""
    found = tensor_detail["quantization_parameters"]
    if not found or not len(found["scales"]) or not len(found["zero_points"]):
        return None
    return found["scales"][0], found["zero_points"][0]


_LAYER_METRICS = ("num_elements", "stddev", "mean_error", "max_abs_error", "mean_squared_error")


class QuantizationDebugOptions:
    """What a QuantizationDebugger computes and how it quantizes; the arguments of tf.lite's."""

    __module__ = "leadline.lite.experimental"  # where users find it

    def __init__(
        self,
        layer_debug_metrics: Mapping[str, Callable[[Array], float]] | None = None,
        model_debug_metrics: Mapping[str, Callable[[Sequence[Array], Sequence[Array]], float]] | None = None,
        layer_direct_compare_metrics: Mapping[str, Callable[[Array, Array, float, int], float]] | None = None,
        denylisted_ops: list[str] | None = None,
        denylisted_nodes: list[str] | None = None,
        fully_quantize: bool = False,
        *,
        recipe: Any = None,
    ) -> None:
        """
        Args:
          layer_debug_metrics: functions of the differences (quantized minus float) of a layer, by name.
          model_debug_metrics: functions of the float model's and the quantized model's outputs.
          layer_direct_compare_metrics: functions of (float values, quantized values, scale, zero point); scale and zero
            point are arrays where a tensor has one for each channel.
          denylisted_ops: names of ops that stay float.
          denylisted_nodes: names of tensors whose nodes stay float.
          fully_quantize: inputs and outputs are int8 too.
          recipe: which nodes are quantized how, as leadline.quantize takes it.

        Raises ValueError when two metrics have the same name.
        """
        self.layer_debug_metrics = layer_debug_metrics
        self.model_debug_metrics = model_debug_metrics
        self.layer_direct_compare_metrics = layer_direct_compare_metrics
        self.denylisted_ops = denylisted_ops
        self.denylisted_nodes = denylisted_nodes
        self.fully_quantize = fully_quantize
        self.recipe = recipe
        metrics = (layer_debug_metrics, model_debug_metrics, layer_direct_compare_metrics)
        names = [name for functions in metrics for name in functions or ()]
        if len(names) != len(set(names)):
            raise InvalidArgumentError("Provided metrics have duplicate keys.")

    def _choice(self) -> dict[str, Any]:
        """Which nodes are quantized how, as arguments of leadline.quantize."""
        if self.recipe is None:
            return {"recipe": recipe_of_denylists(self.denylisted_ops, self.denylisted_nodes)}
        lists = {"denylisted_ops": self.denylisted_ops or (), "denylisted_nodes": self.denylisted_nodes or ()}
        return {"recipe": self.recipe, **lists}

    def __repr__(self) -> str:
        given = {name: value for name, value in vars(self).items() if value}
        return f"<{self.__module__}.QuantizationDebugOptions: {', '.join(f'{n}={v!r}' for n, v in given.items())}>"


class QuantizationDebugger:
    """Runs a debug model (a quantized model with NumericVerify nodes) and gathers statistics; as tf.lite's.

    Made from a converter it calibrates once, on a float model that is converted once; the converter stays as it is.
    Differences are taken while a node's values are in memory. Samples for which a metric is NaN are left out of its
    mean, as tf.lite does it, but not silently: run() warns, and `not_finite` counts the values by layer. Other
    subgraphs than the main one are watched too.
    """

    __module__ = "leadline.lite.experimental"  # where users find it

    def __init__(
        self,
        quant_debug_model_path: str | os.PathLike[str] | None = None,
        quant_debug_model_content: bytes | None = None,
        float_model_path: str | os.PathLike[str] | None = None,
        float_model_content: bytes | None = None,
        debug_dataset: Callable[[], Iterable[Sequence[Array]]] | None = None,
        debug_options: QuantizationDebugOptions | None = None,
        converter: Any = None,
        *,
        num_threads: int | None = None,
        budget: Budget | int | str | None = None,
    ) -> None:
        _leadline.remember_object(self)
        self._budget = as_budget(budget)
        self._threads = as_threads(num_threads)
        self._data_gen = debug_dataset
        self._debug_options = debug_options or QuantizationDebugOptions()
        self.converter = converter
        self._request: converter_quantization.Request | None = None
        self._calibration: Calibration | None = None
        self._float: Model | None = None
        self.layer_statistics: dict[str, dict[str, float]] | None = None
        self.model_statistics: dict[str, Any] | None = None
        self.not_finite: dict[str, int] = {}
        if converter is not None:
            self._start_from_converter(converter)
        else:
            model = quant_debug_model_content if quant_debug_model_path is None else quant_debug_model_path
            if model is None:
                raise InvalidArgumentError(
                    "a debug model (quant_debug_model_path or _content) or a converter is needed"
                )
            other = float_model_content if float_model_path is None else float_model_path
            self._float = None if other is None else as_model(other, self._budget)
            if self._debug_options.model_debug_metrics and self._float is None:
                raise InvalidArgumentError("model_debug_metrics need a float model: float_model_path or _content")
            self._use(as_model(model, self._budget))

    def __repr__(self) -> str:
        state = "not run" if self.layer_statistics is None else f"statistics of {len(self.layer_statistics)}"
        return f"<{self.__module__}.QuantizationDebugger: {len(self._layers)} layers, {state}>"

    @property
    def _reference(self) -> Model:
        """The float model, where one is needed."""
        assert self._float is not None
        return self._float

    # From a converter

    def _start_from_converter(self, converter: Any) -> None:
        if not converter.optimizations:
            raise InvalidArgumentError("converter object must set optimizations to lite.Optimize.DEFAULT")
        if not converter.representative_dataset:
            raise InvalidArgumentError("converter object must set representative_dataset")
        self._request = converter_quantization.request(converter, quantizes=True)
        self._float = _float_model(converter, self._budget)
        self._use_debug_model()

    def _quantized(self, quantize: Callable[..., T]) -> T:
        """What `quantize` (one of the functions of leadline.jobs.quantize) makes of the float model."""
        if self._request is None:
            raise InvalidArgumentError(
                "No converter found, use this function with the converter option in the constructor."
            )
        asked, options = self._request, self._debug_options
        if self._calibration is None and asked.representative_dataset is not None:
            self._calibration = calibrate(self._reference, asked.representative_dataset, "min_max", budget=self._budget)
        settings = dict(asked.settings) | {"budget": self._budget}
        choice = options._choice()
        settings |= choice
        if options.fully_quantize and has_integers(self._reference, asked.mode, **choice):
            kind = "int16" if asked.mode == "int16x8" else "int8"
            settings |= {"input_type": kind, "output_type": kind}
        elif "input_type" in settings:
            settings |= {"input_type": None, "output_type": None}
        return quantize(self._reference, asked.mode, calibration=self._calibration, **settings)

    def _use_debug_model(self) -> None:
        quantized = self._quantized(quantize_to_model)
        self._use(_leadline.debug_model_of(self._reference, quantized))

    def get_nondebug_quantized_model(self) -> bytes:
        """The quantized model without NumericVerify nodes. Raises ValueError without a converter."""
        return self._quantized(quantize)

    def get_debug_quantized_model(self) -> bytes:
        """The quantized model with NumericVerify nodes. Raises ValueError without a converter."""
        quantized = self._quantized(quantize_to_model)
        return _leadline.make_debug_model(self._reference, quantized)

    @property
    def options(self) -> QuantizationDebugOptions:
        return self._debug_options

    @options.setter
    def options(self, options: QuantizationDebugOptions) -> None:
        self._debug_options = options
        if self._request is not None:
            self._use_debug_model()

    # Running

    def _use(self, model: Model) -> None:
        self._model = model
        self._observer = _leadline.DebugModelObserver(model)
        self._layers = self._observer.layers
        self.layer_statistics = self.model_statistics = None
        self.not_finite = {}
        metrics.TFLiteMetrics().increase_counter_debugger_creation()

    @with_timeout
    def run(
        self,
        *,
        progress: bool | Callable[[int, int | None], object] | None = None,
        timeout: float | None = None,
    ) -> None:
        """Runs the dataset, once, and fills layer_statistics and model_statistics. `progress` and `timeout` as in
        leadline.calibrate."""
        del timeout  # kept by with_timeout
        options = self._debug_options
        model_metrics = options.model_debug_metrics or {}
        if self._data_gen is None:
            raise InvalidArgumentError("debug_dataset is missing")
        self._observer.clear()
        quantized = self._interpreter(self._model)
        self._observer.attach(quantized)
        compared = self._interpreter(self._reference) if model_metrics else None
        layer_values = _CustomMetrics(options, self._model, self._layers)
        self._observer.set_callback(layer_values if layer_values.wanted else None)
        model_values: dict[str, list[float]] = {name: [] for name in model_metrics}
        samples, total = open_dataset(self._data_gen)
        try:
            with progress_of(progress, "Debugging") as report:
                for number, sample in enumerate(samples):
                    inputs = self._sample(number, sample, quantized)
                    _run(quantized, inputs)
                    if compared is not None:
                        _run(compared, inputs)
                        outputs = _outputs(compared), _outputs(quantized)
                        for name, function in model_metrics.items():
                            model_values[name].append(function(*outputs))
                    tell(report, number + 1, total)
        finally:
            self._observer.set_callback(None)
        self._finish(layer_values)
        if model_metrics:
            self.model_statistics = {name: np.mean(values) for name, values in model_values.items()}

    def _interpreter(self, model: Model) -> _leadline.Interpreter:
        return _leadline.Interpreter(model, num_threads=self._threads, budget=self._budget)

    def _sample(self, number: int, sample: Any, interpreter: _leadline.Interpreter) -> list[Array]:
        if isinstance(sample, Mapping):
            names = {interpreter.tensor_info(index).name: index for index in interpreter.inputs}
            for signature in self._model.signatures:
                if signature.subgraph == 0:
                    names |= signature.inputs
            by_index = {names.get(name): value for name, value in sample.items()}
            sample = [by_index[index] for index in interpreter.inputs if index in by_index]
        elif not isinstance(sample, (list, tuple)):
            sample = [sample]
        if len(sample) != len(interpreter.inputs):
            raise InvalidArgumentError(
                f"Number of inputs provided ({len(sample)}) does not match number of inputs to the model "
                f"({len(interpreter.inputs)}) in sample {number}"
            )
        return [to_array(value) for value in sample]

    def _finish(self, custom: _CustomMetrics) -> None:
        self.layer_statistics, self.not_finite = {}, {}
        for index, (layer, numbers) in enumerate(zip(self._layers, self._observer.statistics(), strict=True)):
            if not numbers.samples:
                continue
            row = {name: getattr(numbers, name) for name in _LAYER_METRICS}
            row |= {name: _mean_of_numbers(values) for name, values in custom.values[index].items()}
            self.layer_statistics[layer.output_name] = row
            if numbers.not_finite:
                self.not_finite[layer.output_name] = numbers.not_finite
        if self.not_finite:
            name, count = next(iter(self.not_finite.items()))
            warnings.warn(
                f"{len(self.not_finite)} layers have differences that are NaN or infinite, the first is {name} with "
                f"{count} of them: samples for which a statistic is NaN are not in its mean (see not_finite)",
                RuntimeWarning,
                stacklevel=4,
            )

    def layer_statistics_dump(self, file: IO[str]) -> None:
        """Writes the statistics as CSV, with tf.lite's columns. A tensor with a scale for each channel has them all."""
        options = self._debug_options
        names = list(dict.fromkeys([*_LAYER_METRICS, *(options.layer_debug_metrics or ())]))
        names += list(options.layer_direct_compare_metrics or ())
        writer = csv.DictWriter(file, ["op_name", "tensor_idx", *names, "scale", "zero_point", "tensor_name"])
        writer.writeheader()
        for layer in self._layers:
            if self.layer_statistics is None or layer.output_name not in self.layer_statistics:
                continue
            one = len(layer.scales) == 1
            row: dict[str, Any] = dict(self.layer_statistics[layer.output_name])
            row |= {
                "op_name": _csv_cell(layer.op),
                "tensor_idx": layer.tensor,
                "scale": np.float32(layer.scales[0]) if one else layer.scales,
                "zero_point": layer.zero_points[0] if one else layer.zero_points,
                "tensor_name": _csv_cell(layer.tensor_name),
            }
            writer.writerow(row)


def _mean_of_numbers(values: Sequence[float]) -> Any:
    """The mean without NaN; NaN when there is nothing else, without numpy's warning."""
    found = np.asarray(values, np.float64)
    found = found[~np.isnan(found)]
    return np.mean(found) if found.size else np.float64("nan")


def _csv_cell(name: str) -> str:
    """The name; a leading apostrophe keeps spreadsheets from computing what looks like a formula."""
    return f"'{name}" if name.startswith(("=", "+", "-", "@")) else name


class _CustomMetrics:
    """Calls the user's functions while a layer's values are there."""

    def __init__(self, options: QuantizationDebugOptions, model: Model, layers: list[_leadline.VerifiedLayer]) -> None:
        self._differences = dict(options.layer_debug_metrics or {})
        self._direct = dict(options.layer_direct_compare_metrics or {})
        self._layers = layers
        self._types: list[type[Any] | None] = []
        for layer in layers:
            tensor = model.subgraph(layer.subgraph).tensors[layer.tensor] if self.wanted else None
            self._types.append(None if tensor is None else tensors.numpy_type(tensor.dtype))
        self.values: list[dict[str, list[float]]] = [{} for _ in layers]

    @property
    def wanted(self) -> bool:
        return bool(self._differences or self._direct)

    def __call__(
        self, index: int, shape: tuple[int, ...], difference: bytes, quantized: bytes, reference: bytes
    ) -> None:
        values = self.values[index]
        differences = np.frombuffer(difference, np.float32).reshape(shape)
        for name, of_differences in self._differences.items():
            values.setdefault(name, []).append(of_differences(differences))
        if not self._direct:
            return
        layer = self._layers[index]
        scale: Any = np.array(layer.scales, np.float32)
        zero_point: Any = np.array(layer.zero_points)
        if scale.size == 1:
            scale, zero_point = scale[0], int(zero_point[0])
        levels = np.frombuffer(quantized, self._types[index]).reshape(shape)
        expected = np.frombuffer(reference, np.float32).reshape(shape)
        for name, function in self._direct.items():
            values.setdefault(name, []).append(function(expected, levels, scale, zero_point))


def _float_model(converter: Any, budget: Budget | None) -> Model:
    """The converter's float model; the converter is only read."""
    native = getattr(converter, "_converter", None)
    if isinstance(native, _leadline.Converter):
        ready: _leadline.Converter = converter._ready()
        return ready.convert_to_model(budget=budget)
    plain = copy.copy(converter)
    plain.optimizations, plain.representative_dataset = [], None
    plain.target_spec = copy.copy(converter.target_spec)
    plain.target_spec.supported_types = []
    plain.inference_input_type = plain.inference_output_type = np.float32
    return as_model(plain.convert(), budget)


def _run(interpreter: _leadline.Interpreter, inputs: Sequence[Array]) -> None:
    arrays = [
        _as_input(interpreter.tensor_info(index), array)
        for index, array in zip(interpreter.inputs, inputs, strict=True)
    ]
    tensors.set_inputs(interpreter, arrays)
    interpreter.invoke()


def _as_input(info: _leadline.TensorInfo, array: Array) -> Array:
    """Real numbers for an input of integers are rounded and clipped, as QUANTIZE does it."""
    numpy_type = tensors.numpy_type(info.dtype)
    dtype = np.dtype(numpy_type)
    if array.dtype.kind != "f" or dtype.kind not in "iu" or not info.scales:
        return array
    limits = np.iinfo(numpy_type)
    levels = np.rint(np.asarray(array, np.float64) / info.scales[0]) + info.zero_points[0]
    clipped: Array = np.clip(np.nan_to_num(levels), limits.min, limits.max).astype(dtype)
    return clipped


def _outputs(interpreter: _leadline.Interpreter) -> list[Array]:
    """Outputs as real numbers."""
    result = []
    for index in interpreter.outputs:
        info = interpreter.tensor_info(index)
        array = np.array(tensors.to_numpy(interpreter.tensor(index), tensors.TensorSpec.of(info)))
        if info.scales and array.dtype.kind in "iu":
            array = ((array.astype(np.float64) - info.zero_points[0]) * info.scales[0]).astype(np.float32)
        result.append(array)
    return result
