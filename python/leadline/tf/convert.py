# SPDX-License-Identifier: Apache-2.0
"""Values of Python and numpy become tensors: which type they get, which conversions are refused, and what is copied."""

from __future__ import annotations

import sys
import weakref

import numpy as np

from leadline.tf import dtypes, graph, memory
from leadline.tf.dtypes import DType, as_dtype
from leadline.tf.op import ROWS, Call, row
from leadline.tf.shapes import TensorShape
from leadline.tf.tensor import Tensor, symbolic_error, wrap

# An array this large is compared with what was made of it before, rather than copied once more.
_SHARED_BYTES = 64 << 20
_made_of: dict[int, tuple] = {}


def _infer_constant(call: Call):
    value = call.attrs["value"]
    return [(call.attrs["dtype"], value.shape)]


row("Const", _infer_constant, lambda *, value, dtype, holder=None: value, borrowed=True)


def constant(value, dtype=None, shape=None, name: str = "Const") -> Tensor:
    """A tensor with the contents of `value`, which may change afterwards. `shape` reshapes, or repeats one element."""
    dtype = None if dtype is None else as_dtype(dtype)
    if isinstance(value, Tensor):
        if value._array is None:
            raise TypeError("Expected any non-tensor type, but got a tensor instead.")
        value = value._array
    # Only the caller's expression refers to a temporary; what has a name may be written to.
    temporary = isinstance(value, np.ndarray) and sys.getrefcount(value) <= _TEMPORARY
    tensor = _from_array(value, dtype, temporary) if isinstance(value, np.ndarray) else _from_python(value, dtype)
    if shape is not None:
        tensor = _with_shape(tensor, tuple(TensorShape(shape).as_list()))
    if graph.building():
        attrs = {"value": tensor._array, "dtype": tensor._dtype, "holder": tensor}
        return graph.current().add(ROWS["Const"], [], attrs, name)
    return tensor


def _count_references(value, dtype=None, shape=None, name="Const") -> int:
    return sys.getrefcount(value)


def _calibrate() -> int:
    # Since 3.14 a frame may borrow what its caller has a name for; the count is not reliable any more.
    return _count_references(np.empty(1)) if sys.version_info < (3, 14) else 0


_TEMPORARY = _calibrate()


def _from_array(value: np.ndarray, dtype: DType | None, temporary: bool) -> Tensor:
    if value.dtype.kind in "OSU":
        return _from_strings(value, dtype)
    natural = as_dtype(value.dtype)
    target = dtype or natural
    if not _converts(natural, target):
        raise TypeError(f"Cannot convert {_brief(value)} to EagerTensor of dtype {target.name}")
    native = value.dtype.isnative and target is natural
    if temporary and native and value.flags.owndata and value.base is None and not weakref.getweakrefcount(value):
        return wrap(value, target)
    shared = _same_as_before(value, target) if value.nbytes >= _SHARED_BYTES else None
    if shared is not None:
        return shared
    size = value.size * target.size
    charge = memory.Charge(size, lambda: f"a constant of shape {list(value.shape)} and type {target.name}")
    tensor = Tensor(target, value.shape, np.array(value, dtype=target.numpy, order="C"), charge)
    if value.nbytes >= _SHARED_BYTES:
        _remember(value, tensor)
    return tensor


def _remember(value: np.ndarray, tensor: Tensor) -> None:
    key = id(value)
    _made_of[key] = (weakref.ref(value, lambda _: _made_of.pop(key, None)), weakref.ref(tensor))


def _same_as_before(value: np.ndarray, target: DType) -> Tensor | None:
    """The tensor that was made of the same array, when it still has the same contents."""
    known = _made_of.get(id(value))
    tensor = known[1]() if known and known[0]() is value else None
    if tensor is None or tensor._dtype is not target or tensor._array.shape != value.shape:
        return None
    ours, theirs = tensor._array.reshape(-1), value.reshape(-1) if value.flags.c_contiguous else None
    if theirs is None or theirs.dtype != ours.dtype:
        return None
    step = 1 << 20
    same = all(
        np.array_equal(ours[i : i + step].view(np.uint8), theirs[i : i + step].view(np.uint8))
        for i in range(0, ours.size, step)
    )
    return Tensor(target, tensor._dims, tensor._array, tensor._charge) if same else None


def _from_strings(value: np.ndarray, dtype: DType | None) -> Tensor:
    if dtype not in (None, dtypes.string):
        raise TypeError(f"Cannot convert {_brief(value)} to EagerTensor of dtype {dtype.name}")
    items = np.empty(value.shape, np.object_)
    for index, item in np.ndenumerate(value):
        if not isinstance(item, (str, bytes)):
            raise ValueError(
                f"Failed to convert a NumPy array to a Tensor (Unsupported object type {type(item).__name__})."
            )
        items[index] = item.encode() if isinstance(item, str) else bytes(item)
    return wrap(items, dtypes.string)


def _from_python(value, dtype: DType | None) -> Tensor:
    if value is None:
        raise ValueError("Attempt to convert a value (None) with an unsupported type (<class 'NoneType'>) to a Tensor.")
    if isinstance(value, (np.generic, range)) or (hasattr(value, "__array__") and not isinstance(value, (list, tuple))):
        return _from_array(np.asarray(value), dtype, temporary=False)
    try:
        array = np.array(_plain(value))
    except ValueError as error:
        raise ValueError("Can't convert non-rectangular Python sequence to Tensor.") from error
    if array.dtype.kind == "O" and not _all_strings(array):
        kinds = sorted({type(item).__name__ for item in array.reshape(-1).tolist()}) or [type(value).__name__]
        if array.size and all(isinstance(item, int) for item in array.reshape(-1).tolist()):
            raise ValueError("Can't convert Python sequence with out-of-range integer to Tensor.")
        raise ValueError(
            f"Attempt to convert a value ({_brief(value)}) with an unsupported type ({', '.join(kinds)}) to a Tensor."
        )
    if array.dtype.kind in "OSU":
        return _from_strings(array.astype(np.object_), dtype)
    natural = _natural(value, array)
    target = dtype or natural
    if not array.size:  # numpy takes an empty list for floats; it is of any type
        return wrap(np.empty(array.shape, target.numpy), target)
    if not _converts(natural, target):
        raise TypeError(f"Cannot convert {_brief(value)} to EagerTensor of dtype {target.name}")
    if target.is_integer and array.size and not (target.min <= array.min() and array.max() <= target.max):
        raise ValueError(f"Can't convert Python sequence with out-of-range integer to Tensor of type {target.name}.")
    return wrap(np.asarray(array, dtype=target.numpy, order="C"), target)


def _plain(value):
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value._array if isinstance(value, Tensor) and value._array is not None else value


def _all_strings(array: np.ndarray) -> bool:
    return bool(array.size) and all(isinstance(item, (str, bytes)) for item in array.reshape(-1).tolist())


def _natural(value, array: np.ndarray) -> DType:
    """What TensorFlow makes of Python's numbers: int32 where they fit, float32, complex128; numpy's keep their type."""
    first = value
    while isinstance(first, (list, tuple)) and first:
        first = first[0]
    if array.dtype.kind in "iu" and not hasattr(first, "dtype"):
        small = not array.size or (array.min() >= -(2**31) and array.max() < 2**31)
        return dtypes.int32 if small else dtypes.as_dtype(array.dtype)
    if array.dtype.kind == "f" and not hasattr(first, "dtype"):
        return dtypes.float32
    return as_dtype(array.dtype)


def _converts(natural: DType, target: DType) -> bool:
    """TensorFlow's rule: integers to integers and floats, floats to floats, all of them to complex."""
    if natural is target:
        return True
    if target.is_integer:
        return natural.is_integer
    if target.is_floating:
        return natural.is_floating or natural.is_integer
    return target.is_complex and (natural.is_complex or natural.is_floating or natural.is_integer)


def _with_shape(tensor: Tensor, dims: tuple[int, ...]) -> Tensor:
    array = tensor._array
    count = 1
    for size in dims:
        count *= size
    if array.size == count:
        return Tensor(tensor._dtype, dims, array.reshape(dims), tensor._charge)
    if array.size != 1:
        raise TypeError(
            f"Eager execution of tf.constant with unsupported shape. Tensor {_brief(array)} (converted from "
            f"{array.size} elements) has {array.size} elements, but got `shape` {dims} with {count} elements)."
        )
    charge = memory.Charge(count * tensor._dtype.size, lambda: f"a constant of shape {list(dims)}")
    return Tensor(tensor._dtype, dims, np.full(dims, array.reshape(-1)[0], tensor._dtype.numpy), charge)


def _brief(value) -> str:
    text = repr(value)
    return text if len(text) <= 100 else text[:97] + "..."


def convert_to_tensor(value, dtype=None, dtype_hint=None, name: str | None = None, preferred_dtype=None) -> Tensor:
    """`value` as a tensor; one that is a tensor already stays what it is."""
    dtype = None if dtype is None else as_dtype(dtype)
    if not isinstance(value, Tensor) and hasattr(value, "_as_tensor"):
        value = value._as_tensor()  # Variable
    if isinstance(value, Tensor):
        if dtype is not None and value._dtype is not dtype:
            raise ValueError(
                f"Tensor conversion requested dtype {dtype.name} for Tensor with dtype {value._dtype.name}: {value!r}"
            )
        if value._array is None and not graph.building():
            raise symbolic_error(value)
        return value
    if isinstance(value, TensorShape):
        value = [int(size) for size in value.as_list()] or np.zeros(0, np.int32)
    if isinstance(value, (list, tuple)) and _has_tensors(value):
        return _pack(value, dtype or (None if dtype_hint is None else as_dtype(dtype_hint)))
    hint = dtype_hint if dtype_hint is not None else preferred_dtype
    if dtype is None and hint is not None:
        try:
            return constant(value, as_dtype(hint), name=name or "Const")
        except (TypeError, ValueError):
            pass
    return constant(value, dtype, name=name or "Const")


def _has_tensors(value) -> bool:
    return any(
        isinstance(item, Tensor)
        or hasattr(item, "_as_tensor")
        or (isinstance(item, (list, tuple)) and _has_tensors(item))
        for item in value
    )


def _pack(values, dtype: DType | None) -> Tensor:
    """A list with tensors in it is their stack."""
    from leadline.tf.array import stack

    if dtype is None:
        dtype = _first_dtype(values)
    return stack([convert_to_tensor(value, dtype=dtype) for value in values])


def _first_dtype(values) -> DType | None:
    for value in values:
        if isinstance(value, Tensor) or hasattr(value, "_as_tensor"):
            return value.dtype
        if isinstance(value, (list, tuple)) and (found := _first_dtype(value)) is not None:
            return found
    return None


def convert_all(values, name: str | None = None) -> list[Tensor]:
    """Operands that should have one type: what is a tensor says which."""
    hint = next((v.dtype for v in values if isinstance(v, Tensor) or hasattr(v, "_as_tensor")), None)
    if hint is None:
        first = convert_to_tensor(values[0])
        return [first, *(convert_to_tensor(value, dtype_hint=first.dtype) for value in values[1:])]
    return [convert_to_tensor(value, dtype_hint=hint) for value in values]


def is_tensor(value) -> bool:
    return isinstance(value, Tensor) or hasattr(value, "_as_tensor")
