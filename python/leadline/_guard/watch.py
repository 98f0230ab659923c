# SPDX-License-Identifier: Apache-2.0
"""leadline.watch: MemoryError before the OOM killer strikes, and a flight recorder for what kills anyway."""

from __future__ import annotations

import atexit
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from leadline._leadline import Error, InvalidArgumentError, NativeWatch, accounted_bytes, format_bytes, parse_bytes
from leadline.notebook.html import escape, html_table

if TYPE_CHECKING:
    from leadline._guard.laps import Laps

DEFAULT_FRACTION = 0.92
_stack: list[Watch] = []  # the last one watches; earlier ones continue when it stops

# What the post-mortem says about the libraries that were loaded.
_LIBRARIES = (
    "numpy", "tensorflow", "keras", "tf_keras", "jax", "torch", "ai_edge_litert", "tflite_runtime", "scipy", "pandas",
    "sklearn", "h5py", "google.protobuf", "cv2", "IPython", "ipykernel",
)  # fmt: skip


class MemoryLimitError(Error, MemoryError):
    """Memory came near its limit while this code made it grow.

    `largest` lists the largest Python objects (see leadline.largest_objects); `sample` has the memory of that moment.
    """

    __module__ = "leadline"  # where users find it
    code = "memory_limit"

    def __init__(self, message: str = "", largest: Sequence[Any] = (), sample: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.largest = list(largest)
        self.sample = dict(sample or {})


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


def _size(count: int, limit: float | str) -> str:
    """In the units that the limit was given in."""
    return format_bytes(count, limit if isinstance(limit, str) else "")


class Watch:
    """A running watch. Made by `leadline.watch`."""

    __module__ = "leadline"  # where users find it

    def __init__(
        self,
        limit: float | str = DEFAULT_FRACTION,
        *,
        refuse_large: bool = True,
        recorder: bool = True,
        signals: bool = True,
        folder: str | os.PathLike[str] | None = None,
        session: str = "",
        _cells_only: bool = False,
    ) -> None:
        self.limit = limit
        self._fraction, self._bytes = _limits(limit)
        self._limit_text = _size(self._bytes, self.limit) if self._bytes else f"{100 * self._fraction:g} %"
        self._options = {"refuse_large": refuse_large, "recorder": recorder, "signals": signals}
        self._folder = os.fspath(folder) if folder is not None else ""
        self._session = session
        self._cells_only = _cells_only
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
            facts=self._facts(),
            **self._options,
        )
        if stack_signal and self._native.recorder_descriptor >= 0:
            import faulthandler

            faulthandler.register(stack_signal, self._native.recorder_descriptor, all_threads=True, chain=False)
        if self._cell is not None:
            self._native.begin_cell(*self._cell)

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

    def __exit__(self, *_: object) -> None:
        self.stop()

    def begin_cell(self, number: int, first_line: str = "") -> None:
        """A cell, or any stretch of code that is to have a line of its own in the report, begins."""
        self._cell = (number, first_line[:200])
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
            growth = _size(cell["after"] - cell["before"], self.limit)
            yield (
                str(cell["number"]),
                f"{cell['seconds']:.1f}",
                _size(cell["peak"], self.limit),
                growth,
                cell["first_line"],
            )

    def _lines(self) -> list[str]:
        now = self.now
        lines = [f"resident {_size(now['resident'], self.limit)}, peak {_size(self.peak, self.limit)}"]
        if now["capacity"]:
            where = "container" if now["container"] else "machine"
            share = 100 * now["used"] / now["capacity"]
            used, capacity = _size(now["used"], self.limit), _size(now["capacity"], self.limit)
            lines.append(f"{where}: {used} of {capacity} in use ({share:.0f} %)")
        lines.append(
            f"limit {self.limit}, alarms {self.alarms}, accounted to Leadline {_size(now['accounted'], self.limit)}"
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

    refuse_large: let the system refuse a single allocation that is larger than all that is left (default True).
    recorder, signals: keep a flight recorder; record crashes in it (default True). See leadline.postmortem.
    folder: of the recorder's file.
    session: a name by which a later process recognizes this one's death as its own.

    The watch runs until stop(), the end of a `with` block, or the end of the process.
    """
    return Watch(limit, **options)


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
    _stack[-1]._thread.stop_at_exit(words)
    for watch_ in _stack:
        watch_._native = None
    _stack.clear()


def _in_ipython() -> bool:
    return "IPython" in sys.modules and getattr(sys.modules["IPython"], "get_ipython", lambda: None)() is not None


def _on_alarm(_signum: int, _frame: Any) -> None:
    """Called in the main thread, wherever it is."""
    native = _stack[-1]._native if _stack else None
    if native is None or (alarm := native.take_alarm()) is None:
        return
    from leadline._guard.largest import largest_objects

    largest = largest_objects(10, seconds=0.5)
    native.note_raised()
    raise MemoryLimitError(_message(_stack[-1], alarm, largest), largest, alarm["sample"])


def _message(watch: Watch, alarm: dict[str, Any], largest: list[Any]) -> str:
    sample, cell = alarm["sample"], alarm["cell"]
    if alarm["own_limit"]:
        first = (
            f"this process has {_size(sample['resident'], watch.limit)}, which is its limit "
            f"({_size(alarm['limit'], watch.limit)}); it was stopped before it took more"
        )
    else:
        where = "the container" if sample["container"] else "the machine"
        share = 100 * sample["used"] / max(sample["capacity"], 1)
        used, capacity, own = (_size(sample[key], watch.limit) for key in ("used", "capacity", "resident"))
        first = (
            f"{share:.0f} % of the memory of {where} are in use ({used} of {capacity}, {own} by this process); stopped "
            "before the OOM killer would have"
        )
    since = f"since cell {cell['number']} began" if cell["number"] else "since the watch began"
    line = f"it grew by {_size(alarm['growth'], watch.limit)} in {alarm['since']:.1f} s, {since}"
    if cell["first_line"]:
        line += f" (`{cell['first_line'][:80]}`)"
    if alarm["bytes_per_second"] > 0:
        line += f"; lately {_size(int(alarm['bytes_per_second']), watch.limit)} a second"
    lines = [first, line]
    if largest:
        lines.append("the largest Python objects:")
        lines += [f"  {item}" for item in largest]
    lines.append(f"accounted to Leadline: {_size(accounted_bytes(), watch.limit)}")
    return "\n".join(lines)


def explain_refusal(current: Watch) -> str:
    """For a MemoryError that a library raised because the system refused it memory."""
    from leadline._guard.largest import largest_objects

    sample = current.sample()
    where = "the container" if sample["container"] else "the machine"
    first = (
        f"leadline: an allocation was refused. This process has {_size(sample['resident'], current.limit)}; "
        f"{_size(sample['available'], current.limit)} of {where}'s {_size(sample['capacity'], current.limit)} are left."
    )
    if current._bytes:
        first += f" Limit of this watch: {_size(current._bytes, current.limit)}."
    lines = [first]
    if largest := largest_objects(10, seconds=0.5):
        lines.append("the largest Python objects:")
        lines += [f"  {item}" for item in largest]
    lines.append(f"accounted to Leadline: {_size(sample['accounted'], current.limit)}")
    return "\n".join(lines)
