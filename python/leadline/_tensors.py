# SPDX-License-Identifier: Apache-2.0
"""Between numpy arrays and the bytes of a tensor, with tf.lite's choice of numpy types.

Types without a numpy counterpart: strings are object arrays of `bytes`, 4-bit and 2-bit integers take one int8 or uint8
each, 8-bit floats are their raw bits as int8, bfloat16 is ml_dtypes' where that is installed and raw uint16 elsewhere.
"""

from __future__ import annotations

import functools

import numpy as np

from leadline._leadline import DType, InvalidArgumentError, TensorInfo

_NUMPY_TYPES: dict[DType, type] = {
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


@functools.cache
def _bfloat16() -> type:
    try:
        import ml_dtypes  # optional, and costs an import: only for the models that need it
    except ImportError:
        return np.uint16
    return ml_dtypes.bfloat16


def numpy_type(dtype: DType) -> type:
    """The numpy type that stands for `dtype`."""
    return _bfloat16() if dtype is DType.BFLOAT16 else _NUMPY_TYPES[dtype]


def _name_of(dtype: np.dtype) -> str:
    """What tf.lite calls a numpy type in its messages."""
    return "STRING" if dtype.kind in "OSUT" else dtype.name.upper()


# Reading ----------------------------------------------------------------------------------------


def to_numpy(raw: np.ndarray, dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
    """The tensor whose memory is `raw`: a view of it where numpy can express one, else a new array."""
    if dtype is DType.STRING:
        return _read_strings(raw, shape)
    if dtype in (DType.RESOURCE, DType.VARIANT):
        return np.empty(shape, np.object_)
    if dtype in _PACKED_BITS:
        return _unpack(raw, dtype, shape)
    values = raw.view(numpy_type(dtype))
    # The values of a sparse constant are fewer than its shape says; they come as the file holds them.
    return values.reshape(shape) if values.size == np.prod(shape, dtype=np.int64) else values


def _read_strings(raw: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
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


def _unpack(raw: np.ndarray, dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
    """Lowest bits first, each value widened to a byte."""
    bits = _PACKED_BITS[dtype]
    lanes = raw[:, None] >> np.arange(0, 8, bits, dtype=np.uint8) & np.uint8((1 << bits) - 1)
    values = lanes.reshape(-1)[: int(np.prod(shape, dtype=np.int64))]
    if dtype is not DType.UINT4:
        sign = 1 << (bits - 1)
        values = (values.astype(np.int8) ^ np.int8(sign)) - np.int8(sign)
    return values.reshape(shape)


# Writing ----------------------------------------------------------------------------------------


def to_bytes(value, info: TensorInfo) -> np.ndarray:
    """The bytes of `value` for the tensor `info`, as a flat uint8 array. Raises when dtype or shape differ."""
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise InvalidArgumentError(f"Failed to convert value into readable tensor: {error}") from error
    _check_dtype(array.dtype, info)
    _check_shape(array.shape, info)
    if info.dtype is DType.STRING:
        return _write_strings(array, info)
    if info.dtype in _PACKED_BITS:
        return _pack(array, info)
    # C order and the machine's byte order; no copy when the array has both.
    array = np.ascontiguousarray(array, array.dtype.newbyteorder("="))
    return array.reshape(-1).view(np.uint8)


def _check_dtype(dtype: np.dtype, info: TensorInfo) -> None:
    if info.dtype is DType.STRING:
        fits = dtype.kind in "OSUT"
    elif info.dtype in (DType.RESOURCE, DType.VARIANT):
        fits = False
    else:
        native = dtype.newbyteorder("=")
        fits = native == numpy_type(info.dtype) or (info.dtype in _RAW_FLOATS and native == np.uint8)
    if not fits:
        raise InvalidArgumentError(
            f"Cannot set tensor: Got value of type {_name_of(dtype)} but expected type {info.dtype.name} "
            f"for input {info.index}, name: {info.name} "
        )


def _check_shape(shape: tuple[int, ...], info: TensorInfo) -> None:
    expected = info.shape
    if shape == expected:
        return
    where = f"of input {info.index}, name: {info.name}, which has the shape {list(expected)}."
    if len(shape) != len(expected):
        raise InvalidArgumentError(
            f"Cannot set tensor: Dimension mismatch. Got {len(shape)} but expected {len(expected)} for the rank {where}"
        )
    axis = next(i for i, (got, want) in enumerate(zip(shape, expected)) if got != want)
    raise InvalidArgumentError(
        f"Cannot set tensor: Dimension mismatch. Got {shape[axis]} but expected {expected[axis]} "
        f"for dimension {axis} {where}"
    )


def _write_strings(array: np.ndarray, info: TensorInfo) -> np.ndarray:
    """int32 count, count + 1 int32 offsets from the start of the buffer, characters."""
    items = []
    for item in array.reshape(-1).tolist():
        if isinstance(item, str):
            item = item.encode()
        elif not isinstance(item, bytes):
            raise InvalidArgumentError(
                f"Cannot set tensor: Got an element of type {type(item).__name__} but expected str or bytes "
                f"for input {info.index}, name: {info.name}"
            )
        items.append(item)
    header = 4 * (len(items) + 2)
    ends = header + np.cumsum([0] + [len(item) for item in items], dtype=np.int64)
    if ends[-1] > np.iinfo(np.int32).max:
        raise InvalidArgumentError(
            f"Cannot set tensor: {ends[-1]} bytes of strings for input {info.index}, name: {info.name}; "
            "the format's offsets end at 2 GiB"
        )
    head = np.concatenate([[len(items)], ends]).astype("<i4").tobytes()
    return np.frombuffer(head + b"".join(items), np.uint8)


def _pack(array: np.ndarray, info: TensorInfo) -> np.ndarray:
    bits = _PACKED_BITS[info.dtype]
    low, high = (0, (1 << bits) - 1) if info.dtype is DType.UINT4 else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    if array.size and (array.min() < low or array.max() > high):
        raise InvalidArgumentError(
            f"Cannot set tensor: Values for {info.dtype.name} input {info.index}, name: {info.name}, "
            f"must be between {low} and {high}."
        )
    lanes = 8 // bits
    values = np.zeros(-(-array.size // lanes) * lanes, np.uint8)
    values[: array.size] = array.reshape(-1).view(np.uint8) & np.uint8((1 << bits) - 1)
    shifted = values.reshape(-1, lanes) << np.arange(0, 8, bits, dtype=np.uint8)
    return np.bitwise_or.reduce(shifted, axis=1)
