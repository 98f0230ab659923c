# SPDX-License-Identifier: Apache-2.0
"""The type stub in the repository is the one of the extension, and everything bound is documented."""

import inspect
import runpy
from pathlib import Path

import pytest

import leadline
from leadline import _leadline, lite

ROOT = Path(__file__).parents[2]


def test_stub_is_current():
    pytest.importorskip("nanobind", reason="nanobind is not installed")
    make = runpy.run_path(str(ROOT / "tools" / "make_stubs.py"))["make"]
    hint = "run: .venv/bin/python tools/make_stubs.py > python/leadline/_leadline.pyi"
    assert (ROOT / "python" / "leadline" / "_leadline.pyi").read_text() == make(), hint


def test_public_names_exist_and_have_docstrings():
    for module in (leadline, lite):
        for name in module.__all__:
            thing = getattr(module, name)
            assert name.startswith("__") or inspect.getdoc(thing), f"{module.__name__}.{name}"
    for cls in (lite.Interpreter, lite.SignatureRunner, _leadline.Budget, _leadline.Model, _leadline.Plan):
        for name, member in vars(cls).items():
            if not name.startswith("_") and callable(member):
                assert inspect.getdoc(member), f"{cls.__name__}.{name}"
