# SPDX-License-Identifier: Apache-2.0
"""`leadline guard`: streams, exit codes, reports, signals."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from test_cli import PROGRAM

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="the leadline program is not built")


def run(*arguments, **options):
    return subprocess.run(
        [PROGRAM, "guard", *arguments], capture_output=True, text=True, timeout=120, check=False, **options
    )


def python(code):
    return "--", sys.executable, "-c", code


def test_streams_and_exit_code_are_the_programs():
    result = run(*python("import sys; print(input()); print('err', file=sys.stderr); sys.exit(3)"), input="line\n")
    assert result.returncode == 3
    assert result.stdout == "line\n"
    assert result.stderr.startswith("err\n")
    assert "exited with code 3" in result.stderr


def test_quiet():
    result = run("--quiet", *python("print(1)"))
    assert (result.returncode, result.stdout, result.stderr) == (0, "1\n", "")
    assert "code 1" in run("--quiet", *python("raise SystemExit(1)")).stderr


@pytest.mark.parametrize(
    ("options", "code", "cause", "exit_code"),
    [
        (["--memory", "200MB"], "x = []\nwhile True: x.append(bytearray(10_000_000))", "memory", 122),
        (["--processes", "20"], "import os, time\nwhile os.fork() or time.sleep(99): pass", "processes", 123),
        (["--timeout", "0.5"], "while True: pass", "timeout", 124),
        ([], "import os; os.abort()", "signal", 128 + signal.SIGABRT),
        ([], "import ctypes; ctypes.string_at(0)", "signal", 128 + signal.SIGSEGV),
        ([], "print('said'); raise SystemExit(9)", "exit", 9),
    ],
)
def test_json_names_the_cause(options, code, cause, exit_code):
    result = run("--json", *options, *python(code))
    report = json.loads(result.stdout)["guard"]
    assert result.returncode == report["exit_code"] == exit_code
    assert report["cause"] == cause
    assert report["summary"] and report["advice"]
    if cause == "exit":
        assert report["last_lines"] == ["said"]
    if cause == "signal":
        assert any("most recent call first" in line for line in report["last_lines"])
    if cause == "memory":
        assert report["peak_bytes"] > report["memory_limit_bytes"] == 200_000_000


def test_a_json_option_of_the_program_is_its_own():
    result = run("--", "echo", "--json")
    assert result.stdout == "--json\n"


def test_programs_that_cannot_start():
    result = run("--json", "--", "leadline-no-such-program")
    assert result.returncode == 127
    assert json.loads(result.stdout)["error"]["exit_code"] == 127
    assert run("--memory", "much", "--", "true").returncode == 2
    assert run("--memory", "1GB").returncode == 2


def test_a_signal_to_the_guard_ends_the_program_and_all_it_started(tmp_path):
    path = tmp_path / "pids"
    code = (
        "import os, subprocess, time, signal\n"
        "child = subprocess.Popen(['sleep', '1000'], start_new_session=True)\n"
        f"open({str(path)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        "time.sleep(1000)"
    )
    guard = subprocess.Popen([PROGRAM, "guard", *python(code)], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and (not path.exists() or len(path.read_text().split()) < 2):
        time.sleep(0.02)
    guard.send_signal(signal.SIGTERM)
    assert guard.wait(30) == 128 + signal.SIGTERM
    for pid in path.read_text().split():
        assert not os.path.exists(f"/proc/{pid}")


def test_the_peak_is_the_kernels_own():
    code = (
        "import resource, time\n"
        "x = bytes(b'x' * 60_000_000); del x; time.sleep(0.3)\n"
        "print(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    )
    for program in (code, code.replace("60_000_000", "1"), code.replace("0.3", "0")):
        result = run("--json", *python(program))
        report = json.loads(result.stdout)["guard"]
        own = 1024 * int(result.stderr.split("VmHWM:")[1].split()[0])
        # A few pages come and go at the end of a Python.
        assert abs(report["peak_bytes"] - own) < 2_000_000, (report["peak_bytes"], own)
        assert report["peak_bytes"] > (60_000_000 if "60_" in program else 8_000_000)


def test_pages_that_processes_share_count_once_in_the_peak():
    code = (
        "import os, time\n"
        "x = bytearray(b'x' * 100_000_000)\n"
        "for _ in range(4):\n"
        "    if os.fork() == 0: time.sleep(0.5); os._exit(0)\n"
        "time.sleep(1)"
    )
    report = json.loads(run("--json", *python(code)).stdout)["guard"]
    assert 200_000_000 < report["peak_bytes"] < 300_000_000, report  # twice while the bytes are copied
    assert json.loads(run("--json", "--", "true").stdout)["guard"]["peak_bytes"] > 0
