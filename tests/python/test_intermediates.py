# SPDX-License-Identifier: Apache-2.0
"""get_tensor() of intermediate results without experimental_preserve_all_tensors."""

import numpy as np
import pytest
import sample_models

import leadline
from leadline.lite import Interpreter

F32 = np.float32


def branches() -> bytes:
    """y = tanh(relu(x @ w + b) * 2) + x, in nodes that passes merge and memory that is reused."""
    rng = np.random.default_rng(7)
    builder = leadline.ModelBuilder()
    x = builder.input("x", F32, [1, 64], signature=[-1, 64])
    w = builder.constant("w", rng.normal(size=(64, 64)).astype(F32))
    b = builder.constant("b", rng.normal(size=64).astype(F32))
    two = builder.constant("two", np.full(1, 2, F32))
    names = ("dense", "relu", "twice", "tanh", "y")
    dense, relu, twice, tanh, y = (builder.tensor(n, F32, [1, 64], signature=[-1, 64]) for n in names)
    builder.node("FULLY_CONNECTED", [x, w, b], [dense])
    builder.node("RELU", [dense], [relu])
    builder.node("MUL", [relu, two], [twice])
    builder.node("TANH", [twice], [tanh])
    builder.node("ADD", [tanh, x], [y])
    builder.output(y)
    return builder.to_tflite()


def run(content: bytes, value: np.ndarray, **options) -> Interpreter:
    interpreter = Interpreter(model_content=content, **options)
    interpreter.resize_tensor_input(0, value.shape)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, value)
    interpreter.invoke()
    return interpreter


def test_every_tensor_has_the_value_of_the_run():
    content = branches()
    value = np.random.default_rng(1).normal(size=(3, 64)).astype(F32)
    interpreter = run(content, value)
    preserving = run(content, value, experimental_preserve_all_tensors=True)
    peak = interpreter.counted_peak_bytes()
    for details in interpreter.get_tensor_details():
        index = details["index"]
        np.testing.assert_allclose(
            interpreter.get_tensor(index), preserving.get_tensor(index), rtol=1e-5, atol=1e-6, err_msg=details["name"]
        )
    assert interpreter.counted_peak_bytes() == peak == interpreter.plan().peak_bytes  # charged beside the run
    assert interpreter.plan().recompute_bytes > 0 == preserving.plan().recompute_bytes
    assert "a second run" in str(interpreter.plan())
    interpreter.invoke()  # continues as before
    np.testing.assert_allclose(interpreter.get_tensor(8), preserving.get_tensor(8), rtol=1e-5, atol=1e-6)


def test_it_is_charged_to_the_budget():
    content = sample_models.chain(length=4, size=100_000)
    peak = Interpreter(model_content=content).plan().peak_bytes
    interpreter = Interpreter(model_content=content, budget=peak + 1000)
    interpreter.allocate_tensors()
    interpreter.invoke()
    middle = next(d["index"] for d in interpreter.get_tensor_details() if d["name"] == "t1")
    with pytest.raises(leadline.BudgetError, match=r"'t1' is an intermediate result, and computing it again does not"):
        interpreter.get_tensor(middle)
    interpreter.invoke()
    plan = interpreter.plan()
    enough = Interpreter(model_content=content, budget=peak + plan.recompute_bytes + 100_000)
    enough.allocate_tensors()
    enough.invoke()
    assert enough.get_tensor(middle).shape == (1, 100_000)


def test_state_is_left_alone():
    builder = leadline.ModelBuilder()
    size = builder.constant("size", np.array([4], np.int32))
    noise, doubled, y = (builder.tensor(n, F32, [4]) for n in ("noise", "doubled", "y"))
    x = builder.input("x", F32, [4])
    builder.node("RANDOM_UNIFORM", [size], [noise], seed=3)
    builder.node("ADD", [noise, noise], [doubled])
    builder.node("ADD", [doubled, x], [y])
    builder.output(y)
    content = builder.to_tflite()
    interpreter = Interpreter(model_content=content)
    interpreter.allocate_tensors()
    interpreter.invoke()
    first = interpreter.get_tensor(y)
    with pytest.raises(leadline.InvalidArgumentError, match="state.*preserve_all_tensors"):
        interpreter.get_tensor(doubled)
    interpreter.invoke()
    again = Interpreter(model_content=content)
    again.allocate_tensors()
    again.invoke()
    np.testing.assert_array_equal(again.get_tensor(y), first)
    again.invoke()
    np.testing.assert_array_equal(again.get_tensor(y), interpreter.get_tensor(y))


def test_shapes_that_depend_on_data():
    builder = leadline.ModelBuilder()
    x = builder.input("x", F32, [6])
    zero = builder.constant("zero", np.zeros(1, F32))
    flags, places = builder.tensor("flags", np.bool_, [6]), builder.tensor("places", np.int64, [6, 1])
    doubled, y = builder.tensor("doubled", np.int64, [6, 1]), builder.tensor("y", np.int64, [6, 1])
    builder.node("GREATER", [x, zero], [flags])
    builder.node("WHERE", [flags], [places])
    builder.node("ADD", [places, places], [doubled])
    builder.node("ADD", [doubled, doubled], [y])
    builder.output(y)
    interpreter = run(builder.to_tflite(), np.array([1, -1, 2, -2, 3, 0], F32))
    np.testing.assert_array_equal(interpreter.get_tensor(places), [[0], [2], [4]])
    np.testing.assert_array_equal(interpreter.get_tensor(doubled), [[0], [4], [8]])
    np.testing.assert_array_equal(interpreter.get_tensor(flags), [True, False, True, False, True, False])


def test_weights_of_16_bits_are_widened_when_they_are_read():
    content = leadline.quantize(branches(), "float16", min_weight_elements=1)
    value = np.random.default_rng(2).normal(size=(2, 64)).astype(F32)
    interpreter = run(content, value)
    preserving = run(content, value, experimental_preserve_all_tensors=True)
    widened = [i for op in interpreter._get_ops_details() if op["op_name"] == "DEQUANTIZE" for i in op["outputs"]]
    assert widened
    for index in widened:
        np.testing.assert_array_equal(interpreter.get_tensor(index), preserving.get_tensor(index))
