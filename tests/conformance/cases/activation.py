# SPDX-License-Identifier: Apache-2.0
"""RELU RELU6 RELU_N1_TO_1 RELU_0_TO_1 LEAKY_RELU PRELU ELU GELU HARD_SWISH LOGISTIC TANH."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
from elementwise import BF16, F16, F32, I8, I16, SHAPES, U8, Params, every_level, known, name_of
from harness import Case, Data, both_ways, constant, given, result

RELUS = ("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1")
OPS = (*RELUS, "LEAKY_RELU", "ELU", "GELU", "HARD_SWISH", "LOGISTIC", "TANH")
FORMS = {
    "LEAKY_RELU": [dict(alpha=a) for a in (0.1, 0.0, 1.5, -0.5)],
    "GELU": [dict(approximate=a) for a in (False, True)],
}
FLOATS = {op: [F32, F16] for op in OPS}
FLOATS.update(RELU_0_TO_1=[F32], LOGISTIC=known(F32, F16, BF16), TANH=known(F32, F16, BF16))
F16_BY_XNNPACK_ONLY = ("RELU", "RELU6", "RELU_N1_TO_1", "LEAKY_RELU", "ELU", "HARD_SWISH")  # nothing that is empty
QUANTIZED = {op: [I8, U8, I16] for op in OPS}
QUANTIZED.update(RELU_N1_TO_1=[I8, U8], RELU_0_TO_1=[I8, U8], HARD_SWISH=[I8, U8], ELU=[I8])
PARAMETERS = [
    ((0.05, 0), (0.05, 0)), ((0.1, -128), (0.1, -128)), ((0.03, 10), (0.2, -20)), ((2.0, 127), (1.5, -128)),
    ((0.01, -1), (0.004, 127)), ((0.7, -100), (4.0, 5)), ((1e-3, 3), (0.9, 0)), ((0.25, 20), (0.0625, -50)),
    ((0.09, 5), (0.0233, -128)), ((12.0, 0), (9.0, 0)),
]  # fmt: skip
FIXED_OUTPUTS = {
    ("LOGISTIC", I8): (1 / 256, -128), ("LOGISTIC", U8): (1 / 256, 0), ("TANH", I8): (1 / 128, 0),
    ("TANH", U8): (1 / 128, 128),
}  # fmt: skip
PARAMETERS_16 = [(0.001, 0.001), (1e-4, 3e-4), (0.01, 5e-4), (3e-5, 1e-3), (2.0, 0.5), (1 / 4096, 1 / 32768)]
INPUTS_16 = [2.0**e for e in range(-16, -9)] + [0.001, 3e-4, 1e-4, 3 / 4096, 0.01, 3e-5, 0.1]


def float_cases(op: str, dtype, name: str, form: dict):
    for shape in [*SHAPES, (3, 67), (1025,)]:
        if dtype is F16 and op in F16_BY_XNNPACK_ONLY and 0 in shape:
            continue
        x = Data(f"{op} {name_of(dtype)} {shape}").floats(shape, -8, 8, dtype)
        yield Case(op, f"{name_of(dtype)} {shape}{name}", [given(x)], [result(dtype)], **form)
    data = Data(f"{op} {name_of(dtype)} special")
    x = data.special_floats((23,), dtype) if dtype is not BF16 else data.special_floats((23,)).astype(dtype)
    if op == "GELU" or (dtype is F16 and op in RELUS):
        yield Case(op, f"{name_of(dtype)} special values{name}", [given(x)], [result(dtype)], **fault(op), **form)
        x = np.where(np.isfinite(x), x, 1).astype(dtype)
        name = f" finite{name}"
    yield Case(op, f"{name_of(dtype)} special values{name}", [given(x)], [result(dtype)], **form)
    edges = np.array([-100, -20, -9.01, -9, -3, -1, -1e-3, -1e-6, 0, 1e-6, 1e-3, 1, 3, 6, 9, 9.01, 20, 100], dtype)
    yield Case(op, f"{name_of(dtype)} bends{name}", [given(edges)], [result(dtype)], **form)


def fault(op: str) -> dict:
    """What LiteRT makes of NaN and infinities, where that is not what the function is."""

    def clamp(x):
        low, high = {"RELU": (0, np.inf), "RELU6": (0, 6), "RELU_N1_TO_1": (-1, 1)}[op]
        return [np.clip(x, np.array(low, x.dtype), np.array(high, x.dtype))]

    def gelu(x):
        wide = np.where(x == -np.inf, -50.0, x.astype(np.float64))
        with np.errstate(all="ignore"):
            normal = np.array([math.erfc(-v / math.sqrt(2)) for v in wide])
            return [(0.5 * wide * normal).astype(x.dtype)]

    if op == "GELU":
        return dict(litert="wrong", because="NaN for minus infinity, where the limit is 0", reference=gelu)
    return dict(litert="wrong", because="XNNPACK's half-precision form gives a number for NaN", reference=clamp)


def quantized_cases(op: str, name: str, form: dict):
    for dtype in QUANTIZED[op]:
        offset = 128 if dtype is U8 else 0
        pairs = [((a, z + offset), (b, y + offset)) for (a, z), (b, y) in PARAMETERS]
        if dtype is I16:
            pairs = [((a, 0), (b, 0)) for a, b in PARAMETERS_16]
            if op in ("LOGISTIC", "TANH"):
                pairs = [((a, 0), (1 / 32768, 0)) for a in INPUTS_16]
        elif (op, dtype) in FIXED_OUTPUTS:
            pairs = [(p, FIXED_OUTPUTS[op, dtype]) for p, _ in pairs] + pairs[:5]
        for from_, to in pairs:
            p, q = Params(dtype, *from_), Params(dtype, *to)
            yield Case(op, f"{p} to {q}{name}", [p.given(every_level(dtype))], [q.result()], **form)
        for shape in SHAPES:
            p, q = Params(dtype, *pairs[0][0]), Params(dtype, *pairs[0][1])
            x = Data(f"{op} {shape}").ints(dtype, shape)
            yield Case(op, f"{name_of(dtype)} {shape}{name}", [p.given(x)], [q.result()], **form)


PRELU_SHAPES = [
    ((), ()), ((5,), (5,)), ((5,), (1,)), ((2, 3), (3,)), ((2, 3, 4), (1, 1, 4)), ((2, 3, 4), (4,)),
    ((1, 2, 3, 4), (1, 1, 4)), ((2, 3, 2, 4), (1, 1, 1, 4)), ((2, 3, 2, 4), (3, 2, 4)), ((2, 3, 2, 4), (3, 1, 1)),
    ((2, 3, 2, 4), ()), ((0, 3), (3,)), ((2, 0), (1,)), ((2, 2, 2, 2, 3), (3,)), ((3, 37), (37,)),
]  # fmt: skip


def prelu_cases():
    for dtype, (shape, slopes) in product((F32, F16), PRELU_SHAPES):
        data = Data(f"PRELU {name_of(dtype)} {shape} {slopes}")
        x, slope = data.floats(shape, dtype=dtype), data.floats(slopes, -1, 1.5, dtype)
        for second in both_ways(given(slope)):
            if dtype is F16 and (second.role == "given" or 0 in shape):
                continue  # by XNNPACK only
            yield Case("PRELU", f"{name_of(dtype)} {shape} {slopes} {second.role}", [given(x), second], [result(dtype)])
    for dtype, (shape, slopes) in product((I8, U8), PRELU_SHAPES):
        offset = 128 if dtype is U8 else 0
        for i, (a, b, c) in enumerate([(0.05, 0.01, 0.05), (0.1, 0.004, 0.03), (0.02, 0.9, 0.5), (1.0, 1.0, 1.0)]):
            scales_and_zeros = [(a, offset + 3 * i), (b, offset - 20 * i), (c, offset + 40 * i)]
            x, slope, out = (Params(dtype, *each) for each in scales_and_zeros)
            data = Data(f"PRELU {name_of(dtype)} {shape} {slopes} {i}")
            operands = [x.given(data.ints(dtype, shape)), slope.constant(data.ints(dtype, slopes))]
            if i < 2 or shape == (3, 37):
                yield Case("PRELU", f"{x}, {slope} to {out} {shape} {slopes}", operands, [out.result()])
    for shape, slopes in PRELU_SHAPES:
        for i, (a, b, c) in enumerate([(0.001, 0.01, 0.001), (3e-4, 0.9, 0.01)]):
            x, slope, out = Params(I16, a), Params(I8, b, 7 * i), Params(I16, c)
            data = Data(f"PRELU i16 {shape} {slopes} {i}")
            operands = [x.given(data.ints(I16, shape)), slope.constant(data.ints(I8, slopes))]
            yield Case("PRELU", f"{x}, {slope} to {out} {shape} {slopes}", operands, [out.result()])
    for shape, slopes in [((2, 3), (1, 2, 3)), ((3,), (2, 3)), ((1, 3), (2, 3)), ((2, 1), (1, 3)), ((2, 3), (1, 1, 3))]:
        x, slope = (Data(f"PRELU wide {shape} {s}").floats(s) for s in (shape, slopes))
        yield Case("PRELU", f"f32 {shape} stretched to {slopes}", [given(x), constant(slope)], [result(F32)])
    x = Data("PRELU special").special_floats((2, 11))
    yield Case("PRELU", "f32 special values", [given(x), given(np.array(0.5, F32))], [result(F32)])


def cases():
    for op in OPS:
        for form in FORMS.get(op, [{}]):
            name = "".join(f" {key} {value}" for key, value in form.items())
            for dtype in FLOATS[op]:
                if dtype is F16 and form.get("alpha") == 0.0:
                    continue  # XNNPACK does not take it
                yield from float_cases(op, dtype, name, form)
            yield from quantized_cases(op, name, form)
        runs = [[Data(f"{op} {s}").floats(s)] for s in [(3, 4), (0, 2), (), (1, 2, 1, 3, 1, 1)]]
        first = given(Data(f"{op} resized").floats((2,)), declared=(1,))
        yield Case(op, "f32 resized again and again", [first], [result(F32)], runs=runs)
    yield from prelu_cases()
