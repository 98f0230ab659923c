# SPDX-License-Identifier: Apache-2.0
"""leadline.guard: what the child does comes back, how it dies is told, and nothing of it stays."""

import ctypes
import functools
import gc
import io
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

import leadline
from leadline import GuardError, guard
from leadline._guard import guard as guard_module, transport

MB = 1_000_000
LONG = os.environ.get("LEADLINE_LONG") == "1"


@pytest.fixture(autouse=True, scope="module")
def leave_nothing():
    """No process, descriptor or shared memory of these tests outlives them."""
    guard_module._close_idle()
    others = set(descendants())  # such as the resource tracker of process pools in other tests
    before = descriptors(), shared_memory()
    yield
    guard_module._close_idle()
    gc.collect()
    assert set(descendants()) <= others
    assert (descriptors(), shared_memory()) == before


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def shared_memory():
    mapped = Path("/proc/self/maps").read_text().count("leadline-guard")
    return sorted(os.listdir("/dev/shm")), mapped


def descendants(pid=None):
    """Processes below this one, zombies too."""
    found = []
    for task in os.listdir(f"/proc/{pid or 'self'}/task"):
        for child in Path(f"/proc/{pid or 'self'}/task/{task}/children").read_text().split():
            try:
                found += [int(child), *descendants(child)]
            except OSError:
                pass
    return found


def alive(pid):
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def death(fn, *args, **options):
    with pytest.raises(GuardError) as caught:
        guard(fn, *args, **options)
    return caught.value


def fails_with(error):
    raise error


def double(array):
    return array * 2


@guard(memory="1GB")
def decorated(x):
    return x + 1, os.getpid()


# What comes back


def test_results_come_back_and_the_child_is_kept():
    first, second = guard(os.getpid), guard(os.getpid)
    assert first == second != os.getpid()
    assert guard(os.getpid, memory="900MB") != first
    assert guard(divmod, 7, 2) == (3, 1)
    assert guard(sorted, [3, 1, 2], reverse=True) == [3, 2, 1]


def test_a_share_of_memory_keeps_the_child_though_what_is_available_changes():
    first = guard(os.getpid, memory="40%")
    ballast = np.ones(10_000_000)
    assert guard(os.getpid, memory="40% ") == first
    assert guard(os.getpid, memory="41%") != first
    assert ballast[0] == 1


def test_a_change_of_the_environment_reaches_the_child(monkeypatch, tmp_path):
    monkeypatch.setenv("LEADLINE_TEST", "one")
    assert guard(os.getenv, "LEADLINE_TEST") == "one"
    monkeypatch.setenv("LEADLINE_TEST", "two")
    assert guard(os.getenv, "LEADLINE_TEST") == "two"
    monkeypatch.chdir(tmp_path)
    assert guard(os.getcwd) == str(tmp_path)


def test_the_decorator():
    value, pid = decorated(1)
    assert value == 2 and pid != os.getpid()
    assert decorated.__name__ == "decorated"
    assert decorated.__wrapped__(1) == (2, os.getpid())


@pytest.mark.parametrize("pickler", ["cloudpickle", "own"])
def test_functions_without_a_module_travel(monkeypatch, pickler):
    if pickler == "cloudpickle":
        pytest.importorskip("cloudpickle", reason="cloudpickle is not installed")
    else:
        monkeypatch.setitem(sys.modules, "cloudpickle", None)
    offset = 10

    def factorial(n):
        return 1 if n == 0 else n * factorial(n - 1)

    def with_defaults(a, b=2, *, c=3):
        return a + b + c + offset

    assert guard(lambda x: x + offset, 5) == 15
    assert guard(factorial, 5) == 120
    assert guard(with_defaults, 1, c=0) == 13
    assert guard(functools.partial(with_defaults, 1), 1) == 15
    namespace = {"__name__": "__main__", "np": np, "state": [1, 2]}
    exec("def helper(x):\n  return np.sum(x)\ndef main(x):\n  return helper(x) + len(state)", namespace)
    assert guard(namespace["main"], np.arange(4)) == 8


def test_what_cannot_travel_says_so_and_the_child_stays():
    pid = guard(os.getpid)
    with pytest.raises(leadline.InvalidArgumentError, match=r"cannot send .*pip install cloudpickle"):
        guard(id, threading.Lock())
    with pytest.raises(leadline.InvalidArgumentError, match="result, of type lock, cannot be sent"):
        guard(threading.Lock)
    assert guard(os.getpid) == pid


def test_exceptions_come_back_as_themselves():
    with pytest.raises(KeyError) as caught:
        guard(fails_with, KeyError("lost"))
    assert caught.value.args == ("lost",)
    cause = str(caught.value.__cause__)
    assert "fails_with" in cause and "test_guard.py" in cause and "_guard/worker.py" not in cause


def test_exceptions_that_hold_what_cannot_travel_arrive_without_it(monkeypatch, tmp_path):
    (tmp_path / "locked.py").write_text("""
import threading
class Locked(ValueError):
    def __init__(self, lock, words):
        super().__init__(words, lock)
        self.lock, self.words = lock, words
    def __str__(self):
        return self.words
def fail():
    raise Locked(threading.Lock(), "the words")
""")
    monkeypatch.syspath_prepend(tmp_path)
    import locked

    with pytest.raises(locked.Locked, match="the words") as caught:
        guard(locked.fail)
    assert caught.value.lock is None and caught.value.args == ("the words", None)


def test_an_exception_does_not_bring_its_package_along(monkeypatch, tmp_path):
    (tmp_path / "heavy.py").write_text("class Heavy(OSError):\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(OSError, match="^too heavy$") as caught:
        guard(exec, "import heavy; raise heavy.Heavy('too heavy')")
    assert type(caught.value).__name__ == "Heavy" and "heavy" not in sys.modules
    assert "heavy.Heavy: too heavy" in str(caught.value.__cause__)
    with pytest.raises(TypeError, match="Heavy"):  # nor does one that only holds something of it
        guard(exec, "import heavy; raise TypeError('odd', heavy.Heavy)")
    assert "heavy" not in sys.modules


def test_an_allocation_far_beyond_the_limit_is_a_memory_error():
    with pytest.raises(MemoryError):
        guard(np.ones, 10**12, memory="500MB")


@pytest.mark.parametrize("megabytes", [0.001, 1, 60, 2000])
def test_arrays_go_in_and_out_unchanged(megabytes):
    if megabytes > 500 and not LONG:
        pytest.skip("LEADLINE_LONG=1")
    array = np.arange(int(megabytes * MB / 8), dtype=np.float64)
    result = guard(double, array, memory=None if megabytes < 500 else "8GB", timeout=300)
    assert result.shape == array.shape and result.flags.writeable
    assert np.array_equal(result, array * 2)
    result[0] = 7


def test_many_arrays_share_few_descriptors():
    arrays = {str(i): np.full(10_000 + 1_000 * i, i, np.int64) for i in range(150)}
    before = descriptors()
    result = guard(lambda d: {key: value + 1 for key, value in d.items()}, arrays)
    assert descriptors() <= before + 4
    assert all(np.array_equal(result[key], arrays[key] + 1) for key in arrays)


def test_large_objects_that_are_no_arrays():
    data = os.urandom(5 * MB)
    assert guard(lambda x: {"again": x}, data)["again"] == data


# Output


def test_output_streams_while_the_function_runs(capsys):
    def talk():
        print("zu früh? ✓")
        print("oops", file=sys.stderr)
        os.write(1, b"raw\n")
        subprocess.run(["echo", "from a subprocess"], check=True)

    guard(talk)
    captured = capsys.readouterr()
    assert captured.out == "zu früh? ✓\nraw\nfrom a subprocess\n"
    assert captured.err == "oops\n"


def test_output_that_the_terminal_cannot_show(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    guard(print, "ü ✓")
    assert stream.buffer.getvalue() == b"\\xfc \\u2713\n"


def test_output_is_live(monkeypatch):
    times = []

    class Stream:
        def write(self, text):
            times.append(time.monotonic())

        def flush(self):
            pass

    def talk():
        print("now")
        time.sleep(0.5)

    guard(int)
    monkeypatch.setattr(sys, "stdout", Stream())
    guard(talk)
    assert time.monotonic() - times[0] > 0.4


def test_much_output(monkeypatch):
    count = 0

    class Counter:
        def write(self, text):
            nonlocal count
            count += len(text)

        def flush(self):
            pass

    def talk(lines):
        line = b"x" * 999 + b"\n"
        for _ in range(lines // 100):
            os.write(1, line * 100)
        os.kill(os.getpid(), signal.SIGSEGV)

    lines = 1_000_000 if LONG else 100_000
    monkeypatch.setattr(sys, "stdout", Counter())
    error = death(talk, lines)
    assert count == 1000 * lines
    assert error.signal == signal.SIGSEGV
    assert 1 <= len(error.last_lines) <= 50 and max(map(len, error.last_lines)) <= 999


# Deaths


def test_memory():
    def grow():
        kept = []
        while True:
            kept.append(np.ones(1_000_000))

    error = death(grow, memory="300MB", timeout=60)
    assert (error.cause, error.exit_code) == ("memory", None)
    assert 300 * MB < error.peak_bytes < 900 * MB
    assert ("286.1 MiB" in str(error) and "memory" in error.advice.lower()) or "batches" in error.advice
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
        "import sys, os, time, subprocess; sys.path[:0] = [sys.argv[2]]; import leadline, test_guard\n"
        "leadline.guard(test_guard.record_and_hang, sys.argv[1])"
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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"memory": 0}, "memory must be positive"),
        ({"memory": "much"}, "much"),
        ({"timeout": -1}, "timeout must be a positive"),
        ({"timeout": float("nan")}, "timeout must be a positive"),
        ({"processes": 0}, "processes must be positive"),
    ],
)
def test_wrong_limits(options, message):
    with pytest.raises(leadline.InvalidArgumentError, match=message):
        guard(int, **options)


def test_what_is_not_a_message_is_refused():
    import socket

    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"x" * 100)
        with pytest.raises(transport.ProtocolError):
            transport.receive(ours)
        theirs.close()
        while True:
            try:
                transport.receive(ours)
            except transport.ProtocolError:
                continue
            except EOFError:
                break
