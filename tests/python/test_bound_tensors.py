# SPDX-License-Identifier: Apache-2.0
"""Interpreter.bind_tensor: inputs, outputs and variables that live in arrays of the caller."""

import gc
import sys
import weakref

import numpy as np
import pytest
import sample_models

import leadline
from leadline import lite

F32 = np.float32
X, Y = 0, 2  # of sample_models.add()


def bound(x: np.ndarray, y: np.ndarray) -> lite.Interpreter:
    interpreter = lite.Interpreter(model_content=sample_models.add())
    interpreter.bind_tensor(X, x)
    interpreter.bind_tensor(Y, y)
    interpreter.allocate_tensors()
    return interpreter


def test_arrays_are_read_and_written_where_they_are():
    x, y = np.ones((1, 4), F32), np.zeros((1, 4), F32)
    interpreter = bound(x, y)
    plan = interpreter.plan()
    assert plan.bound_bytes == 32
    assert "inputs/outputs" not in plan.categories
    assert [t.index for t in plan.tensors if t.bound] == [X, Y]
    assert plan.to_dict()["bound_bytes"] == 32
    interpreter.invoke()
    assert y.tolist() == [[1, 2, 3, 4]]
    x += 1  # without a call to the interpreter
    interpreter.invoke()
    assert y.tolist() == [[2, 3, 4, 5]]
    assert interpreter.get_tensor(Y).tolist() == y.tolist()
    assert np.shares_memory(interpreter.tensor(Y)(), y)
    assert interpreter.counted_peak_bytes() == interpreter.plan().peak_bytes == plan.peak_bytes


def test_large_arrays_are_not_counted():
    size = 4_000_000
    content = sample_models.chain(length=1, size=size)
    x, y = np.full((1, size), 0.5, F32), np.empty((1, size), F32)
    interpreter = lite.Interpreter(model_content=content, budget="1MB")
    interpreter.bind_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.bind_tensor(interpreter.get_output_details()[0]["index"], y)
    interpreter.allocate_tensors()
    interpreter.invoke()
    np.testing.assert_allclose(y, np.tanh(x), rtol=1e-5)
    assert interpreter.counted_peak_bytes() == interpreter.plan().peak_bytes < 100_000


def test_another_array_for_every_run():
    interpreter = lite.Interpreter(model_content=sample_models.add())
    for i in range(5):
        x, y = np.full((1, 4), i, F32), np.empty((1, 4), F32)
        interpreter.bind_tensor(X, x)
        interpreter.bind_tensor(Y, y)
        interpreter.allocate_tensors()
        interpreter.invoke()
        assert y.tolist() == [[i, i + 1, i + 2, i + 3]]


def test_none_gives_the_tensor_its_own_memory_again():
    x, y = np.ones((1, 4), F32), np.zeros((1, 4), F32)
    interpreter = bound(x, y)
    interpreter.invoke()
    interpreter.bind_tensor(X, None)
    interpreter.bind_tensor(Y, None)
    interpreter.set_tensor(X, np.zeros((1, 4), F32))
    interpreter.invoke()
    assert interpreter.get_tensor(Y).tolist() == [[0, 1, 2, 3]]
    assert y.tolist() == [[1, 2, 3, 4]]
    assert interpreter.counted_peak_bytes() == interpreter.plan().peak_bytes


def test_arrays_are_held_until_they_are_replaced():
    x = np.ones((1, 4), F32)
    interpreter = lite.Interpreter(model_content=sample_models.add())
    references = sys.getrefcount(x)
    interpreter.bind_tensor(X, x)
    assert sys.getrefcount(x) > references
    interpreter.bind_tensor(X, np.zeros((1, 4), F32))  # nothing else holds this one
    gc.collect()
    assert sys.getrefcount(x) == references
    interpreter.allocate_tensors()
    interpreter.invoke()
    assert interpreter.get_tensor(Y).tolist() == [[0, 1, 2, 3]]
    interpreter.bind_tensor(X, x)
    array = weakref.ref(x)
    del x
    assert array() is not None
    del interpreter
    assert array() is None


def test_read_only_arrays_serve_inputs_only():
    x = np.ones((1, 4), F32)
    x.flags.writeable = False
    interpreter = bound(x, np.zeros((1, 4), F32))
    interpreter.invoke()
    assert interpreter.get_tensor(Y).tolist() == [[1, 2, 3, 4]]
    assert not interpreter.tensor(X)().flags.writeable
    with pytest.raises(leadline.InvalidArgumentError, match="read-only"):
        interpreter.bind_tensor(Y, x)


def test_a_bound_input_cannot_be_set():
    interpreter = bound(np.ones((1, 4), F32), np.zeros((1, 4), F32))
    with pytest.raises(leadline.InvalidArgumentError, match="bound to memory of the caller"):
        interpreter.set_tensor(X, np.zeros((1, 4), F32))


def unaligned() -> np.ndarray:
    return np.zeros(17, np.uint8)[1:].view(F32).reshape(1, 4)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        ([[1, 2, 3, 4]], "expected a numpy array"),
        (np.zeros((1, 4)), "FLOAT64 but expected FLOAT32"),
        (np.zeros((1, 4), ">f4"), "expected FLOAT32"),
        (np.zeros((1, 8), F32)[:, ::2], "not C-contiguous"),
        (np.zeros((4, 1), F32), "has shape"),
        (np.zeros((1, 5), F32), "has shape"),
        (unaligned(), "not aligned to 4 bytes"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(array, message):
    x, y = np.ones((1, 4), F32), np.zeros((1, 4), F32)
    interpreter = bound(x, y)
    for index in (X, Y):
        with pytest.raises(leadline.InvalidArgumentError, match=message):
            interpreter.bind_tensor(index, array)
    interpreter.invoke()  # as it was before
    assert y.tolist() == [[1, 2, 3, 4]]


def test_other_tensors_are_refused():
    interpreter = lite.Interpreter(model_content=sample_models.add())
    with pytest.raises(leadline.InvalidArgumentError, match="cannot be bound"):
        interpreter.bind_tensor(1, np.zeros(4, F32))
    with pytest.raises(ValueError, match="Invalid tensor index"):
        interpreter.bind_tensor(7, np.zeros(4, F32))
    texts = lite.Interpreter(model_content=sample_models.strings())
    with pytest.raises(leadline.UnsupportedError):
        texts.bind_tensor(0, np.zeros(3, "S1"))


def test_an_output_may_not_overlap_an_input():
    memory = np.ones((1, 8), F32)
    interpreter = lite.Interpreter(model_content=sample_models.add())
    interpreter.bind_tensor(X, memory[:, :4])
    interpreter.bind_tensor(Y, memory[:, 2:6])
    with pytest.raises(leadline.InvalidArgumentError, match="overlaps"):
        interpreter.allocate_tensors()
    interpreter.bind_tensor(Y, memory[:, 4:])
    interpreter.allocate_tensors()
    interpreter.invoke()
    assert memory.tolist() == [[1, 1, 1, 1, 1, 2, 3, 4]]


def test_after_a_resize_arrays_of_the_new_shape_are_wanted():
    interpreter = bound(np.ones((1, 4), F32), np.zeros((1, 4), F32))
    interpreter.invoke()
    interpreter.resize_tensor_input(X, [2, 4])
    with pytest.raises(leadline.InvalidArgumentError, match=r"has shape \[2, 4\]"):
        interpreter.allocate_tensors()
    x, y = np.ones((2, 4), F32), np.zeros((2, 4), F32)
    interpreter.bind_tensor(X, x)
    interpreter.bind_tensor(Y, y)
    interpreter.allocate_tensors()
    interpreter.invoke()
    assert y.tolist() == [[1, 2, 3, 4]] * 2
    assert interpreter.counted_peak_bytes() == interpreter.plan().peak_bytes


def test_outputs_whose_shape_depends_on_data():
    interpreter = lite.Interpreter(model_content=sample_models.where())
    x, y = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
    interpreter.allocate_tensors()
    data = np.zeros(x["shape"], x["dtype"])
    data.reshape(-1)[:2] = 1
    interpreter.set_tensor(x["index"], data)
    interpreter.invoke()
    expected = interpreter.get_tensor(y["index"])
    result = np.full(expected.shape, -1, expected.dtype)
    interpreter.bind_tensor(y["index"], result)
    interpreter.invoke()
    np.testing.assert_array_equal(result, expected)
    interpreter.bind_tensor(y["index"], np.zeros((5, *expected.shape[1:]), expected.dtype))
    with pytest.raises(ValueError, match="has shape"):
        interpreter.invoke()
    interpreter.bind_tensor(y["index"], None)
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(y["index"]), expected)
