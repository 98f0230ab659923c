# SPDX-License-Identifier: Apache-2.0
"""Quantizing and debugging over and over in one process: every round counts the same, and resident memory stays.

LEADLINE_LONG=1 makes it 200 rounds of MobileNetV2.
"""

import gc
import io
import json
import subprocess
import sys

import numpy as np
import pytest
from keras_models import keras
from test_cli import PROGRAM, leadline_json
from test_soak import resident_bytes

import leadline
from leadline import _leadline, lite

WARM_UP = 5
MAX_GROWTH = 2 << 20


@pytest.fixture(scope="module")
def case(tmp_path_factory, long_run):
    """A Keras file, samples, and how many rounds."""
    size = 224 if long_run else 32
    path = tmp_path_factory.mktemp("rounds") / "model.keras"
    model = keras.applications.MobileNetV2((size, size, 3), alpha=1.0 if long_run else 0.35, weights=None)
    model.save(path)
    return path, make_samples(size, 8 if long_run else 2), 200 if long_run else 10


def make_samples(size, count):
    rng = np.random.default_rng(5)
    return [[rng.standard_normal((1, size, size, 3)).astype(np.float32)] for _ in range(count)]


def converter(path, samples, budget):
    result = lite.TFLiteConverter.from_keras_file(path, budget=budget)
    result.optimizations = [lite.Optimize.DEFAULT]
    result.representative_dataset = lambda: iter(samples)
    return result


def quantize_and_run(path, samples, budget):
    content = converter(path, samples, budget).convert()
    interpreter = lite.Interpreter(model_content=content, budget=budget, num_threads=1)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], samples[0][0])
    interpreter.invoke()
    interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def run_debugger(path, samples, budget):
    debugger = lite.experimental.QuantizationDebugger(
        converter=converter(path, samples, budget), debug_dataset=lambda: iter(samples), budget=budget, num_threads=1
    )
    debugger.run()
    debugger.layer_statistics_dump(io.StringIO())


def compare_models(path, samples, budget):
    reference = lite.TFLiteConverter.from_keras_file(path, budget=budget).convert()
    quantized = converter(path, samples, budget).convert()
    assert leadline.debug(reference, quantized, samples, budget=budget, num_threads=1).layers


def measure(work, path, size, count, rounds):
    """The growth of resident memory, and what the rounds took."""
    samples = make_samples(size, count)
    peaks, before = [], 0
    for i in range(WARM_UP + rounds):
        budget = leadline.Budget("1GB")
        work(path, samples, budget)
        assert budget.used == 0
        peaks.append(budget.peak)
        if i == WARM_UP - 1:
            gc.collect()
            before = resident_bytes()
    gc.collect()
    return {"growth": resident_bytes() - before, "peaks": sorted(set(peaks))}


@pytest.mark.parametrize("work", ["quantize_and_run", "run_debugger", "compare_models"])
def test_rounds_do_not_grow(work, case):
    path, samples, rounds = case
    # In a process of its own: what other tests left behind comes and goes.
    size = samples[0][0].shape[1]
    command = [sys.executable, __file__, work, path, str(size), str(len(samples)), str(rounds)]
    child = subprocess.run(command, capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stderr
    result = json.loads(child.stdout)
    assert len(result["peaks"]) == 1, f"the rounds took different amounts: {result['peaks']}"
    assert result["growth"] < MAX_GROWTH, f"resident memory grew by {result['growth']} bytes in {rounds} rounds"


def test_phases_take_no_more_than_was_planned(case):
    path, samples, _ = case
    reference = lite.TFLiteConverter.from_keras_file(path).convert()
    quantized = leadline.quantize(reference, "int8", samples)
    budget = leadline.Budget("1GB")
    result = leadline.debug(reference, quantized, samples, budget=budget, num_threads=1)
    assert budget.peak <= result.plan["peak_bytes"]
    model = leadline.Model.from_bytes(reference)
    calibration = leadline.calibrate(model, samples, "min_max")
    options = _leadline.QuantizerOptions()
    options.budget = budget = leadline.Budget("1GB")
    options.set_calibration(calibration)
    job = _leadline.QuantizeJob(model, options)
    content, _ = job.run()
    assert len(content) == job.plan().result_bytes
    assert budget.peak <= job.plan().peak_bytes


@pytest.mark.skipif(PROGRAM is None, reason="the leadline program is not built")
@pytest.mark.parametrize("more", [[], ["--bias-correction"], ["--method", "mse"], ["--mode", "dynamic"]])
def test_phases_of_the_program_take_no_more_than_it_says(more, case, tmp_path):
    path, samples, _ = case
    model, data = tmp_path / "model.tflite", tmp_path / "samples.npy"
    lite.TFLiteConverter.from_keras_file(path).convert_to(model)
    np.save(data, np.concatenate([sample[0] for sample in samples]))
    arguments = ["quantize", str(model), "--data", str(data), "--threads", "1", *more]
    planned = leadline_json(*arguments, "--plan")["plan"]
    done = leadline_json(*arguments)
    assert done["plan"] == planned
    assert {"load", "quantize"} <= {phase["name"] for phase in planned["phases"]}
    assert done["counted_peak_bytes"] <= planned["peak_bytes"]


if __name__ == "__main__":
    print(json.dumps(measure(globals()[sys.argv[1]], sys.argv[2], *map(int, sys.argv[3:]))))
