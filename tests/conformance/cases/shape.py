# SPDX-License-Identifier: Apache-2.0
"""SHAPE RANK RANGE BROADCAST_ARGS."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from harness import EMPTY_DYNAMIC, Case, Data, both_ways, constant, given, result

from leadline import DType

SHAPES = [
    (),
    (0,),
    (5,),
    (2, 3),
    (2, 0, 3),
    (1, 1, 1, 1),
    (2, 3, 1, 2, 4),
    (1, 2, 3, 1, 2, 3),
    (1, 2, 1, 2, 1, 2, 1, 2),
]
TYPES = [
    np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32,
    np.int64, np.uint64, bool, np.complex64, np.complex128, np.object_,
]  # fmt: skip


def cases():
    yield from shapes()
    yield from ranks()
    yield from ranges()
    yield from arguments()


def shapes():
    for shape in SHAPES:
        for out, number in ((np.int32, DType.INT32), (np.int64, DType.INT64)):
            for source in both_ways(given(Data(f"shape {shape}").floats(shape))):
                name = f"{shape} {source.role} as {np.dtype(out).name}"
                fault = {}
                if not shape:
                    fault = dict(litert="refuses", because=EMPTY_DYNAMIC, reference=lambda *_, o=out: [np.zeros(0, o)])
                yield Case("SHAPE", name, [source], [result(out)], out_type=number.value, **fault)
    for kind in TYPES:
        for source in both_ways(given(Data("shape types").any(kind, (2, 3)))):
            yield Case(
                "SHAPE",
                f"of {np.dtype(kind).name} {source.role}",
                [source],
                [result(np.int32)],
                out_type=DType.INT32.value,
            )
    runs = [[np.ones(s, np.float32)] for s in ((3, 1), (0, 2), (7, 9))]
    yield Case(
        "SHAPE",
        "resized",
        [given(np.ones((2, 2), np.float32), declared=(1, 1))],
        [result(np.int32)],
        out_type=DType.INT32.value,
        runs=runs,
    )


def ranks():
    for shape in SHAPES:
        for source in both_ways(given(Data(f"rank {shape}").floats(shape))):
            yield Case("RANK", f"{shape} {source.role}", [source], [result(np.int32)])
    for kind in TYPES:
        yield Case("RANK", f"of {np.dtype(kind).name}", [given(Data("rank").any(kind, (2, 3)))], [result(np.int32)])
    runs = [[np.ones(s, np.float32)] for s in ((3,), (1, 2, 3), ())]
    yield Case("RANK", "resized", [given(np.ones((2, 2), np.float32), declared=(1, 1))], [result(np.int32)], runs=runs)


def ranges():
    table = [
        (0, 4, 1), (2, 9, 2), (10, 3, -3), (0, 1, 5), (5, 6, 1), (-3, 3, 1), (3, -4, -1), (1, 10, 4), (7, 7, 1),
        (7, 7, -1),
        (0, 100, 1), (100, -100, -7),
    ]  # fmt: skip
    real = [
        *table,
        (0.0, 1.0, 0.1),
        (1.0, 0.0, -0.3),
        (-1.5, 2.25, 0.25),
        (0.0, 1.0, 0.3),
        (0.0, 10.0, 1.1),
        (1e6, 1e6 + 3, 0.5),
    ]
    for kind in (np.float32, np.int32, np.int64):
        for row in real if kind is np.float32 else table:
            for roles in ("ccc", "ggg", "cgc", "gcc"):
                inputs = [(constant if r == "c" else given)(np.array(v, kind)) for r, v in zip(roles, row, strict=True)]
                fault = {}
                if row[0] == row[1]:
                    fault = dict(litert="refuses", because=EMPTY_DYNAMIC)
                    fault["reference"] = lambda *_, k=kind: [np.zeros(0, k)]
                name = f"{np.dtype(kind).name} {row} {roles}"
                yield Case("RANGE", name, inputs, [result(kind)], **fault)
    extremes = [constant(np.array(v, np.int64)) for v in (2**62, 2**62 + 10, 3)]
    yield Case("RANGE", "far from zero", extremes, [result(np.int64)])
    runs = [[np.array(v, np.int32) for v in row] for row in ((0, 1, 1), (0, 50, 7), (9, 0, -2))]
    yield Case("RANGE", "changes", [given(np.array(v, np.int32)) for v in (3, 5, 1)], [result(np.int32)], runs=runs)


def arguments():
    table = [
        ([], []), ([1], []), ([3], [1]), ([2, 3], [3]), ([2, 3], [1, 1]), ([4, 1, 3], [5, 1]), ([1], [2, 3, 4]),
        ([7], [7]),
        ([1, 2, 1, 4, 1], [3, 1, 1]), ([2, 1, 2, 1, 2, 1], [3, 1, 3, 2, 3]), ([1, 1], [1, 1]), ([0], [1]), ([1], [0]),
        ([2, 0], [1]),
        ([0, 3], [1, 1]),
    ]  # fmt: skip
    for left, right in table:
        for kind in (np.int32, np.int64):
            for one, other in ((given, given), (constant, constant), (given, constant)):
                inputs = [one(np.array(left, kind)), other(np.array(right, kind))]
                name = f"{left} {right} {np.dtype(kind).name} {inputs[0].role} {inputs[1].role}"
                yield Case("BROADCAST_ARGS", name, inputs, [result(kind)])
