# SPDX-License-Identifier: Apache-2.0
"""Under any budget a run returns its full result or a BudgetError, and the process lives; also under real RLIMIT_AS."""

import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import sample_models
from model_list import seeded_inputs

import leadline
from leadline.lite import Interpreter

SAMPLES = ["add", "chain", "counter", "dense", "quantized", "slow", "strings", "where"]
REAL = ["mobilenet_v1_025_224_float", "mlperf_kws_dscnn_int8", "mww2_alexa_int8", "ssd_mobilenet_v1_coco_uint8"]
PERCENTS = [*range(1, 20, 3), *range(20, 95, 15), 95, 98, 99, 100, 101, 105, 110]


def outputs_of(interpreter: Interpreter, inputs) -> list[np.ndarray]:
    interpreter.allocate_tensors()
    for details, value in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(details["index"], value)
    interpreter.invoke()
    return [interpreter.get_tensor(details["index"]) for details in interpreter.get_output_details()]


def check_budgets(content: bytes, name: str) -> None:
    free = Interpreter(model_content=content, num_threads=1)
    inputs = seeded_inputs(name, free.get_input_details())
    expected = outputs_of(free, inputs)
    peak = free.plan().peak_bytes
    results = {}
    for percent in PERCENTS:
        budget = leadline.Budget(peak * percent // 100)
        try:
            outputs = outputs_of(Interpreter(model_content=content, num_threads=1, budget=budget), inputs)
        except leadline.BudgetError as error:
            assert error.needed > error.limit == budget.limit
            results[percent] = False
        else:
            for got, wanted in zip(outputs, expected, strict=True):
                np.testing.assert_array_equal(got, wanted)
            results[percent] = True
        assert budget.peak <= budget.limit
        assert budget.used == 0, "a refused or finished job holds nothing"
    assert not results[1]
    assert results[100], "the planned peak is enough"
    assert sorted(results.values()) == [results[percent] for percent in PERCENTS], "more memory never does worse"


@pytest.mark.parametrize("name", SAMPLES)
def test_sample_under_every_budget(name):
    check_budgets(getattr(sample_models, name)(), name)


@pytest.mark.parametrize("name", REAL)
def test_real_model_under_every_budget(shared, name):
    check_budgets((shared / "models" / f"{name}.tflite").read_bytes(), name)


def test_a_refused_file_is_not_read_without_a_budget(monkeypatch):
    """To say what the whole model needs it is mapped again: within what the budget has left, and never copied."""
    budgets = []
    load = leadline.Model.from_bytes

    def recorded(content, budget):
        budgets.append(budget)
        return load(content, budget)

    monkeypatch.setattr(leadline.Model, "from_bytes", staticmethod(recorded))
    content = sample_models.dense()
    limit = len(content) // 2
    with pytest.raises(leadline.BudgetError, match="All in all this model needs"):
        Interpreter(model_content=content, budget=limit)
    assert [budget.limit for budget in budgets] == [limit, len(content) + max(limit, 1 << 20)]
    budgets.clear()
    with pytest.raises(leadline.BudgetError):
        Interpreter(model_content=bytearray(content), budget=limit)
    assert len(budgets) == 1


def test_refusal_is_a_table_and_comes_before_the_memory():
    content = sample_models.slow(size=1024, count=2)
    interpreter = Interpreter(model_content=content, budget="1MB")
    with pytest.raises(leadline.BudgetError, match="arena") as caught:
        interpreter.allocate_tensors()
    assert caught.value.limit == 1_000_000
    assert caught.value.needed == interpreter.plan().peak_bytes
    assert interpreter.budget.peak < 100_000
    with pytest.raises(MemoryError):
        interpreter.allocate_tensors()


def test_refused_interpreter_works_after_a_resize():
    interpreter = Interpreter(model_content=sample_models.add(), budget="100KB")
    interpreter.resize_tensor_input(0, [100_000, 4])
    with pytest.raises(leadline.BudgetError):
        interpreter.allocate_tensors()
    interpreter.resize_tensor_input(0, [2, 4])
    assert outputs_of(interpreter, [np.zeros((2, 4), np.float32)])[0].tolist() == [[0, 1, 2, 3]] * 2


def test_data_dependent_shapes_stay_inside_the_budget():
    content = sample_models.where()
    interpreter = Interpreter(model_content=content)
    interpreter.resize_tensor_input(0, [100_000])
    few = np.zeros(100_000, bool)
    peak_of_few = (outputs_of(interpreter, [few]), interpreter.plan().peak_bytes)[1]
    interpreter = Interpreter(model_content=content, budget=peak_of_few + 100_000)
    interpreter.resize_tensor_input(0, [100_000])
    assert outputs_of(interpreter, [few])[0].shape == (0, 1)
    with pytest.raises(leadline.BudgetError, match="the result of WHERE #0 .* does not fit: .* more needed"):
        outputs_of(interpreter, [~few])
    assert outputs_of(interpreter, [few])[0].shape == (0, 1)


@pytest.mark.parametrize("budget", [10_000_000, np.int64(10_000_000), "10MB", "9.5367431640625MiB"])
def test_forms_of_a_budget(budget):
    assert Interpreter(model_content=sample_models.add(), budget=budget).budget.limit == 10_000_000


def test_sizes_are_in_the_units_of_the_budget():
    content = sample_models.slow(size=1024, count=2)
    with pytest.raises(leadline.BudgetError, match=r"the budget is 1 MB;") as caught:
        Interpreter(model_content=content, budget="1MB").allocate_tensors()
    assert "iB" not in str(caught.value)
    with pytest.raises(leadline.BudgetError, match=r"the budget is 976.6 KiB;") as caught:
        Interpreter(model_content=content, budget=1_000_000).allocate_tensors()
    assert " MB" not in str(caught.value)
    assert "iB" not in Interpreter(model_content=content, budget="90MB").plan().to_text()
    assert "iB" in Interpreter(model_content=content, budget="90MiB").plan().to_text()
    assert leadline.Budget("2GB").format(1_500_000) == leadline.format_bytes(1_500_000, like="2GB") == "1.5 MB"
    assert leadline.format_bytes(1 << 20) == leadline.format_bytes(1 << 20, like="2G") == "1 MiB"


@pytest.mark.parametrize("budget", ["900MB", "900MiB"])
def test_job_plans_are_in_the_units_of_the_budget(budget):
    content = sample_models.slow(size=64, count=2)
    text = leadline.quantize.plan(content, "dynamic", budget=budget).to_text()
    assert ("iB" in text) == (budget == "900MiB"), text


def test_interpreters_share_a_budget():
    budget = leadline.Budget("10MB")
    kept = []
    with pytest.raises(leadline.BudgetError):
        for _ in range(100):
            kept.append(Interpreter(model_content=sample_models.slow(size=512, count=1), budget=budget))
            kept[-1].allocate_tensors()
    assert 1 < len(kept) < 20
    assert budget.peak <= budget.limit


def test_environment_sets_the_default(monkeypatch):
    monkeypatch.setenv("LEADLINE_MEMORY", "3MB")
    assert Interpreter(model_content=sample_models.add()).budget.limit == 3_000_000


CHILD = """
    import resource, sys
    import numpy as np
    import leadline, sample_models
    from leadline.lite import Interpreter

    content = sample_models.slow(size=2048, count=2)   # 16 MiB per tensor
    left = int(sys.argv[1])
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + left, used + left))
    interpreter = Interpreter(model_content=content, num_threads=1)
    limit = interpreter.budget.limit
    assert limit <= left, (limit, left)
    try:
        interpreter.allocate_tensors()
    except leadline.BudgetError as error:
        print("refused", error.needed > error.limit)
    else:
        interpreter.tensor(0)()[:8, :8] = 0.5
        print("allocated", interpreter.counted_peak_bytes() == interpreter.plan().peak_bytes)
"""


@pytest.mark.parametrize(("left", "expected"), [(8, "refused"), (24, "refused"), (48, "refused"), (400, "allocated")])
def test_real_address_space_limit(left, expected):
    here = Path(__file__).parent
    source = f"import sys; sys.path[:0] = {[str(here), *sys.path]!r}\n" + textwrap.dedent(CHILD)
    child = subprocess.run(
        [sys.executable, "-c", source, str(left << 20)], capture_output=True, text=True, timeout=300, check=False
    )
    assert child.stdout.split() == [expected, "True"], child.stderr
    assert child.returncode == 0
