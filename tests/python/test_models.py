# SPDX-License-Identifier: Apache-2.0
"""Every real model that LiteRT runs computes LiteRT's outputs, with 1 and 2 threads, and takes what was planned."""

import numpy as np
import pytest
from model_list import LITERT_DOES_NOT_RUN, NO_SHARED, REFUSED, RealModel, real_models, runnable_models, seeded_inputs
from oracle import Oracle, OracleError

import leadline
from leadline.lite import Interpreter

MODELS = runnable_models()
UNRUNNABLE = [model for model in real_models() if model.name in REFUSED]


@pytest.fixture(scope="module")
def oracle():
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    with Oracle() as running:
        yield running


def run(interpreter: Interpreter, inputs: list[np.ndarray]) -> list[np.ndarray]:
    for details, value in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(details["index"], value)
    interpreter.invoke()
    return [np.asarray(interpreter.get_tensor(item["index"])) for item in interpreter.get_output_details()]


def assert_close(got: np.ndarray, expected: np.ndarray, model: RealModel, what: str) -> None:
    assert got.dtype == expected.dtype, what
    assert got.shape == expected.shape, what
    if expected.dtype.kind in "fc":
        np.testing.assert_array_equal(np.isfinite(got), np.isfinite(expected), err_msg=what)
        finite = np.isfinite(expected)
        largest = np.max(np.abs(expected[finite]), initial=0)
        difference = np.max(np.abs(got[finite] - expected[finite]), initial=0)
        assert difference <= model.tolerance * largest, f"{what}: {difference} apart, largest is {largest}"
    elif expected.dtype.kind in "iu":
        difference = np.max(np.abs(got.astype(np.int64) - expected.astype(np.int64)), initial=0)
        assert difference <= 1, f"{what}: {difference} steps apart"
    else:
        np.testing.assert_array_equal(got, expected, err_msg=what)


# LiteRT multiplies by a per-tensor scale that a tensor quantized per channel does not have: all its outputs are 0.
# test_per_channel_matmul_is_right states the model in numpy instead.
LITERT_IS_WRONG = {"litert_static_w8_a16_quantized_q_einsum"}


def test_per_channel_matmul_is_right():
    path = next((model.path for model in MODELS if model.name in LITERT_IS_WRONG), None)
    if path is None:
        pytest.skip(NO_SHARED)
    interpreter = Interpreter(path)
    interpreter.allocate_tensors()
    (details,) = interpreter.get_input_details()
    values = np.random.default_rng(0).integers(-500, 500, details["shape"]).astype(np.int16)
    (output,) = run(interpreter, [values])
    weights = interpreter.get_tensor(1).astype(np.float64)
    scales = interpreter.get_tensor_details()[1]["quantization_parameters"]["scales"].astype(np.float64)
    real = (values.reshape(-1, 128) * details["quantization"][0]) @ (weights * scales)
    levels = np.clip(np.round(real / interpreter.get_output_details()[0]["quantization"][0]), -32768, 32767)
    assert np.max(np.abs(levels - output.reshape(levels.shape))) <= 1


@pytest.mark.skipif(not MODELS, reason=NO_SHARED)
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_outputs_are_those_of_litert(model, oracle):
    interpreters = [Interpreter(model.path, num_threads=threads) for threads in (1, 2)]
    for interpreter in interpreters:
        interpreter.allocate_tensors()
    if model.name in LITERT_DOES_NOT_RUN or model.name in LITERT_IS_WRONG:
        inputs = seeded_inputs(model.name, interpreters[0].get_input_details())
        expected = run(interpreters[0], inputs)
    else:
        inputs, expected = oracle.run(model.path, seed=model.name)
    for interpreter, threads in zip(interpreters, (1, 2), strict=True):
        outputs = run(interpreter, inputs)
        for i, (got, wanted) in enumerate(zip(outputs, expected, strict=True)):
            assert_close(got, wanted, model, f"output {i} with {threads} threads")
        assert interpreter.counted_peak_bytes() == interpreter.plan().peak_bytes


@pytest.mark.skipif(not UNRUNNABLE, reason=NO_SHARED)
@pytest.mark.parametrize("model", UNRUNNABLE, ids=lambda model: model.name)
def test_what_is_refused_is_refused_for_a_reason(model):
    """When one of these runs, it belongs to the others."""
    with pytest.raises((leadline.InvalidModelError, leadline.UnsupportedError)) as caught:
        Interpreter(model.path).allocate_tensors()
    assert REFUSED[model.name] in str(caught.value)


@pytest.mark.skipif(not MODELS, reason=NO_SHARED)
@pytest.mark.parametrize("name", sorted(LITERT_DOES_NOT_RUN))
def test_what_litert_does_not_run_it_still_does_not_run(name, oracle):
    path = next(model.path for model in MODELS if model.name == name)
    with pytest.raises(OracleError, match="unresolved custom op|Select TensorFlow op"):
        oracle.run(path, seed=name)
