# SPDX-License-Identifier: Apache-2.0
"""leadline.tf in place of TensorFlow: imports, programs, notebooks, Keras beside it. Each in a process of its own."""

import importlib.util
import os
import subprocess
import sys

import pytest

if importlib.util.find_spec("tensorflow") is not None:
    pytest.skip("a real TensorFlow is here", allow_module_level=True)
HAS_KERAS = importlib.util.find_spec("keras") is not None
HAS_JAX = importlib.util.find_spec("jax") is not None


def run(code: str, *arguments: str, **environment: str):
    env = {
        key: value for key, value in os.environ.items() if key not in ("KERAS_BACKEND", "LEADLINE_MEMORY")
    } | environment
    return subprocess.run(
        [sys.executable, *arguments, "-c", code], capture_output=True, text=True, env=env, timeout=300
    )


def output(code: str, *arguments: str, **environment: str) -> list[str]:
    done = run(code, *arguments, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


INSTALL = "import leadline.tf; assert leadline.tf.install()\n"


def test_every_way_to_import_finds_it():
    code = INSTALL + (
        "import tensorflow as tf\n"
        "import tensorflow.compat.v1 as v1\n"
        "from tensorflow import lite, nn\n"
        "from tensorflow.math import reduce_sum\n"
        "import tensorflow.linalg\n"
        "import leadline\n"
        "print(tf.constant([1, 2]).numpy().tolist(), float(reduce_sum(tf.ones([3]))))\n"
        "print(lite is leadline.lite, v1.Session is tf.compat.v1.Session, tf.float32 is leadline.tf.float32)\n"
        "print(tf.__version__.startswith('2.'), int(tf.__version__.split('.')[0]) >= 2, 'leadline' in tf.__version__)\n"
    )
    assert output(code) == ["[1, 2] 3.0", "True True True", "True True True"]


def test_what_is_missing_is_an_import_error_that_says_why():
    done = run(INSTALL + "import tensorflow.python.framework")
    assert "ModuleNotFoundError" in done.stderr and "leadline.tf in place of TensorFlow" in done.stderr
    done = run(INSTALL + "from tensorflow import GradientTape")
    assert "ImportError" in done.stderr


def test_without_install_there_is_no_tensorflow_and_uninstall_takes_it_back():
    code = (
        "import leadline.tf as t, importlib.util, sys\n"
        "print(importlib.util.find_spec('tensorflow') is None)\n"
        "t.install(); import tensorflow, tensorflow.compat.v1\n"
        "t.uninstall(); print([n for n in sys.modules if n.startswith('tensorflow')])\n"
        "print(importlib.util.find_spec('tensorflow') is None)\n"
    )
    assert output(code) == ["True", "[]", "True"]


def test_a_real_tensorflow_wins_unless_forced(tmp_path):
    (tmp_path / "tensorflow").mkdir()
    (tmp_path / "tensorflow" / "__init__.py").write_text("__version__ = 'the real one'\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    code = "import leadline.tf as t; print(t.install({})); import tensorflow; print(tensorflow.__version__)"
    assert output(code.format(""), PYTHONPATH=path) == ["False", "the real one"]
    assert "leadline" in output(code.format("force=True"), PYTHONPATH=path)[1]
    # A broken one wins too, and its own error shows.
    (tmp_path / "tensorflow" / "__init__.py").write_text(
        "raise ImportError('libcudart.so.12: cannot open shared object')\n"
    )
    assert "libcudart.so.12" in run(code.format(""), PYTHONPATH=path).stderr
    assert "leadline" in output(code.format("force=True"), PYTHONPATH=path)[1]


def test_a_program_runs_unchanged(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, helper, tensorflow as tf\n"
        "if __name__ == '__main__':\n"
        "    print(sys.argv[1:], helper.NAME, tf.reduce_sum(tf.ones([4])).numpy())\n"
    )
    (tmp_path / "helper.py").write_text("NAME = 'beside it'\n")
    done = subprocess.run(
        [sys.executable, "-m", "leadline.tf", "--budget", "1GB", str(program), "--flag", "3"],
        capture_output=True,
        text=True,
    )
    assert done.stdout == "['--flag', '3'] beside it 4.0\n", done.stderr
    program.write_text("import tensorflow as tf\ntf.zeros([1000, 1000])\n")
    done = subprocess.run(
        [sys.executable, "-m", "leadline.tf", "--budget", "1MB", str(program)], capture_output=True, text=True
    )
    assert done.returncode == 1 and "BudgetError" in done.stderr and "program.py:2" in done.stderr


def test_the_notebook_extension_installs_it():
    pytest.importorskip("IPython")
    code = (
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\n"
        "shell.run_line_magic('load_ext', 'leadline.tf')\n"
        "print(shell.run_cell('import tensorflow as tf; int(tf.constant(6) * 7)').result)\n"
    )
    assert output(code)[-1] == "42"


MODEL = (
    "import tensorflow as tf, numpy as np, sys\n"
    "model = tf.keras.Sequential([\n"
    "    tf.keras.layers.Conv2D(4, (3, 3), activation='relu', input_shape=(8, 8, 3)),\n"
    "    tf.keras.layers.MaxPooling2D(), tf.keras.layers.Flatten(), tf.keras.layers.Dropout(0.5),\n"
    "    tf.keras.layers.Dense(10, activation='softmax')])\n"
    "x = np.random.rand(1, 8, 8, 3).astype(np.float32)\n"
    "def lite():\n"
    "    i = tf.lite.Interpreter(model_content=tf.lite.TFLiteConverter.from_keras_model(model).convert())\n"
    "    i.allocate_tensors(); i.set_tensor(i.get_input_details()[0]['index'], x); i.invoke()\n"
    "    return i.get_tensor(i.get_output_details()[0]['index'])\n"
)


def test_a_sequential_model_is_converted_without_keras():
    code = (
        INSTALL
        + MODEL
        + "a = lite(); b = lite(); print('keras' in sys.modules, a.shape, np.array_equal(a, b), round(float(a.sum()), 4))"
    )
    assert output(code) == ["False (1, 10) True 1.0"]


def test_weights_of_an_outline_do_not_draw_from_the_programs_own_numbers():
    code = "np.random.seed(3); lite(); print(np.random.rand() == np.random.RandomState(3).rand())"
    assert output(INSTALL + MODEL + code) == ["True"]


@pytest.mark.skipif(not (HAS_KERAS and HAS_JAX), reason="Keras and JAX are not installed")
@pytest.mark.parametrize("backend", ["jax", "numpy"])
def test_the_outline_of_a_model_becomes_the_real_one_with_its_weights(backend):
    code = (
        INSTALL
        + MODEL
        + (
            "a = lite()\n"
            "y = np.asarray(model.predict(x, verbose=0))\n"
            "import keras\n"
            "print(isinstance(model, keras.Sequential), isinstance(model.layers[0], tf.keras.layers.Conv2D), keras.backend.backend())\n"
            "print(np.allclose(a, y, atol=1e-5), np.allclose(lite(), y, atol=1e-5), [l.name for l in model.layers])\n"
            "print(keras.src.utils.module_utils.tensorflow.available)\n"
            "inputs = tf.keras.Input((4,)); net = tf.keras.Model(inputs, tf.keras.layers.Dense(2)(inputs)); print(net(np.ones((1, 4))).shape)\n"
            "class Mine(tf.keras.layers.Layer): pass\n"
            "from tensorflow.keras import layers\n"
            "from tensorflow.keras.models import Sequential\n"
            "import tensorflow.keras.layers\n"
            "print(issubclass(Mine, keras.layers.Layer), layers.Dense is keras.layers.Dense, Sequential is keras.Sequential)\n"
        )
    )
    lines = output(code, KERAS_BACKEND=backend)
    assert lines[0] == f"True True {backend}"
    assert lines[1] == "True True ['conv2d', 'max_pooling2d', 'flatten', 'dropout', 'dense']"
    assert lines[2:] == ["False", "(1, 2)", "True True True"]


@pytest.mark.skipif(not (HAS_KERAS and HAS_JAX), reason="Keras and JAX are not installed")
def test_a_backend_that_is_there_is_chosen(tmp_path):
    """Keras's own default is TensorFlow, which is not here."""
    code = INSTALL + "import tensorflow as tf; print(tf.keras.backend.backend(), tf.keras.__version__[0])"
    assert output(code, KERAS_HOME=str(tmp_path)) == ["jax 3"]
    (tmp_path / "keras.json").write_text('{"backend": "tensorflow"}')
    assert output(code, KERAS_HOME=str(tmp_path)) == ["jax 3"]


def test_arguments_that_an_outline_cannot_stand_for_are_left_to_keras():
    code = INSTALL + (
        "from leadline.tf.keras_outline import LayerOutline, _Unclear\n"
        "for name, args, kwargs in [('Dense', (0,), {}), ('Dense', (3,), {'activation': len}), ('Conv2D', (4, 3, 1, 'bad'), {}),\n"
        "                           ('Dense', (3,), {'kernel_initializer': 'ones'}), ('Dropout', (1.5,), {}), ('Dense', (), {})]:\n"
        "    try:\n"
        "        LayerOutline(name, args, kwargs)\n"
        "        print('taken', name, args)\n"
        "    except _Unclear:\n"
        "        pass\n"
    )
    assert output(code) == []
