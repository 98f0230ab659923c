# SPDX-License-Identifier: Apache-2.0
"""The magics of `%load_ext leadline`. Each is a plain function of the shell, the line and the cell."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from typing import Any, NoReturn

from leadline._guard import front_end
from leadline._guard.guard import guard
from leadline._leadline import InvalidArgumentError
from leadline.notebook.cell import CellOrder, CellResult, names_of_notebook, run_cell, shown_note


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise InvalidArgumentError(f"%%{self.prog}: {message}\n{self.format_usage()}")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        raise _HelpShown


class _HelpShown(Exception):
    pass


def _guard_parser() -> _Parser:
    parser = _Parser(prog="guard", description="Runs the cell in a child process, whose death is an exception here.")
    parser.add_argument("limit", nargs="?", metavar="MEMORY", help="the same as --memory")
    parser.add_argument("--memory", help="most memory of the cell: 2GB, 1.5GiB, 50%%")
    parser.add_argument("--timeout", type=float, help="most seconds it may take")
    names: dict[str, Any] = {"action": "append", "default": [], "metavar": "A,B"}
    parser.add_argument("--in", dest="inputs", **names, help="variables that the cell reads; may be repeated")
    parser.add_argument("--out", dest="outputs", **names, help="variables that come back; may be repeated")
    return parser


def _names(texts: list[str]) -> list[str]:
    names = list(dict.fromkeys(name for text in texts for name in text.split(",") if name))
    for name in names:
        if not name.isidentifier():
            raise InvalidArgumentError(f"%%guard: '{name}' is not the name of a variable")
    return names


def run_guarded_cell(shell: Any, line: str, cell: str) -> Any:
    """`%%guard --memory 2GB [--timeout 60] [--in a,b] [--out c,d]`: runs the cell in a guarded child process.

    The cell sees the variables of --in and what it imports itself; those of --out come back. Both may be repeated. The
    value of a last expression is the value of the cell; displays, figures and output appear as they do of any cell.
    """
    __tracebackhide__ = True
    parser = _guard_parser()
    try:
        words = shlex.split(re.sub(r"\s*,\s*", ",", line), comments=True)
    except ValueError as error:
        raise InvalidArgumentError(f"%%guard: {error}: {line}") from None
    try:
        options = parser.parse_args(words)
    except _HelpShown:
        return None
    if options.limit and options.memory:
        raise InvalidArgumentError("%%guard: the memory is given twice")
    inputs = {}
    for name in _names(options.inputs):
        if name not in shell.user_ns:
            raise NameError(f"%%guard --in {name}: there is no variable '{name}'", name=name)
        inputs[name] = shell.user_ns[name]
    outputs = _names(options.outputs)
    order = CellOrder(cell, inputs, outputs, names_of_notebook(shell.user_ns))
    order.extensions, order.settings, order.magics = _extensions(shell), _settings(shell), _own_magics(shell, cell)
    result: CellResult = guard(run_cell, order, memory=options.memory or options.limit, timeout=options.timeout)
    shell.user_ns.update(result.outputs)
    if result.left_behind and not outputs and sys.stderr is not None:
        print(shown_note(result.left_behind), file=sys.stderr)
    _show_later(shell, result.late_displays)
    return None if result.value is None else result.value.unpack()


def _show_later(shell: Any, displays: list[tuple[Any, ...]]) -> None:
    """When the cell has ended: its value is shown before."""
    if not displays:
        return

    def show() -> None:
        shell.events.unregister("post_execute", show)
        for display in displays:
            front_end.serve("display", *display)

    shell.events.register("post_execute", show)


def _own_magics(shell: Any, cell: str) -> dict[tuple[str, str], Any]:
    """Magics that are defined in the notebook and that the cell names."""
    manager = getattr(shell, "magics_manager", None)
    found = {}
    for kind, functions in getattr(manager, "magics", {}).items():
        for name, function in functions.items():
            if getattr(function, "__module__", None) == "__main__" and re.search(rf"%\s*{re.escape(name)}\b", cell):
                found[kind, name] = function
    return found


def _extensions(shell: Any) -> list[str]:
    return sorted(getattr(getattr(shell, "extension_manager", None), "loaded", ()))


def _settings(shell: Any) -> dict[str, Any]:
    """What the user may have set in the notebook and sees in the output of cells."""
    settings = {"ast_node_interactivity": getattr(shell, "ast_node_interactivity", "last_expr")}
    inline = sys.modules.get("matplotlib_inline.config")
    if inline is not None and inline.InlineBackend.initialized():
        settings["figure_formats"] = sorted(inline.InlineBackend.instance().figure_formats)
    return settings


def register(shell: Any) -> None:
    """Adds the magics to an IPython shell."""

    def guard_magic(line: str, cell: str) -> Any:
        __tracebackhide__ = True
        return run_guarded_cell(shell, line, cell)

    guard_magic.__doc__ = run_guarded_cell.__doc__
    shell.register_magic_function(guard_magic, magic_kind="cell", magic_name="guard")

    def watch_magic(line: str) -> Any:
        from leadline.notebook import watch

        return watch.load(shell).run_magic(line)

    def postmortem_magic(line: str) -> Any:
        """`%postmortem [PATH]`: how the last watched process that died came to its end."""
        from leadline._guard.postmortem import postmortem

        found = postmortem(line.strip() or None)
        if found is None:
            print("There are no recordings: nothing that was watched has ended.")
        return found

    shell.register_magic_function(postmortem_magic, magic_kind="line", magic_name="postmortem")

    watch_magic.__doc__ = "`%watch [report | cells [on | off] | LIMIT | on | off]`: the watch of this notebook."
    shell.register_magic_function(watch_magic, magic_kind="line", magic_name="watch")

    def restore_magic(line: str) -> None:
        from leadline.notebook import watch

        watch.load(shell).restore(line)

    restore_magic.__doc__ = "`%restore [NAME ...]`: brings back what the watch saved before the last kernel died."
    shell.register_magic_function(restore_magic, magic_kind="line", magic_name="restore")
