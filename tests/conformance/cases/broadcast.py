# SPDX-License-Identifier: Apache-2.0
"""TILE BROADCAST_TO FILL ZEROS_LIKE."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from harness import EMPTY_DYNAMIC, Case, Data, both_ways, constant, given, result

from leadline import DType

TYPES = [
    np.float32,
    np.float64,
    np.float16,
    ml_dtypes.bfloat16,
    np.int8,
    np.uint8,
    np.int16,
    np.uint16,
    np.int32,
    np.uint32,
    np.int64,
    np.uint64,
    bool,
    np.complex64,
    np.complex128,
]  # fmt: skip; TILE and FILL go without the last


def cases():
    yield from tiles()
    yield from broadcasts()
    yield from fills()
    yield from zeros()


def empty_fault(size: int, role: str, reference) -> dict:
    """What a case needs when its output is empty and found at run time."""
    if size or role == "constant":
        return {}
    return dict(litert="refuses", because=EMPTY_DYNAMIC, reference=reference)


def tiles():
    for shape, times in (
        ((3,), (1,)), ((3,), (4,)), ((3,), (0,)), ((2, 3), (1, 1)), ((2, 3), (2, 1)), ((2, 3), (1, 3)),
        ((2, 3), (3, 2)),
        ((2, 3), (0, 2)), ((2, 3, 4), (2, 1, 3)), ((1, 2, 1, 3), (3, 1, 2, 2)), ((2, 1, 2, 1, 3), (1, 2, 1, 3, 2)),
        ((1, 2, 1, 2, 1, 2), (2, 1, 3, 1, 2, 2)), ((1, 2, 1, 2, 1, 2, 1, 2), (2, 1, 1, 2, 1, 2, 3, 1)), ((0,), (3,)),
        ((2, 0, 3), (2, 1, 3)), ((1,), (1000,)), ((1, 1, 1), (2, 3, 5)), ((), ()), ((2, 3), (3, 0)), ((3, 2), (2, 0)),
    ):  # fmt: skip
        for _number, index in enumerate((np.int32, np.int64)):
            for kind in (np.float32, np.object_):
                x = Data(f"tile {shape} {times}").any(kind, shape)
                if kind is np.object_ and not shape:
                    x = np.array(b"lead", object)  # numpy has no empty text outside arrays of objects
                for multiples in both_ways(constant(np.array(times, index))):
                    fault = {}
                    if kind is np.float32:
                        fault = empty_fault(
                            int(np.tile(x, times).size), multiples.role, lambda v, *_, t=times: [np.tile(v, t)]
                        )
                    name = f"{np.dtype(kind).name} {shape} {times} {np.dtype(index).name} {multiples.role}"
                    yield Case("TILE", name, [given(x), multiples], [result(kind)], **fault)
    x = Data("tile types")
    for kind in TYPES[:-1]:
        for source in both_ways(given(x.any(kind, (2, 3)))):
            inputs = [source, constant(np.array([2, 3], np.int32))]
            yield Case("TILE", f"{np.dtype(kind).name} {source.role}", inputs, [result(kind)])
    for kind, scale, zero in ((np.int8, 0.5, -128), (np.uint8, 3.0, 255), (np.int16, 1e-3, 0)):
        inputs = [given(x.ints(kind, (3, 4)), scale, zero), constant(np.array([2, 3], np.int32))]
        yield Case("TILE", f"quantized {np.dtype(kind).name}", inputs, [result(kind, scale, zero)], exact=True)
    runs = [[x.floats((2, 3)), np.array(t, np.int32)] for t in ((3, 1), (1, 1), (1, 4))]
    inputs = [given(x.floats((2, 3))), given(np.array([2, 2], np.int32))]
    yield Case("TILE", "multiples change", inputs, [result(np.float32)], runs=runs)


def broadcasts():
    for shape, wanted in (
        ((), ()), ((), (3,)), ((), (2, 3)), ((1,), (5,)), ((3,), (3,)), ((3,), (2, 3)), ((1, 3), (4, 3)),
        ((2, 1), (2, 5)),
        ((2, 1, 3), (2, 4, 3)), ((2, 1, 3), (5, 2, 4, 3)), ((1, 2, 1, 3), (3, 2, 2, 3)), ((3, 1), (2, 2, 2, 3, 4)),
        ((1, 2, 1, 2, 1), (3, 2, 2, 2, 3)), ((2, 1, 2, 1, 2, 1), (2, 3, 2, 1, 2, 2)),
        ((2, 1), (1, 2, 1, 2, 1, 2, 2, 3)),
        ((2, 1, 1, 2, 1, 1, 1, 2), (2, 1, 2, 2, 1, 3, 1, 2)), ((1,), (0,)), ((0,), (2, 0)), ((1, 3), (0, 3)),
        ((2, 0), (3, 2, 0)),
    ):  # fmt: skip
        x = Data(f"broadcast_to {shape} {wanted}").floats(shape)
        for index in (np.int32, np.int64):
            for target in both_ways(constant(np.array(wanted, index))):
                size = int(np.prod(wanted))
                fault = empty_fault(size, target.role, lambda v, *_, w=wanted: [np.broadcast_to(v, w)])
                name = f"{shape} to {wanted} {np.dtype(index).name} {target.role}"
                yield Case("BROADCAST_TO", name, [given(x), target], [result(np.float32)], **fault)
    x = Data("broadcast_to types")
    for kind in TYPES:
        for source in both_ways(given(x.any(kind, (2, 1)))):
            inputs = [source, constant(np.array([3, 2, 4], np.int32))]
            yield Case("BROADCAST_TO", f"{np.dtype(kind).name} {source.role}", inputs, [result(kind)])
    for kind, scale, zero in ((np.int8, 0.5, -128), (np.uint8, 3.0, 255), (np.int16, 1e-3, 0)):
        inputs = [given(x.ints(kind, (3, 1)), scale, zero), constant(np.array([3, 4], np.int32))]
        yield Case("BROADCAST_TO", f"quantized {np.dtype(kind).name}", inputs, [result(kind, scale, zero)], exact=True)
    runs = [[x.floats((2, 1)), np.array(t, np.int32)] for t in ((2, 7), (2, 1), (2, 4))]
    inputs = [given(x.floats((2, 1))), given(np.array([2, 2], np.int32))]
    yield Case("BROADCAST_TO", "shape changes", inputs, [result(np.float32)], runs=runs)
    for shape, wanted in (((4,), (2, 4)), ((3, 1), (3, 5))):
        four_bits = x.ints(np.int8, shape, -8, 7)
        inputs = [constant(four_bits, dtype=DType.INT4), constant(np.array(wanted, np.int32))]
        yield Case(
            "BROADCAST_TO",
            f"int4 {shape} to {wanted}",
            inputs,
            [result(DType.INT4)],
            litert="wrong",
            because="an int4 counts as no byte",
            reference=lambda v=four_bits, w=wanted: [np.broadcast_to(v, w)],
        )
    strings = [given(np.array([b"a", b"", b"deep"], object)), constant(np.array([2, 3], np.int32))]
    yield Case(
        "BROADCAST_TO",
        "strings",
        strings,
        [result(object)],
        litert="refuses",
        because="it takes no strings",
        reference=lambda v: [np.broadcast_to(v, (2, 3))],
    )


def fills():
    for shape in ((), (0,), (1,), (7,), (2, 3), (2, 0, 3), (2, 1, 3, 2), (1, 2, 1, 2, 3), (2, 1, 1, 2, 1, 1, 3, 2)):
        for index in (np.int32, np.int64):
            for number, kind in enumerate((np.float32, np.int32, np.object_)):
                x = np.array(b"lead", object) if kind is np.object_ else Data(f"fill {shape}").any(kind, ())
                for dims in both_ways(constant(np.array(shape, index))):
                    fault = {}
                    if kind is not np.object_:
                        fault = empty_fault(
                            int(np.prod(shape)), dims.role, lambda *_, s=shape, k=kind: [np.zeros(s, k)]
                        )
                    value = both_ways(given(x))[number % 2]
                    name = f"{shape} {np.dtype(index).name} {dims.role} of {np.dtype(kind).name}"
                    yield Case("FILL", name, [dims, value], [result(kind)], **fault)
    x = Data("fill types")
    for kind in [*TYPES[:-1], np.object_]:
        filler = np.array(b"deep water", object) if kind is np.object_ else x.any(kind, ())
        for value in both_ways(given(filler)):
            for dims in both_ways(constant(np.array([2, 3], np.int32))):
                name = f"{np.dtype(kind).name} {value.role} {dims.role}"
                yield Case("FILL", name, [dims, value], [result(kind)])
    for kind, scale, zero in ((np.int8, 0.5, -128), (np.uint8, 3.0, 255), (np.int16, 1e-3, 0)):
        inputs = [constant(np.array([3, 4], np.int32)), given(x.ints(kind, ()), scale, zero)]
        yield Case("FILL", f"quantized {np.dtype(kind).name}", inputs, [result(kind, scale, zero)], exact=True)
    runs = [[np.array(s, np.int32), np.array(v, np.float32)] for s, v in (([3], 1), ([1], 2), ([1000], 3))]
    inputs = [given(np.array([2], np.int32)), given(np.array(-1, np.float32))]
    yield Case("FILL", "shape changes", inputs, [result(np.float32)], runs=runs)


def zeros():
    for shape in ((), (0,), (5,), (2, 3), (2, 0, 3), (1, 2, 3, 4), (1, 2, 1, 2, 1, 2)):
        for kind in (np.float32, np.int32, np.int64):
            for source in both_ways(given(Data(f"zeros_like {shape}").any(kind, shape))):
                name = f"{np.dtype(kind).name} {shape} {source.role}"
                yield Case("ZEROS_LIKE", name, [source], [result(kind)])
    runs = [[np.ones(s, np.float32)] for s in ((3, 1), (0, 2))]
    yield Case(
        "ZEROS_LIKE", "resized", [given(np.ones((2, 2), np.float32), declared=(1, 1))], [result(np.float32)], runs=runs
    )
