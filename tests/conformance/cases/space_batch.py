# SPDX-License-Identifier: Apache-2.0
"""SPACE_TO_BATCH_ND BATCH_TO_SPACE_ND."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from harness import Case, Data, both_ways, constant, given, result

TYPES = [
    np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.uint8, np.int8, np.int16, np.uint16, np.int32, np.uint32,
    np.int64, np.uint64, bool,
]  # fmt: skip

TO_BATCH = [
    ((1, 4, 4, 1), (2, 2), ((0, 0), (0, 0))), ((2, 4, 6, 3), (2, 3), ((0, 0), (0, 0))),
    ((1, 5, 2, 1), (3, 2), ((1, 0), (2, 0))),
    ((1, 4, 2, 2), (3, 2), ((1, 1), (2, 4))), ((2, 3, 3, 1), (2, 2), ((0, 1), (1, 0))),
    ((1, 1, 1, 1), (1, 1), ((0, 0), (0, 0))),
    ((1, 3, 5, 2), (1, 5), ((0, 2), (3, 2))), ((1, 2, 2, 1), (4, 4), ((1, 1), (0, 2))),
    ((1, 2, 2, 1), (2, 2), ((2, 2), (4, 0))),
    ((1, 4, 3), (2,), ((0, 0),)), ((2, 5, 2), (3,), ((1, 0),)), ((1, 3, 1), (4,), ((2, 3),)),
    ((3, 7, 2), (1,), ((0, 1),)),
    ((0, 2, 2, 1), (2, 2), ((0, 0), (0, 0))), ((1, 2, 2, 0), (2, 2), ((0, 0), (0, 0))),
]  # fmt: skip
TO_SPACE = [
    ((4, 2, 2, 1), (2, 2), ((0, 0), (0, 0))), ((12, 2, 1, 3), (2, 3), ((0, 0), (0, 0))),
    ((6, 2, 2, 1), (3, 2), ((1, 0), (2, 0))),
    ((6, 3, 4, 2), (3, 2), ((1, 1), (2, 4))), ((8, 2, 2, 1), (2, 2), ((0, 1), (1, 0))),
    ((1, 1, 1, 1), (1, 1), ((0, 0), (0, 0))),
    ((5, 3, 2, 2), (1, 5), ((0, 2), (3, 2))), ((16, 1, 2, 1), (4, 4), ((1, 1), (0, 2))),
    ((4, 3, 3, 1), (2, 2), ((2, 2), (4, 0))),
    ((2, 2, 3), (2,), ((0, 0),)), ((6, 2, 2), (3,), ((1, 0),)), ((4, 2, 1), (4,), ((2, 3),)),
    ((3, 8, 2), (1,), ((0, 1),)),
    ((0, 2, 2, 1), (2, 2), ((0, 0), (0, 0))), ((4, 2, 2, 0), (2, 2), ((0, 0), (0, 0))),
]  # fmt: skip


def cases():
    for op, table in (("SPACE_TO_BATCH_ND", TO_BATCH), ("BATCH_TO_SPACE_ND", TO_SPACE)):
        for shape, block, margins in table:
            x = Data(f"{op} {shape}").floats(shape)
            for size in both_ways(constant(np.array(block, np.int32))):
                for edges in both_ways(constant(np.array(margins, np.int32))):
                    if not x.size and "given" in (size.role, edges.role):
                        continue  # LiteRT has no memory for empty tensors found at run time
                    name = f"{shape} block {block} {size.role} margins {margins} {edges.role}"
                    yield Case(op, name, [given(x), size, edges], [result(np.float32)])
        x = Data(f"{op} types")
        for kind in TYPES:
            for shape, block, margins in (table[3], table[10]):
                operands = [constant(np.array(block, np.int32)), constant(np.array(margins, np.int32))]
                for source in both_ways(given(x.any(kind, shape))):
                    name = f"{np.dtype(kind).name} {shape} {source.role}"
                    yield Case(op, name, [source, *operands], [result(kind)])
        for kind, scale, zero in ((np.int8, 0.5, -128), (np.int8, 0.1, 5), (np.uint8, 3.0, 255), (np.uint8, 1.0, 7),
                                  (np.int16, 1e-3, 0)):  # fmt: skip
            for shape, block, margins in (table[2], table[3], table[10]):
                operands = [constant(np.array(block, np.int32)), constant(np.array(margins, np.int32))]
                name = f"quantized {np.dtype(kind).name} {scale} {zero} {shape}"
                source = given(x.ints(kind, shape), scale, zero)
                yield Case(op, name, [source, *operands], [result(kind, scale, zero)], exact=True)
        batch = 4 if op == "BATCH_TO_SPACE_ND" else 1
        runs = [[x.floats((batch, 4, 4, 1)), np.array(b, np.int32), np.array(m, np.int32)]
                for b, m in (((1, 2), ((0, 0), (0, 0))), ((2, 1), ((1, 1), (0, 0))),
                    ((2, 2), ((0, 2), (2, 0))))]  # fmt: skip
        inputs = [given(x.floats((batch, 4, 4, 1))), given(np.array([2, 2], np.int32))]
        inputs.append(given(np.zeros((2, 2), np.int32)))
        yield Case(op, "operands change", inputs, [result(np.float32)], runs=runs)
        runs = [[x.floats((4 * n, 2 * h, 2, 1))] for n, h in ((2, 1), (1, 3))]
        inputs = [given(x.floats((4, 6, 4, 1)), declared=(4, 2, 2, 1)), constant(np.array([2, 2], np.int32))]
        inputs.append(constant(np.zeros((2, 2), np.int32)))
        yield Case(op, "resized", inputs, [result(np.float32)], runs=runs)
