# SPDX-License-Identifier: Apache-2.0
"""Ops written in Python: shapes, memory, state, exceptions, views, threads."""

import gc
import subprocess
import sys
import threading
import traceback

import numpy as np
import pytest
from tflite_builder import STRING, ModelBuilder

import leadline
from leadline import lite

F32 = np.float32


@pytest.fixture(autouse=True)
def nothing_stays_registered():
    yield
    for name in leadline.registered_ops():
        leadline.unregister_op(name)


def model(op="MyOp", shape=(4,), *, dtype=F32, options=b"", outputs=1, signature=None, constant=None, **quantization):
    """EXP(x) -> op -> TANH, so that the op's operands lie in the arena; with `constant` the op reads that instead."""
    builder = ModelBuilder()
    graph = builder.subgraph()
    x = graph.input("x", dtype, shape, signature=signature)
    if constant is not None:
        source = graph.constant("c", constant)
    else:
        source = graph.op("EXP", [x], ("a", dtype, shape)) if dtype == F32 else x
    made = graph.op(
        op,
        [source],
        *[(f"b{i}", dtype, shape) for i in range(outputs)],
        custom_options=options,
        quantization=quantization,
    )
    made = made if isinstance(made, list) else [made]
    if dtype == F32:
        graph.output(*(graph.op("TANH", [b], (f"y{i}", dtype, shape)) for i, b in enumerate(made)))
    else:
        graph.output(*made)
    return builder.build()


def run(interpreter, x):
    index = interpreter.get_input_details()[0]["index"]
    interpreter.allocate_tensors()
    interpreter.set_tensor(index, x)
    interpreter.invoke()
    outputs = [interpreter.get_tensor(details["index"]) for details in interpreter.get_output_details()]
    return outputs[0] if len(outputs) == 1 else outputs


def same_shape(op, inputs):
    return inputs[0].shape


def double(op, inputs, outputs):
    np.multiply(inputs[0], 2, out=outputs[0])


def doubled(x):
    return np.tanh(2 * np.exp(x))


X = np.array([-1, 0, 0.5, 1], F32)


def close(got, expected):
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_function_with_infer_runs_in_a_complete_plan():
    leadline.register_op("MyOp", double, infer=same_shape, scratch=1000, kept=lambda op, inputs: 10)
    interpreter = lite.Interpreter(model_content=model())
    plan = interpreter.plan()
    assert plan.complete
    assert (plan.steps[1].op, plan.steps[1].scratch_bytes, plan.steps[1].persistent_bytes) == ("MyOp", 1000, 64)
    close(run(interpreter, X), doubled(X))
    assert plan.peak_bytes == interpreter.counted_peak_bytes() == interpreter.plan().peak_bytes
    interpreter.resize_tensor_input(0, [2, 3])
    x = np.ones((2, 3), F32)
    close(run(interpreter, x), doubled(x))
    assert interpreter.counted_peak_bytes() == interpreter.plan().peak_bytes


def test_decorator_and_class():
    @leadline.register_op("MyOp", infer=same_shape)
    def function(op, inputs, outputs):
        outputs[0][...] = inputs[0] * 2

    close(run(lite.Interpreter(model_content=model()), X), doubled(X))
    assert function.__name__ == "function"

    @leadline.register_op("MyOp")
    class Total(leadline.CustomOp):
        def __init__(self):
            self.total = 0.0
            assert (self.op, self.index, self.name, self.version) == ("MyOp", 1, "b0", 1)

        def infer(self, inputs):
            return [inputs[0].shape]

        def scratch_bytes(self, inputs):
            return 8 * inputs[0].shape[0]

        def run(self, inputs, outputs):
            assert self.scratch.nbytes == 8 * len(inputs[0])
            self.scratch[...] = 255
            self.total += float(np.log(inputs[0]).sum())
            outputs[0][...] = self.total

        def reset(self):
            self.total = 0.0

    first, second = (lite.Interpreter(model_content=model(shape=(1,))) for _ in range(2))
    one = np.array([0.25], F32)
    close(run(first, one), np.tanh([0.25]))
    close(run(first, one), np.tanh([0.5]))
    close(run(second, one), np.tanh([0.25]))
    first.reset_all_variables()
    close(run(first, one), np.tanh([0.25]))


def test_views_are_the_real_memory():
    seen = {}

    def look(op, inputs, outputs):
        seen["input"] = inputs[0].flags.writeable, inputs[0].flags.owndata, inputs[0].ctypes.data % 64
        seen["output"] = outputs[0].flags.writeable, outputs[0].flags.owndata, outputs[0].ctypes.data % 64
        double(op, inputs, outputs)

    leadline.register_op("MyOp", look, infer=same_shape)
    run(lite.Interpreter(model_content=model()), X)
    assert seen == {"input": (False, False, 0), "output": (True, False, 0)}


def test_kept_memory():
    def count(op, inputs, outputs):
        op.kept[0] += 1
        outputs[0][...] = op.kept[0]

    leadline.register_op("MyOp", count, infer=same_shape, kept=1)
    interpreter = lite.Interpreter(model_content=model(shape=(1,)))
    for expected in (1, 2):
        close(run(interpreter, X[:1]), np.tanh([expected]))
    interpreter.reset_all_variables()
    close(run(interpreter, X[:1]), np.tanh([1]))


def test_returned_arrays_are_copied_and_checked():
    result = [None]
    leadline.register_op("MyOp", lambda op, inputs, outputs: result[0], infer=same_shape)
    interpreter = lite.Interpreter(model_content=model())
    result[0] = np.arange(4, dtype=F32)
    close(run(interpreter, X), np.tanh(np.arange(4)))
    result[0] = [np.ones(4, F32)]
    close(run(interpreter, X), np.tanh(np.ones(4)))
    for bad, message in (
        (np.arange(4), "dtype int64"),
        (np.arange(3, dtype=F32), r"shape \[3\]"),
        ([np.ones(4, F32)] * 2, "dtype|shape"),
    ):
        result[0] = bad
        with pytest.raises(leadline.InvalidArgumentError, match=message):
            run(interpreter, X)


def test_without_infer_the_returned_arrays_give_the_shapes():
    leadline.register_op("MyOp", lambda op, inputs, outputs: inputs[0][inputs[0] > 1])
    interpreter = lite.Interpreter(model_content=model())
    assert not interpreter.plan().complete
    for x in (X, X[::-1].copy(), np.full(4, -1, F32), X):
        exp = np.exp(x)
        close(run(interpreter, x), np.tanh(exp[exp > 1]))
        assert interpreter.counted_peak_bytes() == interpreter.plan().peak_bytes


def test_without_infer_on_constants_runs_every_time():
    calls = []

    def run_it(op, inputs, outputs):
        calls.append(outputs)
        return inputs[0] * len(calls)

    leadline.register_op("MyOp", run_it)
    interpreter = lite.Interpreter(model_content=model(constant=np.full(4, 0.25, F32)))
    for factor in (1, 2, 3):
        close(run(interpreter, X), np.tanh(np.full(4, 0.25 * factor)))
    assert calls == [None] * 3


def test_shapes_that_depend_on_data():
    def infer(op, inputs):
        if inputs[0].data is None:
            return None
        return [int(np.count_nonzero(inputs[0].data > 1))]

    def take(op, inputs, outputs):
        outputs[0][...] = inputs[0][inputs[0] > 1]

    leadline.register_op("MyOp", take, infer=infer)
    interpreter = lite.Interpreter(model_content=model())
    assert not interpreter.plan().complete
    for x in (X, X + 1, X):
        exp = np.exp(x)
        close(run(interpreter, x), np.tanh(exp[exp > 1]))
        assert interpreter.counted_peak_bytes() == interpreter.plan().peak_bytes
    leadline.register_op("MyOp", take, infer=lambda op, inputs: None)
    with pytest.raises(leadline.InvalidArgumentError, match="infer returned None"):
        run(lite.Interpreter(model_content=model()), X)


def test_several_outputs():
    leadline.register_op(
        "MyOp",
        lambda op, inputs, outputs: (inputs[0], -inputs[0]),
        infer=lambda op, inputs: [(inputs[0].shape, F32), inputs[0].shape],
    )
    first, second = run(lite.Interpreter(model_content=model(outputs=2)), X)
    close(first, np.tanh(np.exp(X)))
    close(second, -first)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (((4,), np.int32), "dtype int32.*float32"),
        ([(4,), (4,)], "2 shapes.*1 outputs"),
        ((-1,), "expected a shape"),
        (["4"], "expected a shape"),
        ((1,) * 9, "at most 8 dimensions"),
    ],
)
def test_what_infer_returns_is_checked(answer, message):
    leadline.register_op("MyOp", double, infer=lambda op, inputs: answer)
    with pytest.raises(ValueError, match=message):
        lite.Interpreter(model_content=model()).allocate_tensors()


def test_quantization_and_description_reach_the_op():
    seen = []

    def infer(op, inputs):
        seen.append((inputs[0].name, inputs[0].dtype, inputs[0].shape, op.outputs[0].quantization, op.outputs[0].name))
        return inputs[0].shape

    leadline.register_op("MyOp", lambda op, inputs, outputs: inputs[0], infer=infer)
    content = model(dtype=np.int8, scales=[0.5], zero_points=[3])
    x = np.arange(4, dtype=np.int8)
    np.testing.assert_array_equal(run(lite.Interpreter(model_content=content), x), x)
    assert seen[0] == ("x", np.int8, (4,), (0.5, 3), "b0")


def test_options_are_bytes_and_a_decoded_map():
    # As the flatbuffers package writes it.
    options = bytes.fromhex(
        "61006c69737400017800000003000000010000000000204010000000060e146e616d6500046465657000780079657300696e7473000003000100"
        "02002c01696e6e6572006b000103010101fb046e6f6e65000853162554380b2f2e00090000000100000008000000070000002100000038000000"
        "640000005300000000000000000020400100000006242d2a14020e6a282601"
    )
    decoded = {
        "a": 7, "inner": {"k": -5}, "ints": [1, 2, 300], "list": [1, 2.5, "x"], "name": "deep", "none": None, "x": 2.5,
        "yes": True,
    }  # fmt: skip
    seen = []

    def infer(op, inputs):
        seen.append((op.options, op.attributes))
        return inputs[0].shape

    leadline.register_op("MyOp", double, infer=infer)
    for given in (options, b"\1\2\3", b""):
        lite.Interpreter(model_content=model(options=given)).allocate_tensors()
    assert seen == [(options, decoded), (b"\1\2\3", {}), (b"", {})]
    for i in range(len(options)):  # damage is survived
        for value in (0, 1, 127, 255):
            leadline._leadline.decode_options(options[:i] + bytes([value]) + options[i + 1 :])


def test_strings():
    builder = ModelBuilder()
    graph = builder.subgraph()
    x = graph.input("x", STRING, [2])
    graph.output(graph.op("Upper", [x], ("y", STRING, [2])))
    leadline.register_op("Upper", lambda op, inputs, outputs: np.array([w.upper() for w in inputs[0]], np.object_))
    interpreter = lite.Interpreter(model_content=builder.build())
    for words in ([b"deep", b"water"], [b"", "wäßer".encode()]):
        got = run(interpreter, np.array(words, np.object_))
        assert got.tolist() == [w.upper() for w in words]


class Unusual(Exception):
    pass


def test_exceptions_come_out_as_they_were_raised():
    fail = [None]

    def failing(op, inputs, outputs):
        if fail[0]:
            raise fail[0]
        double(op, inputs, outputs)

    leadline.register_op("MyOp", failing, infer=same_shape)
    interpreter = lite.Interpreter(model_content=model())
    close(run(interpreter, X), doubled(X))
    for error in (ValueError("deep"), Unusual(1, 2), KeyboardInterrupt(), KeyError("k"), MemoryError()):
        fail[0] = error
        with pytest.raises(type(error)) as caught:
            interpreter.invoke()
        assert caught.value is error
        assert "failing" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
        if sys.version_info >= (3, 11):
            assert "MyOp #1 'b0'" in error.__notes__[0]
        fail[0] = None
        interpreter.invoke()  # with the inputs of before
        close(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]), doubled(X))
    assert interpreter.counted_peak_bytes() == interpreter.plan().peak_bytes


def test_exceptions_of_infer_and_constructor():
    def infer(op, inputs):
        raise LookupError("not this model")

    leadline.register_op("MyOp", double, infer=infer)
    with pytest.raises(LookupError, match="not this model"):
        lite.Interpreter(model_content=model()).allocate_tensors()

    @leadline.register_op("MyOp")
    class Broken(leadline.CustomOp):
        def __init__(self):
            raise LookupError("no object")

    with pytest.raises(LookupError, match="no object"):
        lite.Interpreter(model_content=model()).allocate_tensors()

    leadline.register_op("MyOp", leadline.CustomOp)
    with pytest.raises(NotImplementedError):
        run(lite.Interpreter(model_content=model()), X)


@pytest.mark.parametrize("what", ["input", "output", "part", "scratch", "data"])
def test_a_view_that_is_kept_is_an_error_and_never_dangles(what):
    kept = []
    keep = [True]

    def infer(op, inputs):
        if inputs[0].data is None:
            return None if what == "data" else inputs[0].shape
        if keep[0]:
            kept.append(inputs[0].data)
        return inputs[0].shape

    def run_it(op, inputs, outputs):
        double(op, inputs, outputs)
        if keep[0] and what != "data":
            views = {"input": inputs[0], "output": outputs[0], "part": outputs[0][1:], "scratch": op.scratch}
            kept.append(views[what])

    leadline.register_op("MyOp", run_it, infer=infer, scratch=64)
    interpreter = lite.Interpreter(model_content=model())
    with pytest.raises(leadline.InvalidArgumentError, match=r"MyOp #1 'b0'.*kept an array.*copy"):
        run(interpreter, X)
    before = kept[0].copy()
    keep[0] = False
    close(run(interpreter, X + 1), doubled(X + 1))
    np.testing.assert_array_equal(kept[0], before)  # the interpreter uses other memory now
    if what in ("output", "part", "scratch") and kept[0].flags.writeable:
        kept[0][...] = 7
    close(run(interpreter, X), doubled(X))
    del interpreter
    gc.collect()
    kept[0].sum()


def test_views_in_a_traceback_stay_readable():
    def failing(op, inputs, outputs):
        raise ValueError(inputs[0])

    leadline.register_op("MyOp", failing, infer=same_shape)
    interpreter = lite.Interpreter(model_content=model())
    with pytest.raises(ValueError) as caught:
        run(interpreter, X)
    del interpreter
    gc.collect()
    close(caught.value.args[0], np.exp(X))


def test_budget():
    leadline.register_op("MyOp", double, infer=same_shape, scratch=1 << 20)
    interpreter = lite.Interpreter(model_content=model(), budget=1 << 19)
    with pytest.raises(leadline.BudgetError):
        interpreter.allocate_tensors()
    with pytest.raises(ValueError, match="-1"):
        leadline.register_op("MyOp", double, infer=same_shape, scratch=-1)


def test_registering_again_concerns_new_interpreters():
    content = model()
    with pytest.raises(leadline.UnsupportedError, match=r'leadline\.register_op\("MyOp"'):
        lite.Interpreter(model_content=content).allocate_tensors()
    loaded = leadline.Model.from_bytes(content)
    assert list(loaded.missing_ops) == ["MyOp"]
    leadline.register_op("MyOp", double, infer=same_shape)
    assert leadline.registered_ops() == ["MyOp"]
    assert not loaded.missing_ops
    first = lite.Interpreter(model=loaded)
    first.allocate_tensors()
    leadline.register_op("MyOp", lambda op, inputs, outputs: inputs[0], infer=same_shape)
    second = lite.Interpreter(model=loaded)
    second.allocate_tensors()
    assert leadline.unregister_op("MyOp") and not leadline.unregister_op("MyOp")
    close(run(first, X), doubled(X))
    close(run(second, X), np.tanh(np.exp(X)))
    first.resize_tensor_input(0, [2])
    close(run(first, X[:2]), doubled(X[:2]))
    with pytest.raises(leadline.UnsupportedError):
        lite.Interpreter(model=loaded).allocate_tensors()


def test_arguments_are_checked():
    for bad in ("", None, 3):
        with pytest.raises(ValueError, match="name"):
            leadline.register_op(bad, double)
    with pytest.raises(ValueError, match="function"):
        leadline.register_op("MyOp", 7)
    with pytest.raises(ValueError, match="CustomOp"):
        leadline.register_op("MyOp", dict)
    with pytest.raises(ValueError, match="methods"):
        leadline.register_op("MyOp", leadline.CustomOp, infer=same_shape)


def test_an_op_cannot_call_the_interpreter_that_runs_it():
    interpreter = lite.Interpreter(model_content=model())

    def again(op, inputs, outputs):
        interpreter.invoke()

    leadline.register_op("MyOp", again, infer=same_shape)
    with pytest.raises(leadline.InvalidArgumentError, match="running it"):
        run(interpreter, X)


def test_two_threads_with_python_ops():
    meeting = threading.Barrier(2, timeout=60)

    def run_it(op, inputs, outputs):
        if not getattr(op, "met", False):
            meeting.wait()  # both ops are inside run at the same time
            op.met = True
        double(op, inputs, outputs)

    leadline.register_op("MyOp", run_it, infer=same_shape)
    shared = leadline.Model.from_bytes(model())
    problems = []

    def work(seed):
        try:
            interpreter = lite.Interpreter(model=shared)
            rng = np.random.default_rng(seed)
            for _ in range(100):
                x = rng.standard_normal(4).astype(F32)
                close(run(interpreter, x), doubled(x))
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems


def test_nothing_is_left_when_python_ends():
    program = f"""
import numpy as np, leadline
leadline.register_op("MyOp", lambda op, inputs, outputs: inputs[0], infer=lambda op, inputs: inputs[0].shape)
interpreter = leadline.lite.Interpreter(model_content={model()!r})
interpreter.allocate_tensors()
interpreter.invoke()
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stderr == ""


def test_plan_goes_around_ops_that_are_missing():
    interpreter = lite.Interpreter(model_content=model("FlexDecodeJpeg"))
    plan = interpreter.plan()
    assert plan.missing_ops == ["FlexDecodeJpeg"]
    assert "Planned without FlexDecodeJpeg" in plan.to_text() and "Planned without FlexDecodeJpeg" in plan.to_html()
    with pytest.raises(leadline.UnsupportedError, match="FlexDecodeJpeg"):
        interpreter.allocate_tensors()


def test_flex_ops_are_explained():
    interpreter = lite.Interpreter(model_content=model("FlexDecodeJpeg"))
    with pytest.raises(leadline.UnsupportedError) as caught:
        interpreter.allocate_tensors()
    for part in ("'FlexDecodeJpeg'", "TensorFlow ops", "TFLITE_BUILTINS", 'leadline.register_op("FlexDecodeJpeg"'):
        assert part in str(caught.value)


def test_flex_ops_can_be_replaced(shared):
    """A real file of FlexAddV2 runs by itself; an op of the user's takes the place of Leadline's own."""
    path = shared / "models" / "tfl_multi_add_flex.tflite"
    calls = []

    def sums():
        interpreter = lite.Interpreter(str(path))
        interpreter.allocate_tensors()
        rng = np.random.default_rng(0)
        given = []
        for details in interpreter.get_input_details():
            given.append(rng.standard_normal(details["shape"]).astype(F32))
            interpreter.set_tensor(details["index"], given[-1])
        interpreter.invoke()
        a, b, c, d = given
        expected = sorted([float((a + b + c).sum()), float((b + c + d).sum())])
        got = sorted(float(interpreter.get_tensor(o["index"]).sum()) for o in interpreter.get_output_details())
        np.testing.assert_allclose(got, expected, rtol=1e-4)
        assert interpreter.counted_peak_bytes() == interpreter.plan().peak_bytes

    sums()
    assert not calls

    @leadline.register_op("FlexAddV2", infer=lambda op, inputs: np.broadcast_shapes(inputs[0].shape, inputs[1].shape))
    def add(op, inputs, outputs):
        calls.append(op)
        np.add(inputs[0], inputs[1], out=outputs[0])

    sums()
    assert calls
