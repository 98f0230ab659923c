# SPDX-License-Identifier: Apache-2.0
"""Functions of leadline.tf as .tflite models."""

import numpy as np
import pytest

import leadline
from leadline import tf

RNG = np.random.default_rng(1)


def network():
    kernel = tf.Variable(RNG.standard_normal((3, 3, 3, 8)).astype(np.float32) / 5)
    bias = RNG.standard_normal(8).astype(np.float32)
    dense = tf.constant(RNG.standard_normal((128, 5)).astype(np.float32) / 8)

    @tf.function
    def f(image):
        x = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(image, kernel, 2, "SAME"), bias))
        x = tf.nn.max_pool2d(x, 2, 2, "VALID")
        return tf.nn.softmax(tf.matmul(tf.reshape(x, [1, -1]), dense))

    return f


def run(content: bytes, x: np.ndarray) -> np.ndarray:
    interpreter = leadline.lite.Interpreter(model_content=content)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def test_a_function_becomes_a_model_with_weights():
    f = network()
    x = RNG.standard_normal((1, 16, 16, 3)).astype(np.float32)
    concrete = f.get_concrete_function(tf.TensorSpec([1, 16, 16, 3], name="image"))
    content = tf.lite.TFLiteConverter.from_concrete_functions([concrete]).convert()
    np.testing.assert_allclose(run(content, x), f(x), rtol=1e-4, atol=1e-5)
    ops = [node.op for node in leadline.Model.from_bytes(content).subgraph(0).nodes]
    assert ops == ["CONV_2D", "ADD", "RELU", "MAX_POOL_2D", "RESHAPE", "FULLY_CONNECTED", "SOFTMAX"]
    runner = leadline.lite.Interpreter(model_content=content).get_signature_runner()
    np.testing.assert_allclose(runner(image=x)["output_0"], f(x), rtol=1e-4, atol=1e-5)


def test_it_is_quantized_like_any_other():
    f = network()
    concrete = f.get_concrete_function(tf.TensorSpec([1, 16, 16, 3]))
    converter = tf.lite.TFLiteConverter.from_concrete_functions([concrete])
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    samples = [RNG.standard_normal((1, 16, 16, 3)).astype(np.float32) for _ in range(20)]
    converter.representative_dataset = lambda: ([sample] for sample in samples)
    content = converter.convert()
    np.testing.assert_allclose(run(content, samples[0]), f(samples[0]), atol=0.05)


def test_what_has_no_form_in_the_format_is_named_with_its_line():
    @tf.function
    def f(x):
        return tf.linalg.inv(x)

    with pytest.raises(leadline.UnsupportedError, match=r"MatrixInverse.*test_tf_convert.py"):
        tf.lite.TFLiteConverter.from_concrete_functions([f.get_concrete_function(tf.TensorSpec([3, 3]))]).convert()
    with pytest.raises(leadline.UnsupportedError, match="converted for known sizes"):
        tf.lite.TFLiteConverter.from_concrete_functions([f.get_concrete_function(tf.TensorSpec([None, 3]))])
