# SPDX-License-Identifier: Apache-2.0
"""IPython's shell in a guarded process: its displays are shown by the process that called."""

# mypy: disable-error-code="no-untyped-call, union-attr"
# Half of IPython has types.

from __future__ import annotations

import contextlib
import types
import warnings
from collections.abc import Iterable
from typing import Any

from IPython.core.compilerop import CachingCompiler
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets import Type
from traitlets.config import Config

from leadline._guard import worker

CELL_NAME = "<guarded cell>"


class _Publisher(DisplayPublisher):
    """Hands displays to the caller."""

    def publish(
        self, data: Any, metadata: Any = None, source: Any = None, *, transient: Any = None, update: bool = False,
        **ignored: Any,
    ) -> None:  # fmt: skip
        caller = worker.caller()
        display = (data, metadata or {}, transient or {}, update)
        if self.shell.has_ended and self.shell.displayhook.value is not None:
            self.shell.late_displays.append(display)
        elif caller is not None and caller.is_reachable():
            caller.ask("display", *display)
        elif "text/plain" in data:
            print(data["text/plain"])

    def clear_output(self, wait: bool = False) -> None:
        caller = worker.caller()
        if caller is not None and caller.is_reachable():
            caller.ask("clear", wait)


class _Hook(DisplayHook):
    """Keeps the value of the last expression; shows those before it, where a shell is set to show all."""

    value: object = None
    cell = ""

    def quiet(self) -> bool:
        return bool(self.semicolon_at_end_of_expression(self.cell))

    def __call__(self, result: object = None) -> None:
        self.check_for_underscore()
        if result is None or self.quiet():
            return
        if self.value is not None:
            self.shell.display_pub.publish(*self.compute_format_data(self.value))
        self.value = result
        self.shell.user_ns["_"] = result


class _Compiler(CachingCompiler):
    def get_code_name(self, raw_code: str, transformed_code: str, number: int) -> str:
        return CELL_NAME


class GuardedShell(InteractiveShell):
    """Runs cells without a history, a prompt or tracebacks of its own."""

    displayhook_class = Type(_Hook)
    display_pub_class = Type(_Publisher)
    compiler_class = Type(_Compiler)

    extensions: Iterable[str] = ()  # that the notebook has loaded; loaded here when a magic is not found
    has_ended = False  # the cell; figures are shown then, and come after the cell's value
    late_displays: list[tuple[Any, ...]]

    def showtraceback(self, *args: Any, **kwargs: Any) -> None:
        """The caller shows the exception."""

    def showsyntaxerror(self, *args: Any, **kwargs: Any) -> None:
        """The caller shows it."""

    def enable_gui(self, gui: Any = None) -> None:
        """There is no window to serve; figures are pictures."""

    def ask_exit(self) -> None:
        raise SystemExit(0)

    def find_magic(self, magic_name: str, magic_kind: str = "line") -> Any:
        found = super().find_magic(magic_name, magic_kind)
        if found is None and self.extensions:
            names, self.extensions = self.extensions, ()
            for name in names:
                with contextlib.suppress(Exception):  # the magic that needed it says that it is not there
                    self._load(name)
            found = super().find_magic(magic_name, magic_kind)
        return found

    def _load(self, extension: str) -> None:
        if extension == "leadline":  # without the watch, which is for notebooks
            from leadline.notebook import magics

            magics.register(self)
        else:
            self.extension_manager.load_extension(extension)

    def find_line_magic(self, magic_name: str) -> Any:
        return self.find_magic(magic_name, "line")

    def find_cell_magic(self, magic_name: str) -> Any:
        return self.find_magic(magic_name, "cell")

    def use_module(self, module: types.ModuleType) -> None:
        """Cells run in this module from now on; nothing of earlier ones is left."""
        self.has_ended, self.late_displays = False, []
        self.user_module = module
        self.user_ns = vars(module)
        self.user_ns_hidden.clear()
        self.init_user_ns()
        self.init_sys_modules()
        self.compile.reset_compiler_flags()


def get() -> GuardedShell:
    """The shell of this process."""
    if not GuardedShell.initialized():
        settings = Config()
        settings.HistoryManager.enabled = False
        settings.InteractiveShell.colors = "NoColor"
        made = GuardedShell.instance(config=settings)
        made.late_displays = []
        made.events.register("post_execute", lambda: setattr(made, "has_ended", True))
        # SystemExit ends the guarded process, and GuardError says so.
        warnings.filterwarnings("ignore", message="To exit: use 'exit'")
    shell = GuardedShell.instance()
    assert isinstance(shell, GuardedShell)
    return shell
