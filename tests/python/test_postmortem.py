# SPDX-License-Identifier: Apache-2.0
"""leadline.postmortem: children die in every way, and each time the right cause is named."""

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from test_cli import PROGRAM

import leadline
from leadline._guard.save import path_beside

ROOT = Path(__file__).parents[2]
CGROUP_V1 = Path("/sys/fs/cgroup/memory")
PRELUDE = (
    "import ctypes, os, signal, sys, time, leadline\nwatch = leadline.watch()\nwatch.begin_cell(7, 'die = now()')\n"
)


def die(code, tmp_path, prelude=PRELUDE, **options):
    """The exit code of a watched child that runs `code`, and its post-mortem."""
    flights = tmp_path / "flights"
    env = {**os.environ, "LEADLINE_FLIGHTS": str(flights)}
    command = [sys.executable, "-c", prelude + textwrap.dedent(code)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=120, **options)
    files = sorted(flights.glob("*.flight"))
    assert len(files) == 1, done.stderr
    return done, leadline.postmortem(flights)


def library(tmp_path, source):
    """A library made from C, under a name of its own."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    path = tmp_path / "libculprit.so"
    (tmp_path / "culprit.c").write_text(source)
    command = [compiler, "-shared", "-fPIC", "-g0", "-O1", "-o", path, tmp_path / "culprit.c"]
    subprocess.run(command, check=True)
    return path


def test_killed_by_somebody(tmp_path):
    done, report = die("os.kill(os.getpid(), signal.SIGKILL)", tmp_path)
    assert done.returncode == -signal.SIGKILL
    assert report.cause == "killed" and report.died
    assert (report.cell, report.cell_line, report.cell_running) == (7, "die = now()", True)
    assert "in cell 7 (`die = now()`)" in report.summary
    assert "OOM" not in report.summary and report.samples


def test_killed_by_somebody_while_others_run_out_of_memory(tmp_path, small_group):
    """OOM kills of another control group are counted for the machine, while this process takes a lot of memory."""
    victim = f"open({str(small_group / 'cgroup.procs')!r}, 'w').write(str(os.getpid())); x = bytearray(b'x') * 10**9"
    code = f"""
        import subprocess
        kills = lambda: int(next(line.split()[1] for line in open("/proc/vmstat") if line.startswith("oom_kill ")))
        before = kills()
        done = subprocess.run([sys.executable, "-c", {"import os; " + victim!r}])
        assert done.returncode == -9 and kills() > before, (done, kills(), before)
        taken = bytearray(b"x") * 1_500_000_000  # in the last second: it looks as if it were heading for the end
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done, report = die(code, tmp_path, PRELUDE.replace("leadline.watch()", "leadline.watch(1.0, refuse_large=False)"))
    assert done.returncode == -signal.SIGKILL, done
    assert report.cause == "killed" and "OOM" not in report.summary, str(report)


@pytest.mark.parametrize("program", ["/bin/true", "/bin/sleep"])
def test_exec_is_not_a_kill(tmp_path, program):
    """Also while the other program runs."""
    flights = tmp_path / "flights"
    env = {**os.environ, "LEADLINE_FLIGHTS": str(flights)}
    code = PRELUDE + f"os.execl({program!r}, 'program', '2')"
    process = subprocess.Popen([sys.executable, "-c", code], env=env)
    if program == "/bin/true":
        assert process.wait(60) == 0
    while not list(flights.glob("*")) or leadline.postmortem(flights).cause == "running":
        time.sleep(0.1)
    report = leadline.postmortem(flights)
    process.wait(60)
    assert report.cause == "replaced" and report.died, str(report)
    assert f"became another program (exec): {program}" in report.summary and "killed" not in report.summary
    assert leadline.postmortem(flights).cause == "replaced"


def test_an_exec_that_fails_is_no_end(tmp_path):
    code = "\ntry: os.execv('/nowhere', ['x'])\nexcept FileNotFoundError: pass\nos.kill(os.getpid(), 9)"
    assert die(code, tmp_path)[1].cause == "killed"


def test_the_guilty_line_comes_first(tmp_path):
    """Behind it the thread that crashed; threads that only wait, and the interpreter's own frames, are counted."""
    code = """
        import threading
        for _ in range(8): threading.Thread(target=threading.Event().wait, daemon=True).start()
        def crash(depth): return ctypes.string_at(0) if depth == 0 else crash(depth - 1)
        crash(30)
    """
    _, report = die(code, tmp_path)
    text = str(report)
    lines = text.splitlines()
    assert report.guilty["line"] == 7 and report.guilty["function"] == "crash"
    assert lines[2].split() == ["line", "<string>:7,", "in", "crash"], text
    assert "8 other threads run no code of yours" in text
    assert text.index("Current thread") < text.index("native frames") and len(lines) < 80, text
    assert "frames of the interpreter" in text


def test_what_a_notebook_shows(tmp_path):
    _, report = die("time.sleep(1.2); ctypes.string_at(0)", tmp_path)
    html = report._repr_html_()
    assert "<svg" in html and "<script" not in html and report.advice.split(".")[0] in html
    assert "currentColor" in html, "text has the colour of its surroundings, light or dark"
    assert "segmentation fault" in report.brief() and "advice" in report.brief()
    assert f"python -m leadline postmortem {report.path}" in report.brief()


@pytest.mark.skipif(PROGRAM is None, reason="the leadline program is not built")
def test_the_program_is_found_without_a_path(tmp_path):
    die("ctypes.string_at(0)", tmp_path)
    command = [sys.executable, "-m", "leadline", "postmortem", str(tmp_path / "flights")]
    done = subprocess.run(command, env={"PATH": "/nowhere"}, capture_output=True, text=True, check=False)
    assert done.returncode == 12 and "segmentation fault" in done.stdout, done


def test_saved_variables_are_offered(tmp_path):
    _, report = die("os.kill(os.getpid(), 9)", tmp_path)
    assert "%restore" not in report.brief()
    Path(path_beside(report.path)).write_bytes(b"saved")
    report = leadline.postmortem(report.path)
    assert (
        report.variables_path == path_beside(report.path) and "%restore" in report.brief() and "%restore" in str(report)
    )


def test_segmentation_fault_in_a_named_library(tmp_path):
    source = "#include <string.h>\nvoid go(void) { memset((void*)16, 1, 64); }\n"
    path = library(tmp_path, source)
    done, report = die(f"ctypes.CDLL({str(path)!r}).go()", tmp_path)
    assert done.returncode == -signal.SIGSEGV
    assert report.cause == "segmentation fault"
    assert report.module == str(path) and "in libculprit.so" in report.summary
    assert 16 <= report.fault_address < 80
    assert "Current thread" in report.python_stack and 'File "<string>", line 4' in report.python_stack
    assert (str(path), "go") in [(module, symbol) for module, _, symbol in report.frames]
    assert "memory that is not its own" in report.advice


def test_segmentation_fault_without_a_library(tmp_path):
    done, report = die("ctypes.string_at(0)", tmp_path)
    assert (done.returncode, report.cause) == (-signal.SIGSEGV, "segmentation fault")
    assert report.python_stack


def test_abort_with_a_message(tmp_path):
    path = library(tmp_path, '#include <assert.h>\nvoid go(int x) { assert(x == 5 && "five is right"); }\n')
    done, report = die(f"ctypes.CDLL({str(path)!r}).go(4)", tmp_path)
    assert (done.returncode, report.cause) == (-signal.SIGABRT, "abort")
    assert "five is right" in report.message and "five is right" in report.summary
    assert report.module == str(path)


def test_abort_with_words_on_standard_error(tmp_path):
    """As logging libraries do: a line, then abort()."""
    errors = tmp_path / "errors.txt"
    code = "os.write(2, b'F0000 check failed: rank == 4\\n'); os.abort()"
    with errors.open("w") as file:
        flights = tmp_path / "flights"
        env = {**os.environ, "LEADLINE_FLIGHTS": str(flights)}
        done = subprocess.run([sys.executable, "-c", PRELUDE + code], env=env, stderr=file, check=False)
    report = leadline.postmortem(flights)
    assert (done.returncode, report.cause) == (-signal.SIGABRT, "abort")
    assert "check failed: rank == 4" in report.message


def test_illegal_instruction(tmp_path):
    path = library(tmp_path, "void go(void) { __builtin_trap(); }\n")
    done, report = die(f"ctypes.CDLL({str(path)!r}).go()", tmp_path)
    if os.uname().machine != "x86_64":
        pytest.skip("a trap is another signal here")
    assert (done.returncode, report.cause) == (-signal.SIGILL, "illegal instruction")
    assert report.trap and report.instruction.startswith("0f 0b") and report.module == str(path)


def missing_instruction(tmp_path):
    """A flag that this CPU does not have, an instruction that belongs to it, and a library whose go() runs that. A virtual
    machine may hide the flag of an instruction that works, so each is tried."""
    flags = Path("/proc/cpuinfo").read_text().split("flags", 1)[-1].split("\n", 1)[0].split()
    for flag, code in (
        ("avx512f", "62 f1 7c 48 58 c1"),
        ("avx512_fp16", "62 f5 7c 48 58 c1"),
        ("amx_tile", "c4 e2 78 49 c0"),
        ("avx_vnni", "c4 e2 75 50 c2"),
    ):
        if flag in flags:
            continue
        (tmp_path / flag).mkdir()
        bytes_ = ", ".join(f"0x{byte}" for byte in code.split())
        path = library(tmp_path / flag, f'void go(void) {{ __asm__ volatile(".byte {bytes_}"); }}\n')
        command = [sys.executable, "-c", f"import ctypes; ctypes.CDLL({str(path)!r}).go()"]
        if subprocess.run(command, check=False).returncode == -signal.SIGILL:
            return flag, code, path
    return None


def test_an_instruction_that_this_cpu_does_not_have(tmp_path):
    if os.uname().machine != "x86_64" or (missing := missing_instruction(tmp_path)) is None:
        pytest.skip("this CPU has everything")
    flag, code, path = missing
    done, report = die(f"ctypes.CDLL({str(path)!r}).go()", tmp_path)
    assert (done.returncode, report.cause) == (-signal.SIGILL, "illegal instruction")
    assert report.instruction.startswith(code) and not report.trap
    assert flag in report.missing_features and flag in report.advice


@pytest.mark.parametrize("number", ["SIGBUS", "SIGFPE", "SIGTERM", "SIGHUP"])
def test_other_signals(tmp_path, number):
    # Under nohup, SIGHUP is ignored, and so it is in children.
    prelude = f"import signal\nsignal.signal(signal.{number}, signal.SIG_DFL)\n" + PRELUDE
    done, report = die(f"os.kill(os.getpid(), signal.{number}); time.sleep(5)", tmp_path, prelude)
    assert done.returncode == -getattr(signal, number)
    assert report.signal == getattr(signal, number)
    assert report.cause == {"SIGBUS": "bus error", "SIGFPE": "arithmetic error"}.get(number, "signal")


def test_stack_overflow(tmp_path):
    code = """
        sys.setrecursionlimit(1 << 30)
        def f(x): return list(map(f, [x]))
        f(0)
    """
    done, report = die(code, tmp_path)
    assert done.returncode == -signal.SIGSEGV
    assert report.cause == "stack overflow"
    assert "in f" in report.python_stack


@pytest.mark.parametrize("when", ["before", "after"])
def test_beside_faulthandler(tmp_path, when):
    """As in Jupyter, whose kernels enable it."""
    enable = "import faulthandler; faulthandler.enable()\n"
    prelude = enable + PRELUDE if when == "before" else PRELUDE + enable
    path = library(tmp_path, "void go(void) { *(volatile int*)16 = 1; }\n")
    done, report = die(f"ctypes.CDLL({str(path)!r}).go()", tmp_path, prelude)
    assert done.returncode == -signal.SIGSEGV
    assert "Fatal Python error: Segmentation fault" in done.stderr
    assert report.cause == "segmentation fault" and report.module == str(path)


def test_ends_that_are_no_deaths(tmp_path):
    done, report = die("watch.end_cell()", tmp_path / "a")
    assert (done.returncode, report.cause, report.died) == (0, "exit", False)
    done, report = die("raise ValueError('no')", tmp_path / "b")
    assert (done.returncode, report.cause) == (1, "exit")
    assert "ValueError: no" in report.summary
    done, report = die("watch.stop(); os.kill(os.getpid(), signal.SIGKILL)", tmp_path / "c")
    assert (report.cause, report.died) == ("unwatched", False)


def test_a_process_that_lives_is_running(tmp_path):
    with leadline.watch(folder=tmp_path / "flights") as watch:
        report = leadline.postmortem(watch.recorder_path)
        assert report.cause == "running" and not report.died


def test_the_op_that_was_running(tmp_path):
    code = f"""
        sys.path.insert(0, {str(ROOT / "tests" / "python")!r})
        import numpy as np
        from tflite_builder import ModelBuilder
        builder = ModelBuilder()
        graph = builder.subgraph()
        x = graph.input("x", np.float32, [4])
        graph.output(graph.op("EXP", [x], ("y", np.float32, [4])))
        interpreter = leadline.lite.Interpreter(model_content=builder.build())
        interpreter.allocate_tensors()
        interpreter.invoke()
        ctypes.string_at(0)
    """
    done, report = die(code, tmp_path)
    assert report.cause == "segmentation fault", done.stderr
    assert report.op == "EXP #0 'y'" and not report.op_running


@pytest.fixture
def small_group():
    """A control group of 512 MB; skips where none can be made."""
    folder = CGROUP_V1 / f"leadline-test-{os.getpid()}"
    try:
        folder.mkdir()
        (folder / "memory.limit_in_bytes").write_text("512M")
    except OSError:
        pytest.skip("no control group (v1) can be made here")
    yield folder
    for _ in range(50):
        try:
            folder.rmdir()
            return
        except OSError:
            time.sleep(0.1)


ALLOCATE = """
    watch.stop()
    open({procs!r}, "w").write(str(os.getpid()))
    watch = leadline.watch({options})
    watch.begin_cell(3, "while True: grow()")
    kept = []
    while True:
        kept.append(bytearray(b"x") * 4_000_000)
        {pause}
"""


def test_oom_kill_in_a_control_group(tmp_path, small_group):
    """The watch only looks on here: its limit is the whole of memory."""
    code = ALLOCATE.format(procs=str(small_group / "cgroup.procs"), options="limit=1.0, refuse_large=False", pause="")
    prelude = PRELUDE.replace("leadline.watch()", "leadline.watch(recorder=False)")
    done, report = die(code, tmp_path, prelude)
    assert done.returncode == -signal.SIGKILL
    assert report.cause == "out of memory", str(report)
    assert report.confidence in ("certain", "very likely")
    assert "in cell 3" in report.summary and "of 512 MiB" in report.summary
    assert report.advice


def test_the_watch_is_faster_than_the_oom_killer(tmp_path, small_group):
    code = ALLOCATE.format(procs=str(small_group / "cgroup.procs"), options="", pause="time.sleep(0.02)")
    done, report = die(code, tmp_path, PRELUDE.replace("leadline.watch()", "leadline.watch(recorder=False)"))
    assert done.returncode == 1, (done, str(report))
    assert "MemoryLimitError" in done.stderr and "of the memory of the container" in done.stderr
    assert report.cause == "exit" and "MemoryLimitError" in report.summary


def test_an_allocation_larger_than_the_group_is_refused(tmp_path, small_group):
    code = ALLOCATE.format(procs=str(small_group / "cgroup.procs"), options="", pause="")
    code = code.split("kept")[0] + "time.sleep(0.2); x = bytearray(2_000_000_000)\n"
    done, report = die(code, tmp_path, PRELUDE.replace("leadline.watch()", "leadline.watch(recorder=False)"))
    assert done.returncode == 1 and "MemoryError" in done.stderr
    assert report.cause == "exit"


def test_memory_limits_of_the_shell(tmp_path):
    """RLIMIT_DATA alone makes a MemoryError, not a death."""
    code = """
        import resource
        resource.setrlimit(resource.RLIMIT_DATA, (500_000_000, 500_000_000))
        kept = [bytearray(8_000_000) for _ in range(100)]
    """
    done, report = die(code, tmp_path)
    assert done.returncode == 1 and "MemoryError" in done.stderr
    assert report.cause == "exit"


@pytest.mark.skipif(PROGRAM is None, reason="the leadline program is not built")
def test_the_program(tmp_path):
    def postmortem(*args):
        return subprocess.run([PROGRAM, "postmortem", *args], capture_output=True, text=True, check=False)

    assert postmortem(tmp_path).returncode == 6
    die("watch.end_cell()", tmp_path / "a")
    assert postmortem(tmp_path / "a" / "flights").returncode == 0
    die("ctypes.string_at(0)", tmp_path / "b")
    done = postmortem(tmp_path / "b" / "flights")
    assert done.returncode == 12
    assert "segmentation fault" in done.stdout and "Current thread" in done.stdout
    document = json.loads(postmortem(tmp_path / "b" / "flights", "--json").stdout)
    assert document["postmortems"][0]["cause"] == "segmentation fault"
    assert postmortem(tmp_path / "nothing").returncode == 5
    (tmp_path / "x.flight").write_bytes(b"x" * 300_000)
    assert postmortem(tmp_path / "x.flight").returncode == 14
    assert "damaged" in postmortem(tmp_path, "--all").stdout


def test_the_next_kernel_is_told_once(tmp_path):
    pytest.importorskip("IPython", reason="IPython is not installed")
    session = """
        import os, signal
        from IPython.core.interactiveshell import InteractiveShell
        shell = InteractiveShell.instance()
        shell.run_cell("%load_ext leadline")
    """
    env = {**os.environ, "LEADLINE_FLIGHTS": str(tmp_path / "flights"), "IPYTHONDIR": str(tmp_path)}

    def run(more):
        command = [sys.executable, "-c", textwrap.dedent(session) + more]
        return subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert "died" not in run("").stderr
    assert run("shell.run_cell('import os; os.kill(os.getpid(), 9)')").returncode == -signal.SIGKILL
    told = run("")
    assert "the kernel before this one died" in told.stderr, told
    assert "%postmortem" in told.stderr
    shown = run("print('SHOWN', shell.run_line_magic('postmortem', ''))")
    assert "killed (SIGKILL)" in shown.stdout.partition("SHOWN")[2] and "advice" in shown.stdout, shown
    assert "import os; os.kill" in told.stderr
    assert "died" not in run("").stderr
