# SPDX-License-Identifier: Apache-2.0
"""MATRIX_DIAG and MATRIX_SET_DIAG."""

from __future__ import annotations

import numpy as np
from harness import Case, Data, given, result

TYPES = [np.float32, np.int8, np.uint8, np.int16, np.int32, np.int64]
SHAPES = [(3,), (1,), (2, 3), (4, 1), (2, 3, 2), (1, 2, 1, 5), (1, 3, 2, 1, 2)]
MATRICES = [(3, 3), (2, 5), (5, 2), (1, 1), (2, 3, 4), (3, 1, 4, 2), (2, 1, 3, 3, 3)]


def cases():
    for dtype in TYPES:
        for shape in SHAPES:
            value = Data(str(shape)).any(dtype, shape)
            yield Case("MATRIX_DIAG", f"{np.dtype(dtype)} {shape}", [given(value)], [result(dtype)])
        for shape in MATRICES:
            data = Data(str(shape))
            diagonal = (*shape[:-2], min(shape[-2:]))
            operands = [given(data.any(dtype, shape)), given(data.any(dtype, diagonal))]
            yield Case("MATRIX_SET_DIAG", f"{np.dtype(dtype)} {shape}", operands, [result(dtype)])
