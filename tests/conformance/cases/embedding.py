# SPDX-License-Identifier: Apache-2.0
"""EMBEDDING_LOOKUP and EMBEDDING_LOOKUP_SPARSE."""

from __future__ import annotations

import numpy as np
from harness import Case, Data, constant, given, result

import leadline

INT4, INT2 = leadline.DType.INT4, leadline.DType.INT2
SUM, MEAN, SQRTN = range(3)


def cases():
    yield from _dense()
    yield from _sparse()


def _dense():
    for shape in [(5, 3), (3, 1), (4, 2, 3), (7, 16), (2, 3, 1, 4)]:
        for count in (1, 4, 0):
            data = Data(f"{shape} {count}")
            ids = given(data.ints(np.int32, (count,), 0, shape[0] - 1))
            name = f"{count} of {shape}"
            table = data.floats(shape)
            yield Case("EMBEDDING_LOOKUP", f"f32 {name}", [ids, constant(table)], [result(np.float32)])
            yield Case("EMBEDDING_LOOKUP", f"f32 at run time {name}", [ids, given(table)], [result(np.float32)])
            quantized = data.ints(np.int8, shape, -127, 127)
            rows = data.floats((shape[0],), 0.01, 0.2)
            for scales in (0.03, rows):
                kind = "per row" if np.ndim(scales) else "one scale"
                weights = constant(quantized, scales, np.zeros(np.size(scales)))
                yield Case("EMBEDDING_LOOKUP", f"i8 {kind} {name}", [ids, weights], [result(np.float32)])
            same = constant(quantized, 0.03, 0)
            yield Case("EMBEDDING_LOOKUP", f"i8 to i8 {name}", [ids, same], [result(np.int8, 0.03, 0)], exact=True)
            if len(shape) == 2 and shape[1] % 2 == 0:
                nibbles = data.ints(np.int8, shape, -7, 7)
                weights = constant(nibbles, rows, np.zeros(shape[0]), dtype=INT4)
                yield Case("EMBEDDING_LOOKUP", f"i4 {name}", [ids, weights], [result(np.float32)])


def _sparse():
    # Ids, their places [n, rank] and the dense shape of the bags.
    bags = [
        ([1, 3, 0], [[0, 0], [2, 0], [2, 1]], [3, 2]),
        ([1, 3, 0], [[0, 0], [0, 1], [1, 0]], [2, 2]),
        ([2, 2], [[0, 0], [1, 1]], [4, 3]),
        ([1, 3, 0], [[0, 0, 0], [2, 0, 0], [2, 0, 1]], [3, 2, 2]),
    ]
    for combiner in (SUM, MEAN, SQRTN):
        for ids, places, shape in bags:
            for table_shape in [(4, 3, 2), (4, 5)]:
                name = f"combiner {combiner} {ids} at {places} of {shape} from {table_shape}"
                data = Data(name)
                inputs = [
                    given(np.array(ids, np.int32)), given(np.array(places, np.int32)),
                    given(np.array(shape, np.int32)), given(data.floats((len(ids),), 0.5, 3)),
                    given(data.floats(table_shape)),
                ]  # fmt: skip
                yield Case("EMBEDDING_LOOKUP_SPARSE", name, inputs, [result(np.float32)], combiner=combiner)
