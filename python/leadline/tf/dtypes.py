# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's element types over numpy's. A DType equals its numpy type, its name and its scalar class."""

from __future__ import annotations

import builtins

import numpy as np


class DType:
    """One element type. Compares equal to whatever as_dtype() makes it of, as TensorFlow's does."""

    __slots__ = ("_kind", "_numpy", "enum", "name")

    def __init__(self, name: str, enum: int, numpy_type: np.dtype | None) -> None:
        self.name = name
        self.enum = enum
        self._numpy = numpy_type
        self._kind = numpy_type.kind if numpy_type is not None else ""

    @property
    def as_numpy_dtype(self):
        """The scalar class of numpy."""
        return np.object_ if self._numpy is None or self.name == "string" else self._numpy.type

    @property
    def as_datatype_enum(self) -> int:
        return self.enum

    @property
    def numpy(self) -> np.dtype:
        """The dtype of arrays that hold it."""
        return self._numpy

    @property
    def base_dtype(self) -> DType:
        return self

    @property
    def size(self) -> int:
        return 1 if self.name == "string" else self._numpy.itemsize

    @property
    def is_floating(self) -> builtins.bool:
        return self._kind == "f" or self.name == "bfloat16"

    @property
    def is_complex(self) -> builtins.bool:
        return self._kind == "c"

    @property
    def is_integer(self) -> builtins.bool:
        return self._kind in ("i", "u")

    @property
    def is_unsigned(self) -> builtins.bool:
        return self._kind == "u"

    @property
    def is_bool(self) -> builtins.bool:
        return self._kind == "b"

    @property
    def is_numeric(self) -> builtins.bool:
        return self.is_floating or self.is_integer or self.is_complex

    @property
    def is_numpy_compatible(self) -> builtins.bool:
        return True

    @property
    def real_dtype(self) -> DType:
        return {"complex64": float32, "complex128": float64}.get(self.name, self)

    @property
    def min(self):
        return False if self.is_bool else self._limits().min

    @property
    def max(self):
        return True if self.is_bool else self._limits().max

    @property
    def limits(self):
        return self.min, self.max

    def _limits(self):
        if self.is_integer:
            return np.iinfo(self._numpy)
        if self.name == "bfloat16":
            import ml_dtypes

            return ml_dtypes.finfo(self._numpy)
        if self.is_floating:
            return np.finfo(self._numpy)
        raise TypeError(f"Cannot find minimum or maximum value of {self!r}.")

    def is_compatible_with(self, other) -> builtins.bool:
        return self == as_dtype(other)

    def __eq__(self, other) -> builtins.bool:
        if other is None:
            return False
        try:
            return self is as_dtype(other)
        except TypeError:
            return False

    def __ne__(self, other) -> builtins.bool:
        return not self == other

    def __hash__(self) -> int:
        return self.enum

    def __repr__(self) -> str:
        return f"tf.{self.name}"

    def __str__(self) -> str:
        return f"<dtype: {self.name!r}>"

    def __reduce__(self):
        return as_dtype, (self.name,)


def _make(name: str, enum: int, numpy_type=None) -> DType:
    return DType(name, enum, np.dtype(numpy_type or name))


def _bfloat16() -> np.dtype | None:
    try:
        import ml_dtypes
    except ImportError:
        return None
    return np.dtype(ml_dtypes.bfloat16)


# The numbers are those of TensorFlow's types.proto.
float32 = _make("float32", 1)
float64 = double = _make("float64", 2)
int32 = _make("int32", 3)
uint8 = _make("uint8", 4)
int16 = _make("int16", 5)
int8 = _make("int8", 6)
string = _make("string", 7, np.object_)
complex64 = _make("complex64", 8)
int64 = _make("int64", 9)
bool = _make("bool", 10, np.bool_)
uint16 = _make("uint16", 17)
complex128 = _make("complex128", 18)
float16 = half = _make("float16", 19)
resource = DType("resource", 20, np.dtype(np.object_))
variant = DType("variant", 21, np.dtype(np.object_))
uint32 = _make("uint32", 22)
uint64 = _make("uint64", 23)

ALL = [
    float32, float64, int32, uint8, int16, int8, string, complex64, int64, bool, uint16, complex128, float16, uint32,
    uint64,
]  # fmt: skip
_NAMES = {dtype.name: dtype for dtype in [*ALL, resource, variant]} | {"half": float16, "double": float64}
_NUMPY = {dtype.numpy: dtype for dtype in ALL if dtype is not string}
_PYTHON = {float: float32, int: int32, complex: complex128, str: string, bytes: string, builtins.bool: bool}


def as_dtype(value) -> DType:
    """The type that a name, a numpy type or a Python class means. Raises TypeError for what is none."""
    if isinstance(value, DType):
        return value
    try:
        if value in _PYTHON:
            return _PYTHON[value]
        if isinstance(value, str) and value in _NAMES:
            return _NAMES[value]
        if isinstance(value, int):
            return next(dtype for dtype in ALL if dtype.enum == value)
    except (TypeError, StopIteration):
        pass
    if (
        getattr(value, "name", None) == "bfloat16"
        or value == "bfloat16"
        or getattr(value, "__name__", "") == "bfloat16"
    ):
        return bfloat16_type()
    try:
        kind = np.dtype(value)
    except (TypeError, ValueError):
        kind = None
    if kind is not None:
        if kind.kind in "OSU" and value is not None:
            return string
        if kind in _NUMPY and value is not None:
            return _NUMPY[kind]
    raise TypeError(f"Cannot convert the argument `type_value`: {value!r} to a TensorFlow DType.")


def bfloat16_type() -> DType:
    """tf.bfloat16; numpy knows it only through the package ml_dtypes."""
    if "bfloat16" not in _NAMES:
        kind = _bfloat16()
        if kind is None:
            raise TypeError("tf.bfloat16 needs the package ml_dtypes: pip install ml_dtypes")
        _NAMES["bfloat16"] = _NUMPY[kind] = DType("bfloat16", 14, kind)
    return _NAMES["bfloat16"]
