# SPDX-License-Identifier: Apache-2.0
"""SEGMENT_SUM and UNSORTED_SEGMENT_PROD/MAX/SUM/MIN."""

from __future__ import annotations

import numpy as np
from harness import Case, Data, both_ways, constant, given, result

SORTED = [([0, 0, 1], [3]), ([0, 0, 1, 2], [4, 3]), ([0, 1], [2, 2, 2]), ([0], [1, 5]), ([0, 1, 1, 1, 2], [5, 1])]
UNSORTED = [
    ([2, 0, 2, 1], [4], 3), ([0, 1, 0], [3, 2], 2), ([5, 1], [2, 3, 2], 7), ([0, -1, 1, -1], [4, 2], 2),
    ([[0, 1], [2, 0]], [2, 2], 3), ([[0, 1], [1, 1]], [2, 2, 3], 2), ([0, 0], [2], 1), ([1, 1], [2, 2], 4),
]  # fmt: skip


def _values(data, dtype, shape):
    return data.floats(shape) if dtype is np.float32 else data.ints(dtype, shape, -9, 9)


def cases():
    for ids, shape in SORTED:
        for dtype in (np.float32, np.int32):
            name = f"{np.dtype(dtype)} {shape} by {ids}"
            for second in both_ways(constant(np.array(ids, np.int32))):
                values = _values(Data(name), dtype, shape)
                yield Case("SEGMENT_SUM", f"{name} {second.role}", [given(values), second], [result(dtype)])
    for op in ("UNSORTED_SEGMENT_PROD", "UNSORTED_SEGMENT_MAX", "UNSORTED_SEGMENT_SUM", "UNSORTED_SEGMENT_MIN"):
        for ids, shape, count in UNSORTED:
            for dtype in (np.float32, np.int32):
                name = f"{np.dtype(dtype)} {shape} by {ids} to {count}"
                values = _values(Data(name), dtype, shape)
                for second in both_ways(given(np.array(ids, np.int32))):
                    for third in both_ways(constant(np.array(count, np.int32))):
                        roles = f"ids {second.role} count {third.role}"
                        yield Case(op, f"{name} {roles}", [given(values), second, third], [result(dtype)])
