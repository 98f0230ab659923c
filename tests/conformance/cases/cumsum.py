# SPDX-License-Identifier: Apache-2.0
"""CUMSUM."""

from __future__ import annotations

import numpy as np
from harness import Case, Data, both_ways, constant, given, result


def cases():
    modes = [(exclusive, reverse) for exclusive in (False, True) for reverse in (False, True)]
    for shape in (
        (1,),
        (7,),
        (3, 4),
        (2, 3, 4),
        (2, 1, 3, 4),
        (2, 1, 2, 1, 3),
        (1, 2, 1, 2, 3, 2),
        (0,),
        (2, 0, 3),
        (3, 100),
    ):
        for kind in (np.float32, np.int32, np.int64):
            x = Data(f"cumsum {shape}").any(kind, shape)
            for axis in range(-len(shape), len(shape)):
                for number, (exclusive, reverse) in enumerate(modes):
                    where = both_ways(constant(np.array(axis, np.int32)))[(number + axis) % 2]
                    how = f"{'exclusive' * exclusive} {'reverse' * reverse}"
                    name = f"{np.dtype(kind).name} {shape} axis {axis} {where.role} {how}"
                    yield Case(
                        "CUMSUM", name.rstrip(), [given(x), where], [result(kind)], exclusive=exclusive, reverse=reverse
                    )
    x = Data("cumsum")
    for exclusive, reverse in modes:
        for kind in (np.int32, np.int64):
            inputs = [constant(x.ints(kind, (2, 9))), constant(np.array([1], np.int32))]
            name = f"{np.dtype(kind).name} wraps {exclusive} {reverse}"
            yield Case("CUMSUM", name, inputs, [result(kind)], exclusive=exclusive, reverse=reverse)
        odd = x.floats((3, 6))
        odd[0, 2], odd[1, 1], odd[1, 4], odd[2, 0] = np.nan, np.inf, -np.inf, np.inf
        inputs = [given(odd), constant(np.array(1, np.int32))]
        yield Case(
            "CUMSUM",
            f"not finite {exclusive} {reverse}",
            inputs,
            [result(np.float32)],
            exclusive=exclusive,
            reverse=reverse,
        )
    runs = [[x.floats(s), np.array(a, np.int32)] for s, a in (((2, 5), 1), ((4, 1), -2), ((1, 3), 1))]
    inputs = [given(x.floats((2, 3)), declared=(1, 1)), given(np.array(0, np.int32))]
    yield Case("CUMSUM", "axis changes", inputs, [result(np.float32)], runs=runs)
