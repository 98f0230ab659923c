# SPDX-License-Identifier: Apache-2.0
"""Between numpy arrays and the bytes of a tensor, with tf.lite's choice of numpy types.

Types without a numpy counterpart: strings are object arrays of `bytes`, 4-bit and 2-bit integers take one int8 or uint8
each, 8-bit floats are their raw bits as int8, bfloat16 is ml_dtypes' where that is installed and raw uint16 elsewhere.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from leadline._leadline import DType, Interpreter, InvalidArgumentError, TensorInfo, TensorMemory, UnsupportedError

Array = np.ndarray[Any, np.dtype[Any]]

_NUMPY_TYPES: dict[DType, type[Any]] = {
    DType.FLOAT32: np.float32,
    DType.FLOAT16: np.float16,
    DType.INT32: np.int32,
    DType.UINT8: np.uint8,
    DType.INT64: np.int64,
    DType.STRING: np.bytes_,
    DType.BOOL: np.bool_,
    DType.INT16: np.int16,
    DType.COMPLEX64: np.complex64,
    DType.INT8: np.int8,
    DType.FLOAT64: np.float64,
    DType.COMPLEX128: np.complex128,
    DType.UINT64: np.uint64,
    DType.RESOURCE: np.object_,
    DType.VARIANT: np.object_,
    DType.UINT32: np.uint32,
    DType.UINT16: np.uint16,
    DType.INT4: np.int8,
    DType.INT2: np.int8,
    DType.UINT4: np.uint8,
    DType.FLOAT8E4M3FN: np.int8,
    DType.FLOAT8E5M2: np.int8,
}

_PACKED_BITS = {DType.INT4: 4, DType.UINT4: 4, DType.INT2: 2}
_RAW_FLOATS = (DType.FLOAT8E4M3FN, DType.FLOAT8E5M2)


def shown(name: str) -> str:
    """A name from a model, for messages: what is not printable is escaped."""
    return name if name.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in name)


@functools.cache
def _bfloat16() -> type[Any]:
    try:
        import ml_dtypes  # optional, and costs an import: only for the models that need it
    except ImportError:
        return np.uint16
    found: type[Any] = ml_dtypes.bfloat16
    return found


def numpy_type(dtype: DType) -> type[Any]:
    """The numpy type that stands for `dtype`."""
    return _bfloat16() if dtype is DType.BFLOAT16 else _NUMPY_TYPES[dtype]


def _name_of(dtype: np.dtype[Any]) -> str:
    """What tf.lite calls a numpy type in its messages."""
    return "STRING" if dtype.kind in "OSUT" else dtype.name.upper()


class TensorSpec:
    """What reading and writing a tensor needs to know of it; made once, because both are done for every run."""

    # No dataclass: importing that module takes longer than loading a small model.
    __slots__ = ("dtype", "index", "name", "plain", "shape", "type")

    def __init__(
        self, index: int, name: str, dtype_: DType, dtype: np.dtype[Any], shape: tuple[int, ...], plain: bool
    ) -> None:
        self.index = index
        self.name = name
        self.type = dtype_
        self.dtype = dtype
        self.shape = shape
        self.plain = plain  # numpy can express it as a view

    @classmethod
    def of(cls, info: TensorInfo) -> TensorSpec:
        opaque = (DType.STRING, DType.RESOURCE, DType.VARIANT)
        plain = info.dtype not in opaque and info.dtype not in _PACKED_BITS and not info.sparse
        return cls(info.index, info.name, info.dtype, np.dtype(numpy_type(info.dtype)), info.shape, plain)


def as_array(memory: Any, shape: int | tuple[int, ...], dtype: Any) -> Array:
    """An array in the memory of an object that offers the buffer protocol."""
    array: Array = np.ndarray(shape, dtype, memory)
    return array


# Reading ----------------------------------------------------------------------------------------


def to_numpy(memory: TensorMemory, spec: TensorSpec) -> Array:
    """The tensor in `memory`, with the shape it has now: a view where numpy can express one, else a new array."""
    if spec.plain:
        return as_array(memory, memory.shape, spec.dtype)
    raw = as_array(memory, memory.nbytes, np.uint8)
    if spec.type is DType.STRING:
        return read_strings(raw, memory.shape)
    if spec.type in (DType.RESOURCE, DType.VARIANT):
        return np.empty(memory.shape, np.object_)
    if spec.type in _PACKED_BITS:
        return _unpack(raw, spec.type, memory.shape)
    return raw.view(spec.dtype)  # the values of a sparse constant, as the file holds them


def read_strings(raw: Array, shape: tuple[int, ...]) -> Array:
    """The strings of a string tensor's bytes."""
    count = int(np.prod(shape, dtype=np.int64))
    result = np.empty(count, np.object_)
    result[:] = b""
    # A tensor that was never written has no bytes, or none that make sense yet.
    if raw.size >= 4 and (stored := int(raw[:4].view("<i4")[0])) == count and raw.size >= 4 * (count + 2):
        offsets = raw[4 : 4 * (stored + 2)].view("<i4").tolist()
        data = raw.tobytes()
        for i in range(count):
            result[i] = data[offsets[i] : offsets[i + 1]]
    return result.reshape(shape)


def _unpack(raw: Array, dtype: DType, shape: tuple[int, ...]) -> Array:
    """Lowest bits first, each value widened to a byte."""
    bits = _PACKED_BITS[dtype]
    lanes: Array = raw[:, None] >> np.arange(0, 8, bits, dtype=np.uint8) & np.uint8((1 << bits) - 1)
    values = lanes.reshape(-1)[: int(np.prod(shape, dtype=np.int64))]
    if dtype is not DType.UINT4:
        sign = 1 << (bits - 1)
        values = (values.astype(np.int8) ^ np.int8(sign)) - np.int8(sign)
    return values.reshape(shape)


# Writing ----------------------------------------------------------------------------------------


def to_bytes(value: Any, spec: TensorSpec) -> Array:
    """A contiguous array with the bytes of `value` for the tensor `spec`. Raises when dtype or shape differ."""
    try:
        array = np.asarray(value)
        if array.dtype.kind in "SU" and not isinstance(value, np.ndarray | np.generic):
            array = np.asarray(value, np.object_)  # numpy's own strings lose the zeros at their end
    except ValueError as error:
        raise InvalidArgumentError(f"Failed to convert value into readable tensor: {error}") from error
    if array.dtype != spec.dtype or array.dtype.hasobject:
        array = array.astype(_accepted_dtype(array.dtype, spec), copy=False)
    if array.shape != spec.shape:
        _refuse_shape(array.shape, spec)
    if spec.type is DType.STRING:
        return string_buffer(array, f"input {spec.index}, name: {shown(spec.name)}")
    if spec.type in _PACKED_BITS:
        return _pack(array, spec)
    array = np.ascontiguousarray(array)
    # Types that numpy does not know itself have no buffer.
    return array if array.dtype.isbuiltin == 1 else array.reshape(-1).view(np.uint8)


def to_memory(array: Any, spec: TensorSpec) -> Array:
    """`array` as a buffer that the tensor `spec` can live in: the same memory. Raises when it would need a copy."""
    where = f"for tensor {spec.index}, name: {shown(spec.name)}"
    if not isinstance(array, np.ndarray):
        raise InvalidArgumentError(f"Cannot bind tensor: Got {type(array).__name__} but expected a numpy array {where}")
    if not spec.plain:
        raise UnsupportedError(f"Cannot bind tensor: type {spec.type.name} has no numpy view {where}")
    if array.dtype != spec.dtype:
        raise InvalidArgumentError(
            f"Cannot bind tensor: Got an array of type {_name_of(array.dtype)} but expected {spec.type.name} {where}"
        )
    if not array.flags.c_contiguous:
        raise InvalidArgumentError(f"Cannot bind tensor: the array is not C-contiguous {where}")
    return array if array.dtype.isbuiltin == 1 else array.reshape(-1).view(np.uint8)


def _accepted_dtype(dtype: np.dtype[Any], spec: TensorSpec) -> np.dtype[Any]:
    """The dtype to convert to: only the byte order may differ, and the characters and raw bits stand for themselves."""
    native: np.dtype[Any] = dtype.newbyteorder("=")
    if spec.type is DType.STRING:
        fits = dtype.kind in "OSUT"
    else:
        fits = native == spec.dtype or (spec.type in _RAW_FLOATS and native == np.uint8)
    if not fits or spec.type in (DType.RESOURCE, DType.VARIANT):
        raise InvalidArgumentError(
            f"Cannot set tensor: Got value of type {_name_of(dtype)} but expected type {spec.type.name} "
            f"for input {spec.index}, name: {shown(spec.name)} "
        )
    return native


def _refuse_shape(shape: tuple[int, ...], spec: TensorSpec) -> None:
    expected = spec.shape
    where = f"of input {spec.index}, name: {shown(spec.name)}, which has the shape {list(expected)}."
    if len(shape) != len(expected):
        raise InvalidArgumentError(
            f"Cannot set tensor: Dimension mismatch. Got {len(shape)} but expected {len(expected)} for the rank {where}"
        )
    axis = next(i for i, (got, want) in enumerate(zip(shape, expected, strict=True)) if got != want)
    raise InvalidArgumentError(
        f"Cannot set tensor: Dimension mismatch. Got {shape[axis]} but expected {expected[axis]} "
        f"for dimension {axis} {where}"
    )


def string_buffer(array: Array, where: str) -> Array:
    """The bytes of a string tensor: int32 count, count + 1 int32 offsets from the start of the buffer, characters."""
    items = []
    # A single one of numpy's strings is as long as its type says; several have a common length, filled up with zeros.
    whole = array.ndim == 0 and array.dtype.kind == "S"
    for item in [array.tobytes()] if whole else array.reshape(-1).tolist():
        if isinstance(item, str):
            item = item.encode()
        elif not isinstance(item, bytes):
            raise InvalidArgumentError(
                f"Cannot set tensor: Got an element of type {type(item).__name__} but expected str or bytes for {where}"
            )
        items.append(item)
    header = 4 * (len(items) + 2)
    ends = header + np.cumsum([0] + [len(item) for item in items], dtype=np.int64)
    if ends[-1] > np.iinfo(np.int32).max:
        raise InvalidArgumentError(
            f"Cannot set tensor: {ends[-1]} bytes of strings for {where}; the format's offsets end at 2 GiB"
        )
    head = np.concatenate([[len(items)], ends]).astype("<i4").tobytes()
    return np.frombuffer(head + b"".join(items), np.uint8)


def _pack(array: Array, spec: TensorSpec) -> Array:
    bits = _PACKED_BITS[spec.type]
    low, high = (0, (1 << bits) - 1) if spec.type is DType.UINT4 else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    if array.size and (array.min() < low or array.max() > high):
        raise InvalidArgumentError(
            f"Cannot set tensor: Values for {spec.type.name} input {spec.index}, name: {shown(spec.name)}, "
            f"must be between {low} and {high}."
        )
    lanes = 8 // bits
    values = np.zeros(-(-array.size // lanes) * lanes, np.uint8)
    values[: array.size] = array.reshape(-1).view(np.uint8) & np.uint8((1 << bits) - 1)
    shifted = values.reshape(-1, lanes) << np.arange(0, 8, bits, dtype=np.uint8)
    packed: Array = np.bitwise_or.reduce(shifted, axis=1)
    return packed


def set_inputs(interpreter: Interpreter, arrays: Sequence[Array]) -> None:
    """Sets the shapes and values of the inputs of a native interpreter."""
    for index, array in zip(interpreter.inputs, arrays, strict=True):
        interpreter.resize_input(index, array.shape)
    for index, array in zip(interpreter.inputs, arrays, strict=True):
        spec = TensorSpec.of(interpreter.tensor_info(index))
        interpreter.set_tensor(index, to_bytes(array, spec))
