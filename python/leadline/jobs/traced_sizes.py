# SPDX-License-Identifier: Apache-2.0
"""Numbers that stand for sizes which are not known before a run.

A traced number is an int or float of Python's with the value it has while a model is traced, the value it would have
with other sizes, and how it was computed from the sizes of tensors.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any


class Traced:
    """What traced ints and floats have in common."""

    other: Any  # the value with the other set of sizes
    origin: tuple[Any, ...]  # ("SizeOfAxis", tensor, axis), or the name of an operation of keras.ops and its operands


def other_value(number: Any) -> Any:
    """The number as it is with the other set of sizes."""
    return number.other if isinstance(number, Traced) else number


def _operation(name: str, compute: Callable[[Any, Any], Any], swapped: bool = False) -> Callable[[Any, Any], Any]:
    def result(self: Any, operand: Any) -> Any:
        if isinstance(operand, bool) or not isinstance(operand, (int, float)):
            return NotImplemented
        left, right = (operand, self) if swapped else (self, operand)
        value = compute(plain_value(left), plain_value(right))
        return traced(value, compute(other_value(left), other_value(right)), (name, left, right))

    return result


def plain_value(number: Any) -> Any:
    """The number as Python has it."""
    if isinstance(number, TracedInt):
        return number.real  # of a subclass of int: an int
    return float.__float__(number) if isinstance(number, TracedFloat) else number


_OPERATIONS = {
    "add": ("Add", operator.add),
    "sub": ("Subtract", operator.sub),
    "mul": ("Multiply", operator.mul),
    "floordiv": ("FloorDivide", operator.floordiv),
    "mod": ("Mod", operator.mod),
    "truediv": ("TrueDivide", operator.truediv),
    "pow": ("Power", operator.pow),
}
_METHODS = {
    f"__{prefix}{key}__": _operation(name, compute, prefix == "r")
    for key, (name, compute) in _OPERATIONS.items()
    for prefix in ("", "r")
}


class TracedInt(Traced, int):
    """A whole number that depends on unknown sizes."""

    def __neg__(self) -> Any:
        return self * -1


class TracedFloat(Traced, float):
    """A fraction that depends on unknown sizes."""

    def __neg__(self) -> Any:
        return self * -1.0

    def __ceil__(self) -> Any:
        return self._whole("Ceil", math.ceil)

    def __floor__(self) -> Any:
        return self._whole("Floor", math.floor)

    def _whole(self, name: str, compute: Callable[[float], int]) -> Any:
        value, other = compute(plain_value(self)), compute(self.other)
        return traced(value, other, ("Cast", traced(float(value), float(other), (name, self)), "int32"))


for _name, _method in _METHODS.items():
    setattr(TracedInt, _name, _method)
    setattr(TracedFloat, _name, _method)


def traced(value: float, other: float, origin: tuple[Any, ...]) -> Any:
    """The number with these two values, which may be the same and differ for other sizes."""
    number: Any = TracedInt(value) if isinstance(value, int) else TracedFloat(value)
    number.other, number.origin = other, origin
    return number
