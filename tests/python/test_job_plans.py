# SPDX-License-Identifier: Apache-2.0
"""What a job will take is the same, to the byte, from Python (whose plans are those of the C++ jobs) and from the
command line, and a budget below it is refused with the table before the first sample is read."""

import inspect
import json
import pickle

import keras_models
import numpy as np
import pytest
from test_cli import PROGRAM, leadline_json
from test_quantize import model, samples  # noqa: F401 (fixtures)

import leadline

OPTIONS = {
    "quantize": [
        ({"mode": "int8"}, ["--threads", "1"]),
        ({"mode": "int16x8"}, ["--mode", "int16x8", "--threads", "1"]),
        ({"mode": "dynamic"}, ["--mode", "dynamic"]),
        ({"mode": "float16"}, ["--mode", "float16"]),
        ({"mode": "weight-only-int4"}, ["--mode", "weight_only_int4"]),
        (
            {"mode": "dynamic_int4", "rounding": "comq"},
            ["--mode", "dynamic_int4", "--rounding", "comq", "--threads", "1"],
        ),
        ({"method": "mse"}, ["--method", "mse", "--threads", "1"]),
        ({"bias_correction": True}, ["--bias-correction", "--threads", "1"]),
        ({"equalize": True}, ["--equalize", "--threads", "1"]),
    ],
    "debug": [
        ({"num_threads": 1}, []),
        ({"num_threads": 1, "own_error": False}, ["--no-own-error"]),
        ({"num_threads": 1, "equalized": True}, ["--equalized"]),
    ],
    "tune": [
        ({"num_threads": 1}, ["--threads", "1"]),
        (
            {"metric": "same_top", "keep": "int16x8", "num_threads": 1},
            ["--metric", "same-top", "--keep", "int16x8", "--threads", "1"],
        ),
        ({"equalize": True, "num_threads": 1}, ["--equalize", "--threads", "1"]),
    ],
}
CASES = [(job, *options) for job, entries in OPTIONS.items() for options in entries]


@pytest.fixture(scope="module")
def files(model, samples, tmp_path_factory):  # noqa: F811
    folder = tmp_path_factory.mktemp("plans")
    (folder / "float.tflite").write_bytes(model)
    (folder / "int8.tflite").write_bytes(leadline.quantize(model, "int8", samples))
    return {
        "quantize": [folder / "float.tflite"],
        "calibrate": [folder / "float.tflite"],
        "debug": [folder / "float.tflite", folder / "int8.tflite"],
        "tune": [folder / "float.tflite"],
    }


def phases(plan: dict) -> list:
    return [(phase["name"], phase["peak_bytes"], phase["categories"], phase["detail"]) for phase in plan["phases"]]


@pytest.mark.skipif(PROGRAM is None, reason="the leadline program is not built")
@pytest.mark.parametrize(("job", "arguments", "options"), CASES, ids=lambda value: str(value))
def test_python_and_the_program_plan_the_same(files, job, arguments, options):
    plan = getattr(leadline, job).plan(*files[job], **arguments)
    said = leadline_json(job, *files[job], *options, "--plan")
    said = said.get("plan", said)
    assert said == json.loads(plan.to_json())
    assert phases(said)
    assert plan.peak_bytes == max(phase.peak_bytes for phase in plan.phases)


@pytest.mark.skipif(PROGRAM is None, reason="the leadline program is not built")
def test_conversions_plan_the_same(tmp_path):
    keras_models.make("nested").save(tmp_path / "model.keras")
    plan = leadline.convert.plan(tmp_path / "model.keras")
    assert leadline_json("convert", tmp_path / "model.keras", "--plan")["plan"] == json.loads(plan.to_json())
    budget = leadline.Budget(plan.peak_bytes)
    leadline.convert(tmp_path / "model.keras", tmp_path / "model.tflite", budget=budget)
    assert budget.peak <= plan.peak_bytes
    assert (tmp_path / "model.tflite").stat().st_size == plan.result_bytes
    (tmp_path / "model.tflite").unlink()
    with pytest.raises(leadline.BudgetError) as refused:
        leadline.convert(tmp_path / "model.keras", tmp_path / "model.tflite", budget=plan.peak_bytes - 1)
    assert plan.to_text() in str(refused.value)
    assert not (tmp_path / "model.tflite").exists()


def unread():
    raise AssertionError("a sample was read")
    yield


@pytest.mark.parametrize("job", ["calibrate", "quantize", "debug", "tune"])
def test_less_than_the_plan_is_refused_before_the_first_sample(files, job):
    function = getattr(leadline, job)
    arguments = {"metric": "cosine", "target": 0.9} if job == "tune" else {}
    names = list(inspect.signature(function).parameters)
    dataset = "representative_dataset" if "representative_dataset" in names else "dataset"
    plan = function.plan(*files[job], **arguments)
    with pytest.raises(leadline.BudgetError) as refused:
        function(*files[job], **{dataset: unread}, **arguments, budget=plan.peak_bytes - 1)
    assert plan.to_text() in str(refused.value)
    assert refused.value.needed == plan.peak_bytes
    assert refused.value.limit == plan.peak_bytes - 1


def test_the_planned_budget_is_enough(files, samples):  # noqa: F811
    for arguments in (
        {"mode": "int8"},
        {"mode": "int8", "bias_correction": True},
        {"mode": "int16x8", "equalize": True},
    ):
        plan = leadline.quantize.plan(*files["quantize"], **arguments)
        budget = leadline.Budget(plan.peak_bytes)
        content = leadline.quantize(*files["quantize"], representative_dataset=samples, budget=budget, **arguments)
        assert budget.peak <= plan.peak_bytes
        assert len(content) <= plan.result_bytes
    plan = leadline.calibrate.plan(*files["calibrate"])
    budget = leadline.Budget(plan.peak_bytes)
    leadline.calibrate(*files["calibrate"], samples, budget=budget)
    assert budget.peak <= plan.peak_bytes


def test_phases_say_their_sizes_in_the_units_of_the_budget(model):  # noqa: F811
    decimal = leadline.quantize.plan(model, mode="dynamic", budget="2GB")
    binary = leadline.quantize.plan(model, mode="dynamic", budget="2GiB")
    for phase, same in zip(decimal.phases, binary.phases, strict=True):
        assert leadline.format_bytes(phase.peak_bytes, like="2GB") in repr(phase)
        assert leadline.format_bytes(phase.peak_bytes, like="2GiB") in repr(same)
    assert any(repr(phase) != repr(same) for phase, same in zip(decimal.phases, binary.phases, strict=True))


def test_jobs_are_functions_still(samples):  # noqa: F811
    assert leadline.quantize.__name__ == "quantize"
    assert "representative_dataset" in inspect.signature(leadline.quantize).parameters
    assert pickle.loads(pickle.dumps(leadline.quantize)) is leadline.quantize
    assert "job quantize" in repr(leadline.quantize)


def test_rules_that_match_nothing_are_named(model):  # noqa: F811
    recipe = [{"name": "^head/dense_int8$", "mode": "float"}, {"op": "SOFTMAX", "mode": "float"}]
    with pytest.raises(leadline.InvalidArgumentError, match=r"no node matches the rule name '\^head/dense_int8\$'"):
        leadline.quantize(model, "dynamic", recipe=recipe)


def test_tune_measures_agreement_itself(model, samples):  # noqa: F811
    result = leadline.tune(model, samples, "cosine", 0.5)
    assert result.reached
    assert not result.kept
    assert 0.5 < result.value <= 1
    assert leadline.tune(model, samples, "same-top", 0.0).value <= 1
    with pytest.raises(leadline.InvalidArgumentError, match="expected one of: cosine, same_top, accuracy"):
        leadline.tune(model, samples, "error", 0.5)
    assert np.isfinite(result.value)
