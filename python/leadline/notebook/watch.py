# SPDX-License-Identifier: Apache-2.0
"""The watch of a notebook: started by `%load_ext leadline`, told of cells by IPython's events."""

from __future__ import annotations

import os
import sys
from typing import Any

from leadline._guard import postmortem, watch
from leadline._leadline import InvalidArgumentError, format_bytes

USAGE = """usage: %watch [report | cells [on | off] | LIMIT | on | off]
  report      memory, cells and alarms so far (the default)
  cells       after each cell, print its peak and growth
  LIMIT       watch with another limit: 3GB of this process, or 0.8 (80%) of the machine
  on, off     start or stop the watch"""


class NotebookWatch:
    """The hooks of one shell."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._watch: watch.Watch | None = None
        self._print_cells = False
        self._last = 0  # number of the last cell; 0: unknown
        self._limit: float | str = os.environ.get("LEADLINE_WATCH") or watch.DEFAULT_FRACTION
        try:
            self._limit = float(self._limit)
        except ValueError:
            pass

    def load(self) -> None:
        """Reports an earlier death, and starts the watch unless LEADLINE_WATCH=off."""
        session = session_of(self._shell)
        if line := postmortem.tell_previous_death(session):
            print(line, file=sys.stderr)
        self._shell.events.register("pre_run_cell", self._before)
        self._shell.events.register("post_run_cell", self._after)
        if self._limit not in ("off", "no", 0.0):
            self.start(self._limit)

    def unload(self) -> None:
        """Stops the watch and takes back the hooks."""
        self.stop()
        if hasattr(self._shell, "events"):
            self._shell.events.unregister("pre_run_cell", self._before)
            self._shell.events.unregister("post_run_cell", self._after)

    def start(self, limit: float | str) -> None:
        self.stop()
        self._watch = watch.Watch(limit, session=session_of(self._shell), _cells_only=True)
        self._limit = limit

    def stop(self) -> None:
        if self._watch is not None:
            self._watch.stop()
            self._watch = None

    def _before(self, info: Any = None) -> None:
        if self._watch is None:
            return
        text = getattr(info, "raw_cell", None) or ""
        line = next((line.strip() for line in text.splitlines() if line.strip()), "")
        self._watch.begin_cell(self._last + 1 if self._last else self._shell.execution_count, line)

    def _after(self, result: Any = None) -> None:
        # Before a cell, some versions of IPython have counted it already and some have not.
        self._last = getattr(result, "execution_count", None) or self._last
        if self._watch is None:
            return
        cell = self._watch.end_cell()
        error = getattr(result, "error_in_exec", None)
        if _was_refused(error):
            print(watch.explain_refusal(self._watch), file=sys.stderr)
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
        elif words == ["off"]:
            self.stop()
        elif words == ["on"]:
            self.start(self._limit if self._limit != "off" else watch.DEFAULT_FRACTION)
        elif len(words) == 1 and words[0][0].isdigit():
            try:
                self.start(float(words[0]))
            except ValueError:
                self.start(words[0])
        else:
            raise InvalidArgumentError(f"%watch: '{line}' is not understood\n{USAGE}")
        return None


def _was_refused(error: BaseException | None) -> bool:
    """Whether a library raised it for memory that it did not get, and without a word about who has it."""
    if error is None or isinstance(error, watch.MemoryLimitError):
        return False
    words = ("OOM when allocating", "RESOURCE_EXHAUSTED", "can't allocate memory", "Out of memory")
    return isinstance(error, MemoryError) or any(word in str(error)[:2000] for word in words)


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
