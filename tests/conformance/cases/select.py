# SPDX-License-Identifier: Apache-2.0
"""SELECT SELECT_V2 WHERE."""

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
    SHAPES,
    U8,
    U16,
    U32,
    U64,
    Params,
    known,
    name_of,
)  # fmt: skip
from harness import RELU_N1_TO_1, Case, Data, constant, given, result

import leadline

TYPES = known(F32, F16, BF16, F64, I8, U8, I16, U16, I32, U32, I64, U64, BOOL, C64)

# Condition, x, y.
SELECT_SHAPES = [(s, s, s) for s in SHAPES] + [
    ((), (3,), (3,)), ((), (2, 3), (2, 3)), ((2,), (2, 3), (2, 3)), ((3,), (3, 2, 4), (3, 2, 4)),
    ((1,), (1, 4), (1, 4)), ((2,), (2, 1, 2, 3), (2, 1, 2, 3)), ((0,), (0, 3), (0, 3)), ((1,), (), ()),
    ((), (1,), (1,)), ((1, 1), (1,), (1,)),
]  # fmt: skip
V2_SHAPES = [(s, s, s) for s in SHAPES] + [
    ((), (3,), (3,)), ((3,), (), ()), ((3,), (1,), (3,)), ((2, 1), (1, 3), (2, 3)), ((3,), (2, 3), (2, 1)),
    ((2, 3, 1), (3, 4), (1,)), ((1, 1, 4), (2, 1, 1), (1, 3, 1)), ((2, 1, 3, 1), (4,), (1, 2, 1, 4)),
    ((4,), (2, 1, 3, 4), ()), ((1, 2, 1, 3, 2), (2, 1, 1, 1, 2), (1,)), ((2, 1, 1, 1, 2), (3, 1, 2), (2, 1)),
    ((1,), (1, 1), ()), ((0,), (1,), (1,)), ((2, 0), (1,), ()), ((1,), (0,), (0,)), ((), (), (0, 3)),
    ((2, 1, 2, 1, 2, 1), (1, 3, 1, 2, 1, 2), (1,)), ((40, 50, 3), (50, 1), (40, 1, 3)), ((5003,), (5003,), ()),
    ((50, 1), (40, 1, 3), (40, 50, 3)),
]  # fmt: skip


def select_cases(op: str, shapes):
    for dtype in TYPES:
        for condition, x, y in shapes if dtype in (F32, I32) else shapes[4:9] + shapes[-9:]:
            data = Data(f"{op} {name_of(dtype)} {condition} {x} {y}")
            operands = [given(data.bools(condition)), given(data.any(dtype, x)), given(data.any(dtype, y))]
            yield Case(op, f"{name_of(dtype)} {condition} {x} {y}", operands, [result(dtype)])
    for shape in ((2, 3), (5,), (2, 3, 4)):
        data = Data(f"{op} constants {shape}")
        c, x, y = data.bools(shape), data.floats(shape), data.floats(shape)
        yield Case(op, f"f32 {shape} constant condition", [constant(c), given(x), given(y)], [result(F32)])
        yield Case(op, f"f32 {shape} constant values", [given(c), constant(x), constant(y)], [result(F32)])
        yield Case(op, f"f32 {shape} constant x", [given(c), constant(x), given(y)], [result(F32)])
        yield Case(op, f"f32 {shape} all true", [given(np.ones(shape, bool)), given(x), given(y)], [result(F32)])
        yield Case(op, f"f32 {shape} all false", [given(np.zeros(shape, bool)), given(x), given(y)], [result(F32)])
        yield Case(op, f"f32 {shape} special", [given(c), given(data.special_floats(shape)), given(y)], [result(F32)])
        for p in (Params(I8, 0.1, -5), Params(U8, 0.02, 200), Params(I16, 0.001)):
            operands = [given(c), p.given(data.ints(p.dtype, shape)), p.given(data.ints(p.dtype, shape))]
            yield Case(op, f"{p} {shape}", operands, [p.result()])
    runs = [[data.bools(s), data.floats(s), data.floats(s)] for s in [(3, 4), (0, 2), (1, 2, 1, 3)]]
    first = [given(data.bools((2,)), declared=(1,)), *(given(data.floats((2,)), declared=(1,)) for _ in range(2))]
    yield Case(op, "f32 resized again and again", first, [result(F32)], runs=runs)


def where_cases():
    for dtype, shape in product((BOOL, F32, I64, I32, I8, U8, U32), SHAPES):
        if not shape or 0 in shape:
            continue
        data = Data(f"WHERE {name_of(dtype)} {shape}")
        x = data.bools(shape) if dtype is BOOL else np.where(data.bools(shape), data.any(dtype, shape), 0).astype(dtype)
        x.flat[0] = 1
        yield Case("WHERE", f"{name_of(dtype)} {shape}", [given(x)], [result(I64)])
        yield Case("WHERE", f"{name_of(dtype)} {shape} constant", [constant(x)], [result(I64)])
    nothing = dict(litert="refuses", because="get_tensor: Invalid tensor size", reference=lambda x: [np.argwhere(x)])
    for shape in ((4,), (2, 3), (2, 2, 2, 2), (0,), (3, 0)):
        yield Case("WHERE", f"none of {shape}", [given(np.zeros(shape, bool))], [result(I64)], **nothing)
        if 0 in shape:
            continue
        yield Case("WHERE", f"all of {shape}", [given(np.ones(shape, bool))], [result(I64)])
    odd = Data("WHERE special").special_floats((23,))
    yield Case("WHERE", "f32 special values", [given(odd)], [result(I64)])
    data = Data("WHERE runs")
    runs = [[data.bools((3, 4))], [data.bools((3, 4))], [np.ones((3, 4), bool)], [data.bools((5, 2))]]
    yield Case("WHERE", "runs of different counts", [given(data.bools((3, 4)))], [result(I64)], runs=runs)


def dynamic_chain() -> bytes:
    """Shapes known only once WHERE has run: its result cast, scaled, compared and selected from."""
    builder = leadline.ModelBuilder()
    condition = builder.input("condition", BOOL, (3, 4))
    names = ("indices", "reals", "scaled", "softmax", "large", "chosen")
    types = (I64, F32, F32, F32, BOOL, F32)
    indices, reals, scaled, softmax, large, chosen = (
        builder.tensor(n, t, ()) for n, t in zip(names, types, strict=True)
    )
    row = builder.constant("row", np.array([0.5, -2], F32))
    builder.node("WHERE", [condition], [indices])
    builder.node("CAST", [indices], [reals])
    builder.node("MUL", [reals, row], [scaled], fused_activation_function=RELU_N1_TO_1)
    builder.node("SOFTMAX", [scaled], [softmax], beta=1.0)
    builder.node("GREATER", [softmax, builder.constant("half", np.array(0.5, F32))], [large])
    builder.node("SELECT_V2", [large, reals, row], [chosen])
    builder.output(indices, softmax, large, chosen)
    return builder.to_tflite()


def cases():
    data = Data("dynamic chain")
    runs = [[np.ones((3, 4), bool)], [data.bools((3, 4))], [data.bools((6, 7))], [data.bools((3, 4))]]
    yield Case("WHERE", "chain of unknown shapes", [given(data.bools((3, 4)))], runs=runs, build=dynamic_chain)
    yield from select_cases("SELECT", SELECT_SHAPES)
    yield from select_cases("SELECT_V2", V2_SHAPES)
    yield from where_cases()
