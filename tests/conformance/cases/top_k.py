# SPDX-License-Identifier: Apache-2.0
"""TOPK_V2."""

from __future__ import annotations

import numpy as np
from harness import EMPTY_DYNAMIC, Case, Data, both_ways, constant, given, result

TYPES = [np.float32, np.uint8, np.int8, np.int16, np.int32, np.int64]


def cases():
    for shape in (
        (1,),
        (5,),
        (17,),
        (3, 4),
        (2, 3, 5),
        (2, 1, 2, 7),
        (1, 2, 1, 2, 3),
        (2, 1, 2, 1, 2, 4),
        (0, 4),
        (3, 100),
    ):
        for k in sorted({0, 1, 2, shape[-1] - 1, shape[-1]}):
            if not 0 <= k <= shape[-1]:
                continue
            x = Data(f"topk {shape} {k}").floats(shape)
            for number, index in enumerate((np.int32, np.int16)):
                for count in both_ways(constant(np.array(k, index))):
                    fault = {}
                    if k * x.size == 0 and count.role == "given":
                        empty = [np.zeros((*shape[:-1], k), t) for t in (np.float32, (np.int32, np.int16)[number])]
                        fault = dict(litert="refuses", because=EMPTY_DYNAMIC, reference=lambda *_, e=empty: e)
                    name = f"{shape} k {k} {count.role} {np.dtype(index).name}"
                    outputs = [result(np.float32), result((np.int32, np.int16)[number])]
                    yield Case("TOPK_V2", name, [given(x), count], outputs, **fault)
    x = Data("topk types")
    for kind in TYPES:
        for index in (np.int32, np.int16):
            for k in (1, 4, 9):
                for source in both_ways(
                    given(x.ints(kind, (3, 9), 0, 5) if kind is not np.float32 else x.floats((3, 9)))
                ):
                    inputs = [source, constant(np.array([k], np.int32))]
                    name = f"{np.dtype(kind).name} k {k} {source.role} indices {np.dtype(index).name}"
                    yield Case("TOPK_V2", name, inputs, [result(kind), result(index)])
        if kind is not np.float32:
            inputs = [given(x.ints(kind, (2, 50))), constant(np.array(20, np.int32))]
            yield Case("TOPK_V2", f"{np.dtype(kind).name} extremes", inputs, [result(kind), result(np.int32)])
    for name, value in (("equal", np.ones((2, 20))), ("zeros of both signs", np.array([[0.0, -0.0, 0.0, -0.0]])),
                        ("infinities", np.array([[1, np.inf, -np.inf, np.inf, 0, -np.inf]]))):  # fmt: skip
        for k in (1, 3, 4):
            inputs = [given(value.astype(np.float32)), constant(np.array(k, np.int32))]
            yield Case("TOPK_V2", f"{name} k {k}", inputs, [result(np.float32), result(np.int32)])
    for kind, scale, zero in ((np.int8, 0.5, -128), (np.uint8, 3.0, 255), (np.int16, 1e-3, 0)):
        inputs = [given(x.ints(kind, (3, 7)), scale, zero), constant(np.array(3, np.int32))]
        outputs = [result(kind, scale, zero), result(np.int32)]
        yield Case("TOPK_V2", f"quantized {np.dtype(kind).name}", inputs, outputs, exact=True)
    inputs = [given(x.floats((2, 2000))), constant(np.array(700, np.int32))]
    yield Case("TOPK_V2", "many", inputs, [result(np.float32), result(np.int32)])
    runs = [[x.floats((2, n)), np.array(k, np.int32)] for n, k in ((5, 5), (9, 1), (4, 2))]
    inputs = [given(x.floats((2, 7)), declared=(2, 1)), given(np.array(3, np.int32))]
    yield Case("TOPK_V2", "k changes", inputs, [result(np.float32), result(np.int32)], runs=runs)
