# SPDX-License-Identifier: Apache-2.0
"""Quantized by Leadline and by TensorFlow, from the same float model with the same samples: at least TensorFlow's
accuracy less 0.2 points, and a file at most 2 % larger."""

import numpy as np
import pytest
import quantize_subjects
from quantize_subjects import CALIBRATED, MODES, accuracy, dataset, noise

import leadline
from leadline import lite

POINTS = 0.2
SIZE = 0.02


def outputs(content: bytes, inputs: np.ndarray) -> np.ndarray:
    return quantize_subjects.outputs(lite.Interpreter, content, inputs)


def quantized(subject, mode: str) -> bytes:
    calibrated = dataset(subject.samples) if mode in CALIBRATED else None
    return leadline.quantize(subject.content, mode, calibrated, min_weight_elements=1024)  # as TensorFlow


def assert_as_good(subject, mode: str, least: float) -> None:
    """`least`: what TensorFlow's result has to reach for the comparison to mean something."""
    ours, theirs = quantized(subject, mode), subject.by_tensorflow(mode)
    reached = accuracy(outputs(theirs, subject.inputs), subject.labels)
    assert reached > least
    assert accuracy(outputs(ours, subject.inputs), subject.labels) >= reached - POINTS
    assert len(ours) <= len(theirs) * (1 + SIZE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("saved_models")


@pytest.fixture(scope="module")
def keywords():
    return quantize_subjects.keywords() or pytest.skip("the folder of real models and data is not there")


@pytest.mark.parametrize("mode", MODES)
def test_keyword_spotting(keywords, mode):
    assert_as_good(keywords, mode, 90)


@pytest.fixture(scope="module")
def fashion(folder):
    return quantize_subjects.fashion(folder) or pytest.skip("the package dataset-fashion-mnist is not installed")


@pytest.mark.parametrize("mode", MODES)
def test_fashion_mnist(fashion, mode):
    assert_as_good(fashion, mode, 75)


def test_fashion_mnist_through_the_converter(fashion):
    converter = lite.TFLiteConverter.from_keras_model(fashion.model)
    converter.optimizations = [lite.Optimize.DEFAULT]
    converter.representative_dataset = dataset(fashion.samples)
    converter.target_spec.supported_ops = [lite.OpsSet.TFLITE_BUILTINS_INT8]
    reached = accuracy(outputs(fashion.by_tensorflow("int8"), fashion.inputs), fashion.labels)
    assert accuracy(outputs(converter.convert(), fashion.inputs), fashion.labels) >= reached - POINTS


@pytest.fixture(scope="module")
def transformer(folder):
    return quantize_subjects.transformer(folder) or pytest.skip("the package dataset-fashion-mnist is not installed")


@pytest.mark.parametrize("mode", ["weight_only_int4", "dynamic_int4"])
@pytest.mark.parametrize("net", ["fashion", "transformer"])
def test_weights_of_4_bits_that_are_fitted_lose_half_a_point(net, mode, request):
    """And come nearer to the float model's answers than weights that are rounded to the nearest."""
    subject = request.getfixturevalue(net)
    wanted = outputs(subject.content, subject.inputs)

    def made(**settings):
        return outputs(
            leadline.quantize(subject.content, mode, dataset(subject.samples), min_weight_elements=0, **settings),
            subject.inputs,
        )

    fitted = made(rounding="comq")
    assert accuracy(fitted, subject.labels) >= accuracy(wanted, subject.labels) - 0.5
    assert noise(wanted, fitted) < 0.75 * noise(wanted, made())


@pytest.fixture(scope="module")
def mobilenet(folder):
    subject = quantize_subjects.mobilenet(folder, alpha=0.5)
    return subject, outputs(subject.content, subject.inputs)


@pytest.mark.parametrize("mode", MODES)
def test_mobilenet_of_random_weights(mobilenet, mode):
    """There is nothing to be right about: what counts is how near the float model the result is."""
    subject, wanted = mobilenet
    ours, theirs = quantized(subject, mode), subject.by_tensorflow(mode)
    theirs_noise = noise(wanted, outputs(theirs, subject.inputs))
    assert np.isfinite(theirs_noise)
    assert noise(wanted, outputs(ours, subject.inputs)) <= 1.05 * theirs_noise + 1e-4
    assert len(ours) <= len(theirs) * (1 + SIZE)
