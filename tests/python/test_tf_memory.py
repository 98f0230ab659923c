# SPDX-License-Identifier: Apache-2.0
"""What leadline.tf takes: charged before it is taken, refused when it does not fit, done by rows where that helps."""

import gc
import time

import numpy as np
import pytest

import leadline
from leadline import tf
from leadline.tf import engine
from leadline.tf.plan import Plan

v1 = tf.compat.v1


@pytest.fixture
def budget():
    gc.collect()
    budget = leadline.Budget("60MB")
    engine.clear()
    tf.set_budget(budget)
    yield budget
    engine.clear()
    tf.set_budget(None)


def test_a_tensor_that_cannot_fit_is_refused_in_a_millisecond():
    tf.random.normal([2, 2])
    start = time.thread_time()
    with pytest.raises(tf.errors.ResourceExhaustedError) as caught:
        tf.random.normal([10_000, 10_000, 10_000])
    assert time.thread_time() - start < 0.05  # a millisecond, on a busy machine
    error = caught.value
    assert isinstance(error, MemoryError) and isinstance(error, leadline.BudgetError)
    assert error.needed == 4 * 10**12 and "3.6 TiB" in str(error)
    assert f"{__file__}:" in str(error) and "tf.random.normal([10_000, 10_000, 10_000])" in error.where


def test_a_graph_that_cannot_fit_is_refused_before_it_runs():
    with tf.Graph().as_default():
        a = tf.random.normal([10_000, 10_000, 10_000])
        b = tf.random.normal([10_000, 10_000, 10_000])
        c = tf.matmul(a, b)
        with v1.Session() as sess, pytest.raises(tf.errors.ResourceExhaustedError) as caught:
            sess.run(c)
    assert caught.value.needed == 12 * 10**12
    lines = str(caught.value).splitlines()
    assert sum("RandomStandardNormal" in line and "a = tf.random.normal" in line for line in lines) == 1
    assert any("BatchMatMulV2" in line and "c = tf.matmul(a, b)" in line for line in lines)


def test_a_result_that_overwrites_its_operand_counts_once():
    with tf.Graph().as_default(), v1.Session() as sess:
        huge = tf.random.uniform([20_000, 20_000, 5000])
        with pytest.raises(tf.errors.ResourceExhaustedError) as caught:
            sess.run(tf.exp(huge * 2.0 + 1.0))
    assert caught.value.needed == 8 * 10**12


@pytest.mark.parametrize(
    ("function", "tensors"),
    [
        (lambda x: x * 2.0 + 1.0, 1),  # in place
        (lambda x: tf.transpose(x) + x, 2),  # not of what is looked at in two ways
        (lambda x: tf.nn.softmax(x) + x, 2),
        (lambda x: tf.reduce_sum(x * x + x), 2),
        (lambda x: tf.sort(x), 3),  # and its workspace
        (lambda x: [x, tf.transpose(x)], 3),  # both are the caller's own
    ],
)
def test_the_planned_peak_is_the_most_that_lives_at_one_time(function, tensors):
    with tf.Graph().as_default() as graph:
        result = function(tf.random.normal([100, 100]))
    fetches = result if isinstance(result, list) else [result]
    assert Plan(graph.get_operations(), fetches, {}).peak == tensors * 40_000


def test_sizes_beyond_64_bits_are_refused_too():
    with pytest.raises(MemoryError):
        tf.zeros([2**31 - 1] * 4)
    with pytest.raises(MemoryError):
        tf.fill([10**6] * 3, 1.0)


def test_tensors_are_charged_while_they_live(budget):
    a = tf.zeros([1000, 1000])
    assert budget.used == 4_000_000
    view = tf.transpose(a)
    del a
    assert budget.used == 4_000_000
    del view
    assert budget.used == 0 and 4_000_000 <= budget.peak < 4_000_100


def test_an_element_does_not_keep_the_whole_tensor(budget):
    rows = [tf.zeros([2000, 2000])[i, :5] for i in range(10)]
    assert budget.used == 10 * 5 * 4 and rows[0].shape == (5,)


def test_eager_ops_are_refused_when_the_budget_is_used_up(budget):
    kept = [tf.zeros([1000, 1000]) for _ in range(14)]
    with pytest.raises(tf.errors.ResourceExhaustedError, match=r"the budget of 60 MB has 4 MB left"):
        tf.zeros([1001, 1000])
    del kept[:2]
    tf.exp(kept[0])
    with pytest.raises(MemoryError):
        tf.zeros([4000, 4000], tf.float64)


def test_a_loop_of_tensors_does_not_grow(budget):
    for _ in range(200):
        x = tf.random.normal([500, 500])
        x = tf.nn.softmax(tf.matmul(x, tf.transpose(x)))
    del x
    engine.clear()
    assert budget.used == 0 and budget.peak < 16_000_000


def test_a_product_that_does_not_fit_whole_is_done_by_rows(budget):
    a = np.random.default_rng(0).standard_normal((4000, 40)).astype(np.float32) / 8
    d = (a @ a.T).astype(np.float64)
    with tf.Graph().as_default():
        x = v1.placeholder(tf.float32, [None, 40])
        y = tf.matmul(x, x, transpose_b=True)  # 61 MiB
        total, means, peak = tf.reduce_sum(tf.exp(y)), tf.reduce_mean(y, 1), tf.reduce_max(y + 1.0)
        columns, mean = tf.reduce_sum(y, 0), tf.reduce_mean(y * y)
        with v1.Session() as sess:
            found = sess.run([total, means, peak, columns, mean], {x: a})
            with pytest.raises(MemoryError):
                sess.run(y, {x: a})
    for got, expected in zip(found, (np.exp(d).sum(), d.mean(1), (d + 1).max(), d.sum(0), (d * d).mean()), strict=True):
        np.testing.assert_allclose(got, expected, rtol=2e-4, atol=2e-4)
    gc.collect()
    assert budget.used < 100 and budget.peak < 60_000_000


def test_the_same_numbers_whole_and_by_rows():
    def draw():
        tf.random.set_seed(5)
        with tf.Graph().as_default(), v1.Session() as sess:
            return sess.run(tf.reduce_max(tf.random.normal([3000, 1000]), 1))

    whole = draw()
    tf.set_budget("4MB")
    try:
        np.testing.assert_array_equal(draw(), whole)
    finally:
        tf.set_budget(None)


def test_what_needs_all_rows_at_once_is_refused_by_name(budget):
    with tf.Graph().as_default(), v1.Session() as sess:
        x = tf.random.normal([5000, 5000])
        with pytest.raises(tf.errors.ResourceExhaustedError, match="RandomStandardNormal"):
            sess.run(tf.reduce_sum(tf.sort(x, axis=0)))


def test_a_function_is_planned_like_a_graph(budget):
    @tf.function
    def f(x):
        return tf.reduce_sum(tf.matmul(x, x, transpose_b=True), 1)

    a = np.ones((4000, 10), np.float32)
    np.testing.assert_allclose(f(a), np.full(4000, 40_000), rtol=1e-5)
    assert budget.peak < 60_000_000


def test_float64_and_complex_are_charged_too(budget):
    x = tf.zeros([1000, 1000], tf.complex128)
    assert budget.used == 16_000_000
    with pytest.raises(MemoryError):
        tf.matmul(tf.concat([x, x], 0), tf.concat([x, x], 1))
    assert budget.used == 16_000_000


def test_results_of_a_run_are_no_longer_charged_when_they_are_the_callers(budget):
    with tf.Graph().as_default(), v1.Session() as sess:
        result = sess.run(tf.zeros([1000, 1000]))
    gc.collect()
    assert result.nbytes == 4_000_000 and budget.used < 100


def test_the_environment_sets_the_budget(monkeypatch):
    import subprocess
    import sys

    code = "from leadline import tf; print(tf.get_budget().limit); tf.zeros([1000, 1000])"
    monkeypatch.setenv("LEADLINE_MEMORY", "1MB")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["1000000"] and "BudgetError" in done.stderr and done.returncode == 1


def test_the_workspace_of_numpy_is_charged(budget):
    x = tf.zeros([1, 200, 200, 24], tf.float64)
    with pytest.raises(MemoryError, match="the workspace of Conv2D needs"):
        tf.nn.conv2d(x, tf.zeros([3, 3, 24, 4], tf.float64), 1, "SAME")  # all windows: 69 MB
    assert budget.used == x.shape.num_elements() * 8


def test_erf_of_many_numbers_makes_no_objects_of_all_of_them(budget):
    import resource

    x = tf.random.uniform([1000, 3000], dtype=tf.float64)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tf.math.erf(x)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000
