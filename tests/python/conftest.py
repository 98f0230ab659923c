# SPDX-License-Identifier: Apache-2.0
"""What the Python tests share: the folder of real models, and the oracle."""

import os
import sys
from pathlib import Path

import pytest

# Keras without TensorFlow: nothing to compile; its convolutions are JAX's.
os.environ.setdefault("KERAS_BACKEND", "numpy")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

sys.path.insert(0, str(Path(__file__).parent))  # tflite_builder, oracle, ...


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with real models and data: LEADLINE_SHARED, or ../shared beside the repository."""
    import model_list

    if model_list.SHARED is None:
        pytest.skip(model_list.NO_SHARED)
    return model_list.SHARED


@pytest.fixture(scope="session")
def litert():
    """The class ai_edge_litert.interpreter.Interpreter."""
    return pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed").Interpreter


@pytest.fixture(scope="session")
def long_run() -> bool:
    """Whether LEADLINE_LONG=1 asks for the tests that take minutes."""
    return os.environ.get("LEADLINE_LONG") == "1"


@pytest.fixture(scope="module")
def leave_nothing():
    """For tests of leadline.guard: no process, descriptor or shared memory of theirs outlives them."""
    import gc

    import guarded

    from leadline._guard import guard

    guard._close_idle()
    gc.collect()  # sockets of tests before these
    others = set(guarded.descendants())  # such as the resource tracker of process pools in other tests
    before = guarded.descriptors(), guarded.shared_memory()
    yield
    guard._close_idle()
    gc.collect()
    assert set(guarded.descendants()) <= others
    assert (guarded.descriptors(), guarded.shared_memory()) == before
