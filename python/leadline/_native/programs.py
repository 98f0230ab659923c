# SPDX-License-Identifier: Apache-2.0
"""Runs a program as `python program.py`, `python -m module` or `python -c code` would, in this process."""

from __future__ import annotations

import os
import runpy
import sys


def run_program(arguments: list[str]) -> None:
    """`arguments` are what follows `python`, at least one."""
    if arguments[0] == "-m" and len(arguments) > 1:
        sys.argv = arguments[1:]
        sys.path[0] = os.getcwd()
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    elif arguments[0] == "-c" and len(arguments) > 1:
        sys.argv = ["-c", *arguments[2:]]
        exec(compile(arguments[1], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = arguments
        sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
        runpy.run_path(arguments[0], run_name="__main__")
