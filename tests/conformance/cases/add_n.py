# SPDX-License-Identifier: Apache-2.0
"""ADD_N."""

from __future__ import annotations

import numpy as np
from harness import Case, Data, given, result


def cases():
    for dtype in (np.float32, np.int32):
        for shape in [(), (1,), (7,), (2, 5, 3, 1), (3, 0, 2), (1, 2, 1, 3, 1, 2)]:
            for count in (2, 3, 6):
                data = Data(f"{shape} {count}")
                operands = [given(data.any(dtype, shape)) for _ in range(count)]
                yield Case("ADD_N", f"{np.dtype(dtype)} {shape} x{count}", operands, [result(dtype)])
