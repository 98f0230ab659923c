# SPDX-License-Identifier: Apache-2.0
"""Random graphs: whole, by blocks of rows and as functions they give what the same ops give one by one."""

import numpy as np
import pytest

from leadline import tf
from leadline.tf import engine

SEEDS = 60
BUDGETS = (150_000, 300_000, 800_000, 3_000_000)  # one tensor has 72,000 bytes
ROWS, COLUMNS = 60, 300  # large enough for the engine, small enough to be quick

UNARY = [
    lambda x: x * 0.5, lambda x: tf.nn.relu(x), lambda x: tf.tanh(x), lambda x: tf.abs(x) + 0.5, lambda x: -x,
    lambda x: tf.sqrt(tf.abs(x)), lambda x: tf.nn.softmax(x), lambda x: tf.identity(x), lambda x: tf.exp(tf.tanh(x)),
    lambda x: tf.transpose(tf.transpose(x)), lambda x: tf.reshape(tf.reshape(x, [-1]), [ROWS, COLUMNS]),
    lambda x: x - tf.reduce_mean(x, 1, True), lambda x: x / (1.0 + tf.reduce_max(tf.abs(x), 0)), lambda x: tf.reverse(x, [0]),
    lambda x: tf.concat(tf.split(x, 2), 0), lambda x: tf.clip_by_value(x, -1.0, 1.0), lambda x: tf.sigmoid(x) * x,
    lambda x: tf.matmul(x, x, transpose_a=True)[:ROWS] * 0.01, lambda x: tf.where(x > 0.0, x, 0.1 * x),
]  # fmt: skip
BINARY = [
    lambda x, y: x + y,
    lambda x, y: x * tf.tanh(y),
    tf.maximum,
    lambda x, y: x - y,
    lambda x, y: tf.minimum(x, -y),
]
ENDS = [
    lambda x: tf.reduce_sum(x), lambda x: tf.reduce_mean(x, 0), lambda x: tf.reduce_max(x, 1), lambda x: x,
    lambda x: tf.transpose(x), lambda x: x[3:7, ::2], lambda x: tf.argmax(tf.round(x * 8.0), 1),
]  # fmt: skip


def build(rng: np.random.Generator, x, y) -> list:
    """The same choices for the same generator, whatever kind of tensors they are made of."""
    known, ends = [x, y], []
    for _ in range(int(rng.integers(4, 20))):
        if rng.random() < 0.7:
            known.append(UNARY[rng.integers(len(UNARY))](known[rng.integers(len(known))]))
        else:
            first, second = rng.integers(len(known), size=2)
            known.append(BINARY[rng.integers(len(BINARY))](known[first], known[second]))
        if rng.random() < 0.3:
            ends.append(ENDS[rng.integers(len(ENDS))](known[rng.integers(len(known))]))
    return [*ends, known[-1]]


@pytest.fixture(scope="module")
def fitting():
    """For each graph, the budgets it fitted. Tight ones are met often enough: a planner that refused more would show."""
    found: list[list[bool]] = []
    yield found
    if len(found) == SEEDS:
        counts = dict(zip(BUDGETS, map(sum, zip(*found, strict=True)), strict=True))
        assert counts[150_000] >= 9 and counts[300_000] >= 18, counts


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_random_graph_gives_what_its_ops_give_one_by_one(seed, fitting):
    data = np.random.default_rng(1000 + seed)
    a, b = (data.standard_normal((ROWS, COLUMNS)).astype(np.float32) for _ in range(2))
    expected = [t.numpy() for t in build(np.random.default_rng(seed), tf.constant(a), tf.constant(b))]

    def check(found) -> None:
        assert len(found) == len(expected)
        for got, value in zip(found, expected, strict=True):
            np.testing.assert_allclose(np.asarray(got, np.float64), value.astype(np.float64), rtol=2e-3, atol=2e-4)

    function = tf.function(lambda x, y: build(np.random.default_rng(seed), x, y))
    check(function(tf.constant(a), tf.constant(b)))
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x, y = (tf.compat.v1.placeholder(tf.float32, [None, COLUMNS]) for _ in range(2))
        fetches = build(np.random.default_rng(seed), x, y)
        before = a.copy(), b.copy()
        check(session.run(fetches, {x: a, y: b}))
        fits = []
        for budget in BUDGETS:
            tf.set_budget(budget)
            try:
                check(session.run(fetches, {x: a, y: b}))
                fits.append(True)
            except tf.errors.ResourceExhaustedError:
                fits.append(False)
            finally:
                engine.clear()
                tf.set_budget(None)
        assert fits == sorted(fits) and fits[2], (
            f"the larger a budget, the more fits: {dict(zip(BUDGETS, fits, strict=True))}"
        )
        fitting.append(fits)
        assert np.array_equal(a, before[0]) and np.array_equal(b, before[1])
