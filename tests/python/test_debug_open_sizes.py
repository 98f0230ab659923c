# SPDX-License-Identifier: Apache-2.0
"""Jobs on models that leave sizes open, as TensorFlow writes them (a batch of -1, pictures of any size): the samples say
the sizes, plans hold for them, and nothing is skipped."""

import json
import subprocess

import numpy as np
import pytest
from test_cli import PROGRAM, leadline_json
from test_debugger import convnet

import leadline

RNG = np.random.default_rng(12)
SIZES = {
    "batches of one": [(1, 8, 8)] * 12,
    "batches of four": [(4, 8, 8)] * 12,
    "pictures of one size": [(1, 24, 16)] * 12,
    "pictures of several sizes": [(1, 8, 8), (2, 24, 16), (1, 12, 20), (1, 24, 24)] * 3,
}


def samples(sizes) -> list:
    return [[RNG.uniform(-1, 1, (*size, 3)).astype(np.float32)] for size in sizes]


def planted(sizes) -> tuple[bytes, bytes, list]:
    """Weights that do nothing but set the scale of all others; samples of these sizes."""
    float_model = convnet(spoiled=2000, sizes=(-1, 8, 8) if all(s[1:] == (8, 8) for s in sizes) else (-1, -1, -1))
    given = samples(sizes)
    return float_model, leadline.quantize(float_model, "int8", given), given


@pytest.mark.parametrize("form", [list, lambda given: lambda: iter(given), iter], ids=["list", "function", "generator"])
@pytest.mark.parametrize("sizes", SIZES)
def test_debug_measures_effects_and_tries_suggestions(sizes, form):
    float_model, quantized, given = planted(SIZES[sizes])
    budget = leadline.Budget("1GB")
    result = leadline.debug(float_model, quantized, form(given), budget=budget, progress=False)
    assert result.samples == 12
    assert not result.to_dict()["notes"]
    assert "conv2" in result.suspects[0]["why"]
    conv2 = next(layer for layer in result.layers if layer["layer"] == "conv2")
    assert conv2["effect"] > 0.9
    assert result.suggestions[0].after["cosine"] > 0.99
    assert budget.peak <= result.plan["peak_bytes"], "what was counted is what was planned at most"


@pytest.mark.parametrize("sizes", SIZES)
def test_plans_are_for_the_sizes_of_the_samples(sizes):
    float_model, quantized, given = planted(SIZES[sizes])
    plan = leadline.debug.plan(float_model, quantized, given)
    assert [phase.name for phase in plan.phases] == ["load", "compare", "effects", "try"]
    budget = leadline.Budget(plan.peak_bytes)
    leadline.debug(float_model, quantized, given, budget=budget, progress=False)
    assert budget.peak <= plan.peak_bytes
    largest = tuple(max(dims) for dims in zip(*SIZES[sizes], strict=True))
    fixed = convnet(spoiled=2000, sizes=largest)
    same = leadline.debug.plan(fixed, leadline.quantize(fixed, "int8", samples([largest])))
    assert plan.phases[1].peak_bytes == pytest.approx(same.phases[1].peak_bytes, rel=0.05)


@pytest.mark.parametrize("sizes", SIZES)
def test_other_jobs_plan_for_them_too(sizes):
    float_model, _, given = planted(SIZES[sizes])
    jobs = {
        "calibrate": (leadline.calibrate, (float_model, given), {}),
        "quantize": (leadline.quantize, (float_model, "int8", given), {"bias_correction": True}),
        "evaluate": (leadline.evaluate, (float_model, given), {"metric": "agreement", "reference": float_model}),
        "tune": (leadline.tune, (float_model, given, "cosine", 0.999), {}),
    }
    for name, (job, arguments, settings) in jobs.items():
        plan = job.plan(*arguments, **settings)
        budget = leadline.Budget(plan.peak_bytes)
        job(*arguments, **settings, budget=budget, progress=False)
        assert budget.peak <= plan.peak_bytes, name


def test_tune_keeps_what_is_to_blame():
    float_model, _, given = planted(SIZES["pictures of several sizes"])
    result = leadline.tune(float_model, given, "cosine", 0.999, progress=False)
    assert result.reached and result.kept == ["model/conv2/Conv2D"]


def test_a_sample_that_was_looked_at_is_not_lost():
    float_model, quantized, given = planted(SIZES["batches of four"])
    once = iter(given)
    plan = leadline.debug.plan(float_model, quantized, once)
    assert plan.peak_bytes == leadline.debug.plan(float_model, quantized, given).peak_bytes
    result = leadline.debug(float_model, quantized, iter(given), progress=False)
    assert result.samples == len(given)


def test_larger_samples_than_were_known_are_refused_by_the_budget():
    float_model, quantized, _ = planted(SIZES["batches of one"])
    given = samples([(1, 8, 8), (4096, 8, 8)])
    budget = leadline.Budget(leadline.debug.plan(float_model, quantized, given[:1]).peak_bytes + 1_000_000)
    with pytest.raises(leadline.BudgetError, match="sample 1: debug needs"):
        leadline.debug(float_model, quantized, lambda: iter(given), budget=budget, progress=False)


@pytest.mark.skipif(PROGRAM is None, reason="the leadline program is not built")
def test_the_program_plans_with_the_sizes_of_its_data(tmp_path):
    float_model, quantized, given = planted(SIZES["pictures of one size"])
    (tmp_path / "float.tflite").write_bytes(float_model)
    (tmp_path / "int8.tflite").write_bytes(quantized)
    np.save(tmp_path / "samples.npy", np.concatenate([sample for (sample,) in given]))
    arguments = ["debug", tmp_path / "float.tflite", tmp_path / "int8.tflite", "--data", tmp_path / "samples.npy"]
    plan = leadline_json(*arguments, "--plan")
    assert [phase["name"] for phase in plan["phases"]] == ["load", "compare", "effects", "try"]
    report = tmp_path / "report.json"
    done = subprocess.run([PROGRAM, *map(str, arguments), "--report", report], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said = json.loads(report.read_text())
    assert said["plan"]["peak_bytes"] == plan["peak_bytes"] and said["suggestions"]
