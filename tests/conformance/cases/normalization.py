# SPDX-License-Identifier: Apache-2.0
"""L2_NORMALIZATION LOCAL_RESPONSE_NORMALIZATION."""

from __future__ import annotations

from itertools import product

import numpy as np
from elementwise import F32, I8, U8, Params
from harness import Case, Data, constant, given, result

SHAPES = [
    (1,), (5,), (2, 3), (0, 3), (3, 0), (1, 1), (4, 1), (2, 3, 4), (1, 2, 3, 4), (2, 1, 2, 17), (1, 1, 1, 100),
    (2, 1, 2, 3, 4), (2, 1, 2, 1, 2, 3),
]  # fmt: skip


def l2_cases():
    op = "L2_NORMALIZATION"
    for shape in SHAPES:
        x = Data(f"{op} {shape}").floats(shape)
        yield Case(op, f"f32 {shape}", [given(x)], [result(F32)])
    yield Case(op, "f32 zeros", [given(np.zeros((2, 3), F32))], [result(F32)])
    yield Case(op, "f32 tiny", [given(np.array([[1e-7, 2e-7], [1e-20, 1e-20]], F32))], [result(F32)])
    yield Case(op, "f32 large", [given(np.array([[1e18, 2e18], [1e30, 1e30]], F32))], [result(F32)])
    yield Case(op, "f32 special values", [given(Data(op).special_floats((4, 6)))], [result(F32)])
    outputs = {I8: Params(I8, 1 / 128, 0), U8: Params(U8, 1 / 128, 128)}
    for dtype, (scale, zero), shape in product((I8, U8), [(0.1, 0), (0.01, -128), (2.0, 127), (0.5, 13)], SHAPES):
        p = Params(dtype, scale, zero + (128 if dtype is U8 else 0))
        x = Data(f"{op} {p} {shape}").ints(dtype, shape)
        yield Case(op, f"{p} {shape}", [p.given(x)], [outputs[dtype].result()])
    for dtype in (I8, U8):
        p = Params(dtype, 0.1, 5)
        x = np.full((2, 4), 5, dtype)
        x[1, 2] = 6
        yield Case(op, f"{p} almost zeros", [p.given(x)], [outputs[dtype].result()])
    runs = [[Data(f"{op} {s}").floats(s)] for s in [(3, 4), (1, 2), (1, 2, 1, 3)]]
    yield Case(op, "f32 resized again and again", [given(runs[0][0] + 1, declared=(1, 4))], [result(F32)], runs=runs)


def local_response_cases():
    op = "LOCAL_RESPONSE_NORMALIZATION"
    forms = [
        (5, 1.0, 1.0, 0.5), (0, 1.0, 1.0, 0.5), (1, 2.0, 0.1, 0.75), (20, 9.0, 4.0, 0.5), (2, 0.5, 0.25, 1.0),
        (3, 1.0, 2.0, 2.0), (1, 1.0, 1.0, -0.5), (1, 0.0, 1.0, 0.5),
    ]  # fmt: skip
    shapes = [(1, 1, 1, 6), (2, 3, 2, 7), (1, 1, 1, 1), (1, 2, 2, 33), (0, 1, 1, 3), (1, 2, 2, 0)]
    for (radius, bias, alpha, beta), shape in product(forms, shapes):
        x = Data(f"{op} {shape}").floats(shape)
        form = dict(radius=radius, bias=bias, alpha=alpha, beta=beta)
        yield Case(op, f"f32 {shape} {' '.join(map(str, form.values()))}", [given(x)], [result(F32)], **form)
        if shape == (2, 3, 2, 7):
            yield Case(op, f"f32 {form} constant", [constant(x)], [result(F32)], **form)


def cases():
    yield from l2_cases()
    yield from local_response_cases()
