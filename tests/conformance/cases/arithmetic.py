# SPDX-License-Identifier: Apache-2.0
"""ADD SUB MUL DIV SQUARED_DIFFERENCE."""

from __future__ import annotations

import numpy as np
from harness import NONE, RELU, RELU6, Case, Data, both_ways, given, result

SHAPES = [
    ((), ()), ((1,), ()), ((5,), (5,)), ((2, 3), (3,)), ((7, 1), (1, 5)), ((2, 3, 4, 5), (1, 3, 1, 5)), ((0,), (1,)),
    ((2, 0, 3), (3,)), ((1, 13, 2), (1, 1, 2)), ((2, 1, 3, 1, 2), (4, 1, 5, 1)), ((1, 2, 3, 1, 2, 2), (3, 1, 1)),
]  # fmt: skip


def cases():
    for op in ("ADD", "SUB", "MUL", "DIV", "SQUARED_DIFFERENCE"):
        for left, right in SHAPES:
            data = Data(f"{op} {left} {right}")
            a = data.floats(left)
            b = data.floats(right, 0.5, 3.0)
            for second in both_ways(given(b)):
                yield Case(op, f"f32 {left} {right} {second.role}", [given(a), second], [result(np.float32)])
