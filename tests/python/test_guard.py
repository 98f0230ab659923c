# SPDX-License-Identifier: Apache-2.0
"""leadline.guard: what goes into the child and what comes back."""

import functools
import io
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from guarded import MB, death, descriptors, double

import leadline
from leadline import guard
from leadline._guard import transport

pytestmark = pytest.mark.usefixtures("leave_nothing")
LONG = os.environ.get("LEADLINE_LONG") == "1"


def fails_with(error):
    raise error


@guard(memory="1GB")
def decorated(x):
    return x + 1, os.getpid()


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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"memory": 0}, "memory must be positive"),
        ({"memory": "much"}, "much"),
        ({"timeout": -1}, "timeout must be a positive"),
        ({"timeout": float("nan")}, "timeout must be a positive"),
        ({"timeout": "soon"}, "timeout must be a positive"),
        ({"processes": 0}, "processes must be positive"),
        ({"memory": float("nan")}, "memory must be a number of bytes .* not nan"),
        ({"memory": float("inf")}, "memory must be a number of bytes"),
        ({"memory": [1]}, "memory must be a number of bytes"),
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


# What a stranger would try


def test_the_current_code_runs_after_a_reload(monkeypatch, tmp_path):
    import importlib

    source = tmp_path / "reloaded_by_guard.py"
    source.write_text("def f(): return 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    import reloaded_by_guard

    assert guard(reloaded_by_guard.f) == 1
    pid = guard(os.getpid)
    source.write_text("def f(): return 'two'\n")
    importlib.reload(reloaded_by_guard)
    assert guard(reloaded_by_guard.f) == reloaded_by_guard.f() == "two"
    assert guard(os.getpid) != pid


def test_a_deleted_working_folder(monkeypatch, tmp_path):
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert guard(os.getcwd) == str(folder)
    folder.rmdir()
    with pytest.raises(leadline.IoError, match="working folder that was deleted"):
        guard(int)
    monkeypatch.chdir(tmp_path)
    assert guard(os.getcwd) == str(tmp_path)


def test_no_standard_output(monkeypatch, capsys):
    def without():
        sys.stdout = sys.stderr = None
        return 1

    assert guard(without) == 1
    guard(print, "back")
    assert capsys.readouterr().out == "back\n"
    guard(lambda: sys.stdout.close())
    guard(print, "again")
    assert capsys.readouterr().out == "again\n"
    with monkeypatch.context() as here:
        here.setattr(sys, "stdout", None)
        assert guard(lambda: print("nowhere") or 2) == 2


def test_a_limit_of_file_sizes():
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    array = np.arange(1_000_000.0)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        result = guard(double, array)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert np.array_equal(result, 2 * array) and result.flags.writeable and result.flags.aligned


def test_a_guard_at_the_end_of_the_interpreter():
    code = """
import leadline, sys
sys.argv[1:] and leadline.guard
class Late:
    def __del__(self):
        try:
            leadline.guard(int)
        except leadline.Error as error:
            print("leadline:", error)
late = Late()
"""
    for words in ([], ["imported"]):
        shown = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
        assert "this Python is shutting down" in shown.stdout, shown
        assert shown.stderr == ""


def test_exceptions_with_arguments_of_their_own(monkeypatch, tmp_path):
    (tmp_path / "picky.py").write_text("""
class Picky(ValueError):
    def __init__(self, code, words):
        super().__init__(f"{code}: {words}")
        self.code, self.words = code, words
def fail():
    raise Picky(7, "no")
""")
    monkeypatch.syspath_prepend(tmp_path)
    import picky

    with pytest.raises(picky.Picky, match="^7: no$") as caught:
        guard(picky.fail)
    assert (caught.value.code, caught.value.words) == (7, "no")


def test_coroutines_are_awaited():
    import asyncio

    async def later(x):
        await asyncio.sleep(0.01)
        return x, os.getpid()

    value, pid = guard(later, 3)
    assert value == 3 and pid != os.getpid()
    decorated = guard(memory="1GB")(later)
    assert asyncio.run(decorated(4))[0] == 4


def test_open_files_do_not_travel(tmp_path):
    with (
        open(tmp_path / "f", "w+") as file,
        pytest.raises(leadline.InvalidArgumentError, match="open file .*cannot be sent"),
    ):
        guard(len, file)


def test_input_is_asked_for_here(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.StringIO("Ada\n"))
    assert guard(lambda: (print("first"), input("name? "))[1]) == "Ada"
    assert capsys.readouterr().out == "first\nname? "
    with pytest.raises(EOFError):
        guard(input)


def test_a_script_without_a_main_guard_and_a_pool(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("""
import leadline
from multiprocessing import Pool
print("once")
def plus(x): return x + 1
def work(n):
    with Pool(2) as pool:
        return pool.map(plus, range(n))
print(leadline.guard(work, 3))
""")
    shown = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True, timeout=120)
    assert shown.stdout == "once\n[1, 2, 3]\n"


def test_a_million_frames_are_not_printed():
    def deep():
        sys.setrecursionlimit(200_000)

        def down(n):
            return down(n - 1) if n else 1 / 0

        return down(100_000)

    start = time.monotonic()
    with pytest.raises(ZeroDivisionError) as caught:
        guard(deep)
    assert time.monotonic() - start < 30
    assert len(str(caught.value.__cause__)) < 100_000
