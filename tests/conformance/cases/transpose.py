# SPDX-License-Identifier: Apache-2.0
"""TRANSPOSE."""

from __future__ import annotations

from itertools import permutations

import ml_dtypes
import numpy as np
from harness import EMPTY_DYNAMIC, Case, Data, both_ways, constant, given, result

from leadline import DType

TYPES = [
    np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int8, np.uint8, np.int16, np.uint16, np.int32,
    np.uint32, np.int64, np.uint64, bool, np.complex64,
]  # fmt: skip


def permuted(kind, shape, axes, name="", seed=""):
    x = Data(f"transpose {shape} {axes} {seed}").any(kind, shape)
    title = f"{np.dtype(kind).name} {shape} by {axes} {name}".rstrip()
    for way in both_ways(constant(np.array(axes, np.int32))):
        fault = {}
        if not x.size and way.role == "given":
            fault = dict(litert="refuses", because=EMPTY_DYNAMIC)
            fault["reference"] = lambda value, *_: [value.transpose(axes)]
        yield Case("TRANSPOSE", f"{title} {way.role}", [given(x), way], [result(kind)], **fault)


def cases():
    for rank, shape in ((1, (5,)), (2, (3, 5)), (3, (2, 3, 5)), (4, (2, 3, 4, 5))):
        for axes in permutations(range(rank)):
            for kind in (np.float32, np.int8):
                yield from permuted(kind, shape, axes)
    for axes in list(permutations(range(5)))[::7]:
        yield from permuted(np.float32, (2, 3, 1, 2, 5), axes)
    for axes in list(permutations(range(6)))[::53]:
        yield from permuted(np.int16, (2, 3, 1, 2, 5, 3), axes)
    for shape, axes in (
        ((2, 1, 3, 1, 2, 1, 3), (6, 0, 5, 1, 4, 2, 3)), ((2, 1, 3, 1, 2, 1, 3, 2), (7, 6, 5, 4, 3, 2, 1, 0)),
        ((2, 1, 3, 1, 2, 1, 3, 2), (1, 0, 3, 2, 5, 4, 7, 6)), ((2, 3), (-1, 0)), ((2, 3, 4), (-1, -3, -2)),
        ((0,), (0,)), ((2, 0, 3), (2, 0, 1)), ((0, 0), (1, 0)), ((1, 1, 1), (2, 1, 0)), ((1, 7), (1, 0)),
        ((64, 33), (1, 0)), ((3, 1, 65, 17), (0, 3, 1, 2)), ((129, 2, 31), (2, 1, 0)),
    ):  # fmt: skip
        yield from permuted(np.float32, shape, axes, seed="more")
        yield from permuted(np.uint8, shape, axes, seed="more")
    for kind in TYPES:
        yield from permuted(kind, (2, 3, 5), (2, 0, 1), "types")
        yield from permuted(kind, (3, 2), (1, 0), "types")
        x = Data("transpose constant").any(kind, (2, 3))
        yield Case(
            "TRANSPOSE",
            f"{np.dtype(kind).name} constant input",
            [constant(x), constant(np.array([1, 0], np.int32))],
            [result(kind)],
        )
    x = Data("transpose")
    for shape, axes in (((3, 4), (1, 0)), ((3, 5), (1, 0)), ((2, 3, 5), (1, 2, 0))):
        four_bits = constant(x.ints(np.int8, shape, -8, 7), dtype=DType.INT4)
        yield Case(
            "TRANSPOSE", f"int4 {shape} {axes}", [four_bits, constant(np.array(axes, np.int32))], [result(DType.INT4)]
        )
    for kind, scale, zero in ((np.int8, 0.5, -128), (np.uint8, 3.0, 255), (np.int16, 1e-3, 0)):
        source = given(x.ints(kind, (3, 4)), scale, zero)
        yield Case(
            "TRANSPOSE",
            f"quantized {np.dtype(kind).name}",
            [source, constant(np.array([1, 0], np.int32))],
            [result(kind, scale, zero)],
            exact=True,
        )
    runs = [[x.floats((2, 3, 4)), np.array(a, np.int32)] for a in ((0, 1, 2), (2, 1, 0), (1, 2, 0))]
    yield Case(
        "TRANSPOSE",
        "permutation changes",
        [given(x.floats((2, 3, 4))), given(np.array([2, 0, 1], np.int32))],
        [result(np.float32)],
        runs=runs,
    )
    runs = [[x.floats(s)] for s in ((3, 4), (1, 5), (0, 2))]
    yield Case(
        "TRANSPOSE",
        "resized",
        [given(x.floats((2, 5)), declared=(1, 1)), constant(np.array([1, 0], np.int32))],
        [result(np.float32)],
        runs=runs,
    )
