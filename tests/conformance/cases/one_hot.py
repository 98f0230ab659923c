# SPDX-License-Identifier: Apache-2.0
"""ONE_HOT."""

from __future__ import annotations

import numpy as np
from harness import EMPTY_DYNAMIC, Case, Data, both_ways, constant, given, result

TYPES = [np.float32, np.int32, np.int64, np.int8, np.uint8, bool]


def cases():
    for shape in ((), (1,), (5,), (2, 3), (2, 1, 3), (1, 2, 1, 3), (2, 1, 2, 1, 2), (0,), (2, 0)):
        for depth in (0, 1, 3, 7):
            for axis in (-1, *range(len(shape) + 1)):
                for number, index in enumerate((np.int32, np.int64)):
                    at = Data(f"one_hot {shape} {depth} {axis}").ints(index, shape, -1, depth)
                    indices = both_ways(given(at))[number]
                    for count in both_ways(constant(np.array(depth, np.int32))):
                        fault = {}
                        if at.size * depth == 0 and count.role == "given":
                            where = len(shape) if axis < 0 else axis
                            empty = np.zeros((*shape[:where], depth, *shape[where:]), np.float32)
                            fault = dict(litert="refuses", because=EMPTY_DYNAMIC, reference=lambda *_, e=empty: [e])
                        inputs = [indices, count, constant(np.float32(2)), constant(np.float32(-1))]
                        name = f"{np.dtype(index).name} {shape} depth {depth} {count.role} axis {axis}"
                        yield Case("ONE_HOT", name, inputs, [result(np.float32)], axis=axis, **fault)
    x = Data("one_hot types")
    for kind in TYPES:
        for axis in (-1, 0):
            for on, off in ((constant, constant), (given, given)):
                inputs = [given(x.ints(np.int32, (2, 4), 0, 4)), constant(np.array([5], np.int32))]
                inputs += [on(x.any(kind, ())), off(x.any(kind, (1,)))]
                name = f"{np.dtype(kind).name} axis {axis} values {inputs[2].role}"
                yield Case("ONE_HOT", name, inputs, [result(kind)], axis=axis)
    for kind, scale, zero in ((np.int8, 0.5, -128), (np.uint8, 3.0, 255)):
        inputs = [given(x.ints(np.int32, (4,), 0, 4)), constant(np.array(5, np.int32))]
        inputs += [constant(x.ints(kind, ()), scale, zero), constant(x.ints(kind, ()), scale, zero)]
        yield Case(
            "ONE_HOT", f"quantized {np.dtype(kind).name}", inputs, [result(kind, scale, zero)], axis=-1, exact=True
        )
    runs = [[np.array(at, np.int32), np.array(d, np.int32)] for at, d in (([0, 1], 2), ([3], 4), ([5, 0, 1], 6))]
    inputs = [given(np.array([2, 0], np.int32), declared=(1,)), given(np.array(3, np.int32))]
    inputs += [constant(np.float32(1)), constant(np.float32(0))]
    yield Case("ONE_HOT", "depth changes", inputs, [result(np.float32)], axis=-1, runs=runs)
