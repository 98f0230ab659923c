# SPDX-License-Identifier: Apache-2.0
"""Rows of the ops that make, move and choose elements."""

from __future__ import annotations

import numpy as np

from leadline.tf import dtypes, shapes, tiles
from leadline.tf.engine import fits
from leadline.tf.errors import InvalidArgumentError
from leadline.tf.op import Call, row

_MOVED = ("float32", "int32", "int64", "int8", "uint8", "bool")


def moved(op: str, **names):
    """A lowering of an op that moves elements; `names` are attributes of the format by ours."""

    def lower(stretch, inputs, attrs, ins, outs):
        if ins[0][0].name not in _MOVED or not fits(ins, outs):
            return None
        return stretch.node(op, inputs, *outs, **{name: attrs[ours] for name, ours in names.items()})

    return lower


def sizes_of(call: Call, index: int):
    """The shape that an input holds, as far as it is known."""
    sizes = call.ints(index)
    if sizes is not None:
        return sizes
    dims = call.dims[index]
    return None if dims is None or not dims or dims[0] is None else (None,) * dims[0]


def _infer_reshape(call: Call):
    dims, wanted = call.dims[0], sizes_of(call, 1)
    if wanted is None or call.values[1] is None:
        return [(call.dtypes[0], wanted)]
    count = shapes.element_count(dims)
    call.refuse_if(wanted.count(-1) > 1, "Only one input size may be -1, not both 0 and 1")
    call.refuse_if(any(size < -1 for size in wanted), f"Size must be non-negative, not {min(wanted, default=0)}")
    known = 1
    for size in wanted:
        known *= 1 if size == -1 else size
    if -1 in wanted:
        if count is None:
            return [(call.dtypes[0], tuple(None if size == -1 else size for size in wanted))]
        if known == 0 or count % known:
            call.refuse(
                f"Input to reshape is a tensor with {count} values, but the requested shape requires a multiple of "
                f"{known}"
            )
        return [(call.dtypes[0], tuple(count // known if size == -1 else size for size in wanted))]
    if count is not None and count != known:
        call.refuse(f"Input to reshape is a tensor with {count} values, but the requested shape has {known}")
    return [(call.dtypes[0], wanted)]


def _engine_reshape(stretch, inputs, attrs, ins, outs):
    if ins[0][0].name not in _MOVED or not fits(ins[:1], outs):
        return None
    return stretch.node("RESHAPE", [inputs[0], stretch.constant(outs[0][1], np.int32)], *outs)


row(
    "Reshape", _infer_reshape, lambda x, size: x.reshape(tuple(int(n) for n in size)), view=True, engine=_engine_reshape
)


def _infer_transpose(call: Call):
    dims, order = call.dims[0], call.attrs["perm"]
    if dims is None:
        return [(call.dtypes[0], None if order is None else (None,) * len(order))]
    if order is None:
        return [(call.dtypes[0], dims[::-1])]
    call.refuse_if(
        len(order) != len(dims),
        f"transpose expects a vector of size {len(dims)}. But input(1) is a vector of size {len(order)}",
    )
    order = [
        a % len(dims) if -len(dims) <= a < len(dims) else call.refuse(f"{a} is out of range [0 .. {len(dims)})")
        for a in order
    ]
    call.refuse_if(len(set(order)) != len(order), f"{order} is not a permutation: an axis is missing")
    return [(call.dtypes[0], tuple(dims[a] for a in order))]


def _engine_transpose(stretch, inputs, attrs, ins, outs):
    if ins[0][0].name not in _MOVED or not fits(ins, outs) or not ins[0][1]:
        return None
    rank = len(ins[0][1])
    order = range(rank)[::-1] if attrs["perm"] is None else [a % rank for a in attrs["perm"]]
    return stretch.node("TRANSPOSE", [inputs[0], stretch.constant(order, np.int32)], *outs)


row(
    "Transpose",
    _infer_transpose,
    lambda x, *, perm, conjugate: np.conj(x.transpose(perm)) if conjugate else x.transpose(perm),
    view=True,
    engine=_engine_transpose,
)


def _infer_squeeze(call: Call):
    dims, axes = call.dims[0], call.attrs["axes"]
    if dims is None:
        return [(call.dtypes[0], None)]
    if not axes:
        return [(call.dtypes[0], None if None in dims else tuple(size for size in dims if size != 1))]
    for axis in axes:
        call.refuse_if(
            not -len(dims) <= axis < len(dims),
            f"Tried to squeeze dim index {axis} for tensor with {len(dims)} dimensions.",
        )
        size = dims[axis]
        call.refuse_if(size not in (1, None), f"Can not squeeze dim[{axis}], expected a dimension of 1, got {size}")
    gone = {axis % len(dims) for axis in axes}
    return [(call.dtypes[0], tuple(size for i, size in enumerate(dims) if i not in gone))]


def _as_reshape(stretch, inputs, attrs, ins, outs):
    return _engine_reshape(stretch, inputs, attrs, ins, outs)


row("Squeeze", _infer_squeeze, lambda x, *, axes: x.squeeze(axes or None), view=True, engine=_as_reshape)


def _infer_expand(call: Call):
    dims, axis = call.dims[0], call.attrs["axis"]
    if dims is None:
        return [(call.dtypes[0], None)]
    rank = len(dims)
    call.refuse_if(
        not -rank - 1 <= axis <= rank, f"Tried to expand dim index {axis} for tensor with {rank} dimensions."
    )
    place = axis if axis >= 0 else axis + rank + 1
    return [(call.dtypes[0], (*dims[:place], 1, *dims[place:]))]


row("ExpandDims", _infer_expand, lambda x, *, axis: np.expand_dims(x, axis), view=True, engine=_as_reshape)


def same(call: Call):
    return [(call.dtypes[0], call.dims[0])]


row("Identity", same, lambda x: x, view=True, rows=tiles.elementwise)
row("StopGradient", same, lambda x: x, view=True, rows=tiles.elementwise)


def _infer_ensure(call: Call):
    wanted, dims = call.attrs["shape"], call.dims[0]
    call.refuse_if(
        not shapes.compatible(dims, wanted),
        f"Shape of tensor {shapes.text(dims)} is not compatible with expected shape {shapes.text(wanted)}.",
    )
    merged = shapes.TensorShape(dims).merge_with(wanted)._dims
    return [(call.dtypes[0], merged)]


def _ensure(x, *, shape):
    return x


row("EnsureShape", _infer_ensure, _ensure, view=True)
row("ZerosLike", same, np.zeros_like, rows=tiles.elementwise)
row("OnesLike", same, np.ones_like, rows=tiles.elementwise)


def _axis(call: Call, axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        call.refuse(f"axis {axis} is out of range [{-rank}, {rank})")
    return axis % rank


def _infer_concat(call: Call):
    dtype = call.same_dtypes()
    known = [dims for dims in call.dims if dims is not None]
    if len(known) < len(call.dims):
        return [(dtype, None)]
    rank = len(known[0])
    call.refuse_if(rank == 0, "Can't concatenate scalars (use tf.stack instead)")
    axis = call.attrs["axis"]
    call.refuse_if(
        not -rank <= axis < rank,
        f"ConcatOp : Expected concatenating dimensions in the range [{-rank}, {rank}), but got {axis}",
    )
    axis %= rank
    for i, dims in enumerate(known):
        bad = len(dims) != rank or any(
            a != b and None not in (a, b) for k, (a, b) in enumerate(zip(dims, known[0])) if k != axis
        )
        rule = (
            f"Dimension {axis} in both shapes must be equal"
            if len(dims) == rank
            else "Ranks of all inputs should match"
        )
        call.refuse_if(
            bad, f"ConcatOp : {rule}: shape[0] = {shapes.text(known[0])} vs. shape[{i}] = {shapes.text(dims)}"
        )
    total = None if any(dims[axis] is None for dims in known) else sum(dims[axis] for dims in known)
    return [(dtype, (*known[0][:axis], total, *known[0][axis + 1 :]))]


def _engine_concat(stretch, inputs, attrs, ins, outs):
    return moved("CONCATENATION", axis="axis")(stretch, inputs, attrs, ins, outs)


row("ConcatV2", _infer_concat, lambda *xs, axis: np.concatenate(xs, axis), engine=_engine_concat)


def _infer_pack(call: Call):
    dtype = call.same_dtypes()
    dims = call.dims[0]
    for i, other in enumerate(call.dims):
        if not shapes.compatible(dims, other):
            call.refuse(
                f"Shapes of all inputs must match: values[0].shape = {shapes.text(dims)} != values[{i}].shape = "
                f"{shapes.text(other)}"
            )
        if dims is None or None in dims:
            dims = shapes.TensorShape(dims).merge_with(other)._dims
    if dims is None:
        return [(dtype, None)]
    axis = call.attrs["axis"]
    call.refuse_if(not -len(dims) - 1 <= axis <= len(dims), f"axis = {axis} not in [{-len(dims) - 1}, {len(dims) + 1})")
    place = axis if axis >= 0 else axis + len(dims) + 1
    return [(dtype, (*dims[:place], len(call.dims), *dims[place:]))]


row("Pack", _infer_pack, lambda *xs, axis: np.stack(xs, axis))


def _infer_split(call: Call):
    dims, axis, sizes = call.dims[0], call.attrs["axis"], call.attrs["sizes"]
    if dims is None:
        return [(call.dtypes[0], None)] * (sizes if isinstance(sizes, int) else len(sizes))
    axis = _axis(call, axis, len(dims))
    size = dims[axis]
    if isinstance(sizes, int):
        call.refuse_if(
            size is not None and size % sizes != 0,
            f"Number of ways to split should evenly divide the split dimension, but got split_dim {axis} "
            f"(size = {size}) and num_split {sizes}",
        )
        parts = [None if size is None else size // sizes] * sizes
    else:
        rest = None if size is None else size - sum(part for part in sizes if part >= 0)
        parts = [rest if part == -1 else part for part in sizes]
        bad = size is not None and (sum(parts) != size or min(parts) < 0)
        call.refuse_if(
            bad,
            f"the sizes {list(sizes)} do not add up to the size of the split dimension, {size}",
        )
    return [(call.dtypes[0], (*dims[:axis], part, *dims[axis + 1 :])) for part in parts]


def _split(x, *, axis, sizes):
    if isinstance(sizes, int):
        parts = np.split(x, sizes, axis)
    else:
        rest = x.shape[axis] - sum(size for size in sizes if size >= 0)
        ends = np.cumsum([rest if size == -1 else size for size in sizes])
        parts = np.split(x, ends[:-1], axis)
    return tuple(np.ascontiguousarray(part) for part in parts)


row("Split", _infer_split, _split)


def _infer_tile(call: Call):
    dims, times = call.dims[0], sizes_of(call, 1)
    if dims is None or times is None:
        return [(call.dtypes[0], None)]
    call.refuse_if(
        len(times) != len(dims),
        f"Expected multiples argument to be a vector of length {len(dims)} but got length {len(times)}",
    )
    for i, count in enumerate(times):
        call.refuse_if(count is not None and count < 0, f"Expected multiples[{i}] >= 0, but got {count}")
    return [(call.dtypes[0], tuple(None if None in (a, b) else a * b for a, b in zip(dims, times)))]


row("Tile", _infer_tile, lambda x, times: np.tile(x, tuple(times)))


def _infer_repeat(call: Call):
    dims, counts, axis = call.dims[0], call.attrs["counts"], call.attrs["axis"]
    if dims is None:
        return [(call.dtypes[0], None)]
    axis = _axis(call, axis, len(dims))
    size = dims[axis]
    bad = len(counts) != 1 and size not in (None, len(counts))
    call.refuse_if(bad or min(counts, default=0) < 0, f"repeats {list(counts)} do not fit the size {size}")
    total = None if size is None else counts[0] * size if len(counts) == 1 else sum(counts)
    return [(call.dtypes[0], (*dims[:axis], total, *dims[axis + 1 :]))]


row("Repeat", _infer_repeat, lambda x, *, counts, axis: np.repeat(x, counts[0] if len(counts) == 1 else counts, axis))
row(
    "SearchSorted",
    lambda call: [(call.attrs["out_type"], call.dims[1])] if call.same_dtypes() else [],
    lambda ordered, values, *, side, out_type: np.searchsorted(ordered, values, side),
)


def _infer_broadcast(call: Call):
    dims, wanted = call.dims[0], sizes_of(call, 1)
    if dims is not None and call.values[1] is not None:
        try:
            ok = shapes.broadcast(dims, wanted) == wanted or None in dims
        except ValueError:
            ok = False
        call.refuse_if(not ok, f"Incompatible shapes: {shapes.text(dims)} vs. {shapes.text(wanted)}")
    return [(call.dtypes[0], wanted)]


row("BroadcastTo", _infer_broadcast, lambda x, size: np.broadcast_to(x, tuple(size)), view=True)


def _infer_fill(call: Call):
    dims = sizes_of(call, 0)
    for _i, size in enumerate(dims or ()):
        call.refuse_if(size is not None and size < 0, f"Dimension {size} must be >= 0")
    return [(call.dtypes[1], dims)]


def _fill(size, value):
    dims = tuple(int(n) for n in size)
    return np.zeros(dims, value.dtype) if value.dtype.kind in "fiub" and not value else np.full(dims, value)


row("Fill", _infer_fill, _fill)


def _infer_range(call: Call):
    dtype = call.same_dtypes()
    if any(value is None for value in call.values):
        return [(dtype, (None,))]
    start, limit, delta = (value.item() for value in call.values)
    call.refuse_if(delta == 0, f"Requires delta != 0: {delta}")
    call.refuse_if(delta > 0 and start > limit, f"Requires start <= limit when delta > 0: {start}/{limit}")
    call.refuse_if(delta < 0 and start < limit, f"Requires start >= limit when delta < 0: {start}/{limit}")
    return [(dtype, (max(0, int(np.ceil((limit - start) / delta))),))]


def _range(start, limit, delta):
    count = max(0, int(np.ceil((limit.item() - start.item()) / delta.item())))
    return start + np.arange(count).astype(start.dtype) * delta


row("Range", _infer_range, _range)


def _infer_line(call: Call):
    dtype = call.same_dtypes()
    return [(dtype, (call.attrs["num"],))]


row("LinSpace", _infer_line, lambda start, stop, *, num: np.linspace(start, stop, num))


def _infer_shape(call: Call):
    return [(call.attrs["out_type"], (None if call.dims[0] is None else len(call.dims[0]),))]


row("Shape", _infer_shape, lambda x, *, out_type: np.array(x.shape, out_type.numpy), reads_shapes_only=True)
row("Rank", lambda call: [(dtypes.int32, ())], lambda x: np.array(x.ndim, np.int32), reads_shapes_only=True)
row(
    "Size",
    lambda call: [(call.attrs["out_type"], ())],
    lambda x, *, out_type: np.array(x.size, out_type.numpy),
    reads_shapes_only=True,
)


def _infer_pad(call: Call):
    dims, pads = call.dims[0], call.attrs["paddings"]
    if dims is None:
        return [(call.dtypes[0], None)]
    call.refuse_if(
        len(pads) != len(dims),
        f"The first dimension of paddings must be the rank of inputs[{len(pads)},2] {shapes.text(dims)}",
    )
    for low, high in pads:
        call.refuse_if(low < 0 or high < 0, f"Paddings must be non-negative: {low} {high}")
    if call.attrs["mode"] != "constant":
        less = 1 if call.attrs["mode"] == "reflect" else 0
        for size, (low, high) in zip(dims, pads):
            bad = size is not None and max(low, high) > size - less
            call.refuse_if(
                bad,
                f"paddings must be {'less' if less else 'no greater'} than the dimension: {low}, {high} for {size}",
            )
    return [
        (
            call.dtypes[0],
            tuple(None if size is None else size + sum(pad) for size, pad in zip(dims, pads)),
        )
    ]


def _pad(x, *, paddings, mode, value):
    return np.pad(x, paddings, mode, **({"constant_values": value} if mode == "constant" else {}))


row("Pad", _infer_pad, _pad)


def _infer_reverse(call: Call):
    for axis in call.attrs["axes"] if call.dims[0] is not None else ():
        _axis(call, axis, len(call.dims[0]))
    return same(call)


row("ReverseV2", _infer_reverse, lambda x, *, axes: np.flip(x, axes), view=True)
row("Roll", same, lambda x, *, shift, axis: np.roll(x, shift, axis))


def _infer_one_hot(call: Call):
    dims, depth, axis = call.dims[0], call.attrs["depth"], call.attrs["axis"]
    dtype = call.dtypes[1]
    if dims is None:
        return [(dtype, None)]
    place = len(dims) if axis == -1 else axis
    call.refuse_if(
        not 0 <= place <= len(dims), f"Expected axis to be -1 or between [0, {len(dims) + 1}).  But received: {axis}"
    )
    return [(dtype, (*dims[:place], depth, *dims[place:]))]


def _one_hot(indices, on, off, *, depth, axis):
    place = indices.ndim if axis == -1 else axis
    numbers = np.arange(depth).reshape((depth,) + (1,) * (indices.ndim - place))
    return np.where(np.expand_dims(indices, place) == numbers, on, off)


row("OneHot", _infer_one_hot, _one_hot)


def _infer_where(call: Call):
    dims = call.dims[0]
    return [(dtypes.int64, (None, None if dims is None else len(dims)))]


row("Where", _infer_where, lambda x: np.argwhere(x))


def _infer_mask(call: Call):
    dims, mask, axis = call.dims[0], call.dims[1], call.attrs["axis"]
    call.refuse_if(call.dtypes[1] is not dtypes.bool, f"the mask is {call.dtypes[1].name}, expected bool")
    if dims is None or mask is None:
        return [(call.dtypes[0], None)]
    part = dims[axis : axis + len(mask)]
    if not shapes.compatible(part, mask):
        raise ValueError(f"Shapes {shapes.TensorShape(part)} and {shapes.TensorShape(mask)} are incompatible")
    return [(call.dtypes[0], (*dims[:axis], None, *dims[axis + len(mask) :]))]


row("BooleanMask", _infer_mask, lambda x, mask, *, axis: x[(slice(None),) * axis + (mask,)])


def _infer_unique(call: Call):
    if call.dims[0] is not None and len(call.dims[0]) != 1:
        call.refuse("unique expects a 1D vector.")
    index = (call.attrs["out_idx"], call.dims[0])
    return [(call.dtypes[0], (None,)), index, (call.attrs["out_idx"], (None,))]


def _unique(x, *, out_idx):
    _, first, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(first, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    return x[first[order]], place[inverse.reshape(-1)], counts[order]


row("Unique", _infer_unique, _unique)


def require_indices(indices: np.ndarray, size: int, op: str) -> None:
    """Raises for an index that does not exist; negative ones do not count from the end."""
    bad = (indices < 0) | (indices >= size)
    if bad.any():
        place = tuple(int(i) for i in np.argwhere(bad)[0])
        raise InvalidArgumentError(message=f"indices{list(place)} = {indices[place]} is not in [0, {size}) [Op:{op}]")
