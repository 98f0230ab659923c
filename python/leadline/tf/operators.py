# SPDX-License-Identifier: Apache-2.0
"""Python's operators for tensors and variables. The functions behind them need tensors, so they are looked up late."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leadline.tf.tensor import Tensor


class Operators:
    """A base of Tensor and Variable."""

    def _operand(self) -> Tensor:
        """The tensor that operators work on."""
        raise NotImplementedError

    def __getitem__(self, key):
        from leadline.tf.array import getitem

        return getitem(self._operand(), key)

    def __matmul__(self, other):
        from leadline.tf.linalg import matmul

        return matmul(self._operand(), other, name="matmul")

    def __rmatmul__(self, other):
        from leadline.tf.linalg import matmul

        return matmul(other, self._operand(), name="matmul")

    def __neg__(self):
        return _arithmetic().negative(self._operand())

    def __abs__(self):
        return _arithmetic().abs(self._operand())

    def __invert__(self):
        x = self._operand()
        return _arithmetic().logical_not(x) if x.dtype.is_bool else _arithmetic().invert(x)

    def __add__(self, other):
        return _arithmetic().add(self._operand(), other, name="add")

    def __radd__(self, other):
        return _arithmetic().add(*_reflected(self, other), name="add")

    def __sub__(self, other):
        return _arithmetic().subtract(self._operand(), other, name="sub")

    def __rsub__(self, other):
        return _arithmetic().subtract(*_reflected(self, other), name="sub")

    def __mul__(self, other):
        return _arithmetic().multiply(self._operand(), other, name="mul")

    def __rmul__(self, other):
        return _arithmetic().multiply(*_reflected(self, other), name="mul")

    def __truediv__(self, other):
        return _arithmetic().truediv(self._operand(), other, name="truediv")

    def __rtruediv__(self, other):
        return _arithmetic().truediv(*_reflected(self, other), name="truediv")

    def __floordiv__(self, other):
        return _arithmetic().floordiv(self._operand(), other, name="floordiv")

    def __rfloordiv__(self, other):
        return _arithmetic().floordiv(*_reflected(self, other), name="floordiv")

    def __mod__(self, other):
        return _arithmetic().floormod(self._operand(), other, name="mod")

    def __rmod__(self, other):
        return _arithmetic().floormod(*_reflected(self, other), name="mod")

    def __pow__(self, other):
        return _arithmetic().pow(self._operand(), other, name="pow")

    def __rpow__(self, other):
        return _arithmetic().pow(*_reflected(self, other), name="pow")

    def __lt__(self, other):
        return _arithmetic().less(self._operand(), other)

    def __le__(self, other):
        return _arithmetic().less_equal(self._operand(), other)

    def __gt__(self, other):
        return _arithmetic().greater(self._operand(), other)

    def __ge__(self, other):
        return _arithmetic().greater_equal(self._operand(), other)

    def __eq__(self, other):
        return _compared(self._operand(), other, _arithmetic().equal, False)

    def __ne__(self, other):
        return _compared(self._operand(), other, _arithmetic().not_equal, True)

    def __hash__(self) -> int:
        raise NotImplementedError  # tensors and variables say for themselves whether they have one

    def __and__(self, other):
        return _logical(self._operand(), other, "and")

    def __or__(self, other):
        return _logical(self._operand(), other, "or")

    def __xor__(self, other):
        return _logical(self._operand(), other, "xor")

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__


def _arithmetic():
    from leadline.tf import arithmetic

    return arithmetic


def _reflected(x: Operators, other) -> tuple:
    """The operands of `other <op> x`."""
    from leadline.tf.convert import convert_to_tensor

    operand = x._operand()
    return convert_to_tensor(other, dtype_hint=operand.dtype), operand


def _logical(x: Tensor, other, name: str):
    kind = "logical" if x.dtype.is_bool else "bitwise"
    return getattr(_arithmetic(), f"{kind}_{name}")(x, other)


def _compared(x: Tensor, other, function, if_not_comparable: bool):
    from leadline.tf.convert import convert_to_tensor
    from leadline.tf.shapes import broadcast

    if other is None:
        return if_not_comparable
    try:
        y = convert_to_tensor(other, dtype_hint=x.dtype)
        broadcast(x._dims, y._dims)
    except (TypeError, ValueError):
        return if_not_comparable  # as TensorFlow: what cannot be compared is not equal
    return function(x, y)
