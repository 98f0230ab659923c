# SPDX-License-Identifier: Apache-2.0
"""DYNAMIC_UPDATE_SLICE."""

from __future__ import annotations

import numpy as np
from harness import Case, Data, both_ways, constant, given, result

PLACES = [
    ((5,), (2,), [1]), ((5,), (2,), [4]), ((5,), (2,), [-3]), ((3, 4), (2, 2), [1, 1]), ((3, 4), (3, 4), [0, 0]),
    ((2, 3, 4), (1, 1, 4), [1, 2, 0]), ((2, 3, 4), (2, 1, 1), [5, 5, 5]), ((1, 7, 2, 3), (1, 2, 2, 3), [0, 6, 0, 0]),
    ((4, 2), (0, 2), [1, 0]), ((), (), np.zeros(0)), ((2, 1, 3, 1, 2), (1, 1, 2, 1, 1), [1, 0, 1, 0, 1]),
]  # fmt: skip


def cases():
    for dtype in (np.float32, np.float16, np.int8, np.int16, np.int32, np.int64, np.bool_):
        for shape, update, at in PLACES:
            for index_type in (np.int32, np.int64):
                for start in both_ways(constant(np.array(at, index_type))):
                    name = f"{np.dtype(dtype)} {update} into {shape} at {list(at)} {np.dtype(index_type)} {start.role}"
                    data = Data(name)
                    operands = [given(data.any(dtype, shape)), given(data.any(dtype, update)), start]
                    yield Case("DYNAMIC_UPDATE_SLICE", name, operands, [result(dtype)])
