# SPDX-License-Identifier: Apache-2.0
"""BATCH_MATMUL."""

from __future__ import annotations

import numpy as np
from harness import Case, Data, Tensor, constant, given, result
from shaped import both

# left batches, right batches, m, k, n
SIZES = [
    ((), (), 3, 4, 5),
    ((), (), 1, 7, 1),
    ((), (), 1, 1, 1),
    ((), (), 17, 33, 9),
    ((2,), (2,), 3, 4, 5),
    ((3,), (1,), 2, 5, 4),
    ((1,), (3,), 2, 5, 4),
    ((3,), (), 2, 5, 4),
    ((), (3,), 2, 5, 4),
    ((2, 3), (2, 3), 4, 2, 3),
    ((2, 1), (1, 3), 4, 2, 3),
    ((1, 3), (2, 1), 4, 2, 3),
    ((2, 3), (3,), 1, 6, 2),
    ((3,), (2, 1), 5, 3, 1),
    ((2, 1, 3), (2, 2, 1), 2, 3, 4),
    ((2, 2, 3), (), 2, 3, 4),
    ((), (2, 1, 3), 2, 3, 4),
    ((6,), (6,), 1, 16, 8),
]


def _shapes(size, adj_x, adj_y):
    left, right, m, k, n = size
    return (*left, *((k, m) if adj_x else (m, k))), (*right, *((n, k) if adj_y else (k, n)))


def _case(name, lhs: Tensor, rhs: Tensor, output: Tensor, adj_x, adj_y, **options):
    options.setdefault("attributes", {}).update(adj_x=bool(adj_x), adj_y=bool(adj_y))
    turned = ("", " adj_y", " adj_x", " adj_x adj_y")[2 * adj_x + adj_y]
    return Case("BATCH_MATMUL", f"{name}{turned}", [lhs, rhs], [output], **options)


def cases():
    yield from both(_cases())


def _cases():
    for i, size in enumerate(SIZES):
        for turn in range(4):
            yield from _products(size, *divmod(turn, 2), others=turn in (i % 4, (i + 1) % 4))
    yield from _empty()
    yield from _other_sizes()


def _products(size, adj_x, adj_y, others):
    """In float32, and in the other types where `others` says so."""
    left, right = _shapes(size, adj_x, adj_y)
    data = Data(f"bmm {size} {adj_x} {adj_y}")
    a, b = data.floats(left), data.floats(right)
    for role in (given, constant):
        yield _case(f"f32 {size} {role.__name__}", given(a), role(b), result(np.float32), adj_x, adj_y)
        if not others:
            continue
        spread = 2.0 * np.sqrt(size[3])
        x = given(data.ints(np.int8, left), 0.02, -7)
        y = role(data.ints(np.int8, right), 0.01, 3)
        yield _case(f"i8 {size} {role.__name__}", x, y, result(np.int8, spread / 127, 9), adj_x, adj_y)
        x = given(data.ints(np.int16, left), 0.0001, 0)
        y = role(data.ints(np.int16, right), 0.0001, 0)
        yield _case(f"i16 {size} {role.__name__}", x, y, result(np.int16, 3 * spread / 32767, 0), adj_x, adj_y)
    if not others:
        return
    half = [given(data.floats(shape, dtype=np.float16)) for shape in (left, right)]
    yield _case(f"f16 {size}", *half, result(np.float16), adj_x, adj_y)
    levels = data.ints(np.int8, right, -127, 127)
    for asymmetric in (False, True):
        name = f"hybrid {size}{' asymmetric' if asymmetric else ''}"
        options = dict(loose=True, attributes={"asymmetric_quantize_inputs": asymmetric})
        yield _case(name, given(a), constant(levels, 0.02, 0), result(np.float32), adj_x, adj_y, **options)
    x, y = given(data.ints(np.int8, left)), given(data.ints(np.int8, right))
    yield _case(f"i8 to i32 {size}", x, y, result(np.int32), adj_x, adj_y)
    x = given(data.ints(np.int16, left), 0.0001, 0)
    y = constant(data.ints(np.int8, right), 0.01, 0)
    yield _case(f"i16x8 {size}", x, y, result(np.int16, 0.0003 * np.sqrt(size[3]), 0), adj_x, adj_y)


def _empty():
    for left, right in (((0, 2, 3), (0, 3, 4)), ((2, 0, 3, 4), (2, 0, 4, 1))):
        data = Data(f"bmm empty {left}")
        a, b = given(data.floats(left)), given(data.floats(right))
        yield _case(f"f32 empty {left} {right}", a, b, result(np.float32), False, False)


def _other_sizes():
    data = Data("bmm run by run")
    more = [[data.floats((4, 2, 3)), data.floats((4, 3, 2))], [data.floats((1, 5, 7)), data.floats((3, 7, 1))]]
    first = [given(data.floats((2, 3, 4)), declared=(1, 1, 4)), given(data.floats((2, 4, 5)), declared=(1, 4, 1))]
    yield _case("f32 other sizes run by run", *first, result(np.float32), False, False, runs=more)
