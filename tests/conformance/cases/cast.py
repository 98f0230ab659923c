# SPDX-License-Identifier: Apache-2.0
"""CAST."""

from __future__ import annotations

from itertools import product

import numpy as np
from elementwise import (
    BF16,
    BOOL,
    C64,
    F16,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    edges,
    known,
    name_of,
)  # fmt: skip
from harness import Case, Data, constant, given, result

import leadline

FLOATS = known(F32, F64, F16, BF16)
INTEGERS = [I8, U8, I16, U16, I32, U32, I64]
TYPES = [*FLOATS, *INTEGERS, BOOL, C64]


def values(data: Data, dtype, shape):
    if dtype in INTEGERS:
        return edges(data, dtype, shape)
    x = data.any(dtype, shape)
    return x if dtype is BOOL else (x * np.array(40, x.dtype)).astype(dtype)


def cases():
    for from_, to in product(TYPES, TYPES):
        pair = f"{name_of(from_)} to {name_of(to)}"
        for shape in [(), (0, 2), (37,), (2, 3, 5)]:
            x = values(Data(f"CAST {pair} {shape}"), from_, shape)
            yield Case("CAST", f"{pair} {shape}", [given(x)], [result(to)])
        if F32 in (from_, to) or I32 in (from_, to):
            yield Case("CAST", f"{pair} constant", [constant(values(Data(pair), from_, (3, 4)))], [result(to)])
    for from_, to in product([*FLOATS, C64], TYPES):
        wide = F32 if from_ in (BF16, C64) else from_
        x = Data(f"CAST special {name_of(from_)}").special_floats((24,), wide).astype(from_)
        yield Case("CAST", f"{name_of(from_)} to {name_of(to)} special values", [given(x)], [result(to)])
        powers = [s * 2.0**e for e in (7, 8, 15, 16, 31, 32, 62, 63, 64) for s in (1, -1)]
        x = np.array([*powers, 127.5, -128.5, 0.999, -0.999, 1e10, -1e10], F64)
        with np.errstate(over="ignore"):
            x = x.astype(from_)
        yield Case("CAST", f"{name_of(from_)} to {name_of(to)} around the ends", [given(x)], [result(to)])
    kinds = leadline.DType
    for packed, low, high in ((kinds.INT4, -8, 7), (kinds.INT2, -2, 1), (kinds.UINT4, 0, 15)):
        for shape in [(), (1,), (8,), (7,), (0,), (2, 3), (3, 3, 3)]:
            x = Data(f"CAST {packed} {shape}").floats(shape, -20, 20)
            yield Case("CAST", f"f32 to {packed} {shape}", [given(x)], [result(packed)])
            x = Data(f"CAST from {packed} {shape}").ints(I8 if low else U8, shape, low, high)
            if packed != leadline.DType.INT2:  # LiteRT's set_tensor has no type for it
                yield Case("CAST", f"{packed} to f32 {shape}", [given(x, dtype=packed)], [result(F32)])
            yield Case("CAST", f"{packed} to f32 {shape} constant", [constant(x, dtype=packed)], [result(F32)])
    runs = [[Data(f"CAST {s}").floats(s)] for s in [(3, 4), (0, 2), (), (1, 2, 1, 3, 1, 1)]]
    first = given(Data("CAST resized").floats((2,)), declared=(1,))
    yield Case("CAST", "resized again and again", [first], [result(I32)], runs=runs)
