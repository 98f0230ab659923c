# SPDX-License-Identifier: Apache-2.0
"""Data sets of Python as samples of the engine, which checks them (leadline/sample_reader.h).

A data set is a path, a callable that yields samples, an object with one (`RepresentativeDataset`), a DataLoader, or the
samples themselves: a list, a generator, a tf.data.Dataset, an array whose first dimension counts samples. A sample is a
list of arrays in the order of the model's inputs, a dict by input name, a pair of signature key and dict, or one array;
a tuple may have a label after them. What offers itself to numpy.asarray is an array. Samples are taken one by one, and
none is kept.
"""

from __future__ import annotations

import itertools
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leadline import _leadline
from leadline._leadline import Budget, DType, Error, InvalidArgumentError, Model, SampleReader, SampleSource
from leadline._native import tensors
from leadline._native.arguments import as_model

_TYPES = {dtype.name.lower(): dtype for dtype in DType}
_MOST_SIZES = 10_000  # of a list's samples, whose sizes are looked at before
_Tensor = tuple[str, DType, tuple[int, ...], Any, str]
# How pictures become values; arguments of every job that takes samples.
PICTURE_ARGUMENTS = ("image_size", "mean", "scale", "colors", "resize", "classes")


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


def warn_of(findings: list[tuple], stacklevel: int) -> None:
    """Passes the findings that are warnings to Python's warnings. The level is that of the caller."""
    for severity, message, _, _ in findings:
        if severity == "warning":
            warnings.warn(message, DatasetWarning, stacklevel=stacklevel + 1)


def lint_dataset(
    model: Model | bytes | str | os.PathLike, dataset: Any, limit: int | None = None, **pictures: Any
) -> list[Finding]:
    """Checks a representative dataset without running the model: shapes, types, NaN, constant inputs, values far
    outside of what is usual. Reads all samples, or the first `limit`; an error ends the reading and comes last. Takes
    the same data sets and arguments for pictures as leadline.calibrate."""
    loaded = as_model(model, None)
    reader: SampleReader | None = None
    failed = []
    try:
        reader = SampleReader(loaded, sample_source(dataset, None, loaded, **pictures), limit or 0)
        reader.read_all()
    except (InvalidArgumentError, _leadline.IoError) as error:
        failed = [Finding("error", str(error))]
    return [*(Finding(*finding) for finding in (reader.findings if reader else ())), *failed]


def check_picture_arguments(pictures: dict[str, Any]) -> None:
    """Whatever a job does not know itself arrives here: a misspelled argument too."""
    if unknown := [name for name in pictures if name not in PICTURE_ARGUMENTS]:
        raise TypeError(f"unexpected keyword argument {unknown[0]!r}")


def sample_source(
    dataset: Any, labels: Any, model: Model, *, budget: Budget | None = None, **pictures: Any
) -> SampleSource:
    """The samples of `dataset`, each with what `labels` has for it. Nothing but headers of files is read yet."""
    check_picture_arguments(pictures)
    if isinstance(dataset, (str, os.PathLike)):
        return _open_files(os.fspath(dataset), labels, model, budget, **pictures)
    if any(name not in ("colors", "resize") and value is not None for name, value in pictures.items()):
        raise InvalidArgumentError("image_size, mean, scale and classes are for folders of pictures: give a path")
    return _leadline.python_samples(_Reader(dataset, labels, model))


def _open_files(
    path: str | bytes,
    labels: Any,
    model: Model,
    budget: Budget | None,
    *,
    image_size: int | Sequence[int] | None = None,
    mean: float | Sequence[float] | None = None,
    scale: float | Sequence[float] | None = None,
    colors: str = "auto",
    resize: str = "bilinear",
    classes: str | os.PathLike | None = None,
) -> SampleSource:
    if labels is not None and not isinstance(labels, (str, os.PathLike)):
        raise InvalidArgumentError(
            f"labels of the files in {os.fsdecode(path)!r} should be a path or the name of an array there; got "
            f"{type(labels).__name__}"
        )
    return _leadline.open_samples(
        os.fsdecode(path),
        model,
        budget,
        _size(image_size),
        _numbers(mean),
        _numbers(scale),
        colors,
        resize,
        "" if labels is None else os.fspath(labels),
        "" if classes is None else os.fspath(classes),
    )


def _size(image_size: int | Sequence[int] | None) -> tuple[int, int]:
    if image_size is None:
        return (0, 0)
    if isinstance(image_size, Sequence):
        height, width = image_size
        return (int(height), int(width))
    return (int(image_size), int(image_size))


def _numbers(values: float | Sequence[float] | None) -> list[float]:
    if values is None:
        return []
    return [float(value) for value in np.atleast_1d(values)]


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
            "the representative dataset should be a function that yields samples, a path, or something to iterate "
            f"over; got {type(source).__name__}"
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
        raise InvalidArgumentError("it has rows of different lengths, or is not an array")
    return array


class _Reader:
    """Takes the samples of a data set apart, one at a time; the engine calls it."""

    def __init__(self, dataset: Any, labels: Any, model: Model) -> None:
        self._dataset = dataset
        self._labels = labels
        self._model = model
        graph = model.subgraph(0)
        self._inputs = [graph.tensors[index] for index in graph.inputs]
        self._samples: Iterator[tuple[Any, Any]] | None = None
        self._size: int | None = None
        self._number = -1

    def rewind(self) -> bool:
        source = getattr(self._dataset, "input_gen", self._dataset)
        # What can be asked for its items again; a generator or an iterator is read once.
        if hasattr(source, "__next__") or hasattr(self._labels, "__next__"):
            return False
        self._samples = None
        return True

    def size(self) -> int | None:
        self._open()
        return self._size

    def sizes(self) -> tuple[str, list[tuple[str, tuple[int, ...]]]] | None:
        """The largest sizes of the inputs, for models that leave sizes open: of all samples of a list, else of the
        first one, which is not lost."""
        if self._dataset is None or self._number >= 0:
            return None
        try:
            if isinstance(self._dataset, (list, tuple)):
                pairs: Iterator[tuple[Any, Any]] = itertools.islice(
                    _Reader(self._dataset, None, self._model)._open(), _MOST_SIZES
                )
            else:
                samples = self._open()
                first = list(itertools.islice(samples, 1))
                self._samples = itertools.chain(first, samples)
                pairs = iter(first)
            signature, shapes, named = "", dict[str, tuple[int, ...]](), False
            for pair in pairs:
                signature, inputs, _ = self._taken(pair[0], None)
                for position, (name, _, shape, _, _) in enumerate(inputs):
                    key, named = name or str(position), bool(name)
                    known = shapes.get(key, shape)
                    largest = tuple(max(sizes) for sizes in zip(known, shape, strict=False))
                    shapes[key] = largest if len(known) == len(shape) else shape
        except Error:  # what is wrong with a sample is said when it is read
            return None
        return (signature, [(key if named else "", shape) for key, shape in shapes.items()]) if shapes else None

    def next(self) -> tuple[str, list[_Tensor], list[_Tensor]] | None:
        pair = next(self._open(), None)
        if pair is None:
            return None
        self._number += 1
        return self._taken(*pair)

    def _taken(self, raw: Any, target: Any) -> tuple[str, list[_Tensor], list[_Tensor]]:
        signature = ""
        if _has_key(raw):
            signature, raw = raw[0] or "", raw[1]
        if isinstance(raw, Mapping):
            inputs = [self._tensor(str(name), value) for name, value in raw.items()]
        elif isinstance(raw, (list, tuple)):
            inputs = [self._tensor("", value, position) for position, value in enumerate(raw)]
        else:
            inputs = [self._tensor("", raw, 0)]
        return signature, inputs, [] if target is None else [self._tensor("", target)]

    def _open(self) -> Iterator[tuple[Any, Any]]:
        if self._samples is None:
            samples, self._size = open_dataset(self._dataset)
            self._number = -1
            if self._labels is not None:
                self._samples = self._with_labels(samples)
            elif _is_loader(self._dataset):
                self._size = None
                self._samples = (row for batch in samples for row in _rows(*self._split(batch)))
            elif hasattr(self._dataset, "element_spec"):  # a tf.data.Dataset
                self._size = None if self._batch() == 1 else self._size
                self._samples = (row for element in samples for row in self._fitted(*self._split(element)))
            else:
                self._samples = (self._split(raw) if isinstance(raw, tuple) else (raw, None) for raw in samples)
        return self._samples

    def _with_labels(self, samples: Iterator[Any]) -> Iterator[tuple[Any, Any]]:
        labels = iter(self._labels)
        for number, raw in enumerate(samples):
            try:
                yield raw, next(labels)
            except StopIteration:
                raise InvalidArgumentError(f"there are {number} labels, and more samples than that") from None

    def _split(self, raw: Any) -> tuple[Any, Any]:
        """Inputs and label of (x, y), ((a, b), y) or (a, b, y)."""
        if not isinstance(raw, (list, tuple)) or _has_key(raw):
            return raw, None
        texts = any(tensor.dtype is DType.STRING for tensor in self._inputs)
        if len(raw) == 2 and (raw[0] is None or isinstance(raw[0], str)) and not texts:
            raise InvalidArgumentError(
                f"sample {self._number + 1}: after the signature key {raw[0]!r} a dict of inputs by name is expected, "
                f"got {type(raw[1]).__name__}"
            )
        if len(raw) == 2 and (len(self._inputs) == 1 or _holds_arrays(raw[0])):
            return raw[0], raw[1]
        if len(raw) == len(self._inputs) + 1:
            return raw[:-1], raw[-1]
        return raw, None

    def _fitted(self, inputs: Any, target: Any) -> Iterator[tuple[Any, Any]]:
        """An element of a tf.data.Dataset as it is; with a batch dimension where it has none; or row by row, where it
        is a batch and the model takes one row at a time."""
        first = next(iter(inputs.values())) if isinstance(inputs, Mapping) else inputs
        rank = np.ndim(first[0] if isinstance(first, (list, tuple)) else first)
        wanted = len(self._inputs[0].shape) if self._inputs else 0
        if rank + 1 == wanted:
            yield _each(inputs, lambda value: to_array(value)[None]), target
        elif rank == wanted and self._batch() == 1:
            yield from _rows(inputs, target)
        else:
            yield inputs, target

    def _batch(self) -> int:
        """The first dimension of the first input; -1: any size."""
        for tensor in self._inputs[:1]:
            return (tuple(tensor.shape_signature) or tuple(tensor.shape) or (-1,))[0]
        return -1

    def _tensor(self, name: str, value: Any, position: int | None = None) -> _Tensor:
        try:
            array = to_array(value)
        except (ValueError, TypeError, Error) as error:
            raise InvalidArgumentError(f"{self._where(name, position)}: cannot be made an array: {error}") from error
        shape, kind = array.shape, array.dtype.kind
        if kind in "OSUT":
            return name, DType.STRING, shape, tensors.string_buffer(array, "a sample"), str(array.dtype)
        if kind == "f" and array.dtype.itemsize > 8:
            array = array.astype(np.float64)
        dtype = _TYPES.get(array.dtype.newbyteorder("=").name)
        if dtype is None:
            raise InvalidArgumentError(
                f"{self._where(name, position)}: the type is {array.dtype}, expected numbers or strings"
            )
        array = np.ascontiguousarray(array, array.dtype.newbyteorder("="))
        # Types that numpy does not know itself have no buffer.
        return name, dtype, shape, array if array.dtype.isbuiltin == 1 else array.reshape(-1).view(np.uint8), ""

    def _where(self, name: str, position: int | None) -> str:
        if not name and position is not None and position < len(self._inputs):
            tensor = self._inputs[position]
            name = tensor.name
            signatures = self._model.signatures
            if len(signatures) == 1:
                name = next((key for key, index in signatures[0].inputs.items() if index == tensor.index), name)
        return f"sample {self._number}" + (f", input {name!r}" if name else "")


def _has_key(raw: Any) -> bool:
    """Whether it is a signature's key with a dict."""
    return (
        isinstance(raw, tuple)
        and len(raw) == 2
        and (raw[0] is None or isinstance(raw[0], str))
        and isinstance(raw[1], Mapping)
    )


def _holds_arrays(value: Any) -> bool:
    """Whether it is all inputs of a sample: a dict, or a list of arrays rather than of numbers."""
    return isinstance(value, Mapping) or (isinstance(value, (list, tuple)) and any(hasattr(v, "shape") for v in value))


def _is_loader(dataset: Any) -> bool:
    """Whether it yields batches, as PyTorch's DataLoader does."""
    return hasattr(dataset, "batch_size") and hasattr(dataset, "dataset") and isinstance(dataset, Iterable)


def _each(inputs: Any, change: Any) -> Any:
    """The inputs of a sample, each changed."""
    if isinstance(inputs, Mapping):
        return {name: change(value) for name, value in inputs.items()}
    return [change(value) for value in (inputs if isinstance(inputs, (list, tuple)) else [inputs])]


def _rows(inputs: Any, target: Any) -> Iterator[tuple[Any, Any]]:
    """The samples of a batch, each with a batch dimension of 1."""
    arrays = _each(inputs, to_array)
    targets = None if target is None else to_array(target)
    for i in range(len(next(iter(arrays.values() if isinstance(arrays, dict) else arrays)))):
        # A label without dimensions is that of the whole batch.
        label = targets if targets is None or targets.ndim == 0 else targets[i]
        yield _each(arrays, lambda array, i=i: array[i : i + 1]), label


def to_numpy(dtype: DType, shape: tuple[int, ...], data: bytes) -> np.ndarray:
    """The array of a tensor that the engine gave."""
    if dtype is DType.STRING:
        return tensors.read_strings(np.frombuffer(data, np.uint8), shape)
    return np.frombuffer(data, tensors.numpy_type(dtype)).reshape(shape)
