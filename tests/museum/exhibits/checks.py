# SPDX-License-Identifier: Apache-2.0
"""Checks that several exhibits use."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
from exhibits.models import matmul, relu, transpose_conv

import leadline

F32 = np.float32


def run(content: bytes, *inputs: np.ndarray, **options) -> list[np.ndarray]:
    """Runs a model in this process; inputs are resized to what is given."""
    interpreter = leadline.lite.Interpreter(model_content=content, num_threads=1, **options)
    for details, value in zip(interpreter.get_input_details(), inputs, strict=True):
        if tuple(details["shape"]) != np.shape(value):
            interpreter.resize_tensor_input(details["index"], np.shape(value))
    interpreter.allocate_tensors()
    for details, value in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(details["index"], value)
    interpreter.invoke()
    return [interpreter.get_tensor(details["index"]) for details in interpreter.get_output_details()]


def refusal(work, *words: str, kind: type[Exception] = leadline.Error) -> str:
    """What `work` raises, which must be an error of Leadline with all the words."""
    try:
        work()
    except kind as error:
        text = str(error)
        missing = [word for word in words if word.lower() not in text.lower()]
        assert not missing, f"{text!r} does not say {missing}"
        return f"{type(error).__name__}: {text}"
    raise AssertionError(f"no error; expected one about {', '.join(words)}")


def quietly(work, *arguments, **options):
    """The result of a call whose warnings about few samples are not the point."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return work(*arguments, **options)


def converted_transpose_conv() -> str:
    """TRANSPOSE_CONV is quantized with a scale for each channel, and computes what the float model computes."""
    rng = np.random.default_rng(1)
    samples = [rng.normal(size=(1, 4, 4, 2)).astype(F32) for _ in range(40)]
    content = transpose_conv()
    quantized = quietly(leadline.quantize, content, "int8", lambda: ([x] for x in samples))
    tensors = leadline.Model.from_bytes(quantized).subgraph(0).tensors
    assert max(len(tensor.scales) for tensor in tensors if tensor.constant) == 2
    wanted, got = run(content, samples[0])[0], run(quantized, samples[0])[0]
    step = float(np.ptp(wanted)) / 255
    assert np.abs(wanted - got).max() < 6 * step
    return "right result: quantized per channel, within 6 steps of float"


def l2_over_no_axes() -> str:
    """x / sqrt(x^2), as the sum over no axes is x^2 itself; converted through leadline.tf."""
    tf = leadline.tf

    @tf.function(input_signature=[tf.TensorSpec([2, 3], tf.float32)])
    def normalize(x):
        return x * tf.math.rsqrt(tf.reduce_sum(tf.square(x), axis=tf.constant([], tf.int32), keepdims=True))

    converter = leadline.lite.TFLiteConverter.from_concrete_functions([normalize.get_concrete_function()])
    x = np.array([[1, -2, 3], [-4, 5, -6]], F32)
    np.testing.assert_allclose(run(converter.convert(), x)[0], np.sign(x), atol=1e-5)
    return "right result: converted; the sum over no axes is its input"


def in_child(program: str, model: bytes = b"", *arguments: str, environment: dict[str, str] | None = None) -> str:
    """Runs a program with the path of a model file as its first argument, and returns what it says after "result: "."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tflite"
        path.write_bytes(model)
        command = [sys.executable, "-c", program, str(path), *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=300, check=False, env={**os.environ, **(environment or {})}
        )
    assert done.returncode == 0, f"ended with {done.returncode}: {done.stderr[-2000:]}"
    return done.stdout.split("result: ", 1)[1].strip()


def growth_in_child(program: str, model: bytes = b"", *arguments: str) -> str:
    """As in_child(), of programs that say how their memory grew: what is freed counts as free under a sanitizer too."""
    options = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=0:thread_local_quarantine_size_kb=0"
    return in_child(program, model, *arguments, environment={"ASAN_OPTIONS": options})


def resized_relu(shape) -> None:
    """Allocates a RELU for a shape that the caller asks for."""
    interpreter = leadline.lite.Interpreter(model_content=relu(), budget=256 << 20)
    interpreter.resize_tensor_input(0, shape)
    interpreter.allocate_tensors()


THREADS = """
import os, sys, threading, time
import numpy as np
if sys.argv[2] == "litert":
    from ai_edge_litert.interpreter import Interpreter
else:
    from leadline.lite import Interpreter

interpreter = Interpreter(sys.argv[1], num_threads=2)
interpreter.allocate_tensors()
runner = interpreter.get_signature_runner("serve")
wrong = []

def work(number):
    x = np.full((64, 64), number, np.float32)
    for _ in range(200):
        got = runner(x=x)["y"]
        if not np.array_equal(got, np.full((64, 64), 64 * number, np.float32)):
            wrong.append(number)

threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
child = os.fork()
if child == 0:
    try:
        work(7)
        os._exit(1 if 7 in wrong else 0)
    except RuntimeError:
        os._exit(2)
end = time.time() + 60
while (done := os.waitpid(child, os.WNOHANG))[0] == 0 and time.time() < end:
    time.sleep(0.01)
if done[0] == 0:
    os.kill(child, 9)
    os.waitpid(child, 0)
ends = {0: "right", 1: "wrong", 2: "an error"}
after = "hangs" if done[0] == 0 else ends.get(os.waitstatus_to_exitcode(done[1]), "death")
print("result:", len(wrong), "of 800 runs in 4 threads are wrong; after a fork:", after)
"""


def threads_and_forks(module: str) -> str:
    said = in_child(THREADS, matmul(), module)
    assert said.startswith("0 of 800") and said.endswith(("right", "an error")), said
    return f"right result: {said}"
