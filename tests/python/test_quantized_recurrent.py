# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers as integers: LSTM as the fused op, others as a WHILE whose body computes with integers."""

import numpy as np
import pytest

keras = pytest.importorskip("keras", reason="keras is not installed")

from ai_edge_litert.interpreter import Interpreter as LiteRtInterpreter  # noqa: E402

import leadline  # noqa: E402

layers = keras.layers

# The layers, and how far int8 results may be from float ones; values are within [-1, 1] but for "relu".
CASES = {
    "lstm": (lambda x: layers.LSTM(12)(x), 0.05),
    "lstm_sequence": (lambda x: layers.LSTM(12, return_sequences=True)(x), 0.05),
    "stacked": (lambda x: layers.LSTM(6)(layers.LSTM(12, return_sequences=True)(x)), 0.05),
    "bidirectional": (lambda x: layers.Bidirectional(layers.LSTM(6, return_sequences=True))(x), 0.05),
    "gru": (lambda x: layers.GRU(12)(x), 0.1),
    "gru_sequence": (lambda x: layers.GRU(12, return_sequences=True)(x), 0.1),
    "simple": (lambda x: layers.SimpleRNN(8)(x), 0.2),
    "lstm_states": (lambda x: layers.Concatenate()(layers.LSTM(5, return_state=True)(x)), 0.2),
}


@pytest.fixture(scope="module")
def float_models(tmp_path_factory):
    """Paths of converted models, by name."""
    folder = tmp_path_factory.mktemp("recurrent")
    rng = np.random.default_rng(0)
    paths = {}
    for name, (make, _) in CASES.items():
        source = keras.Input((9, 5))
        model = keras.Model(source, make(source))
        for weight in model.weights:
            weight.assign(rng.normal(scale=0.4, size=weight.shape).astype(np.float32))
        model.save(folder / f"{name}.keras")
        paths[name] = str(folder / f"{name}.tflite")
        leadline.convert(str(folder / f"{name}.keras"), paths[name])
    return paths


def _samples(count):
    rng = np.random.default_rng(1)
    return [rng.normal(size=(1, 9, 5)).astype(np.float32) for _ in range(count)]


def _second_run(interpreter, data):
    index = interpreter.get_input_details()[0]["index"]
    interpreter.resize_tensor_input(index, data.shape)
    interpreter.allocate_tensors()
    for _ in range(2):
        interpreter.set_tensor(index, data)
        interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).copy()


def _quantized(path, mode):
    kind = "int16" if mode == "int16x8" else "int8"
    samples = [[sample] for sample in _samples(30)]
    return leadline.quantize(path, mode, samples, input_type=kind, output_type=kind)


@pytest.mark.parametrize("mode", ["int8", "int16x8"])
@pytest.mark.parametrize("name", CASES)
def test_integers_are_those_of_litert_and_near_the_floats(name, mode, float_models):
    quantized = _quantized(float_models[name], mode)
    data = np.concatenate(_samples(3))
    expected = _second_run(LiteRtInterpreter(float_models[name]), data)
    ours = leadline.lite.Interpreter(model_content=quantized)
    scale, zero_point = ours.get_input_details()[0]["quantization"]
    dtype = ours.get_input_details()[0]["dtype"]
    limits = np.iinfo(dtype)
    integers = np.clip(np.round(data / scale) + zero_point, limits.min, limits.max).astype(dtype)
    result = _second_run(ours, integers)
    np.testing.assert_array_equal(result, _second_run(LiteRtInterpreter(model_content=quantized), integers))
    scale, zero_point = ours.get_output_details()[0]["quantization"]
    np.testing.assert_allclose((result.astype(float) - zero_point) * scale, expected, rtol=0, atol=CASES[name][1])


@pytest.mark.parametrize("name", ["lstm", "stacked", "bidirectional", "gru"])
def test_no_weights_stay_float(name, float_models):
    model = leadline.Model.from_bytes(_quantized(float_models[name], "int8"))
    tensors = [t for s in range(model.subgraph_count) for t in model.subgraph(s).tensors]
    weights = [t for t in tensors if t.constant and len(t.shape) == 2]
    assert weights
    assert {t.dtype for t in weights} == {leadline.DType.INT8}


@pytest.mark.parametrize("mode", ["int8", "int16x8"])
def test_what_a_loop_carries_has_one_scale(mode, float_models):
    model = leadline.Model.from_bytes(_quantized(float_models["gru_sequence"], mode))
    around, *called = [model.subgraph(s) for s in range(model.subgraph_count)]
    (loop,) = [node for node in around.nodes if node.op == "WHILE"]
    carried = [around.tensors[v] for v in loop.inputs]
    assert sum(bool(t.scales) for t in carried) == 3  # the input's share, the sequence and the state
    (body,) = [s for s in called if len(s.outputs) == len(carried)]
    others = [around.tensors[v] for v in loop.outputs]
    for subgraph in called:
        others += [subgraph.tensors[v] for v in subgraph.inputs]
    others += [body.tensors[v] for v in body.outputs]
    for i, tensor in enumerate(others):
        expected = carried[i % len(carried)]
        assert (tensor.dtype, tensor.scales, tensor.zero_points) == (
            expected.dtype,
            expected.scales,
            expected.zero_points,
        )
