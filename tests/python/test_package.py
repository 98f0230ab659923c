# SPDX-License-Identifier: Apache-2.0
"""The package as users, editors and type checkers see it."""

import ast
import inspect
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import leadline
from leadline import lite

PACKAGE = Path(leadline.__file__).parent
MODULES = {"leadline": leadline, "leadline.lite": lite}


def typed_imports(module) -> dict[str, str]:
    """Where a type checker finds the names that are imported on first use: the `if TYPE_CHECKING:` block."""
    found = {}
    for statement in ast.parse(Path(module.__file__).read_text()).body:
        if isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING":
            for line in statement.body:
                assert isinstance(line, ast.ImportFrom)
                found |= {alias.name: line.module for alias in line.names}
    return found


@pytest.mark.parametrize("name", MODULES)
def test_tab_completion_offers_the_public_names_and_nothing_else(name):
    offered = [entry for entry in dir(MODULES[name]) if not entry.startswith("__")]
    assert offered == sorted(entry for entry in MODULES[name].__all__ if not entry.startswith("__"))
    assert {"quantize", "debug", "tune", "guard", "watch", "laps", "doctor", "postmortem", "tf"} <= set(dir(leadline))
    assert {"TFLiteConverter", "experimental"} <= set(dir(lite))


@pytest.mark.parametrize("name", MODULES)
def test_type_checkers_see_what_getattr_imports(name):
    module = MODULES[name]
    seen = typed_imports(module)
    assert seen.keys() == module._LATER.keys()
    for entry, place in module._LATER.items():
        assert seen[entry] == (name if place == entry else f"{name}.{place}"), entry


@pytest.mark.parametrize("name", MODULES)
def test_classes_call_themselves_what_users_call_them(name):
    for entry in MODULES[name].__all__:
        thing = getattr(MODULES[name], entry)
        if inspect.isclass(thing) and not thing.__module__.endswith("._leadline"):
            own = thing.__module__ in ("leadline.custom_ops", "leadline.model_builder")  # modules that can be imported
            assert own or f"{thing.__module__}.{thing.__qualname__}" == f"{name}.{entry}"
            assert pickle.loads(pickle.dumps(thing)) is thing


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="module 'leadline' has no attribute 'quantise'"):
        _ = leadline.quantise
    with pytest.raises(AttributeError, match="module 'leadline.lite' has no attribute 'Tflite'"):
        _ = lite.Tflite


def test_everything_that_is_raised_is_an_error_of_leadline():
    errors = [getattr(leadline, name) for name in leadline.__all__ if name.endswith("Error")]
    assert len(errors) > 8
    for error in errors:
        assert issubclass(error, leadline.Error), error
    assert issubclass(leadline.MemoryLimitError, MemoryError)
    assert leadline.MemoryLimitError("full").code == "memory_limit"


def test_importing_takes_little_beside_numpy():
    """What is imported, rather than for how long, which depends on the machine. json alone would be a sixth of it."""
    code = "import numpy, sys; before = set(sys.modules); import leadline; print(*(set(sys.modules) - before))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    own = {name for name in loaded if name.startswith("leadline")}
    assert set(loaded) - own <= {"__future__", "atexit"}
    rooms = {name.split(".")[1] for name in own if "." in name}
    assert rooms == {"_leadline", "_native", "custom_ops", "keras_layers", "lite", "model_builder"}
    small = {f"leadline.lite.{name}" for name in ("interpreter", "delegates", "metrics")}
    assert {name for name in own if name.startswith("leadline.lite")} == {"leadline.lite", *small}


def test_the_core_does_not_import_the_drop_in():
    """lite stands on the other rooms, not under them."""
    for room in ("jobs", "_guard", "_native", "notebook"):
        for file in (PACKAGE / room).glob("*.py"):
            assert "leadline.lite" not in {
                ".".join(line.module.split(".")[:2])
                for line in ast.walk(ast.parse(file.read_text()))
                if isinstance(line, ast.ImportFrom) and line.module
            }, file
