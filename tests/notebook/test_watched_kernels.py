# SPDX-License-Identifier: Apache-2.0
"""The watch of a notebook: a cell that takes all memory ends in MemoryError and nothing is lost; a kernel that dies anyway
is explained by the next one."""

import json
import re
import subprocess

import pytest
import test_cli

import kernels

MB = 1_000_000
LIMIT = 512 * 1024 * 1024
ALLOCATE = """# takes all it can get
blocks = []
while True:
    blocks.append(b"x" * 10_000_000)
"""
# Runs in the interpreter's own C code from end to end: no exception can come in between.
ALLOCATE_NATIVELY = """# takes all it can get, in one call
import collections, itertools
collections.deque(map(bytearray, itertools.repeat(b"x" * 10_000_000)))
"""


@pytest.fixture
def start(tmp_path):
    """Starts a kernel whose recordings are in the test's folder; contained, it may take LIMIT bytes."""
    if kernels.PLAIN is None:
        pytest.skip("there is no .venv: run make setup")
    started = []

    def begin(wrapper=(), *, contained=False, **env):
        if contained:
            if not group.made:
                pytest.skip("no control group with a memory limit can be made here")
            wrapper = group.wrapper
        env = {"LEADLINE_FLIGHTS": str(tmp_path / "flights"), "LEADLINE_WATCH": None, **env}
        kernel = kernels.Kernel(kernels.PLAIN, tmp_path, wrapper=wrapper, env=env)
        started.append(kernel)
        loaded = kernel.run("%load_ext leadline\nimport numpy as np\nkept = {'answer': 42}")
        assert loaded.error is None and "died" not in loaded.stderr + loaded.stdout, loaded
        return kernel

    with kernels.MemoryGroup(LIMIT) as group:
        yield begin
        for kernel in started:
            kernel.close()
    assert not [kernel.left_behind for kernel in started if kernel.left_behind]


def assert_survived(kernel, result):
    """The cell ended in MemoryError, and the kernel has everything it had."""
    assert not result.died, result
    assert result.error in ("MemoryError", "MemoryLimitError"), result
    assert kernel.run("kept['answer']").value == "42"
    assert kernel.answers()


def test_a_cell_that_takes_all_memory_of_a_container(start):
    kernel = start(contained=True)
    result = kernel.run(ALLOCATE)
    assert_survived(kernel, result)
    taken = int(kernel.run("sum(map(len, blocks))").value)
    assert 0.5 * LIMIT < taken < LIMIT  # they are still there, and there was use for most of the memory
    # What grew, how far, and the largest objects: here the list and its blocks. In the error of an alarm, or below that of
    # an allocation that was refused.
    told = result.message + result.stderr
    assert re.search(r"9\d ?%|of (the container's )?(512|488)", told), told
    assert "blocks" in told or "bytes" in told, told
    # Memory that is freed can be used again.
    assert kernel.run("blocks.clear(); again = [b'x' * 10_000_000 for _ in range(20)]; len(again)").value == "20"


def test_a_limit_of_the_process_itself(start):
    """Also where no group can be made."""
    kernel = start()
    assert kernel.run("%watch 400MB").error is None
    assert_survived(kernel, kernel.run(ALLOCATE))
    assert 100 * MB < int(kernel.run("sum(map(len, blocks))").value) < 450 * MB


def test_arrays_are_stopped_too(start):
    kernel = start(contained=True)
    result = kernel.run("# one after the other\narrays = []\nwhile True: arrays.append(np.ones(2_000_000))")
    assert_survived(kernel, result)
    assert int(kernel.run("sum(a.nbytes for a in arrays)").value) > 0.4 * LIMIT


def test_an_array_that_is_larger_than_all_memory(start):
    kernel = start(contained=True)
    assert_survived(kernel, kernel.run("# too large\nhuge = np.ones(100_000_000)"))


def test_an_allocation_loop_in_native_code_is_stopped_or_explained(start):
    kernel = start(contained=True)
    result = kernel.run(ALLOCATE_NATIVELY)
    if result.died:
        kernel.restart()
        assert "OOM killer" in told(kernel)
    else:
        assert_survived(kernel, result)


def test_an_allocation_loop_under_a_limit_of_the_process(start):
    """RLIMIT_DATA, for where no control group is at hand."""
    kernel = start(("sh", "-c", 'ulimit -d 700000 && exec "$@"', "sh"))
    assert_survived(kernel, kernel.run(ALLOCATE))


# Deaths


def told(kernel):
    """What a kernel says about the one before it: one line."""
    loaded = kernel.run("%load_ext leadline")
    assert loaded.error is None, loaded
    lines = (loaded.stderr + loaded.stdout).strip().splitlines()
    assert len(lines) == 1, loaded
    return lines[0]


def examine(kernel):
    """The post-mortem of the last death, from the command line."""
    if test_cli.PROGRAM is None:
        pytest.skip("the leadline program is not built")
    command = [test_cli.PROGRAM, "postmortem", str(kernel.folder / "flights"), "--json"]
    process = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert process.stderr == ""
    return json.loads(process.stdout)["postmortems"][0], process.returncode


# cause: (what the cell does, how the next kernel says it, exit code of the command)
DEATHS = {
    "killed": ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", r"killed \(SIGKILL\)", 11),
    "segmentation fault": ("import ctypes; ctypes.string_at(0)", "segmentation fault in _ctypes", 12),
    "abort": ("import os; os.abort()", "abort", 12),
    "illegal instruction": (
        (
            "import ctypes, mmap\n"
            "code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)\n"
            "code.write(INSTRUCTION)\n"
            "ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()"
        ),
        "(illegal|trap) instruction",
        12,
    ),
}
# ud2 on x86, udf on Arm.
INSTRUCTION = "import platform; INSTRUCTION = b'\\x0f\\x0b' if platform.machine() == 'x86_64' else b'\\0\\0\\0\\0'"


@pytest.mark.parametrize("cause", DEATHS)
def test_the_next_kernel_tells_how_this_one_died(start, cause):
    code, words, exit_code = DEATHS[cause]
    kernel = start()
    assert kernel.run(INSTRUCTION).error is None
    result = kernel.run(f"# the last cell of a kernel\n{code}")
    assert result.died, result
    report, status = examine(kernel)
    assert report["cause"] == cause and status == exit_code
    assert (report["cell"], report["cell_line"]) == (3, "# the last cell of a kernel") and report["cell_running"]
    kernel.restart()
    line = told(kernel)
    assert re.search(words, line) and "in cell 3 (`# the last cell of a kernel`)" in line, line
    assert kernel.answers()
    # It is told once, and an end that was asked for is not a death.
    kernel.restart()
    loaded = kernel.run("%load_ext leadline")
    assert (loaded.stdout + loaded.stderr).strip() == "", loaded


def test_the_oom_killer_is_named(start):
    """Without alarms (limit 1.0), so that the kernel really dies."""
    kernel = start(contained=True, LEADLINE_WATCH="off")
    began = kernel.run("import leadline; watch = leadline.watch(1.0, refuse_large=False)")
    assert began.error is None, began
    result = kernel.run(ALLOCATE_NATIVELY, timeout=120)
    assert result.died and kernel.exit_code == -9, result
    report, status = examine(kernel)
    assert report["cause"] == "out of memory" and status == 10
    assert report["peak_resident_bytes"] > 0.7 * LIMIT
