# SPDX-License-Identifier: Apache-2.0
"""RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR."""

from __future__ import annotations

import numpy as np
from harness import Case, Data, both_ways, constant, given, result
from shaped import both

# input, new height and width
SIZES = [
    ((1, 4, 4, 1), (8, 8)), ((1, 3, 5, 2), (7, 4)), ((2, 3, 5, 3), (3, 5)), ((1, 6, 6, 4), (3, 3)),
    ((1, 7, 9, 2), (4, 5)), ((2, 1, 1, 3), (4, 6)), ((1, 5, 4, 3), (1, 1)), ((1, 2, 2, 1), (3, 3)),
    ((1, 2, 3, 17), (10, 7)), ((1, 5, 1, 2), (2, 9)), ((1, 1, 8, 2), (5, 1)), ((1, 16, 16, 8), (32, 32)),
    ((1, 10, 10, 1), (3, 7)), ((0, 3, 3, 1), (5, 5)), ((1, 13, 11, 1), (29, 31)),
]  # fmt: skip
MODES = [(False, False), (True, False), (False, True)]
TYPES = {
    "RESIZE_BILINEAR": [(np.float32, ()), (np.uint8, (0.1, 7)), (np.int8, (0.1, -100)), (np.int16, (0.001, 0))],
    "RESIZE_NEAREST_NEIGHBOR": [
        (np.float32, ()), (np.uint8, (0.1, 7)), (np.int8, (0.1, -100)), (np.int16, (0.001, 0)), (np.int32, ()),
    ],
}  # fmt: skip


def cases():
    yield from both(_cases())


def _cases():
    for op, types in TYPES.items():
        for dtype, quantization in types:
            for i, (shape, size) in enumerate(SIZES):
                for corners, centers in MODES if dtype in (np.float32, np.int8) else (MODES[i % 3], MODES[(i + 1) % 3]):
                    data = Data(f"{op} {np.dtype(dtype)} {shape}")
                    x = data.floats(shape) if dtype is np.float32 else data.ints(dtype, shape)
                    name = f"{np.dtype(dtype)} {shape} to {size}{' align_corners' * corners}{' half_pixel' * centers}"
                    attributes = dict(align_corners=corners, half_pixel_centers=centers)
                    inputs = [given(x, *quantization), constant(np.array(size, np.int32))]
                    yield Case(op, name, inputs, [result(dtype, *quantization)], attributes=attributes)
            data = Data(f"{op} {np.dtype(dtype)} runtime")
            x = data.floats((1, 3, 4, 2)) if dtype is np.float32 else data.ints(dtype, (1, 3, 4, 2))
            size = given(np.array((5, 6), np.int32))
            more = [[x, np.array((2, 9), np.int32)], [np.concatenate([x, x]), np.array((1, 1), np.int32)]]
            inputs = [given(x, *quantization), size]
            yield Case(op, f"{np.dtype(dtype)} size at run time", inputs, [result(dtype, *quantization)], runs=more)
            resized = given(x, *quantization, declared=(1, 1, 1, 2))
            for operand in both_ways(size):
                name = f"{np.dtype(dtype)} resized {operand.role}"
                yield Case(op, name, [resized, operand], [result(dtype, *quantization)])
