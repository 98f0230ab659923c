# SPDX-License-Identifier: Apache-2.0
"""FAKE_QUANT."""

from __future__ import annotations

import numpy as np
from harness import Case, Data, given, result


def cases():
    for low, high in [(-1.0, 1.0), (0.0, 1.0), (-10.0, 7.3), (0.1, 1.0), (-2.0, -0.5), (-0.1, 6.0), (-127.0, 128.0)]:
        for bits in (2, 4, 8, 16):
            for shape in [(), (37,), (2, 3, 5), (0,)]:
                name = f"{low} {high} {bits} bits {shape}"
                value = Data(name).floats(shape, low - 2, high + 2)
                options = dict(min=low, max=high, num_bits=bits)
                yield Case("FAKE_QUANT", name, [given(value)], [result(np.float32)], **options)
