# SPDX-License-Identifier: Apache-2.0
"""RFFT2D, REAL, IMAG, COMPLEX_ABS."""

from __future__ import annotations

import numpy as np
from harness import Case, Data, both_ways, constant, given, result


def cases():
    for shape in [(4, 4), (1, 8), (8, 1), (3, 8, 8), (2, 2, 5, 7), (3, 3), (1, 1)]:
        for length in [(4, 4), (1, 8), (8, 2), (1, 1), (2, 16), (16, 1)]:
            name = f"{shape} to {length}"
            for size in both_ways(constant(np.array(length, np.int32))):
                inputs = [given(Data(name).floats(shape)), size]
                answer = lambda x, *_, n=length: [np.fft.rfft2(x, n).astype(np.complex64)]  # noqa: E731
                fault = dict(litert="wrong", because="width 1 gives imaginary parts", reference=answer)
                options = fault if length[1] == 1 else {}
                yield Case("RFFT2D", f"{name} {size.role}", inputs, [result(np.complex64)], **options)
    for whole, part in ((np.complex64, np.float32), (np.complex128, np.float64)):
        for op in ("REAL", "IMAG", "COMPLEX_ABS"):
            for shape in [(), (5,), (2, 3), (1, 0, 2), (1, 2, 3, 1, 2)]:
                value = Data(f"{shape}").any(whole, shape)
                yield Case(op, f"{np.dtype(whole)} {shape}", [given(value)], [result(part)])
