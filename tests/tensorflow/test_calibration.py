# SPDX-License-Identifier: Apache-2.0
"""Calibration beside TensorFlow's: the same ranges where TensorFlow reads what the tensors held."""

import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.lite.python import schema_py_generated as schema
from tensorflow.lite.python.optimize import calibrator

import leadline


@pytest.fixture(scope="module")
def residual() -> bytes:
    """Convolutions and a sum, which may be computed in place of one of its terms."""
    keras.utils.set_random_seed(3)
    x = keras.Input((16, 16, 3), batch_size=1)
    y = keras.layers.Conv2D(8, 3, padding="same", activation="relu6")(x)
    z = keras.layers.Conv2D(8, 1)(keras.layers.DepthwiseConv2D(3, padding="same", activation="relu")(y))
    outputs = keras.layers.Dense(4, activation="softmax")(keras.layers.GlobalAveragePooling2D()(y + z))
    return leadline.lite.TFLiteConverter.from_keras_model(keras.Model(x, outputs)).convert()


@pytest.fixture(scope="module")
def images() -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    return [rng.normal(0, 1 + i / 10, (1, 16, 16, 3)).astype(np.float32) for i in range(40)]


def tensorflow_ranges(content: bytes, images) -> dict[int, tuple[float, float]]:
    calibrated = calibrator.Calibrator(content).calibrate(lambda: ([image] for image in images))
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAsModel(bytearray(calibrated), 0))
    return {
        index: (float(tensor.quantization.min[0]), float(tensor.quantization.max[0]))
        for index, tensor in enumerate(model.subgraphs[0].tensors)
        if tensor.quantization is not None and tensor.quantization.min is not None and len(tensor.quantization.min)
    }


def test_ranges_are_tensorflows_where_it_reads_them_in_time(residual, images):
    ranges = tensorflow_ranges(residual, images)
    graph = leadline.Model.from_bytes(residual).subgraph(0)
    # TensorFlow logs the inputs of a node once more after it ran, when a sum may lie in their place.
    overwritten = {index for node in graph.nodes if node.op == "ADD" for index in node.inputs}
    tensors = leadline.calibrate(residual, images, "min_max").tensors()
    assert {tensor.tensor for tensor in tensors} == set(ranges)
    for tensor in tensors:
        low, high = ranges[tensor.tensor]
        margin = 1e-5 * (high - low)
        assert low - margin <= tensor.min and tensor.max <= high + margin, tensor.name
        if tensor.tensor not in overwritten:
            assert (tensor.min, tensor.max) == pytest.approx((low, high), abs=margin), tensor.name


def test_datasets_of_tensorflow(residual, images):
    expected = leadline.calibrate(residual, images).to_bytes()
    batches = tf.data.Dataset.from_tensor_slices(np.concatenate(images)).batch(1)
    name = leadline.Model.from_bytes(residual).signatures[0].inputs
    forms = {
        "a dataset of tensors": batches,
        "a dataset of tuples": batches.map(lambda image: (image,)),
        "a dataset of dicts": batches.map(lambda image: {next(iter(name)): image}),
        "a dataset with labels": batches.map(lambda image: (image, 1)),
        "larger batches": batches.unbatch().batch(7),
        "no batches": batches.unbatch().map(lambda image: (image, 1)),
        "a function that yields tensors": lambda: ([image] for image in batches),
        "tf.lite.RepresentativeDataset": tf.lite.RepresentativeDataset(lambda: ([image] for image in batches)),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error", leadline.DatasetWarning)
        for form, dataset in forms.items():
            assert leadline.calibrate(residual, dataset).to_bytes() == expected, form
