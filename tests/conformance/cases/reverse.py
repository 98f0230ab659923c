# SPDX-License-Identifier: Apache-2.0
"""REVERSE_V2."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from harness import Case, Data, both_ways, constant, given, result

TYPES = [np.float32, np.float16, ml_dtypes.bfloat16, np.uint8, np.int8, np.int16, np.int32, np.int64, bool]


def cases():
    for shape in (
        (5,),
        (3, 4),
        (2, 3, 4),
        (2, 3, 1, 4),
        (2, 1, 3, 2, 2),
        (2, 1, 2, 3, 1, 2),
        (1, 2, 1, 2, 1, 2, 1, 3),
        (0,),
        (2, 0, 3),
    ):
        rank = len(shape)
        x = Data(f"reverse {shape}").floats(shape)
        axes = [(a,) for a in range(-rank, rank)] + [
            tuple(range(a, b)) for a in range(rank) for b in range(a + 2, rank + 1)
        ]
        axes += [tuple(range(-1, -a - 1, -1)) for a in range(2, rank + 1)]
        for backwards in dict.fromkeys(axes):
            fault = {}
            if shape == (2, 0, 3) and backwards in ((0,), (-3,)):
                fault = dict(litert="dies", because="segmentation fault", reference=lambda v, *_: [v])
            for where in both_ways(constant(np.array(backwards, np.int32))):
                name = f"{shape} axes {backwards} {where.role}"
                yield Case("REVERSE_V2", name, [given(x), where], [result(np.float32)], **fault)
    x = Data("reverse types")
    for kind in TYPES:
        for backwards in ((0,), (1,), (2,), (-1, 1), (0, 1, 2)):
            for source in both_ways(given(x.any(kind, (2, 3, 5)))):
                inputs = [source, constant(np.array(backwards, np.int32))]
                name = f"{np.dtype(kind).name} {backwards} {source.role}"
                yield Case("REVERSE_V2", name, inputs, [result(kind)])
    strings = [given(np.array([[b"a", b""], [b"deep", b"water"]], object)), constant(np.array([0], np.int32))]
    yield Case(
        "REVERSE_V2",
        "strings",
        strings,
        [result(object)],
        litert="refuses",
        because="it takes no strings",
        reference=lambda v: [v[::-1]],
    )
    apart = [given(x.floats((2, 3, 4))), constant(np.array([0, 2], np.int32))]
    yield Case(
        "REVERSE_V2",
        "axes apart",
        apart,
        [result(np.float32)],
        litert="refuses",
        because="it wants neighbouring axes",
        reference=lambda v: [v[::-1, :, ::-1]],
    )
    for kind, scale, zero in ((np.int8, 0.5, -128), (np.uint8, 3.0, 255), (np.int16, 1e-3, 0)):
        inputs = [given(x.ints(kind, (3, 4)), scale, zero), constant(np.array([1], np.int32))]
        yield Case("REVERSE_V2", f"quantized {np.dtype(kind).name}", inputs, [result(kind, scale, zero)], exact=True)
    runs = [[x.floats(s), np.array([a], np.int32)] for s, a in (((2, 5), 1), ((4, 1), -2), ((1, 3), 1))]
    inputs = [given(x.floats((2, 3)), declared=(1, 1)), given(np.array([0], np.int32))]
    yield Case("REVERSE_V2", "axis changes", inputs, [result(np.float32)], runs=runs)
