# SPDX-License-Identifier: Apache-2.0
"""The counter of skipped tests (conftest.py) counts, and fails runs that skip too many."""

import os
import subprocess
import sys
from pathlib import Path

CONFTEST = Path(__file__).parents[2] / "conftest.py"
TESTS = """
import pytest

@pytest.mark.skip(reason="never")
@pytest.mark.parametrize("i", range({count}))
def test_skipped(i): ...

def test_at_run_time(): pytest.skip("not today")

def test_of_a_program(): pytest.skip("the program is not built")

@pytest.mark.xfail
def test_expected(): assert False

def test_run(): ...
"""


def run(folder: Path, count: int, ceiling: int, complete: str = "0") -> subprocess.CompletedProcess:
    text = CONFTEST.read_text()
    assert "CEILINGS = {True: " in text
    (folder / "conftest.py").write_text(text + f"\n\nCEILINGS = {{True: {ceiling}, False: {ceiling}}}\n")
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_some.py").write_text(TESTS.format(count=count))
    (folder / "test_module.py").write_text("import pytest\npytest.importorskip('no_such_module', reason='no module')\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)]
    env = {**os.environ, "LEADLINE_COMPLETE": complete}
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=env)


def test_skips_are_counted_by_reason(tmp_path):
    result = run(tmp_path, count=3, ceiling=5)
    assert result.returncode == 0, result.stdout
    for line in ("skipped    3: never", "skipped    1: not today", "skipped    1: no module"):
        assert line in result.stdout, result.stdout


def test_too_many_skips_fail_the_run(tmp_path):
    result = run(tmp_path, count=4, ceiling=5)
    assert result.returncode == 1, result.stdout
    assert "FAILED: 6 tests were skipped, the ceiling is 5" in result.stdout


def test_what_is_not_built_counts_where_everything_should_be(tmp_path):
    result = run(tmp_path, count=3, ceiling=5, complete="1")
    assert result.returncode == 1, result.stdout
    assert "skipped    1: the program is not built" in result.stdout
    assert "FAILED: 6 tests were skipped" in result.stdout
