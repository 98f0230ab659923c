# SPDX-License-Identifier: Apache-2.0
"""Rows of the reductions, and of what orders or accumulates along an axis."""

from __future__ import annotations

import numpy as np

from leadline.tf import dtypes, tiles
from leadline.tf.elementwise import _KINDS, check_types
from leadline.tf.engine import fits
from leadline.tf.op import Call, row


def kept_dims(dims, axes, keepdims: bool):
    """The shape without the axes; None stands for all of them."""
    if dims is None:
        return None if axes is not None or keepdims else ()
    gone = set(range(len(dims))) if axes is None else set(axes)
    if keepdims:
        return tuple(1 if i in gone else size for i, size in enumerate(dims))
    return tuple(size for i, size in enumerate(dims) if i not in gone)


def _infer(kind: str):
    def infer(call: Call):
        check_types(call, _KINDS[kind])
        return [(call.dtypes[0], kept_dims(call.dims[0], call.attrs["axes"], call.attrs["keepdims"]))]

    return infer


def normalized_axes(axis, rank: int | None):
    """Axes as a sorted tuple of numbers from 0; None for all. Raises InvalidArgumentError for one that is not there."""
    from leadline.tf.errors import InvalidArgumentError

    if axis is None:
        return None
    axes = [int(a) for a in np.ravel(np.asarray(axis))]
    if rank is None:
        return tuple(axes)
    for a in axes:
        if not -rank <= a < rank:
            raise InvalidArgumentError(message=f"Invalid reduction dimension ({a} for input with {rank} dimension(s)")
    return tuple(sorted({a % rank for a in axes}))


def _wide(x: np.ndarray):
    """Sums of half precision are kept in float32."""
    return np.float32 if x.dtype.itemsize == 2 and x.dtype.kind not in "iu" else x.dtype


def _sum(x, *, axes, keepdims):
    return np.sum(x, axis=axes, keepdims=keepdims, dtype=_wide(x))


def _prod(x, *, axes, keepdims):
    return np.prod(x, axis=axes, keepdims=keepdims, dtype=_wide(x))


def _mean(x, *, axes, keepdims):
    if x.dtype.kind in "iu":
        total = np.sum(x, axis=axes, keepdims=keepdims, dtype=x.dtype)
        count = x.size // max(total.size, 1)
        return np.trunc(total / count) if count else total
    if not x.size:  # numpy's mean warns
        return np.sum(x, axis=axes, keepdims=keepdims) * x.dtype.type(np.nan)
    return np.mean(x, axis=axes, keepdims=keepdims, dtype=_wide(x))


def _extreme(function, otherwise):
    def reduce(x, *, axes, keepdims):
        limits = dtypes.as_dtype(x.dtype)
        empty = (-np.inf if otherwise == "min" else np.inf) if limits.is_floating else getattr(limits, otherwise)
        return function.reduce(x, axis=axes, keepdims=keepdims, initial=empty)

    return reduce


def _logic(function):
    return lambda x, *, axes, keepdims: function(x, axis=axes, keepdims=keepdims)


def _norm(x, *, axes, keepdims):
    return np.sqrt(np.sum(np.abs(x) ** 2, axis=axes, keepdims=keepdims))


def _engine(op: str, types=("float32",)):
    def lower(stretch, inputs, attrs, ins, outs):
        (dtype, dims), axes = ins[0], attrs["axes"]
        if dtype.name not in types or not fits(ins, outs) or not dims:
            return None
        chosen = stretch.constant(range(len(dims)) if axes is None else axes, np.int32)
        return stretch.node(op, [inputs[0], chosen], *outs, keep_dims=attrs["keepdims"])

    return lower


row("Sum", _infer("number"), _sum, engine=_engine("SUM"), rows=tiles.reduction("add"))
row("Mean", _infer("number"), _mean, engine=_engine("MEAN"), rows=tiles.reduction("add", divide=True))
row("Prod", _infer("number"), _prod, engine=_engine("REDUCE_PROD"), rows=tiles.reduction("multiply"))
row("Max", _infer("real"), _extreme(np.maximum, "min"), engine=_engine("REDUCE_MAX"), rows=tiles.reduction("maximum"))
row("Min", _infer("real"), _extreme(np.minimum, "max"), engine=_engine("REDUCE_MIN"), rows=tiles.reduction("minimum"))
row("All", _infer("bool"), _logic(np.all), engine=_engine("REDUCE_ALL", ("bool",)), rows=tiles.reduction("logical_and"))
row("Any", _infer("bool"), _logic(np.any), engine=_engine("REDUCE_ANY", ("bool",)), rows=tiles.reduction("logical_or"))
row("EuclideanNorm", _infer("field"), _norm, rows=tiles.reduction(""))


def _infer_arg(call: Call):
    dims, axis = call.dims[0], call.attrs["axis"]
    if dims is None:
        return [(call.attrs["output_type"], None)]
    if not -len(dims) <= axis < len(dims):
        call.refuse(f"Expected dimension in the range [{-len(dims)}, {len(dims)}), but got {axis}")
    axis %= len(dims)
    call.refuse_if(dims[axis] == 0, f"Reduction axis {axis} is empty in shape {list(dims)}")
    return [(call.attrs["output_type"], dims[:axis] + dims[axis + 1 :])]


row("ArgMax", _infer_arg, lambda x, *, axis, output_type: np.argmax(x, axis))
row("ArgMin", _infer_arg, lambda x, *, axis, output_type: np.argmin(x, axis))


def same(call: Call):
    return [(call.dtypes[0], call.dims[0])]


def _infer_along(call: Call):
    dims, axis = call.dims[0], call.attrs["axis"]
    if dims is not None and not -len(dims) <= axis < len(dims):
        call.refuse(f"ScanOp: Expected scan axis in the range [{-len(dims)}, {len(dims)}), but got {axis}")
    return [(call.dtypes[0], dims)]


def _scan(function, start: int):
    def scan(x, *, axis, exclusive, reverse):
        if reverse:
            x = np.flip(x, axis)
        result = function(x, axis=axis, dtype=x.dtype)
        if exclusive:
            result = np.roll(result, 1, axis)
            index = [slice(None)] * x.ndim
            index[axis] = slice(0, 1)
            result[tuple(index)] = start
        return np.flip(result, axis) if reverse else result

    return scan


row("Cumsum", _infer_along, _scan(np.cumsum, 0), scratch=1)
row("Cumprod", _infer_along, _scan(np.cumprod, 1), scratch=1)


def _order(x, *, axis, descending):
    """Where each element of the sorted order comes from; equal ones keep their order."""
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    backwards = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
    return np.flip(x.shape[axis] - 1 - backwards, axis)


def _sort(x, *, axis, descending):
    ordered = np.sort(x, axis=axis, kind="stable")
    return np.flip(ordered, axis) if descending else ordered


row("Sort", _infer_along, _sort, scratch=1)
row("ArgSort", lambda call: [(dtypes.int32, _infer_along(call)[0][1])], _order, scratch=4)


def _infer_top_k(call: Call):
    dims, k = call.dims[0], call.attrs["k"]
    if dims is None:
        return [(call.dtypes[0], None), (dtypes.int32, None)]
    call.refuse_if(not dims, "input must have at least 1 dimension, got a scalar")
    call.refuse_if(
        dims[-1] is not None and dims[-1] < k, f"input must have at least k columns. Had {dims[-1]}, needed {k}"
    )
    result = (*dims[:-1], k)
    return [(call.dtypes[0], result), (dtypes.int32, result)]


def _top_k(x, *, k, sorted):
    order = _order(x, axis=-1, descending=True)[..., :k]
    return np.take_along_axis(x, order, -1), order.astype(np.int32)


row("TopKV2", _infer_top_k, _top_k, scratch=4)
