# SPDX-License-Identifier: Apache-2.0
"""POW FLOOR_DIV FLOOR_MOD RIGHT_SHIFT BITWISE_XOR ATAN2 STABLEHLO_AND STABLEHLO_SHIFT_LEFT."""

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
    SHAPES,
    U8,
    U16,
    U32,
    U64,
    edges,
    known,
    name_of,
)  # fmt: skip
from harness import Case, Data, both_ways, given, result

FLOOR_TYPES = {"FLOOR_DIV": [F32, I8, I16, I32], "FLOOR_MOD": [F32, I8, I16, I32, I64]}
INTEGERS = [I8, U8, I16, U16, I32, U32, I64, U64]


def pair(op: str, name: str, a, b):
    for second in both_ways(given(b))[: 2 if a.dtype in (F32, I32) else 1]:
        yield Case(op, f"{name} {second.role}", [given(a), second], [result(a.dtype)])


def float_power(a, b):
    with np.errstate(all="ignore"):
        return [np.power(a, b)]


def pow_cases():
    for dtype, (left, right) in product((F32, I32), BROADCASTS + EMPTY_BROADCASTS):
        data = Data(f"POW {name_of(dtype)} {left} {right}")
        if dtype is F32:
            a, b = data.floats(left, 0.1, 4), data.floats(right)
        else:
            a, b = data.ints(dtype, left, -12, 12), data.ints(dtype, right, 0, 20)
        yield from pair("POW", f"{name_of(dtype)} {left} {right}", a, b)
    data = Data("POW special")
    odd = data.special_floats((23,))
    for exponent in (0.0, 1.0, 2.0, 0.5, -0.5, -1.0, 3.0, np.inf, -np.inf, np.nan):
        options = {}
        if exponent in (2.0, 3.0):
            because = "gives the largest finite number for infinity"
            options = dict(litert="wrong", because=because, reference=float_power)
        for power in both_ways(given(np.array(exponent, F32))):
            if not options or power.role == "given":
                operands = [given(odd), power]
                yield Case("POW", f"f32 special to the {exponent} {power.role}", operands, [result(F32)], **options)
    for base in (0.0, -0.0, 1.0, -1.0, 2.0, -2.0, np.inf, -np.inf, np.nan):
        yield from pair("POW", f"f32 {base} to the special", np.array(base, F32), odd)
    ends = np.array([3, -3, 46341, -46341, 2, -2, 0, 1], I32), np.array([25, 21, 2, 2, 31, 31, 0, 100], I32)
    yield from pair("POW", "i32 around the ends", *ends)
    for exponent in (0, 1, 2, 3, 5):
        yield from pair("POW", f"i32 to the {exponent}", edges(data, I32, (17,)), np.array([exponent], I32))
        yield from pair("POW", f"f32 to the {exponent}", data.floats((17,)), np.array([exponent], F32))


def floor_cases(op: str):
    for dtype, (left, right) in product(FLOOR_TYPES[op], BROADCASTS + EMPTY_BROADCASTS):
        data = Data(f"{op} {name_of(dtype)} {left} {right}")
        if dtype is F32:
            a, b = data.floats(left, -9, 9), data.floats(right)
        else:
            a, b = data.ints(dtype, left, -100, 100), data.ints(dtype, right, -9, 9)
            b[b == 0] = 7
        yield from pair(op, f"{name_of(dtype)} {left} {right}", a, b)
    for dtype in FLOOR_TYPES[op][1:]:
        info = np.iinfo(dtype)
        ends = np.array([info.min, info.min, info.max, info.max, info.min + 1, 0, 1, -1], dtype)
        by = np.array([1, info.min, info.max, info.min, info.max, info.min, info.max, info.min], dtype)
        yield from pair(op, f"{name_of(dtype)} ends", ends, by)
        signs = np.array([7, 7, -7, -7, 6, -6, 6, -6], dtype), np.array([3, -3, 3, -3, 3, 3, -3, -3], dtype)
        yield from pair(op, f"{name_of(dtype)} signs", *signs)
        negated = np.array([info.min + 1, 3, -5, 0, info.max], dtype)
        yield from pair(op, f"{name_of(dtype)} by -1", negated, np.array([-1], dtype))
    signs = [7, -7, 7, -7, 6, -6, 0, -0.0, 2.5, -2.5], [3, 3, -3, -3, 3, -3, 3, -3, 0.5, 0.5]
    yield from pair(op, "f32 signs", *(np.array(values, F32) for values in signs))
    odd = Data(f"{op} special").special_floats((23,))
    yield from pair(op, "f32 special by 2", odd, np.array([2], F32))
    yield from pair(op, "f32 special by -0.3", odd, np.array([-0.3], F32))
    endless = np.array([np.inf, np.inf, -np.inf, -np.inf], F32)
    yield from pair(op, "f32 by infinity", np.array([1, -1, 0, 5.5], F32), endless)
    if op == "FLOOR_MOD":
        yield from pair(op, "f32 by zero", np.array([1, -1, 0, 5.5], F32), np.array([0, -0.0, 0, 1], F32))


def bit_cases():
    for op, dtype in product(("BITWISE_XOR", "RIGHT_SHIFT"), [I8, U8, I16, U16, I32, U32]):
        for left, right in FEW_BROADCASTS + EMPTY_BROADCASTS:
            data = Data(f"{op} {name_of(dtype)} {left} {right}")
            a = edges(data, dtype, left)
            b = edges(data, dtype, right)
            if op == "RIGHT_SHIFT":
                b = data.ints(dtype, right, 0, np.iinfo(dtype).bits - 1)
            yield from pair(op, f"{name_of(dtype)} {left} {right}", a, b)
        if op == "RIGHT_SHIFT":
            bits = np.iinfo(dtype).bits
            b = np.array([0, 1, bits - 1, bits, bits + 1, 100], dtype)
            yield from pair(op, f"{name_of(dtype)} distances", edges(Data(f"{dtype}"), dtype, (6,)), b)
            if dtype in (I8, I16, I32):
                left = np.array([1, -1, 100], dtype), np.array([-1, -2, -100], dtype)
                yield from pair(op, f"{name_of(dtype)} to the left", *left)
    forms = [*product(["STABLEHLO_AND"], [*INTEGERS, BOOL]), *product(["STABLEHLO_SHIFT_LEFT"], [I8, I16, I32])]
    for op, dtype in forms:
        for shape in SHAPES[::2]:
            data = Data(f"{op} {name_of(dtype)} {shape}")
            a, b = ((edges(data, dtype, shape) if dtype is not BOOL else data.bools(shape)) for _ in range(2))
            if op == "STABLEHLO_SHIFT_LEFT":
                b = data.ints(dtype, shape, 0, np.iinfo(dtype).bits - 1)
            yield from pair(op, f"{name_of(dtype)} {shape}", a, b)


def atan2_cases():
    for dtype, shape in product(known(F32, F64, F16, BF16), SHAPES):
        data = Data(f"ATAN2 {name_of(dtype)} {shape}")
        y, x = data.floats(shape, dtype=dtype), data.floats(shape, dtype=dtype)
        yield from pair("ATAN2", f"{name_of(dtype)} {shape}", y, x)
    odd = Data("ATAN2 special").special_floats((22,))
    for by in (1, 2, 3, 7):
        yield from pair("ATAN2", f"f32 special pairs {by}", odd, np.roll(odd, 2 * by))
    for dtype in (F32, F64):
        y, x = np.array([0, 0, -0.0, -0.0, 1, -1, 1, -1], dtype), np.array([0, -0.0, 0, -0.0, 0, 0, -0.0, -0.0], dtype)
        yield from pair("ATAN2", f"{name_of(dtype)} zeros", y, x)


def cases():
    yield from pow_cases()
    yield from floor_cases("FLOOR_DIV")
    yield from floor_cases("FLOOR_MOD")
    yield from bit_cases()
    yield from atan2_cases()
