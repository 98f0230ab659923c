# SPDX-License-Identifier: Apache-2.0
"""Representative datasets in every form that TensorFlow takes, brought to one form and checked on the way.

A dataset is a callable that gives samples, an object with one (`RepresentativeDataset`), or the samples themselves: a
list, a generator, a tf.data.Dataset, an array whose first dimension counts samples. A sample is a list of arrays in the
order of the model's inputs, a dict by input name, a pair of signature key and dict, or one array. What offers itself to
numpy.asarray is an array. Samples are taken one by one, and none is kept.
"""

from __future__ import annotations

import statistics
import warnings
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from leadline._leadline import Calibration, DType, InvalidArgumentError, Model
from leadline._native import tensors

FEW_SAMPLES = 32
_FLOATS = (DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16, DType.FLOAT64)


class DatasetWarning(UserWarning):
    """A representative dataset that will do, but may not be what was meant."""

    __module__ = "leadline"  # where users find it


@dataclass(frozen=True)
class Finding:
    """Something about a dataset that its owner should know."""

    severity: str  # "error", "warning" or "note"
    message: str
    sample: int | None = None  # number of the sample, from 0
    input: str | None = None  # name of the input

    def __str__(self) -> str:
        return self.message


@dataclass
class Sample:
    """Arrays for all inputs of a subgraph, in their order, as the interpreter takes them."""

    subgraph: int
    arrays: list[np.ndarray]

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays)


@dataclass
class _Input:
    """An input of a signature, and what was seen of it."""

    name: str
    tensor_name: str
    type: DType
    dtype: np.dtype
    shape: tuple[int, ...]  # -1 where any size will do
    first_op: str = ""
    first_output: int | None = None
    min: float = float("inf")
    max: float = float("-inf")
    whole: bool = True  # all values are whole numbers
    values: int = 0
    magnitudes: list[float] = field(default_factory=list)

    def shape_text(self) -> str:
        return "[" + ", ".join("any" if size < 0 else str(size) for size in self.shape) + "]"


@dataclass
class _Signature:
    key: str | None
    subgraph: int
    inputs: list[_Input]
    by_name: dict[str, int]  # names a dict may use: of the signature, of tensors


def open_dataset(dataset: Any) -> tuple[Iterator, int | None]:
    """The samples, and how many there are if that is known."""
    source = getattr(dataset, "input_gen", dataset)
    if isinstance(source, Mapping):
        raise InvalidArgumentError(
            "the representative dataset is a dict, which is one sample; give a list of samples, or a function that "
            "yields them"
        )
    if callable(source) and not isinstance(source, (list, tuple)) and not _is_iterable(source):
        source = source()
    if isinstance(source, np.ndarray):
        if source.ndim == 0:
            raise InvalidArgumentError("the representative dataset is an array without dimensions, expected samples")
        return (source[i : i + 1] for i in range(len(source))), len(source)
    if not _is_iterable(source):
        raise InvalidArgumentError(
            "the representative dataset should be a function that yields samples, or something to iterate over; got "
            f"{type(source).__name__}"
        )
    try:
        total = len(source)
    except TypeError:  # a generator, or a tf.data.Dataset of unknown size
        total = None
    return iter(source), total


def _is_iterable(value: Any) -> bool:
    return isinstance(value, Iterable) or hasattr(value, "__getitem__")


def to_array(value: Any) -> np.ndarray:
    """A numpy array of what TensorFlow, PyTorch, JAX or Python give."""
    if hasattr(value, "detach"):  # a torch tensor that records gradients does not become an array by itself
        value = value.detach().cpu()
    array = np.asarray(value)
    if array.dtype.hasobject and array.size and not isinstance(array.reshape(-1)[0], (str, bytes)):
        raise InvalidArgumentError("it has rows of different lengths, or is no array")
    return array


class DatasetReader:
    """Brings samples of a model to one form and checks them. Raises InvalidArgumentError for a sample that cannot
    serve, naming its number and the input."""

    def __init__(self, model: Model):
        self.findings: list[Finding] = []
        self.count = 0
        self._model = model
        self._signatures = _signatures_of(model)
        self._known: set[tuple] = set()  # findings made once per input
        self._checksums: set[int] = set()

    def samples(self, dataset: Iterable) -> Iterator[Sample]:
        """Each sample, checked; at the end what can be said of all of them."""
        for number, raw in enumerate(dataset):
            yield self._sample(number, raw)
            self.count += 1
        self._finish()

    def warn(self) -> None:
        """Gives the findings that are warnings to Python's warnings."""
        for finding in self.findings:
            if finding.severity == "warning":
                warnings.warn(finding.message, DatasetWarning, stacklevel=4)

    def look_at(self, calibration: Calibration) -> None:
        """What shows when the samples have been run: inputs that the model scales and that were scaled before."""
        seen: dict[tuple[int, int | None], Any] = {
            (tensor.subgraph, tensor.tensor): tensor for tensor in calibration.tensors()
        }
        for signature in self._signatures.values():
            for spec in signature.inputs:
                first = seen.get((signature.subgraph, spec.first_output))
                if spec.first_op != "MUL" or first is None or not spec.values or not -1 <= spec.min <= spec.max <= 1:
                    continue
                given, left = max(-spec.min, spec.max), max(-first.min, first.max)
                if 0 < left <= given / 64:
                    message = (
                        f"input {spec.name!r}: values from {spec.min:g} to {spec.max:g}, but the model begins with a "
                        f"multiplication by about {left / given:.3g}, as if it took pixels from 0 to 255"
                    )
                    self._once(Finding("warning", message, None, spec.name), "scaled twice")

    def note_not_finite(self, sample: int, subgraph: int, tensor: int) -> None:
        """What a run showed: the first sample that made the model compute NaN or infinity, and where."""
        graph = self._model.subgraph(subgraph)
        name = graph.tensors[tensor].name
        writer = next((node for node in graph.nodes if tensor in node.outputs), None)
        source = f", the result of {writer.op} #{writer.index}," if writer else ""
        message = (
            f"sample {sample}: {name!r}{source} holds values that are NaN or infinite; they are left out of its range"
        )
        self.findings.append(Finding("warning", message, sample))

    def _sample(self, number: int, raw: Any) -> Sample:
        signature, values = self._assign(number, raw)
        arrays = [self._array(number, spec, value) for spec, value in zip(signature.inputs, values, strict=True)]
        if len(self._checksums) < 2:
            sum_ = 0
            for array in arrays:
                if not array.dtype.hasobject:
                    sum_ = zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data, sum_)
            self._checksums.add(sum_)
        return Sample(signature.subgraph, arrays)

    def _assign(self, number: int, raw: Any) -> tuple[_Signature, list[Any]]:
        """The signature a sample is for, and its values in the order of inputs."""
        key, explicit = None, False
        if isinstance(raw, tuple) and len(raw) == 2 and (raw[0] is None or isinstance(raw[0], str)):
            key, raw = raw
            explicit = key is not None
            if not isinstance(raw, Mapping):
                raise InvalidArgumentError(
                    f"sample {number}: after the signature key {key!r} a dict of inputs by name is expected, got "
                    f"{type(raw).__name__}"
                )
        if explicit:
            if key not in self._signatures:
                known = ", ".join(repr(k) for k in self._signatures if k is not None)
                raise InvalidArgumentError(
                    f"sample {number}: the model has no signature {key!r}; it has {known or 'none'}"
                )
            signature = self._signatures[key]
        else:
            signature = self._signatures[None]
        if isinstance(raw, Mapping):
            if not explicit and sum(key is not None for key in self._signatures) > 1:
                known = ", ".join(repr(k) for k in self._signatures if k is not None)
                raise InvalidArgumentError(
                    f"sample {number}: the model has several signatures ({known}): give pairs of signature key and dict"
                )
            return signature, self._by_name(number, signature, raw)
        if isinstance(raw, (list, tuple)):
            return signature, self._by_order(number, signature, raw)
        return signature, self._by_order(number, signature, [raw])

    def _by_name(self, number: int, signature: _Signature, raw: Mapping) -> list[Any]:
        values: dict[int, Any] = {}
        expected = "the inputs are " + ", ".join(repr(spec.name) for spec in signature.inputs)
        for name, value in raw.items():
            index = signature.by_name.get(name)
            if index is None:
                raise InvalidArgumentError(f"sample {number}: the model has no input {name!r}; {expected}")
            values[index] = value
        for index, spec in enumerate(signature.inputs):
            if index not in values:
                raise InvalidArgumentError(f"sample {number}: input {spec.name!r} is missing; {expected}")
        return [values[index] for index in range(len(signature.inputs))]

    def _by_order(self, number: int, signature: _Signature, raw: list | tuple) -> list[Any]:
        inputs = signature.inputs
        if len(raw) != len(inputs):
            hint = ""
            if len(raw) == len(inputs) + 1:
                hint = "; leave out the labels if it has any"
            elif len(inputs) == 1 and len(raw) and np.ndim(raw[0]) < len(inputs[0].shape):
                hint = "; a sample is a list of arrays, one for each input"
            raise InvalidArgumentError(
                f"sample {number}: {len(raw)} arrays for {len(inputs)} inputs "
                f"({', '.join(repr(spec.name) for spec in inputs)}){hint}"
            )
        return list(raw)

    def _array(self, number: int, spec: _Input, value: Any) -> np.ndarray:
        where = f"sample {number}, input {spec.name!r}"
        try:
            array = to_array(value)
        except (ValueError, TypeError, InvalidArgumentError) as error:
            raise InvalidArgumentError(f"{where}: cannot be made an array: {error}") from error
        self._check_shape(where, spec, array)
        array = self._convert(where, number, spec, array)
        if spec.type in _FLOATS and array.size:
            self._look_at_values(where, number, spec, array)
        return array

    def _check_shape(self, where: str, spec: _Input, array: np.ndarray) -> None:
        shape = array.shape
        fits = len(shape) == len(spec.shape) and all(
            want in (-1, got) for got, want in zip(shape, spec.shape, strict=True)
        )
        if fits:
            return
        hint = ""
        if len(shape) + 1 == len(spec.shape):
            hint = "; add the batch dimension with array[None]"
        elif len(shape) == len(spec.shape) and shape[1:] == spec.shape[1:]:
            hint = "; the model's batch size is fixed: give samples one by one"
        raise InvalidArgumentError(f"{where}: the shape is {list(shape)}, the model takes {spec.shape_text()}{hint}")

    def _convert(self, where: str, number: int, spec: _Input, array: np.ndarray) -> np.ndarray:
        """The array in the input's type, where that loses nothing but precision."""
        if spec.type is DType.STRING:
            if array.dtype.kind not in "OSUT":
                raise InvalidArgumentError(f"{where}: the type is {array.dtype}, the model takes strings")
            return array
        if array.dtype == spec.dtype:
            return np.asarray(array, order="C")
        if spec.type in _FLOATS:
            if array.dtype.kind in "iu":
                self._once(
                    Finding(
                        "warning",
                        f"{where}: {array.dtype} values are converted to {spec.dtype}; scale them as in training, "
                        "unless the model does it itself",
                        number,
                        spec.name,
                    ),
                    "integers",
                )
            elif array.dtype.kind != "f" and array.dtype.name != "bfloat16":
                raise InvalidArgumentError(f"{where}: the type is {array.dtype}, the model takes {spec.dtype}")
            with np.errstate(over="ignore"):  # what becomes infinite is refused below
                return np.asarray(array, spec.dtype, order="C")
        if array.dtype.kind not in "iu" or spec.dtype.kind not in "iu":
            raise InvalidArgumentError(f"{where}: the type is {array.dtype}, the model takes {spec.dtype}")
        limits = np.iinfo(spec.dtype)
        if array.size and (array.min() < limits.min or array.max() > limits.max):
            raise InvalidArgumentError(
                f"{where}: the type is {array.dtype}, and its values do not fit the {spec.dtype} that the model takes"
            )
        return np.asarray(array, spec.dtype, order="C")

    def _look_at_values(self, where: str, number: int, spec: _Input, array: np.ndarray) -> None:
        low, high = float(array.min()), float(array.max())
        if not np.isfinite(low) or not np.isfinite(high):
            wide = array.astype(np.float32)
            count, first = int(np.count_nonzero(~np.isfinite(wide))), np.argwhere(~np.isfinite(wide))[0]
            raise InvalidArgumentError(
                f"{where}: {count} of {array.size} values are NaN or infinite, the first at {first.tolist()}"
            )
        magnitude = max(-low, high)
        if len(spec.magnitudes) >= 3:
            typical = statistics.median(spec.magnitudes)
            if typical > 0 and magnitude > 1000 * typical:
                message = f"{where}: values up to {magnitude:g}, where samples before it reached {typical:g}"
                self._once(Finding("warning", message, number, spec.name), "outlier")
        if len(spec.magnitudes) < 256:
            spec.magnitudes.append(magnitude)
        spec.min, spec.max = min(spec.min, low), max(spec.max, high)
        spec.values += array.size
        if spec.whole and _is_image(spec):
            spec.whole = bool(np.array_equal(array, np.rint(array)))

    def _once(self, finding: Finding, kind: str) -> None:
        if (kind, finding.input) not in self._known:
            self._known.add((kind, finding.input))
            self.findings.append(finding)

    def _finish(self) -> None:
        """What only the whole dataset tells."""
        if self.count == 0:
            raise InvalidArgumentError("the representative dataset is empty: it gave no sample")
        for signature in self._signatures.values():
            for spec in signature.inputs:
                self._judge(spec)
        if self.count > 1 and len(self._checksums) == 1:
            self.findings.append(Finding("warning", f"all {self.count} samples of the dataset are the same"))
        if self.count < FEW_SAMPLES:
            message = f"only {self.count} samples: ranges from a few hundred are more reliable"
            self.findings.append(Finding("note", message))

    def _judge(self, spec: _Input) -> None:
        if spec.values > 1 and spec.min == spec.max:
            message = f"input {spec.name!r}: every value of every sample is {spec.min:g}"
            self._once(Finding("warning", message, None, spec.name), "constant")
        elif (
            _is_image(spec) and spec.values and spec.whole and spec.min >= 0 and 16 < spec.max <= 255
            and not _scales(spec.first_op)
        ):  # fmt: skip
            message = (
                f"input {spec.name!r}: whole numbers from {spec.min:g} to {spec.max:g}, as of raw pixels, but the "
                f"model begins with {spec.first_op or 'no op'}, which does not scale them; scale them as in training"
            )
            self._once(Finding("warning", message, None, spec.name), "pixels")


def _is_image(spec: _Input) -> bool:
    return len(spec.shape) == 4 and spec.shape[3] in (1, 3, 4)


def _scales(op: str) -> bool:
    return op in ("MUL", "DIV", "SUB", "ADD", "CAST", "QUANTIZE")


def _signatures_of(model: Model) -> dict[str | None, _Signature]:
    """By key; None: what samples without a key are for."""
    result: dict[str | None, _Signature] = {}
    for signature in model.signatures:
        names = {index: name for name, index in signature.inputs.items()}
        result[signature.key] = _signature(model, signature.key, signature.subgraph, names)
    main = next((s for s in result.values() if s.subgraph == 0), None)
    result[None] = main if main and len(result) == 1 else _signature(model, None, 0, {})
    return result


def _signature(model: Model, key: str | None, subgraph: int, names: dict[int, str]) -> _Signature:
    info = model.subgraph(subgraph)
    inputs: list[_Input] = []
    by_name: dict[str, int] = {}
    for position, index in enumerate(info.inputs):
        tensor = info.tensors[index]
        name = names.get(index, tensor.name)
        signature = tuple(tensor.shape_signature) or tuple(tensor.shape)
        spec = _Input(name, tensor.name, tensor.dtype, np.dtype(tensors.numpy_type(tensor.dtype)), signature)
        _look_ahead(info, index, spec)
        inputs.append(spec)
        by_name.setdefault(tensor.name, position)
        by_name.setdefault(tensor.name.split(":")[0], position)
        by_name.setdefault(tensor.name.split(":")[0].removeprefix(f"{key}_"), position)
    by_name.update({spec.name: position for position, spec in enumerate(inputs)})
    return _Signature(key, subgraph, inputs, by_name)


def _look_ahead(info: Any, index: int, spec: _Input) -> None:
    """What the model does with an input first."""
    node = next((node for node in info.nodes if index in node.inputs), None)
    if node is not None:
        spec.first_op = node.op
        spec.first_output = node.outputs[0] if node.outputs else None


def lint_dataset(model: Model, dataset: Any, limit: int | None = None) -> list[Finding]:
    """Checks a representative dataset without running the model. All samples are read, or the first `limit`; an error
    ends the reading and is the last finding."""
    reader = DatasetReader(model)
    try:
        samples, _ = open_dataset(dataset)
        for number, _ in enumerate(reader.samples(samples)):
            if limit is not None and number + 1 >= limit:
                reader._finish()
                break
    except InvalidArgumentError as error:
        reader.findings.append(Finding("error", str(error)))
    return reader.findings
