# SPDX-License-Identifier: Apache-2.0
"""Kernels for the tests of notebooks. Everything in this folder runs in processes that Jupyter would start."""

import os
import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "python")]  # kernels; chromium, builders

kernels = pytest.importorskip("kernels", reason="jupyter_client is not installed", exc_type=ImportError)


@pytest.fixture
def kernel(tmp_path):
    """A fresh kernel without TensorFlow, in a folder of its own."""
    if kernels.PLAIN is None:
        pytest.skip("there is no .venv: run make setup")
    with kernels.Kernel(kernels.PLAIN, tmp_path, env={"LEADLINE_FLIGHTS": str(tmp_path / "flights")}) as started:
        yield started


@pytest.fixture(scope="session")
def tensorflow_kernel(tmp_path_factory):
    """One kernel beside TensorFlow for all tests; what runs in it is guarded."""
    if kernels.TENSORFLOW is None:
        pytest.skip("there is no .venv-tensorflow: run tools/setup.sh tests")
    folder = tmp_path_factory.mktemp("tensorflow")
    with kernels.Kernel(kernels.TENSORFLOW, folder, env={"LEADLINE_FLIGHTS": str(folder / "flights")}) as started:
        loaded = started.run("%load_ext leadline")
        assert loaded.error is None, loaded
        yield started


@pytest.fixture(scope="session")
def saved_model(tensorflow_kernel, tmp_path_factory):
    """The folder of a SavedModel that TensorFlow wrote."""
    folder = tmp_path_factory.mktemp("saved") / "model"
    made = tensorflow_kernel.run(f"""%%guard --memory 3GB
import tensorflow as tf
tf.keras.utils.set_random_seed(7)
model = tf.keras.Sequential([tf.keras.layers.Input((12, 12, 3)), tf.keras.layers.Conv2D(8, 3, activation="relu"),
                             tf.keras.layers.Flatten(), tf.keras.layers.Dense(5)])
model.export({str(folder)!r}, verbose=False)
""", timeout=120)  # fmt: skip
    assert made.error is None and (folder / "saved_model.pb").is_file(), made
    return folder


@pytest.fixture(scope="session")
def seeds():
    """The folder of the programs this project started from, beside the repository."""
    shared = Path(os.environ.get("LEADLINE_SHARED") or Path(__file__).resolve().parents[3] / "shared")
    if not (shared / "seeds" / "examples").is_dir():
        pytest.skip("no ../shared/seeds/examples; the programs in tests/notebook/programs have the same hazards")
    return shared / "seeds" / "examples"
