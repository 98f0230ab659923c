# SPDX-License-Identifier: Apache-2.0
"""RESHAPE SQUEEZE EXPAND_DIMS."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from harness import EMPTY_DYNAMIC, Case, Data, both_ways, constant, given, result

TYPES = [
    np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int8, np.uint8, np.int16, np.uint16, np.int32,
    np.uint32, np.int64, np.uint64, bool, np.complex64, np.complex128, np.object_,
]  # fmt: skip

# From, wanted; -1 is for the op to find.
RESHAPES = [
    ((2, 3), (3, 2)), ((2, 3), (6,)), ((2, 3), (-1,)), ((2, 3), (3, -1)), ((2, 3), (-1, 1)), ((6,), (1, 2, 1, 3, 1)),
    ((1,), (1, 1, 1, 1, 1, 1)), ((2, 1, 3, 1, 2, 2), (4, -1)), ((3, 1, 2), (3, 1, 2)), ((13,), (-1, 13)),
    ((2, 2, 2, 2, 2, 2, 2, 2), (16, -1)), ((1, 1), (1,)), ((), (1,)), ((), (-1,)),
    ((0,), (0, 3)), ((2, 0), (0, 5)), ((0, 2), (2, 0, 7)), ((5, 0), (-1, 0)), ((0,), (3, 0, -1)),
]  # fmt: skip


def cases():
    yield from reshapes()
    yield from squeezes()
    yield from expansions()


def reshapes():
    for before, after in RESHAPES:
        x = Data(f"reshape {before} {after}").floats(before)
        shape = np.array(after, np.int32)
        for wanted in both_ways(constant(shape)):
            yield Case("RESHAPE", f"{before} to {after} {wanted.role}", [given(x), wanted], [result(np.float32)])
        attribute = dict(attributes={"new_shape": list(after)})
        yield Case("RESHAPE", f"{before} to {after} attribute", [given(x)], [result(np.float32)], **attribute)
    eight = dict(litert="refuses", because="the XNNPACK delegate takes it, then fails to prepare")
    eight["reference"] = lambda x: [x.reshape(2, 1, 1, 1, 2, 1, 1, 1)]
    wanted = constant(np.array([2, 1, 1, 1, 2, 1, 1, 1], np.int32))
    yield Case("RESHAPE", "to rank 8", [given(np.arange(4, dtype=np.float32)), wanted], [result(np.float32)], **eight)
    for wanted in both_ways(constant(np.array([0], np.int32))):  # [0] as an attribute is a scalar
        yield Case("RESHAPE", f"(0, 3) to (0,) {wanted.role}", [given(np.ones((0, 3))), wanted], [result(np.float64)])
    one = np.ones((1, 1), np.float32)
    for wanted in both_ways(constant(np.zeros(0, np.int32))):
        yield Case("RESHAPE", f"to a scalar {wanted.role}", [given(one), wanted], [result(np.float32)])
    for attribute in ([], [0]):
        yield Case("RESHAPE", f"to a scalar {attribute}", [given(one)], [result(np.float32)], new_shape=attribute)
    x = Data("reshape types")
    for kind in TYPES:
        value = x.any(kind, (2, 3, 2))
        for wanted in both_ways(constant(np.array([4, -1], np.int32))):
            for source in both_ways(given(value)):
                name = f"{np.dtype(kind).name} {source.role} by {wanted.role}"
                yield Case("RESHAPE", name, [source, wanted], [result(kind)])
    # The tensor rules; an attribute that says something else does not matter.
    wanted = constant(np.array([3, 2], np.int32))
    yield Case(
        "RESHAPE",
        "tensor over attribute",
        [given(one * np.ones((2, 3), np.float32)), wanted],
        [result(np.float32)],
        new_shape=[6],
    )
    # A shape that is not a vector is not a shape: then the attribute counts.
    scalar = constant(np.array(6, np.int32))
    yield Case(
        "RESHAPE", "scalar shape", [given(np.ones((2, 3), np.float32)), scalar], [result(np.float32)], new_shape=[1, 6]
    )
    for kind, scale, zero in ((np.int8, 0.5, -128), (np.uint8, 3.0, 255), (np.int16, 1e-3, 0)):
        value = x.ints(kind, (3, 4))
        quantized = [given(value, scale, zero), constant(np.array([2, 6], np.int32))]
        name = f"quantized {np.dtype(kind).name}"
        yield Case("RESHAPE", name, quantized, [result(kind, scale, zero)], exact=True)
        yield Case("RESHAPE", f"{name}, other output scale", quantized, [result(kind, 2 * scale, 0)], exact=True)
    runs = [[x.floats((2, 6))], [x.floats((1, 24))], [x.floats((0, 4))], [x.floats((3, 4))]]
    wanted = constant(np.array([-1, 2], np.int32))
    yield Case(
        "RESHAPE", "input resized", [given(x.floats((4, 2)), declared=(1, 2)), wanted], [result(np.float32)], runs=runs
    )
    runs = [[x.floats((2, 6)), np.array(s, np.int32)] for s in ([12], [3, 4], [2, 2, -1], [1] * 6 + [12, 1])]
    yield Case(
        "RESHAPE",
        "shape changes",
        [given(x.floats((2, 6))), given(np.array([4, 3], np.int32))],
        [result(np.float32)],
        runs=runs,
    )
    runs = [[x.any(object, (2, 6)), np.array(s, np.int32)] for s in ([12], [3, 4], [2, 2, -1])]
    yield Case(
        "RESHAPE",
        "shape of strings changes",
        [given(x.any(object, (6, 2))), given(np.array([4, 3], np.int32))],
        [result(object)],
        runs=runs,
    )


def squeezes():
    shapes = [
        ((1, 3, 1, 2), ()), ((1, 3, 1, 2), (0,)), ((1, 3, 1, 2), (2,)), ((1, 3, 1, 2), (0, 2)), ((1, 3, 1, 2), (-2,)),
        ((1, 3, 1, 2), (-4, -2)), ((1, 3, 1, 2), (2, -2, 0)), ((1, 1, 1), ()), ((1,), (0,)), ((1,), (-1,)), ((), ()),
        ((5,), ()), ((0, 1), ()), ((0, 1, 3), (1,)), ((1, 2, 1, 3, 1, 1, 2, 1), ()), ((1, 2, 1, 3, 1, 1, 2, 1), (7, 4)),
        ((1, 1, 1, 1, 1), (1, 3)), ((7, 1, 1, 1, 1, 13), (-2, -3, 1)),
    ]  # fmt: skip
    for shape, dims in shapes:
        x = Data(f"squeeze {shape} {dims}")
        for kind in (np.float32, np.object_):
            name = f"{np.dtype(kind).name} {shape} without {dims}"
            yield Case("SQUEEZE", name, [given(x.any(kind, shape))], [result(kind)], squeeze_dims=list(dims))
    x = Data("squeeze types")
    for kind in TYPES:
        for source in both_ways(given(x.any(kind, (2, 1, 3, 1)))):
            yield Case("SQUEEZE", f"{np.dtype(kind).name} {source.role}", [source], [result(kind)], squeeze_dims=[1])
    runs = [[x.floats((3, 1, 2))], [x.floats((1, 1, 1))], [x.floats((2, 3, 2))]]
    yield Case("SQUEEZE", "resized", [given(x.floats((1, 5, 1)), declared=(1, 1, 1))], [result(np.float32)], runs=runs)
    for scale in (0.5, 0.25):
        yield Case(
            "SQUEEZE",
            f"int8 to scale {scale}",
            [given(x.ints(np.int8, (1, 7)), 0.5, 3)],
            [result(np.int8, scale, 3)],
            exact=True,
        )


def expansions():
    for shape in ((), (3,), (2, 3), (0,), (2, 0, 3), (2, 1, 3), (1, 2, 3, 1), (1, 2, 1, 2, 1, 2, 1)):
        x = Data(f"expand_dims {shape}")
        for axis in range(-len(shape) - 1, len(shape) + 1):
            for where in both_ways(constant(np.array(axis, np.int32))):
                name = f"{shape} at {axis} {where.role}"
                fault = {}
                if 0 in shape and where.role == "given":
                    fault = dict(litert="refuses", because=EMPTY_DYNAMIC)
                    fault["reference"] = lambda value, at: [np.expand_dims(value, int(at))]
                yield Case("EXPAND_DIMS", name, [given(x.floats(shape)), where], [result(np.float32)], **fault)
    x = Data("expand_dims types")
    for kind in TYPES:
        for where in both_ways(constant(np.array([1], np.int64))):
            for source in both_ways(given(x.any(kind, (2, 3)))):
                name = f"{np.dtype(kind).name} {source.role}, axis {where.role}"
                yield Case("EXPAND_DIMS", name, [source, where], [result(kind)])
    runs = [[x.floats((2, 3)), np.array([a], np.int32)] for a in (0, 1, 2, -1)]
    yield Case(
        "EXPAND_DIMS",
        "axis changes",
        [given(x.floats((2, 3))), given(np.array([-2], np.int32))],
        [result(np.float32)],
        runs=runs,
    )
    for kind, scale, zero in ((np.int8, 0.5, -128), (np.uint8, 3.0, 255), (np.int16, 1e-3, 0)):
        yield Case(
            "EXPAND_DIMS",
            f"quantized {np.dtype(kind).name}",
            [given(x.ints(kind, (3, 4)), scale, zero), constant(np.array(-1, np.int32))],
            [result(kind, scale, zero)],
            exact=True,
        )
