# SPDX-License-Identifier: Apache-2.0
"""leadline.lite.Interpreter by itself: calls, arguments, errors, views, strings, signatures."""

import gc
import pathlib
import pickle

import numpy as np
import pytest
import sample_models
from model_list import seeded_inputs

import leadline
from leadline.lite import Interpreter, OpResolverType, load_delegate

F32 = np.float32


def ready(content: bytes, **options) -> Interpreter:
    interpreter = Interpreter(model_content=content, **options)
    interpreter.allocate_tensors()
    return interpreter


def run(interpreter: Interpreter, *inputs) -> np.ndarray:
    for details, value in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(details["index"], value)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


# Making one -------------------------------------------------------------------------------------


def test_path_may_be_a_string_or_pathlike(tmp_path):
    path = tmp_path / "add.tflite"
    path.write_bytes(sample_models.add())
    for model_path in (str(path), pathlib.Path(path)):
        interpreter = Interpreter(model_path)
        interpreter.allocate_tensors()
        assert leadline.Model.load(model_path).file_bytes == path.stat().st_size
        assert run(interpreter, np.ones((1, 4), F32)).tolist() == [[1, 2, 3, 4]]


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_content_may_be_any_buffer_and_is_kept_or_copied(kind):
    source = bytearray(sample_models.add())
    content = kind(source)
    interpreter = Interpreter(model_content=content)
    if kind is bytearray:
        content[:] = bytes(len(content))  # the interpreter has a copy
    if kind is memoryview:
        source[:] = bytes(len(source))
    del content
    gc.collect()
    interpreter.allocate_tensors()
    assert run(interpreter, np.ones((1, 4), F32)).tolist() == [[1, 2, 3, 4]]


def test_all_arguments_of_tf_lite_are_accepted_in_their_order():
    resolver = OpResolverType.BUILTIN_REF
    interpreter = Interpreter(None, sample_models.add(), None, 2, resolver, True, True, True)
    interpreter.allocate_tensors()
    assert run(interpreter, np.zeros((1, 4), F32)).tolist() == [[0, 1, 2, 3]]


@pytest.mark.parametrize("threads", [None, -1, 1, 2, np.int64(2)])
def test_thread_counts(threads):
    assert run(ready(sample_models.dense(), num_threads=threads), np.ones((1, 256), F32)).shape == (1, 256)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "`model_path` or `model_content` must be specified"),
        ({"model_path": "a", "model_content": b"b"}, "both"),
        ({"model_path": "/no/such/file.tflite"}, "/no/such/file.tflite"),
        ({"model_path": "/"}, "/"),
        ({"model_content": b"short"}, "bytes"),
        ({"model_content": b"wrong_identifier" * 10}, "TFL3"),
        ({"model_content": sample_models.add()[:200]}, "truncated"),
        ({"model_content": sample_models.add(), "num_threads": 0}, "num_threads should >= 1"),
        ({"model_content": sample_models.add(), "num_threads": -2}, "num_threads should >= 1"),
        ({"model_content": sample_models.add(), "num_threads": "2"}, "type of num_threads should be int"),
        ({"model_content": sample_models.add(), "experimental_op_resolver_type": "test"}, "op resolver type: test"),
        ({"model_content": sample_models.add(), "experimental_delegates": [object()]}, "delegates"),
        ({"model_content": sample_models.add(), "budget": "lots"}, "lots"),
        ({"model_content": sample_models.add(), "budget": -5}, "-5"),
        ({"model_content": sample_models.add(), "budget": 1.5}, "budget should be"),
    ],
)
def test_bad_arguments_are_value_errors_that_say_what(arguments, message):
    with pytest.raises(ValueError, match=message) as caught:
        Interpreter(**arguments)
    assert isinstance(caught.value, leadline.Error)


def test_missing_file_is_an_io_error_too():
    with pytest.raises(OSError) as caught:
        Interpreter("/no/such/file.tflite")
    assert isinstance(caught.value, leadline.IoError)
    assert caught.value.code == "io"


def test_delegates_are_refused_clearly():
    with pytest.raises(ValueError, match="Failed to load delegate from libedgetpu.so.1\n.*CPU"):
        load_delegate("libedgetpu.so.1")


def test_unknown_op_can_be_inspected_and_fails_when_allocated():
    interpreter = Interpreter(model_content=sample_models.custom())
    assert interpreter.get_input_details()[0]["name"] == "x"
    assert interpreter._get_ops_details()[0]["op_name"] == "NobodyKnowsThisOp"
    assert interpreter.plan().missing_ops == ["NobodyKnowsThisOp"]
    with pytest.raises(RuntimeError, match="NobodyKnowsThisOp") as caught:
        interpreter.allocate_tensors()
    assert isinstance(caught.value, leadline.UnsupportedError)
    assert isinstance(caught.value, NotImplementedError)
    assert "NobodyKnowsThisOp" in interpreter._repr_html_()


def test_errors_have_codes_and_survive_pickling():
    with pytest.raises(leadline.BudgetError) as caught:
        Interpreter(model_content=sample_models.dense(), budget=1000)
    error = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(error, MemoryError)
    assert (error.code, error.limit) == ("budget", 1000)
    assert error.needed > 1000
    assert str(error) == str(caught.value)


# Tensors ----------------------------------------------------------------------------------------


def test_order_of_calls_is_that_of_tf_lite():
    interpreter = Interpreter(model_content=sample_models.add())
    with pytest.raises(RuntimeError, match="Invoke called on model that is not ready"):
        interpreter.invoke()
    with pytest.raises(ValueError, match=r"Tensor data is null. Run allocate_tensors\(\) first"):
        interpreter.get_tensor(0)
    with pytest.raises(ValueError, match="Tensor data is null"):
        interpreter.tensor(0)()
    with pytest.raises(ValueError, match="Tensor is unallocated"):
        interpreter.set_tensor(0, np.zeros((1, 4), F32))
    interpreter.allocate_tensors()
    interpreter.allocate_tensors()
    interpreter.invoke()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.zeros((1, 4)), "Got value of type FLOAT64 but expected type FLOAT32 for input 0, name: x"),
        (np.zeros((1, 4), np.int32), "Got value of type INT32 but expected type FLOAT32"),
        (np.zeros(4, F32), "Dimension mismatch. Got 1 but expected 2 .*name: x"),
        (np.zeros((1, 5), F32), "Dimension mismatch. Got 5 but expected 4 for dimension 1"),
        ("text", "Got value of type STRING"),
        (None, "Got value of type STRING"),
        ([[1], [1, 2]], "Failed to convert value into readable tensor"),
    ],
)
def test_set_tensor_refuses_what_does_not_fit(value, message):
    with pytest.raises(ValueError, match=message):
        ready(sample_models.add()).set_tensor(0, value)


def test_set_tensor_takes_any_memory_layout():
    interpreter = ready(sample_models.two_inputs())
    a = np.arange(6, dtype=F32).reshape(3, 2)
    result = run(interpreter, a.T, a.T.astype(">f4"))
    np.testing.assert_array_equal(result, 2 * a.T)


@pytest.mark.parametrize("index", [-1, 3, 99])
def test_bad_tensor_index_is_a_value_error(index):
    interpreter = ready(sample_models.add())
    for call in (
        lambda: interpreter.get_tensor(index),
        lambda: interpreter.tensor(index)(),
        lambda: interpreter.set_tensor(index, np.zeros(1, F32)),
        lambda: interpreter.resize_tensor_input(index, [1]),
    ):
        with pytest.raises(ValueError, match=f"Invalid tensor index {index} exceeds max tensor index 3"):
            call()


def test_index_that_is_no_integer_is_a_type_error():
    interpreter = ready(sample_models.add())
    for call in (interpreter.get_tensor, interpreter.tensor):
        with pytest.raises(TypeError):
            call("x")


def test_get_tensor_is_a_copy():
    interpreter = ready(sample_models.add())
    first = run(interpreter, np.zeros((1, 4), F32))
    second = run(interpreter, np.ones((1, 4), F32))
    assert first.tolist() == [[0, 1, 2, 3]]
    second[:] = 9
    assert interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).tolist() == [[1, 2, 3, 4]]


def test_tensor_gives_views_that_read_and_write():
    interpreter = ready(sample_models.add())
    x, y = interpreter.tensor(0), interpreter.tensor(2)
    view = x()
    assert view.base is not None
    view[:] = 10
    assert not np.array_equal(x(), np.zeros((1, 4)))
    interpreter.invoke()
    assert y().tolist() == [[10, 11, 12, 13]]


def test_live_views_never_make_a_call_fail():
    interpreter = ready(sample_models.add())
    held = [interpreter.tensor(0)(), interpreter.tensor(2)()]
    held[0][:] = 1
    interpreter.allocate_tensors()
    interpreter.invoke()
    interpreter.resize_tensor_input(0, [5, 4])
    interpreter.allocate_tensors()
    interpreter.tensor(0)()[:] = 2
    interpreter.invoke()
    assert held[1].shape == (1, 4)
    assert held[0].tolist() == [[1, 1, 1, 1]]
    assert interpreter.tensor(2)().tolist() == [[2, 3, 4, 5]] * 5


def test_views_outlive_the_interpreter():
    interpreter = ready(sample_models.dense(inputs=512, outputs=512))
    run(interpreter, np.ones((1, 512), F32))
    budget = interpreter.budget
    output, weights = interpreter.tensor(interpreter.get_output_details()[0]["index"])(), interpreter.tensor(1)()
    expected, expected_weights = output.copy(), weights.copy()
    del interpreter
    np.zeros(1 << 20).fill(7)
    np.testing.assert_array_equal(output, expected)
    np.testing.assert_array_equal(weights, expected_weights)
    del output, weights
    assert budget.used == 0


def test_memory_is_given_back_without_the_garbage_collector():
    gc.disable()
    try:
        budget = leadline.Budget("100MB")
        interpreter = ready(sample_models.two_signatures(), budget=budget)
        runner = interpreter.get_signature_runner("square")
        runner(x=np.ones(4, F32))
        del interpreter
        assert runner(x=np.ones(4, F32))["y"].tolist() == [1, 1, 1, 1]
        assert budget.used > 0
        del runner
        assert budget.used == 0
    finally:
        gc.enable()


def test_constants_are_read_only_views():
    interpreter = ready(sample_models.add())
    constant = interpreter.tensor(1)()
    assert constant.tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="read-only"):
        constant[0] = 1


@pytest.mark.parametrize("preserve", [False, True])
def test_intermediates_are_readable(preserve):
    content = sample_models.chain(length=3, size=8)
    x = np.linspace(-1, 1, 8, dtype=F32)[None]
    interpreter = ready(content, experimental_preserve_all_tensors=preserve)
    run(interpreter, x)
    np.testing.assert_allclose(interpreter.get_tensor(1), np.tanh(x), rtol=1e-5)


def test_resize_changes_shapes_and_needs_allocation():
    interpreter = ready(sample_models.add())
    interpreter.resize_tensor_input(0, [3, 4])
    assert interpreter.get_input_details()[0]["shape"].tolist() == [3, 4]
    assert interpreter.get_input_details()[0]["shape_signature"].tolist() == [-1, 4]
    with pytest.raises(RuntimeError, match="not ready"):
        interpreter.invoke()
    interpreter.allocate_tensors()
    assert run(interpreter, np.zeros((3, 4), F32)).shape == (3, 4)
    interpreter.resize_tensor_input(0, (2, 4), strict=True)
    interpreter.allocate_tensors()
    assert run(interpreter, np.zeros((2, 4), F32)).shape == (2, 4)


@pytest.mark.parametrize(
    ("index", "shape", "strict"), [(0, [1, 5], True), (0, [4], True), (0, [-1, 4], False), (2, [1, 4], False)]
)
def test_bad_resize_is_refused_and_changes_nothing(index, shape, strict):
    interpreter = ready(sample_models.add())
    with pytest.raises((ValueError, RuntimeError)):
        interpreter.resize_tensor_input(index, shape, strict=strict)
    assert run(interpreter, np.zeros((1, 4), F32)).tolist() == [[0, 1, 2, 3]]


def test_shape_must_be_one_dimensional():
    with pytest.raises(ValueError, match="Shape should be 1D instead of 2"):
        ready(sample_models.add()).resize_tensor_input(0, [[1, 4]])


def test_inputs_may_be_resized_one_after_the_other():
    interpreter = ready(sample_models.two_inputs())
    interpreter.resize_tensor_input(0, [5, 7])  # does not fit the other input yet
    with pytest.raises(RuntimeError):
        interpreter.allocate_tensors()
    interpreter.resize_tensor_input(1, [5, 7])
    interpreter.allocate_tensors()
    assert run(interpreter, np.ones((5, 7), F32), np.ones((5, 7), F32)).tolist() == [[2] * 7] * 5


def test_empty_tensors():
    interpreter = ready(sample_models.add())
    interpreter.resize_tensor_input(0, [0, 4])
    interpreter.allocate_tensors()
    assert run(interpreter, np.zeros((0, 4), F32)).shape == (0, 4)
    assert interpreter.tensor(0)().shape == (0, 4)


def test_shape_that_depends_on_data():
    interpreter = ready(sample_models.where())
    for mask in ([1, 0, 1, 0, 0, 0, 0, 1], [0] * 8, [1] * 8):
        mask = np.array(mask, bool)
        np.testing.assert_array_equal(run(interpreter, mask), np.argwhere(mask))
        assert interpreter.get_output_details()[0]["shape"].tolist() == [mask.sum(), 1]


# Strings ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        np.array([b"a", b"", b"caf\xc3\xa9"], object),
        np.array(["a", "", "café"]),
        np.array(["a", "", "café"], object),
        np.array([b"a", b"", "café".encode()]),
        ["a", "", "café"],
    ],
)
def test_strings_go_in_and_come_out_as_bytes(words):
    interpreter = ready(sample_models.strings())
    picked = run(interpreter, words, np.array([2, 0], np.int32))
    assert picked.dtype == object
    assert picked.tolist() == ["café".encode(), b"a"]
    assert interpreter.get_tensor(0).tolist() == [b"a", b"", "café".encode()]
    assert interpreter.get_input_details()[0]["dtype"] is np.bytes_


def test_strings_may_hold_zeros_and_be_long():
    interpreter = ready(sample_models.strings())
    words = np.array([b"a\0b\0", b"x" * 100_000, b""], object)
    assert run(interpreter, words, np.array([1, 0], np.int32)).tolist() == [words[1], words[0]]
    words[1] = b"short"
    assert run(interpreter, words, np.array([1, 0], np.int32)).tolist() == [b"short", words[0]]


def test_strings_of_more_dimensions():
    interpreter = ready(sample_models.strings(shape=(2, 2)))
    words = np.array([["a", "b"], ["c", "d"]])
    assert run(interpreter, words, np.array([1, 0], np.int32)).tolist() == [[b"c", b"d"], [b"a", b"b"]]


def test_strings_that_were_never_set_are_empty():
    interpreter = ready(sample_models.strings())
    assert interpreter.get_tensor(0).tolist() == [b"", b"", b""]


def test_string_tensor_refuses_other_types():
    interpreter = ready(sample_models.strings())
    with pytest.raises(ValueError, match="expected str or bytes .*name: words"):
        interpreter.set_tensor(0, np.array([1, 2, 3], object))
    with pytest.raises(ValueError, match="Got value of type INT64 but expected type STRING"):
        interpreter.set_tensor(0, np.array([1, 2, 3]))


# Signatures -------------------------------------------------------------------------------------


def test_signature_runner_takes_and_gives_names():
    interpreter = Interpreter(model_content=sample_models.two_inputs())
    assert interpreter.get_signature_list() == {"both": {"inputs": ["a", "b"], "outputs": ["p", "s"]}}
    runner = interpreter.get_signature_runner()
    result = runner(a=np.full((2, 3), 3, F32), b=np.full((2, 3), 4, F32))
    assert result["s"].tolist() == [[7] * 3] * 2
    assert result["p"].tolist() == [[12] * 3] * 2
    assert list(runner.get_input_details()) == ["a", "b"]
    assert runner.get_output_details()["p"]["name"] == "product"


def test_signature_runner_resizes_its_inputs():
    runner = Interpreter(model_content=sample_models.two_inputs()).get_signature_runner("both")
    for shape in [(5, 7), (1, 2), (2, 3)]:
        assert runner(a=np.ones(shape, F32), b=np.ones(shape, F32))["s"].shape == shape


def test_signatures_on_several_subgraphs():
    interpreter = Interpreter(model_content=sample_models.two_signatures())
    assert interpreter.num_subgraphs() == 2
    x = np.array([1, 2, 3, 4], F32)
    assert interpreter.get_signature_runner("square")(x=x)["y"].tolist() == [1, 4, 9, 16]
    assert interpreter.get_signature_runner("double")(x=x)["y"].tolist() == [2, 4, 6, 8]
    assert interpreter.get_signature_runner("square").get_input_details()["x"]["name"] == "square_x"
    assert interpreter.get_tensor_details(subgraph_index=1)[0]["name"] == "square_x"
    assert interpreter.get_tensor(1, subgraph_index=1).tolist() == [1, 4, 9, 16]


def test_bad_signature_calls_are_value_errors():
    interpreter = Interpreter(model_content=sample_models.two_signatures())
    with pytest.raises(ValueError, match="model has 2 Signatures"):
        interpreter.get_signature_runner()
    with pytest.raises(ValueError, match='Invalid signature_key provided: "none"'):
        interpreter.get_signature_runner("none")
    runner = interpreter.get_signature_runner("square")
    with pytest.raises(ValueError, match="expected 1 vs provided 0"):
        runner()
    with pytest.raises(ValueError, match=r"Invalid Input name \(z\)"):
        runner(z=np.zeros(4, F32))
    with pytest.raises(ValueError, match="Got value of type FLOAT64"):
        runner(x=np.zeros(4))
    with pytest.raises(ValueError, match="subgraph_index is out of range: 2"):
        interpreter.get_tensor_details(subgraph_index=2)


def test_variables_are_shared_between_signatures_and_reset():
    interpreter = Interpreter(model_content=sample_models.counter())
    step, read = interpreter.get_signature_runner("step"), interpreter.get_signature_runner("read")
    one = np.ones(2, F32)
    assert step(x=one)["total"].tolist() == [1, 1]
    assert step(x=one)["total"].tolist() == [2, 2]
    assert read(factor=10 * one)["scaled"].tolist() == [20, 20]
    interpreter.reset_all_variables()
    assert step(x=one)["total"].tolist() == [1, 1]


# More than tf.lite ------------------------------------------------------------------------------


def test_plan_is_data():
    interpreter = Interpreter(model_content=sample_models.chain(length=4, size=1000))
    plan = interpreter.plan()
    assert plan.complete
    assert plan.peak_bytes == sum(plan.categories.values())
    assert plan.arena_bytes >= plan.lower_bound_bytes
    assert [step.op for step in plan.steps] == ["TANH"] * 4
    assert {tensor.name for tensor in plan.tensors} >= {"x", "t0", "t3"}
    assert plan.tensors[0].shape == (1, 1000)
    assert plan.tensors[0].dtype == "float32"
    assert max(phase.bytes for phase in plan.phases) == plan.peak_bytes
    assert plan.to_dict()["peak_bytes"] == plan.peak_bytes
    assert "TANH" in plan.to_json()
    assert str(plan) == plan.to_text()
    assert plan.to_html(title="My <plan>").startswith("<!")
    assert "My &lt;plan&gt;" in plan.to_html(title="My <plan>")
    cell = plan._repr_html_()
    assert (
        "<style" not in cell and "<iframe" in cell and "lower bound" in cell
    )  # nothing reaches the notebook around it


@pytest.mark.parametrize("name", ["add", "chain", "dense", "quantized", "strings", "where", "two_inputs", "slow"])
def test_counted_peak_is_the_planned_peak(name):
    interpreter = ready(getattr(sample_models, name)())
    inputs = seeded_inputs(name, interpreter.get_input_details())
    for _ in range(2):
        run(interpreter, *inputs)
        assert interpreter.counted_peak_bytes() == interpreter.plan().peak_bytes


def test_profile_tells_time_per_node():
    interpreter = ready(sample_models.slow(size=64, count=3))
    with pytest.raises(RuntimeError, match="enable_profile"):
        interpreter.profile()
    interpreter.enable_profile()
    for _ in range(5):
        interpreter.invoke()
    profile = interpreter.profile()
    assert [node.op for node in profile] == ["BATCH_MATMUL", "TANH"] * 3
    assert all(node.runs == 5 and node.total_ms >= 5 * node.fastest_ms for node in profile)
    assert set(profile.by_op()) == {"BATCH_MATMUL", "TANH"}
    assert profile.to_dict()[1]["name"] == "t0"
    assert str(profile).splitlines()[0].split()[:2] == ["node", "op"]
    assert "BATCH_MATMUL" in profile._repr_html_()


def test_interpreters_share_a_model():
    budget = leadline.Budget("100MB")
    model = leadline.Model.from_bytes(sample_models.dense(inputs=512, outputs=512), budget)
    first, second = Interpreter(model=model), Interpreter(model=model)
    first.allocate_tensors()
    used_by_one = budget.used
    second.allocate_tensors()
    assert budget.used - used_by_one < 512 * 512 * 4 // 4  # no second copy of the weights
    x = np.ones((1, 512), F32)
    np.testing.assert_array_equal(run(first, x), run(second, x))


def test_budget_is_visible():
    interpreter = ready(sample_models.dense(), budget="50MB")
    assert interpreter.budget.limit == 50_000_000
    assert interpreter.budget.used > 0
    assert sum(interpreter.budget.categories.values()) == interpreter.budget.used


def test_model_describes_itself():
    model = leadline.Model.from_bytes(sample_models.two_signatures())
    assert model.subgraph_count == 2
    assert [signature.key for signature in model.signatures] == ["double", "square"]
    assert model.signatures[1].inputs == {"x": 0}
    assert model.subgraph(1).nodes[0].op == "MUL"
    assert model.subgraph(1).tensors[0].dtype.name == "FLOAT32"
    assert model.description == "made for a test"
    assert "MUL" in str(model)
    with pytest.raises(ValueError):
        model.subgraph(2)


def test_html_of_an_interpreter_escapes_names():
    html = Interpreter(model_content=sample_models.add())._repr_html_()
    assert "<table>" in html
    assert "planned peak" in html


def test_version_is_that_of_the_library():
    assert leadline.__version__.count(".") == 2
