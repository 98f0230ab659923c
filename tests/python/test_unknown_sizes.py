# SPDX-License-Identifier: Apache-2.0
"""Models that leave sizes of their inputs open: nothing fails for a placeholder before the caller said the sizes."""

import numpy as np
import pytest
import test_cli

import leadline
from leadline.lite import Interpreter

F32 = np.float32
RNG = np.random.default_rng(18)


def windows(channels: int = 3) -> bytes:
    """Images of any size through two 3x3 convolutions without padding, with the signature 'serve' (image) -> (map)."""
    builder = leadline.ModelBuilder()
    x = builder.input("image", F32, [1, 1, 1, channels], signature=[-1, -1, -1, channels])
    value = x
    for i, count in enumerate((4, 2)):
        inputs = channels if i == 0 else 4
        w = builder.constant(f"w{i}", RNG.normal(size=(count, 3, 3, inputs)).astype(F32))
        b = builder.constant(f"b{i}", RNG.normal(size=count).astype(F32))
        y = builder.tensor(f"y{i}", F32, [1, 1, 1, count], signature=[-1, -1, -1, count])
        builder.node("CONV_2D", [value, w, b], [y], padding=1, stride_w=1, stride_h=1)
        value = y
    builder.output(value)
    builder.signature("serve", builder, {"picture": x}, {"map": value})
    return builder.to_tflite()


def pair() -> bytes:
    """a[?, 4] and what follows the first three rows of b[?, 4]."""
    builder = leadline.ModelBuilder()
    a = builder.input("a", F32, [1, 4], signature=[-1, 4])
    b = builder.input("b", F32, [1, 4], signature=[-1, 4])
    begin, size = (builder.constant(n, np.array(v, np.int32)) for n, v in (("begin", [3, 0]), ("size", [-1, 4])))
    tail = builder.tensor("tail", F32, [1, 4], signature=[-1, 4])
    total = builder.tensor("sum", F32, [1, 4], signature=[-1, 4])
    builder.node("SLICE", [b, begin, size], [tail])
    builder.node("CONCATENATION", [a, tail], [total], axis=0)
    builder.output(total)
    return builder.to_tflite()


WINDOWS = windows()


def image(height: int, width: int, batch: int = 1) -> np.ndarray:
    return RNG.normal(size=(batch, height, width, 3)).astype(F32)


def expected(content: bytes, value: np.ndarray) -> np.ndarray:
    """By an interpreter that knows this size only."""
    interpreter = Interpreter(model_content=content, disabled_passes=["all"])
    interpreter.resize_tensor_input(0, value.shape)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, value)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def test_looking_and_resizing_come_before_the_sizes(litert):
    interpreter = Interpreter(model_content=WINDOWS)
    (details,) = interpreter.get_input_details()
    np.testing.assert_array_equal(details["shape_signature"], [-1, -1, -1, 3])
    assert interpreter.get_output_details()[0]["name"] == "y1"
    assert len(interpreter.get_tensor_details()) == 7
    assert interpreter.get_signature_list() == {"serve": {"inputs": ["picture"], "outputs": ["map"]}}
    assert "not allocated" in repr(interpreter)
    interpreter.reset_all_variables()
    peer = litert(model_content=WINDOWS)
    for size in ((9, 7), (5, 5), (16, 33)):
        value = image(*size, batch=2)
        results = []
        for each in (interpreter, peer):
            each.resize_tensor_input(0, value.shape, strict=True)
            each.allocate_tensors()
            each.set_tensor(0, value)
            each.invoke()
            results.append(each.get_tensor(each.get_output_details()[0]["index"]))
        assert results[0].shape == (2, size[0] - 4, size[1] - 4, 2)
        np.testing.assert_allclose(results[0], results[1], atol=1e-4)


def test_what_cannot_be_planned_yet_says_what_it_needs():
    interpreter = Interpreter(model_content=WINDOWS)
    for ask in (interpreter.allocate_tensors, interpreter.plan):
        with pytest.raises(
            leadline.InvalidArgumentError, match=r"'image' \(tensor 0\) of shape \[\?, \?, \?, 3\]"
        ) as e:
            ask()
        assert "resize_tensor_input" in str(e.value) and "shapes=" in str(e.value)
    interpreter.resize_tensor_input(0, [1, 3, 3, 3])  # said, and too small: now it is an error of the sizes
    with pytest.raises(leadline.InvalidModelError, match="a window of 3 does not fit into 1 values"):
        interpreter.allocate_tensors()
    interpreter.resize_tensor_input(0, [1, 5, 5, 3])
    interpreter.allocate_tensors()
    assert interpreter.plan().peak_bytes == Interpreter(model_content=WINDOWS).plan({0: [1, 5, 5, 3]}).peak_bytes


def test_a_plan_takes_shapes_and_leaves_the_interpreter_alone():
    interpreter = Interpreter(model_content=WINDOWS)
    plans = [interpreter.plan(shapes={key: [1, 64, 48, 3]}) for key in ("image", "picture", 0)]
    assert len({plan.peak_bytes for plan in plans}) == 1
    assert interpreter.plan({"image": [1, 128, 96, 3]}).peak_bytes > plans[0].peak_bytes
    with pytest.raises(leadline.InvalidArgumentError, match="'image'"):
        interpreter.plan()
    with pytest.raises(leadline.InvalidArgumentError, match="no input called 'picure'; it has image, picture"):
        interpreter.plan(shapes={"picure": [1, 8, 8, 3]})
    interpreter.resize_tensor_input(0, [1, 64, 48, 3])
    interpreter.allocate_tensors()
    interpreter.invoke()
    assert interpreter.counted_peak_bytes() == plans[0].peak_bytes == interpreter.plan().peak_bytes


def test_inputs_are_resized_in_any_order():
    content = pair()
    for order in ((0, 1), (1, 0)):
        interpreter = Interpreter(model_content=content)
        shapes = {0: (2, 4), 1: (5, 4)}
        for index in order:
            interpreter.resize_tensor_input(index, shapes[index])
        interpreter.allocate_tensors()
        values = {index: RNG.normal(size=shape).astype(F32) for index, shape in shapes.items()}
        for index, value in values.items():
            interpreter.set_tensor(index, value)
        interpreter.invoke()
        result = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
        np.testing.assert_array_equal(result, np.concatenate([values[0], values[1][3:]]))


def test_signature_runners_take_any_size():
    runner = Interpreter(model_content=WINDOWS).get_signature_runner()
    assert list(runner.get_input_details()) == ["picture"]
    for size in ((5, 5), (40, 21), (8, 9), (5, 5)):
        value = image(*size, batch=3)
        np.testing.assert_allclose(runner(picture=value)["map"], expected(WINDOWS, value), atol=1e-4)


def test_jobs_take_the_sizes_from_the_samples():
    model = leadline.Model.from_bytes(WINDOWS)
    samples = [[image(12, 10)] for _ in range(4)]
    assert not leadline.calibrate.plan(model).complete
    assert leadline.calibrate(model, samples).range(0, 0) is not None
    assert not leadline.quantize.plan(model, "int8").complete
    quantized = leadline.quantize(model, "int8", samples)
    assert not leadline.debug.plan(model, quantized).complete
    assert len(leadline.debug(model, quantized, samples).layers) >= 2
    result = leadline.evaluate(quantized, samples, metric="mse", reference=model)
    assert result.samples == 4


def test_the_command_line_says_or_takes_the_sizes(tmp_path):
    path = tmp_path / "windows.tflite"
    path.write_bytes(WINDOWS)
    np.save(tmp_path / "x.npy", image(9, 8))

    refused = test_cli.leadline("plan", path, expect=test_cli.USAGE).stderr
    assert "--shape" in refused and "'image'" in refused
    taken = test_cli.leadline_json("plan", path, "--shape", "picture=1,64,48,3", "--threads", 1)
    peak = Interpreter(model_content=WINDOWS, num_threads=1).plan({0: [1, 64, 48, 3]}).peak_bytes
    assert taken["peak_bytes"] == peak
    test_cli.leadline("run", path, "--input", f"picture={tmp_path / 'x.npy'}", "--output", tmp_path / "y.npy")
    assert np.load(tmp_path / "y.npy").shape == (1, 5, 4, 2)


def test_ten_thousand_sizes_stay_flat():
    interpreter = Interpreter(model_content=WINDOWS, num_threads=1)

    def resize(height: int, width: int) -> None:
        interpreter.resize_tensor_input(0, [1, height, width, 3])
        interpreter.allocate_tensors()
        interpreter.invoke()

    sizes = RNG.integers(5, 40, size=(10_000, 2)).tolist()
    for size in sizes[:500]:
        resize(*size)
    resident, held = _resident(), interpreter.memory_bytes
    for size in sizes[500:]:
        resize(*size)
    assert _resident() - resident < 4e6
    assert interpreter.memory_bytes < held + 1e6


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def test_plans_of_recent_sizes_go_first_when_memory_is_short():
    plan = Interpreter(model_content=WINDOWS, num_threads=1).plan({0: [1, 200, 200, 3]})
    interpreter = Interpreter(model_content=WINDOWS, num_threads=1, budget=plan.peak_bytes)
    for height in range(5, 20):
        value = image(height, 11)
        interpreter.resize_tensor_input(0, value.shape)
        interpreter.allocate_tensors()
        interpreter.set_tensor(0, value)
        interpreter.invoke()
        assert interpreter.counted_peak_bytes() == interpreter.plan().peak_bytes
    interpreter.resize_tensor_input(0, [1, 200, 200, 3])
    interpreter.allocate_tensors()  # needs all of the budget
    interpreter.invoke()
    assert interpreter.counted_peak_bytes() == plan.peak_bytes


def test_a_size_that_comes_back_computes_the_same():
    interpreter = Interpreter(model_content=WINDOWS)
    values = [image(*size) for size in ((9, 7), (30, 31), (9, 7), (12, 40), (30, 31))]
    for value in values * 2:
        interpreter.resize_tensor_input(0, value.shape)
        interpreter.allocate_tensors()
        assert interpreter.plan().peak_bytes == Interpreter(model_content=WINDOWS).plan({0: value.shape}).peak_bytes
        interpreter.set_tensor(0, value)
        interpreter.invoke()
        assert interpreter.counted_peak_bytes() == interpreter.plan().peak_bytes
        result = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
        np.testing.assert_allclose(result, expected(WINDOWS, value), atol=1e-4)
