# SPDX-License-Identifier: Apache-2.0
"""Forks and threads: a forked process gets results or an error, never a hang."""

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest
import sample_models
from test_runaway import endless, ready, run_out_of_time

import leadline
from leadline import lite

pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")


def in_child(work) -> str:
    """What `work` returns, or the exception's class and text, in a forked process that has 30 seconds."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of Python 3.12: there are other threads
        child = os.fork()
    if child == 0:
        signal.alarm(30)
        try:
            text = str(work())
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        os.write(writing, text.encode()[:4000])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    assert status == 0, f"the child died of signal {os.WTERMSIG(status)}"
    return answer


def result_of(interpreter: lite.Interpreter) -> list:
    details = interpreter.get_input_details()[0]
    interpreter.set_tensor(details["index"], np.ones(details["shape"], details["dtype"]))
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).tolist()


@pytest.mark.parametrize("threads", [1, 2])
def test_an_idle_interpreter_works_in_the_child(threads):
    interpreter = ready(sample_models.dense(batch=64), num_threads=threads)
    expected = result_of(interpreter)
    assert in_child(lambda: result_of(interpreter) == expected) == "True"
    fresh = lambda: result_of(ready(sample_models.dense(batch=64), num_threads=threads)) == expected  # noqa: E731
    assert in_child(fresh) == "True"
    assert result_of(interpreter) == expected


def test_a_fork_during_a_run_gives_an_error_in_the_child():
    interpreter = ready(endless())
    thread = threading.Thread(target=run_out_of_time, args=(interpreter, 2))
    thread.start()
    time.sleep(0.2)
    answer = in_child(interpreter.invoke)
    assert "forked" in answer and "make a new one" in answer
    assert "TimeLimitError" in in_child(lambda: ready(endless()).invoke(timeout=0.1))  # a new one works
    thread.join()
    with pytest.raises(leadline.TimeLimitError):  # and here it continues as before
        interpreter.invoke(timeout=0.1)


def pool_job(number: int) -> float:
    return float(np.sum(result_of(ready(sample_models.dense(batch=2), num_threads=2)))) + number


def test_a_pool_of_forked_processes_works_while_threads_run():
    interpreter = ready(sample_models.slow(size=256, count=4), num_threads=2)
    stop = threading.Event()

    def work():
        while not stop.is_set():
            interpreter.invoke()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            with multiprocessing.get_context("fork").Pool(2) as pool:
                results = pool.map_async(pool_job, range(8)).get(timeout=60)
    finally:
        stop.set()
        thread.join()
    assert results == [pool_job(0) + i for i in range(8)]


def test_many_threads_make_run_and_drop_interpreters():
    content = sample_models.dense(batch=4)
    expected = result_of(ready(content))
    wrong = []

    def work(number):
        for _ in range(10):
            interpreter = ready(content, num_threads=1 + number % 2)
            if result_of(interpreter) != expected:
                wrong.append(number)
            del interpreter

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_an_interpreter_dropped_while_another_thread_runs_it():
    interpreter = ready(endless())
    box = [interpreter, 0.5]
    thread = threading.Thread(target=run_out_of_time, args=box)
    thread.start()
    del interpreter
    box.clear()
    gc.collect()
    thread.join()


def in_program(code: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("save", [False, True])
@pytest.mark.parametrize("watch", ["leadline.watch", "kept = leadline.watch"])
def test_a_child_of_a_watched_process_ends(watch, save):
    """Threads of the watch are not in the child, and what they wait on cannot be destroyed there."""
    done = in_program(
        f"import leadline, os, sys\n{watch}(save={save})\nchild = os.fork()\n"
        "if child == 0: sys.exit(7)\nprint(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))"
    )
    assert done.stdout == "7\n", done


def test_a_pool_under_a_watch():
    done = in_program(
        "import leadline, multiprocessing\nleadline.watch()\n"
        "with multiprocessing.get_context('fork').Pool(2) as pool: print(pool.map(abs, [-1, -2]))"
    )
    assert done.stdout == "[1, 2]\n", done
