# SPDX-License-Identifier: Apache-2.0
"""GATHER GATHER_ND."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from harness import Case, Data, both_ways, constant, given, result

from leadline import DType

TYPES = [np.float32, np.float16, ml_dtypes.bfloat16, np.uint8, np.int8, np.int16, np.int32, np.int64, bool]
INDEX_TYPES = [np.int16, np.int32, np.int64]


def cases():
    yield from gathers()
    yield from batched_gathers()
    yield from gather_types()
    yield from tuples()


def gathers():
    for shape in ((5,), (4, 3), (2, 3, 4), (2, 3, 1, 4), (1, 2, 3, 2, 2), (2, 1, 2, 1, 3, 2)):
        for axis in range(-len(shape), len(shape)):
            for index_shape in ((), (1,), (7,), (2, 3), (2, 1, 2), (0,), (2, 0)):
                if len(shape) + len(index_shape) - 1 > 8:
                    continue
                x = Data(f"gather {shape} {axis} {index_shape}")
                at = x.ints(INDEX_TYPES[len(index_shape) % 3], index_shape, 0, shape[axis] - 1)
                indices = both_ways(given(at))[axis % 2]
                name = f"{shape} axis {axis} by {index_shape} {indices.role}"
                yield Case("GATHER", name, [given(x.floats(shape)), indices], [result(np.float32)], axis=axis)


def batched_gathers():
    for shape, index_shape, axis, batch_dims in (
        ((2, 5), (2, 3), 1, 1), ((2, 5), (2,), 1, 1), ((2, 5, 3), (2, 4), 1, 1), ((2, 5, 3), (2, 4), 2, 1),
        ((2, 5, 3), (2, 5, 2), 2, 2), ((2, 5, 3), (2, 5), 2, 2), ((2, 3, 4, 5), (2, 2, 2), 1, 1),
        ((2, 3, 4, 5), (2, 3, 6), 2, 2),
        ((2, 3, 4, 5), (2, 3, 6), 3, 2), ((2, 3, 4, 5), (2, 3, 4, 2), 3, 3), ((2, 3, 4, 5), (2, 3, 4), -1, 3),
        ((2, 5, 3), (2, 5, 2), -1, -1), ((2, 5, 3), (2, 4), 1, -1), ((2, 5), (2, 3, 2), 1, -2),
        ((2, 5), (2, 3), -1, -1),
        ((2, 3, 4), (5,), 1, -1), ((1, 7), (1, 2), 1, 1), ((2, 0, 3), (2, 0), 2, 1), ((0, 3), (0, 2), 1, 1),
        ((2, 3, 2, 2, 2), (2, 3, 4), 3, 2),
    ):  # fmt: skip
        x = Data(f"gather {shape} {axis} {batch_dims} {index_shape}")
        at = x.ints(np.int32, index_shape, 0, max(shape[axis] - 1, 0))
        for kind in (np.float32, np.int8):
            for indices in both_ways(given(at)):
                name = f"{np.dtype(kind).name} {shape} axis {axis} batch {batch_dims} by {index_shape} {indices.role}"
                yield Case(
                    "GATHER",
                    name,
                    [given(x.any(kind, shape)), indices],
                    [result(kind)],
                    axis=axis,
                    batch_dims=batch_dims,
                )


def gather_types():
    x = Data("gather types")
    for kind in TYPES:
        for index in INDEX_TYPES:
            for axis in (0, 1, -1):
                at = x.ints(index, (5,), 0, 2)
                for source in both_ways(given(x.any(kind, (3, 4, 3)))):
                    indices = constant(at) if source.role == "constant" else given(at)
                    name = f"{np.dtype(kind).name} by {np.dtype(index).name} axis {axis} {source.role}"
                    yield Case("GATHER", name, [source, indices], [result(kind)], axis=axis)
    for index in INDEX_TYPES:
        for index_shape in ((), (1,), (7,), (2, 3)):
            at = x.ints(index, index_shape, 0, 4)
            for source in both_ways(given(x.any(object, (5,)))):
                for indices in both_ways(given(at)):
                    name = f"strings by {np.dtype(index).name} {index_shape} {source.role} {indices.role}"
                    yield Case("GATHER", name, [source, indices], [result(object)], axis=0)
    for shape, axis in (((6, 4), 0), ((3, 5), 0), ((3, 3), 1), ((2, 3, 4), 1), ((7,), 0), ((2, 3, 5), 2)):
        four_bits = constant(x.ints(np.int8, shape, -8, 7), dtype=DType.INT4)
        at = x.ints(np.int32, (4,), 0, shape[axis] - 1)
        fault = {}
        if np.prod(shape[axis + 1 :]) % 2:
            fault = dict(litert="wrong", because="slices of an odd number of int4 are taken for whole bytes")
            fault["reference"] = lambda *_, v=four_bits.value, at=at, axis=axis: [np.take(v, at, axis)]
        for indices in both_ways(given(at)):
            name = f"int4 {shape} axis {axis} {indices.role}"
            yield Case("GATHER", name, [four_bits, indices], [result(DType.INT4)], axis=axis, **fault)
    for kind, scale, zero in ((np.int8, 0.5, -128), (np.uint8, 3.0, 255), (np.int16, 1e-3, 0)):
        inputs = [given(x.ints(kind, (3, 4)), scale, zero), given(np.array([2, 0, 2], np.int32))]
        yield Case(
            "GATHER", f"quantized {np.dtype(kind).name}", inputs, [result(kind, scale, zero)], axis=0, exact=True
        )
    runs = [[x.floats((4, n)), np.array(i, np.int32)] for n, i in ((3, [0]), (1, [3, 3, 3, 3]), (2, [1, 2]))]
    inputs = [given(x.floats((4, 5)), declared=(4, 1)), given(np.array([2, 0, 2], np.int32), declared=(1,))]
    yield Case("GATHER", "resized", inputs, [result(np.float32)], axis=0, runs=runs)


def tuples():
    for shape, index_shape in (
        ((5,), (1,)), ((5,), (3, 1)), ((4, 3), (2,)), ((4, 3), (1,)), ((4, 3), (5, 2)), ((4, 3), (5, 1)),
        ((4, 3), (2, 2, 2)),
        ((2, 3, 4), (3,)), ((2, 3, 4), (2,)), ((2, 3, 4), (6, 1)), ((2, 3, 4), (2, 3, 2)), ((2, 3, 4), (2, 1, 2, 3)),
        ((2, 1, 3, 2), (4, 4)), ((2, 1, 3, 2), (4, 3)), ((2, 1, 3, 2), (2, 2, 2)), ((1, 2, 1, 2, 3), (3, 5)),
        ((1, 2, 1, 2, 3), (3, 2)), ((2, 1, 2, 1, 2, 3), (2, 6)), ((2, 1, 2, 1, 2, 3), (2, 4)), ((4, 3), (0, 2)),
        ((4, 3), (0, 1)),
    ):  # fmt: skip
        x = Data(f"gather_nd {shape} {index_shape}")
        limits = np.array(shape[: index_shape[-1]])
        for number, index in enumerate(INDEX_TYPES):
            at = (x.ints(np.int32, index_shape, 0, 1000) % limits if limits.size else np.zeros(index_shape)).astype(
                index
            )
            indices = both_ways(given(at))[number % 2]
            name = f"{shape} by {np.dtype(index).name} {index_shape} {indices.role}"
            yield Case("GATHER_ND", name, [given(x.floats(shape)), indices], [result(np.float32)])
    for index_shape in ((0,), (2, 0)):
        inputs = [given(Data("gather_nd").floats((2, 3))), given(np.zeros(index_shape, np.int32))]
        yield Case(
            "GATHER_ND",
            f"all of (2, 3) by {index_shape}",
            inputs,
            [result(np.float32)],
            litert="refuses",
            because="tuples of no index are 'out of bounds'",
            reference=lambda value, at: [np.broadcast_to(value, (*at.shape[:-1], 2, 3))],
        )
    x = Data("gather_nd types")
    for kind in [*TYPES, np.object_]:
        for index in INDEX_TYPES:
            for width in (1, 2, 3):
                at = x.ints(index, (4, width), 0, 1)
                for source in both_ways(given(x.any(kind, (2, 3, 2)))):
                    indices = both_ways(given(at))[width % 2]
                    name = f"{np.dtype(kind).name} by {width} {np.dtype(index).name} {source.role} {indices.role}"
                    yield Case("GATHER_ND", name, [source, indices], [result(kind)])
    for kind, scale, zero in ((np.int8, 0.5, -128), (np.uint8, 3.0, 255), (np.int16, 1e-3, 0)):
        inputs = [given(x.ints(kind, (3, 4)), scale, zero), given(np.array([[2, 0], [1, 3]], np.int32))]
        yield Case("GATHER_ND", f"quantized {np.dtype(kind).name}", inputs, [result(kind, scale, zero)], exact=True)
    runs = [[x.floats((4, n)), np.array(i, np.int32)] for n, i in ((3, [[0]]), (1, [[3], [3], [3]]), (2, [[1], [2]]))]
    inputs = [given(x.floats((4, 5)), declared=(4, 1)), given(np.array([[2], [0]], np.int32), declared=(1, 1))]
    yield Case("GATHER_ND", "resized", inputs, [result(np.float32)], runs=runs)
