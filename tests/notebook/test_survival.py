# SPDX-License-Identifier: Apache-2.0
"""Cells that take all memory of a container end in an error, and their kernel lives: the short form of `make survive`."""

import sys
import time
from pathlib import Path

import pytest

import kernels

sys.path.insert(0, str(Path(__file__).parents[1] / "survive"))

import healthy
import healthy_run
import situations

MB = 1_000_000
LIMIT = 512 * MB


def make_group():
    made = kernels.MemoryGroup(LIMIT)
    if not made.made:
        pytest.skip("no control group with a memory limit can be made here")
    return made


@pytest.fixture
def group():
    with make_group() as made:
        yield made


def start(folder, group=None, code=situations.SETUP, **env):
    if kernels.PLAIN is None:
        pytest.skip("there is no .venv: run make setup")
    env = {"LEADLINE_FLIGHTS": str(folder / "flights"), "LEADLINE_WATCH": None, "LEADLINE_SAVE": None, **env}
    kernel = kernels.Kernel(kernels.PLAIN, folder, wrapper=group.wrapper if group else (), env=env)
    if code:
        loaded = kernel.run(code)
        assert loaded.error is None, loaded
    return kernel


def check(kernel):
    checked = kernel.run(situations.CHECK)
    assert checked.value == situations.CHECKED, checked


@pytest.fixture(scope="module")
def contained(tmp_path_factory):
    """One kernel for many cells, as a notebook has it."""
    with make_group() as group, start(tmp_path_factory.mktemp("contained"), group) as kernel:
        yield kernel


@pytest.mark.parametrize("situation", situations.PYTHON, ids=lambda situation: situation.name)
def test_a_loop_that_takes_all_memory(contained, situation):
    if situation.prepare:
        prepared = contained.run(situation.prepare)
        assert prepared.error is None, prepared
    for size in situations.sizes(LIMIT, 3, situation.largest):
        result = contained.run(situation.cell.format(size=size, pause=0), timeout=120)
        assert not result.died, (size, result)
        assert result.error in ("MemoryError", "MemoryLimitError"), (size, result)
        check(contained)


def test_a_refusal_says_its_numbers(contained):
    result = contained.run("big = np.ones(100_000_000)")
    assert result.error == "MemoryError", result
    assert "762.9 MiB more were refused" in result.stderr and "kept for the report" in result.stderr, result
    check(contained)


@pytest.mark.parametrize("where", ["load", "limit"])
def test_the_rest_of_the_cell_that_starts_the_watch_is_watched(tmp_path, group, where):
    code = "import numpy as np\nL = []\nwhile True: L.append(np.ones(1_000_000))"
    if where == "load":
        kernel = start(tmp_path, group, code="")
        code = "%load_ext leadline\n" + code
    else:
        kernel = start(tmp_path)
        code = "%watch 400MB\n" + code
    with kernel:
        result = kernel.run(code, timeout=120)
        assert not result.died and result.error in ("MemoryError", "MemoryLimitError"), result
        assert int(kernel.run("sum(a.nbytes for a in L)").value) < 512 * MB


THREAD = """
import threading
kept_growing = []
def grow():
    while True:
        kept_growing.append({what})
        time.sleep(0.001)
thread = threading.Thread(target=grow)
thread.start()
"""
TASK = """
import asyncio
kept_growing = []
async def grow():
    while True:
        kept_growing.append({what})
        await asyncio.sleep(0.001)
thread = asyncio.get_running_loop().create_task(grow())
"""


@pytest.mark.parametrize("kind", [THREAD, TASK], ids=["thread", "task"])
@pytest.mark.parametrize("what", ["np.ones(500_000)", "list(map(float, range(40_000)))"], ids=["arrays", "objects"])
def test_growth_between_cells_is_stopped(tmp_path, group, kind, what):
    with start(tmp_path, group) as kernel:
        assert kernel.run(kind.format(what=what)).error is None
        ended = "not thread.is_alive()" if kind is THREAD else "thread.done()"
        end = time.monotonic() + 60
        while time.monotonic() < end:
            time.sleep(0.5)  # the kernel is idle meanwhile
            result = kernel.run(ended)
            assert not result.died, result
            if result.value == "True":
                break
        assert result.value == "True", "it still grows"
        assert kernel.run("len(kept_growing) > 20; del kept_growing").error is None
        check(kernel)


POOL = """
# a worker grows in native code, then waits for the next piece while the alarm is on its way
import ctypes, mmap, time
from concurrent.futures import ThreadPoolExecutor
memset = ctypes.CDLL(None).memset
def take(size):
    place = mmap.mmap(-1, size)
    memset(ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(place))), 1, ctypes.c_size_t(size))
    return place
L = []
with ThreadPoolExecutor(1) as pool:
    while True:
        L.append(pool.submit(take, 1_000_000).result())
        time.sleep(0.002)  # native growth at full speed outruns a watch that waits for a busy machine
"""


def test_a_pool_whose_workers_grow_does_not_hang(tmp_path, group):
    with start(tmp_path, group) as kernel:
        for _ in range(3):
            result = kernel.run(POOL, timeout=60)
            assert not result.died and result.error in ("MemoryError", "MemoryLimitError"), result
            check(kernel)


def test_who_grows_is_stopped_and_not_who_sits_beside(tmp_path, group):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with start(tmp_path / "a", group) as idle, start(tmp_path / "b", group) as grows:
        waiting = "import time\nmine = [bytes(8192)]\nend = time.monotonic() + 12\nwhile time.monotonic() < end: time.sleep(0.01)"
        request = idle._client.execute(waiting, allow_stdin=False)
        time.sleep(1)
        result = grows.run("L = []\nwhile True: L.append(np.ones(500_000)); time.sleep(0.005)", timeout=120)
        assert not result.died and result.error in ("MemoryError", "MemoryLimitError"), result
        reply = idle._client.get_shell_msg(timeout=60)
        while reply["parent_header"]["msg_id"] != request:
            reply = idle._client.get_shell_msg(timeout=60)
        assert reply["content"]["status"] == "ok", reply["content"]
        check(grows)
        assert idle.answers()


def test_workers_are_counted_and_named(tmp_path, group):
    code = """
import multiprocessing, time
def grow(i):
    L = []
    for _ in range(100):
        L.append(b'x' * 2_000_000); time.sleep(0.02)
    return len(L)
with multiprocessing.get_context('fork').Pool(3) as pool:
    pool.map(grow, range(3))
"""
    with start(tmp_path, group) as kernel:
        result = kernel.run(code, timeout=120)
        assert not result.died and result.error == "MemoryLimitError", result
        assert "by the 3 processes it started" in result.message, result.message
        assert "ForkPoolWorker-" in result.message, result.message
        check(kernel)


def test_an_alarm_does_not_take_the_place_of_an_error_message(tmp_path):
    """An exception whose text takes a while and much memory to make, which is when the alarm comes."""
    code = """
held = []
class Slow(Exception):
    def __str__(self):
        while len(held) < 35:
            held.append(np.ones(500_000)); time.sleep(0.02)
        return 'the error itself'
raise Slow
"""
    with start(tmp_path) as kernel:
        resident = int(kernel.run("int(open('/proc/self/statm').read().split()[1]) * 4096").value)
        assert kernel.run(f"%watch {resident + 100 * MB}").error is None
        result = kernel.run(code, timeout=60)
        assert not result.died and result.error == "Slow" and "the error itself" in result.message, result
        check(kernel)


@pytest.mark.parametrize("kind", ["MemoryError", "leadline.MemoryLimitError"])
def test_an_error_for_whose_traceback_there_is_no_memory_is_shown(tmp_path, kind):
    """IPython then prints how it failed, and the front end is told of no error."""
    code = f"""
import leadline
class Full({kind}):
    def _render_traceback_(self): raise MemoryError
raise Full('no room')
"""
    with start(tmp_path) as kernel:
        result = kernel.run(code)
        assert result.error == "Full" and "no room" in result.message, result
        assert "Full: no room" in result.traceback and "raise Full" in result.traceback, result.traceback
        assert kernel.run("1 / 0").error == "ZeroDivisionError"
        check(kernel)


def test_a_budget_is_not_the_machine(tmp_path):
    models = Path(__file__).parents[1] / "python"
    code = f"import sys; sys.path.insert(0, {str(models)!r})\nimport leadline, sample_models\nmodel = sample_models.dense()"
    with start(tmp_path) as kernel:
        made = kernel.run(code)
        assert made.error is None, made
        result = kernel.run("leadline.lite.Interpreter(model_content=model, budget='1KB')")
        assert result.error == "BudgetError", result
        assert "All in all this model needs" in result.message and "model file" in result.message, result.message
        assert "refused" not in result.stderr and "are left" not in result.stderr, result.stderr


NATIVE = """
# takes memory in native code that knows nothing of Python, without its lock
import ctypes
libc = ctypes.CDLL(None)
libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
place = libc.mmap(None, 600_000_000, 3, 0x22, -1, 0)
libc.memset(place, 1, 600_000_000)
"""


def test_variables_are_saved_before_a_death_and_restored_after_it(tmp_path, group):
    kernel = start(tmp_path, group)
    with kernel:
        code = "import math\nclass Point:\n    x = 1\ndef double(n): return 2 * n\npoint = Point(); point.x = 7\ntable = {'a': [1, 2]}"
        assert kernel.run(code).error is None
        result = kernel.run(NATIVE, timeout=120)
        assert result.died, result
        files = list((tmp_path / "flights").glob("*.saved"))
        assert len(files) == 1 and files[0].stat().st_mode & 0o777 == 0o600
        kernel.restart()
        loaded = kernel.run("%load_ext leadline")
        assert "`%restore` brings them back" in loaded.stderr, loaded
        restored = kernel.run("%restore")
        assert restored.error is None and "kept" in restored.stdout and not restored.stderr, restored
        check(kernel)
        assert kernel.run("(point.x, type(point).__name__, double(4), table, math.floor(2.5))").value == (
            "(7, 'Point', 8, {'a': [1, 2]}, 2)"
        )


LOCKED = """
# the same in one call that holds Python's lock from end to end
import ctypes, mmap
place = mmap.mmap(-1, 600_000_000)
address = ctypes.addressof(ctypes.c_char.from_buffer(place))
ctypes.PyDLL(None).memset(ctypes.c_void_p(address), 1, ctypes.c_size_t(600_000_000))
"""


def test_variables_are_saved_while_pythons_lock_is_held(tmp_path, group):
    """Nobody else can run Python then: a copy of the process does."""
    with start(tmp_path, group) as kernel:
        result = kernel.run(LOCKED, timeout=120)
        assert result.died, result
        assert len(list((tmp_path / "flights").glob("*.saved"))) == 1
        kernel.restart()
        restored = kernel.run("%load_ext leadline\n%restore")
        assert restored.error is None and "kept" in restored.stdout, restored
        check(kernel)
        assert "killed by the OOM killer" in str(
            kernel.run("import leadline; print(leadline.postmortem().summary)").stdout
        )


COPY_ON_WRITE = """
# a forked process writes to what it inherited: each page that it touches is copied
import multiprocessing
D = np.ones(36_000_000)
def write():
    D[:] = 2
    time.sleep(1)
worker = multiprocessing.get_context('fork').Process(target=write)
worker.start()
worker.join()
"""


def end_worker(kernel):
    """While the worker still writes, which takes long on a busy machine, its notebook's next cells are stopped too."""
    for _ in range(5):
        ended = kernel.run("worker.kill(); worker.join(); worker.exitcode != 0")
        if ended.error != "MemoryLimitError":
            break
    assert ended.value == "True", ended


def test_a_forked_copy_that_fills_memory_does_not_end_the_kernel(tmp_path, group):
    """Either the cell is stopped or the OOM killer takes the worker, which looks as large to it as the kernel."""
    with start(tmp_path, group) as kernel:
        for _ in range(3):
            result = kernel.run(COPY_ON_WRITE, timeout=120)
            assert not result.died, result
            end_worker(kernel)
            check(kernel)


SHARED_MAPS = {
    # numpy lets others run Python meanwhile: what there is is saved
    "without Python's lock": ("np.frombuffer(L, np.uint8)[:] = 1", True),
    # mmap holds Python's lock from end to end
    "with Python's lock": ("L[:300_000_000] = D; L[300_000_000:] = D", False),
}


@pytest.mark.parametrize("how", SHARED_MAPS)
def test_a_shared_map_that_is_filled_in_one_call_is_explained(tmp_path, group, how):
    fill, saved = SHARED_MAPS[how]
    with start(tmp_path, group) as kernel:
        made = kernel.run("import mmap\nL = mmap.mmap(-1, 600_000_000)\nD = bytes(300_000_000)")
        assert made.error is None, made
        result = kernel.run(f"# fills a map\n{fill}", timeout=120)
        assert result.died, result
        kernel.restart()
        loaded = kernel.run("%load_ext leadline")
        assert "killed by the OOM killer" in loaded.stderr and "`# fills a map`" in loaded.stderr, loaded
        if saved:
            restored = kernel.run("%restore kept\n(kept['answer'], int(kept['array'].sum()))")
            assert restored.value == situations.CHECKED, restored


def test_saving_can_be_switched_off(tmp_path, group):
    with start(tmp_path, group, LEADLINE_SAVE="off") as kernel:
        assert kernel.run(NATIVE, timeout=120).died
        assert not list((tmp_path / "flights").glob("*.saved"))


SMALL = [notebook for notebook in healthy.NOTEBOOKS if notebook.loads <= 80 * MB]  # those that fit


@pytest.mark.parametrize("notebook", SMALL, ids=lambda notebook: notebook.name)
def test_healthy_notebooks_are_left_alone(contained, notebook):
    """The short form of `make survive SURVIVE_ARGS="--healthy 100"`."""
    assert contained.run("L = D = None").error is None
    outcome = healthy_run.run_notebook(contained, notebook, "512MB", share=0.6)
    assert not outcome.wrong, "\n".join(outcome.wrong)
