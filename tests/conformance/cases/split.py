# SPDX-License-Identifier: Apache-2.0
"""SPLIT SPLIT_V UNPACK."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from harness import EMPTY_DYNAMIC, Case, Data, both_ways, constant, given, result

SPLIT = [np.float32, np.uint8, np.int8, np.int16, np.int32, np.int64]
UNPACKED = [np.float32, np.float16, ml_dtypes.bfloat16, np.uint8, np.int8, np.int16, np.int32, bool]


def cases():
    yield from splits()
    yield from splits_of_sizes()
    yield from unpacks()


def splits():
    for shape in ((6,), (4, 6), (2, 4, 6), (2, 4, 6, 2), (2, 1, 4, 1, 6), (2, 1, 2, 1, 2, 6), (0, 2), (2, 0, 4)):
        x = Data(f"split {shape}").floats(shape)
        for axis in range(-len(shape), len(shape)):
            for parts in {1, 2, 3, shape[axis]} - {0}:
                if shape[axis] % parts:
                    continue
                for where in both_ways(constant(np.array(axis, np.int32))):
                    fault = {}
                    if not x.size and where.role == "given":
                        fault = dict(litert="refuses", because=EMPTY_DYNAMIC)
                        fault["reference"] = lambda a, v, parts=parts: np.split(v, parts, int(a))
                    name = f"{shape} axis {axis} in {parts} {where.role}"
                    outputs = [result(np.float32) for _ in range(parts)]
                    yield Case("SPLIT", name, [where, given(x)], outputs, num_splits=parts, **fault)
    x = Data("split types")
    for kind in SPLIT:
        for axis in (0, 1, -1):
            for source in both_ways(given(x.any(kind, (2, 4, 6)))):
                inputs = [constant(np.array([axis], np.int32)), source]
                name = f"{np.dtype(kind).name} axis {axis} {source.role}"
                yield Case("SPLIT", name, inputs, [result(kind), result(kind)], num_splits=2)
    for kind, scale, zero in ((np.int8, 0.5, -128), (np.uint8, 3.0, 255), (np.int16, 1e-3, 0)):
        inputs = [constant(np.array(1, np.int32)), given(x.ints(kind, (3, 4)), scale, zero)]
        yield Case(
            "SPLIT",
            f"quantized {np.dtype(kind).name}",
            inputs,
            [result(kind, scale, zero) for _ in range(2)],
            num_splits=2,
            exact=True,
        )
    runs = [[np.array(axis, np.int32), x.floats((4, 6, 2))] for axis in (1, 2, -3)]
    inputs = [given(np.array(0, np.int32)), given(x.floats((4, 6, 2)))]
    yield Case("SPLIT", "axis changes", inputs, [result(np.float32), result(np.float32)], num_splits=2, runs=runs)
    runs = [[x.floats(s)] for s in ((4, 3), (8, 1), (0, 2))]
    inputs = [constant(np.array(0, np.int32)), given(x.floats((2, 5)), declared=(2, 1))]
    yield Case("SPLIT", "resized", inputs, [result(np.float32), result(np.float32)], num_splits=2, runs=runs)


def splits_of_sizes():
    parts = [
        ((7,), 0, (1, 2, 4)), ((7,), -1, (7,)), ((7,), 0, (3, -1)), ((7,), 0, (-1, 3)), ((3, 8), 1, (1, 1, 6)),
        ((3, 8), 0, (1, -1)), ((3, 8), -1, (2, -1, 5)), ((2, 5, 3), 1, (1, 3, 1)), ((2, 5, 3), -2, (4, 1)),
        ((2, 5, 3), 2, (1, -1)), ((2, 3, 4, 5), 3, (2, 3)), ((2, 3, 4, 5), -3, (1, 2)), ((1, 2, 1, 3, 6), 4, (1, 5)),
        ((1, 2, 1, 3, 1, 6), -1, (1, 2, 3)), ((2, 5), 1, (0, 5)), ((2, 5), 1, (5, 0, 0)), ((2, 5), 1, (5, -1)),
        ((2, 0), 0, (1, 1)), ((0, 3), 1, (1, 2)), ((2, 0), 1, (0, 0)), ((2, 13), 1, (1,) * 13),
    ]  # fmt: skip
    for shape, axis, sizes in parts:
        x = Data(f"split_v {shape} {axis} {sizes}").floats(shape)
        for where in both_ways(constant(np.array(axis, np.int32))):
            for wanted in both_ways(constant(np.array(sizes, np.int32))):
                fault = {}
                empty = not x.size or 0 in sizes or (-1 in sizes and sum(sizes) + 1 == shape[axis])
                if empty and "given" in (where.role, wanted.role):
                    fault = dict(litert="refuses", because=EMPTY_DYNAMIC)
                    fault["reference"] = lambda v, *_, axis=axis, sizes=sizes: reference_split(v, axis, sizes)
                name = f"{shape} axis {axis} {where.role} sizes {sizes} {wanted.role}"
                outputs = [result(np.float32) for _ in sizes]
                yield Case("SPLIT_V", name, [given(x), wanted, where], outputs, num_splits=len(sizes), **fault)
    x = Data("split_v types")
    for kind in SPLIT:
        for axis in (0, 1, -1):
            for source in both_ways(given(x.any(kind, (4, 4, 4)))):
                inputs = [source, constant(np.array([1, -1], np.int64)), constant(np.array([axis], np.int32))]
                name = f"{np.dtype(kind).name} axis {axis} {source.role}"
                yield Case("SPLIT_V", name, inputs, [result(kind), result(kind)], num_splits=2)
    for kind, scale, zero in ((np.int8, 0.5, -128), (np.uint8, 3.0, 255), (np.int16, 1e-3, 0)):
        inputs = [given(x.ints(kind, (3, 4)), scale, zero), constant(np.array([1, 3], np.int32)),
                  constant(np.array(1, np.int32))]  # fmt: skip
        yield Case(
            "SPLIT_V",
            f"quantized {np.dtype(kind).name}",
            inputs,
            [result(kind, scale, zero) for _ in range(2)],
            num_splits=2,
            exact=True,
        )
    runs = [[x.floats((4, 6)), np.array(s, np.int64)] for s in ((1, 5), (-1, 2), (5, -1))]
    inputs = [given(x.floats((4, 6))), given(np.array([3, 3], np.int64)), constant(np.array(1, np.int32))]
    yield Case("SPLIT_V", "sizes change", inputs, [result(np.float32), result(np.float32)], num_splits=2, runs=runs)


def reference_split(value, axis, sizes):
    rest = value.shape[axis] - sum(size for size in sizes if size >= 0)
    ends = np.cumsum([rest if size < 0 else size for size in sizes])
    return np.split(value, ends[:-1], axis)


def unpacks():
    for shape in ((3,), (2, 3), (2, 3, 4), (1, 2, 3, 2), (2, 1, 3, 1, 2), (1, 2, 1, 3, 1, 2)):
        x = Data(f"unpack {shape}").floats(shape)
        for axis in range(-len(shape), len(shape)):
            outputs = [result(np.float32) for _ in range(shape[axis])]
            yield Case("UNPACK", f"{shape} axis {axis}", [given(x)], outputs, num=shape[axis], axis=axis)
    x = Data("unpack types")
    for kind in UNPACKED:
        for axis in (0, 1, -1):
            for source in both_ways(given(x.any(kind, (3, 3, 3)))):
                name = f"{np.dtype(kind).name} axis {axis} {source.role}"
                yield Case("UNPACK", name, [source], [result(kind) for _ in range(3)], num=3, axis=axis)
    for kind, scale, zero in ((np.int8, 0.5, -128), (np.uint8, 3.0, 255), (np.int16, 1e-3, 0)):
        outputs = [result(kind, scale, zero) for _ in range(4)]
        yield Case(
            "UNPACK",
            f"quantized {np.dtype(kind).name}",
            [given(x.ints(kind, (3, 4)), scale, zero)],
            outputs,
            num=4,
            axis=1,
            exact=True,
        )
    yield Case(
        "UNPACK", "into 100", [given(x.floats((2, 100)))], [result(np.float32) for _ in range(100)], num=100, axis=1
    )
    runs = [[x.floats((2, n))] for n in (3, 1)]
    yield Case(
        "UNPACK",
        "resized",
        [given(x.floats((2, 5)), declared=(2, 1))],
        [result(np.float32), result(np.float32)],
        num=2,
        axis=0,
        runs=runs,
    )
