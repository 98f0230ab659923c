# SPDX-License-Identifier: Apache-2.0
"""The type stub describes the extension as it is, name by name; tools/lint_python.sh has mypy read it too. (mypy's own
stubtest cannot: functions of nanobind are not functions to it.) And everything bound is documented."""

import ast
import enum
import inspect
import runpy
from pathlib import Path

import pytest

import leadline
from leadline import _leadline, lite

ROOT = Path(__file__).parents[2]
STUB = ROOT / "python" / "leadline" / "_leadline.pyi"
HINT = "run: .venv/bin/python tools/make_stubs.py > python/leadline/_leadline.pyi && tools/lint_python.sh --format"
NOT_AT_RUN_TIME = {"__buffer__"}  # a method that Python shows since 3.12


def is_public(name: str) -> bool:
    return not name.startswith("_")


def members(body: list[ast.stmt]) -> dict[str, ast.stmt]:
    """Classes, functions and variables by name; of overloads and property setters the first."""
    found: dict[str, ast.stmt] = {}
    for statement in body:
        if isinstance(statement, ast.ClassDef | ast.FunctionDef):
            found.setdefault(statement.name, statement)
        elif isinstance(statement, ast.AnnAssign):
            found.setdefault(statement.target.id, statement)
        elif isinstance(statement, ast.Assign):
            found.setdefault(statement.targets[0].id, statement)
    return found


@pytest.fixture(scope="module")
def stub() -> ast.Module:
    return ast.parse(STUB.read_text())


def test_stub_is_current(stub):
    """Signatures and docstrings are those of the extension; how lines are broken is the formatter's matter."""
    pytest.importorskip("nanobind", reason="nanobind is not installed")
    made = runpy.run_path(str(ROOT / "tools" / "make_stubs.py"))["make"]()
    wanted, found = (ast.unparse(cleaned(ast.parse(text))).splitlines() for text in (made, STUB.read_text()))
    assert found == wanted, HINT


def cleaned(tree: ast.Module) -> ast.Module:
    """Docstrings without their indentation, imports in one order."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = inspect.cleandoc(node.value)
    tree.body.sort(key=lambda line: ast.unparse(line) if isinstance(line, ast.Import | ast.ImportFrom) else "~")
    return tree


def for_mypy(stub: ast.Module) -> list[ast.ImportFrom]:
    """typing_extensions, which type checkers bring along."""
    return [line for line in stub.body if isinstance(line, ast.ImportFrom) and line.module == "typing_extensions"]


def test_stub_imports_what_exists(stub):
    """`import MissingDevice`, once in the stub, is an error to mypy, and nothing else noticed."""
    for line in stub.body:
        if isinstance(line, ast.Import | ast.ImportFrom) and line not in for_mypy(stub):
            exec(ast.unparse(line), {})


def test_names_in_the_stub_mean_something(stub):
    """Every annotation is made of names that the stub defines or imports."""
    names = dict.fromkeys(members(stub.body), object)
    for line in stub.body:
        if line in for_mypy(stub):
            names |= {alias.name: object for alias in line.names}
        elif isinstance(line, ast.Import | ast.ImportFrom):
            exec(ast.unparse(line), names)
    annotations = [node.annotation for node in ast.walk(stub) if getattr(node, "annotation", None) is not None]
    annotations += [node.returns for node in ast.walk(stub) if isinstance(node, ast.FunctionDef)]
    assert len(annotations) > 700 and None not in annotations, "something has no annotation"
    for annotation in annotations:
        for name in (node for node in ast.walk(annotation) if isinstance(node, ast.Name)):
            assert name.id in names or name.id in __builtins__, ast.unparse(annotation)


def test_stub_has_what_the_module_has(stub):
    check(stub.body, _leadline, "leadline._leadline")


def check(body: list[ast.stmt], thing: object, place: str) -> None:
    described = members(body)
    missing = {name for name in vars(thing) if is_public(name)} - described.keys()
    assert not missing, f"{place}: {missing} is not in the stub"
    setters = {line.name for line in body if isinstance(line, ast.FunctionDef) and is_setter(line)}
    for name, statement in described.items():
        if name in NOT_AT_RUN_TIME:
            continue
        where = f"{place}.{name}"
        assert hasattr(thing, name), f"{where} does not exist"
        value = inspect.getattr_static(thing, name)
        if isinstance(statement, ast.ClassDef):
            check_class(statement, value, where)
        elif isinstance(statement, ast.FunctionDef):
            is_property = "property" in map(ast.unparse, statement.decorator_list)
            assert is_property == isinstance(value, property), where
            if is_property:
                assert (name in setters) == (value.fset is not None), f"{where}: can it be set?"
            else:
                assert callable(getattr(thing, name)), where


def is_setter(function: ast.FunctionDef) -> bool:
    return f"{function.name}.setter" in map(ast.unparse, function.decorator_list)


def check_class(statement: ast.ClassDef, value: type, where: str) -> None:
    assert inspect.isclass(value), where
    bases = [base.__name__ for base in value.__bases__ if base is not object]
    assert [ast.unparse(base).removeprefix("enum.") for base in statement.bases] == bases, where
    if issubclass(value, enum.Enum):
        lines = members(statement.body).items()
        stated = {name: line.value.value for name, line in lines if isinstance(line, ast.Assign)}
        assert stated == {entry.name: entry.value for entry in value}, where
    else:
        check(statement.body, value, where)


def test_public_names_exist_and_have_docstrings():
    for module in (leadline, lite):
        for name in module.__all__:
            thing = getattr(module, name)
            assert name.startswith("__") or inspect.getdoc(thing), f"{module.__name__}.{name}"
    for cls in (lite.Interpreter, lite.SignatureRunner, _leadline.Budget, _leadline.Model, _leadline.Plan):
        for name, member in vars(cls).items():
            if not name.startswith("_") and callable(member):
                assert inspect.getdoc(member), f"{cls.__name__}.{name}"
