# SPDX-License-Identifier: Apache-2.0
"""LOGICAL_AND LOGICAL_OR LOGICAL_NOT."""

from __future__ import annotations

import numpy as np
from elementwise import BOOL, BROADCASTS, EMPTY_BROADCASTS, SHAPES
from harness import Case, Data, both_ways, constant, given, result


def cases():
    for op in ("LOGICAL_AND", "LOGICAL_OR"):
        for left, right in BROADCASTS + EMPTY_BROADCASTS:
            data = Data(f"{op} {left} {right}")
            a, b = data.bools(left), data.bools(right)
            for second in both_ways(given(b)):
                yield Case(op, f"{left} {right} {second.role}", [given(a), second], [result(BOOL)])
        table = np.array([False, False, True, True]), np.array([False, True, False, True])
        yield Case(op, "all pairs", [given(table[0]), given(table[1])], [result(BOOL)])
        yield Case(op, "constant left", [constant(table[0]), given(table[1])], [result(BOOL)])
        runs = [[data.bools(s), data.bools(t)] for s, t in [((4, 3), (3,)), ((1,), (2, 2, 1)), ((0, 2), (2,))]]
        first = [given(data.bools((2, 3)), declared=(1, 3)), given(data.bools((1,)), declared=(3,))]
        yield Case(op, "resized again and again", first, [result(BOOL)], runs=runs)
    for shape in SHAPES:
        yield Case("LOGICAL_NOT", f"{shape}", [given(Data(f"not {shape}").bools(shape))], [result(BOOL)])
    data = Data("not resized")
    runs = [[data.bools((3, 4))], [data.bools((0,))], [data.bools(())]]
    yield Case("LOGICAL_NOT", "resized", [given(data.bools((2,)), declared=(1,))], [result(BOOL)], runs=runs)
