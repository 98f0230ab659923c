# SPDX-License-Identifier: Apache-2.0
"""BITCAST."""

from __future__ import annotations

import numpy as np
from harness import Case, Data, given, result

TYPES = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.float32, np.int64, np.uint64, np.float64]
SHAPES = [(4,), (2, 3), (1, 2, 5), (0, 3)]


def cases():
    for source in TYPES:
        for target in TYPES:
            wide, narrow = np.dtype(target).itemsize, np.dtype(source).itemsize
            for shape in SHAPES:
                # A wider type takes the last dimension away.
                full = (*shape, wide // narrow) if wide > narrow else shape
                value = Data(f"{shape}").ints(np.uint8, (int(np.prod(full)) * narrow,), 0, 120)
                value = value.view(source).reshape(full)
                name = f"{np.dtype(source)} {full} to {np.dtype(target)}"
                yield Case("BITCAST", name, [given(value)], [result(target)])
