# SPDX-License-Identifier: Apache-2.0
"""DILATE."""

from __future__ import annotations

import numpy as np
from harness import Case, Data, constant, given, result

PLACES = [((4,), [2]), ((3, 2), [1, 3]), ((2, 2), [1, 1]), ((1, 3, 2), [4, 2, 1]), ((2, 1, 3, 1), [2, 2, 2, 2])]


def cases():
    for dtype in (np.float32, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64):
        for shape, factors in PLACES:
            name = f"{np.dtype(dtype)} {shape} by {factors}"
            data = Data(name)
            padding = constant(np.array(7, dtype))
            operands = [given(data.any(dtype, shape)), constant(np.array(factors, np.int32)), padding]
            yield Case("DILATE", name, operands, [result(dtype)])
