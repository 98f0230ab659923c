# SPDX-License-Identifier: Apache-2.0
"""The tests beside TensorFlow: run with an environment that has it (.venv-tensorflow); `make test` does."""

import os
import sys
from pathlib import Path

import pytest

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")  # one order of summation, on every machine

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))  # keras_models, oracle, ...


@pytest.fixture(scope="session")
def litert():
    """The class ai_edge_litert.interpreter.Interpreter."""
    from ai_edge_litert.interpreter import Interpreter

    return Interpreter
