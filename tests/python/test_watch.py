# SPDX-License-Identifier: Apache-2.0
"""leadline.watch: what grows too far ends in MemoryError, and everything else continues."""

import gc
import mmap
import os
import resource
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import leadline
from leadline._guard import alarm as alarm_module, watch as watch_module
from leadline.notebook.watch import _was_refused as was_refused

MB = 1_000_000


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


@pytest.fixture(autouse=True)
def flights(tmp_path, monkeypatch):
    """Recordings of these tests stay in a folder of their own, and no watch outlives its test."""
    monkeypatch.setenv("LEADLINE_FLIGHTS", str(tmp_path / "flights"))
    gc.collect()
    before = resource.getrlimit(resource.RLIMIT_DATA)
    yield tmp_path / "flights"
    assert not watch_module._stack
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
    # A thread that has been joined is still listed until the kernel is done with it.
    end = time.monotonic() + 5
    while watching_threads() and time.monotonic() < end:
        time.sleep(0.01)
    assert not watching_threads()


def watching_threads():
    return [thread for thread in os.listdir("/proc/self/task") if name_of(thread) == "leadline-watch"]


def name_of(thread):
    try:
        with open(f"/proc/self/task/{thread}/comm") as file:
            return file.read().strip()
    except OSError:
        return ""


def run_script(code, tmp_path, python=sys.executable, **environment):
    env = {**os.environ, "LEADLINE_FLIGHTS": str(tmp_path / "flights"), "IPYTHONDIR": str(tmp_path), **environment}
    command = [python, "-c", textwrap.dedent(code)]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=300)


def test_a_loop_that_allocates_is_stopped_and_its_variables_are_there():
    kept = []
    with leadline.watch(limit=resident() + 300 * MB) as watch, pytest.raises(leadline.MemoryLimitError) as caught:
        for _ in range(100):
            kept.append(np.ones(4 * MB))  # 32 MB
            time.sleep(0.005)
    assert 5 <= len(kept) <= 15
    message = str(caught.value)
    assert "which is its limit" in message
    assert "since the watch began" in message and "a second" in message
    assert "kept" in message and f"list of {len(kept)}" in message
    assert "accounted to Leadline" in message
    assert caught.value.largest[0].name == "kept" and caught.value.largest[0].bytes > 5 * 32 * MB
    assert isinstance(caught.value, MemoryError)
    assert watch.report().alarms == 1


def test_one_allocation_that_cannot_fit_is_refused_at_once():
    with leadline.watch(limit=resident() + 300 * MB):
        deadline = time.monotonic() + 5
        with pytest.raises(MemoryError):
            while time.monotonic() < deadline:  # the first look may come a moment after the start
                np.empty(500 * MB)
                time.sleep(0.01)
        assert np.ones(MB).sum() == MB
    np.empty(500 * MB)


GROWING_IN_A_HOLE = """
import ctypes
import leadline
if {early}:
    leadline.watch().stop()
MB = 1_000_000
hole = [bytearray(100_000) for _ in range(2_000)]
last = bytearray(100_000)  # what is below it stays with malloc
hole = None
array = bytearray(60 * MB)  # fits into the hole, so it is not mapped by itself
ctypes.CDLL(None).malloc_trim(0)  # the rest of the hole is empty
resident = int(open("/proc/self/statm").read().split()[1]) * 4096
with leadline.watch(limit=resident - (64 << 20) + 40 * MB):  # 64 MiB above it are let through
    try:
        array.append(0)  # takes 67 MB beside the 60
    except MemoryError:
        print("refused")
array = bytearray(600 * MB)  # is mapped by itself
with leadline.watch(limit=resident + 600 * MB):
    array.append(0)  # takes 75 MB more than there were, and not 675
"""


@pytest.mark.parametrize("early", [True, False])
def test_a_block_that_has_to_be_copied_when_it_grows_is_counted_whole(tmp_path, early):
    """A large block in the heap, not in a mapping of its own: realloc takes as much again before it frees the old one."""
    result = run_script(GROWING_IN_A_HOLE.format(early=early), tmp_path)
    assert (result.stdout, result.stderr) == ("refused\n", ""), result


def test_it_reaches_python_that_never_waits():
    with leadline.watch(limit=resident() + 100 * MB, refuse_large=False), pytest.raises(leadline.MemoryLimitError):
        kept = bytearray(200 * MB)
        kept[::4096] = b"x" * len(kept[::4096])
        end = time.monotonic() + 5
        while time.monotonic() < end:
            pass


WITHIN_A_WRITE = """
import io, os, sys, types
from leadline._guard import alarm
sample = {"container": True, "used": 9, "capacity": 10, "resident": 1, "worker_count": 0, "workers": 0}
watch = types.SimpleNamespace(limit=0.9, _cells_only=False, _thread=types.SimpleNamespace(
    take_alarm=lambda: {"warning": True, "cell": {"running": True}, "sample": sample}))
class Raw(io.RawIOBase):
    def writable(self): return True
    def write(self, data):
        if handling.pop("now", False): alarm.handle(watch, None)  # as when a signal comes while a program prints
        return os.write(2, bytes(data))
handling = {"now": True}
sys.stderr = io.TextIOWrapper(io.BufferedWriter(Raw()), line_buffering=True)
print("words of the program", file=sys.stderr)
sys.stderr = None
alarm.handle(watch, None)
print("done")
"""


def test_a_warning_in_the_middle_of_a_print_does_no_harm(tmp_path):
    result = run_script(WITHIN_A_WRITE, tmp_path)
    assert result.stdout == "done\n", result
    assert "words of the program\n" in result.stderr and result.stderr.count("leadline: 90 %") == 2, result.stderr


def test_it_costs_less_than_half_a_percent_of_a_core():
    with leadline.watch() as watch:
        end = time.monotonic() + 2
        while time.monotonic() < end:  # Python is busy: the thread never waits for its lock
            sum(range(1000))
        before = watch.cpu_seconds
        time.sleep(2)
        after = watch.cpu_seconds
    assert before / 2 < 0.005
    assert (after - before) / 2 < 0.005


def test_an_alarm_while_one_is_being_raised_does_not_take_its_place(monkeypatch):
    grown, text = [], b"x" * (4 * MB)

    def grow_on(*_, **__):
        end = time.monotonic() + 1.6  # longer than an alarm has to be heard
        while time.monotonic() < end:
            grown.append(mmap.mmap(-1, 4 * MB))
            grown[-1].write(text)
            time.sleep(0.05)
        return []

    monkeypatch.setattr(alarm_module, "largest_objects", grow_on)
    with leadline.watch(limit=resident() + 100 * MB), pytest.raises(leadline.MemoryLimitError) as caught:
        for _ in range(100):
            grown.append(np.ones(MB))
            time.sleep(0.005)
    assert [entry.name for entry in caught.traceback].count("handle") == 1


def test_growth_of_another_thread_stops_that_thread():
    kept = []
    stop = threading.Event()
    raised = []

    def grow():
        try:
            while not stop.is_set() and len(kept) < 40:
                kept.append(np.ones(MB))
                time.sleep(0.002)
        except leadline.MemoryLimitError as error:
            raised.append(error)

    with leadline.watch(limit=resident() + 100 * MB, refuse_large=False):
        thread = threading.Thread(target=grow)
        thread.start()
        for _ in range(1000):  # the main thread is not stopped
            if raised:
                break
            time.sleep(0.01)
        stop.set()
        thread.join()
    assert raised and "which is its limit" in str(raised[0]) and raised[0].sample["resident"] > 0


def test_a_pool_that_grew_loses_no_work():
    """An exception in a worker that waits for work would take the next piece along, and whoever waits for it would wait for
    ever: the cell itself is stopped instead."""
    grown = []
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()  # the worker waits for more
        (worker,) = pool._threads
        assert alarm_module._python_thread(worker.native_id) is worker
        assert not alarm_module._can_be_stopped(worker, instead_of_main=False)
        works = threading.Event()
        done = pool.submit(lambda: (works.set(), [time.sleep(0.01) for _ in range(200)], grown.append(1)))
        works.wait()
        time.sleep(0.1)
        assert alarm_module._can_be_stopped(worker, instead_of_main=False)
        assert not alarm_module._can_be_stopped(worker, instead_of_main=True), "somebody waits for it"
        leadline._leadline.raise_in_thread(worker.ident, leadline.MemoryLimitError)
        with pytest.raises(leadline.MemoryLimitError):
            done.result(timeout=20)
        assert pool.submit(int).result(timeout=20) == 0
    assert not grown


def test_who_waits_for_the_end_of_a_pool_is_not_stopped():
    """Whoever does not wait takes away what workers work on: pandas.read_csv crashed."""
    main, seen = threading.main_thread().ident, []
    with leadline.watch() as watch:

        def look():
            time.sleep(0.3)
            seen.append(alarm_module._may_raise(watch, sys._current_frames()[main]))

        with ThreadPoolExecutor(1) as pool:
            pool.submit(look).result()  # the main thread waits for a result here, and for the end there
            pool.submit(look)
    assert seen == [True, False]


def test_who_is_stopped_is_found_out_without_an_object_of_every_frame():
    """Where a recursion fills memory, they would take what is left."""
    made = []

    def recurse(depth):
        if depth:
            return recurse(depth - 1)
        before = sys.getallocatedblocks()
        assert alarm_module._may_raise(watch, sys._getframe())
        return made.append(sys.getallocatedblocks() - before)

    limit = sys.getrecursionlimit()
    with leadline.watch() as watch:
        watch._cells_only = True  # as in a notebook, where somebody has to own the frames
        sys.setrecursionlimit(110_000)
        try:
            recurse(100_000)
        finally:
            sys.setrecursionlimit(limit)
    assert made[0] < 5_000


@pytest.mark.parametrize(
    ("error", "refused"),
    [
        (MemoryError(), True),
        (ValueError("Error tokenizing data. C error: out of memory"), True),  # pandas' parser
        (RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 8 bytes"), True),
        (leadline.MemoryLimitError("has its numbers"), False),
        (ValueError("no such column"), False),
    ],
)
def test_errors_of_libraries_that_got_no_memory_are_explained(error, refused):
    assert was_refused(error) is refused


def test_an_inner_watch_takes_the_place_of_the_outer_one():
    with leadline.watch() as outer:
        outer.begin_cell(3, "x = 1")
        with leadline.watch(limit="900GB") as inner:
            assert inner.running and outer.running
            inner.begin_cell(1, "y")
            assert inner.end_cell()["number"] == 1
        outer.begin_cell(4, "z")
        assert outer.end_cell()["number"] == 4
        assert [cell["number"] for cell in outer.report().cells][-1] == 4
    assert not outer.running
    outer.stop()


def test_cells_are_listed_once_whatever_came_between():
    watch = leadline.watch(recorder=False)
    for number in range(1, 5):
        watch.begin_cell(number)
        watch.end_cell()
        with leadline.watch(recorder=False):
            pass
    assert [cell["number"] for cell in watch.report().cells] == [1, 2, 3, 4]
    watch.stop()
    assert [cell["number"] for cell in watch.report().cells] == [1, 2, 3, 4]


def test_report_and_cells():
    with leadline.watch(recorder=False) as watch:
        assert watch.recorder_path == ""
        watch.begin_cell(1, "big = np.ones(...)")
        # Not from malloc, which may have as much left over from other tests.
        big = np.frombuffer(mmap.mmap(-1, 80 * MB), np.uint8)
        big[:] = 1
        cell = watch.end_cell()
        del big
        assert watch.end_cell() is None
        report = watch.report()
    assert cell["peak"] - cell["before"] > 70 * MB
    assert "big = np.ones" in str(report) and "<table>" in report._repr_html_()
    assert report.peak >= cell["peak"]
    assert watch.report().cells, "after the stop too"


@pytest.mark.parametrize("limit", ["", "nonsense", 0, -1, "x%", None, True, float("nan")])
def test_impossible_limits(limit):
    with pytest.raises(leadline.InvalidArgumentError):
        leadline.watch(limit=limit)


def test_limits_of_all_kinds():
    assert watch_module._limits(0.5) == (0.5, 0)
    assert watch_module._limits("80%") == (0.8, 0)
    assert watch_module._limits("3GB") == (0.92, 3_000_000_000)
    assert watch_module._limits(1 << 30) == (0.92, 1 << 30)


def test_many_watches_leave_nothing_behind():
    with leadline.watch():
        pass
    descriptors = len(os.listdir("/proc/self/fd"))
    before = resident()
    for _ in range(100):
        with leadline.watch() as watch:
            watch.begin_cell(1, "x")
            watch.end_cell()
    del watch
    assert len(os.listdir("/proc/self/fd")) == descriptors
    assert resident() - before < 8 * MB


def test_a_folder_that_cannot_be_used_is_done_without(tmp_path):
    (tmp_path / "file").write_text("")
    code = "import leadline; w = leadline.watch(); print(repr(w.recorder_path)); w.stop()"
    result = run_script(code, tmp_path, LEADLINE_FLIGHTS=str(tmp_path / "file" / "flights"))
    assert (result.returncode, result.stdout.strip()) == (0, "''"), result.stderr


def test_a_forked_child_can_have_a_watch_of_its_own(tmp_path):
    code = """
        import os, sys, leadline
        outer = leadline.watch()
        path = outer.recorder_path
        child = os.fork()
        if child == 0:
            assert not outer.running
            with leadline.watch() as inner:
                os._exit(0 if inner.recorder_path and inner.recorder_path != path else 1)
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    result = run_script(code, tmp_path)
    assert result.returncode == 0, result.stderr


def test_largest_objects_finds_names_and_what_has_none():
    class Holder:
        pass

    holder = Holder()
    holder.data = {"a": [np.ones(2 * MB), np.ones(3 * MB)]}
    view = np.ones(4 * MB)[::2]
    found = leadline.largest_objects(20)
    by_name = {item.name: item for item in found}
    assert by_name["holder"].bytes >= 40 * MB
    assert by_name["view"].bytes == 32 * MB, "the memory that it keeps"
    assert str(by_name["view"]).startswith("  30.5 MiB  view")
    del view, holder


IPYTHON = """
    import numpy as np, sys
    from IPython.core.interactiveshell import InteractiveShell
    import leadline
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "leadline")
    resident = lambda: int(open("/proc/self/statm").read().split()[1]) * 4096
    shell.user_ns.update(np=np)
    assert shell.run_cell("%watch cells").success
    assert shell.run_cell("x = 41").success
    shell.run_line_magic("watch", str(resident() + 300_000_000))
    result = shell.run_cell("import time\\nkept = []\\nwhile True: kept.append(np.ones(4_000_000)); time.sleep(0.005)")
    assert isinstance(result.error_in_exec, leadline.MemoryLimitError), result
    assert shell.user_ns["x"] == 41 and len(shell.user_ns["kept"]) > 4
    assert shell.run_cell("x + 1").result == 42
    big = shell.run_cell("time.sleep(0.1); np.ones(4_000_000_000)")
    assert isinstance(big.error_in_exec, MemoryError)
    report = shell.run_line_magic("watch", "")
    assert any(cell["first_line"] == "x + 1" for cell in report.cells), report
    shell.run_cell("%unload_ext leadline")
    assert not leadline._guard.watch._stack
"""


def test_largest_objects_names_what_it_found_before_memory_ended(monkeypatch):
    def refused():
        raise MemoryError

    monkeypatch.setattr(gc, "get_objects", refused)  # a list of all objects is larger than what may be left
    large = np.ones(MB)
    assert ("large", large.nbytes) in [(item.name, item.bytes) for item in leadline.largest_objects(5)]


def test_in_ipython(tmp_path):
    pytest.importorskip("IPython", reason="IPython is not installed")
    result = run_script(IPYTHON, tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "peak" in result.stdout and "growth" in result.stdout
    assert "29.8 GiB more were refused" in result.stderr
