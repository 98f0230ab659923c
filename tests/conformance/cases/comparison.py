# SPDX-License-Identifier: Apache-2.0
"""EQUAL NOT_EQUAL LESS LESS_EQUAL GREATER GREATER_EQUAL."""

from __future__ import annotations

import numpy as np
from elementwise import (
    BF16,
    BOOL,
    BROADCASTS,
    EMPTY_BROADCASTS,
    F16,
    F32,
    FEW_BROADCASTS,
    I8,
    I16,
    I32,
    I64,
    LARGE_BROADCASTS,
    STRING,
    U8,
    Params,
    known,
    name_of,
)  # fmt: skip
from harness import Case, Data, both_ways, constant, given, result

TYPES = {
    "EQUAL": [F32, F16, I16, I32, I64, BOOL, STRING],
    "NOT_EQUAL": [F32, F16, I32, I64, BOOL, STRING],  # LiteRT computes nothing for int16 without scales
    "LESS": known(F32, F16, BF16, I16, I32, I64),
    "LESS_EQUAL": [F32, F16, I16, I32, I64],
    "GREATER": known(F32, F16, BF16, I16, I32, I64),
    "GREATER_EQUAL": [F32, F16, I16, I32, I64],
}
FUNCTIONS = {
    "EQUAL": np.equal, "NOT_EQUAL": np.not_equal, "LESS": np.less, "LESS_EQUAL": np.less_equal, "GREATER": np.greater,
    "GREATER_EQUAL": np.greater_equal,
}  # fmt: skip

QUANTIZED = [
    ((0.1, 0), (0.1, 0)), ((0.1, 3), (0.2, -5)), ((0.02, -128), (0.9, 127)), ((0.5, 1), (0.25, 2)),
    ((1e-3, 0), (1e-3, 0)), ((0.0039, -128), (0.0078, 0)),
]  # fmt: skip


def values(data: Data, dtype, shape):
    """Few different ones, so that some are equal."""
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        return data.ints(dtype, shape, 0 if kind.kind == "u" else -2, 3)
    if kind.kind in "SOb":
        return data.any(dtype, shape)
    return np.round(data.floats(shape)).astype(dtype)


def quantized_cases(op: str):
    for dtype in (I8, U8):
        for i, parameters in enumerate(QUANTIZED):
            left, right = (Params(dtype, scale, zero + (128 if dtype is U8 else 0)) for scale, zero in parameters)
            for shapes in [((16, 16), (16, 16)), ((4, 9), (9,)), ((2, 3, 2), ()), ((2, 1, 3), (1, 4, 1))]:
                data = Data(f"{op} {name_of(dtype)} {i} {shapes}")
                # Around the other's numbers, so that equal ones meet.
                reals = data.rng.integers(-4, 5, shapes[1]) * left.scale
                a, b = left.levels(data.rng.integers(-4, 5, shapes[0]) * left.scale), right.levels(reals)
                yield Case(op, f"{left}, {right} {shapes}", [left.given(a), right.given(b)], [result(BOOL)])
            a, b = data.ints(dtype, (256,)), data.ints(dtype, (256,))
            yield Case(op, f"{left}, {right} all", [left.given(a), right.constant(b)], [result(BOOL)])
    for left, right in ((Params(I16, 0.01), Params(I16, 0.01)), (Params(I16, 0.01), Params(I16, 0.02))):
        data = Data(f"{op} {left} {right}")
        a, b = data.ints(I16, (8, 8), -3, 3), data.ints(I16, (8,), -3, 3)
        yield Case(op, f"{left}, {right}", [left.given(a), right.given(b)], [result(BOOL)])
        a, b = data.ints(I16, (64,)), data.ints(I16, (64,))
        yield Case(op, f"{left}, {right} all", [left.given(a), right.given(b)], [result(BOOL)])


def fault_cases(op: str):
    p = Params(I8, 3.0, 5)
    data = Data(f"{op} scale above 1")
    a, b = data.ints(I8, (64,), -9, 9), data.ints(I8, (64,), -9, 9)
    compare = FUNCTIONS[op]
    because = "shifts the wrong way for scales above 1"
    options = dict(litert="wrong", because=because, reference=lambda x, y: [compare(x, y)])
    yield Case(op, f"{p}", [p.given(a), p.given(b)], [result(BOOL)], **options)


def cases():
    for op, types in TYPES.items():
        for dtype in types:
            many = BROADCASTS + LARGE_BROADCASTS if dtype in (F32, BOOL) else FEW_BROADCASTS
            for left, right in many + EMPTY_BROADCASTS:
                data = Data(f"{op} {name_of(dtype)} {left} {right}")
                a, b = values(data, dtype, left), values(data, dtype, right)
                for second in both_ways(given(b))[: 2 if dtype is F32 or dtype is STRING else 1]:
                    yield Case(op, f"{name_of(dtype)} {left} {right} {second.role}", [given(a), second], [result(BOOL)])
        data = Data(f"{op} special")
        odd = data.special_floats((23,))
        yield Case(op, "f32 special pairs", [given(odd), given(np.roll(odd, 2))], [result(BOOL)])
        yield Case(op, "f32 special with itself", [given(odd), given(odd)], [result(BOOL)])
        yield Case(op, "f32 constant left", [constant(odd), given(odd[::-1].copy())], [result(BOOL)])
        for dtype in (I32, I64):
            ends = data.ints(dtype, (40,))
            yield Case(op, f"{name_of(dtype)} ends", [given(ends), given(np.roll(ends, 1))], [result(BOOL)])
        yield from quantized_cases(op)
        yield from fault_cases(op)
        runs = [[data.floats(s), data.floats(t)] for s, t in [((4, 3), (3,)), ((1,), (2, 2, 1)), ((0, 2), (2,))]]
        first = [given(data.floats((2, 3)), declared=(1, 3)), given(data.floats((1,)), declared=(3,))]
        yield Case(op, "f32 resized again and again", first, [result(BOOL)], runs=runs)
