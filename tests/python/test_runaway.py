# SPDX-License-Identifier: Apache-2.0
"""Work without end: time limits, Ctrl-C, sizes that come from data, and files whose parts are many."""

import json
import os
import signal
import subprocess
import threading
import time

import numpy as np
import pytest
import test_cli

import leadline
from leadline import ModelBuilder, lite

F32 = np.float32
# On an idle machine the answer comes within 100 ms; a busy one gives this process its turn when it can.
PATIENCE = 2.0


def endless() -> bytes:
    """Counts for ever. The signature 'count' does the same by name."""
    builder = ModelBuilder()
    start, last = builder.input("start", np.int32, [1]), builder.tensor("last", np.int32, [1])
    condition, body = builder.subgraph("condition"), builder.subgraph("body")
    i, go = condition.input("i", np.int32, [1]), condition.tensor("go", np.bool_, [1])
    condition.node("EQUAL", [i, i], [go])
    condition.output(go)
    i, after = body.input("i", np.int32, [1]), body.tensor("after", np.int32, [1])
    body.node("MAXIMUM", [i, body.constant("one", np.ones(1, np.int32))], [after])
    body.output(after)
    builder.node("WHILE", [start], [last], cond_subgraph_index=condition.index, body_subgraph_index=body.index)
    builder.output(last)
    builder.signature("count", builder, {"start": start}, {"last": last})
    return builder.to_tflite()


def endless_dense(size=8) -> bytes:
    """A layer that can be quantized, and a loop on its result that never ends."""
    builder = ModelBuilder()
    x, y = builder.input("x", F32, [1, size]), builder.tensor("y", F32, [1, size])
    builder.node("FULLY_CONNECTED", [x, builder.constant("w", np.eye(size, dtype=F32)), None], [y])
    last = builder.tensor("last", F32, [1, size])
    condition, body = builder.subgraph("condition"), builder.subgraph("body")
    condition.input("v", F32, [1, size])
    condition.output(condition.constant("go", np.bool_(True)))
    v, after = body.input("v", F32, [1, size]), body.tensor("after", F32, [1, size])
    body.node("ABS", [v], [after])
    body.output(after)
    builder.node("WHILE", [y], [last], cond_subgraph_index=condition.index, body_subgraph_index=body.index)
    builder.output(last)
    return builder.to_tflite()


def product(size=1536, count=6, seed=1) -> bytes:
    """Matrix products that take a second."""
    rng = np.random.default_rng(seed)
    builder = ModelBuilder()
    x = builder.input("x", F32, [size, size])
    for i in range(count):
        weights = builder.constant(f"w{i}", rng.standard_normal((size, size)).astype(F32) / size)
        y = builder.tensor(f"y{i}", F32, [size, size])
        builder.node("FULLY_CONNECTED", [x, weights, None], [y])
        x = y
    builder.output(x)
    return builder.to_tflite()


def chain(nodes: int) -> bytes:
    builder = ModelBuilder()
    value = builder.input("x", F32, [4])
    for i in range(nodes):
        after = builder.tensor(f"t{i}", F32, [4])
        builder.node("ABS", [value], [after])
        value = after
    builder.output(value)
    return builder.to_tflite()


def ready(content: bytes, **options) -> lite.Interpreter:
    interpreter = lite.Interpreter(model_content=content, **options)
    interpreter.allocate_tensors()
    return interpreter


def run_out_of_time(interpreter: lite.Interpreter, seconds: float) -> None:
    with pytest.raises(leadline.TimeLimitError):
        interpreter.invoke(timeout=seconds)


# Time limits --------------------------------------------------------------------------------------


def test_a_run_ends_at_its_timeout_and_names_the_node():
    interpreter = ready(endless())
    for _ in range(2):  # and the interpreter can be used again
        start = time.perf_counter()
        with pytest.raises(leadline.TimeLimitError, match=r"(EQUAL|MAXIMUM|WHILE) #0.*time limit of 0\.1 s") as caught:
            interpreter.invoke(timeout=0.1)
        assert 0.1 <= time.perf_counter() - start < PATIENCE
        assert isinstance(caught.value, TimeoutError) and isinstance(caught.value, leadline.Error)
        assert caught.value.code == "timeout"


def test_a_timeout_that_is_not_reached_changes_nothing():
    interpreter = ready(chain(3))
    interpreter.set_tensor(0, np.array([-1, 2, -3, 4], F32))
    interpreter.invoke(timeout=1000)
    interpreter.invoke(timeout=float("inf"))
    assert interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("timeout", [-1, float("nan"), "soon"])
def test_a_timeout_is_a_number_of_seconds(timeout):
    with pytest.raises((leadline.InvalidArgumentError, TypeError)):
        ready(chain(1)).invoke(timeout=timeout)


def test_a_block_limits_whatever_is_done_in_it():
    runner = ready(endless()).get_signature_runner("count")
    with leadline.time_limit(60), pytest.raises(leadline.TimeLimitError, match="0.1 s"), leadline.time_limit(0.1):
        runner(start=np.zeros(1, np.int32))
    content = chain(2)
    with pytest.raises(leadline.TimeLimitError), leadline.time_limit(0):
        leadline.Model.from_bytes(content)
    leadline.Model.from_bytes(content)  # outside there is no limit


def test_a_limit_of_one_thread_is_none_of_another():
    done = []

    def work():
        interpreter = ready(chain(2))
        interpreter.invoke()
        done.append(True)

    with leadline.time_limit(0):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert done


def test_waiting_for_another_thread_counts():
    interpreter = ready(endless())
    thread = threading.Thread(target=run_out_of_time, args=(interpreter, 1.0))
    thread.start()
    time.sleep(0.2)
    with pytest.raises(leadline.TimeLimitError):
        interpreter.invoke(timeout=0.1)
    thread.join()


def samples(count=100_000, size=64):
    return ([np.full((1, size), i % 7, F32)] for i in range(count))


def dense(size=64) -> bytes:
    builder = ModelBuilder()
    x, y = builder.input("x", F32, [1, size]), builder.tensor("y", F32, [1, size])
    weights = builder.constant("w", np.eye(size, dtype=F32))
    builder.node("FULLY_CONNECTED", [x, weights, builder.constant("b", np.ones(size, F32))], [y])
    builder.output(y)
    return builder.to_tflite()


JOBS = {
    "calibrate": lambda **limit: leadline.calibrate(dense(), lambda: samples(), progress=False, **limit),
    "quantize": lambda **limit: leadline.quantize(dense(), "int8", lambda: samples(), progress=False, **limit),
    "debug": lambda **limit: leadline.debug(
        dense(), leadline.quantize(dense(), "dynamic"), lambda: samples(), progress=False, **limit
    ),
}


@pytest.mark.parametrize("job", JOBS)
def test_jobs_end_at_their_timeout(job):
    start = time.perf_counter()
    with pytest.raises(leadline.TimeLimitError, match="time limit of 0.3 s"):
        JOBS[job](timeout=0.3)
    assert time.perf_counter() - start < 0.3 + PATIENCE


ENDLESS_JOBS = {
    "calibrate": lambda model, data, **limit: leadline.calibrate(model, data, progress=False, **limit),
    "quantize": lambda model, data, **limit: leadline.quantize(model, "int8", data, progress=False, **limit),
    "bias correction": lambda model, data, **limit: leadline.quantize(
        model, "int8", data, bias_correction=True, progress=False, **limit
    ),
    "debug": lambda model, data, **limit: leadline.debug(
        model, leadline.quantize(model, "dynamic", min_weight_elements=1), data, progress=False, **limit
    ),
}


@pytest.mark.parametrize("job", ENDLESS_JOBS)
def test_jobs_that_run_a_model_without_end_stop_at_their_timeout(job):
    start = time.perf_counter()
    with pytest.raises(leadline.TimeLimitError, match="WHILE|ABS"):
        ENDLESS_JOBS[job](endless_dense(), lambda: samples(2, 8), timeout=0.3)
    assert time.perf_counter() - start < 0.3 + PATIENCE


@pytest.mark.parametrize("command", ["run", "bench", "quantize", "debug"])
def test_the_program_gives_up_at_its_timeout(command, tmp_path):
    if test_cli.PROGRAM is None:
        pytest.skip("the leadline program is not built")
    content = endless_dense()
    (tmp_path / "model.tflite").write_bytes(content)
    (tmp_path / "small.tflite").write_bytes(leadline.quantize(content, "dynamic", min_weight_elements=1))
    np.save(tmp_path / "data.npy", np.ones((2, 8), F32))
    arguments = {"quantize": ["--data", "data.npy"], "debug": ["small.tflite", "--data", "data.npy"]}
    done = subprocess.run(
        [test_cli.PROGRAM, command, "model.tflite", *arguments.get(command, []), "--timeout", "0.3", "--json"],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == test_cli.RUNTIME, done.stdout + done.stderr
    assert json.loads(done.stdout)["error"]["kind"] == "timeout"
    assert "time limit of 0.3 s" in done.stderr


def test_reports_of_large_models_end_at_a_limit_and_let_other_threads_work():
    plan = leadline._leadline.Interpreter(leadline.Model.from_bytes(wide(10_000))).plan()
    for report in (plan.to_json, plan.to_html, plan._repr_html_):
        with pytest.raises(leadline.TimeLimitError), leadline.time_limit(0):
            report()

    def turns_beside_a_report() -> int:
        turns = 0
        thread = threading.Thread(target=plan.to_html)
        thread.start()
        while thread.is_alive():
            turns += 1
            time.sleep(0.0005)
        thread.join()
        return turns

    # With Python's lock held by the report there would be one or two. A busy machine may give this thread no turn.
    assert any(turns_beside_a_report() > 3 for _ in range(20))


# Ctrl-C -------------------------------------------------------------------------------------------


def seconds_to_interrupt(work, after=0.2) -> float:
    """Presses Ctrl-C while `work` is called again and again; seconds from the press to the exception."""
    pressed = []

    def press():
        pressed.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(after, press)
    try:
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            while True:
                work()
        return time.perf_counter() - pressed[0]
    finally:
        timer.cancel()
        timer.join()
        signal.signal(signal.SIGINT, before)


def interruptible():
    loop, matrices, many = endless(), product(), chain(60_000)
    runs = {content: ready(content) for content in (loop, matrices)}
    yield "run: a loop", runs[loop].invoke
    yield "run: products", runs[matrices].invoke
    yield "load", lambda: leadline.Model.from_bytes(many)
    model = leadline.Model.from_bytes(many)
    yield "plan", lambda: leadline._leadline.Interpreter(model)
    yield "pack", lambda: ready(matrices)
    yield from JOBS.items()
    yield "quantize weights", lambda: leadline.quantize(matrices, "dynamic", progress=False)


def test_ctrl_c_works_everywhere_and_leaves_things_usable(record_property):
    slowest = {}
    for name, work in interruptible():
        slowest[name] = seconds_to_interrupt(work)
    for name, seconds in slowest.items():
        print(f"{name:18} {seconds * 1000:6.1f} ms")
        record_property(name, seconds)
    assert max(slowest.values()) < PATIENCE, slowest
    interpreter = ready(chain(3))
    interpreter.invoke()


def test_ctrl_c_ends_a_conversion(tmp_path):
    keras_models = pytest.importorskip("keras_models", reason="keras is not installed")
    path = tmp_path / "model.keras"
    keras_models.make("mobilenet_v2").save(path)
    seconds = seconds_to_interrupt(lambda: lite.TFLiteConverter.from_keras_file(path).convert(progress=False))
    print(f"convert {seconds * 1000:.1f} ms")
    assert seconds < PATIENCE


# Sizes from data ----------------------------------------------------------------------------------


def from_data(op: str) -> tuple[bytes, np.ndarray]:
    """A model whose result is as large as its input says, and an input that says gigabytes."""
    builder = ModelBuilder()
    if op == "RANGE":
        size = builder.input("size", np.int64, [])
        zero, one = builder.constant("zero", np.int64(0)), builder.constant("one", np.int64(1))
        y = builder.tensor("y", np.int64, [1])
        builder.node(op, [zero, size, one], [y])
        value = np.int64(1 << 30)
    else:
        size = builder.input("size", np.int32, [2])
        y = builder.tensor("y", F32, [1, 1])
        x = builder.constant("x", np.ones((1, 1), F32) if op != "FILL" else F32(1))
        builder.node(op, [size, x] if op == "FILL" else [x, size], [y])
        value = np.array([1 << 15, 1 << 15], np.int32)
    builder.output(y)
    return builder.to_tflite(), value


@pytest.mark.parametrize("op", ["RANGE", "TILE", "BROADCAST_TO", "FILL"])
def test_sizes_from_data_are_bounded_by_the_budget(op):
    content, value = from_data(op)
    interpreter = ready(content, budget="50MB")
    interpreter.set_tensor(0, value)
    start = time.perf_counter()
    with pytest.raises(leadline.BudgetError):
        interpreter.invoke()
    assert time.perf_counter() - start < PATIENCE
    small = np.int64(3) if op == "RANGE" else np.array([2, 3], np.int32)
    interpreter.set_tensor(0, small)
    interpreter.invoke()
    assert interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).size in (3, 6)


def test_rounds_of_loops_are_counted():
    native = leadline._leadline.Interpreter(leadline.Model.from_bytes(endless()), max_loop_rounds=1000)
    with pytest.raises(leadline.Error, match="max_loop_rounds") as caught:
        native.invoke()
    assert caught.value.code == "cancelled"


# Many parts ---------------------------------------------------------------------------------------


def wide(nodes: int) -> bytes:
    """Every node gives an output of the model."""
    builder = ModelBuilder()
    x = builder.input("x", F32, [4])
    for i in range(nodes):
        y = builder.tensor(f"t{i}", F32, [4])
        builder.node("ABS", [x], [y])
        builder.output(y)
    return builder.to_tflite()


def joined(nodes: int) -> bytes:
    """All results live until one node reads them."""
    builder = ModelBuilder()
    x = builder.input("x", F32, [4])
    parts = [builder.tensor(f"t{i}", F32, [4]) for i in range(nodes)]
    for part in parts:
        builder.node("ABS", [x], [part])
    y = builder.tensor("y", F32, [4 * nodes])
    builder.node("CONCATENATION", parts, [y], axis=0)
    builder.output(y)
    return builder.to_tflite()


def many_inputs(count: int) -> bytes:
    builder = ModelBuilder()
    inputs = [builder.input(f"x{i}", F32, [1]) for i in range(count)]
    y = builder.tensor("y", F32, [count])
    builder.node("CONCATENATION", inputs, [y], axis=0)
    builder.output(y)
    return builder.to_tflite()


def swapped(count: int) -> bytes:
    """One node with many inputs and many outputs."""
    builder = ModelBuilder()
    x = builder.input("x", F32, [count])
    parts = [builder.tensor(f"t{i}", F32, [1]) for i in range(count)]
    builder.node("SPLIT", [builder.constant("axis", np.int32(0)), x], parts, num_splits=count)
    y = builder.tensor("y", F32, [count])
    builder.node("CONCATENATION", parts, [y], axis=0)
    builder.output(y)
    return builder.to_tflite()


def stages(count: int) -> bytes:
    """Every RANGE has to wait for the data of the one before: the run is planned in `count` pieces."""
    builder = ModelBuilder()
    limit = builder.input("limit", np.int32, [])
    zero, one = builder.constant("zero", np.int32(0)), builder.constant("one", np.int32(1))
    axis = builder.constant("axis", np.zeros(1, np.int32))
    for i in range(count):
        numbers, most = builder.tensor(f"r{i}", np.int32, [1]), builder.tensor(f"m{i}", np.int32, [])
        builder.node("RANGE", [zero, limit, one], [numbers])
        builder.node("SUM", [numbers, axis], [most])
        limit = builder.tensor(f"l{i}", np.int32, [])
        builder.node("MINIMUM", [most, builder.constant(f"c{i}", np.int32(3))], [limit])
    builder.output(limit)
    return builder.to_tflite()


def signatures(count: int) -> bytes:
    builder = ModelBuilder()
    x, y = builder.input("x", F32, [4]), builder.tensor("y", F32, [4])
    builder.node("ABS", [x], [y])
    builder.output(y)
    for i in range(count):
        builder.signature(f"s{i}", builder, {"x": x}, {"y": y})
    return builder.to_tflite()


def subgraphs(count: int) -> bytes:
    builder = ModelBuilder()
    for graph in [builder, *(builder.subgraph(f"g{i}") for i in range(count))]:
        x, y = graph.input("x", F32, [4]), graph.tensor("y", F32, [4])
        graph.node("ABS", [x], [y])
        graph.output(y)
    return builder.to_tflite()


def use(content: bytes) -> None:
    """Everything that walks over a model."""
    model = leadline.Model.from_bytes(content)
    str(model)
    interpreter = leadline._leadline.Interpreter(model)
    plan = interpreter.plan()
    plan.to_text(), plan.to_json(), plan.to_html()
    if "limit" in interpreter.tensor_info(0).name:
        interpreter.set_tensor(0, np.int32(3).tobytes())
    interpreter.invoke()
    interpreter.plan()
    model.to_tflite()
    face = lite.Interpreter(model_content=content)
    face.get_tensor_details(), face.get_signature_list(), face.get_input_details()


def cpu_seconds(content: bytes) -> float:
    start = time.process_time()
    use(content)
    return time.process_time() - start


@pytest.mark.parametrize(
    ("make", "count"),
    [
        (chain, 2000),
        (wide, 2000),
        (joined, 2000),
        (many_inputs, 2000),
        (swapped, 2000),
        (stages, 250),
        (signatures, 2000),
        (subgraphs, 1000),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_time_grows_with_the_file_and_not_with_its_square(make, count):
    """Eight times as many parts: about eight times the work, not sixty-four times."""
    small, large = make(count), make(8 * count)
    cpu_seconds(small)
    one = min(cpu_seconds(small) for _ in range(3))
    eight = min(cpu_seconds(large) for _ in range(2))
    print(f"{count}: {one * 1000:.0f} ms, {8 * count}: {eight * 1000:.0f} ms")
    assert eight < 20 * one + 0.05


def alternating(nodes: int) -> bytes:
    """Tensors of one name, between nodes that become integers and nodes that stay float."""
    builder = ModelBuilder()
    value = builder.input("x", F32, [4])
    for i in range(nodes):
        after = builder.tensor("same", F32, [4])
        builder.node("FLOOR" if i % 2 else "ABS", [value], [after])
        value = after
    builder.output(value)
    return builder.to_tflite()


def plan_integers(content: bytes) -> None:
    options = leadline._leadline.QuantizerOptions()
    options.mode = leadline._leadline.QuantizationMode.INT8
    leadline._leadline.QuantizeJob(leadline.Model.from_bytes(content), options).plan()


def compare_with_itself(content: bytes) -> None:
    model = leadline.Model.from_bytes(content)
    leadline._leadline.DebugJob(model, model)


@pytest.mark.parametrize(
    ("job", "make"),
    [(plan_integers, chain), (plan_integers, alternating), (compare_with_itself, chain), (compare_with_itself, wide)],
)
def test_time_of_jobs_grows_with_the_file_and_not_with_its_square(job, make):
    def seconds(content):
        start = time.process_time()
        job(content)
        return time.process_time() - start

    small, large = make(1000), make(8000)
    seconds(small)
    one = min(seconds(small) for _ in range(3))
    eight = min(seconds(large) for _ in range(2))
    print(f"{one * 1000:.0f} ms, {eight * 1000:.0f} ms")
    assert eight < 20 * one + 0.05
