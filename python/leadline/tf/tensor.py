# SPDX-License-Identifier: Apache-2.0
"""Tensor: a value (eager), or the promise of one in a graph (symbolic). Operators are in operators.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from leadline.tf import dtypes, errors, memory
from leadline.tf.dtypes import DType
from leadline.tf.operators import Operators
from leadline.tf.shapes import Dims, TensorShape, compatible


class Tensor(Operators):
    """An immutable array of one type. Made by constant(), convert_to_tensor() and every op.

    An eager tensor holds a numpy array that nothing else writes; its bytes are charged to the budget. A symbolic one
    is output `value_index` of the Operation `op` of a graph.
    """

    __array_priority__ = 100
    __getitem__: Callable[..., Any]  # array.py has it

    def __init__(self, dtype: DType, dims: Dims, array: np.ndarray | None = None, charge=None, op=None, index: int = 0):
        self._dtype = dtype
        self._dims = dims
        self._array = array
        self._charge = charge
        if op is not None:
            self.op = op
            self.value_index = index

    def _operand(self) -> Tensor:
        return self

    @property
    def is_eager(self) -> bool:
        return self._array is not None

    @property
    def dtype(self) -> DType:
        return self._dtype

    @property
    def shape(self) -> TensorShape:
        return TensorShape(self._dims)

    @property
    def ndim(self) -> int | None:
        return None if self._dims is None else len(self._dims)

    @property
    def device(self) -> str:
        return "/job:localhost/replica:0/task:0/device:CPU:0" if self.is_eager else self.op.device

    @property
    def graph(self):
        self._only_symbolic("graph")
        return self.op.graph

    @property
    def name(self) -> str:
        self._only_symbolic("name")
        return f"{self.op.name}:{self.value_index}"

    def _only_symbolic(self, name: str) -> None:
        if self.is_eager:
            raise AttributeError(f"Tensor.{name} is undefined when eager execution is enabled.")

    def __getattr__(self, name: str):
        if name == "op" and self.__dict__.get("_array") is not None:
            self._only_symbolic("op")
        raise AttributeError(f"'Tensor' object has no attribute '{name}'")

    def get_shape(self) -> TensorShape:
        return self.shape

    def set_shape(self, shape) -> None:
        """Adds what is known about the shape of a symbolic tensor."""
        shape = TensorShape(shape)
        if not compatible(self._dims, shape._dims):
            raise ValueError(f"Tensor's shape {self.shape} is not compatible with supplied shape {shape}.")
        if not self.is_eager:
            self._dims = self.shape.merge_with(shape)._dims

    def consumers(self) -> list:
        self._only_symbolic("consumers")
        return [op for op in self.op.graph.get_operations() if any(t is self for t in op.inputs)]

    def numpy(self):
        """The value as an array of the caller's own, or as a scalar when it has no dimensions."""
        array = self._value("numpy()")
        if not array.ndim:
            return array[()]
        memory.Charge(array.nbytes, lambda: "the copy that numpy() returns")  # only a check: the copy is the caller's
        return array.copy()

    def _value(self, what: str) -> np.ndarray:
        if self._array is None:
            raise NotImplementedError(
                f"{what} is not available for the symbolic tensor '{self.name}': it has a value only while the graph "
                "runs. Use Session.run(), or call this outside tf.Graph().as_default() and tf.function."
            )
        return self._array

    def __array__(self, dtype=None, copy=None):
        array = self._value("numpy.asarray()")
        if dtype is not None and array.dtype != dtype:
            return array.astype(dtype)
        if copy:
            return array.copy()
        view = array.view()
        view.flags.writeable = False  # tensors do not change
        return view

    def __dlpack__(self, **options):
        return self._value("__dlpack__()").__dlpack__(**options)

    def __dlpack_device__(self):
        return (1, 0)

    def __bool__(self) -> bool:
        if self._array is None:
            raise NeedsValueError(
                f"Using a symbolic `tf.Tensor` as a Python `bool` is not allowed: '{self.name}' has no value before "
                "the graph runs. Use tf.where, or compute it eagerly."
            )
        return bool(self._array)

    def _number(self, what: str) -> np.ndarray:
        if self._array is None:
            raise NeedsValueError(f"{what} of the symbolic tensor '{self.name}' has no value before the graph runs")
        return self._array

    def __int__(self) -> int:
        return int(self._number("int()"))

    def __float__(self) -> float:
        return float(self._number("float()"))

    def __complex__(self) -> complex:
        return complex(self._number("complex()"))

    def __index__(self) -> int:
        array = self._number("index")
        if array.ndim or not self._dtype.is_integer:
            raise TypeError("only integer scalar tensors can be converted to a scalar index")
        return int(array)

    def __len__(self) -> int:
        if self._dims is None or not self._dims:
            raise TypeError("Scalar tensor has no `len()`" if self._dims == () else "len() of a tensor of unknown rank")
        if self._dims[0] is None:
            raise TypeError(f"len is not well defined for a symbolic Tensor ({self.name}). Please call tf.shape(x)[0].")
        return self._dims[0]

    def __iter__(self):
        if self._dims is None or (self._dims and self._dims[0] is None):
            raise NeedsValueError("Iterating over a symbolic tensor whose first dimension is not known is not allowed")
        if not self._dims:
            raise TypeError("Cannot iterate over a scalar tensor.")
        return (self[i] for i in range(self._dims[0]))

    def __contains__(self, value) -> bool:
        return bool(np.any(self._number("in") == np.asarray(value)))

    def __hash__(self):
        if self._array is not None:
            raise TypeError("Tensor is unhashable. Instead, use tensor.ref() as the key.")
        return id(self)

    def ref(self) -> Reference:
        """Something that can be the key of a dict; deref() returns the tensor."""
        return Reference(self)

    def eval(self, feed_dict=None, session=None):
        from leadline.tf.session import current_session

        session = session or current_session()
        if session is None:
            raise ValueError("Cannot evaluate tensor using `eval()`: No default session is registered.")
        return session.run(self, feed_dict)

    def __copy__(self) -> Tensor:
        return self

    def __deepcopy__(self, memo) -> Tensor:
        return self

    def __reduce__(self):
        return _unpickle, (self._value("pickle"), self._dtype.name)

    def __format__(self, spec: str) -> str:
        if self._array is None:
            return format(str(self), spec)
        return format(self._array if self._array.ndim else self._array[()], spec)

    def __str__(self) -> str:
        if self._array is None:
            return f'Tensor("{self.name}", shape={self.shape}, dtype={self._dtype.name})'
        text = str(self._array)
        return f"tf.Tensor({chr(10) * (chr(10) in text)}{text}, shape={self.shape}, dtype={self._dtype.name})"

    def __repr__(self) -> str:
        if self._array is None:
            return f"<tf.Tensor '{self.name}' shape={self.shape} dtype={self._dtype.name}>"
        return f"<tf.Tensor: shape={self.shape}, dtype={self._dtype.name}, numpy={shown(self._array)}>"


def shown(array: np.ndarray) -> str:
    """A value as TensorFlow's repr has it."""
    if not array.ndim:
        return str(array[()])
    return ("\n" if array.ndim > 1 else "") + repr(array)


class NeedsValueError(TypeError, NotImplementedError):
    """A symbolic tensor was used where its value is needed. tf.function then runs the Python code eagerly.

    TensorFlow raises OperatorNotAllowedInGraphError, a TypeError.
    """


class Reference:
    """What Tensor.ref() returns: equal for the same tensor."""

    def __init__(self, tensor) -> None:
        self._tensor = tensor

    def deref(self):
        return self._tensor

    def __eq__(self, other) -> bool:
        return isinstance(other, Reference) and self._tensor is other._tensor

    def __hash__(self) -> int:
        return id(self._tensor)


def _unpickle(array: np.ndarray, dtype: str) -> Tensor:
    return wrap(array, dtypes.as_dtype(dtype))


def wrap(array: np.ndarray, dtype: DType | None = None, charge=None) -> Tensor:
    """An eager tensor over `array`, which belongs to it from now on. Charged unless a charge is given."""
    if charge is None:
        charge = memory.Charge(array.nbytes, lambda: f"a tensor of shape {list(array.shape)}")
    return Tensor(dtype or dtypes.as_dtype(array.dtype), array.shape, array, charge)


def symbolic_error(tensor: Tensor) -> Exception:
    return TypeError(
        f"<tf.Tensor '{tensor.name}'> is out of scope and cannot be used here: it belongs to a graph, and this code is "
        "not inside it. Use it within that graph's as_default(), or get its value with Session.run()."
    )


def dtype_mismatch(op: str, position: int, expected: DType, got: DType, name: str = "") -> Exception:
    """TensorFlow's words for inputs that should have one type and do not."""
    return errors.DtypeError(
        message=f"cannot compute {op} as input #{position}(zero-based) was expected to be a {_short(expected)} tensor "
        f"but is a {_short(got)} tensor [Op:{op}] name: {name}"
    )


def _short(dtype: DType) -> str:
    return {"float32": "float", "float64": "double", "float16": "half"}.get(dtype.name, dtype.name)
