# SPDX-License-Identifier: Apache-2.0
"""leadline.lite in place of tflite_runtime and ai_edge_litert. Each in a process of its own."""

import os
import subprocess
import sys

import pytest


def run(code: str, *arguments: str, **environment: str):
    return subprocess.run(
        [sys.executable, *(arguments or ("-c",)), code],
        capture_output=True,
        text=True,
        env=dict(os.environ) | environment,
        timeout=120,
    )


def output(code: str, *arguments: str, **environment: str) -> list[str]:
    done = run(code, *arguments, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def real(tmp_path) -> dict[str, str]:
    """A folder with a package ai_edge_litert and a module beside its interpreter, first on the path."""
    package = tmp_path / "ai_edge_litert"
    package.mkdir()
    (package / "__init__.py").write_text("__version__ = 'the real one'\n")
    (package / "interpreter.py").write_text("class Interpreter: pass\n")
    (package / "other.py").write_text("value = 7\n")
    return {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}


def test_every_way_to_import_tflite_runtime_finds_it():
    code = (
        "import leadline.lite\n"
        "print('tflite_runtime.interpreter' in leadline.lite.install())\n"
        "import tflite_runtime.interpreter as tflite\n"
        "from tflite_runtime.interpreter import Interpreter, load_delegate\n"
        "from tflite_runtime import interpreter\n"
        "import tflite_runtime\n"
        "print(tflite.Interpreter is Interpreter is interpreter.Interpreter is leadline.lite.Interpreter)\n"
        "print(tflite_runtime.__version__.startswith('2.'), 'leadline' in tflite_runtime.__version__)\n"
        "print(sorted({'OpResolverType', 'Delegate', 'InterpreterWithCustomOps'} - set(dir(tflite))))\n"
        "import tflite_runtime.metrics_portable as metrics; print(metrics.TFLiteMetrics.__name__)\n"
        "print(tflite_runtime)\n"
    )
    assert output(code) == [
        "True",
        "True",
        "True True",
        "[]",
        "TFLiteMetrics",
        "<module 'tflite_runtime': leadline.lite in place of tflite_runtime>",
    ]


def test_what_is_missing_is_an_import_error_that_says_why():
    done = run("import leadline.lite; leadline.lite.install(); import tflite_runtime.something")
    assert "ModuleNotFoundError" in done.stderr and "leadline.lite in place of tflite_runtime" in done.stderr


def test_a_real_package_wins_and_the_other_is_found(real):
    code = (
        "from leadline import lite\n"
        "print(lite.install())\n"
        "from ai_edge_litert.interpreter import Interpreter\n"
        "import tflite_runtime.interpreter\n"
        "print(Interpreter is lite.Interpreter, tflite_runtime.interpreter.Interpreter is lite.Interpreter)\n"
    )
    assert output(code, **real) == ["('tflite_runtime.interpreter',)", "False True"]


def test_force_replaces_the_interpreter_and_leaves_the_rest_of_the_package(real):
    code = (
        "import {before}, sys\n"
        "from leadline import lite\n"
        "print(len(lite.install(force=True)))\n"
        "import ai_edge_litert.interpreter, ai_edge_litert.other\n"
        "from ai_edge_litert import interpreter\n"
        "print(interpreter.Interpreter is lite.Interpreter, ai_edge_litert.other.value, ai_edge_litert.__version__)\n"
        "lite.uninstall()\n"
        "import ai_edge_litert.interpreter\n"
        "print(ai_edge_litert.interpreter.Interpreter is lite.Interpreter, lite.is_installed())\n"
        "print([name for name in sys.modules if name.startswith('tflite_runtime')])\n"
    )
    for before in ("os", "ai_edge_litert.interpreter"):
        expected = ["2", "True 7 the real one", "False False", "[]"]
        assert output(code.format(before=before), **real) == expected


def test_a_broken_package_shows_its_own_error(real, tmp_path):
    (tmp_path / "ai_edge_litert" / "__init__.py").write_text("raise ImportError('libLiteRt.so: cannot open')\n")
    code = "from leadline import lite; lite.install({}); from ai_edge_litert.interpreter import Interpreter"
    assert "libLiteRt.so" in run(code.format(""), **real).stderr


def test_a_program_runs_unchanged(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\n"
        "from tflite_runtime.interpreter import Interpreter\n"
        "if __name__ == '__main__':\n"
        "    print(Interpreter.__module__, sys.argv[1:])\n"
    )
    found = subprocess.run(
        [sys.executable, "-m", "leadline.lite", "--budget", "100MB", program, "a", "b"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.splitlines() == ["leadline.lite ['a', 'b']"]
    usage = subprocess.run([sys.executable, "-m", "leadline.lite"], capture_output=True, text=True)
    assert usage.returncode == 2 and "usage" in usage.stderr


def test_modules_inside_of_tensorflow_that_scripts_import_are_found():
    pytest.importorskip("leadline.tf")
    code = (
        "import leadline.tf; leadline.tf.install(force=True)\n"
        "from leadline import lite\n"
        "from tensorflow.lite.python.interpreter import Interpreter, load_delegate\n"
        "from tensorflow.lite.python import interpreter as wrapper, convert\n"
        "from tensorflow.lite.python.metrics import metrics\n"
        "import tensorflow.lite.python.lite as other\n"
        "print(Interpreter is wrapper.Interpreter is other.Interpreter is lite.Interpreter)\n"
        "print(convert.mlir_quantize.__module__, metrics.TFLiteMetrics.__module__)\n"
    )
    assert output(code) == ["True", "leadline.lite.convert leadline.lite.metrics"]
