# SPDX-License-Identifier: Apache-2.0
"""Layers that only Keras 2 has or computes in its own way, and TensorFlow functions in functional models."""

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
tf_keras = pytest.importorskip("tf_keras", reason="tf_keras is not installed")

from leadline import lite  # noqa: E402

layers = tf_keras.layers
CASES = {
    "locally_connected_1d": (lambda x: layers.LocallyConnected1D(3, 2, strides=2)(x), (7, 4)),
    "locally_connected_2d": (lambda x: layers.LocallyConnected2D(3, (2, 3), activation="relu")(x), (5, 6, 2)),
    "thresholded_relu": (lambda x: layers.ThresholdedReLU(0.5)(x), (7, 4)),
    "hard_sigmoid": (lambda x: layers.Activation("hard_sigmoid")(x), (7, 4)),
    "lstm": (lambda x: layers.LSTM(3, recurrent_activation="hard_sigmoid")(x), (7, 4)),
    "rnn": (lambda x: layers.RNN([layers.LSTMCell(3), layers.GRUCell(2)], return_sequences=True)(x), (7, 4)),
    "conv_lstm": (lambda x: layers.ConvLSTM2D(3, 2, return_sequences=True)(x), (4, 5, 6, 2)),
    "masked": (lambda x: layers.LSTM(3)(layers.Masking()(layers.ReLU()(x))), (7, 1)),
    "masked_concat": (lambda x: layers.GRU(3)(layers.Concatenate()([layers.Masking()(layers.ReLU()(x)), x])), (7, 1)),
    "discretization": (lambda x: layers.Discretization([-1.0, 0.0, 1.0])(x), (7,)),
    "random_crop": (lambda x: layers.RandomCrop(4, 3)(x), (6, 6, 2)),
    "attention": (lambda x: layers.Attention()([x, x], use_causal_mask=True), (7, 4)),
    "heads": (lambda x: layers.MultiHeadAttention(2, 3)(x, x), (7, 4)),
    "operators": (lambda x: tf.reshape(x * 2.0 + 1.0, (-1, 28))[:, 3:9], (7, 4)),
    "computed_shape": (lambda x: tf.reshape(x, [tf.shape(x)[0], 28]), (7, 4)),
    "functions": (lambda x: tf.math.reduce_sum(tf.where(x > 0.0, tf.exp(x), -x), axis=-1, keepdims=True), (7, 4)),
}


@pytest.mark.parametrize("name", CASES)
def test_model_computes_what_keras_does(name):
    function, shape = CASES[name]
    tf_keras.backend.clear_session()
    inputs = tf_keras.Input(shape, name="x")
    model = tf_keras.Model(inputs, function(inputs))
    rng = np.random.default_rng(1)
    model.set_weights([rng.uniform(-0.5, 0.5, w.shape).astype(w.dtype) for w in model.get_weights()])
    content = lite.TFLiteConverter.from_keras_model(model).convert()
    for batch in (1, 3):
        values = rng.uniform(-2, 2, (batch, *shape)).astype(np.float32)
        wanted = np.asarray(model(values, training=False))
        for interpreter in (lite.Interpreter, tf.lite.Interpreter):
            runner = interpreter(model_content=content).get_signature_runner("serving_default")
            (ours,) = runner(x=values).values()
            assert ours.shape == wanted.shape
            np.testing.assert_allclose(ours, wanted, atol=1e-4 * max(float(np.ptp(wanted)), 1e-6), rtol=0)
