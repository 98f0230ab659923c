# SPDX-License-Identifier: Apache-2.0
"""Tensors of leadline.tf in eager mode, with numpy as the oracle. tests/tensorflow holds each op to TensorFlow."""

import gc
import pickle
import weakref

import numpy as np
import pytest

from leadline import tf

RNG = np.random.default_rng(3)
A = RNG.standard_normal((4, 5)).astype(np.float32)
B = RNG.standard_normal((4, 5)).astype(np.float32)


def test_values_cross_to_numpy_and_back():
    t = tf.constant(A)
    assert t.dtype == tf.float32 == np.float32 == t.numpy().dtype
    assert t.shape == (4, 5) and t.shape.as_list() == [4, 5] and t.ndim == 2 and len(t) == 4
    np.testing.assert_array_equal(t, A)
    np.testing.assert_array_equal(np.add(t, 1), A + 1)
    assert float(tf.constant(2.5)) == 2.5 and int(tf.constant(7)) == 7 and [10, 20, 30][tf.constant(1)] == 20
    assert tf.constant(3) == 3 and not tf.constant(3) == 4  # noqa: SIM201  what == gives


@pytest.mark.parametrize("rows", [3, 3000])
def test_a_constant_does_not_follow_the_array_it_was_made_of(rows):
    array = np.ones((rows, 1000), np.float32)
    t = tf.constant(array)
    again = tf.constant(array)
    array[0, 0] = 5
    assert t.numpy()[0, 0] == 1 and again.numpy()[0, 0] == 1
    assert tf.constant(array).numpy()[0, 0] == 5


def test_a_large_array_is_not_copied_twice_while_it_is_the_same():
    array = np.ones((3000, 8000), np.float32)
    first, second = tf.constant(array), tf.constant(array)
    assert np.shares_memory(np.asarray(first), np.asarray(second))
    array[-1, -1] = 2
    third = tf.constant(array)
    assert third.numpy()[-1, -1] == 2 and first.numpy()[-1, -1] == 1


def test_an_array_that_only_the_call_knows_is_taken_over():
    before = tf.get_budget().used
    t = tf.constant(np.zeros((1000, 1000), np.float32))
    assert tf.get_budget().used - before == 4_000_000 and t.shape == (1000, 1000)
    kept = np.zeros(8)
    view = kept[:]
    t = tf.constant(view)
    kept[:] = 1
    assert not t.numpy().any()


def test_numpy_gives_memory_of_the_callers_own_and_asarray_a_view():
    t = tf.constant(A)
    copy = t.numpy()
    copy[:] = 0
    np.testing.assert_array_equal(t, A)
    assert not np.asarray(t).flags.writeable
    assert np.shares_memory(np.asarray(t), np.asarray(t))


def test_a_transpose_is_a_view():
    t = tf.constant(A)
    before = tf.get_budget().used
    turned = tf.transpose(t)
    assert np.shares_memory(np.asarray(t), np.asarray(turned)) and tf.get_budget().used == before
    np.testing.assert_allclose(tf.matmul(t, turned), A @ A.T, rtol=1e-5)


def test_python_numbers_take_the_type_of_the_tensor():
    assert (tf.constant([1, 2]) + 1).dtype == tf.int32
    assert (tf.constant([1.0]) * 2).dtype == tf.float32
    assert (2 - tf.constant([1.0], tf.float64)).dtype == tf.float64
    assert (tf.constant([4]) / 2).dtype == tf.float64
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"expected to be a int32 tensor but is a float tensor \[Op:AddV2\]"
    ):
        tf.constant([1]) + tf.constant([1.0])


@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "float64", "int8", "int32", "int64", "uint8", "complex64", "bool"]
)
def test_each_type_is_its_numpy_type(dtype):
    kind = tf.as_dtype(dtype)
    assert kind == np.dtype(dtype) and kind == dtype and kind.as_numpy_dtype is np.dtype(dtype).type
    assert (
        getattr(tf, dtype) is kind and tf.as_dtype(np.dtype(dtype)) is kind and hash(kind) == hash(tf.as_dtype(dtype))
    )
    assert tf.zeros([2], kind).numpy().dtype == np.dtype(dtype)
    assert pickle.loads(pickle.dumps(kind)) is kind


@pytest.mark.parametrize("dtype", [tf.int32, tf.int64, tf.float32, tf.bool, tf.string])
def test_an_empty_list_is_of_any_type(dtype):
    assert tf.constant([], dtype).dtype == dtype and tf.constant([[], []], dtype).shape == (2, 0)
    assert tf.constant([]).dtype == tf.float32


def test_errors_name_the_op_and_the_shapes():
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"Incompatible shapes: \[10,10\] vs. \[20,20\] \[Op:AddV2\]"
    ):
        tf.add(np.ones((10, 10)), np.ones((20, 20)))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"In\[0\]: \[4,5\], In\[1\]: \[4,5\] \[Op:MatMul\]"):
        tf.matmul(A, B)
    with pytest.raises(tf.errors.InvalidArgumentError, match="12 values, but the requested shape has 10"):
        tf.reshape(tf.zeros([3, 4]), [2, 5])


def test_a_product_that_cannot_be_is_refused_before_anything_is_read():
    """Large operands: the error is the shapes', not the memory's."""
    a = np.broadcast_to(np.float32(0), (10_000, 10_000, 3))
    tensor = tf.Tensor(tf.float32, a.shape, a)
    with pytest.raises(tf.errors.InvalidArgumentError, match="the inner sizes are 3 and 10000"):
        tf.matmul(tensor, tensor)


def test_what_is_missing_says_what_this_is():
    with pytest.raises(AttributeError, match="leadline.tf has no 'GradientTape'.*real TensorFlow has the rest"):
        tf.GradientTape  # noqa: B018


def test_large_products_and_convolutions_agree_with_numpy():
    """Large enough for the engine."""
    a, b = RNG.standard_normal((200, 300)).astype(np.float32), RNG.standard_normal((300, 150)).astype(np.float32)
    for left, right in ((a, b), (a.T.copy().T, b), (a, b.T.copy().T)):
        np.testing.assert_allclose(tf.matmul(left, right), a @ b, rtol=1e-4, atol=1e-4)
    image, kernel = (
        RNG.standard_normal((1, 40, 40, 8)).astype(np.float32),
        RNG.standard_normal((3, 3, 8, 16)).astype(np.float32),
    )
    single = tf.nn.conv2d(image, kernel, 2, "SAME")
    double = tf.nn.conv2d(image.astype(np.float64), kernel.astype(np.float64), 2, "SAME")
    np.testing.assert_allclose(single, double, rtol=1e-4, atol=1e-4)


def test_random_numbers_have_their_distribution_and_repeat_for_a_seed():
    tf.random.set_seed(11)
    first = tf.random.normal([200, 200], mean=3, stddev=2).numpy()
    assert abs(first.mean() - 3) < 0.05 and abs(first.std() - 2) < 0.05 and first.dtype == np.float32
    tf.random.set_seed(11)
    np.testing.assert_array_equal(tf.random.normal([200, 200], mean=3, stddev=2), first)
    u = tf.random.uniform([10_000], -1, 1).numpy()
    assert u.min() >= -1 and u.max() < 1 and abs(u.mean()) < 0.05
    k = tf.random.uniform([10_000], 0, 7, tf.int32).numpy()
    assert set(k.tolist()) == set(range(7))
    assert sorted(tf.random.shuffle(tf.range(50)).numpy().tolist()) == list(range(50))
    assert abs(tf.random.truncated_normal([10_000]).numpy()).max() <= 2


def test_variables_change_and_tensors_made_of_them_do_not():
    v = tf.Variable(A, name="weights")
    before = v.value()
    v.assign_add(B)
    np.testing.assert_array_equal(before, A)
    np.testing.assert_allclose(v, A + B)
    v.assign(A)
    v.assign_sub(tf.ones([4, 5]))
    np.testing.assert_allclose(v.numpy(), A - 1)
    assert v.name == "weights:0" and v.trainable and v.shape == (4, 5)
    np.testing.assert_allclose(v @ tf.transpose(v), (A - 1) @ (A - 1).T, rtol=1e-5)
    with pytest.raises(ValueError, match="Shape mismatch"):
        v.assign([1.0])
    with tf.name_scope("outer"), tf.name_scope("inner"):
        assert tf.Variable(1.0, name="v").name == "outer/inner/v:0"


def test_function_is_traced_once_for_each_signature_and_planned_whole():
    traces = []

    @tf.function
    def f(x, y=1.0):
        traces.append(x.shape)
        return {"sum": tf.reduce_sum(x * y), "x": x}

    for _ in range(3):
        np.testing.assert_allclose(f(tf.constant(A))["sum"], A.sum(), rtol=1e-5)
    f(tf.constant(A[:2]))
    f(tf.constant(A), 2.0)
    assert len(traces) == 3
    np.testing.assert_allclose(f(A, y=3.0)["sum"], A.sum() * 3, rtol=1e-4)


def test_function_that_needs_values_runs_eagerly():
    @tf.function
    def positive(x):
        return x if tf.reduce_sum(x) > 0 else -x

    assert positive(tf.constant([-1.0])).numpy() == [1.0] and positive(tf.constant([2.0])).numpy() == [2.0]


def test_function_reads_and_writes_variables_when_it_runs():
    v = tf.Variable(1.0)

    @tf.function
    def step(x):
        v.assign_add(x)
        return v * 2

    assert step(tf.constant(2.0)).numpy() == 6 and step(tf.constant(3.0)).numpy() == 12 and v.numpy() == 6
    concrete = step.get_concrete_function(tf.TensorSpec([], tf.float32))
    assert concrete.variables == [v] and concrete(tf.constant(1.0)).numpy() == 14


def test_methods_are_traced_for_each_object_and_go_with_it():
    class Scale(tf.Module):
        def __init__(self, factor):
            super().__init__()
            self.factor = tf.Variable(factor)

        @tf.function
        def __call__(self, x):
            return x * self.factor

    two, three = Scale(2.0), Scale(3.0)
    x = tf.constant(5.0)
    assert two(x).numpy() == 10 and three(x).numpy() == 15 and two(x).numpy() == 10
    assert two.__call__.get_concrete_function(tf.TensorSpec([])).variables == [two.factor]
    gone = weakref.ref(two)
    del two
    gc.collect()
    assert gone() is None


def test_module_finds_its_variables():
    class Layer(tf.Module):
        def __init__(self):
            super().__init__("layer")
            self.w = tf.Variable(A)
            self.parts = [tf.Variable(1.0, trainable=False)]

    class Net(tf.Module):
        def __init__(self):
            super().__init__()
            self.layer = Layer()

    net = Net()
    assert len(net.variables) == 2 and net.trainable_variables == (net.layer.w,) and net.submodules == (net.layer,)


def test_tensors_are_dict_keys_by_reference_only():
    t = tf.constant(1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(t)
    assert {t.ref(): 1}[t.ref()] == 1 and t.ref().deref() is t
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(tf.constant(A))), A)
