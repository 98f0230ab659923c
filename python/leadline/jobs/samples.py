# SPDX-License-Identifier: Apache-2.0
"""Data sets of Python as samples of the engine: arrays, iterables, DataLoaders, files and folders, and their labels."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from leadline import _leadline
from leadline._leadline import Budget, DType, InvalidArgumentError, Model, SampleSource
from leadline._native import tensors
from leadline.jobs.dataset import open_dataset, to_array

_TYPES = {dtype.name.lower(): dtype for dtype in DType}
_Tensor = tuple[str, DType, tuple[int, ...], Any, str]


def sample_source(
    dataset: Any,
    labels: Any,
    model: Model,
    *,
    budget: Budget | None = None,
    image_size: int | Sequence[int] | None = None,
    mean: float | Sequence[float] | None = None,
    scale: float | Sequence[float] | None = None,
    colors: str = "auto",
    resize: str = "bilinear",
    classes: str | os.PathLike | None = None,
) -> SampleSource:
    """The samples of `dataset`, each with what `labels` has for it."""
    if isinstance(dataset, (str, os.PathLike)):
        if labels is not None and not isinstance(labels, (str, os.PathLike)):
            raise InvalidArgumentError(
                f"labels of the files in {os.fsdecode(dataset)!r} should be a path or the name of an array there; got "
                f"{type(labels).__name__}"
            )
        return _leadline.open_samples(
            os.fspath(dataset),
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
    if image_size is not None or mean is not None or scale is not None or classes is not None:
        raise InvalidArgumentError("image_size, mean, scale and classes are for folders of pictures: give a path")
    reader = _Reader(dataset, labels, len(model.subgraph(0).inputs))
    return _leadline.callback_samples(reader.next, reader.rewind if reader.rewinds else None, reader.size)


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


class _Reader:
    """Takes the samples of a data set apart, one at a time."""

    def __init__(self, dataset: Any, labels: Any, inputs: int) -> None:
        self._dataset = dataset
        self._labels = labels
        self._one_input = inputs == 1
        source = getattr(dataset, "input_gen", dataset)
        # What can be asked for its items again; a generator, an iterator or a function's is read once.
        self.rewinds = not hasattr(source, "__next__") and not hasattr(labels, "__next__")
        self.size: int | None = None
        self._samples: Iterator[tuple[Any, Any]] = iter(())
        self.rewind()

    def rewind(self) -> None:
        samples, self.size = open_dataset(self._dataset)
        if _is_loader(self._dataset):
            self.size = None
            self._samples = _unbatched(samples)
        elif self._labels is not None:
            self._samples = self._with_labels(samples)
        else:
            self._samples = (self._split(raw) for raw in samples)

    def _with_labels(self, samples: Iterator[Any]) -> Iterator[tuple[Any, Any]]:
        labels = iter(self._labels)
        for number, raw in enumerate(samples):
            try:
                yield raw, next(labels)
            except StopIteration:
                raise InvalidArgumentError(f"there are {number} labels, and more samples than that") from None

    def _split(self, raw: Any) -> tuple[Any, Any]:
        """A pair of inputs and target, where it is one."""
        if not isinstance(raw, tuple) or len(raw) != 2 or _is_keyed(raw):
            return raw, None
        return raw if self._one_input or isinstance(raw[0], (list, tuple, Mapping)) else (raw, None)

    def next(self) -> tuple[str, list[_Tensor], list[_Tensor]] | None:
        pair = next(self._samples, None)
        if pair is None:
            return None
        raw, target = pair
        signature = ""
        if _is_keyed(raw):
            signature, raw = raw[0] or "", raw[1]
        if isinstance(raw, Mapping):
            inputs = [_tensor(str(name), value) for name, value in raw.items()]
        elif isinstance(raw, (list, tuple)):
            inputs = [_tensor("", value) for value in raw]
        else:
            inputs = [_tensor("", raw)]
        targets = [] if target is None else [_tensor("", target)]
        return signature, inputs, targets


def _is_keyed(raw: Any) -> bool:
    """Whether it is a signature's key with a dict."""
    return (
        isinstance(raw, tuple)
        and len(raw) == 2
        and (raw[0] is None or isinstance(raw[0], str))
        and isinstance(raw[1], Mapping)
    )


def _is_loader(dataset: Any) -> bool:
    """Whether it gives batches, as PyTorch's DataLoader does."""
    return hasattr(dataset, "batch_size") and hasattr(dataset, "dataset") and isinstance(dataset, Iterable)


def _unbatched(batches: Iterator[Any]) -> Iterator[tuple[Any, Any]]:
    for batch in batches:
        pair = isinstance(batch, (list, tuple)) and len(batch) == 2 and not _is_keyed(batch)
        inputs, target = batch if pair else (batch, None)
        arrays = (
            {name: to_array(value) for name, value in inputs.items()}
            if isinstance(inputs, Mapping)
            else [to_array(value) for value in (inputs if isinstance(inputs, (list, tuple)) else [inputs])]
        )
        count = len(next(iter(arrays.values() if isinstance(arrays, dict) else arrays)))
        targets = None if target is None else to_array(target)
        for i in range(count):
            yield _row(arrays, i), None if targets is None else targets[i]


def _row(arrays: dict[str, np.ndarray] | list[np.ndarray], i: int) -> Any:
    if isinstance(arrays, dict):
        return {name: array[i : i + 1] for name, array in arrays.items()}
    return [array[i : i + 1] for array in arrays]


def _tensor(name: str, value: Any) -> _Tensor:
    try:
        array = to_array(value)
    except (ValueError, TypeError) as error:
        raise InvalidArgumentError(f"cannot be made an array: {error}") from error
    shape, kind = array.shape, array.dtype.kind
    if kind in "OSUT":
        return name, DType.STRING, shape, tensors.string_buffer(array, "a sample"), str(array.dtype)
    if kind == "f" and array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    dtype = _TYPES.get(array.dtype.newbyteorder("=").name)
    if dtype is None:
        raise InvalidArgumentError(f"a sample of type {array.dtype}, expected numbers or strings")
    array = np.ascontiguousarray(array, array.dtype.newbyteorder("="))
    # Types that numpy does not know itself have no buffer.
    return name, dtype, shape, array if array.dtype.isbuiltin == 1 else array.reshape(-1).view(np.uint8), ""


def to_numpy(dtype: DType, shape: tuple[int, ...], data: bytes) -> np.ndarray:
    """The array of a tensor that the engine gave."""
    if dtype is DType.STRING:
        return tensors.read_strings(np.frombuffer(data, np.uint8), shape)
    return np.frombuffer(data, tensors.numpy_type(dtype)).reshape(shape)
