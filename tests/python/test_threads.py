# SPDX-License-Identifier: Apache-2.0
"""Threads: Python continues while a model runs, interpreters run in parallel, and two threads on one take turns."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import sample_models

import leadline
from leadline.lite import Interpreter


def make(content: bytes, **options) -> Interpreter:
    interpreter = Interpreter(model_content=content, num_threads=1, **options)
    interpreter.allocate_tensors()
    return interpreter


def test_python_runs_while_a_model_runs():
    interpreter = make(sample_models.slow(size=512, count=20))
    interpreter.invoke()
    running = threading.Event()

    def work():
        running.set()
        interpreter.invoke()

    thread = threading.Thread(target=work)
    thread.start()
    running.wait()
    turns = 0
    while thread.is_alive():
        turns += 1
        time.sleep(0.001)
    thread.join()
    # With the GIL held for the whole run this thread would get one or two turns.
    assert turns >= 5


def test_details_wait_for_a_run_without_stopping_python():
    interpreter = make(sample_models.slow(size=512, count=20))
    stop, turns = threading.Event(), [0]

    def count():
        while not stop.is_set():
            turns[0] += 1
            time.sleep(0.001)

    threads = [threading.Thread(target=target) for target in (interpreter.invoke, interpreter.get_input_details, count)]
    for thread in threads:
        thread.start()
    for thread in threads[:2]:
        thread.join()
    stop.set()
    threads[2].join()
    assert turns[0] >= 5


def test_interpreters_of_one_model_run_in_parallel_and_agree():
    model = leadline.Model.from_bytes(sample_models.dense(batch=4))
    rng = np.random.default_rng(3)
    inputs = [rng.standard_normal((4, 256)).astype(np.float32) for _ in range(8)]

    def run(x):
        interpreter = Interpreter(model=model, num_threads=1)
        interpreter.allocate_tensors()
        for _ in range(50):
            interpreter.set_tensor(0, x)
            interpreter.invoke()
        return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])

    alone = [run(x) for x in inputs]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(run, inputs))
    for got, wanted in zip(together, alone, strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_many_threads_on_one_interpreter_take_turns():
    interpreter = make(sample_models.chain(length=3, size=64))
    x = np.linspace(-1, 1, 64, dtype=np.float32)[None]
    interpreter.set_tensor(0, x)
    interpreter.invoke()
    output = interpreter.get_output_details()[0]["index"]
    expected = interpreter.get_tensor(output)

    def hammer(_):
        for _ in range(200):
            interpreter.set_tensor(0, x)
            interpreter.invoke()
            interpreter.get_input_details()
            interpreter.plan()
            interpreter.allocate_tensors()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(hammer, range(4)))
    np.testing.assert_array_equal(interpreter.get_tensor(output), expected)


def test_signature_runners_give_each_thread_its_own_result():
    runner = Interpreter(model_content=sample_models.add()).get_signature_runner("add")

    def run(i):
        rows = 1 + i % 5
        result = runner(x=np.full((rows, 4), i, np.float32))["sum"]
        return result.tolist() == [[i, i + 1, i + 2, i + 3]] * rows

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(run, range(400)))
