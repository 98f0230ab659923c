# SPDX-License-Identifier: Apache-2.0
"""ABS NEG EXP LOG SQRT RSQRT SQUARE SIN COS FLOOR CEIL ROUND SIGN."""

from __future__ import annotations

import numpy as np
from elementwise import (
    BF16,
    F16,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    SHAPES,
    Params,
    edges,
    every_level,
    known,
    name_of,
)  # fmt: skip
from harness import Case, Data, given, result

import leadline

OPS = ("ABS", "NEG", "EXP", "LOG", "SQRT", "RSQRT", "SQUARE", "SIN", "COS", "FLOOR", "CEIL", "ROUND", "SIGN")
FLOATS = {op: [F32, F16] for op in OPS}
FLOATS.update({op: known(F32, F16, BF16) for op in ("NEG", "FLOOR", "ROUND")}, SIGN=[F32, F64])
F16_BY_XNNPACK_ONLY = ("ABS", "EXP", "LOG", "SQRT", "RSQRT", "SQUARE", "CEIL")  # which takes nothing that is empty
INTEGERS = {"ABS": [I16, I32], "NEG": [I8, I16, I32, I64], "SIGN": [I32]}
POSITIVE = ("LOG", "SQRT", "RSQRT")
QUANTIZED = ("ABS", "NEG", "EXP", "LOG", "SQRT", "RSQRT")

# Input, output.
PARAMETERS = [
    ((0.1, 0), (0.1, 0)), ((0.05, -128), (0.02, -128)), ((0.03, 10), (0.2, -20)), ((2.0, 127), (1.5, -128)),
    ((0.01, -1), (0.004, 127)), ((0.7, -100), (4.0, 5)), ((1e-3, 3), (0.9, 0)), ((0.25, -128), (0.0625, -50)),
]  # fmt: skip
PARAMETERS_16 = [(0.001, 0.001), (1e-4, 3e-4), (0.01, 5e-4), (3e-5, 1e-3), (2.0, 0.5), (1 / 4096, 1 / 32768)]


def in_half(function, x):
    with np.errstate(all="ignore"):
        return [function(x.astype(F32)).astype(F16)]


def float_cases(op: str, dtype):
    low = 0.05 if op in POSITIVE else -6.0
    for shape in [*SHAPES, (3, 67), (1025,)]:
        if dtype is F16 and op in F16_BY_XNNPACK_ONLY and 0 in shape:
            continue
        x = Data(f"{op} {name_of(dtype)} {shape}").floats(shape, low, 6, dtype)
        yield Case(op, f"{name_of(dtype)} {shape}", [given(x)], [result(dtype)])
    data = Data(f"{op} {name_of(dtype)} special")
    x = data.special_floats((23,), dtype) if dtype is not BF16 else data.special_floats((23,)).astype(dtype)
    if op in ("SIN", "COS"):
        x = np.where(np.abs(x) > 1e4, 1, x).astype(dtype)
    options = {}
    if dtype is F16 and op in ("EXP", "LOG"):
        function = np.exp if op == "EXP" else np.log
        because = "XNNPACK's half-precision form gives numbers for NaN"
        options = dict(litert="wrong", because=because, reference=lambda v: in_half(function, v))
    yield Case(op, f"{name_of(dtype)} special values", [given(x)], [result(dtype)], **options)
    halves = np.arange(-8, 8.25, 0.25).astype(dtype)
    yield Case(op, f"{name_of(dtype)} quarters", [given(halves)], [result(dtype)])
    wide = data.floats((64,), -80, 80, dtype)
    yield Case(op, f"{name_of(dtype)} wide", [given(np.abs(wide) if op in POSITIVE else wide)], [result(dtype)])


def other_cases(op: str):
    runs = [[Data(f"{op} {s}").floats(s, 0.1, 3)] for s in [(3, 4), (0, 2), (), (1, 2, 1, 3, 1, 1)]]
    first = given(Data(f"{op} resized").floats((2,), 0.1, 3), declared=(1,))
    yield Case(op, "f32 resized again and again", [first], [result(F32)], runs=runs)
    if op in ("FLOOR", "CEIL", "ROUND"):
        powers = [2.0**23, 2.0**23 + 1, -(2.0**23), 2.0**24, 2.0**31, 2.0**33, -(2.0**62), 1e38]
        x = np.array([*powers, 8388607.5, -8388606.5, 0.49999997, -0.49999997], F32)
        yield Case(op, "f32 beyond the integers", [given(x)], [result(F32)])


def integer_cases(op: str):
    for dtype in INTEGERS.get(op, []):
        for shape in SHAPES:
            x = edges(Data(f"{op} {name_of(dtype)} {shape}"), dtype, shape)
            yield Case(op, f"{name_of(dtype)} {shape}", [given(x)], [result(dtype)])


def quantized_cases(op: str):
    for dtype in (I8, I16):
        pairs = PARAMETERS if dtype is I8 else [((a, 0), (b, 0)) for a, b in PARAMETERS_16]
        for from_, to in pairs:
            p, q = Params(dtype, *from_), Params(dtype, *to)
            x = every_level(dtype)
            if op in ("SQRT", "RSQRT"):
                x = np.maximum(x, p.zero_point).astype(dtype)
            yield Case(op, f"quantized {p} to {q}", [p.given(x)], [q.result()])
        for shape in SHAPES:
            p, q = Params(dtype, 0.01), Params(dtype, 0.02)
            x = Data(f"{op} {shape}").ints(dtype, shape, 1, 100)
            yield Case(op, f"quantized {name_of(dtype)} {shape}", [p.given(x)], [q.result()])


def chain(ops, ends_only: bool) -> bytes:
    """Op after op in what may be the same memory; x and either all results or the last one are outputs."""
    builder = leadline.ModelBuilder()
    tensors = [builder.input("x", F32, (3, 4))]
    for i, op in enumerate(ops):
        tensors.append(builder.tensor(f"y{i}", F32, ()))
        builder.node(op, [tensors[i]], [tensors[i + 1]])
    both = builder.tensor("sum", F32, ())
    builder.node("ADD", [tensors[0], tensors[-1]], [both])
    builder.output(*(tensors[:1] if ends_only else tensors), both)
    return builder.to_tflite()


def cases():
    x = Data("chain").floats((3, 4))
    ops = ("NEG", "ABS", "SQRT", "EXP", "LOG", "SQUARE", "RSQRT", "SIN", "COS", "FLOOR", "CEIL", "ROUND")
    for ends_only in (False, True):
        runs = [[x + 1], [Data("longer chain").floats((2, 5, 1))]]
        options = dict(runs=runs, build=lambda ends_only=ends_only: chain(ops, ends_only))
        yield Case("NEG", f"chain of all, ends only: {ends_only}", [given(x)], **options)
    for op in OPS:
        for dtype in FLOATS[op]:
            yield from float_cases(op, dtype)
        yield from other_cases(op)
        yield from integer_cases(op)
        if op in QUANTIZED:
            yield from quantized_cases(op)
