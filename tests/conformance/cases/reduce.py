# SPDX-License-Identifier: Apache-2.0
"""MEAN SUM REDUCE_PROD REDUCE_MAX REDUCE_MIN REDUCE_ANY REDUCE_ALL."""

from __future__ import annotations

import numpy as np
from harness import Case, Data, constant, given, result
from shaped import both

# shape, axes
REDUCTIONS = [
    ((7,), [0]), ((1,), [0]), ((4, 5), [0]), ((4, 5), [1]), ((4, 5), [0, 1]), ((4, 5), [-1]), ((4, 5), [-2, -1]),
    ((3, 4, 5), [1]), ((3, 4, 5), [0, 2]), ((3, 4, 5), [2, 0]), ((3, 4, 5), [1, 1]), ((3, 4, 5), [1, -2, 1]),
    ((3, 4, 5), []), ((2, 5, 4, 3), [1, 2]), ((1, 6, 7, 8), [2, 1]), ((2, 5, 4, 3), [0, 3]), ((2, 5, 4, 3), [3]),
    ((2, 5, 4, 3), [0, 1, 2, 3]), ((2, 5, 4, 3), [-1, -3]), ((2, 3, 2, 3, 2), [1, 3]), ((2, 3, 2, 3, 2), [0, 2, 4]),
    ((2, 1, 3, 1, 2, 2), [2, 4]), ((2, 1, 3, 1, 2, 2), [0, 5]), ((1, 1, 1, 1), [1, 2]), ((1, 17, 13, 33), [1, 2]),
    ((64, 3), [0]), ((3, 64), [1]),
]  # fmt: skip
EMPTY = [((0,), [0]), ((0, 3), [1]), ((0, 3), [0]), ((2, 0, 3), [0, 1])]

NUMBERS = [np.float32, np.int32, np.int64]
# types, with quantization of input and output
QUANTIZED = [
    (np.int8, (0.05, -7), (0.05, -7)),
    (np.int8, (0.05, 127), (0.11, -128)),
    (np.uint8, (0.02, 120), (0.02, 120)),
    (np.uint8, (0.02, 3), (0.009, 250)),
    (np.int16, (0.001, 0), (0.001, 0)),
    (np.int16, (0.001, 0), (0.0027, 0)),
]


def _values(op, dtype, shape, data):
    if op == "REDUCE_PROD":
        return data.floats(shape, 0.6, 1.6) if dtype is np.float32 else data.ints(dtype, shape, -2, 2)
    return data.any(dtype, shape)


def _case(op, name, x, axes, output, keep, **options):
    axis = options.pop("axis", constant)(np.array(axes, np.int32))
    return Case(op, f"{name}{' kept' if keep else ''}", [x, axis], [output], attributes={"keep_dims": keep}, **options)


def cases():
    yield from both(_cases())


def _cases():
    for op in ("MEAN", "SUM", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN"):
        for dtype in NUMBERS:
            reductions = REDUCTIONS if dtype is np.float32 else REDUCTIONS[dtype is np.int64 :: 2]
            for i, (shape, axes) in enumerate(reductions):
                data = Data(f"{op} {np.dtype(dtype)} {shape} {axes}")
                for keep in (False, True) if dtype is np.float32 else (i % 2 == 0,):
                    x = _values(op, dtype, shape, data)
                    yield _case(op, f"{np.dtype(dtype)} {shape} {axes}", given(x), axes, result(dtype), keep)
            yield from _odd_operands(op, dtype)
        if op != "REDUCE_PROD":
            for i, (shape, axes) in enumerate(case for case in REDUCTIONS if case[1]):
                x = Data(f"{op} f16 {shape} {axes}").floats(shape, dtype=np.float16)
                yield _case(op, f"float16 {shape} {axes}", given(x), axes, result(np.float16), i % 2 == 0)
        for dtype, source, target in QUANTIZED:
            if op in ("REDUCE_MAX", "REDUCE_MIN") and source != target:
                continue
            if op == "REDUCE_PROD" and dtype is np.uint8:
                continue
            yield from _quantized(op, dtype, source, target)
    for op in ("REDUCE_ANY", "REDUCE_ALL"):
        for i, (shape, axes) in enumerate(REDUCTIONS + EMPTY):
            data = Data(f"{op} {shape} {axes}")
            for keep in (False, True):
                yield _case(op, f"{shape} {axes}", given(data.bools(shape)), axes, result(bool), keep)
            if 0 not in shape and i % 2:
                x = given(data.bools(shape))
                yield _case(op, f"{shape} {axes} runtime", x, axes, result(bool), False, axis=given)
        yield _case(op, "scalar", given(np.array(True)), [], result(bool), False)


def _odd_operands(op, dtype):
    """Axes at run time, a scalar axis, scalars, empty inputs, other sizes, values that are not numbers."""
    data = Data(f"{op} odd {np.dtype(dtype)}")
    kind = str(np.dtype(dtype))
    for shape, axes in REDUCTIONS[2:14:2]:
        x = given(_values(op, dtype, shape, data))
        yield _case(op, f"{kind} {shape} {axes} runtime axes", x, axes, result(dtype), len(axes) == 1, axis=given)
    x = given(_values(op, dtype, (3, 4), data))
    yield Case(op, f"{kind} scalar axis", [x, constant(np.int32(1))], [result(dtype)], attributes={"keep_dims": False})
    yield _case(op, f"{kind} scalar", given(_values(op, dtype, (), data)), [], result(dtype), False)
    x = given(_values(op, dtype, (3, 4), data), declared=(1, 1))
    more = [[_values(op, dtype, (2, 7), data)], [_values(op, dtype, (1, 1), data)]]
    yield _case(op, f"{kind} other sizes run by run", x, [1], result(dtype), False, runs=more)
    for shape, axes in EMPTY:
        if op in ("SUM", "REDUCE_PROD") or 0 not in [shape[axis] for axis in axes]:
            yield _case(op, f"{kind} empty {shape} {axes}", given(np.zeros(shape, dtype)), axes, result(dtype), False)


def _quantized(op, dtype, source, target):
    name = f"{np.dtype(dtype)} {source} {target}"
    for i, (shape, axes) in enumerate(REDUCTIONS[source != target :: 2]):
        data = Data(f"{op} {name} {shape} {axes}")
        x = given(data.ints(dtype, shape), *source)
        if op == "REDUCE_PROD":
            # About 1 or -1, so that products neither vanish nor saturate.
            level = round(1 / source[0])
            near = source[1] + (level if source[1] + level + 8 <= np.iinfo(dtype).max else -level)
            x = given(data.ints(dtype, shape, near - 8, near + 8), *source)
        yield _case(op, f"{name} {shape} {axes}", x, axes, result(dtype, *target), i % 2 == 1)
    data = Data(f"{op} {name} runtime")
    x = given(data.ints(dtype, (3, 4, 5)), *source)
    yield _case(op, f"{name} runtime axes", x, [0, 2], result(dtype, *target), True, axis=given)
