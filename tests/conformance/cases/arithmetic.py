# SPDX-License-Identifier: Apache-2.0
"""ADD SUB MUL DIV SQUARED_DIFFERENCE and the two of StableHLO."""

from __future__ import annotations

from itertools import product

import numpy as np
from elementwise import (
    BOOL,
    BROADCASTS,
    C64,
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
    U8,
    U16,
    U32,
    U64,
    Params,
    edges,
    name_of,
)  # fmt: skip
from harness import (
    NONE,
    RELU,
    RELU6,
    RELU_N1_TO_1,
    SIGN_BIT,
    TANH,
    Case,
    Data,
    both_ways,
    constant,
    dequantize,
    given,
    result,
)  # fmt: skip

import leadline

OPS = ("ADD", "SUB", "MUL", "DIV", "SQUARED_DIFFERENCE")
ACTIVATIONS = {"none": NONE, "relu": RELU, "relu6": RELU6, "relu_n1_to_1": RELU_N1_TO_1, "tanh": TANH, "sign": SIGN_BIT}

# Types besides float32 and the quantized ones.
PLAIN = {
    "ADD": [F16, I16, I32, I64],
    "SUB": [F16, I32, I64],
    "MUL": [F16, I16, I32, I64, U32, C64],
    "DIV": [F16, I32],
    "SQUARED_DIFFERENCE": [F16, I32],
}
BY_XNNPACK_ONLY = [("SUB", F16), ("DIV", F16), ("SQUARED_DIFFERENCE", F16)]  # not when empty or with odd activations

QUANTIZED_SHAPES = [
    ((9, 31), (9, 31)), ((3, 40), (40,)), ((2, 3, 4), ()), ((2, 1, 5), (1, 4, 1)), ((1,), (3, 1, 2, 3, 1)),
]  # fmt: skip
# Left, right, output.
QUANTIZED_8 = [
    ((0.05, 0), (0.05, 0), (0.1, 0)), ((0.02, -128), (0.03, 127), (0.04, 0)), ((0.5, 10), (0.01, -5), (0.3, 3)),
    ((0.007, 127), (0.9, -128), (1.3, -128)), ((0.1, 4), (0.1, 4), (0.001, 0)), ((1.5, -7), (2.0, 9), (7.0, 20)),
    ((1.0, 0), (1.0, 0), (1.0, 0)), ((1e-4, 1), (3.0, 2), (3.0, 3)), ((0.0039, -128), (0.0039, -128), (0.0078, -128)),
    ((0.25, 0), (0.25, 0), (300.0, 0)),
]  # fmt: skip
QUANTIZED_16 = [(0.001, 0.001, 0.002), (0.0001, 0.003, 0.001), (1.0, 0.5, 2.1), (0.25, 0.25, 0.0001), (3e-5, 3e-5, 1.0)]
# LiteRT shifts by more than 31 bits where a quotient is much smaller than a step of the output: quotients that are not.
QUANTIZED_8_DIV = [
    ((0.5, 10), (0.01, -5), (0.3, 3)), ((0.1, 4), (0.1, 4), (0.001, 0)), ((0.9, -128), (0.007, 127), (1.3, -128)),
    ((0.0039, -128), (0.0039, -128), (0.0078, -128)), ((1.0, 0), (1.0, 0), (0.015, 0)), ((3.0, 1), (1e-4, 2), (3.0, 3)),
]  # fmt: skip
QUANTIZED_16_DIV = [(0.001, 0.001, 0.002), (0.003, 0.0001, 0.001), (1.0, 0.5, 0.01), (0.25, 0.25, 0.0001)]
POWERS_OF_TWO = [(-15, -15, -15), (-15, -12, -12), (-10, -12, -10), (0, -3, 0)]
OTHER_POWERS = [(-12, -12, -11), (-8, -10, -12)]  # nothing for shifts alone


def operands(data: Data, op: str, dtype, left, right):
    if np.dtype(dtype).kind in "iu":
        a, b = edges(data, dtype, left), edges(data, dtype, right)
        if op == "DIV":
            b[b == 0] = 3
        return a, b
    a, b = data.any(dtype, left), data.any(dtype, right)
    if op == "DIV":
        b = np.where(np.abs(b) < 0.25, np.ones_like(b), b).astype(dtype)
    return a, b


def float_cases(op: str):
    for left, right in BROADCASTS + EMPTY_BROADCASTS + LARGE_BROADCASTS:
        data = Data(f"{op} {left} {right}")
        a, b = operands(data, op, F32, left, right)
        for second in both_ways(given(b)):
            yield Case(op, f"f32 {left} {right} {second.role}", [given(a), second], [result(F32)])
    for name, activation in ACTIVATIONS.items():
        if op == "SQUARED_DIFFERENCE":
            break
        for left, right in FEW_BROADCASTS:
            data = Data(f"{op} {name} {left} {right}")
            a, b = operands(data, op, F32, left, right)
            options = dict(fused_activation_function=activation)
            yield Case(op, f"f32 {name} {left} {right}", [given(4 * a), given(b)], [result(F32)], **options)
    data = Data(f"{op} special")
    odd, other = data.special_floats((23,)), data.floats((23,), 0.5, 2)
    yield Case(op, "f32 special values", [given(odd), given(other)], [result(F32)])
    yield Case(op, "f32 special values right", [given(other), given(odd)], [result(F32)])
    yield Case(op, "f32 special pairs", [given(odd), given(np.roll(odd, 2))], [result(F32)])
    if op != "SQUARED_DIFFERENCE":
        options = dict(fused_activation_function=RELU6)
        finite = np.where(np.isnan(odd), 1, odd).astype(F32)
        yield Case(op, "f32 special values relu6", [given(finite), given(other)], [result(F32)], **options)
    shapes = [((4, 3), (3,)), ((1,), (2, 2, 1)), ((0, 2), (2,))]
    grown = [[data.floats(s, 0.5, 2), data.floats(t, 0.5, 2)] for s, t in shapes]
    first = [given(data.floats((2, 3)), declared=(1, 3)), given(data.floats((1,), 0.5, 2), declared=(3,))]
    yield Case(op, "f32 resized again and again", first, [result(F32)], runs=grown)


def plain_cases(op: str):
    for dtype in PLAIN[op]:
        limited = (op, dtype) in BY_XNNPACK_ONLY
        for left, right in FEW_BROADCASTS + EMPTY_BROADCASTS[: 0 if limited else 3]:
            data = Data(f"{op} {name_of(dtype)} {left} {right}")
            a, b = operands(data, op, dtype, left, right)
            for second in both_ways(given(b))[: 2 if dtype in (F16, I32) else 1]:
                yield Case(op, f"{name_of(dtype)} {left} {right} {second.role}", [given(a), second], [result(dtype)])
        if op == "SQUARED_DIFFERENCE":
            continue
        for name, activation in ACTIVATIONS.items():
            if (activation != NONE and dtype is C64) or (activation >= TANH and limited):
                continue
            if dtype is U32 and activation == RELU_N1_TO_1:
                continue
            data = Data(f"{op} {name_of(dtype)} {name}")
            a, b = operands(data, op, dtype, (3, 5), (5,))
            options = dict(fused_activation_function=activation)
            yield Case(op, f"{name_of(dtype)} {name}", [given(a), given(b)], [result(dtype)], **options)


def quantized_operands(data: Data, op: str, left: Params, right: Params, shapes):
    a, b = data.ints(left.dtype, shapes[0]), data.ints(right.dtype, shapes[1])
    if op == "DIV":
        b[b == right.zero_point] = 1 if right.zero_point != 1 else 2
        if left.dtype is I16:
            a[np.abs(a.astype(int)) < 4096] = 4096
            b = np.clip(b, -700, 700)
    return left.given(a), right.given(b)


def quantized_cases(op: str):
    for dtype in (I8, U8):
        offset = 128 if dtype is U8 else 0
        if (op, dtype) == ("SQUARED_DIFFERENCE", U8):
            continue
        for i, parameters in enumerate(QUANTIZED_8_DIV if op == "DIV" else QUANTIZED_8):
            left, right, out = (Params(dtype, scale, zero + offset) for scale, zero in parameters)
            for shapes in QUANTIZED_SHAPES:
                data = Data(f"{op} {name_of(dtype)} {i} {shapes}")
                x, y = quantized_operands(data, op, left, right, shapes)
                yield Case(op, f"{left}, {right} to {out} {shapes}", [x, y], [out.result()])
            for name, activation in ACTIVATIONS.items():
                x, y = quantized_operands(Data(f"{op} {dtype} {i} {name}"), op, left, right, ((64,), (64,)))
                options = dict(fused_activation_function=activation)
                # LiteRT's uint8 kernel cannot multiply by more than 1, and XNNPACK takes no odd activations.
                grows = op == "MUL" and dtype is U8 and left.scale * right.scale > out.scale and activation >= TANH
                if op != "SQUARED_DIFFERENCE" and i < 6 and name != "none" and not grows:
                    yield Case(op, f"{left}, {right} to {out} {name}", [x, y], [out.result()], **options)
            x, y = quantized_operands(Data(f"{op} {dtype} {i} constant"), op, left, right, ((4, 16), (16,)))
            yield Case(op, f"{left}, {right} to {out} constant", [x, right.constant(y.value)], [out.result()])
    if op == "SQUARED_DIFFERENCE":
        return
    for i, scales in enumerate(QUANTIZED_16_DIV if op == "DIV" else QUANTIZED_16):
        if op == "MUL" and scales[0] * scales[1] > scales[2]:
            continue  # see fault_cases()
        left, right, out = (Params(I16, scale) for scale in scales)
        for shapes in [((300,), (300,)), ((2, 3, 4, 2), (3, 1, 1)), ((), (6,))]:
            x, y = quantized_operands(Data(f"{op} i16 {i} {shapes}"), op, left, right, shapes)
            yield Case(op, f"{left}, {right} to {out} {shapes}", [x, y], [out.result()])
        for name, activation in ACTIVATIONS.items():
            x, y = quantized_operands(Data(f"{op} i16 {i} {name}"), op, left, right, ((64,), (64,)))
            options = dict(fused_activation_function=activation)
            if name != "none":
                yield Case(op, f"{left}, {right} to {out} {name}", [x, y], [out.result()], **options)


def power_of_two_cases(op: str):
    forms = [*product(POWERS_OF_TWO, (True, False)), *product(OTHER_POWERS, (False,))]
    for (exponents, flag), activation in product(forms, (NONE, RELU, RELU6)):
        left, right, out = (Params(I16, 2.0**e) for e in exponents)
        x, y = quantized_operands(Data(f"{op} {exponents}"), op, left, right, ((5, 40), (5, 40)))
        options = dict(pot_scale_int16=flag, fused_activation_function=activation)
        yield Case(op, f"i16 powers {exponents} {flag} {activation}", [x, y], [out.result()], **options)


def other_cases():
    for out in (Params(I8, 1 / 128), Params(U8, 1 / 128, 128), Params(I8, 0.02, 5), Params(U8, 0.01, 0)):
        a, b = Data(f"narrow {out}").ints(I16, (2, 5, 30)), Data(f"narrower {out}").ints(I16, (2, 5, 30))
        scale = Params(I16, 1 / 32768)
        for activation in (NONE, RELU):
            options = dict(fused_activation_function=activation)
            yield Case("MUL", f"i16 to {out} {activation}", [scale.given(a), scale.given(b)], [out.result()], **options)
    for op in OPS:
        a = Data(f"{op} constant on the left").floats((3, 5), 0.5, 2)
        yield Case(op, "f32 constant on the left", [constant(a[0]), given(a)], [result(F32)])
        yield Case(op, "f32 x with itself", build=lambda op=op: with_itself(op), inputs=[given(a)])
        yield Case(op, "f32 constants alone", [constant(a), constant(a[0])], [result(F32)])
        for rank in (7, 8):
            wide = Data(f"{op} {rank}").floats((2,) + (1,) * (rank - 2) + (3,), 0.5, 2)
            for other in ((), (3,), wide.shape, (2, 1)):
                b = Data(f"{op} {other}").floats(other, 0.5, 2)
                yield Case(op, f"f32 {wide.shape} {other}", [given(wide), given(b)], [result(F32)])
        p = Params(I8, 0.1, 3)
        for shapes in LARGE_BROADCASTS:
            x, y = quantized_operands(Data(f"{op} large {shapes}"), op, p, p, shapes)
            out = Params(I8, 0.01 if op == "DIV" else 0.05, -4)
            yield Case(op, f"{p} to {out} {shapes}", [x, y], [out.result()])
        x, y = Data(f"{op} again").ints(I8, (2, 3, 4), 30, 90), Data(f"{op} and again").ints(I8, (4,), 30, 90)
        grown = [p.given(x, declared=(1, 3, 4)), p.given(y, declared=(1,))]
        yield Case(op, f"{p} resized again and again", grown, [p.result()], runs=[[y, x], [x[:0], y], [x, y]])
        yield Case(op, f"{p} constants alone", [p.constant(x), p.constant(y)], [p.result()])


def with_itself(op: str) -> bytes:
    """y = op(x, x), then z = op(y, x)."""
    builder = leadline.ModelBuilder()
    x = builder.input("x", F32, (3, 5))
    y, z = builder.tensor("y", F32, ()), builder.tensor("z", F32, ())
    builder.node(op, [x, x], [y])
    builder.node(op, [y, x], [z])
    builder.output(y, z)
    return builder.to_tflite()


def fault_cases():
    left, right, out = Params(I16, 0.25), Params(I16, 0.25), Params(I16, 1e-4)
    x, y = quantized_operands(Data("overflow"), "MUL", left, right, ((64,), (64,)))

    def product_of(a, b):
        return [out.levels(dequantize(a, 0.25, 0) * dequantize(b, 0.25, 0))]

    options = dict(litert="wrong", because="products above 32 bits wrap around", reference=product_of)
    yield Case("MUL", "i16 far above the output's range", [x, y], [out.result()], **options)
    for dtype, zero in ((I8, 0), (U8, 128)):
        p = Params(dtype, 1.0, zero)
        a, b = np.array([1, -1, 2, 100], int) + zero, np.array([120, 100, 90, 7], int) + zero

        def quotient(a, b, p=p):
            return [p.levels(dequantize(a, 1.0, p.zero_point) / dequantize(b, 1.0, p.zero_point))]

        options = dict(litert="wrong", because="shifts by more than 31 bits; 1/120 becomes 127", reference=quotient)
        operands = [p.given(a.astype(dtype)), p.given(b.astype(dtype))]
        yield Case("DIV", f"{p} quotients that round to 0", operands, [p.result()], **options)
    a, b = edges(Data("short"), I16, (3, 5)), edges(Data("shorter"), I16, (5,))
    options = dict(litert="dies", because="TFLITE_CHECK in quantize_multiplier", reference=lambda x, y: [x - y])
    yield Case("SUB", "i16 that is not quantized", [given(a), given(b)], [result(I16)], **options)
    a, b = edges(Data("words"), U32, (3, 5)), edges(Data("more words"), U32, (5,))
    options = dict(litert="wrong", because="takes -1 for 2^32 - 1", reference=lambda x, y: [np.minimum(x * y, 1)])
    options["fused_activation_function"] = RELU_N1_TO_1
    yield Case("MUL", "u32 relu_n1_to_1", [given(a), given(b)], [result(U32)], **options)


def stablehlo_cases():
    types = [F32, F16, F64, I8, U8, I16, U16, I32, U32, I64, U64, BOOL]
    for op, dtype in product(("STABLEHLO_ADD", "STABLEHLO_MULTIPLY"), types):
        for shape in [(), (1,), (7,), (3, 5), (2, 0), (2, 3, 2, 2, 1, 2)]:
            data = Data(f"{op} {name_of(dtype)} {shape}")
            integers = np.dtype(dtype).kind in "iu"
            a, b = ((edges(data, dtype, shape) if integers else data.any(dtype, shape)) for _ in range(2))
            yield Case(op, f"{name_of(dtype)} {shape}", [given(a), given(b)], [result(dtype)])


def cases():
    for op in OPS:
        yield from float_cases(op)
        yield from plain_cases(op)
        yield from quantized_cases(op)
    yield from power_of_two_cases("ADD")
    yield from power_of_two_cases("SUB")
    yield from other_cases()
    yield from fault_cases()
    yield from stablehlo_cases()
