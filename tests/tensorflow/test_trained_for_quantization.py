# SPDX-License-Identifier: Apache-2.0
"""Models that were trained for quantization, with fake quantization nodes, beside TensorFlow's converter."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import leadline
from leadline import lite

LIMITS = {"input": (-1.0, 0.98), "conv": (0.0, 9.0), "mean": (0.0, 6.0), "logits": (-12.0, 11.0)}


def rounded(x, name: str):
    return tf.quantization.fake_quant_with_min_max_vars(x, *LIMITS[name])


class Net(tf.Module):
    """What quantization-aware training makes of a small convolutional net: ranges around weights and activations."""

    def __init__(self) -> None:
        super().__init__()
        numbers = np.random.default_rng(7)
        self.kernel = tf.Variable(numbers.normal(size=(3, 3, 3, 8)).astype(np.float32))
        self.bias = tf.Variable(numbers.normal(size=8).astype(np.float32))
        self.scale = tf.Variable(numbers.uniform(0.5, 1.5, size=8).astype(np.float32))
        self.dense = tf.Variable(numbers.normal(size=(8, 5)).astype(np.float32))

    @tf.function(input_signature=[tf.TensorSpec([1, 8, 8, 3], tf.float32)])
    def predict(self, x):
        ends = tf.reduce_max(tf.abs(self.kernel), axis=[0, 1, 2])
        kernel = tf.quantization.fake_quant_with_min_max_vars_per_channel(self.kernel, -ends, ends, narrow_range=True)
        y = tf.nn.conv2d(rounded(x, "input"), kernel, 1, "SAME") * self.scale + self.bias
        y = tf.nn.max_pool2d(rounded(tf.nn.relu(y), "conv"), 2, 2, "VALID")
        y = rounded(tf.reduce_mean(y, [1, 2]), "mean")
        end = tf.reduce_max(tf.abs(self.dense))
        dense = tf.quantization.fake_quant_with_min_max_vars(self.dense, -end, end, narrow_range=True)
        return tf.nn.softmax(rounded(tf.matmul(y, dense), "logits"))


def converters(net, function):
    return [kind.from_concrete_functions([function], net) for kind in (tf.lite.TFLiteConverter, lite.TFLiteConverter)]


def ops_of(content: bytes) -> list[str]:
    interpreter = lite.Interpreter(model_content=content)
    return [detail["op_name"] for detail in interpreter._get_ops_details()]


def run(content: bytes, value: np.ndarray) -> np.ndarray:
    interpreter = lite.Interpreter(model_content=content)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], value)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


@pytest.fixture(scope="module")
def net():
    return Net()


@pytest.mark.parametrize("types", [("float32", "float32"), ("int8", "uint8")])
def test_trained_ranges_become_integers_without_samples(net, types):
    files = []
    for converter in converters(net, net.predict.get_concrete_function()):
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.inference_input_type, converter.inference_output_type = (getattr(tf, name) for name in types)
        files.append(converter.convert())
    assert ops_of(files[1]) == ops_of(files[0])
    details = [lite.Interpreter(model_content=content).get_input_details()[0] for content in files]
    assert details[1]["dtype"] == details[0]["dtype"] == np.dtype(types[0])
    assert details[1]["quantization"] == pytest.approx(details[0]["quantization"])
    for seed in range(3):
        x = np.random.default_rng(seed).uniform(-1, 1, (1, 8, 8, 3)).astype(np.float32)
        expected = net.predict(x).numpy()
        if types[0] != "float32":
            scale, zero = details[0]["quantization"]
            x = np.clip(np.round(x / scale) + zero, -128, 127).astype(np.int8)
        ours, theirs = (run(content, x).astype(np.float32) for content in reversed(files))
        unit = 1.0 if types[1] != "float32" else 1 / 256
        assert np.abs(ours - theirs).max() <= 2 * unit
        assert np.abs(ours / (256 * unit) - expected).max() < 0.03


def test_without_optimizations_they_stay_float_and_round_as_in_training(net):
    content = converters(net, net.predict.get_concrete_function())[1].convert()
    assert ops_of(content).count("FAKE_QUANT") == 4
    x = np.random.default_rng(1).uniform(-1, 1, (1, 8, 8, 3)).astype(np.float32)
    np.testing.assert_allclose(run(content, x), net.predict(x).numpy(), atol=1e-5)


def test_integers_only_need_ranges_everywhere(net):
    class Partial(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([2, 2], tf.float32)])
        def predict(self, x):
            return tf.exp(rounded(x, "input")) + 1.0

    module = Partial()
    for model, function, words in (
        (net, net.predict, None),
        (module, module.predict, "no usable range|has no int8 form"),
    ):
        converter = converters(model, function.get_concrete_function())[1]
        converter.optimizations = [lite.Optimize.DEFAULT]
        converter.target_spec.supported_ops = [lite.OpsSet.TFLITE_BUILTINS_INT8]
        if words is None:
            assert "DEQUANTIZE" not in ops_of(converter.convert())[:-1]
        else:
            with pytest.raises(ValueError, match=words):
                converter.convert()


def test_models_without_ranges_still_need_samples(net):
    class Plain(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([2, 2], tf.float32)])
        def predict(self, x):
            return x + 1.0

    module = Plain()
    converter = converters(module, module.predict.get_concrete_function())[1]
    converter.optimizations = [lite.Optimize.DEFAULT]
    converter.target_spec.supported_ops = [lite.OpsSet.TFLITE_BUILTINS_INT8]
    with pytest.raises(ValueError, match="representative_dataset"):
        converter.convert()
    converter.target_spec.supported_ops = [lite.OpsSet.TFLITE_BUILTINS]
    converter.inference_input_type = tf.int8
    with pytest.raises(ValueError, match="must be tf.float32"):
        converter.convert()


def test_static_mode_makes_the_outside_integers_too():
    class Gather(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([2, 2], tf.float32)])
        def pick(self, x):
            x = tf.quantization.fake_quant_with_min_max_args(x, -3.0, 3.0)
            return tf.quantization.fake_quant_with_min_max_args(tf.gather_nd(x, [[0, 0], [1, 1]]), -3.0, 3.0)

    module = Gather()
    converter = converters(module, module.pick.get_concrete_function())[1]
    converter._experimental_qdq_conversion_mode = "STATIC"
    content = converter.convert()
    assert ops_of(content) == ["GATHER_ND"]
    assert run(content, np.array([[1, 2], [3, 4]], np.int8)).tolist() == [1, 4]


@pytest.mark.parametrize("bits", [4, 16])
def test_ranges_of_other_widths_do_not_ask_for_samples(bits):
    """Optimize.DEFAULT without samples is a model with 8-bit weights, as without these nodes."""

    @tf.function(input_signature=[tf.TensorSpec([1, 8], tf.float32)])
    def predict(x):
        return tf.tanh(tf.quantization.fake_quant_with_min_max_vars(x, -1.0, 1.0, num_bits=bits))

    converter = lite.TFLiteConverter.from_concrete_functions([predict.get_concrete_function()])
    converter.optimizations = [lite.Optimize.DEFAULT]
    assert ops_of(converter.convert()) == ["FAKE_QUANT", "TANH"]


def test_int16_needs_samples_beside_trained_ranges(net):
    content = lite.TFLiteConverter.from_concrete_functions([net.predict.get_concrete_function()], net).convert()
    with pytest.raises(leadline.InvalidArgumentError, match="samples"):
        leadline.quantize(content, "int16x8")
