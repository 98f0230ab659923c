# SPDX-License-Identifier: Apache-2.0
"""SOFTMAX LOG_SOFTMAX."""

from __future__ import annotations

from itertools import product

import numpy as np
from elementwise import F16, F32, I8, I16, U8, Params, name_of
from harness import Case, Data, given, result

SHAPES = [
    (1,), (5,), (17,), (0,), (2, 3), (3, 0), (0, 3), (1, 1), (4, 1), (2, 33), (1, 1001), (2, 3, 4), (1, 2, 3, 4),
    (2, 3, 1, 7), (1, 1, 1, 5), (2, 1, 2, 3, 4), (2, 1, 2, 1, 2, 3), (3, 128), (2, 65),
]  # fmt: skip
INPUTS = [(0.1, 0), (0.05, -128), (1.0, 127), (3.0, 5), (0.003, -3), (0.3, 60)]
OUTPUTS = {I8: Params(I8, 1 / 256, -128), U8: Params(U8, 1 / 256, 0), I16: Params(I16, 1 / 32768)}
LOG_OUTPUTS = {I8: Params(I8, 16 / 256, 127), U8: Params(U8, 16 / 256, 255)}


def float_cases(op: str, dtype, forms):
    for shape, form in product(SHAPES, forms):
        if shape[-1] == 0 or (dtype is F16 and form.get("beta", 0) < 0):
            continue  # LiteRT dies of rows without elements; XNNPACK's half-precision form overflows
        x = Data(f"{op} {name_of(dtype)} {shape}").floats(shape, -6, 6, dtype)
        yield Case(op, f"{name_of(dtype)} {shape} {form.get('beta', '')}", [given(x)], [result(dtype)], **form)
    much = 6e4 if dtype is F16 else 1e30
    large = np.array([[1e3, 0, -1e3], [much, much, -much], [-much, -much, -much], [80, 88, 90]], dtype)
    yield Case(op, f"{name_of(dtype)} large", [given(large)], [result(dtype)], **forms[0])
    for odd in ([1, np.nan, 2], [1, np.inf, 2], [1, -np.inf, 2], [-np.inf, -np.inf, -np.inf]):
        x = np.array([odd, [1, 2, 3]], dtype)
        yield Case(op, f"{name_of(dtype)} {odd}", [given(x)], [result(dtype)], **forms[0])


def quantized_cases(op: str, dtype, out: Params, forms):
    offset = 128 if dtype is U8 else 0
    for (scale, zero), form, shape in product(INPUTS, forms, [(4, 64), (3, 7), (2, 1000), (5, 1)]):
        p = Params(dtype, scale, zero + offset)
        if dtype is I16:
            p = Params(I16, scale / 100)
        x = Data(f"{op} {p} {shape}").ints(dtype, shape)
        name = f"{p} to {out} {shape} {form.get('beta', '')}"
        yield Case(op, name, [p.given(x)], [out.result()], **form)
    p = Params(dtype, 0.05 if dtype is not I16 else 0.001, offset)
    for shape in SHAPES:
        x = Data(f"{op} {p} {shape}").ints(dtype, shape)
        yield Case(op, f"{p} to {out} {shape}", [p.given(x)], [out.result()], **forms[0])
        x = Data(f"{op} {p} {shape}").ints(dtype, shape, offset - 20, offset + 20)
        yield Case(op, f"{p} to {out} {shape} close", [p.given(x)], [out.result()], **forms[0])


def cases():
    betas = [dict(beta=b) for b in (1.0, 0.5, 2.0, 0.0, 0.01, -1.0)]
    yield from float_cases("SOFTMAX", F32, betas)
    yield from float_cases("SOFTMAX", F16, betas)
    yield from float_cases("LOG_SOFTMAX", F32, [{}])
    for dtype, out in OUTPUTS.items():
        yield from quantized_cases("SOFTMAX", dtype, out, betas[:3])
    for dtype, out in LOG_OUTPUTS.items():
        yield from quantized_cases("LOG_SOFTMAX", dtype, out, [{}])
    for dtype in (I8, U8):
        yield from quantized_cases("SOFTMAX", dtype, Params(I16, 1 / 32768), betas[:1])
        yield from quantized_cases("SOFTMAX", dtype, Params(I16, 1 / 65536, -32768), betas[:1])
    for op, form in (("SOFTMAX", dict(beta=1.0)), ("LOG_SOFTMAX", {})):
        runs = [[Data(f"{op} {s}").floats(s)] for s in [(3, 4), (0, 2), (1, 2, 1, 3)]]
        first = given(Data(f"{op} resized").floats((2, 3)), declared=(1, 1))
        yield Case(op, "f32 resized again and again", [first], [result(F32)], runs=runs, **form)
        empty = dict(beta=0.5) if form else {}
        options = dict(litert="dies", because="segmentation fault", reference=lambda x: [x])
        yield Case(op, "f32 rows without elements", [given(np.zeros((3, 0), F32))], [result(F32)], **options, **empty)
    yield Case("LOG_SOFTMAX", "f32 scalar", [given(np.array(2.5, F32))], [result(F32)])
