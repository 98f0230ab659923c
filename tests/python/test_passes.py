# SPDX-License-Identifier: Apache-2.0
"""Passes that merge nodes for runs change no integer result, take no memory, and can be switched off by name."""

import numpy as np
import pytest
from model_list import NO_SHARED, runnable_models, seeded_inputs

import leadline
from leadline.lite import Interpreter

MODELS = [model for model in runnable_models() if model.path.stat().st_size < 4e6]
PASSES = [p.name for p in leadline.list_passes() if p.runs]


def prepare(path, **options) -> Interpreter:
    interpreter = Interpreter(path, num_threads=2, **options)
    interpreter.allocate_tensors()
    return interpreter


def run(interpreter: Interpreter, name: str) -> list[np.ndarray]:
    details = interpreter.get_input_details()
    for item, value in zip(details, seeded_inputs(name, details), strict=True):
        interpreter.set_tensor(item["index"], value)
    interpreter.invoke()
    return [np.asarray(interpreter.get_tensor(item["index"])) for item in interpreter.get_output_details()]


def assert_same(got: list[np.ndarray], expected: list[np.ndarray], what: str) -> None:
    assert len(got) == len(expected)
    for a, b in zip(got, expected, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape, what
        if a.dtype.kind not in "fc":
            np.testing.assert_array_equal(a, b, err_msg=what)
            continue
        np.testing.assert_array_equal(np.isfinite(a), np.isfinite(b), err_msg=what)
        finite = np.isfinite(b)
        largest = np.max(np.abs(b[finite]), initial=0)
        assert np.max(np.abs(a[finite] - b[finite]), initial=0) <= 2e-5 * largest, what


def merged_nodes(interpreter: Interpreter) -> int:
    return sum(len(step.merged) for step in interpreter.plan().steps)


@pytest.mark.skipif(not MODELS, reason=NO_SHARED)
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_results_and_memory_of_real_models(model):
    plain = prepare(model.path, disabled_passes=["all"])
    expected = run(plain, model.name)
    assert merged_nodes(plain) == 0
    merging = prepare(model.path)
    assert merging.plan().peak_bytes <= plain.plan().peak_bytes
    assert_same(run(merging, model.name), expected, "all passes")
    assert merging.plan().peak_bytes <= plain.plan().peak_bytes
    if merged_nodes(merging) == 0:
        return
    for name in PASSES:
        alone = prepare(model.path, disabled_passes=[p for p in PASSES if p != name])
        assert alone.plan().peak_bytes <= plain.plan().peak_bytes, name
        assert_same(run(alone, model.name), expected, name)
    preserving = prepare(model.path, experimental_preserve_all_tensors=True)
    assert merged_nodes(preserving) == 0
    assert_same(run(preserving, model.name), expected, "preserved tensors")


def swish() -> bytes:
    builder = leadline.ModelBuilder()
    x = builder.input("x", np.float32, [1, 4])
    gate = builder.tensor("gate", np.float32, [1, 4])
    y = builder.tensor("y", np.float32, [1, 4])
    builder.node("LOGISTIC", [x], [gate])
    builder.node("MUL", [x, gate], [y])
    builder.output(y)
    return builder.to_tflite()


def test_names():
    assert all(p.description for p in leadline.list_passes())
    assert {p.name for p in leadline.list_passes() if p.converts} > {"fold_affine", "merge_padding"}
    for name in PASSES:
        Interpreter(model_content=swish(), disabled_passes=[name]).allocate_tensors()
    with pytest.raises(leadline.InvalidArgumentError, match="unknown pass 'merge'; expected one of: merge_nodes, "):
        Interpreter(model_content=swish(), disabled_passes=["merge"]).allocate_tensors()


def test_merged_tensors_can_be_read():
    content = swish()
    value = np.array([[-2, -1, 0, 3]], np.float32)
    results = []
    for options in (
        {},
        {"disabled_passes": ["merge_swish"]},
        {"experimental_disable_delegate_node_fusion": True},
        {"experimental_preserve_all_tensors": True},
    ):
        interpreter = Interpreter(model_content=content, **options)
        interpreter.allocate_tensors()
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], value)
        interpreter.invoke()
        results.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
        ops = [step.op for step in interpreter.plan().steps]
        assert ops == (["LOGISTIC", "MUL"] if options else ["SWISH"])
        inner = next(item["index"] for item in interpreter.get_tensor_details() if item["name"] == "gate")
        np.testing.assert_allclose(interpreter.get_tensor(inner), 1 / (1 + np.exp(-value)), rtol=1e-5)
    for result in results[1:]:
        np.testing.assert_allclose(result, results[0], rtol=1e-6)
