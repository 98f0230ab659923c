# SPDX-License-Identifier: Apache-2.0
"""Models, budgets and threads: every function takes the same forms of them, and says alike what it cannot take."""

from pathlib import Path

import numpy as np
import pytest
import sample_models

import leadline
from leadline import lite

SAMPLES = [[np.full((1, 1024), value, np.float32)] for value in (0.5, 1.0)]
QUANTIZED = leadline.quantize(sample_models.chain(), "int8", SAMPLES, progress=False)
DEBUG_MODEL = leadline._leadline.make_debug_model(*map(leadline.Model.from_bytes, (sample_models.chain(), QUANTIZED)))


def calibrate(model, **settings):
    return leadline.calibrate(model, SAMPLES, "min-max", progress=False, **settings)


def quantize(model, **settings):
    return leadline.quantize(model, "int8", SAMPLES, progress=False, **settings)


def debug(model, **settings):
    return leadline.debug(model, QUANTIZED, SAMPLES, progress=False, **settings)


def tune(model, **settings):
    return leadline.tune(model, SAMPLES, lambda content: 1.0, 0.5, progress=False, **settings)


JOBS = [calibrate, quantize, debug, tune]


def interpret(model, **settings):
    interpreter = lite.Interpreter(model_content=model, **settings)
    interpreter.allocate_tensors()


def debug_as_tf_lite(model, **settings):
    lite.experimental.QuantizationDebugger(
        quant_debug_model_content=DEBUG_MODEL, float_model_content=model, debug_dataset=lambda: SAMPLES, **settings
    )


@pytest.mark.parametrize("job", [*JOBS, leadline.lint_dataset], ids=lambda job: job.__name__)
def test_a_model_is_a_path_bytes_or_a_model(job, tmp_path):
    content = sample_models.chain()
    path = tmp_path / "model.tflite"
    path.write_bytes(content)
    forms = [path, str(path), content, bytearray(content), memoryview(content), np.frombuffer(content, np.uint8)]
    arguments = [SAMPLES] if job is leadline.lint_dataset else []
    for model in [*forms, leadline.Model.from_bytes(content)]:
        job(model, *arguments)
    for wrong in (17, None, 1.5, [content]):
        with pytest.raises(leadline.InvalidArgumentError, match="model should be the path of a .tflite file.*; got"):
            job(wrong, *arguments)


@pytest.mark.parametrize("job", [*JOBS, interpret, debug_as_tf_lite], ids=lambda job: job.__name__)
def test_a_budget_is_a_number_a_text_or_a_budget(job):
    content = sample_models.chain()
    for budget in (10_000_000, np.int64(10_000_000), "10MB", "9.5 MiB", leadline.Budget("10MB"), None):
        job(content, budget=budget)
    for budget in (1000, "1KB", leadline.Budget(1000)):
        with pytest.raises(leadline.BudgetError):
            job(content, budget=budget)
    for wrong in (1.5, [], b"1MB"):
        with pytest.raises(leadline.InvalidArgumentError, match="budget should be a number of bytes.*; got"):
            job(content, budget=wrong)
    with pytest.raises(leadline.InvalidArgumentError, match="much"):
        job(content, budget="much")


@pytest.mark.parametrize("job", [calibrate, debug, interpret, debug_as_tf_lite], ids=lambda job: job.__name__)
def test_threads_are_a_number_or_none(job):
    content = sample_models.chain()
    for threads in (1, 2, -1, None, np.int64(2)):
        job(content, num_threads=threads)
    for wrong in (0, -2, 1.5, "2"):
        with pytest.raises(leadline.InvalidArgumentError, match="num_threads should"):
            job(content, num_threads=wrong)


@pytest.fixture(scope="module")
def keras_file(tmp_path_factory) -> Path:
    keras = pytest.importorskip("keras", reason="keras is not installed")
    path = tmp_path_factory.mktemp("keras") / "model.keras"
    keras.Sequential([keras.Input((1024,)), keras.layers.Dense(64)]).save(path)
    return path


@pytest.mark.parametrize("quantized", [False, True])
@pytest.mark.parametrize("live", [False, True])
def test_a_converter_takes_the_same_budgets(keras_file, live, quantized):
    def convert(budget):
        if live:
            import keras

            converter = lite.TFLiteConverter.from_keras_model(keras.saving.load_model(keras_file), budget=budget)
        else:
            converter = lite.TFLiteConverter.from_keras_file(keras_file, budget=budget)
        if quantized:
            converter.optimizations = [lite.Optimize.DEFAULT]
            converter.representative_dataset = lambda: iter(SAMPLES)
        return converter.convert(progress=False)

    contents = {convert(budget) for budget in (None, "20MB", 20_000_000, leadline.Budget("20MB"))}
    assert len(contents) == 1
    for budget in ("100KB", 100_000, leadline.Budget("100KB")):
        with pytest.raises(leadline.BudgetError):
            convert(budget)
    with pytest.raises(leadline.InvalidArgumentError, match="budget should be a number of bytes"):
        convert(1.5)


def test_tf_takes_the_same_budgets():
    from leadline import tf

    before = tf.get_budget()
    try:
        for budget in ("10MB", np.int64(10_000_000), leadline.Budget(10_000_000)):
            tf.set_budget(budget)
            assert tf.get_budget().limit == 10_000_000
        with pytest.raises(leadline.InvalidArgumentError, match="budget should be a number of bytes"):
            tf.set_budget(1.5)
    finally:
        tf.set_budget(None)
    assert tf.get_budget() is before


def test_models_are_loaded_with_the_same_budgets(tmp_path):
    content = sample_models.chain()
    path = tmp_path / "model.tflite"
    path.write_bytes(content)
    for budget in ("10MB", 10_000_000, leadline.Budget("10MB")):
        assert leadline.Model.load(path, budget).budget.limit == 10_000_000
        assert leadline.Model.from_bytes(content, budget).budget.limit == 10_000_000
    with pytest.raises(leadline.BudgetError):
        leadline.Model.load(path, "100B")
