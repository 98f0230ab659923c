# SPDX-License-Identifier: Apache-2.0
"""SCATTER_ND."""

from __future__ import annotations

import numpy as np
from harness import Case, Data, both_ways, constant, given, result

TYPES = [np.float32, np.int8, np.uint8, np.int32, np.int64, np.bool_]

# Indices and the shape they point into; updates have the shape that follows.
PLACES = [
    ([[4], [3], [1], [7]], [8]),
    ([[0], [2]], [4, 4, 2]),
    ([[0, 1], [2, 3], [2, 0]], [3, 4]),
    ([[0, 1, 1]], [2, 2, 2]),
    ([[[0], [1]], [[2], [3]]], [5, 3]),
    ([[1], [1], [1]], [3]),  # the same place three times: sums
    ([[2], [0], [2]], [3, 2]),
    (np.zeros((0, 1)), [4]),
    ([[0]], [1]),
    ([[0, 0, 0, 0]], [1, 2, 1, 3, 2]),
]


def cases():
    for indices, shape in PLACES:
        indices = np.array(indices)
        updates_shape = [*indices.shape[:-1], *shape[indices.shape[-1] :]]
        for dtype in TYPES:
            name = f"{np.dtype(dtype)} {indices.tolist()} into {shape}"
            updates = Data(name).any(dtype, updates_shape)
            for last in both_ways(constant(np.array(shape, np.int32))):
                operands = [given(indices.astype(np.int32)), given(updates), last]
                yield Case("SCATTER_ND", f"{name} shape {last.role}", operands, [result(dtype)])
