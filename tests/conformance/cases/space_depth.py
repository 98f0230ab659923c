# SPDX-License-Identifier: Apache-2.0
"""SPACE_TO_DEPTH DEPTH_TO_SPACE."""

from __future__ import annotations

import numpy as np
from harness import Case, Data, both_ways, given, result

TYPES = [np.float32, np.uint8, np.int8, np.int32, np.int64]


def cases():
    space = [
        ((1, 2, 2, 1), 2), ((1, 4, 4, 3), 2), ((2, 4, 6, 1), 2), ((1, 3, 6, 2), 3), ((3, 5, 5, 2), 5),
        ((1, 8, 4, 7), 4),
        ((1, 3, 7, 2), 1), ((0, 2, 2, 1), 2), ((1, 0, 4, 2), 2), ((1, 2, 2, 0), 2), ((2, 12, 6, 5), 6),
        ((1, 2, 16, 1), 2),
    ]  # fmt: skip
    depth = [
        ((1, 1, 1, 4), 2), ((1, 2, 2, 12), 2), ((2, 3, 1, 4), 2), ((1, 2, 1, 18), 3), ((3, 1, 1, 50), 5),
        ((1, 2, 1, 112), 4),
        ((1, 3, 7, 2), 1), ((0, 2, 2, 4), 2), ((1, 0, 4, 8), 2), ((1, 2, 2, 0), 2), ((2, 2, 1, 180), 6),
        ((1, 1, 8, 4), 2),
    ]  # fmt: skip
    for op, table in (("SPACE_TO_DEPTH", space), ("DEPTH_TO_SPACE", depth)):
        for shape, block in table:
            for kind in TYPES:
                for source in both_ways(given(Data(f"{op} {shape}").any(kind, shape))):
                    name = f"{np.dtype(kind).name} {shape} block {block} {source.role}"
                    fault = {}
                    if shape[0] == 0 and kind is np.float32:
                        continue  # LiteRT fails in more than one way
                    if 0 in shape and kind is np.float32:
                        by = block if op == "DEPTH_TO_SPACE" else 1 / block
                        wanted = (shape[0], int(shape[1] * by), int(shape[2] * by), int(shape[3] / by / by))
                        fault = dict(litert="refuses", because="the XNNPACK delegate takes it, then fails to prepare")
                        fault["reference"] = lambda *_, wanted=wanted: [np.zeros(wanted, np.float32)]
                    yield Case(op, name, [source], [result(kind)], block_size=block, **fault)
        shape, block = table[1]
        for kind, scale, zero in ((np.int8, 0.5, -128), (np.uint8, 3.0, 255)):
            source = given(Data(f"{op} quantized").ints(kind, shape), scale, zero)
            name = f"quantized {np.dtype(kind).name}"
            yield Case(op, name, [source], [result(kind, scale, zero)], block_size=block, exact=True)
        x = Data(f"{op} resized")
        runs = [[x.floats((n, 2 * h, 2 * h, 4))] for n, h in ((2, 1), (1, 3))]
        yield Case(
            op,
            "resized",
            [given(x.floats((1, 2, 4, 4)), declared=(1, 2, 2, 4))],
            [result(np.float32)],
            block_size=2,
            runs=runs,
        )
