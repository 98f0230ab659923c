# SPDX-License-Identifier: Apache-2.0
"""REVERSE_SEQUENCE."""

from __future__ import annotations

import numpy as np
from harness import Case, Data, given, result

PLACES = [((4, 3), 1, 0), ((3, 4), 0, 1), ((2, 3, 4), 2, 0), ((4, 3, 2), 0, 1), ((2, 5, 3, 2), 1, 3), ((1, 7), 1, 0)]


def cases():
    for dtype in (np.float32, np.uint8, np.int16, np.int32, np.int64):
        for shape, seq, batch in PLACES:
            for index_type in (np.int32, np.int64):
                name = f"{np.dtype(dtype)} {shape} along {seq} by {batch} {np.dtype(index_type)}"
                data = Data(name)
                lengths = data.ints(index_type, (shape[batch],), 1, shape[seq])
                operands = [given(data.any(dtype, shape)), given(lengths)]
                yield Case("REVERSE_SEQUENCE", name, operands, [result(dtype)], seq_dim=seq, batch_dim=batch)
