# SPDX-License-Identifier: Apache-2.0
"""Rows of the ops that pick elements by place: slices, gathers, scatters."""

from __future__ import annotations

from typing import Any

import numpy as np

from leadline.tf import dtypes, shapes
from leadline.tf.movement import require_indices
from leadline.tf.op import Call, row


def _infer_strided(call: Call):
    dims = call.dims[0]
    if dims is None:
        return [(call.dtypes[0], None)]
    key = resolve(call.attrs["key"], call.values[1:])
    used = sum(part is not Ellipsis and part is not None for part in key)
    call.refuse_if(used > len(dims), f"Index out of range using input dim {len(dims)}; input has only {len(dims)} dims")
    rest = len(dims) - used
    if Ellipsis not in key:
        key = (*key, Ellipsis)
    result: list = []
    axis = 0
    for part in key:
        if part is Ellipsis:
            result += dims[axis : axis + rest]
            axis += rest
        elif part is None:
            result.append(1)
        elif isinstance(part, slice):
            result.append(_slice_size(call, part, dims[axis]))
            axis += 1
        else:
            size = dims[axis]
            if part is not UNKNOWN and size is not None and not -size <= part < size:
                call.refuse(f"slice index {part} of dimension {axis} out of bounds.")
            axis += 1
    return [(call.dtypes[0], tuple(result))]


class _Unknown:
    pass


UNKNOWN = _Unknown()


def _slice_size(call: Call, part: slice, size):
    if part.step is not None and part.step is not UNKNOWN and part.step == 0:
        call.refuse("strides[0] must be non-zero")
    if size is None or UNKNOWN in (part.start, part.stop, part.step):
        return size if (part.start, part.stop, part.step) == (None, None, None) else None
    return len(range(*part.indices(size)))


def resolve(key, values) -> tuple:
    """A key with numbers in place of ('input', n), where they are known."""

    def number(item):
        if isinstance(item, tuple):
            value = values[item[1]]
            return UNKNOWN if value is None else int(value)
        return item

    return tuple(
        slice(number(part.start), number(part.stop), number(part.step)) if isinstance(part, slice) else number(part)
        for part in key
    )


def _strided(x, *numbers, key):
    result = x[resolve(key, numbers)]
    return result if isinstance(result, np.ndarray) else np.asarray(result)


row("StridedSlice", _infer_strided, _strided, view=True)


def _infer_slice(call: Call):
    dims, begin, size = call.dims[0], call.ints(1), call.ints(2)
    if dims is None or begin is None or size is None:
        known = next((d[0] for d in call.dims[1:] if d), None)
        return [(call.dtypes[0], None if known is None else (None,) * known)]
    call.refuse_if(
        len(begin) != len(dims) or len(size) != len(dims),
        f"Expected begin and size arguments to be 1-D tensors of size {len(dims)}, but got shapes [{len(begin)}] and "
        f"[{len(size)}] instead.",
    )
    result = []
    for axis, (whole, b, s) in enumerate(zip(dims, begin, size)):
        if whole is not None:
            call.refuse_if(not 0 <= b <= whole, f"Expected begin[{axis}] in [0, {whole}], but got {b}")
            call.refuse_if(
                s != -1 and not 0 <= s <= whole - b, f"Expected size[{axis}] in [0, {whole - b}], but got {s}"
            )
            s = whole - b if s == -1 else s
        result.append(None if s == -1 else s)
    return [(call.dtypes[0], tuple(result))]


def _slice(x, begin, size):
    return x[tuple(slice(int(b), None if s == -1 else int(b + s)) for b, s in zip(begin, size))]


row("Slice", _infer_slice, _slice, view=True)


def _infer_gather(call: Call):
    dims, index, axis, batch = call.dims[0], call.dims[1], call.attrs["axis"], call.attrs["batch_dims"]
    call.refuse_if(not call.dtypes[1].is_integer, f"indices are {call.dtypes[1].name}, expected int32 or int64")
    if dims is None or index is None:
        return [(call.dtypes[0], None)]
    call.refuse_if(not -len(dims) <= axis < len(dims), f"params must be at least {axis + 1} dimensional")
    axis %= len(dims)
    return [(call.dtypes[0], (*dims[:axis], *index[batch:], *dims[axis + 1 :]))]


def _gather(x, indices, *, axis, batch_dims):
    axis %= x.ndim
    require_indices(indices, x.shape[axis], "GatherV2")
    if not batch_dims:
        return np.take(x, indices, axis)
    if axis == batch_dims == x.ndim - 1 == indices.ndim - 1:
        return np.take_along_axis(x, indices, axis)
    lead = x.shape[:batch_dims]
    count = int(np.prod(lead))
    flat, places = x.reshape((count, *x.shape[batch_dims:])), indices.reshape((count, *indices.shape[batch_dims:]))
    parts = [np.take(flat[i], places[i], axis - batch_dims) for i in range(count)]
    result = np.stack(parts) if parts else np.zeros((0,), x.dtype)
    return result.reshape(lead + result.shape[1:])


row("GatherV2", _infer_gather, _gather)


def _infer_gather_nd(call: Call):
    dims, index, batch = call.dims[0], call.dims[1], call.attrs["batch_dims"]
    if dims is None or index is None or index[-1] is None:
        return [(call.dtypes[0], None)]
    depth = index[-1]
    call.refuse_if(
        depth + batch > len(dims),
        f"index innermost dimension length must be <= params rank; saw: {depth} vs. {len(dims)}",
    )
    return [(call.dtypes[0], (*index[:-1], *dims[batch + depth :]))]


def _gather_nd(x, indices, *, batch_dims):
    depth = indices.shape[-1]
    for i in range(depth):
        require_indices(indices[..., i], x.shape[batch_dims + i], "GatherNd")
    leading = np.indices(indices.shape[:-1], sparse=True)[:batch_dims] if batch_dims else ()
    places = (*leading, *(indices[..., i] for i in range(depth)))
    return x[places]


row("GatherNd", _infer_gather_nd, _gather_nd)


def _infer_scatter(call: Call):
    dtype = call.dtypes[1]
    sizes = call.ints(2)
    return [(dtype, sizes if sizes is not None else None)]


def _scatter_add(target: np.ndarray, indices, updates, function) -> np.ndarray:
    for i in range(indices.shape[-1]):
        require_indices(indices[..., i], target.shape[i], "ScatterNd")
    function(target, tuple(indices[..., i] for i in range(indices.shape[-1])), updates)
    return target


def _put(target, places, updates) -> None:
    target[places] = updates


row(
    "ScatterNd",
    _infer_scatter,
    lambda indices, updates, size: _scatter_add(np.zeros(tuple(size), updates.dtype), indices, updates, np.add.at),
)


def _same(call: Call):
    call.refuse_if(
        call.dtypes[0] is not call.dtypes[2], f"updates are {call.dtypes[2].name}, expected {call.dtypes[0].name}"
    )
    return [(call.dtypes[0], call.dims[0])]


for _name, _function in (
    ("TensorScatterUpdate", _put), ("TensorScatterAdd", np.add.at), ("TensorScatterSub", np.subtract.at),
    ("TensorScatterMax", np.maximum.at), ("TensorScatterMin", np.minimum.at),
):  # fmt: skip
    row(
        _name, _same, lambda x, indices, updates, function=_function: _scatter_add(x.copy(), indices, updates, function)
    )


def _infer_segment(call: Call):
    dims, ids, count = call.dims[0], call.dims[1], call.attrs["count"]
    if dims is None or ids is None:
        return [(call.dtypes[0], None)]
    call.refuse_if(
        not shapes.compatible(dims[: len(ids)], ids),
        f"data.shape = {shapes.text(dims)} does not start with segment_ids.shape = {shapes.text(ids)}",
    )
    return [(call.dtypes[0], (count, *dims[len(ids) :]))]


def _segments(function, start):
    def compute(x, ids, *, count):
        if count is None:
            count = int(ids.max()) + 1 if ids.size else 0
        kept = ids >= 0
        require_indices(ids[kept], count, "UnsortedSegment")
        first = start(dtypes.as_dtype(x.dtype))
        result = np.full((count, *x.shape[ids.ndim :]), first, x.dtype)
        function.at(result, ids[kept], x[kept])
        return result

    return compute


_SEGMENTS: list[tuple[str, Any, Any]] = [
    ("SegmentSum", np.add, lambda dtype: 0), ("SegmentProd", np.multiply, lambda dtype: 1),
    ("SegmentMax", np.maximum, lambda dtype: dtype.min), ("SegmentMin", np.minimum, lambda dtype: dtype.max),
]  # fmt: skip
for _name, _function, _start in _SEGMENTS:
    row(f"Unsorted{_name}", _infer_segment, _segments(_function, _start))
