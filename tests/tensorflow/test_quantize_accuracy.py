# SPDX-License-Identifier: Apache-2.0
"""Quantized by Leadline and by TensorFlow, from the same float model with the same samples: at least TensorFlow's
accuracy less 0.2 points, and a file at most 2 % larger."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.lite.python import convert as tf_convert
from tensorflow.lite.python.optimize import calibrator as tf_calibrator

import leadline
from leadline import lite

MODES = ("int8", "int16x8", "dynamic", "float16")
POINTS = 0.2
SIZE = 0.02
FASHION = Path("/usr/share/datasets/fashion-mnist")


def outputs(content: bytes, inputs: np.ndarray) -> np.ndarray:
    """What the model computes, sample by sample: hybrid kernels quantize a batch by its widest sample."""
    interpreter = lite.Interpreter(model_content=content, num_threads=1)
    interpreter.allocate_tensors()
    given, taken = interpreter.get_input_details()[0]["index"], interpreter.get_output_details()[0]["index"]
    results = []
    for sample in inputs:
        interpreter.set_tensor(given, sample[None])
        interpreter.invoke()
        results.append(interpreter.get_tensor(taken)[0])
    return np.array(results)


def accuracy(content: bytes, inputs: np.ndarray, labels: np.ndarray) -> float:
    return 100 * np.mean(outputs(content, inputs).argmax(axis=-1) == labels)


def dataset(samples):
    return lambda: ([sample[None]] for sample in samples)


def quantized_by_tensorflow(model, mode: str, samples) -> bytes:
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if mode in ("int8", "int16x8"):
        converter.representative_dataset = dataset(samples)
    if mode == "int16x8":
        converter.target_spec.supported_ops = [
            tf.lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
        ]
    if mode == "float16":
        converter.target_spec.supported_types = [tf.float16]
    return converter.convert()


def integers_by_tensorflow(content: bytes, mode: str, samples) -> bytes:
    """What TensorFlow's converter does with a float .tflite on its way to full integers."""
    calibrator = tf_calibrator.Calibrator(tf_calibrator.add_intermediate_tensors(content))
    if mode == "int8":
        calibrated = calibrator.calibrate(dataset(samples))
        return tf_convert.mlir_quantize(calibrated, False, input_data_type=tf.float32, output_data_type=tf.float32)
    return calibrator.calibrate_and_quantize(dataset(samples), tf.float32, tf.float32, False, tf.int16, tf.int64)


def quantized_by_leadline(content: bytes, mode: str, samples) -> bytes:
    return leadline.quantize(content, mode, dataset(samples) if mode in ("int8", "int16x8") else None)


def assert_size(ours: bytes, theirs: bytes) -> None:
    assert len(ours) <= len(theirs) * (1 + SIZE), (len(ours), len(theirs))


# Keyword spotting -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def keywords():
    folder = Path(os.environ.get("LEADLINE_SHARED", Path(__file__).parents[3] / "shared"))
    if not (folder / "data" / "kws01.npz").exists():
        pytest.skip("the folder of real models and data is not there (LEADLINE_SHARED)")
    data = np.load(folder / "data" / "kws01.npz")
    quantized = lite.Interpreter(str(folder / "models" / "mlperf_kws_dscnn_int8.tflite"))
    scale, zero_point = quantized.get_input_details()[0]["quantization"]
    features = ((data["features_int8"].astype(np.float32) - zero_point) * scale).astype(np.float32)
    return folder / "models", features, data["labels"]


@pytest.mark.parametrize("mode", MODES)
def test_keyword_spotting(keywords, mode):
    models, features, labels = keywords
    content = (models / "derived_kws_float_tf221.tflite").read_bytes()
    samples = features[::10]
    if mode in ("int8", "int16x8"):
        theirs = integers_by_tensorflow(content, mode, samples)
    else:
        name = {"dynamic": "dynrange", "float16": "f16"}[mode]
        theirs = (models / f"derived_kws_{name}_tf221.tflite").read_bytes()
    ours = quantized_by_leadline(content, mode, samples)
    assert accuracy(ours, features, labels) >= accuracy(theirs, features, labels) - POINTS
    assert_size(ours, theirs)


# Fashion-MNIST ----------------------------------------------------------------------------------


def read_idx(name: str) -> np.ndarray:
    with gzip.open(FASHION / f"{name}.gz") as file:
        content = file.read()
    shape = np.frombuffer(content, ">i4", content[3], 4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * content[3]).reshape(shape)


@pytest.fixture(scope="module")
def fashion():
    """A small convnet after one epoch, its float .tflite, images to calibrate on and to test."""
    if not FASHION.is_dir():
        pytest.skip("Debian's package dataset-fashion-mnist is not installed")
    keras = tf.keras
    keras.utils.set_random_seed(5)
    layers = keras.layers

    def normalization():
        return layers.BatchNormalization(momentum=0.9)  # soon at home with the few steps there are

    model = keras.Sequential([
        keras.Input((28, 28, 1), batch_size=None),
        layers.Conv2D(16, 3, strides=2, padding="same", use_bias=False), normalization(), layers.ReLU(),
        layers.DepthwiseConv2D(3, padding="same", use_bias=False), normalization(), layers.ReLU(6.0),
        layers.Conv2D(48, 1, activation="relu"), layers.MaxPooling2D(),
        layers.SeparableConv2D(64, 3, activation="relu"), layers.AveragePooling2D(5), layers.Flatten(),
        layers.Dense(64, activation="relu"), layers.Dense(10, activation="softmax"),
    ])  # fmt: skip
    images = read_idx("train-images-idx3-ubyte")[..., None].astype(np.float32) / 255
    labels = read_idx("train-labels-idx1-ubyte")
    model.compile(keras.optimizers.Adam(4e-3), "sparse_categorical_crossentropy")
    model.fit(images, labels, batch_size=256, epochs=1, verbose=0)
    test = read_idx("t10k-images-idx3-ubyte")[..., None].astype(np.float32) / 255
    content = tf.lite.TFLiteConverter.from_keras_model(model).convert()
    return model, content, images[:100], test, read_idx("t10k-labels-idx1-ubyte")


@pytest.mark.parametrize("mode", MODES)
def test_fashion_mnist(fashion, mode):
    model, content, samples, test, labels = fashion
    theirs = quantized_by_tensorflow(model, mode, samples)
    ours = quantized_by_leadline(content, mode, samples)
    reached = accuracy(theirs, test, labels)
    assert reached > 75  # it has learned something that could be lost
    assert accuracy(ours, test, labels) >= reached - POINTS
    assert_size(ours, theirs)


def test_fashion_mnist_through_the_converter(fashion):
    model, _, samples, test, labels = fashion
    converter = lite.TFLiteConverter.from_keras_model(model)
    converter.optimizations = [lite.Optimize.DEFAULT]
    converter.representative_dataset = dataset(samples)
    converter.target_spec.supported_ops = [lite.OpsSet.TFLITE_BUILTINS_INT8]
    theirs = quantized_by_tensorflow(model, "int8", samples)
    assert accuracy(converter.convert(), test, labels) >= accuracy(theirs, test, labels) - POINTS


# MobileNetV2 ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mobilenet():
    tf.keras.utils.set_random_seed(6)
    model = tf.keras.applications.MobileNetV2((96, 96, 3), weights=None)
    samples = np.random.default_rng(7).uniform(-1, 1, (24, 96, 96, 3)).astype(np.float32)
    content = tf.lite.TFLiteConverter.from_keras_model(model).convert()
    return model, content, samples, outputs(content, samples)


def noise(wanted: np.ndarray, got: np.ndarray) -> float:
    """Error of the logits over their spread; a common shift means nothing to softmax."""
    wanted, got = (np.log(np.maximum(values, 1e-9)) for values in (wanted, got))
    error = (got - got.mean(axis=-1, keepdims=True)) - (wanted - wanted.mean(axis=-1, keepdims=True))
    return float(np.sqrt(np.mean(error**2)) / wanted.std())


@pytest.mark.parametrize("mode", MODES)
def test_mobilenet_of_random_weights(mobilenet, mode):
    """There is nothing to be right about: what counts is how near the float model the result is."""
    model, content, samples, wanted = mobilenet
    theirs = quantized_by_tensorflow(model, mode, samples[:8])
    ours = quantized_by_leadline(content, mode, samples[:8])
    assert noise(wanted, outputs(ours, samples)) <= 1.05 * noise(wanted, outputs(theirs, samples)) + 1e-4
    assert_size(ours, theirs)
