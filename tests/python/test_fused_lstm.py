# SPDX-License-Identifier: Apache-2.0
"""Keras's LSTM layers as the fused op: as Keras computes them, in every run, for any batch, here and in LiteRT."""

import numpy as np
import pytest

keras = pytest.importorskip("keras", reason="keras is not installed")

from ai_edge_litert.interpreter import Interpreter as LiteRtInterpreter  # noqa: E402

import leadline  # noqa: E402

layers = keras.layers
FUSED = "UNIDIRECTIONAL_SEQUENCE_LSTM"

# How many fused ops the layer becomes.
CASES = {
    "last": (1, lambda x: layers.LSTM(6)(x)),
    "sequence": (1, lambda x: layers.LSTM(6, return_sequences=True)(x)),
    "backwards": (1, lambda x: layers.LSTM(6, go_backwards=True, return_sequences=True)(x)),
    "no_bias": (1, lambda x: layers.LSTM(6, use_bias=False)(x)),
    "stacked": (2, lambda x: layers.LSTM(4)(layers.LSTM(6, return_sequences=True)(x))),
    "bidirectional": (2, lambda x: layers.Bidirectional(layers.LSTM(5, return_sequences=True))(x)),
    "bidirectional_last": (2, lambda x: layers.Bidirectional(layers.LSTM(5))(x)),
    "cell": (1, lambda x: layers.RNN(layers.LSTMCell(4))(x)),
    "time_distributed": (1, lambda x: layers.TimeDistributed(layers.LSTM(3))(layers.Reshape((7, 5, 1))(x))),
    # What the op does not compute.
    "other_activation": (0, lambda x: layers.LSTM(4, activation="relu")(x)),
    "no_activation": (0, lambda x: layers.LSTM(4, activation=None)(x)),
    "other_gates": (0, lambda x: layers.LSTM(4, recurrent_activation="hard_sigmoid")(x)),
    "state": (0, lambda x: layers.LSTM(4, return_state=True)(x)[2]),
    "masked": (0, lambda x: layers.LSTM(4)(layers.Masking()(x))),
}


def _model(make):
    source = keras.Input((7, 5))
    model = keras.Model(source, make(source))
    rng = np.random.default_rng(0)
    for weight in model.weights:
        weight.assign(rng.normal(scale=0.6, size=weight.shape).astype(np.float32))
    return model


def _runs(interpreter, data):
    """The results of two runs, one after the other."""
    index = interpreter.get_input_details()[0]["index"]
    interpreter.resize_tensor_input(index, data.shape)
    interpreter.allocate_tensors()
    results = []
    for _ in range(2):
        interpreter.set_tensor(index, data)
        interpreter.invoke()
        results.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).copy())
    return results


@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_keras_in_every_run(name, tmp_path):
    fused, make = CASES[name]
    model = _model(make)
    model.save(tmp_path / "model.keras")
    path = str(tmp_path / "model.tflite")
    leadline.convert(str(tmp_path / "model.keras"), path)
    ops = [details["op_name"] for details in leadline.lite.Interpreter(path)._get_ops_details()]
    assert ops.count(FUSED) == fused
    assert ops.count("WHILE") == (0 if fused else 1)
    for batch in (1, 3):
        data = np.random.default_rng(batch).normal(size=(batch, 7, 5)).astype(np.float32)
        expected = np.asarray(model(data))
        for interpreter in (leadline.lite.Interpreter(path), LiteRtInterpreter(path)):
            for result in _runs(interpreter, data):
                np.testing.assert_allclose(result, expected, rtol=0, atol=1e-5)


def test_cell_states_are_not_clipped(tmp_path):
    """TensorFlow clips them at 10, Keras does not."""
    source = keras.Input((40, 1))
    model = keras.Model(source, layers.LSTM(2)(source))
    model.set_weights([np.full((1, 8), 9.0, "f"), np.zeros((2, 8), "f"), np.zeros(8, "f")])
    model.save(tmp_path / "model.keras")
    path = str(tmp_path / "model.tflite")
    leadline.convert(str(tmp_path / "model.keras"), path)
    data = np.ones((1, 40, 1), np.float32)
    data[:, 36:] = -0.02  # forgets half of it in each step
    np.testing.assert_allclose(_runs(LiteRtInterpreter(path), data)[0], np.asarray(model(data)), rtol=0, atol=1e-5)
