# SPDX-License-Identifier: Apache-2.0
"""Shapes: tuples of sizes in which None is unknown, None in place of the tuple when even the rank is, and TensorShape,
the form in which users see them."""

from __future__ import annotations

import operator

Dims = tuple[int | None, ...] | None


class Dimension(int):
    """A size as TensorFlow 1 gave it: an int with `.value`."""

    @property
    def value(self) -> int:
        return int(self)


class TensorShape:
    """A shape that may be known only in part."""

    __slots__ = ("_dims",)
    _dims: Dims

    def __init__(self, dims=None) -> None:
        if isinstance(dims, TensorShape):
            self._dims = dims._dims
        elif dims is None:
            self._dims = None
        elif hasattr(dims, "__index__") and not hasattr(dims, "__len__"):
            self._dims = (operator.index(dims),)
        else:
            self._dims = tuple(_size(size) for size in dims)

    @property
    def rank(self) -> int | None:
        return None if self._dims is None else len(self._dims)

    ndims = rank

    @property
    def dims(self) -> list | None:
        return None if self._dims is None else [None if size is None else Dimension(size) for size in self._dims]

    def as_list(self) -> list:
        if self._dims is None:
            raise ValueError("as_list() is not defined on an unknown TensorShape.")
        return list(self._dims)

    def is_fully_defined(self) -> bool:
        return is_known(self._dims)

    def assert_is_fully_defined(self) -> None:
        if not self.is_fully_defined():
            raise ValueError(f"Shape {self} is not fully defined.")

    def num_elements(self) -> int | None:
        return element_count(self._dims)

    def is_compatible_with(self, other) -> bool:
        return compatible(self._dims, TensorShape(other)._dims)

    def assert_is_compatible_with(self, other) -> None:
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {TensorShape(other)} are incompatible")

    def assert_has_rank(self, rank: int) -> None:
        if self.rank not in (None, rank):
            raise ValueError(f"Shape {self} must have rank {rank}")

    def merge_with(self, other) -> TensorShape:
        other = TensorShape(other)
        self.assert_is_compatible_with(other)
        if self._dims is None or other._dims is None:
            return other if self._dims is None else self
        return TensorShape([b if a is None else a for a, b in zip(self._dims, other._dims)])

    def concatenate(self, other) -> TensorShape:
        other = TensorShape(other)
        return TensorShape(None if self._dims is None or other._dims is None else self._dims + other._dims)

    def with_rank(self, rank: int) -> TensorShape:
        return self.merge_with([None] * rank)

    def __len__(self) -> int:
        if self._dims is None:
            raise ValueError("Cannot take the length of shape with unknown rank.")
        return len(self._dims)

    def __bool__(self) -> bool:
        return self._dims is not None

    def __iter__(self):
        if self._dims is None:
            raise ValueError("Cannot iterate over a shape with unknown rank.")
        return iter(self._dims)

    def __getitem__(self, key):
        if self._dims is None:
            return TensorShape(None) if isinstance(key, slice) else None
        return TensorShape(self._dims[key]) if isinstance(key, slice) else self._dims[key]

    def __add__(self, other) -> TensorShape:
        return self.concatenate(other)

    def __radd__(self, other) -> TensorShape:
        return TensorShape(other).concatenate(self)

    def __eq__(self, other) -> bool:
        try:
            other = TensorShape(other)
        except TypeError:
            return NotImplemented
        return self._dims == other._dims

    def __hash__(self) -> int:
        return hash(self._dims)

    def __repr__(self) -> str:
        return f"TensorShape({None if self._dims is None else list(self._dims)})"

    def __str__(self) -> str:
        if self._dims is None:
            return "<unknown>"
        inner = ", ".join(str(size) for size in self._dims)
        return f"({inner},)" if len(self._dims) == 1 else f"({inner})"

    def __reduce__(self):
        return TensorShape, (self._dims,)


def _size(size) -> int | None:
    if size is None:
        return None
    value = operator.index(getattr(size, "value", size))
    if value < -1:
        raise ValueError(f"Dimension {value} must be >= 0")
    return None if value == -1 else value


def is_known(dims: Dims) -> bool:
    return dims is not None and None not in dims


def element_count(dims: Dims) -> int | None:
    if not is_known(dims):
        return None
    count = 1
    for size in dims:
        count *= size
    return count


def compatible(a: Dims, b: Dims) -> bool:
    if a is None or b is None:
        return True
    return len(a) == len(b) and all(x is None or y is None or x == y for x, y in zip(a, b))


def broadcast(a: Dims, b: Dims) -> Dims:
    """The shape of an elementwise result. Raises ValueError when there is none."""
    if a == b:
        return a
    if a is None or b is None:
        return None
    rank = max(len(a), len(b))
    result = []
    for x, y in zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b):
        if x == 1 or x == y:
            result.append(y)
        elif y == 1:
            result.append(x)
        elif x is None or y is None:
            result.append(x if y is None else y)
        else:
            raise ValueError
    return tuple(result)


def text(dims: Dims) -> str:
    """As TensorFlow's errors show shapes: [10,?,3]."""
    if dims is None:
        return "<unknown>"
    return "[" + ",".join("?" if size is None else str(size) for size in dims) + "]"
