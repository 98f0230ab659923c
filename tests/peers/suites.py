# SPDX-License-Identifier: Apache-2.0
"""Which suites there are, and where their files come from: git clones that the user has."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple


class Suite(NamedTuple):
    owner: str  # of the repository
    repository: str
    file: str  # with the tests
    needs: tuple[str, ...] = ()  # other folders that the tests read
    made: str = ""  # the folder of models that have to be made first
    own: bool = False  # the file is beside this one: the clone only has what it tests. Every test counts, then


_LITERT = ("tflite/python", "tflite/testdata", "tflite/tools/optimize/debugging")

SUITES = {
    "interpreter": Suite(
        "google-ai-edge", "LiteRT", "tflite/python/interpreter_test.py", _LITERT, made="tflite/python/testdata"
    ),
    "debugger": Suite("google-ai-edge", "LiteRT", "tflite/tools/optimize/debugging/python/debugger_test.py", _LITERT),
    "lite_v2": Suite("google-ai-edge", "LiteRT", "tflite/python/lite_v2_test.py", _LITERT),
    "keras_litert": Suite("keras-team", "keras", "keras/src/export/litert_test.py"),
    "keras_hub": Suite("keras-team", "keras-hub", "keras_hub_models.py", ("keras_hub",), own=True),
}


def clone_of(suite: Suite, sources: Path) -> Path:
    """The clone, bare or not, under one of the names that clones have."""
    names = (suite.repository, f"{suite.repository}.git", f"{suite.owner}+{suite.repository}/repo")
    for name in names:
        path = sources / name
        if (path / ".git").exists() or (path / "objects").is_dir():
            return path
    raise SystemExit(f"no clone of {suite.owner}/{suite.repository} in {sources}; looked for {', '.join(names)}")


def extract(suite: Suite, sources: Path, folder: Path, python: str) -> Path:
    """Writes the files of the newest commit below `folder` and returns the one with the tests. `python` has
    TensorFlow."""
    clone = clone_of(suite, sources)
    # Not from inside the clone, and each part by itself: it may lack large files that nobody asks for here.
    git = ["git", f"--git-dir={clone / '.git' if (clone / '.git').exists() else clone}"]
    for path in suite.needs:
        archive = [*git, "archive", f"--prefix={path}/", f"HEAD:{path}"]
        with subprocess.Popen(archive, stdout=subprocess.PIPE) as process:
            subprocess.run(["tar", "x", "-C", folder], stdin=process.stdout, check=True)
        if process.returncode != 0:
            raise SystemExit(f"{path} is not in {clone}")
    if not suite.own and not (folder / suite.file).exists():
        file = subprocess.run([*git, "show", f"HEAD:{suite.file}"], capture_output=True, check=False)
        if file.returncode != 0:
            raise SystemExit(f"{suite.file} is not in {clone}: {file.stderr.decode()}")
        (folder / suite.file).parent.mkdir(parents=True, exist_ok=True)
        (folder / suite.file).write_bytes(file.stdout)
    if suite.made:
        maker = Path(__file__).with_name("made_models.py")
        made = subprocess.run([python, maker, folder / suite.made], capture_output=True, text=True, check=False)
        if made.returncode != 0:
            raise SystemExit(f"the models of {suite.file} cannot be made:\n{made.stderr[-3000:]}")
    return (Path(__file__).parent if suite.own else folder) / suite.file
