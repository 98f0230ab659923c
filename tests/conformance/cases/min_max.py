# SPDX-License-Identifier: Apache-2.0
"""MAXIMUM MINIMUM and their StableHLO twins."""

from __future__ import annotations

from itertools import product

import numpy as np
from elementwise import (
    BF16,
    BOOL,
    BROADCASTS,
    EMPTY_BROADCASTS,
    F16,
    F32,
    F64,
    FEW_BROADCASTS,
    I8,
    I16,
    I32,
    I64,
    LARGE_BROADCASTS,
    SHAPES,
    U8,
    U16,
    U32,
    U64,
    Params,
    edges,
    known,
    name_of,
)  # fmt: skip
from harness import Case, Data, both_ways, constant, given, result

TYPES = known(F32, F16, BF16, I8, U8, I16, I32, I64)
STABLEHLO_TYPES = [F32, F16, F64, I8, U8, I16, U16, I32, U32, I64, U64, BOOL]


def values(data: Data, dtype, shape):
    return edges(data, dtype, shape) if np.dtype(dtype).kind in "iu" else data.any(dtype, shape)


def cases():
    for op, dtype in product(("MAXIMUM", "MINIMUM"), TYPES):
        many = BROADCASTS + LARGE_BROADCASTS if dtype in (F32, I8) else FEW_BROADCASTS
        for left, right in many + EMPTY_BROADCASTS:
            data = Data(f"{op} {name_of(dtype)} {left} {right}")
            a, b = values(data, dtype, left), values(data, dtype, right)
            for second in both_ways(given(b))[: 2 if dtype in (F32, I8) else 1]:
                yield Case(op, f"{name_of(dtype)} {left} {right} {second.role}", [given(a), second], [result(dtype)])
    for op in ("MAXIMUM", "MINIMUM"):
        data = Data(f"{op} special")
        odd, other = data.special_floats((23,)), data.floats((23,))
        yield Case(op, "f32 special values left", [given(odd), given(other)], [result(F32)])
        yield Case(op, "f32 special values right", [given(other), given(odd)], [result(F32)])
        yield Case(op, "f32 constant left", [constant(other), given(data.floats((2, 23)))], [result(F32)])
        for p in (Params(I8, 0.1, -3), Params(U8, 0.02, 255), Params(I16, 0.001), Params(I8, 2.0, 127)):
            for left, right in FEW_BROADCASTS:
                a, b = data.ints(p.dtype, left), data.ints(p.dtype, right)
                yield Case(op, f"{p} {left} {right}", [p.given(a), p.given(b)], [p.result()])
        # Different parameters: LiteRT's kernel compares the stored integers.
        for p, q in ((Params(I8, 0.1, -3), Params(I8, 0.2, 4)), (Params(U8, 0.1, 3), Params(U8, 0.3, 100))):
            a, b = data.ints(p.dtype, (40,)), data.ints(p.dtype, (40,))
            yield Case(op, f"{p}, {q}", [p.given(a), q.given(b)], [p.result()])
        shapes = [((4, 3), (3,)), ((1,), (2, 2, 1)), ((0, 2), (2,))]
        runs = [[data.floats(s), data.floats(t)] for s, t in shapes]
        first = [given(data.floats((2, 3)), declared=(1, 3)), given(data.floats((1,)), declared=(3,))]
        yield Case(op, "f32 resized again and again", first, [result(F32)], runs=runs)
    for op, dtype in product(("STABLEHLO_MAXIMUM", "STABLEHLO_MINIMUM"), STABLEHLO_TYPES):
        for shape in SHAPES:
            data = Data(f"{op} {name_of(dtype)} {shape}")
            a, b = values(data, dtype, shape), values(data, dtype, shape)
            yield Case(op, f"{name_of(dtype)} {shape}", [given(a), given(b)], [result(dtype)])
