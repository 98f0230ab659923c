# SPDX-License-Identifier: Apache-2.0
"""SavedModels of other kinds: recurrent layers of both Keras packages, graphs of TensorFlow 1, several signatures that
share weights, tags."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import leadline
from leadline import lite

v1 = tf.compat.v1


def run(interpreter, content, values, key="serving_default"):
    runner = interpreter(model_content=content).get_signature_runner(key)
    details = runner.get_input_details()
    name = next(iter(details))
    return next(iter(runner(**{name: values.astype(details[name]["dtype"])}).values()))


RECURRENT = {
    "lstm": lambda layers: [layers.LSTM(5)],
    "gru_sequence": lambda layers: [layers.GRU(5, return_sequences=True), layers.Dense(2)],
    "simple": lambda layers: [layers.SimpleRNN(5, go_backwards=True)],
    "bidirectional": lambda layers: [
        layers.Bidirectional(layers.LSTM(3, return_sequences=True)),
        layers.Bidirectional(layers.GRU(3)),
    ],
    "cells": lambda layers: [layers.RNN([layers.LSTMCell(3), layers.GRUCell(4)])],
}


@pytest.mark.parametrize("package", [keras, tf_keras], ids=["keras", "tf_keras"])
@pytest.mark.parametrize("name", list(RECURRENT))
def test_recurrent_layers_run_with_any_batch(package, name, litert, tmp_path):
    model = package.Sequential([package.Input((None if name == "lstm" else 6, 4)), *RECURRENT[name](package.layers)])
    if package is keras:
        model.export(tmp_path, verbose=False)
    else:
        tf.saved_model.save(model, str(tmp_path))
    content = lite.TFLiteConverter.from_saved_model(tmp_path).convert()
    for batch in (1, 3):
        values = np.random.default_rng(batch).normal(size=(batch, 6, 4)).astype(np.float32)
        expected = np.asarray(model(values))
        for interpreter in (lite.Interpreter, litert):
            np.testing.assert_allclose(run(interpreter, content, values), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("package", [keras, tf_keras], ids=["keras", "tf_keras"])
def test_masked_steps_are_left_out(package, litert, tmp_path):
    layers = package.layers
    model = package.Sequential([package.Input((6,)), layers.Embedding(9, 4, mask_zero=True), layers.LSTM(5)])
    if package is keras:
        model.export(tmp_path, verbose=False)
    else:
        tf.saved_model.save(model, str(tmp_path))
    content = lite.TFLiteConverter.from_saved_model(tmp_path).convert()
    words = np.array([[1, 2, 3, 0, 0, 0], [4, 5, 6, 7, 8, 0]], np.float32)
    for interpreter in (lite.Interpreter, litert):
        np.testing.assert_allclose(run(interpreter, content, words), np.asarray(model(words)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("resource", [False, True])
def test_graph_of_tensorflow_1(resource, litert, tmp_path):
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 4], name="x")
        w = v1.get_variable("w", [4, 5], use_resource=resource)
        y = tf.nn.softmax(tf.matmul(x, w), name="y")
        session.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(session, str(tmp_path / "m"), {"x": x}, {"y": y})
        values = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
        expected = session.run(y, {x: values})
    content = lite.TFLiteConverter.from_saved_model(tmp_path / "m").convert()
    for interpreter in (lite.Interpreter, litert):
        np.testing.assert_allclose(run(interpreter, content, values), expected, rtol=1e-5, atol=1e-6)


def test_tags_choose_the_graph_and_control_flow_of_tensorflow_1_is_refused(tmp_path):
    v1.disable_control_flow_v2()
    try:
        with tf.Graph().as_default(), v1.Session() as session:
            x = v1.placeholder(tf.float32, [3], name="x")
            y = tf.cond(tf.reduce_sum(x) > 0, lambda: x * 2.0, lambda: x - 1.0)
            info = {"x": v1.saved_model.build_tensor_info(x)}
            outputs = {"plain": x * 3.0, "chosen": y}
            signatures = {
                key: v1.saved_model.build_signature_def(info, {"y": v1.saved_model.build_tensor_info(value)})
                for key, value in outputs.items()
            }
            builder = v1.saved_model.Builder(str(tmp_path / "m"))
            builder.add_meta_graph_and_variables(session, ["serve", "gpu"], signature_def_map=signatures)
            builder.save()
    finally:
        v1.enable_control_flow_v2()
    convert = lite.TFLiteConverter.from_saved_model
    with pytest.raises(leadline.InvalidArgumentError, match="gpu"):
        convert(tmp_path / "m")
    content = convert(tmp_path / "m", tags={"serve", "gpu"}, signature_keys=["plain"]).convert()
    values = np.array([1.0, 2.0, 3.0], np.float32)
    np.testing.assert_allclose(run(lite.Interpreter, content, values, "plain"), values * 3)
    with pytest.raises(leadline.UnsupportedError, match="control flow of TensorFlow 1"):
        convert(tmp_path / "m", tags={"serve", "gpu"}, signature_keys=["chosen"]).convert()


def test_signatures_share_weights(litert, tmp_path):
    class Module(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable(tf.random.stateless_normal([64, 64], [1, 2]))

        @tf.function(input_signature=[tf.TensorSpec([None, 64], name="x")])
        def once(self, x):
            return x @ self.w

        @tf.function(input_signature=[tf.TensorSpec([None, 64], name="x")])
        def twice(self, x):
            return tf.nn.relu(x @ self.w) @ self.w

    module = Module()
    tf.saved_model.save(module, str(tmp_path), signatures={"once": module.once, "twice": module.twice})
    content = lite.TFLiteConverter.from_saved_model(tmp_path).convert()
    assert len(content) < 1.5 * 64 * 64 * 4
    values = np.random.default_rng(0).normal(size=(2, 64)).astype(np.float32)
    for interpreter in (lite.Interpreter, litert):
        for key in ("once", "twice"):
            expected = getattr(module, key)(values).numpy()
            np.testing.assert_allclose(run(interpreter, content, values, key), expected, rtol=1e-4, atol=1e-3)


def test_an_int8_lstm_whose_cell_states_are_small(tmp_path):
    """The converter gives the cell state a scale below 2^-15, for which LiteRT's tanh has no form: it leaves what its
    workspace held where the result belongs, and every output saturates."""
    tf_keras.utils.set_random_seed(1)
    source = tf_keras.Input((5, 3), batch_size=1)
    model = tf_keras.Model(source, tf_keras.layers.LSTM(4, return_sequences=True)(source))
    function = tf.function(model).get_concrete_function(tf.TensorSpec((1, 5, 3), tf.float32, name="x"))
    tf.saved_model.save(model, str(tmp_path), signatures=function)
    samples = [np.random.default_rng(i).normal(0, 0.01, (1, 5, 3)).astype(np.float32) for i in range(20)]
    converter = tf.lite.TFLiteConverter.from_saved_model(str(tmp_path))
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.representative_dataset = lambda: ([sample] for sample in samples)
    interpreter = leadline.lite.Interpreter(model_content=converter.convert())
    interpreter.allocate_tensors()
    smallest = min(d["quantization"][0] for d in interpreter.get_tensor_details() if d["dtype"] is np.int16)
    assert smallest < 2**-15, "the model no longer shows it"
    for sample in samples[:5]:
        interpreter.reset_all_variables()
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], sample)
        interpreter.invoke()
        found = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
        expected = model(sample).numpy()
        assert np.abs(found - expected).max() < 0.15 * np.abs(expected).max()
