# SPDX-License-Identifier: Apache-2.0
"""The watch of a notebook: started by `%load_ext leadline`, told of cells by IPython's events."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
import types
from typing import Any

from leadline._guard import postmortem, save, watch
from leadline._leadline import Error, InvalidArgumentError, format_bytes

USAGE = """usage: %watch [report | cells [on | off] | LIMIT | save on | save off | save SIZE | on | off]
  report      memory, cells and alarms so far (the default)
  cells       after each cell, print its peak and growth
  save        whether variables are written to a file when death is near, and how much at most (2GB)
  LIMIT       watch with another limit: 3GB of this process, or 0.8 (80%) of the machine
  on, off     start or stop the watch"""

_OFF = ("off", "no", 0.0)  # limits that mean no watch


class NotebookWatch:
    """The hooks of one shell."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._watch: watch.Watch | None = None
        self._print_cells = False
        self._save: bool | str | None = None
        self._last = 0  # number of the last cell; 0: unknown
        self._shown = False  # whether the front end has got the text of this cell's error
        self._limit: float | str = os.environ.get("LEADLINE_WATCH") or watch.DEFAULT_FRACTION
        try:
            self._limit = float(self._limit)
        except ValueError:
            pass

    def load(self) -> None:
        """Reports an earlier death, and starts the watch unless LEADLINE_WATCH=off."""
        session = session_of(self._shell)
        if line := postmortem.tell_previous_death(session):
            saved = save.last_saved(session)
            print(line if saved is None else f"{line} {save.describe(saved)}", file=sys.stderr)
        self._shell.events.register("pre_run_cell", self._before)
        self._shell.events.register("post_run_cell", self._after)
        self._note_shown_errors()
        if self._limit not in _OFF:
            self.start(self._limit)

    def unload(self) -> None:
        """Stops the watch and takes back the hooks."""
        self.stop()
        if hasattr(self._shell, "events"):
            self._shell.events.unregister("pre_run_cell", self._before)
            self._shell.events.unregister("post_run_cell", self._after)
            vars(self._shell).pop("_showtraceback", None)

    def _note_shown_errors(self) -> None:
        show = self._shell._showtraceback

        def note(kind: type[BaseException], error: BaseException, lines: list[str]) -> None:
            show(kind, error, lines)
            self._shown = True

        self._shell._showtraceback = note

    def _show_again(self, error: BaseException | None) -> None:
        """IPython's own text of an error takes some 20 MiB, and every frame's line. Without them it prints how that
        failed, and tells the front end of no error at all: then Python's text has to do, or else one line."""
        if error is None or self._shown or not (isinstance(error, MemoryError) or self._refused()):
            return
        try:
            lines = traceback.format_exception(type(error), error, error.__traceback__, limit=-5, chain=False)
        except Exception:  # no memory for that either
            lines = [f"{type(error).__name__}: {error}"]
        with contextlib.suppress(Exception):  # an error without a text is no reason to leave out what follows
            self._shell._showtraceback(type(error), error, lines)

    def _refused(self) -> bool:
        return self._watch is not None and self._watch.refused()

    def start(self, limit: float | str) -> None:
        self.stop()
        self._watch = watch.Watch(
            limit,
            session=session_of(self._shell),
            save=self._save,
            _cells_only=True,
            _namespace=self._shell.user_ns,
        )
        self._limit = limit
        if (cell := running_cell(self._shell)) is not None:  # the rest of it counts too
            self._before(cell)

    def stop(self) -> None:
        if self._watch is not None:
            self._watch.stop()
            self._watch = None

    def _before(self, info: Any = None) -> None:
        self._shown = False
        if self._watch is None:
            return
        text = info if isinstance(info, str) else getattr(info, "raw_cell", None) or ""
        line = next((line.strip() for line in text.splitlines() if line.strip()), "")
        self._watch.begin_cell(self._last + 1 if self._last else self._shell.execution_count, line)

    def _after(self, result: Any = None) -> None:
        # Before a cell, some versions of IPython have counted it already and some have not.
        self._last = getattr(result, "execution_count", None) or self._last
        if self._watch is None:
            return
        cell = self._watch.end_cell()
        error = getattr(result, "error_in_exec", None)
        self._show_again(error)
        if _was_refused(error):
            ours = isinstance(error, MemoryError) and self._watch.refused()
            try:
                print(watch.explain_refusal(self._watch, ours=ours), file=sys.stderr)
            except MemoryError:
                print("leadline: memory was refused, and there is too little left to say more.", file=sys.stderr)
        if self._print_cells and cell is not None:
            growth = cell["after"] - cell["before"]
            print(
                f"cell {cell['number']}: peak {format_bytes(cell['peak'])}, "
                f"growth {'+' if growth >= 0 else ''}{format_bytes(growth)}, {cell['seconds']:.1f} s"
            )

    def run_magic(self, line: str) -> watch.WatchReport | None:
        """`%watch [report | cells [on | off] | LIMIT | on | off]`: the watch of this notebook."""
        words = line.split() or ["report"]
        if words == ["report"]:
            if self._watch is None:
                print("No watch is running; `%watch on` starts one.")
                return None
            return self._watch.report()
        if words[0] == "cells" and words[1:] in ([], ["on"], ["off"]):
            self._print_cells = words[1:] != ["off"]
            if self._watch is None and self._print_cells:
                self.start(watch.DEFAULT_FRACTION)
        elif words[0] == "save" and len(words) == 2:
            self._save = {"on": True, "off": False}.get(words[1], words[1])
            self.start(watch.DEFAULT_FRACTION if self._limit in _OFF else self._limit)
        elif words == ["off"]:
            self.stop()
        elif words == ["on"]:
            self.start(watch.DEFAULT_FRACTION if self._limit in _OFF else self._limit)
        elif len(words) == 1 and words[0][0].isdigit():
            try:
                self.start(float(words[0]))
            except ValueError:
                self.start(words[0])
        else:
            raise InvalidArgumentError(f"%watch: '{line}' is not understood\n{USAGE}")
        return None

    def restore(self, line: str) -> None:
        """`%restore [NAME ...]`: the variables that were saved before the kernel before this one died."""
        saved = save.last_saved(session_of(self._shell))
        if saved is None:
            print("Nothing was saved: no kernel of this notebook died with its variables in a file.")
            return
        restored, failed = saved.load(self._shell.user_ns, line.replace(",", " ").split())
        print(f"restored: {', '.join(restored) or 'nothing'}")
        for name, reason in failed.items():
            print(f"not restored: {name}: {reason}", file=sys.stderr)


def _was_refused(error: BaseException | None) -> bool:
    """Whether a library raised it for memory that it did not get, and without a word about who has it."""
    if error is None or isinstance(error, Error):  # Leadline's own have their numbers, and a budget is not the machine
        return False
    words = ("oom when allocating", "resource_exhausted", "can't allocate memory", "out of memory")
    return isinstance(error, MemoryError) or any(word in str(error)[:2000].lower() for word in words)


def running_cell(shell: Any) -> str | None:
    """The source of the cell that runs now, as a magic or `%load_ext` in it sees it; None between cells."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name in ("run_cell_async", "run_ast_nodes") and shell is frame.f_locals.get("self"):
            return str(frame.f_locals.get("raw_cell") or "")
        frame = frame.f_back
    return None


def session_of(shell: Any) -> str:
    """What stays the same when a notebook's kernel is restarted, and differs between notebooks."""
    if name := os.environ.get("JPY_SESSION_NAME"):
        return name
    kernel = sys.modules.get("ipykernel.kernelapp")
    if kernel is not None and kernel.IPKernelApp.initialized():
        file: str = kernel.IPKernelApp.instance().connection_file
        return os.path.basename(file)
    return f"{type(shell).__name__} in {os.getcwd()}"


_loaded: dict[int, NotebookWatch] = {}


def load(shell: Any) -> NotebookWatch:
    """Starts the watch of a shell, once."""
    if id(shell) not in _loaded:
        _loaded[id(shell)] = NotebookWatch(shell)
        if hasattr(shell, "events"):  # what is not a real shell has no cells to watch
            _loaded[id(shell)].load()
    return _loaded[id(shell)]


def unload(shell: Any) -> None:
    """Ends it."""
    if found := _loaded.pop(id(shell), None):
        found.unload()
