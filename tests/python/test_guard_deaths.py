# SPDX-License-Identifier: Apache-2.0
"""leadline.guard: how the child dies is told, and nothing of it stays."""

import ctypes
import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from guarded import MB, alive, death, descendants, descriptors, double, shared_memory

from leadline import GuardError, guard
from leadline._guard import guard as guard_module

pytestmark = pytest.mark.usefixtures("leave_nothing")
LONG = os.environ.get("LEADLINE_LONG") == "1"


def test_memory():
    def grow():
        kept = []
        while True:
            kept.append(np.ones(1_000_000))

    error = death(grow, memory="300MB", timeout=60)
    assert (error.cause, error.exit_code) == ("memory", None)
    assert 300 * MB < error.peak_bytes < 900 * MB
    assert ("300 MB" in str(error) and "memory" in error.advice.lower()) or "batches" in error.advice
    assert "in grow" in error.python_stack


def test_memory_of_children_counts():
    def grow():
        code = "import time; x = bytearray(120_000_000); time.sleep(60)"
        children = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(4)]
        for child in children:
            child.wait()

    assert death(grow, memory="350MB", timeout=60).cause == "memory"


def test_segmentation_fault():
    error = death(ctypes.string_at, 0)
    assert (error.cause, error.signal) == ("signal", signal.SIGSEGV)
    assert "string_at" in error.python_stack and "_guard/worker.py" not in error.python_stack
    assert "SIGSEGV" in str(error) and error.advice


def test_abort():
    def give_up():
        print("fatal: the last word")
        os.abort()

    error = death(give_up)
    assert (error.cause, error.signal) == ("signal", signal.SIGABRT)
    assert error.last_lines == ["fatal: the last word"]
    assert "give_up" in error.python_stack


def test_kill_from_outside():
    error = death(lambda: os.kill(os.getpid(), signal.SIGKILL))
    assert (error.cause, error.signal) == ("signal", signal.SIGKILL)


@pytest.mark.parametrize("leave", [os._exit, sys.exit])
def test_exit(leave):
    error = death(leave, 5)
    assert (error.cause, error.exit_code, error.signal) == ("exit", 5, None)


def test_endless_loop():
    def spin():
        while True:
            pass

    start = time.monotonic()
    error = death(spin, timeout=0.5)
    assert error.cause == "timeout"
    assert "in spin" in error.python_stack
    assert time.monotonic() - start < 10


def test_stuck_in_native_code():
    def hang():
        ctypes.PyDLL(None).sleep(1000)  # with the GIL

    error = death(hang, timeout=0.5)
    assert error.cause == "timeout"
    assert "in hang" in error.python_stack


def start_sleepers(count, path, own_session):
    def sleeper():
        if own_session:
            os.setsid()
        if os.fork() == 0:  # orphaned at once
            with open(path, "a") as file:
                file.write(f"{os.getpid()}\n")
            time.sleep(1000)
        os._exit(0)

    for _ in range(count):
        if os.fork() == 0:
            sleeper()
    while len(Path(path).read_text().split() if Path(path).exists() else []) < count:
        time.sleep(0.01)


@pytest.mark.parametrize("end", ["return", "die", "timeout"])
def test_fifty_processes_in_sessions_of_their_own_are_gone_with_the_call(tmp_path, end):
    path = tmp_path / "pids"

    def bomb():
        start_sleepers(50, path, own_session=True)
        if end == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if end == "timeout":
            time.sleep(1000)

    if end == "return":
        guard(bomb, timeout=60)
    else:
        assert death(bomb, timeout=5 if end == "timeout" else 60).cause == ("timeout" if end == "timeout" else "signal")
    pids = path.read_text().split()
    assert len(pids) == 50
    assert not any(alive(pid) for pid in pids)
    assert guard(int) == 0


def test_a_process_that_hides_is_gone_too(tmp_path):
    """In a session of its own, with an environment of its own, orphaned by a crash."""
    path = tmp_path / "pid"

    def hide():
        subprocess.Popen(["env", "-i", "setsid", "sh", "-c", f"echo $$ > {path}; exec sleep 1000"])
        while not path.exists() or not path.read_text():
            time.sleep(0.01)
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGSEGV)

    assert death(hide, timeout=60).signal == signal.SIGSEGV
    assert not alive(path.read_text().strip())


def test_a_fork_that_runs_on_does_not_answer():
    def split():
        if os.fork() == 0:
            return "copy"
        os.wait()
        return "original"

    assert guard(split, timeout=60) == "original"
    assert guard(int, "7") == 7


def test_code_that_closes_every_descriptor():
    def close_all():
        os.closerange(3, 10_000)
        time.sleep(0.3)
        return time.process_time()

    assert death(close_all, timeout=60).cause in ("exit", "signal")
    assert guard(int) == 0


def test_too_many_processes():
    def bomb():
        while True:
            if os.fork() == 0:
                time.sleep(1000)

    assert death(bomb, processes=40, timeout=60).cause == "processes"


# Ctrl-C, threads, forks, the end of the caller


@pytest.fixture
def interrupt_after():
    """Presses Ctrl-C later. Programs that run in the background of a shell ignore it; these tests must not."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda seconds: threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_interrupts_the_function_and_keeps_the_child(capsys, interrupt_after):
    def sleep():
        try:
            time.sleep(1000)
        finally:
            print("cleaned up")

    pid = guard(os.getpid)
    interrupt_after(0.5)
    with pytest.raises(KeyboardInterrupt):
        guard(sleep)
    assert capsys.readouterr().out == "cleaned up\n"
    assert guard(os.getpid) == pid


def test_ctrl_c_kills_what_does_not_listen(monkeypatch, interrupt_after):
    def deaf():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        while True:
            time.sleep(1)

    monkeypatch.setattr(guard_module, "_INTERRUPT_SECONDS", 0.3)
    pid = guard(os.getpid)
    interrupt_after(0.5)
    with pytest.raises(KeyboardInterrupt):
        guard(deaf)
    assert not alive(pid)


def test_threads_have_a_child_each():
    pids = []
    barrier = threading.Barrier(2)

    def run():
        barrier.wait()
        pids.append(guard(lambda: (time.sleep(1), os.getpid())[1]))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(pids)) == 2
    time.sleep(0.2)
    assert guard(os.getpid) in pids  # the thread that started it is gone, the child is not


def test_a_forked_copy_of_the_caller_leaves_the_child_alone():
    pid = guard(os.getpid)
    copy = os.fork()
    if copy == 0:
        guard_module._idle.clear()
        gc.collect()
        os._exit(0 if guard(int) == 0 else 1)
    assert os.waitpid(copy, 0)[1] == 0
    assert guard(os.getpid) == pid


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGTERM])
def test_the_child_and_its_children_die_with_the_caller(tmp_path, sign):
    code = (
        "import sys, os, time, subprocess; sys.path[:0] = [sys.argv[2]]; import leadline, test_guard_deaths\n"
        "leadline.guard(test_guard_deaths.record_and_hang, sys.argv[1])"
    )
    path = tmp_path / "pids"
    caller = subprocess.Popen([sys.executable, "-c", code, path, Path(__file__).parent])
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and (not path.exists() or len(path.read_text().split()) < 2):
        time.sleep(0.02)
    caller.send_signal(sign)
    caller.wait()
    pids = path.read_text().split()
    assert len(pids) == 2
    while time.monotonic() < deadline and any(map(alive, pids)):
        time.sleep(0.02)
    assert not any(map(alive, pids))


def record_and_hang(path):
    child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    Path(path).write_text(f"{os.getpid()} {child.pid}")
    ctypes.PyDLL(None).sleep(1000)


def test_guards_can_be_nested():
    def outer():
        try:
            guard(os.abort)
        except GuardError as error:
            return error

    error = guard(outer)
    assert (error.cause, error.signal) == ("signal", signal.SIGABRT)
    assert pickle.loads(pickle.dumps(error)).advice == error.advice


def test_many_calls_leave_nothing():
    guard(int)
    guard_module._close_idle()
    gc.collect()
    before = descriptors(), shared_memory(), descendants()
    array = np.ones(300_000)
    for i in range(500 if LONG else 60):
        if i % 12 == 11:
            death(os.abort)
        else:
            assert guard(double, array)[0] == 2
    guard_module._close_idle()
    gc.collect()
    assert (descriptors(), shared_memory(), descendants()) == before
