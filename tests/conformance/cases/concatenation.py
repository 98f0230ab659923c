# SPDX-License-Identifier: Apache-2.0
"""CONCATENATION PACK."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from harness import Case, Data, constant, given, result

from leadline import DType

CONCATENATED = [
    np.float32, np.float16, ml_dtypes.bfloat16, np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, bool,
]  # fmt: skip
PACKED = [np.float32, np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64]
ROLES = {"given": [given, given], "constant": [constant, constant], "mixed": [given, constant]}


def cases():
    yield from concatenations()
    yield from quantized_concatenations()
    yield from packs()


def concatenations():
    for shape in (
        (5,),
        (2, 3),
        (2, 3, 5),
        (2, 3, 4, 5),
        (1, 1, 1),
        (2, 1, 3, 1, 2),
        (1, 2, 1, 3, 1, 2),
        (0,),
        (2, 0, 3),
    ):
        x = Data(f"concatenation {shape}")
        for axis in range(-len(shape), len(shape)):
            for sizes in ((1, 1), (2, 3, 1), (4,), (0, 2), (3, 0, 0, 1)):
                shapes = [(*shape[:axis], size, *shape[axis:][1:]) for size in sizes]
                inputs = [given(x.floats(s)) for s in shapes]
                name = f"{shape} axis {axis} sizes {sizes}"
                yield Case("CONCATENATION", name, inputs, [result(np.float32)], axis=axis)
    x = Data("concatenation types")
    for kind in CONCATENATED:
        for name, (one, other) in ROLES.items():
            for axis in (0, 1, -1):
                inputs = [one(x.any(kind, (2, 3, 2))), other(x.any(kind, (2, 3, 2)))]
                title = f"{np.dtype(kind).name} {name} axis {axis}"
                yield Case("CONCATENATION", title, inputs, [result(kind)], axis=axis)
        scalars = [constant(x.any(kind, ())) for _ in range(3)]
        yield Case("CONCATENATION", f"{np.dtype(kind).name} constant scalars", scalars, [result(kind)], axis=0)
    for count in (5, 17, 64, 200):
        inputs = [given(x.floats((2, i % 3, 2))) for i in range(count)]
        yield Case("CONCATENATION", f"{count} inputs", inputs, [result(np.float32)], axis=1)
    for sizes in ((2, 2), (1, 3), (3, 2, 4)):
        for axis in (0, 1, 2):
            shapes = [tuple(s if d == axis else 3 for d in range(3)) for s in sizes]
            inputs = [constant(x.ints(np.int8, s, -8, 7), 0.5, 0, dtype=DType.INT4) for s in shapes]
            name = f"int4 axis {axis} sizes {sizes}"
            yield Case("CONCATENATION", name, inputs, [result(DType.INT4, 0.5, 0)], axis=axis)
    for shape in ((2, 3, 1, 1, 2, 1, 3), (2, 1, 1, 2, 1, 1, 2, 3)):
        for axis in (0, 3, -1):
            inputs = [given(x.ints(np.int32, shape)) for _ in range(3)]
            yield Case("CONCATENATION", f"{shape} axis {axis}", inputs, [result(np.int32)], axis=axis)
    runs = [[x.floats((2, 3)), x.floats((5, 3))], [x.floats((0, 1)), x.floats((1, 1))], [x.floats((7, 2))] * 2]
    inputs = [given(x.floats((1, 3)), declared=(1, 1)), given(x.floats((4, 3)), declared=(1, 1))]
    yield Case("CONCATENATION", "resized", inputs, [result(np.float32)], axis=0, runs=runs)


def quantized_concatenations():
    x = Data("concatenation quantized")
    for scales in (((0.5, 0.5), (0, 0), 0.5, 0), ((0.5, 0.25), (3, 200), 0.5, 128), ((2.0, 0.1), (0, 255), 1.0, 255),
                   ((1e-3, 5.0), (7, 9), 0.01, 0), ((0.3, 0.7), (255, 0), 0.11, 17),
                   ((0.5, 0.5), (1, 2), 0.5, 1)):  # fmt: skip
        scale, zero, out, out_zero = scales
        for axis in (0, 1):
            inputs = [given(x.ints(np.uint8, (3, 7)), s, z) for s, z in zip(scale, zero, strict=True)]
            yield Case(
                "CONCATENATION", f"uint8 {scales} axis {axis}", inputs, [result(np.uint8, out, out_zero)], axis=axis
            )
        constants = [constant(t.value, t.scales, t.zero_points) for t in inputs]
        yield Case("CONCATENATION", f"uint8 {scales} constants", constants, [result(np.uint8, out, out_zero)], axis=0)
    for kind, scale, zero in ((np.int8, 0.5, -128), (np.int8, 2.0, 127), (np.int16, 0.1, 0), (np.int8, 1e-4, 0)):
        for axis in (0, -1):
            inputs = [given(x.ints(kind, (3, 5)), scale, zero) for _ in range(3)]
            yield Case(
                "CONCATENATION",
                f"{np.dtype(kind).name} {scale} {zero} axis {axis}",
                inputs,
                [result(kind, scale, zero)],
                axis=axis,
                exact=True,
            )
    inputs = [given(x.ints(np.int16, (2, 3)), s, 0) for s in (0.5, 0.25)]
    yield Case(
        "CONCATENATION", "int16 of other scales is copied", inputs, [result(np.int16, 0.1, 0)], axis=0, exact=True
    )


def packs():
    for shape in ((), (5,), (2, 3), (2, 3, 4), (2, 1, 3, 2), (1, 2, 1, 2, 3), (2, 1, 1, 1, 1, 1, 2), (0,), (2, 0)):
        x = Data(f"pack {shape}")
        for axis in range(-len(shape) - 1, len(shape) + 1):
            for count in (1, 2, 3):
                inputs = [given(x.floats(shape)) for _ in range(count)]
                yield Case(
                    "PACK",
                    f"{count} of {shape} axis {axis}",
                    inputs,
                    [result(np.float32)],
                    values_count=count,
                    axis=axis,
                )
    x = Data("pack types")
    for kind in PACKED:
        for name, (one, other) in ROLES.items():
            for axis in (0, 1, -1):
                inputs = [one(x.any(kind, (2, 3))), other(x.any(kind, (2, 3)))]
                title = f"{np.dtype(kind).name} {name} axis {axis}"
                yield Case("PACK", title, inputs, [result(kind)], values_count=2, axis=axis)
    for count in (17, 100):
        inputs = [given(x.ints(np.int32, ())) for _ in range(count)]
        yield Case("PACK", f"{count} scalars", inputs, [result(np.int32)], values_count=count, axis=0)
    for kind, scale, zero in ((np.int8, 0.5, -128), (np.uint8, 3.0, 255), (np.int16, 1e-3, 0)):
        inputs = [given(x.ints(kind, (3, 5)), scale, zero) for _ in range(3)]
        yield Case(
            "PACK",
            f"quantized {np.dtype(kind).name}",
            inputs,
            [result(kind, scale, zero)],
            values_count=3,
            axis=1,
            exact=True,
        )
    runs = [[x.floats(s), x.floats(s)] for s in ((2, 3), (0, 1), (5, 1))]
    inputs = [given(x.floats((1, 4)), declared=(1, 1)) for _ in range(2)]
    yield Case("PACK", "resized", inputs, [result(np.float32)], values_count=2, axis=2, runs=runs)
