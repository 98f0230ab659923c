# SPDX-License-Identifier: Apache-2.0
"""Loops do not grow: many rounds of create, allocate, run and destroy. LEADLINE_LONG=1 makes it 10,000 rounds."""

import gc
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sample_models
from model_list import seeded_inputs

import leadline
from leadline.lite import Interpreter

WARM_UP = 30
MAX_GROWTH = 1 << 20


def resident_bytes() -> int:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


def one_round(content: bytes, inputs: list[np.ndarray], budget: leadline.Budget) -> int:
    """Bytes charged at the end of the run."""
    interpreter = Interpreter(model_content=content, num_threads=2, budget=budget)
    interpreter.allocate_tensors()
    for details, value in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(details["index"], value)
    interpreter.invoke()
    for details in interpreter.get_output_details():
        interpreter.get_tensor(details["index"])
    return budget.used


def soak(content: bytes, name: str, rounds: int) -> None:
    inputs = seeded_inputs(name, Interpreter(model_content=content).get_input_details())
    budget = leadline.Budget("1GB")
    charged = {one_round(content, inputs, budget) for _ in range(WARM_UP)}
    gc.collect()
    before = resident_bytes()
    for _ in range(rounds):
        charged.add(one_round(content, inputs, budget))
        assert budget.used == 0
    gc.collect()
    growth = resident_bytes() - before
    assert len(charged) == 1, f"the rounds held different amounts: {charged}"
    assert growth < MAX_GROWTH, f"resident memory grew by {growth} bytes in {rounds} rounds"


@pytest.mark.parametrize("name", ["chain", "counter", "dense", "strings", "where"])
def test_rounds_of_samples_do_not_grow(name, long_run):
    soak(getattr(sample_models, name)(), name, 10_000 if long_run else 300)


@pytest.mark.parametrize("name", ["mlperf_kws_dscnn_int8", "mww2_alexa_int8"])
def test_rounds_of_real_models_do_not_grow(name, shared, long_run):
    soak((shared / "models" / f"{name}.tflite").read_bytes(), name, 10_000 if long_run else 300)


def test_rounds_that_fail_do_not_grow(long_run):
    content = sample_models.slow(size=256, count=2)
    before = 0
    for i in range(10_000 if long_run else 300):
        if i == WARM_UP:
            gc.collect()
            before = resident_bytes()
        with pytest.raises(leadline.BudgetError):
            Interpreter(model_content=content, budget=200_000).allocate_tensors()
        with pytest.raises(ValueError):
            Interpreter(model_content=content[: len(content) // 2])
    gc.collect()
    assert resident_bytes() - before < MAX_GROWTH


@pytest.mark.parametrize("place", [[], ["--notebook"]], ids=["process", "notebook"])
def test_half_a_minute_of_mixed_work_leaves_nothing(place):
    """The short form of `make soak`."""
    if place:
        pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    program = Path(__file__).parents[1] / "soak" / "soak.py"
    run = subprocess.run(
        [sys.executable, str(program), "--seconds", "30", *place],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "nothing left charged" in run.stdout
