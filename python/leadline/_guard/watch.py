# SPDX-License-Identifier: Apache-2.0
"""leadline.watch: MemoryError before the OOM killer strikes, and a flight recorder for what kills anyway."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from leadline._guard import save as save_file
from leadline._guard.alarm import MemoryLimitError, explain_refusal, handle, size_text
from leadline._guard.exec_note import note_execs
from leadline._leadline import (
    InvalidArgumentError,
    NativeWatch,
    guard_numpy_memory,
    guard_python_memory,
    last_refusal,
    parse_bytes,
)
from leadline.notebook.html import escape, html_table

if TYPE_CHECKING:
    from leadline._guard.laps import Laps

__all__ = ["DEFAULT_FRACTION", "MemoryLimitError", "Watch", "WatchReport", "explain_refusal", "watch"]

DEFAULT_FRACTION = 0.92
_stack: list[Watch] = []  # the last one watches; earlier ones continue when it stops

# What the post-mortem says about the libraries that were loaded.
_LIBRARIES = (
    "numpy", "tensorflow", "keras", "tf_keras", "jax", "torch", "ai_edge_litert", "tflite_runtime", "scipy", "pandas",
    "sklearn", "h5py", "google.protobuf", "cv2", "IPython", "ipykernel",
)  # fmt: skip


def _limits(limit: float | str) -> tuple[float, int]:
    """(fraction of the machine, bytes of this process)."""
    if isinstance(limit, str):
        text = limit.strip()
        if text.endswith("%"):
            try:
                limit = float(text[:-1]) / 100
            except ValueError:
                raise InvalidArgumentError(f"limit '{limit}' is not a percentage") from None
        else:
            limit = parse_bytes(text)
    if isinstance(limit, bool) or not isinstance(limit, (int, float)):
        raise InvalidArgumentError(f"limit must be a part of memory (0.92) or an amount ('3GB'), got {limit!r}")
    if not limit > 0:
        raise InvalidArgumentError(f"limit must be more than 0, got {limit!r}")
    return (float(limit), 0) if limit <= 1 else (DEFAULT_FRACTION, int(limit))


def _save_bytes(save: bool | str | int | None, *, notebook: bool) -> int:
    """The most bytes of saved variables; 0: none are saved."""
    if save is None:
        save = os.environ.get("LEADLINE_SAVE") or notebook
    if save in (False, "off", "no", 0):
        return 0
    if save in (True, "on", "yes"):
        return save_file.DEFAULT_BYTES
    return parse_bytes(save) if isinstance(save, str) else int(save)


def _save_variables() -> str:
    """Called in a thread of its own when death is near. The file that was written; empty: none."""
    watch = _stack[-1] if _stack else None
    if watch is None or watch._native is None or not (recording := watch._native.recorder_path):
        return ""
    path = save_file.path_beside(recording)
    save_file.save(watch._variables(), path, watch._save_bytes, watch._native.saving)
    return path


_to_save: tuple[dict[str, Any], str, int] | None = None  # for copies of the process, which have no watch


def _save_variables_in_copy() -> bool:
    """The same, called in a copy of the process. Whether anything was written."""
    gc.disable()  # it would touch every object, and so copy all memory
    if _to_save is None:
        return False
    namespace, path, most_bytes = _to_save
    return bool(save_file.save(namespace, path, most_bytes))


class Watch:
    """A running watch. Made by `leadline.watch`."""

    __module__ = "leadline"  # where users find it

    def __init__(
        self,
        limit: float | str = DEFAULT_FRACTION,
        *,
        refuse_large: bool = True,
        refuse_native: bool = False,
        recorder: bool = True,
        signals: bool = True,
        save: bool | str | int | None = None,
        folder: str | os.PathLike[str] | None = None,
        session: str = "",
        _cells_only: bool = False,
        _namespace: dict[str, Any] | None = None,
    ) -> None:
        self.limit = limit
        self._fraction, self._bytes = _limits(limit)
        self._limit_text = size_text(self._bytes, self.limit) if self._bytes else f"{100 * self._fraction:g} %"
        self._options = {
            "refuse_large": refuse_large,
            "refuse_native": refuse_native,
            "recorder": recorder,
            "signals": signals,
        }
        self._folder = os.fspath(folder) if folder is not None else ""
        self._session = session
        self._cells_only = _cells_only
        self._namespace = _namespace  # of the notebook
        self._save_bytes = _save_bytes(save, notebook=_namespace is not None) if recorder else 0
        self._refusals = 0  # when the cell or the watch began
        self._native: NativeWatch | None = None
        self._past: list[dict[str, Any]] = []
        self._cell: tuple[int, str] | None = None
        self._libraries: tuple[str, ...] = ()
        self._laps: Laps | None = None
        if _stack:
            _stack[-1]._suspend()
        try:
            self._resume()
        except BaseException:
            if _stack:
                _stack[-1]._resume()
            raise
        _stack.append(self)

    def _resume(self) -> None:
        if self._native is not None:
            self._past = (self._past + self._native.cells())[-1000:]
        stack_signal = _signal("stack") if self._options["recorder"] and self._options["signals"] else 0
        self._native = NativeWatch(
            fraction=self._fraction,
            resident_limit=self._bytes,
            cells_only=self._cells_only,
            folder=self._folder,
            stack_signal=stack_signal,
            alarm_signal=_signal("alarm", _on_alarm),
            pause_signal=_signal("pause") if self._save_bytes else 0,
            save=_save_variables if self._save_bytes else None,
            save_in_copy=_save_variables_in_copy if self._save_bytes else None,
            facts=self._facts(),
            **self._options,
        )
        if self._save_bytes and self._native.recorder_path:
            global _to_save
            _to_save = (self._variables(), save_file.path_beside(self._native.recorder_path), self._save_bytes)
        if stack_signal and self._native.recorder_descriptor >= 0:
            import faulthandler

            faulthandler.register(stack_signal, self._native.recorder_descriptor, all_threads=True, chain=False)
        if self._options["recorder"]:
            note_execs()
        if self._options["refuse_large"]:
            guard_allocators()
        self._refusals = last_refusal()["count"]
        if self._cell is not None:
            self._native.begin_cell(*self._cell)

    def _variables(self) -> dict[str, Any]:
        return self._namespace if self._namespace is not None else vars(sys.modules["__main__"])

    def _suspend(self) -> None:
        assert self._native is not None
        self._native.stop()
        if "stack" in _signals:
            import faulthandler

            faulthandler.unregister(_signals["stack"])

    def _facts(self) -> list[tuple[str, str]]:
        self._libraries = tuple(name for name in _LIBRARIES if name in sys.modules)
        versions = []
        for name in self._libraries:
            version = getattr(sys.modules[name], "__version__", None)
            if isinstance(version, str):
                versions.append(f"{name} {version}")
        facts = [("python", sys.version.split()[0] + " " + sys.executable), ("versions", ", ".join(versions))]
        return [*facts, ("session", self._session)] if self._session else facts

    @property
    def _thread(self) -> NativeWatch:
        assert self._native is not None, "the process is about to end"
        return self._native

    @property
    def running(self) -> bool:
        """Whether it watches."""
        return self in _stack

    def stop(self) -> None:
        """Ends the watch. A watch that this one replaced continues."""
        if self not in _stack:
            return
        last = _stack[-1] is self
        _stack.remove(self)
        if last:
            self._suspend()
            if _stack:
                _stack[-1]._resume()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, MemoryError) and self.refused() and hasattr(error, "add_note"):
            error.add_note(explain_refusal(self, ours=True))
        self.stop()

    def refused(self) -> bool:
        """Whether an allocation was refused since the cell, or else the watch, began."""
        return bool(last_refusal()["count"] > self._refusals)

    def begin_cell(self, number: int, first_line: str = "") -> None:
        """A cell, or any stretch of code that is to have a line of its own in the report, begins."""
        self._cell = (number, first_line[:200])
        self._refusals = last_refusal()["count"]
        if self._options["refuse_large"]:
            guard_allocators()
        self._thread.begin_cell(*self._cell)

    def end_cell(self) -> dict[str, Any] | None:
        """Ends it: number, first_line, seconds, before, after, peak (resident bytes). None when none had begun."""
        if self._cell is None:
            return None
        self._cell = None
        if self._libraries != tuple(name for name in _LIBRARIES if name in sys.modules):
            self._thread.set_facts(self._facts())
        return self._thread.end_cell()

    @property
    def laps(self) -> Laps:
        """The rounds that lap() counted: a leadline.Laps."""
        if self._laps is None:
            from leadline._guard.laps import Laps

            self._laps = Laps()
        return self._laps

    def lap(self) -> None:
        """Ends a round of a loop; `laps.report()` says whether memory grows from round to round."""
        self.laps.lap()

    def sample(self) -> dict[str, Any]:
        """Memory now, in bytes: resident, available, capacity, used, swap_free, accounted, container."""
        return self._thread.sample()

    @property
    def recorder_path(self) -> str:
        """The flight recorder's file; empty without one."""
        return self._thread.recorder_path

    @property
    def cpu_seconds(self) -> float:
        """CPU time that the thread of the watch has used."""
        return self._thread.cpu_seconds

    def report(self) -> WatchReport:
        """What was seen: memory over time, cells, alarms."""
        return WatchReport(self)

    def __repr__(self) -> str:
        return f"<leadline.Watch: limit {self._limit_text}, {'running' if self.running else 'stopped'}>"


class WatchReport:
    """What a watch saw, as data, text and HTML."""

    __module__ = "leadline"  # where users find it

    def __init__(self, watch: Watch) -> None:
        native = watch._thread
        self.limit = watch._limit_text
        self.now: dict[str, Any] = native.sample()
        self.samples: list[dict[str, Any]] = native.samples()
        self.cells: list[dict[str, Any]] = watch._past + native.cells()
        self.alarms: int = native.alarms
        self.cpu_seconds: float = native.cpu_seconds
        self.seconds: float = self.now["seconds"]
        self.recorder_path: str = native.recorder_path

    @property
    def peak(self) -> int:
        """The most resident bytes that were seen."""
        seen: list[int] = [self.now["resident"], *(sample["resident"] for sample in self.samples)]
        seen += [cell["peak"] for cell in self.cells]
        return max(seen)

    _HEADER = ("cell", "seconds", "peak", "growth", "first line")

    def _rows(self) -> Iterator[tuple[str, ...]]:
        for cell in self.cells:
            growth = size_text(cell["after"] - cell["before"], self.limit)
            yield (
                str(cell["number"]),
                f"{cell['seconds']:.1f}",
                size_text(cell["peak"], self.limit),
                growth,
                cell["first_line"],
            )

    def _lines(self) -> list[str]:
        now = self.now
        lines = [f"resident {size_text(now['resident'], self.limit)}, peak {size_text(self.peak, self.limit)}"]
        if now["capacity"]:
            where = "container" if now["container"] else "machine"
            share = 100 * now["used"] / now["capacity"]
            used, capacity = size_text(now["used"], self.limit), size_text(now["capacity"], self.limit)
            lines.append(f"{where}: {used} of {capacity} in use ({share:.0f} %)")
        lines.append(
            f"limit {self.limit}, alarms {self.alarms}, accounted to Leadline {size_text(now['accounted'], self.limit)}"
        )
        if self.seconds > 0:
            lines.append(f"the watch itself: {100 * self.cpu_seconds / self.seconds:.2f} % of a core")
        return lines

    def __str__(self) -> str:
        rows = [self._HEADER, *self._rows()] if self.cells else []
        widths = [max(len(row[i]) for row in rows) for i in range(4)] if rows else []
        table = ["  ".join([*(row[i].rjust(widths[i]) for i in range(4)), row[4]]) for row in rows]
        return "\n".join(self._lines() + table)

    def _repr_html_(self) -> str:
        table = html_table(self._HEADER, self._rows()) if self.cells else ""
        return "".join(f"<div>{escape(line)}</div>" for line in self._lines()) + table

    def __repr__(self) -> str:
        return str(self)


def watch(limit: float | str = DEFAULT_FRACTION, **options: Any) -> Watch:
    """Watches memory from a native thread, and keeps a flight recorder.

    When memory comes near `limit`, a MemoryError (leadline.MemoryLimitError) is raised in the main thread, with what
    grew and the largest objects. `limit` is a part of what the container or machine can give (0.92), or an amount of
    this process's resident memory ("3GB"; the part is then 0.92). Options:

    refuse_large: refuse Python and numpy what is more than is left, as MemoryError (default True).
    refuse_native: let the system refuse it to everybody (RLIMIT_DATA). Libraries that do not expect that crash:
        TensorFlow is one of them (default False).
    save: when death is near, write variables to a private file of at most as many bytes, for `leadline.restore()` and
        `%restore` (default: True in notebooks, False in scripts).
    recorder, signals: keep a flight recorder; record crashes in it (default True). See leadline.postmortem.
    folder: of the recorder's file.
    session: a name by which a later process recognizes this one's death as its own.

    The watch runs until stop(), the end of a `with` block, or the end of the process.
    """
    return Watch(limit, **options)


def guard_allocators() -> None:
    """Python and numpy ask the watch before they take memory. Cheap when they do already."""
    guard_python_memory()
    for name in ("numpy._core.multiarray", "numpy.core.multiarray"):  # since numpy 2, and before
        if (module := sys.modules.get(name)) is not None and hasattr(module, "_ARRAY_API"):
            guard_numpy_memory(module._ARRAY_API)
            return


_signals: dict[str, int] = {}


def _signal(purpose: str, handler: Callable[[int, Any], None] | None = None) -> int:
    """A real-time signal that nothing else uses, the same for the life of the process; 0: none.

    A handler stays: a signal on its way must never meet the default, which ends the process.
    """
    if purpose not in _signals:
        for number in range(signal.SIGRTMAX - 5, signal.SIGRTMIN, -1):
            if number in _signals.values() or signal.getsignal(number) != signal.SIG_DFL:
                continue
            try:
                if handler is not None:
                    signal.signal(number, handler)
            except ValueError:  # only the main thread may
                return 0
            _signals[purpose] = number
            break
    return _signals.get(purpose, 0)


os.register_at_fork(after_in_child=_stack.clear)  # a copy watches nothing


@atexit.register
def _stop_at_exit() -> None:
    if not _stack:
        return
    words = ""
    error = getattr(sys, "last_value", None)
    if error is not None and not _in_ipython():
        words = f"{type(error).__name__}: {error}"[:200]
    recording = _stack[-1]._thread.recorder_path
    _stack[-1]._thread.stop_at_exit(words)
    if recording and any(watch_._save_bytes for watch_ in _stack):
        save_file.forget(save_file.path_beside(recording))  # it was not needed
    for watch_ in _stack:
        watch_._native = None
    _stack.clear()


def _in_ipython() -> bool:
    return "IPython" in sys.modules and getattr(sys.modules["IPython"], "get_ipython", lambda: None)() is not None


def _on_alarm(_signum: int, frame: types.FrameType | None) -> None:
    """Called in the main thread, wherever it is."""
    if _stack and _stack[-1]._native is not None:
        handle(_stack[-1], frame)
