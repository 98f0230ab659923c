# SPDX-License-Identifier: Apache-2.0
"""Models that change variables: converted as VAR_HANDLE, READ_VARIABLE and ASSIGN_VARIABLE, with the saved values."""

import numpy as np
import pytest
import tensorflow as tf

import leadline
from leadline import lite

X = tf.TensorSpec([2], tf.float32, name="x")


class Sums(tf.Module):
    """Adds up what it is given."""

    def __init__(self):
        super().__init__()
        self.total = tf.Variable([10.0, 20.0])
        self.count = tf.Variable(0)
        self.unread = tf.Variable(0)

    @tf.function(input_signature=[X])
    def add(self, x):
        self.count.assign_add(1)
        self.unread.assign_add(1)
        return {"total": self.total.assign_add(x), "count": self.count.read_value()}

    @tf.function(input_signature=[X])
    def before_and_after(self, x):
        before = self.total.read_value()
        self.total.assign(before * x)
        return {"before": before, "after": self.total.read_value() - 1.0}

    @tf.function(input_signature=[X])
    def take_away(self, x):
        return {"total": self.total.assign_sub(x)}

    @tf.function(input_signature=[])
    def get(self):
        return {"total": tf.identity(self.total)}


def steps(runner_of, module, keys, values):
    """What a model and the module it came from give, call by call."""
    for key, value in zip(keys, values, strict=True):
        arguments = {} if key == "get" else {"x": value}
        yield runner_of(key)(**arguments), getattr(module, key)(**arguments)


@pytest.mark.parametrize("peer", [False, True], ids=["leadline", "litert"])
def test_signatures_share_variables_that_start_as_saved(peer, litert, tmp_path):
    module = Sums()
    keys = ["add", "before_and_after", "take_away", "get"]
    tf.saved_model.save(module, str(tmp_path), signatures={key: getattr(module, key) for key in keys})
    content = lite.TFLiteConverter.from_saved_model(tmp_path).convert()
    interpreter = (litert if peer else lite.Interpreter)(model_content=content)
    runners = {key: interpreter.get_signature_runner(key) for key in keys}
    calls = ["get", "add", "add", "before_and_after", "get", "take_away", "before_and_after", "get"]
    numbers = np.random.default_rng(1).normal(size=(len(calls), 2)).astype(np.float32)
    for got, expected in steps(runners.__getitem__, module, calls, numbers):
        assert sorted(got) == sorted(expected)
        for name, value in expected.items():
            np.testing.assert_allclose(got[name], value, rtol=1e-6)


def test_what_nothing_reads_is_left_out(tmp_path):
    module = Sums()
    tf.saved_model.save(module, str(tmp_path), signatures={"add": module.add})
    model = leadline.Model.from_bytes(lite.TFLiteConverter.from_saved_model(tmp_path).convert())
    ops = [node.op for node in model.subgraph(0).nodes]
    assert ops.count("ASSIGN_VARIABLE") == 2  # total and count
    assert "CALL_ONCE" in ops
    initial = [node.op for node in model.subgraph(1).nodes]
    assert sorted(initial) == ["ASSIGN_VARIABLE", "ASSIGN_VARIABLE", "VAR_HANDLE", "VAR_HANDLE"]


class Branches(tf.Module):
    """Changes variables in control flow, and one by way of another."""

    def __init__(self):
        super().__init__()
        self.step = tf.Variable(1.0)
        self.level = tf.Variable(0.0)

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32, name="x")])
    def __call__(self, x):
        if x > 0.0:
            self.step.assign_add(x)
        else:
            self.step.assign(1.0)
        for _ in tf.range(3):
            self.level.assign_add(self.step)
        return {"level": self.level.read_value(), "gathered": tf.gather(self.level[None], [0, 0])}


@pytest.mark.parametrize("peer", [False, True], ids=["leadline", "litert"])
def test_state_that_changes_in_control_flow(peer, litert):
    module = Branches()
    function = module.__call__.get_concrete_function()
    content = lite.TFLiteConverter.from_concrete_functions([function], module).convert()
    runner = (litert if peer else lite.Interpreter)(model_content=content).get_signature_runner()
    for x in (2.0, 0.5, -1.0, 3.0):
        got, expected = runner(x=np.float32(x)), module(tf.constant(x))
        for name in expected:
            np.testing.assert_allclose(got[name], expected[name], rtol=1e-6)


def test_a_new_interpreter_starts_again(tmp_path):
    module = Sums()
    tf.saved_model.save(module, str(tmp_path), signatures={"add": module.add})
    content = lite.TFLiteConverter.from_saved_model(tmp_path).convert()
    for _ in range(2):
        runner = lite.Interpreter(model_content=content).get_signature_runner("add")
        np.testing.assert_array_equal(runner(x=np.ones(2, np.float32))["total"], [11, 21])
        np.testing.assert_array_equal(runner(x=np.ones(2, np.float32))["total"], [12, 22])


def test_other_ways_to_change_a_variable_are_named(tmp_path):
    class Scatters(tf.Module):
        def __init__(self):
            super().__init__()
            self.table = tf.Variable(tf.zeros([4, 2]))

        @tf.function(input_signature=[X])
        def __call__(self, x):
            self.table.scatter_max(tf.IndexedSlices([x], [1]))
            return self.table.read_value()

    module = Scatters()
    tf.saved_model.save(module, str(tmp_path))
    with pytest.raises(leadline.UnsupportedError, match="ResourceScatterMax.*changes variable.*use assign"):
        lite.TFLiteConverter.from_saved_model(tmp_path).convert()


def test_models_with_state_are_quantized_around_it(tmp_path):
    class Smooths(tf.Module):
        def __init__(self):
            super().__init__()
            self.weights = tf.random.stateless_normal([64, 64], [3, 4])
            self.mean = tf.Variable(tf.zeros([1, 64]))

        @tf.function(input_signature=[tf.TensorSpec([1, 64], tf.float32, name="x")])
        def __call__(self, x):
            self.mean.assign(0.5 * self.mean + 0.5 * tf.nn.relu(x @ self.weights))
            return self.mean.read_value()

    module = Smooths()
    tf.saved_model.save(module, str(tmp_path))
    samples = np.random.default_rng(2).normal(size=(20, 1, 64)).astype(np.float32)
    converter = lite.TFLiteConverter.from_saved_model(tmp_path)
    converter.optimizations = [lite.Optimize.DEFAULT]
    for dataset in (None, lambda: ([sample] for sample in samples)):
        converter.representative_dataset = dataset
        runner = lite.Interpreter(model_content=converter.convert()).get_signature_runner()
        module.mean.assign(tf.zeros([1, 64]))
        for sample in samples[:5]:
            (got,), expected = runner(x=sample).values(), module(tf.constant(sample)).numpy()
            assert np.abs(got - expected).max() < 0.05 * np.abs(expected).max()


class Rows(tf.Module):
    """A table whose rows are written, added to and taken from by their numbers."""

    def __init__(self):
        super().__init__()
        self.table = tf.Variable(tf.reshape(tf.range(12.0), [4, 3]))

    def change(self, how, rows, values):
        if how.startswith("scatter_nd"):
            getattr(self.table, how)(rows[:, tf.newaxis], values)
        else:
            getattr(self.table, how)(tf.IndexedSlices(values, rows))
        return {"table": self.table.read_value()}


@pytest.mark.parametrize("peer", [False, True], ids=["leadline", "litert"])
@pytest.mark.parametrize("dtype", [tf.int32, tf.int64], ids=["int32", "int64"])
@pytest.mark.parametrize("how", [f"scatter_{nd}{what}" for nd in ("", "nd_") for what in ("update", "add", "sub")])
def test_rows_of_variables_are_written_by_their_numbers(how, dtype, peer, litert, tmp_path):
    module = Rows()
    signature = [tf.TensorSpec([None], dtype, "rows"), tf.TensorSpec([None, 3], tf.float32, "values")]
    module.function = tf.function(lambda rows, values: module.change(how, rows, values), input_signature=signature)
    tf.saved_model.save(module, str(tmp_path), {"serving_default": module.function})
    content = lite.TFLiteConverter.from_saved_model(tmp_path).convert()
    runner = (litert if peer else lite.Interpreter)(model_content=content).get_signature_runner()
    for rows in ([2, 0], [3], [1, 2, 3]):
        values = np.random.default_rng(len(rows)).normal(size=(len(rows), 3)).astype(np.float32)
        given = np.array(rows, dtype.as_numpy_dtype)
        expected = module.function(tf.constant(given), tf.constant(values))["table"]
        np.testing.assert_array_equal(runner(rows=given, values=values)["table"], expected)


class Kept(tf.Module):
    """Writes what it is given into slices of what it keeps."""

    def __init__(self):
        super().__init__()
        self.rows = tf.Variable(tf.reshape(tf.range(40.0), [1, 8, 5]))

    @tf.function(input_signature=[tf.TensorSpec([None, 5], name="x"), tf.TensorSpec([], tf.int32, name="at")])
    def from_place(self, x, at):
        self.rows[0, at : at + tf.shape(x)[0]].assign(x)
        return {"rows": self.rows.read_value()}

    @tf.function(input_signature=[tf.TensorSpec([None, 5], name="x"), tf.TensorSpec([], tf.int32, name="at")])
    def one_element(self, x, at):
        self.rows[:, at, -1].assign(x[0, :1])
        return {"rows": self.rows.read_value()}

    @tf.function(input_signature=[tf.TensorSpec([None, 5], name="x"), tf.TensorSpec([], tf.int32, name="at")])
    def every_other(self, x, at):
        self.rows[..., ::-2].assign(tf.repeat(x[:1, tf.newaxis, :3], 8, axis=1) + tf.cast(at, tf.float32))
        update = tf.raw_ops.TensorStridedSliceUpdate
        copy = update(input=x, begin=[0, 1], end=[1, 3], strides=[1, 1], value=[[7.0, 8.0]])
        return {"rows": self.rows.read_value(), "copy": copy}


@pytest.mark.parametrize("peer", [False, True], ids=["leadline", "litert"])
def test_slices_of_variables_are_assigned(peer, litert, tmp_path):
    module = Kept()
    keys = ["from_place", "one_element", "every_other"]
    tf.saved_model.save(module, str(tmp_path), signatures={key: getattr(module, key) for key in keys})
    content = lite.TFLiteConverter.from_saved_model(tmp_path).convert()
    interpreter = (litert if peer else lite.Interpreter)(model_content=content)
    for step, (key, rows, at) in enumerate([(k, rows, at) for rows, at in ((1, 0), (3, 2), (2, 6)) for k in keys]):
        x = np.random.default_rng(step).normal(size=(rows, 5)).astype(np.float32)
        made = interpreter.get_signature_runner(key)(x=x, at=np.int32(at))
        for name, wanted in getattr(module, key)(x, at).items():
            np.testing.assert_allclose(made[name], wanted.numpy(), err_msg=f"{key} {rows} {at} {name}")
