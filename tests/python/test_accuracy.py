# SPDX-License-Identifier: Apache-2.0
"""Keyword spotting on the 1,000 samples of MLPerf Tiny: the accuracy that LiteRT 2.3.0 reaches, within 0.3 points."""

import numpy as np
import pytest

from leadline.lite import Interpreter

TOLERANCE = 0.3  # percentage points


def input_of(interpreter: Interpreter) -> dict:
    return interpreter.get_input_details()[0]


def accuracy(interpreter: Interpreter, features: np.ndarray, labels: np.ndarray) -> float:
    """Percent of samples whose largest score is at their label."""
    interpreter.allocate_tensors()
    details, output = input_of(interpreter), interpreter.get_output_details()[0]
    right = 0
    for sample, label in zip(features, labels, strict=True):
        interpreter.set_tensor(details["index"], sample.reshape(details["shape"]))
        interpreter.invoke()
        right += int(np.argmax(interpreter.get_tensor(output["index"])) == label)
    return 100 * right / len(labels)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("mlperf_kws_dscnn_int8", 90.2), ("mlperf_kws_dscnn_dynrange", 90.0), ("derived_kws_float_tf221", 91.3)],
)
def test_keyword_spotting_accuracy(shared, name, expected):
    data = np.load(shared / "data" / "kws01.npz")
    features, labels = data["features_int8"], data["labels"]
    interpreter = Interpreter(shared / "models" / f"{name}.tflite", num_threads=1)
    if input_of(interpreter)["dtype"] is np.float32:
        scale, zero_point = input_of(Interpreter(shared / "models" / "mlperf_kws_dscnn_int8.tflite"))["quantization"]
        features = ((features.astype(np.float32) - zero_point) * scale).astype(np.float32)
    assert accuracy(interpreter, features, labels) == pytest.approx(expected, abs=TOLERANCE)
