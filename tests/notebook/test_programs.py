# SPDX-License-Identifier: Apache-2.0
"""Whole programs, each the text of one cell: on leadline.tf in an environment without TensorFlow, and on TensorFlow in a
guarded cell. Each ends as expectations.py says, and the same kernel then answers."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from expectations import CUT_OFF, OWN, SEEDS, Expected

PROGRAMS = Path(__file__).parent / "programs"
GUARDED = "%%guard --memory 3GB\n"


def own_program(name):
    return CUT_OFF if name == "cut_off" else (PROGRAMS / f"{name}.py").read_text()


def hold(kernel, code, expected: Expected):
    """Runs a program and compares its end with what is expected; the kernel answers afterwards."""
    result = kernel.run(code, timeout=2 * expected.seconds)
    problems = expected.problems(result)
    assert not problems, f"{problems}\n{result}"
    if expected.check:
        checked = kernel.run(expected.check)
        assert checked.value == "True", f"{expected.check}\n{checked}"
    assert kernel.answers()
    return result


@pytest.fixture
def leadline_kernel(kernel):
    """A fresh kernel where `import tensorflow` finds leadline.tf."""
    absent = kernel.run("import importlib.util; importlib.util.find_spec('tensorflow') is None")
    assert absent.value == "True", "this environment has TensorFlow"
    installed = kernel.run("%load_ext leadline\n%load_ext leadline.tf")
    assert installed.error is None, installed
    return kernel


@pytest.fixture
def guarded_kernel(tensorflow_kernel, tmp_path):
    """The kernel beside TensorFlow, in a folder of the test."""
    moved = tensorflow_kernel.run(f"import os; os.chdir({str(tmp_path)!r})")
    assert moved.error is None, moved
    return tensorflow_kernel


@pytest.mark.parametrize("name", SEEDS)
def test_seed_on_leadline(name, seeds, leadline_kernel):
    hold(leadline_kernel, (seeds / f"{name}.py").read_text(), SEEDS[name][0])


@pytest.mark.parametrize("name", SEEDS)
def test_seed_on_tensorflow_in_the_guard(name, seeds, guarded_kernel):
    hold(guarded_kernel, GUARDED + (seeds / f"{name}.py").read_text(), SEEDS[name][1])
    assert guarded_kernel.run("import sys; 'tensorflow' in sys.modules").value == "False"


@pytest.mark.parametrize("name", OWN)
def test_own_program_on_leadline(name, leadline_kernel):
    hold(leadline_kernel, own_program(name), OWN[name][0])


@pytest.mark.parametrize("name", OWN)
def test_own_program_on_tensorflow_in_the_guard(name, guarded_kernel):
    hold(guarded_kernel, GUARDED + own_program(name), OWN[name][1])


def test_all_seeds_are_expected(seeds):
    assert {path.stem for path in seeds.glob("*.py")} == set(SEEDS)
    assert {path.stem for path in PROGRAMS.glob("*.py")} == set(OWN) - {"cut_off"}


# What needs more than the program


def test_a_product_finishes_in_two_gigabytes(seeds, leadline_kernel):
    """The whole process may take 2 GB: numpy's random numbers, the tensor, the product."""
    completed = {"^Computation Completed$": 1}
    code = "%%guard --memory 2GB\nimport leadline.tf; leadline.tf.install()\n" + (seeds / "002_1.py").read_text()
    hold(leadline_kernel, code, Expected(completed, seconds=120))


def test_a_list_of_tensors_in_a_notebook_that_has_numpy(seeds, leadline_kernel):
    """003_2 forgot to import numpy; in a notebook another cell often has."""
    code = (seeds / "003_2.py").read_text()
    leadline_kernel.run("import numpy as np")
    hold(leadline_kernel, code, Expected(check="len(tensor_list) == 10000 and tensor_list[-1].shape == (100, 100)"))
    held = 10000 * 100 * 100 * 8
    assert leadline_kernel.peak_bytes() < held + 300e6


def test_a_list_of_tensors_on_tensorflow_with_numpy(seeds, guarded_kernel):
    code = f"{GUARDED}import numpy as np\n" + (seeds / "003_2.py").read_text()
    hold(guarded_kernel, code, Expected(error="RuntimeError", words=("The Session graph is empty",)))


@pytest.fixture(params=["seed", "own"])
def float16_program(request):
    """(program, where it looks for a SavedModel, what it writes)"""
    if request.param == "own":
        return own_program("half_precision"), "a/saved/model", "a/half.tflite"
    text = (request.getfixturevalue("seeds") / "001_2.py").read_text()
    return text, "path/to/saved_model", "path/to/optimized_model.tflite"


def test_a_saved_model_becomes_a_float16_file(float16_program, saved_model, leadline_kernel, guarded_kernel, tmp_path):
    """Both write a file; LiteRT runs both, and they say the same."""
    code, source, target = float16_program
    written = {}
    for kernel, folder, first in ((leadline_kernel, tmp_path, ""), (guarded_kernel, tmp_path / "guarded", GUARDED)):
        shutil.copytree(saved_model, folder / source)
        moved = kernel.run(f"import os; os.chdir({str(folder)!r})")
        assert moved.error is None
        hold(kernel, first + code, Expected())
        written[first] = (folder / target).read_bytes()
    ours, theirs = written[""], written[GUARDED]
    assert len(ours) < 0.75 * (saved_model / "variables" / "variables.data-00000-of-00001").stat().st_size
    assert len(ours) <= len(theirs)
    sample = np.random.default_rng(5).random((1, 12, 12, 3), dtype=np.float32)
    np.testing.assert_allclose(run_in_litert(ours, sample), run_in_litert(theirs, sample), rtol=1e-5, atol=1e-6)


def run_in_litert(content, sample):
    litert = pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed")
    interpreter = litert.Interpreter(model_content=content)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], sample)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
