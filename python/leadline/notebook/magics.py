# SPDX-License-Identifier: Apache-2.0
"""The magics of `%load_ext leadline`. Each is a plain function of the shell, the line and the cell."""

from __future__ import annotations

import argparse
import ast
import shlex
from typing import Any, NoReturn

from leadline._guard.guard import guard
from leadline._leadline import InvalidArgumentError


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
    parser.add_argument("--in", dest="inputs", default="", metavar="A,B", help="variables that the cell reads")
    parser.add_argument("--out", dest="outputs", default="", metavar="C", help="variables that come back")
    return parser


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if not name.isidentifier():
            raise InvalidArgumentError(f"%%guard: '{name}' is not the name of a variable")
    return names


def run_guarded_cell(shell: Any, line: str, cell: str) -> Any:
    """`%%guard --memory 2GB [--timeout 60] [--in a,b] [--out c]`: runs the cell in a guarded child process.

    The cell sees the variables of --in and what it imports itself; those of --out come back. The value of a last
    expression is the value of the cell.
    """
    __tracebackhide__ = True
    parser = _guard_parser()
    try:
        options = parser.parse_args(shlex.split(line))
    except _HelpShown:
        return None
    if options.limit and options.memory:
        raise InvalidArgumentError("%%guard: the memory is given twice")
    inputs = {}
    for name in _names(options.inputs):
        if name not in shell.user_ns:
            raise NameError(f"%%guard --in {name}: there is no variable '{name}'", name=name)
        inputs[name] = shell.user_ns[name]
    limits = {"memory": options.memory or options.limit, "timeout": options.timeout}
    outputs, value = guard(_run_cell, cell, inputs, _names(options.outputs), **limits)
    shell.user_ns.update(outputs)
    return value


def _run_cell(cell: str, variables: dict[str, Any], outputs: list[str]) -> tuple[dict[str, Any], Any]:
    """In the child."""
    import linecache

    name = "<guarded cell>"
    linecache.cache[name] = (len(cell), None, cell.splitlines(keepends=True), name)  # for tracebacks
    tree = ast.parse(cell, name)
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr):
        tree.body.pop()
    else:
        last = None
    variables["__name__"] = "__main__"
    exec(compile(tree, name, "exec"), variables)
    value = None
    if last is not None and not cell.rstrip().endswith(";"):
        value = eval(compile(ast.Expression(last.value), name, "eval"), variables)
    elif last is not None:
        exec(compile(ast.Module([last], []), name, "exec"), variables)
    missing = [output for output in outputs if output not in variables]
    if missing:
        raise NameError(f"%%guard --out {missing[0]}: the cell did not set '{missing[0]}'", name=missing[0])
    return {output: variables[output] for output in outputs}, value


_run_cell.guard_name = "the cell"  # type: ignore[attr-defined]  # in messages


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

    watch_magic.__doc__ = "`%watch [report | cells [on | off] | LIMIT | on | off]`: the watch of this notebook."
    shell.register_magic_function(watch_magic, magic_kind="line", magic_name="watch")
