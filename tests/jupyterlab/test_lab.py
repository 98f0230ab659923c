# SPDX-License-Identifier: Apache-2.0
"""Kernels die in a real JupyterLab, and the cause stands under the cell. `SCREENSHOTS=docs/images` keeps pictures."""

import os
import re
import subprocess
import sys
from pathlib import Path

import chromium
import lab
import nbformat
import pytest

import kernels

LIMIT = 512 * 1024 * 1024
FOLDER = os.environ.get("SCREENSHOTS")
pytestmark = pytest.mark.skipif(chromium.PROGRAM is None, reason="chromium is not installed")
DEATHS = {
    "SIGKILL": (
        "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
        "the kernel was killed (SIGKILL) by somebody",
    ),
    "SIGSEGV": ("import ctypes\nctypes.string_at(0)", "the kernel died of a segmentation fault"),
    "abort": ("import os\nos.abort()", "the kernel was aborted"),
    "exit": ("import os\nos._exit(3)", "the kernel ended by itself with exit code 3"),
}
GROW = """import numpy as np
batches = []
for step in range(10_000):
    batches.append(np.random.rand(64, 224, 224))
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with lab.start(tmp_path_factory.mktemp("lab")) as started:
        yield started


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium.Browser(tmp_path_factory.mktemp("profile")) as started:
        yield started


def keep(notebook, name):
    if FOLDER:
        notebook.page.screenshot(Path(FOLDER) / name)


def test_every_death_is_explained_under_its_cell(server, browser):
    cells = [f"print('before', flush=True)\n{code}" for code, _ in DEATHS.values()]
    notebook = lab.LabPage(browser, server, "deaths.ipynb", cells)
    for number, (_, words) in enumerate(DEATHS.values()):
        notebook.run(number)
        text = notebook.wait_for_output(number, words)
        assert "in this cell." in text and "advice" in text and "memory" in text
        notebook.wait_for("document.querySelector('.jp-Dialog-content') ? 1 : 0")
        assert "appears to have died" in notebook.dialog()
        notebook.wait_for("document.querySelector('.jp-Dialog-content .leadline-cause') ? 1 : 0")
        assert words in notebook.dialog(), "the extension of JupyterLab adds the cause"
        notebook.close_dialog()
        notebook.wait_for_idle()
    assert re.fullmatch(
        r"kernel \d+ MiB of \S+ GiB", notebook.wait_for("document.querySelector('.leadline-memory')?.textContent")
    )
    for number, (_, words) in enumerate(DEATHS.values()):
        assert notebook.output(number).count("leadline:") == 1 and words in notebook.output(number)


def test_the_oom_killer_with_pictures(server, browser):
    with kernels.MemoryGroup(LIMIT) as group:
        if not group.made:
            pytest.skip("no control group with a memory limit can be made here")
        launch = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        kernel = server.add_kernel("container", [*group.wrapper, *launch])
        for dark in (False, True):
            name = f"training-{'dark' if dark else 'light'}"
            cells = [
                "%load_ext leadline\nimport leadline\nwatch = leadline.watch(1.0, refuse_large=False)",
                GROW,
                "%postmortem",
            ]
            notebook = lab.LabPage(browser, server, f"{name}.ipynb", cells, kernel, dark)
            notebook.run(0)
            notebook.wait_for_idle()
            notebook.run(1)
            text = notebook.wait_for_output(1, "killed by the OOM killer")
            assert re.search(r"it had [\d.]+ MiB, and [\d.]+ MiB of 512 MiB \(\d+ %\) were in use", text), text
            assert re.search(r"it grew from \S+ MiB to \S+ MiB in the last \S+ s, since \d\d:\d\d:\d\d", text), text
            notebook.wait_for("document.querySelector('.jp-Dialog-content .leadline-cause') ? 1 : 0")
            keep(notebook, f"{name}-dialog.png")
            notebook.close_dialog()
            keep(notebook, f"{name}-cell.png")
            notebook.wait_for_idle()
            notebook.run(0)
            notebook.wait_for_idle()
            notebook.run(2)
            notebook.wait_for("document.querySelector('svg.leadline-curve') ? 1 : 0")
            notebook.page.run("document.querySelector('.jp-Notebook details').scrollIntoView({block: 'end'})")
            keep(notebook, f"{name}-postmortem.png")
            notebook.end()


def test_a_restart_by_the_user_is_no_death(server, browser):
    notebook = lab.LabPage(browser, server, "restart.ipynb", ["import time; time.sleep(60)", "1+1"])
    notebook.run(0)
    notebook.wait_for("document.querySelector('.jp-Notebook-ExecutionIndicator')?.dataset.status === 'busy'")
    notebook.page.run("window.leadline_restart = window.jupyterapp.commands.execute('notebook:restart-kernel'), 1")
    notebook.wait_for("document.querySelector('.jp-Dialog-content') ? 1 : 0")
    notebook.close_dialog()
    notebook.wait_for_idle()
    notebook.run(1)
    notebook.wait_for_output(1, "2")
    assert "leadline" not in notebook.output(0) + notebook.output(1) and not notebook.dialog()


def test_two_notebooks_at_once(server, browser):
    dying = "import os, time\ntime.sleep(2); os.abort()"
    one = lab.LabPage(browser, server, "one.ipynb", [dying])
    other = lab.LabPage(browser, server, "other.ipynb", ["import time; time.sleep(8); print('done')"])
    other.run(0)
    one.run(0)
    assert "in this cell." in one.wait_for_output(0, "the kernel was aborted")
    other.wait_for_output(0, "done")
    assert "leadline" not in other.output(0) and not other.dialog()


def test_papermill(tmp_path):
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("import os, time; time.sleep(0.5); os.abort()")])
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "python3", "language": "python"}
    nbformat.write(book, tmp_path / "in.ipynb")
    env = {
        **os.environ,
        "JUPYTER_DEFAULT_PROVISIONER_NAME": "leadline-provisioner",
        "LEADLINE_FLIGHTS": str(tmp_path / "flights"),
    }
    command = [sys.executable, "-m", "papermill", "in.ipynb", "out.ipynb"]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=180)
    assert done.returncode != 0
    assert (
        "leadline: the kernel was aborted" in done.stderr and "DeadKernelError: Kernel died\nleadline:" in done.stderr
    )
    assert "leadline: the kernel was aborted" in (tmp_path / "out.ipynb").read_text()
