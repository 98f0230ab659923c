# SPDX-License-Identifier: Apache-2.0
"""SavedModels with changed bytes: an error or a conversion, never anything else. LEADLINE_LONG=1 tries thousands."""

import os
import shutil
import time

import keras_models
import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import leadline
from leadline import lite

ROUNDS = 3000 if os.environ.get("LEADLINE_LONG") else 60


def convnet(path):
    keras_models.make("convnet").export(path, verbose=False)


def recurrent(path):
    layers = tf_keras.layers
    model = tf_keras.Sequential([tf_keras.Input((6, 4)), layers.GRU(3, return_sequences=True), layers.LSTM(2)])
    tf.saved_model.save(model, str(path))


def branches(path):
    module = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([None, 4], name="x")])
    def call(x):
        y = tf.map_fn(lambda row: row * 2.0, x)
        y = tf.einsum("ij,kj,kl->il", y, tf.ones([3, 4]), tf.ones([3, 5]))
        return tf.switch_case(tf.shape(x)[0], [lambda: y, lambda: y + 1.0, lambda: tf.nn.softmax(y)])

    module.call = call
    tf.saved_model.save(module, str(path), signatures=call)


def mutate(content, rng):
    data = bytearray(content)
    kind = rng.integers(4)
    at = int(rng.integers(len(data)))
    if kind == 0:
        for _ in range(int(rng.integers(1, 8))):
            data[int(rng.integers(len(data)))] = int(rng.integers(256))
    elif kind == 1:
        del data[at : at + int(rng.integers(1, 64))]
    elif kind == 2:
        other = int(rng.integers(len(data)))
        data[at : at + 16] = data[other : other + 16]
    else:
        data[at] ^= 1 << int(rng.integers(8))
    return bytes(data)


@pytest.mark.parametrize("make", [convnet, recurrent, branches])
def test_changed_bytes_give_errors_or_models(make, tmp_path):
    make(tmp_path / "model")
    whole = (tmp_path / "model" / "saved_model.pb").read_bytes()
    shutil.copytree(tmp_path / "model", tmp_path / "changed")
    rng = np.random.default_rng(5)
    outcomes = {"error": 0, "model": 0}
    slowest = 0.0
    for _ in range(ROUNDS):
        (tmp_path / "changed" / "saved_model.pb").write_bytes(mutate(whole, rng))
        start = time.monotonic()
        try:
            lite.TFLiteConverter.from_saved_model(tmp_path / "changed").convert()
            outcomes["model"] += 1
        except leadline.Error:
            outcomes["error"] += 1
        slowest = max(slowest, time.monotonic() - start)
    assert outcomes["error"] > 0 and outcomes["model"] > 0, outcomes
    assert slowest < 20, f"a conversion took {slowest:.1f} s"
