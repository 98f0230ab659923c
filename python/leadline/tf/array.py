# SPDX-License-Identifier: Apache-2.0
"""Functions that make, shape and pick tensors, over the rows of movement.py and selection.py."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from leadline.tf import dtypes, graph as graphs, movement, selection  # noqa: F401 they fill the table
from leadline.tf.arithmetic import _static, cast
from leadline.tf.convert import constant, convert_all, convert_to_tensor
from leadline.tf.dtypes import as_dtype
from leadline.tf.op import apply
from leadline.tf.shapes import TensorShape
from leadline.tf.tensor import Tensor

newaxis = None


def _sizes(value) -> Tensor:
    """A shape as a vector: a TensorShape, a tensor, or a list with both in it."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, TensorShape):
        value = value.as_list()
    if isinstance(value, (int, np.integer)):
        value = [value]
    if isinstance(value, (list, tuple)) and any(isinstance(item, Tensor) for item in value):
        return convert_to_tensor([cast(item, dtypes.int32) for item in value])
    array = np.asarray(value)
    if array.size == 0:
        array = array.astype(np.int32)
    if array.dtype.kind not in "iu":
        raise TypeError(f"a shape should be integers, got {value!r}")
    return constant(array.astype(np.int64 if array.size and array.max() >= 2**31 else np.int32))


def _ints(value, what: str):
    """Numbers that must be known while a graph is made."""
    if value is None:
        return None
    return tuple(int(item) for item in np.ravel(np.asarray(_static(value))))


def reshape(tensor, shape, name=None) -> Tensor:
    """The same elements in another shape; -1 is what fits."""
    return apply("Reshape", [convert_to_tensor(tensor), _sizes(shape)], name or "Reshape")


def transpose(a, perm=None, conjugate=False, name="transpose") -> Tensor:
    """The axes in another order. Costs nothing: a view."""
    perm = _ints(perm, "perm")
    return apply("Transpose", [convert_to_tensor(a)], name, perm=perm, conjugate=bool(conjugate))


def moveaxis(a, source, destination, name="moveaxis") -> Tensor:
    """One axis at another place."""
    a = convert_to_tensor(a)
    order = list(builtins.range(builtins.len(a.shape)))
    order.insert(destination % builtins.len(order), order.pop(source))
    return transpose(a, order, name=name)


def squeeze(input, axis=None, name=None) -> Tensor:
    """Without axes of size 1: the given ones, or all of them."""
    return apply("Squeeze", [convert_to_tensor(input)], name or "Squeeze", axes=_ints(axis, "axis") or ())


def expand_dims(input, axis, name=None) -> Tensor:
    """With a new axis of size 1."""
    return apply("ExpandDims", [convert_to_tensor(input)], name or "ExpandDims", axis=int(_static(axis)))


def identity(input, name=None) -> Tensor:
    return apply("Identity", [convert_to_tensor(input)], name or "Identity")


def stop_gradient(input, name=None) -> Tensor:
    return apply("StopGradient", [convert_to_tensor(input)], name or "StopGradient")


def ensure_shape(x, shape, name=None) -> Tensor:
    return apply("EnsureShape", [convert_to_tensor(x)], name or "EnsureShape", shape=TensorShape(shape)._dims)


def concat(values, axis, name="concat") -> Tensor:
    """Tensors one after the other along an axis."""
    if not isinstance(values, (list, tuple)):
        values = [values]
    return apply("ConcatV2", convert_all(list(values)), name, axis=int(_static(axis)))


def stack(values, axis=0, name="stack") -> Tensor:
    """Tensors of one shape along a new axis."""
    return apply("Pack", convert_all(list(values)), name, axis=int(axis))


def unstack(value, num=None, axis=0, name="unstack") -> list[Tensor]:
    """The parts of a tensor along an axis, without it."""
    value = convert_to_tensor(value)
    size = value.shape[axis] if num is None else num
    if size is None:
        raise ValueError(f"Cannot infer argument `num` from shape {value.shape}")
    before = [builtins.slice(None)] * (axis % builtins.len(value.shape))
    places = [(*before, i) for i in builtins.range(size)]
    return [value[place] for place in places]


def split(value, num_or_size_splits, axis=0, num=None, name="split") -> list[Tensor]:
    """Parts along an axis: this many equal ones, or of the given sizes."""
    sizes = _static(num_or_size_splits)
    sizes = int(sizes) if np.ndim(sizes) == 0 else tuple(int(size) for size in sizes)
    result = apply("Split", [convert_to_tensor(value)], name, axis=int(_static(axis)), sizes=sizes)
    return [result] if isinstance(result, Tensor) else list(result)


def slice(input_, begin, size, name=None) -> Tensor:
    """`size` elements from `begin` on, along each axis."""
    return apply("Slice", [convert_to_tensor(input_), _sizes(begin), _sizes(size)], name or "Slice")


def strided_slice(input_, begin, end, strides=None, name=None, **masks) -> Tensor:
    """input_[begin:end:strides] along the first axes. Masks are not supported: index the tensor instead."""
    if any(masks.values()):
        raise NotImplementedError("masks of tf.strided_slice are not supported by leadline.tf: use tensor[begin:end]")
    steps = [1] * builtins.len(begin) if strides is None else strides
    return convert_to_tensor(input_)[tuple(builtins.slice(b, e, s) for b, e, s in zip(begin, end, steps))]


def getitem(tensor: Tensor, key) -> Tensor:
    """tensor[key]."""
    inputs: list[Tensor] = []

    def number(item):
        if item is None:
            return None
        if isinstance(item, Tensor) or hasattr(item, "_as_tensor"):
            item = convert_to_tensor(item)
            if item._array is None:
                inputs.append(item)
                return ("input", builtins.len(inputs) - 1)
        try:
            return item.__index__()
        except (AttributeError, TypeError):
            raise TypeError(
                "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar "
                f"tf.int32/tf.int64 tensors are valid indices, got {item!r}"
            ) from None

    if getattr(key, "dtype", None) in (dtypes.bool, np.bool_):
        return boolean_mask(tensor, key)
    parts: list[Any] = []
    for part in key if isinstance(key, tuple) else (key,):
        if isinstance(part, builtins.slice):
            parts.append(builtins.slice(number(part.start), number(part.stop), number(part.step)))
        elif part is None or part is Ellipsis:
            parts.append(part)
        elif isinstance(part, builtins.bool):
            raise TypeError("Only integers, slices, ellipsis and tf.newaxis are valid indices; use tf.boolean_mask")
        else:
            parts.append(number(part))
    return apply("StridedSlice", [tensor, *inputs], "strided_slice", key=tuple(parts))


def gather(params, indices, validate_indices=None, axis=None, batch_dims=0, name=None) -> Tensor:
    """The elements at `indices` along an axis."""
    params = convert_to_tensor(params)
    axis = int(batch_dims) if axis is None else int(_static(axis))
    batch = int(batch_dims)
    return apply("GatherV2", [params, convert_to_tensor(indices)], name or "GatherV2", axis=axis, batch_dims=batch)


def gather_nd(params, indices, batch_dims=0, name=None) -> Tensor:
    return apply("GatherNd", [convert_to_tensor(params), convert_to_tensor(indices)], name, batch_dims=int(batch_dims))


def scatter_nd(indices, updates, shape, name=None) -> Tensor:
    return apply("ScatterNd", [convert_to_tensor(indices), convert_to_tensor(updates), _sizes(shape)], name)


def tensor_scatter_nd_update(tensor, indices, updates, name=None) -> Tensor:
    return _scatter("TensorScatterUpdate", tensor, indices, updates, name)


def tensor_scatter_nd_add(tensor, indices, updates, name=None) -> Tensor:
    return _scatter("TensorScatterAdd", tensor, indices, updates, name)


def tensor_scatter_nd_sub(tensor, indices, updates, name=None) -> Tensor:
    return _scatter("TensorScatterSub", tensor, indices, updates, name)


def _scatter(op: str, tensor, indices, updates, name) -> Tensor:
    tensor = convert_to_tensor(tensor)
    return apply(op, [tensor, convert_to_tensor(indices), convert_to_tensor(updates, dtype_hint=tensor.dtype)], name)


def tile(input, multiples, name=None) -> Tensor:
    """The tensor repeated along each axis."""
    return apply("Tile", [convert_to_tensor(input), _sizes(multiples)], name or "Tile")


def repeat(input, repeats, axis=None, name=None) -> Tensor:
    """Each element several times, along an axis or of the flat tensor."""
    x = convert_to_tensor(input)
    if axis is None:
        x, axis = reshape(x, [-1]), 0
    counts = tuple(int(n) for n in np.ravel(_static(repeats)))
    return apply("Repeat", [x], name or "repeat", counts=counts, axis=int(axis))


def pad(tensor, paddings, mode="CONSTANT", constant_values=0, name=None) -> Tensor:
    """With elements before and after along each axis: a constant, or a reflection."""
    modes = {"CONSTANT": "constant", "REFLECT": "reflect", "SYMMETRIC": "symmetric"}
    if mode.upper() not in modes:
        raise ValueError(
            f"Value of argument `mode` expected to be one of CONSTANT, REFLECT or SYMMETRIC. Received {mode!r}."
        )
    pads = tuple((int(low), int(high)) for low, high in np.asarray(_static(paddings)).reshape(-1, 2))
    value = np.asarray(constant_values).item()
    return apply(
        "Pad", [convert_to_tensor(tensor)], name or "Pad", paddings=pads, mode=modes[mode.upper()], value=value
    )


def broadcast_to(input, shape, name=None) -> Tensor:
    return apply("BroadcastTo", [convert_to_tensor(input), _sizes(shape)], name or "BroadcastTo")


def reverse(tensor, axis, name=None) -> Tensor:
    return apply("ReverseV2", [convert_to_tensor(tensor)], name or "ReverseV2", axes=_ints(axis, "axis"))


def roll(input, shift, axis, name=None) -> Tensor:
    return apply(
        "Roll", [convert_to_tensor(input)], name or "Roll", shift=_ints(shift, "shift"), axis=_ints(axis, "axis")
    )


def where(condition, x=None, y=None, name=None) -> Tensor:
    """Elements of x where the condition holds and of y elsewhere; without both, where it holds."""
    if (x is None) != (y is None):
        raise ValueError("x and y must both be non-None or both be None.")
    condition = convert_to_tensor(condition)
    if x is None:
        return apply("Where", [condition], name or "Where")
    return apply(
        "SelectV2", [convert_to_tensor(condition, dtype=dtypes.bool), *convert_all([x, y])], name or "SelectV2"
    )


def boolean_mask(tensor, mask, axis=None, name="boolean_mask") -> Tensor:
    axis = 0 if axis is None else int(_static(axis))
    return apply("BooleanMask", [convert_to_tensor(tensor), convert_to_tensor(mask)], name, axis=axis)


def unique(x, out_idx=dtypes.int32, name=None):
    """The different elements in the order they come in, and which of them each element is."""
    from leadline.tf.nn import Unique

    return Unique(*apply("Unique", [convert_to_tensor(x)], name, out_idx=as_dtype(out_idx))[:2])


def unique_with_counts(x, out_idx=dtypes.int32, name=None):
    from leadline.tf.nn import UniqueWithCounts

    return UniqueWithCounts(*apply("Unique", [convert_to_tensor(x)], name, out_idx=as_dtype(out_idx)))


def one_hot(indices, depth, on_value=None, off_value=None, axis=None, dtype=None, name=None) -> Tensor:
    """A new axis of size `depth` that is on at the index and off elsewhere."""
    given = next((convert_to_tensor(v).dtype for v in (on_value, off_value) if v is not None), dtypes.float32)
    dtype = given if dtype is None else as_dtype(dtype)
    on = convert_to_tensor(1 if on_value is None else on_value, dtype=None if dtype.is_bool else dtype)
    off = convert_to_tensor(0 if off_value is None else off_value, dtype=None if dtype.is_bool else dtype)
    inputs = [convert_to_tensor(indices), cast(on, dtype), cast(off, dtype)]
    return apply("OneHot", inputs, name or "one_hot", depth=int(_static(depth)), axis=-1 if axis is None else int(axis))


def fill(dims, value, name=None) -> Tensor:
    return apply("Fill", [_sizes(dims), convert_to_tensor(value)], name or "Fill")


def zeros(shape, dtype=dtypes.float32, name=None, layout=None) -> Tensor:
    return fill(shape, _scalar(0, dtype), name or "zeros")


def ones(shape, dtype=dtypes.float32, name=None, layout=None) -> Tensor:
    return fill(shape, _scalar(1, dtype), name or "ones")


def _scalar(value, dtype) -> Tensor:
    dtype = as_dtype(dtype)
    if dtype is dtypes.string:
        return constant("")
    return constant(np.array(value, dtype.numpy))


def zeros_like(input, dtype=None, name=None) -> Tensor:
    x = convert_to_tensor(input)
    return apply("ZerosLike", [x if dtype is None else cast(x, dtype)], name or "zeros_like")


def ones_like(input, dtype=None, name=None) -> Tensor:
    x = convert_to_tensor(input)
    return apply("OnesLike", [x if dtype is None else cast(x, dtype)], name or "ones_like")


def range(start, limit=None, delta=1, dtype=None, name="range") -> Tensor:
    """Numbers from start up to, but without, limit."""
    if limit is None:
        start, limit = 0, start
    values = [
        convert_to_tensor(v) if dtype is None else cast(convert_to_tensor(v), dtype) for v in (start, limit, delta)
    ]
    if dtype is None:
        order = [dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64]
        widest = max((v.dtype for v in values), key=lambda d: order.index(d) if d in order else 0)
        values = [cast(v, widest) for v in values]
    return apply("Range", values, name)


def linspace(start, stop, num, name=None, axis=0) -> Tensor:
    """`num` numbers at equal distances from start to stop."""
    start, stop = convert_all([start, stop])
    if start.dtype.is_integer:
        start, stop = cast(start, dtypes.float64), cast(stop, dtypes.float64)
    if int(num) < 0:
        from leadline.tf.errors import InvalidArgumentError

        raise InvalidArgumentError(message=f"Requires num >= 0: {num} [Op:LinSpace]")
    return apply("LinSpace", [start, stop], name or "linspace", num=int(num))


def shape(input, out_type=dtypes.int32, name=None) -> Tensor:
    return apply("Shape", [convert_to_tensor(input)], name or "Shape", out_type=as_dtype(out_type))


def rank(input, name=None) -> Tensor:
    return apply("Rank", [convert_to_tensor(input)], name or "Rank")


def size(input, out_type=dtypes.int32, name=None) -> Tensor:
    return apply("Size", [convert_to_tensor(input)], name or "Size", out_type=as_dtype(out_type))


def sort(values, axis=-1, direction="ASCENDING", name=None) -> Tensor:
    return apply("Sort", [convert_to_tensor(values)], name or "sort", axis=int(axis), descending=_descending(direction))


def argsort(values, axis=-1, direction="ASCENDING", stable=False, name=None) -> Tensor:
    return apply(
        "ArgSort", [convert_to_tensor(values)], name or "argsort", axis=int(axis), descending=_descending(direction)
    )


def _descending(direction: str) -> builtins.bool:
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ValueError(f"`direction` should be one of ASCENDING or DESCENDING. Received: {direction}")
    return direction == "DESCENDING"


def meshgrid(*args, indexing="xy", name=None) -> list[Tensor]:
    """A grid from the values along each axis."""
    axes = [reshape(a, [-1]) for a in args]
    count = builtins.len(axes)
    order = list(builtins.range(count))
    if indexing == "xy" and count >= 2:
        order[:2] = [1, 0]
    whole = [int(axes[k].shape[0]) for k in order]
    result = []
    for i, values in enumerate(axes):
        dims = [1] * count
        dims[order.index(i)] = -1
        result.append(identity(broadcast_to(reshape(values, dims), whole)))
    return result


def sequence_mask(lengths, maxlen=None, dtype=dtypes.bool, name=None) -> Tensor:
    from leadline.tf.arithmetic import less, reduce_max

    lengths = convert_to_tensor(lengths)
    most = reduce_max(lengths) if maxlen is None else cast(maxlen, lengths.dtype)
    row = range(cast(0, lengths.dtype), most, cast(1, lengths.dtype))
    return cast(less(row, expand_dims(lengths, -1)), dtype)


def _segment(op: str):
    def function(data, segment_ids, num_segments=None, name=None) -> Tensor:
        count = None if num_segments is None else int(_static(num_segments))
        ids = convert_to_tensor(segment_ids)
        if count is None and graphs.known_value(ids) is not None and ids.shape.num_elements():
            count = int(graphs.known_value(ids).max()) + 1
        return apply(op, [convert_to_tensor(data), ids], name, count=count)

    return function


unsorted_segment_sum, unsorted_segment_prod = _segment("UnsortedSegmentSum"), _segment("UnsortedSegmentProd")
unsorted_segment_max, unsorted_segment_min = _segment("UnsortedSegmentMax"), _segment("UnsortedSegmentMin")


def segment_sum(data, segment_ids, name=None) -> Tensor:
    return unsorted_segment_sum(data, segment_ids, None, name)


def shape_n(input, out_type=dtypes.int32, name=None) -> list[Tensor]:
    return [shape(item, out_type) for item in input]


def broadcast_static_shape(shape_x, shape_y) -> TensorShape:
    from leadline.tf.shapes import broadcast

    return TensorShape(broadcast(TensorShape(shape_x)._dims, TensorShape(shape_y)._dims))


def searchsorted(sorted_sequence, values, side="left", out_type=dtypes.int32, name=None) -> Tensor:
    """Where values would be put into a sorted vector."""
    inputs = convert_all([sorted_sequence, values])
    return apply("SearchSorted", inputs, name or "searchsorted", side=side, out_type=as_dtype(out_type))
