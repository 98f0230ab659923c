# SPDX-License-Identifier: Apache-2.0
"""Graphs and sessions of leadline.tf."""

import numpy as np
import pytest

from leadline import tf

v1 = tf.compat.v1
A = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.fixture
def graph():
    graph = tf.Graph()
    with graph.as_default():
        yield graph


def test_fetches_have_the_structure_that_was_asked_for(graph):
    x = tf.constant(A, name="x")
    y = tf.reduce_sum(x, 1, name="y")
    with v1.Session() as sess:
        np.testing.assert_array_equal(sess.run(y), A.sum(1))
        one, (two, three) = sess.run([x, (y, "y:0")])
        np.testing.assert_array_equal(one, A)
        np.testing.assert_array_equal(two, three)
        found = sess.run({"a": x, "b": {"c": [y, y.op]}})
        assert found["b"]["c"][1] is None
        np.testing.assert_array_equal(found["b"]["c"][0], A.sum(1))
    assert graph.get_tensor_by_name("y:0") is y and y.op.type == "Sum" and y.graph is graph


def test_results_are_the_callers_to_change(graph):
    x = tf.constant(A)
    y = x + 0
    with v1.Session() as sess:
        for tensor in (x, y, tf.transpose(x)):
            sess.run(tensor)[:] = 0
        a, b = sess.run([y, tf.identity(y)])
        a[:] = 0
        np.testing.assert_array_equal(b, A)
        np.testing.assert_array_equal(sess.run(x), A)


@pytest.mark.parametrize(
    "part",
    [
        lambda x: tf.split(x, 2)[0],
        lambda x: tf.einsum("ij->ji", x),
        lambda x: tf.linalg.band_part(x, -1, -1),
        lambda x: tf.linalg.diag_part(x[:1]),
        lambda x: tf.reduce_max(x, []),
        lambda x: tf.repeat(x, 1, axis=0),
        lambda x: tf.transpose(x)[:2],
        lambda x: tf.math.real(tf.complex(x, x)),
    ],
)
def test_what_overwrites_its_operand_overwrites_nothing_else(graph, part):
    """The sum may take the memory of its operand; the tensor that the operand came from is still needed."""
    source = v1.placeholder(tf.float32, [4, 4])
    x = source * 2.0
    y = part(x) + 1.0
    with v1.Session() as sess:
        value = np.arange(16, dtype=np.float32).reshape(4, 4)
        first, second = sess.run([y * 1.0, x - 0.0], {source: value})
    np.testing.assert_array_equal(second, value * 2)
    with tf.init_scope():
        np.testing.assert_allclose(first, part(tf.constant(value * 2)).numpy() + 1)


def test_placeholders_are_fed_and_checked(graph):
    x = v1.placeholder(tf.float32, [None, 4], name="x")
    y = tf.matmul(x, x, transpose_b=True)
    assert x.shape.as_list() == [None, 4] and y.shape.as_list() == [None, None]
    with v1.Session() as sess:
        np.testing.assert_array_equal(sess.run(y, {x: A}), A @ A.T)
        assert sess.run(y, {"x:0": A[:1]}).shape == (1, 1)
        with pytest.raises(ValueError, match=r"Cannot feed value of shape \(12,\) for Tensor x:0"):
            sess.run(y, {x: A.reshape(-1)})
        with pytest.raises(tf.errors.InvalidArgumentError, match="must feed a value for placeholder tensor 'x'"):
            sess.run(y)
        np.testing.assert_array_equal(sess.run(y * 2, {y: np.ones((2, 2))}), np.full((2, 2), 2))


def test_shapes_that_depend_on_what_is_fed_are_known_when_it_runs(graph):
    x = v1.placeholder(tf.float32, [None, None])
    flat = tf.reshape(x, [tf.shape(x)[0] * tf.shape(x)[1]])
    padded = tf.zeros([tf.shape(x)[1], 2])
    with v1.Session() as sess:
        a, b = sess.run([flat, padded], {x: A})
        assert a.shape == (12,) and b.shape == (4, 2)


def test_an_error_in_a_shape_comes_while_the_graph_is_made(graph):
    with pytest.raises(
        ValueError, match="Dimensions must be equal, but are 2 and 3 for '{{node Add}} = AddV2'.*input shapes"
    ):
        tf.add(tf.ones([2]), tf.ones([3]))
    with pytest.raises(TypeError):
        tf.add(tf.ones([2]), tf.ones([2], tf.int32))
    with pytest.raises(TypeError, match="as a Python `bool` is not allowed"):
        if tf.constant(1.0) > 0:
            pass


def test_an_error_in_a_run_names_the_node_and_the_line(graph):
    x = v1.placeholder(tf.int32, [])
    with (
        v1.Session() as sess,
        pytest.raises(tf.errors.InvalidArgumentError, match=r"Integer division by zero.*test_tf_graphs.py:\d+"),
    ):
        sess.run(7 // x, {x: 0})


def test_a_closed_session_is_an_error(graph):
    sess = v1.Session()
    x = tf.constant(1.0)
    sess.close()
    with pytest.raises(RuntimeError, match="closed Session"):
        sess.run(x)


def test_run_of_an_eager_tensor_gives_its_value():
    x = tf.constant(A)
    with v1.Session() as sess:
        np.testing.assert_array_equal(sess.run(x), A)
        assert sess.run(tf.constant(3)) == 3


def test_ops_inside_a_session_are_of_its_graph():
    with v1.Session() as sess:
        y = tf.constant(2.0) * 3
        assert not tf.executing_eagerly() and y.graph is sess.graph
        assert sess.run(y) == 6 and y.eval() == 6
    assert tf.executing_eagerly()
    with pytest.raises(TypeError, match="out of scope"):
        y + 1


def test_variables_have_a_value_in_each_session(graph):
    v = tf.Variable(tf.ones([2]), name="v")
    with v1.variable_scope("layer"):
        w = v1.get_variable("w", [2, 3])
    with v1.variable_scope("layer", reuse=True):
        assert v1.get_variable("w") is w
    with v1.variable_scope("layer"), pytest.raises(ValueError, match="already exists"):
        v1.get_variable("w", [2, 3])
    step = v.assign_add([1.0, 2.0])
    assert w.name == "layer/w:0" and v1.global_variables() == [v, w]
    with v1.Session() as first:
        with pytest.raises(tf.errors.FailedPreconditionError, match="has not been initialized"):
            first.run(v)
        first.run(v1.global_variables_initializer())
        first.run(step)
        first.run(step)
        np.testing.assert_array_equal(first.run(v), [3, 5])
        assert np.abs(first.run(w)).max() <= np.sqrt(6 / 5)
        second = v1.Session()
        second.run(v.initializer)
        np.testing.assert_array_equal(second.run(v), [1, 1])


def test_names_are_scoped_and_unique(graph):
    a = tf.constant(1.0)
    with tf.name_scope("s") as scope:
        b = a + 1
        c = tf.add(a, b, name="c")
    with tf.name_scope("s"):
        d = a + 2
    assert (a.name, scope, b.name, c.name, d.name) == ("Const:0", "s/", "s/add:0", "s/c:0", "s_1/add:0")
    with pytest.raises(ValueError, match="is not a valid scope name"):
        tf.name_scope("bad name").__enter__()
    with pytest.raises(KeyError, match="refers to an Operation not in the graph"):
        graph.get_operation_by_name("nothing")


def test_graphs_do_not_mix(graph):
    x = tf.constant(1.0)
    with tf.Graph().as_default(), pytest.raises(ValueError, match="is not of the graph that is being made"):
        tf.add(x, 1.0)
    with v1.Session(graph=tf.Graph()) as sess, pytest.raises(ValueError, match="not an element of this graph"):
        sess.run(x)


def test_control_dependencies_run_first(graph):
    v = tf.Variable(1.0)
    with graph.control_dependencies([v.assign_add(1.0)]):
        y = tf.identity(v.value())
    with v1.Session() as sess:
        sess.run(v1.global_variables_initializer())
        assert sess.run(y) == 2 and sess.run(y) == 3


def test_reset_default_graph_forgets():
    v1.disable_eager_execution()
    try:
        v1.reset_default_graph()
        tf.constant(1.0, name="only")
        assert [op.name for op in v1.get_default_graph().get_operations()] == ["only"]
        v1.reset_default_graph()
        assert not v1.get_default_graph().get_operations()
    finally:
        v1.enable_eager_execution()


def test_a_network_runs_as_one_model_of_the_engine(graph):
    from leadline.tf import engine

    rng = np.random.default_rng(0)
    image = rng.standard_normal((2, 32, 32, 8)).astype(np.float32)
    kernel = rng.standard_normal((3, 3, 8, 16)).astype(np.float32)
    x = v1.placeholder(tf.float32, [None, 32, 32, 8])
    y = tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME") + 0.5)
    y = tf.reduce_mean(tf.nn.max_pool2d(y, 2, 2, "VALID"), [1, 2])
    engine.clear()
    with v1.Session() as sess:
        found = sess.run(y, {x: image})
        assert [key[0] for key in engine._kept] == ["group"]
    with tf.init_scope():
        z = tf.nn.relu(tf.nn.conv2d(image.astype(np.float64), kernel.astype(np.float64), 1, "SAME") + 0.5)
        z = tf.reduce_mean(tf.nn.max_pool2d(z, 2, 2, "VALID"), [1, 2])
    np.testing.assert_allclose(found, z, rtol=1e-3, atol=1e-4)


def test_devices_that_are_missing_become_the_cpu_with_one_warning(graph):
    tf.config.set_soft_device_placement(True)
    with pytest.warns(RuntimeWarning, match="CPU:0"), tf.device("/GPU:7"):
        x = tf.constant(1.0)
    assert x.device.endswith("CPU:0")
    tf.config.set_soft_device_placement(False)
    try:
        with pytest.raises(tf.errors.InvalidArgumentError, match="GPU:7"), tf.device("/GPU:7"):
            pass
    finally:
        tf.config.set_soft_device_placement(True)
    with tf.device("/job:localhost/replica:0/task:0/device:CPU:0"):
        assert tf.constant(1.0).device == "/device:CPU:0"


def test_config_lists_and_hides_devices():
    cpus = tf.config.list_physical_devices("CPU")
    assert [d.name for d in cpus] == ["/physical_device:CPU:0"]
    assert tf.config.list_logical_devices("CPU")[0].name == "/device:CPU:0"
    tf.config.set_visible_devices([], "GPU")
    assert tf.config.get_visible_devices("GPU") == []
    with pytest.raises(ValueError, match="Unrecognized device"):
        tf.config.set_visible_devices(type(cpus[0])("/physical_device:GPU:9", "GPU"))


def test_programs_that_look_for_a_gpu_are_told_there_is_none(capsys):
    assert not tf.test.is_gpu_available() and tf.test.gpu_device_name() == "" and not tf.test.is_built_with_cuda()
    tf.get_logger().setLevel("ERROR")
    tf.debugging.set_log_device_placement(True)
    try:
        tf.constant([1.0]) + 1.0
    finally:
        tf.debugging.set_log_device_placement(False)
    assert "Executing op AddV2 in device" in capsys.readouterr().err
