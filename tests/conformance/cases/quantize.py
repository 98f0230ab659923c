# SPDX-License-Identifier: Apache-2.0
"""QUANTIZE DEQUANTIZE."""

from __future__ import annotations

from itertools import product

import numpy as np
from elementwise import F16, F32, I8, I16, I32, SHAPES, U8, Params, every_level, name_of
from harness import Case, Data, Tensor, constant, given, result

import leadline

PARAMETERS = [(0.1, 0), (0.05, -128), (1.0, 127), (3.0, 5), (0.003, -3), (1e-4, 60), (300.0, 1), (1 / 3, 7)]
# Input, output.
RESCALES = [
    ((0.1, 0), (0.1, 0)), ((0.1, 0), (0.2, 0)), ((0.2, 5), (0.1, -5)), ((0.05, -128), (0.03, 127)),
    ((1.0, 1), (1.0, 0)), ((0.001, 3), (3.0, 4)), ((3.0, 3), (0.001, -4)), ((0.5, -10), (0.25, -20)),
    ((0.3, 127), (0.7, -128)), ((0.1, 2), (0.1, 3)),
]  # fmt: skip
CHANNELS = [((3, 4), 0), ((3, 4), 1), ((2, 3, 5), 1), ((2, 2, 2, 3), 3), ((4,), 0), ((1, 3), 0)]  # shape, axis
# LiteRT's types for each input type.
REQUANTIZED = {I8: (I8, U8, I16), U8: (I8, U8, I16), I16: (I8, I16, I32), I32: (I8, I16)}
PACKED = {leadline.DType.INT4: (-8, 7), leadline.DType.UINT4: (0, 15), leadline.DType.INT2: (-2, 1)}


def offset(dtype) -> int:
    return 128 if dtype is U8 else 0


def quantize_cases():
    for dtype, (scale, zero) in product((I8, U8, I16), PARAMETERS):
        q = Params(dtype, scale, zero + offset(dtype))
        data = Data(f"QUANTIZE {q}")
        x = data.floats((300,), -160 * scale, 160 * scale)
        yield Case("QUANTIZE", f"f32 to {q}", [given(x)], [q.result()])
        halves = ((np.arange(-20, 21) / 2) * scale).astype(F32)
        yield Case("QUANTIZE", f"f32 halves to {q}", [given(halves)], [q.result()])
        odd = data.special_floats((23,))
        if dtype is I16:  # LiteRT's kernel converts what is beyond int32
            odd = np.nan_to_num(odd, nan=0).clip(-(2.0**30) * scale, 2.0**30 * scale)
        yield Case("QUANTIZE", f"f32 special to {q}", [given(odd)], [q.result()])
        yield Case("QUANTIZE", f"f32 constant to {q}", [constant(x)], [q.result()])
    for dtype, shape in product((I8, U8, I16), SHAPES):
        q = Params(dtype, 0.03, offset(dtype))
        x = Data(f"QUANTIZE {shape}").floats(shape)
        yield Case("QUANTIZE", f"f32 to {name_of(dtype)} {shape}", [given(x)], [q.result()])
    for dtype, (shape, axis) in product((I8, U8, I16), CHANNELS):
        data = Data(f"QUANTIZE {name_of(dtype)} {shape} {axis}")
        count = shape[axis]
        scales = data.rng.uniform(0.01, 0.2, count).tolist()
        zeros = [0] * count if dtype is I16 else (data.rng.integers(-20, 20, count) + offset(dtype)).tolist()
        out = Tensor(None, dtype, "result", scales, zeros, axis, shape=shape)
        name = f"f32 to {name_of(dtype)} {shape} per channel {axis}"
        yield Case("QUANTIZE", name, [given(data.floats(shape))], [out])
    for packed, shape in product((leadline.DType.INT4, leadline.DType.UINT4), [(8,), (7,), (0,), (2, 3), ()]):
        x = Data(f"QUANTIZE {packed} {shape}").floats(shape, -2, 2)
        yield Case("QUANTIZE", f"f32 to {packed} {shape}", [given(x)], [result(packed, 0.2, 0)])
        yield Case("QUANTIZE", f"f32 to {packed} {shape} offset", [given(x)], [result(packed, 0.3, 1)])


def requantize_cases():
    for from_, to in [(a, b) for a, types in REQUANTIZED.items() for b in types]:
        for (a, x), (b, y) in RESCALES:
            p = Params(from_, a, 0 if from_ in (I16, I32) else x + offset(from_))
            q = Params(to, b, 0 if to in (I16, I32) else y + offset(to))
            levels = Data(f"{p} {q}").ints(I32, (500,), -(2**17), 2**17) if from_ is I32 else every_level(from_)
            yield Case("QUANTIZE", f"{p} to {q} requantized {x} {y}", [p.given(levels)], [q.result()])
        p, q = Params(from_, 0.1, offset(from_)), Params(to, 0.15, offset(to))
        for shape in SHAPES:
            levels = Data(f"QUANTIZE {from_} {shape}").ints(from_, shape)
            yield Case("QUANTIZE", f"{name_of(from_)} to {name_of(to)} {shape}", [p.given(levels)], [q.result()])


def dequantized_constant(name: str, x: Tensor) -> Case:
    """constant -> DEQUANTIZE -> ADD: weights stored narrow. LiteRT does not run a DEQUANTIZE of constants alone."""

    def build() -> bytes:
        builder = leadline.ModelBuilder()
        wide = builder.tensor("wide", F32, x.value.shape)
        weights = builder.constant("weights", x.value, scales=x.scales, zero_points=x.zero_points, axis=x.axis)
        out = builder.tensor("out", F32, x.value.shape)
        builder.node("DEQUANTIZE", [weights], [wide])
        builder.node("ADD", [builder.input("x", F32, x.value.shape), wide], [out])
        builder.output(out)
        return builder.to_tflite()

    return Case("DEQUANTIZE", f"{name} constant", [given(Data(name).floats(x.value.shape))], build=build)


def dequantize_cases():
    for dtype, (scale, zero) in product((I8, U8, I16), PARAMETERS):
        p = Params(dtype, scale, 0 if dtype is I16 else zero + offset(dtype))
        if dtype is I16 and zero < 0:
            continue
        yield Case("DEQUANTIZE", f"{p} {zero}", [p.given(every_level(dtype))], [result(F32)])
        yield dequantized_constant(f"{p} {zero}", p.constant(every_level(dtype)))
    for dtype, shape in product((I8, U8, I16, F16), SHAPES):
        data = Data(f"DEQUANTIZE {name_of(dtype)} {shape}")
        x = given(data.floats(shape, dtype=F16)) if dtype is F16 else Params(dtype, 0.1).given(data.ints(dtype, shape))
        yield Case("DEQUANTIZE", f"{name_of(dtype)} {shape}", [x], [result(F32)])
        yield dequantized_constant(f"{name_of(dtype)} {shape}", constant(x.value, x.scales, x.zero_points))
    yield Case("DEQUANTIZE", "f16 special values", [given(Data("half").special_floats((23,), F16))], [result(F32)])
    for dtype, (shape, axis) in product((I8, U8), CHANNELS):
        data = Data(f"DEQUANTIZE {name_of(dtype)} {shape} {axis}")
        count = shape[axis]
        scales = data.rng.uniform(0.01, 0.2, count).tolist()
        zeros = (data.rng.integers(-20, 20, count) + offset(dtype)).tolist()
        x, name = data.ints(dtype, shape), f"{name_of(dtype)} {shape} per channel {axis}"
        yield Case("DEQUANTIZE", name, [given(x, scales, zeros, axis=axis)], [result(F32)])
        yield dequantized_constant(name, constant(x, scales, zeros, axis=axis))
    for packed, shape, make in product(PACKED, [(8,), (7,), (0,), (2, 3), (), (3, 5, 3)], (given, constant)):
        low, high = PACKED[packed]
        if make is given and packed == leadline.DType.INT2:
            continue  # LiteRT's set_tensor has no type for it
        levels = Data(f"DEQUANTIZE {packed} {shape}").ints(I8 if low else U8, shape, low, high)
        x = make(levels, 0.25, 1 if low == 0 else 0, dtype=packed)
        yield Case("DEQUANTIZE", f"{packed} {shape} {x.role}", [x], [result(F32)])
    for packed in PACKED:
        low, high = PACKED[packed]
        levels = Data(f"DEQUANTIZE {packed} channels").ints(I8 if low else U8, (3, 5), low, high)
        for axis, count in ((0, 3), (1, 5)):
            scales = [0.1 * (i + 1) for i in range(count)]
            x = constant(levels, scales, [0] * count, axis=axis, dtype=packed)
            yield Case("DEQUANTIZE", f"{packed} per channel {axis}", [x], [result(F32)])


def cases():
    yield from quantize_cases()
    yield from requantize_cases()
    yield from dequantize_cases()
    q = Params(I8, 0.05, 3)
    shapes = [(3, 4), (0, 2), (), (1, 2, 1, 3, 1, 1)]
    runs = [[Data(f"QUANTIZE {s}").floats(s)] for s in shapes]
    first = given(Data("QUANTIZE resized").floats((2,)), declared=(1,))
    yield Case("QUANTIZE", "resized again and again", [first], [q.result()], runs=runs)
    runs = [[Data(f"DEQUANTIZE {s}").ints(I8, s)] for s in shapes]
    first = q.given(Data("DEQUANTIZE resized").ints(I8, (2,)), declared=(1,))
    yield Case("DEQUANTIZE", "resized again and again", [first], [result(F32)], runs=runs)
