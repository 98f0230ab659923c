# SPDX-License-Identifier: Apache-2.0
"""AVERAGE_POOL_2D MAX_POOL_2D L2_POOL_2D."""

from __future__ import annotations

import numpy as np
from harness import NONE, RELU, RELU6, RELU_N1_TO_1, SAME, VALID, Case, Data, given, result
from shaped import both

# input, filter (h, w), stride (h, w)
GEOMETRIES = [
    ((1, 4, 4, 1), (2, 2), (2, 2)),
    ((1, 6, 7, 3), (2, 2), (1, 1)),
    ((2, 6, 7, 3), (3, 2), (2, 3)),
    ((1, 5, 5, 17), (3, 3), (2, 2)),
    ((1, 9, 8, 4), (5, 4), (3, 2)),
    ((3, 1, 1, 5), (1, 1), (1, 1)),
    ((1, 3, 3, 2), (3, 3), (1, 1)),
    ((1, 7, 9, 2), (2, 2), (3, 4)),
    ((1, 1, 12, 3), (1, 4), (1, 3)),
    ((1, 12, 1, 3), (5, 1), (2, 1)),
    ((1, 8, 8, 64), (2, 2), (2, 2)),
    ((2, 10, 11, 33), (7, 7), (1, 1)),
    ((1, 4, 5, 8), (1, 1), (2, 2)),
]
SAME_ONLY = [((1, 2, 3, 2), (5, 6), (1, 1)), ((1, 3, 2, 4), (4, 4), (2, 2)), ((1, 1, 1, 3), (3, 3), (2, 2))]

# A type, the scale and the zero point of input and output.
TYPES = [(np.float32, (), ()), (np.int8, 0.05, -7), (np.int8, 0.3, 127), (np.uint8, 0.02, 128), (np.uint8, 1.0, 0)]
FLOAT16 = (np.float16, (), ())
INT16 = [(np.int16, 0.0005, 0)]


def _case(op, kind, geometry, padding, activation=NONE, declared=None, suffix=""):
    dtype, scale, zero = kind
    shape, window, stride = geometry
    data = Data(f"{op} {kind} {geometry} {padding}")
    values = data.floats(shape, -8, 8, dtype) if np.dtype(dtype).kind == "f" else data.ints(dtype, shape)
    attributes = dict(
        padding=padding, filter_height=window[0], filter_width=window[1], stride_h=stride[0], stride_w=stride[1],
        fused_activation_function=activation,
    )  # fmt: skip
    rim = "SAME" if padding == SAME else "VALID"
    name = f"{np.dtype(dtype)} {scale} {shape} {window} {stride} {rim} activation {activation}{suffix}"
    x = given(values, scale, zero, declared=declared)
    return Case(op, name, [x], [result(dtype, scale, zero)], attributes=attributes)


def cases():
    yield from both(_cases())


def _cases():
    for op in ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"):
        types = TYPES[:1] if op == "L2_POOL_2D" else TYPES + INT16
        for kind in types:
            for i, geometry in enumerate(GEOMETRIES):
                for padding in (SAME, VALID) if kind in (TYPES[0], TYPES[1], TYPES[3]) else ((SAME, VALID)[i % 2],):
                    yield _case(op, kind, geometry, padding)
            for geometry in SAME_ONLY:
                yield _case(op, kind, geometry, SAME)
            for activation in (RELU, RELU_N1_TO_1, RELU6):
                yield _case(op, kind, GEOMETRIES[3], SAME, activation)
            yield _case(op, kind, GEOMETRIES[2], SAME, declared=(1, 3, 3, 3), suffix=" resized")
        if op == "AVERAGE_POOL_2D":
            for geometry in GEOMETRIES:
                _, (height, width), (stride_h, stride_w) = geometry
                if stride_h <= height and stride_w <= width:  # XNNPACK's condition
                    yield _case(op, FLOAT16, geometry, VALID)
            yield _case(op, FLOAT16, GEOMETRIES[3], VALID, RELU6)
        data = Data(f"{op} special")
        for activation in (NONE, RELU6):
            x = np.abs(data.special_floats((1, 6, 5, 2))) if op == "L2_POOL_2D" else data.special_floats((1, 6, 5, 2))
            x[~np.isfinite(x)] = np.inf if op == "MAX_POOL_2D" else 5
            x = np.clip(x, -1e18, 1e18)
            attributes = dict(padding=VALID, filter_height=2, filter_width=2, stride_h=2, stride_w=1)
            attributes["fused_activation_function"] = activation
            yield Case(op, f"f32 far apart {activation}", [given(x)], [result(np.float32)], attributes=attributes)
