# SPDX-License-Identifier: Apache-2.0
"""ARG_MAX ARG_MIN."""

from __future__ import annotations

import numpy as np
from harness import Case, Data, both_ways, constant, given, result

import leadline

INDICES = {np.int32: leadline.DType.INT32.value, np.int64: leadline.DType.INT64.value}
SHAPES = [
    ((1,), 0), ((9,), 0), ((9,), -1), ((4, 5), 0), ((4, 5), 1), ((4, 5), -2), ((3, 4, 5), 1), ((3, 4, 5), -1),
    ((2, 3, 4, 5), 0), ((2, 3, 4, 5), 3), ((2, 3, 4, 5), -3), ((2, 1, 3, 2, 2), 2), ((1, 1, 1, 1), 3), ((2, 0, 3), 2),
    ((0, 3), 1), ((3, 70), 1), ((70, 3), 0),
]  # fmt: skip


def cases():
    for op in ("ARG_MAX", "ARG_MIN"):
        for dtype in (np.float32, np.int8, np.uint8, np.int32, bool):
            quantization = (0.1, 3) if dtype in (np.int8, np.uint8) else ()
            for shape, axis in SHAPES:
                for output in (np.int32, np.int64):
                    x = given(Data(f"{op} {dtype} {shape} {axis}").any(dtype, shape), *quantization)
                    name = f"{np.dtype(dtype)} {shape} {axis} to {np.dtype(output)}"
                    operand = constant(np.array([axis], np.int32))
                    yield Case(op, name, [x, operand], [result(output)], output_type=INDICES[output])
            x = given(Data(f"{op} {dtype} axes").any(dtype, (3, 4, 5)), *quantization)
            for width in (np.int32, np.int64):
                for operand in both_ways(constant(np.array(-2, width))):
                    name = f"{np.dtype(dtype)} scalar axis {np.dtype(width)} {operand.role}"
                    yield Case(op, name, [x, operand], [result(np.int32)], output_type=INDICES[np.int32])
        yield from _ties(op)


def _ties(op):
    same = np.full((3, 20), 2.5, np.float32)
    axis = constant(np.array([1], np.int32))
    yield Case(op, "all the same", [given(same), axis], [result(np.int32)], output_type=INDICES[np.int32])
    zeros = np.array([[0.0, -0.0, 0.0], [-0.0, 0.0, -0.0]], np.float32)
    yield Case(op, "zeros of both signs", [given(zeros), axis], [result(np.int32)], output_type=INDICES[np.int32])
    far = np.array([[1, np.inf, -np.inf, np.inf, -np.inf], [-np.inf] * 5, [np.inf] * 5], np.float32)
    yield Case(op, "infinities", [given(far), axis], [result(np.int32)], output_type=INDICES[np.int32])
    data = Data(f"{op} resized")
    x = given(data.floats((3, 4)), declared=(1, 1))
    more = [[data.floats((2, 9))]]
    yield Case(op, "resized", [x, axis], [result(np.int32)], runs=more, output_type=INDICES[np.int32])
