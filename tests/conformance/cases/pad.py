# SPDX-License-Identifier: Apache-2.0
"""PAD PADV2 MIRROR_PAD."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from harness import EMPTY_DYNAMIC, Case, Data, both_ways, constant, given, result

PADDED = [np.float32, np.float16, ml_dtypes.bfloat16, np.uint8, np.int8, np.int16, np.int32, np.int64, bool]
MIRRORED = [
    np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.uint8, np.int8, np.int16, np.uint16, np.int32, np.uint32,
    np.int64, np.uint64, bool, np.complex64,
]  # fmt: skip
REFLECT, SYMMETRIC = 0, 1

BORDERS = [
    ((4,), [[1, 2]]), ((4,), [[0, 0]]), ((3, 5), [[1, 0], [0, 2]]), ((3, 5), [[2, 2], [2, 2]]),
    ((3, 5), [[0, 0], [3, 1]]),
    ((2, 3, 4), [[1, 1], [0, 0], [2, 1]]), ((2, 3, 4), [[0, 3], [1, 0], [0, 0]]),
    ((1, 4, 5, 3), [[0, 0], [1, 1], [1, 1], [0, 0]]),
    ((2, 3, 3, 2), [[0, 0], [0, 1], [2, 0], [0, 0]]), ((2, 3, 3, 2), [[1, 0], [0, 1], [2, 0], [1, 1]]),
    ((1, 2, 3, 1), [[0, 0], [0, 0], [0, 0], [2, 3]]), ((2, 1, 3, 2, 2), [[0, 1], [1, 0], [2, 2], [0, 0], [1, 1]]),
    ((1, 2, 3, 2, 3), [[0, 0], [1, 1], [1, 1], [0, 0], [0, 0]]), ((0,), [[2, 1]]),
    ((2, 0, 3), [[0, 0], [1, 1], [0, 0]]),
    ((0, 3), [[0, 0], [1, 0]]), ((1,), [[0, 17]]), ((13, 1), [[0, 0], [5, 0]]),
    ((1, 1, 1, 1), [[1, 1], [1, 1], [1, 1], [1, 1]]),
]  # fmt: skip


def cases():
    yield from pads()
    yield from pad_types()
    yield from quantized_pads()
    yield from mirrors()


def pads():
    for shape, border in BORDERS:
        x = Data(f"pad {shape} {border}")
        value = x.floats(shape)
        for number, index in enumerate((np.int32, np.int64)):
            for borders in both_ways(constant(np.array(border, index))):
                fault = {}
                if np.pad(value, border).size == 0 and borders.role == "given":
                    fault = dict(litert="refuses", because=EMPTY_DYNAMIC)
                    fault["reference"] = lambda v, *_, border=border: [np.pad(v, border)]
                name = f"{shape} {border} {np.dtype(index).name} {borders.role}"
                yield Case("PAD", name, [given(value), borders], [result(np.float32)], **fault)
                for filler in both_ways(constant(np.array([-1.5], np.float32)))[number:]:
                    yield Case(
                        "PADV2",
                        f"{name} value {filler.role}",
                        [given(value), borders, filler],
                        [result(np.float32)],
                        **fault,
                    )


def pad_types():
    x = Data("pad types")
    shapes = [
        ((3, 2), [[1, 0], [0, 2]]),
        ((1, 2, 2, 3), [[0, 0], [1, 0], [0, 2], [0, 0]]),
        ((2, 1, 2, 1, 2), [[0, 1]] * 5),
    ]
    for kind in PADDED:
        for shape, border in shapes:
            for source in both_ways(given(x.any(kind, shape))):
                borders = constant(np.array(border, np.int32))
                name = f"{np.dtype(kind).name} {shape} {source.role}"
                yield Case("PAD", name, [source, borders], [result(kind)])
                filler = x.any(kind, ())
                yield Case("PADV2", name, [source, borders, constant(filler)], [result(kind)])
                yield Case("PADV2", f"{name} filler given", [source, borders, given(filler)], [result(kind)])
    for index in (np.int8, np.int16, bool):
        for borders in both_ways(constant(np.array([[1, 0], [0, 1]], index))):
            name = f"borders of {np.dtype(index).name} {borders.role}"
            yield Case("PAD", name, [given(x.floats((2, 3))), borders], [result(np.float32)])
    runs = [[x.floats((2, 3)), np.array(b, np.int32)] for b in ([[0, 0], [0, 0]], [[3, 0], [0, 1]], [[0, 1], [1, 0]])]
    inputs = [given(x.floats((2, 3))), given(np.array([[1, 1], [1, 1]], np.int32))]
    yield Case("PAD", "borders change", inputs, [result(np.float32)], runs=runs)
    runs = [[x.floats(s)] for s in ((1, 4), (3, 3), (0, 2))]
    inputs = [given(x.floats((2, 3)), declared=(1, 1)), constant(np.array([[1, 1], [0, 2]], np.int32))]
    yield Case("PAD", "resized", inputs, [result(np.float32)], runs=runs)
    for border in ([[0, 1]] * 6, [[0, 0]] * 3 + [[1, 0], [0, 1], [2, 0]]):
        inputs = [given(x.floats((2, 1, 2, 1, 2, 3))), constant(np.array(border, np.int32))]
        yield Case(
            "PAD",
            f"rank 6 {border}",
            inputs,
            [result(np.float32)],
            litert="refuses",
            because="its PAD stops at 5 dimensions",
            reference=lambda v, b=border: [np.pad(v, b)],
        )
    for special in (np.nan, np.inf, -np.inf, -0.0):
        inputs = [given(x.floats((2, 3))), constant(np.array([[1, 1], [0, 2]], np.int32))]
        inputs.append(constant(np.array(special, np.float32)))
        yield Case("PADV2", f"with {special}", inputs, [result(np.float32)])


def quantized_pads():
    x = Data("pad quantized")
    table = [(np.int8, 0.5, -128), (np.int8, 2.0, 127), (np.int8, 1e-3, 3), (np.uint8, 0.5, 0), (np.uint8, 3.0, 255),
             (np.uint8, 1.0, 128), (np.int16, 1e-3, 0)]  # fmt: skip
    for kind, scale, zero in table:
        for shape, border in BORDERS[:13:2]:
            value = given(x.ints(kind, shape), scale, zero)
            for borders in both_ways(constant(np.array(border, np.int32))):
                name = f"quantized {np.dtype(kind).name} {scale} {zero} {shape} {border} {borders.role}"
                yield Case("PAD", name, [value, borders], [result(kind, scale, zero)], exact=True)
                filler = constant(x.ints(kind, (1,)), scale, zero)
                yield Case("PADV2", name, [value, borders, filler], [result(kind, scale, zero)], exact=True)


def mirrors():
    table = [
        ((4,), [[1, 2]]), ((4,), [[3, 3]]), ((4,), [[0, 0]]), ((3, 5), [[1, 0], [0, 2]]), ((3, 5), [[2, 2], [4, 4]]),
        ((2, 3, 4), [[1, 1], [2, 2], [3, 0]]), ((2, 3, 4), [[0, 0], [1, 0], [0, 0]]),
        ((2, 3, 2, 3), [[0, 0], [1, 1], [1, 1], [0, 0]]),
        ((2, 3, 2, 3), [[1, 0], [0, 2], [1, 1], [2, 2]]), ((2, 2, 3, 2, 2), [[0, 1], [1, 0], [2, 2], [0, 0], [1, 1]]),
        ((2, 2, 1, 3, 2, 2), [[0, 1], [1, 0], [0, 0], [2, 1], [0, 0], [1, 1]]), ((17,), [[16, 1]]),
    ]  # fmt: skip
    for shape, border in table:
        x = Data(f"mirror_pad {shape} {border}")
        for mode in (REFLECT, SYMMETRIC):
            for index in (np.int32, np.int64):
                for borders in both_ways(constant(np.array(border, index))):
                    name = f"{shape} {border} {np.dtype(index).name} {borders.role} mode {mode}"
                    yield Case("MIRROR_PAD", name, [given(x.floats(shape)), borders], [result(np.float32)], mode=mode)
    for shape, border in (((3,), [[3, 3]]), ((2, 1), [[2, 1], [1, 1]])):
        borders = constant(np.array(border, np.int32))
        x = Data(f"mirror_pad {shape}").floats(shape)
        yield Case("MIRROR_PAD", f"whole {shape}", [given(x), borders], [result(np.float32)], mode=SYMMETRIC)
    x = Data("mirror_pad types")
    for kind in MIRRORED:
        for mode in (REFLECT, SYMMETRIC):
            for source in both_ways(given(x.any(kind, (3, 4)))):
                borders = constant(np.array([[1, 2], [3, 0]], np.int32))
                name = f"{np.dtype(kind).name} {source.role} mode {mode}"
                yield Case("MIRROR_PAD", name, [source, borders], [result(kind)], mode=mode)
    for kind, scale, zero in ((np.int8, 0.5, -128), (np.uint8, 3.0, 255), (np.int16, 1e-3, 0)):
        inputs = [given(x.ints(kind, (3, 4)), scale, zero), constant(np.array([[1, 2], [3, 0]], np.int32))]
        yield Case("MIRROR_PAD", f"quantized {np.dtype(kind).name}", inputs, [result(kind, scale, zero)], exact=True)
    runs = [[x.floats((3, 4)), np.array(b, np.int64)] for b in ([[0, 0], [0, 0]], [[2, 0], [0, 1]], [[0, 1], [3, 3]])]
    inputs = [given(x.floats((3, 4))), given(np.array([[1, 1], [1, 1]], np.int64))]
    yield Case("MIRROR_PAD", "borders change", inputs, [result(np.float32)], runs=runs)
