# SPDX-License-Identifier: Apache-2.0
"""SavedModels to .tflite: what TensorFlow computes, LiteRT and Leadline compute from the converted file."""

import subprocess

import keras_models
import numpy as np
import pytest
import tensorflow as tf
from keras_compare import assert_close, predict
from test_cli import PROGRAM

import leadline
from leadline import lite


@pytest.mark.parametrize("name", ["convnet", "mobilenet_v2", "nested"])
def test_exported_model_computes_what_keras_does(name, litert, tmp_path):
    model = keras_models.make(name)
    model.export(tmp_path / "model", verbose=False)
    content = lite.TFLiteConverter.from_saved_model(tmp_path / "model").convert()
    for batch in (1, 3):
        values = keras_models.example(model, batch)
        wanted = predict(model, values)
        for interpreter in (lite.Interpreter, litert):
            runner = interpreter(model_content=content).get_signature_runner("serving_default")
            names = list(runner.get_input_details())
            assert_close(list(runner(**dict(zip(names, values, strict=True))).values()), wanted)


def test_signatures_of_a_saved_model_keep_their_names(litert, tmp_path):
    class Module(tf.Module):
        def __init__(self):
            self.weights = tf.Variable(tf.random.stateless_normal([4, 3], [1, 2]))

        @tf.function(input_signature=[tf.TensorSpec([None, 4], name="rows")])
        def project(self, rows):
            return {"projected": tf.nn.relu(rows @ self.weights)}

        @tf.function(input_signature=[tf.TensorSpec([3], name="start"), tf.TensorSpec([], tf.int32, name="count")])
        def repeat(self, start, count):
            for _ in tf.range(count):
                start = tf.where(tf.reduce_sum(start) > 10.0, start - 1.0, start * 2.0)
            return {"end": start}

    module = Module()
    tf.saved_model.save(module, tmp_path, signatures={"project": module.project, "repeat": module.repeat})
    content = lite.TFLiteConverter.from_saved_model(tmp_path).convert()
    rows = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    start = np.array([1.0, 2.0, 3.0], np.float32)
    for interpreter_class in (lite.Interpreter, litert):
        interpreter = interpreter_class(model_content=content)
        projected = interpreter.get_signature_runner("project")(rows=rows)["projected"]
        assert_close([projected], [module.project(rows)["projected"].numpy()])
        end = interpreter.get_signature_runner("repeat")(start=start, count=np.int32(4))["end"]
        assert_close([end], [module.repeat(start, 4)["end"].numpy()])
    only = lite.TFLiteConverter.from_saved_model(tmp_path, signature_keys=["project"]).convert()
    assert list(lite.Interpreter(model_content=only).get_signature_list()) == ["project"]
    with pytest.raises(leadline.InvalidArgumentError):
        lite.TFLiteConverter.from_saved_model(tmp_path, signature_keys=["other"])


@pytest.mark.skipif(PROGRAM is None, reason="the leadline program is not built")
def test_program_converts_saved_models(tmp_path):
    module = tf.Module()
    module.call = tf.function(lambda x: tf.nn.softmax(x), input_signature=[tf.TensorSpec([2, 3], name="x")])
    tf.saved_model.save(module, tmp_path / "model", signatures=module.call)
    subprocess.run([PROGRAM, "convert", tmp_path / "model"], check=True, capture_output=True)
    assert leadline.Model.from_bytes((tmp_path / "model.tflite").read_bytes()).subgraph(0).nodes[0].op == "SOFTMAX"


def test_unsupported_op_is_named(tmp_path):
    module = tf.Module()
    module.call = tf.function(lambda x: tf.linalg.cholesky(x), input_signature=[tf.TensorSpec([2, 2], name="x")])
    tf.saved_model.save(module, tmp_path, signatures=module.call)
    with pytest.raises(leadline.UnsupportedError, match="Cholesky"):
        lite.TFLiteConverter.from_saved_model(tmp_path).convert()
