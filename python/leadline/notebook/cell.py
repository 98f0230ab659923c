# SPDX-License-Identifier: Apache-2.0
"""A guarded cell, in the child: run as IPython runs cells, so that magics, shell commands and await work."""

from __future__ import annotations

import ast
import io
import pickle
import types
from dataclasses import dataclass, field
from typing import Any

from leadline._guard import errors, transport


@dataclass
class CellOrder:
    """What the child is to do."""

    cell: str
    variables: dict[str, Any]
    outputs: list[str]
    notebook_names: frozenset[str] = frozenset()  # variables of the notebook
    extensions: list[str] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)  # of the notebook's shell
    magics: dict[tuple[str, str], Any] = field(default_factory=dict)  # defined in the notebook, by kind and name


@dataclass
class CellResult:
    """What came of it."""

    outputs: dict[str, Any]
    value: PackedValue | None
    left_behind: list[str]  # names that the cell set and that do not come back
    late_displays: list[tuple[Any, ...]]  # figures that come after the value

    def name_unsendable(self) -> str:
        """Which of the outputs cannot travel."""
        for name, value in self.outputs.items():
            try:
                transport.pickler_class()(io.BytesIO(), protocol=5, buffer_callback=lambda _: None).dump(value)
            except Exception:
                return f"--out {name}, of type {type(value).__qualname__},"
        return "The result"


@dataclass
class PackedValue:
    """The value of the last expression: as itself where that is possible without importing anything in the caller, and
    as a notebook shows it."""

    data: bytes | None
    buffers: list[Any]
    bundle: dict[str, Any]
    metadata: dict[str, Any]

    def unpack(self) -> object:
        if self.data is not None:
            try:
                return errors.KnownOnly(io.BytesIO(self.data), buffers=self.buffers).load()
            except Exception:
                pass
        return GuardedValue(self.bundle, self.metadata)


class GuardedValue:
    """The value of a guarded cell that stayed in its process: it looks as it looked there."""

    __module__ = "leadline"

    def __init__(self, bundle: dict[str, Any], metadata: dict[str, Any]):
        self._bundle, self._metadata = bundle, metadata

    def __repr__(self) -> str:
        return str(self._bundle.get("text/plain", "<a value that stayed in the guarded process>"))

    def _repr_mimebundle_(self, **ignored: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        return self._bundle, self._metadata


def run_cell(order: CellOrder) -> CellResult:
    """Runs a cell in a module of its own, which is __main__ while it lasts."""
    from leadline.notebook import guarded_shell

    shell: Any = guarded_shell.get()
    module = types.ModuleType("__main__")
    vars(module).update(order.variables)
    shell.use_module(module)
    shell.extensions = order.extensions
    shell.ast_node_interactivity = order.settings.get("ast_node_interactivity", "last_expr")
    for (kind, name), function in order.magics.items():
        shell.register_magic_function(function, kind, name)
    _apply_figure_formats(order.settings.get("figure_formats"), shell)
    shell.displayhook.cell, shell.displayhook.value = order.cell, None
    before = set(vars(module))
    result = shell.run_cell(order.cell, store_history=False)
    value, shell.displayhook.value = shell.displayhook.value, None
    error = result.error_before_exec or result.error_in_exec
    if error is not None:
        if isinstance(error, NameError):
            _name_the_option(error, shell, order)
        raise error
    names = vars(module)
    missing = [output for output in order.outputs if output not in names]
    if missing:
        raise NameError(f"%%guard --out {missing[0]}: the cell did not set '{missing[0]}'", name=missing[0])
    packed = None if value is None else _pack(value, shell)
    left = _left_behind(shell, order, before)
    return CellResult({output: names[output] for output in order.outputs}, packed, left, shell.late_displays)


run_cell.guard_name = "the cell"  # type: ignore[attr-defined]  # in messages


def _apply_figure_formats(formats: list[str] | None, shell: Any) -> None:
    """Figures as `%config InlineBackend.figure_format` has them in the notebook."""
    if formats:
        from matplotlib_inline.config import InlineBackend

        InlineBackend.instance(parent=shell).figure_formats = set(formats)


def _tree(shell: Any, cell: str) -> ast.Module:
    try:
        tree: ast.Module = ast.parse(shell.transform_cell(cell))
    except SyntaxError:
        return ast.Module([], [])
    return tree


def _name_the_option(error: NameError, shell: Any, order: CellOrder) -> None:
    """A name that the notebook has and the cell has not: say how it gets there, with all others of the kind."""
    name = getattr(error, "name", None)
    if isinstance(error, UnboundLocalError) or name not in order.notebook_names:
        return
    used = {node.id for node in ast.walk(_tree(shell, order.cell)) if isinstance(node, ast.Name)}
    known = shell.user_ns
    wanted = [name, *sorted((used & order.notebook_names) - known.keys() - {name})]
    option = f"%%guard --in {','.join([*order.variables, *wanted])}"
    words = (
        f"name '{name}' is not defined in the guarded cell. The notebook has it, and a guarded cell sees only what is"
    )
    error.args = (f"{words} passed: {option}",)


def _left_behind(shell: Any, order: CellOrder, before: set[str]) -> list[str]:
    """Names that somebody may miss: not imports, nor what only loops and with-blocks use."""
    tree = _tree(shell, order.cell)
    names = vars(shell.user_module)
    changed = {name for name, value in order.variables.items() if names.get(name) is not value}
    kept = {*order.outputs, *_passing_names(tree), *shell.user_ns_hidden}
    new = ((names.keys() - before) | changed) - kept
    return [
        name
        for name, value in names.items()
        if name in new and not name.startswith("_") and not isinstance(value, types.ModuleType)
    ]


def _passing_names(tree: ast.Module) -> set[str]:
    imported: set[str] = set()
    targets: list[ast.AST] = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            imported.update((alias.asname or alias.name).partition(".")[0] for alias in node.names)
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            targets.append(node.target)
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            targets.append(node.optional_vars)
    passing = [name for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
    stored = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    elsewhere = {name.id for name in stored} - {name.id for name in passing}
    elsewhere |= {name.id for name in stored if name not in passing}
    return imported | ({name.id for name in passing} - elsewhere)


class _NotData(Exception):
    """Something that must not arrive as itself."""


def _pack(value: object, shell: Any) -> PackedValue:
    bundle, metadata = shell.displayhook.compute_format_data(value)
    buffers: list[pickle.PickleBuffer] = []
    file = io.BytesIO()

    class Pickler(transport.pickler_class()):  # type: ignore[misc]  # a class made at run time
        def reducer_override(self, thing: Any) -> Any:
            kind = thing if isinstance(thing, type) else type(thing)
            if (kind.__module__ or "").partition(".")[0] == "matplotlib":
                raise _NotData  # a figure that is unpickled is drawn once more
            return super().reducer_override(thing)

    data: bytes | None = None
    try:
        Pickler(file, protocol=5, buffer_callback=buffers.append).dump(value)
        data = file.getvalue()
    except Exception:
        buffers = []
    return PackedValue(data, buffers, bundle, metadata)


def names_of_notebook(user_ns: dict[str, Any]) -> frozenset[str]:
    """Variables of a notebook that a cell may miss, by name."""
    shown = {name for name in user_ns if not name.startswith("_")}
    return frozenset(shown - {"In", "Out", "exit", "quit", "get_ipython", "open"})


def shown_note(left: list[str]) -> str:
    """What to say of names that vanished."""
    few = ", ".join(left[:8]) + (f" and {len(left) - 8} more" if len(left) > 8 else "")
    verb = "was" if len(left) == 1 else "were"
    back = "it" if len(left) == 1 else "them"
    option = f"--out {','.join(left[:8])}"
    return f"leadline: {few} {verb} set in the guarded cell and ended with it; {option} brings {back} back"
