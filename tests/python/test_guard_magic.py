# SPDX-License-Identifier: Apache-2.0
"""%%guard: a notebook's cell in a guarded process."""

import os
import subprocess
import sys

import numpy as np
import pytest

import leadline
from leadline import GuardError


class Shell:
    """What the magics use of IPython's shell."""

    def __init__(self, **variables):
        self.user_ns = variables
        self.magics = {}

    def register_magic_function(self, function, magic_kind, magic_name):
        self.magics[magic_kind, magic_name] = function


@pytest.fixture
def shell():
    shell = Shell(a=np.arange(3), b=10)
    leadline.load_ipython_extension(shell)
    return shell


def test_a_guarded_cell_takes_and_gives_variables(shell, capsys):
    run = shell.magics["cell", "guard"]
    cell = "import os\nprint('in', len(a))\nc = a + b\nd = os.getpid()\nc.sum()"
    assert run("--memory 1GB --timeout 60 --in a,b --out c,d", cell) == 33
    assert shell.user_ns["c"].tolist() == [10, 11, 12]
    assert shell.user_ns["d"] != os.getpid()
    assert "os" not in shell.user_ns
    assert capsys.readouterr().out == "in 3\n"
    assert run("1GB", "1 + 1;") is None


def test_a_guarded_cell_that_fails(shell):
    run = shell.magics["cell", "guard"]
    with pytest.raises(GuardError) as caught:
        run("--memory 300MB --timeout 60", "x = []\nwhile True:\n    x.append(bytearray(10_000_000))")
    assert caught.value.cause == "memory"
    with pytest.raises(ZeroDivisionError) as caught:
        run("", "x = 1\nx / 0")
    assert "x / 0" in str(caught.value.__cause__)
    with pytest.raises(NameError, match="no variable 'nothing'"):
        run("--in nothing", "1")
    with pytest.raises(NameError, match="did not set 'nothing'"):
        run("--out nothing", "x = 1")
    with pytest.raises(leadline.InvalidArgumentError, match="usage: guard"):
        run("--mem", "1")


IPYTHON_SESSION = """
from IPython.core.interactiveshell import InteractiveShell
from leadline import GuardError
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "leadline")
shell.run_cell("def triple(x): return 3 * x\\nk = 5").raise_error()
assert shell.run_cell("%%guard --memory 1GB --in triple,k --out r\\nr = triple(k)\\nr + 1").result == 16
assert shell.user_ns["r"] == 15
assert isinstance(shell.run_cell("%%guard --timeout 60\\nimport os; os.abort()").error_in_exec, GuardError)
assert shell.run_cell("1 + 1").result == 2
"""


def test_the_magic_in_ipython(tmp_path):
    pytest.importorskip("IPython", reason="IPython is not installed")
    environment = {**os.environ, "IPYTHONDIR": str(tmp_path)}
    result = subprocess.run(
        [sys.executable, "-c", IPYTHON_SESSION], env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert "the cell' died of SIGABRT" in result.stdout
