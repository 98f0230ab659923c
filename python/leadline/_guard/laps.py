# SPDX-License-Identifier: Apache-2.0
"""leadline.laps(): does this loop leak? And leadline.live_objects(): which of Leadline's objects live, and who made
them.

Samples and the fit of growth are native (leadline/guard/laps.h); here is what only Python knows: garbage, blocks,
types, and the lines that made objects.
"""

from __future__ import annotations

import gc
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Generic, TypeVar

from leadline import _leadline
from leadline._guard import openings
from leadline._guard.openings import OpenThings
from leadline._leadline import LapSample, format_bytes
from leadline.notebook.html import escape, html_table

T = TypeVar("T")

_BASELINE_ROUND = 3  # after it, types and live objects are counted: what the first rounds make stays made
_LEAST_SHARE = 0.5  # of the rounds: what grew by less than one in two is not what leaks
_MOST_SHOWN = 8
_COMMON_SHARE = 5  # a round: types of which any program makes a few more
_COMMON = frozenset(
    "int float str code cell frame method traceback builtin_function_or_method weakref.ReferenceType".split()
)


@dataclass(frozen=True)
class LiveObject:
    """An object of Leadline's that lives: `kind` such as 'Interpreter', the `file` and `line` that made it (None, 0
    when unknown), and the `bytes` it accounts for itself (an interpreter's without its model's)."""

    __module__ = "leadline"  # where users find it

    kind: str
    file: str | None
    line: int
    bytes: int

    @property
    def where(self) -> str:
        """'train.py:12', or 'cell 3, line 2' in a notebook."""
        return _where(self.file, self.line)


class LiveObjects(list[LiveObject]):
    """A list with a text and an HTML form that sum up what the same line made."""

    def _rows(self) -> list[tuple[str, str, str, str]]:
        groups: dict[tuple[str, str], list[int]] = {}
        for thing in self:
            groups.setdefault((thing.kind, thing.where), []).append(thing.bytes)
        ordered = sorted(groups.items(), key=lambda item: (-sum(item[1]), -len(item[1]), item[0]))
        return [(str(len(sizes)), kind, where, format_bytes(sum(sizes))) for (kind, where), sizes in ordered]

    def __repr__(self) -> str:
        if not self:
            return "no live objects of Leadline's"
        return "\n".join(f"{count} {kind} made at {where}, {size} in all" for count, kind, where, size in self._rows())

    def _repr_html_(self) -> str:
        return html_table(("", "kind", "made at", "bytes"), self._rows())


def live_objects() -> LiveObjects:
    """Every Model, Interpreter, TFLiteConverter, QuantizationDebugger and Calibration that lives, oldest first, with
    the line that made it and the bytes it accounts for."""
    return LiveObjects(
        LiveObject(type(thing).__name__, file, line, getattr(thing, "memory_bytes", 0))
        for thing, file, line in _leadline.live_objects()
    )


def _where(file: str | None, line: int) -> str:
    if file is None:
        return "an unknown place"
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    cells = getattr(getattr(shell, "compile", None), "_filename_map", None) or {}
    if file in cells:
        return f"cell {cells[file]}, line {line}"
    return f"{os.path.basename(file)}:{line}"


@dataclass(frozen=True)
class GrownObjects:
    """Objects of Leadline's whose number grew: `count` more of `kind` made by one line, of `bytes_each`."""

    count: int
    kind: str
    file: str | None
    line: int
    bytes_each: int

    def __str__(self) -> str:
        size = f", {format_bytes(self.bytes_each)} each" if self.bytes_each else ""
        return f"{self.count} {self.kind} made at {_where(self.file, self.line)}{size}"


class LapReport:
    """What the rounds showed.

    `verdict` is 'grows', 'flat' or 'too few rounds'; `bytes_per_round` the growth, with its 95 % interval `low` to
    `high`; `rounds` how many there were; `live` the objects of Leadline's whose number grew, with the lines that made
    them; `types` the Python types that have more objects than after the third round; `opened` the files, sockets and
    child processes that stay, with the lines that opened them. `memory`, `allocated`, `accounted`, `objects`,
    `descriptors` and `processes` are the growth of the process, of its heap, of Leadline's bytes, of Python's blocks,
    of open descriptors and of child processes, each for itself.
    """

    __module__ = "leadline"  # where users find it

    def __init__(
        self,
        native: _leadline.LapReport,
        live: list[GrownObjects],
        types: dict[str, int],
        opened: list[OpenThings],
    ):
        self._native = native
        self.verdict: str = native.verdict
        self.bytes_per_round: float = native.bytes_per_round
        self.low: float = native.low
        self.high: float = native.high
        self.rounds: int = native.rounds
        self.live = live
        self.types = types
        self.opened = opened

    memory = property(lambda self: self._native.memory, doc="Growth of the process's memory.")
    allocated = property(lambda self: self._native.allocated, doc="Growth of what is in use in the heap.")
    accounted = property(lambda self: self._native.accounted, doc="Growth of Leadline's own bytes.")
    objects = property(lambda self: self._native.objects, doc="Growth of the number of Python's blocks.")
    descriptors = property(lambda self: self._native.descriptors, doc="Growth of the number of open descriptors.")
    processes = property(lambda self: self._native.processes, doc="Growth of the number of child processes.")

    @property
    def grows(self) -> bool:
        """Whether the loop leaks."""
        return self.verdict == "grows"

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data."""
        parts = {}
        for name in ("memory", "allocated", "accounted", "objects", "descriptors", "processes"):
            growth = getattr(self._native, name)
            parts[name] = {key: getattr(growth, key) for key in ("verdict", "per_round", "low", "high")}
        return {
            "verdict": self.verdict,
            "bytes_per_round": self.bytes_per_round,
            "low": self.low,
            "high": self.high,
            "rounds": self.rounds,
            **parts,
            "live": [asdict(grown) for grown in self.live],
            "types": dict(self.types),
            "opened": [asdict(thing) for thing in self.opened],
        }

    def _types_text(self) -> str:
        return ", ".join(f"+{count} {name}" for name, count in self.types.items())

    def __str__(self) -> str:
        lines = [f"leadline: {self._native.text}"]
        lines += [f"  {thing.text(_where)}" for thing in self.opened]
        lines += [f"  {grown}" for grown in self.live]
        if self.types:
            lines.append(f"  since round {_BASELINE_ROUND}: {self._types_text()}")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head, *details = self._native.text.splitlines()
        opened = (thing.text(_where) for thing in self.opened)
        items = [*(line.strip() for line in details), *opened, *map(str, self.live)]
        if self.types:
            items.append(f"since round {_BASELINE_ROUND}: {self._types_text()}")
        body = "".join(f"<li>{escape(item)}</li>" for item in items)
        return f"<div><strong>{escape(head)}</strong>" + (f"<ul>{body}</ul>" if body else "") + "</div>"


class Laps:
    """Watches rounds of a loop for growth. `leadline.laps()` is the short form.

    laps = leadline.Laps()
    for batch in batches:
        train(batch)
        laps.lap()
    print(laps.report())
    """

    __module__ = "leadline"  # where users find it

    def __init__(self, *, collect: bool = True):
        """collect: run Python's garbage collector before each sample, so that garbage is not taken for a leak."""
        self._native = _leadline.Laps()
        self._collect = collect
        self._types: dict[str, int] | None = None
        self._live: Counter[tuple[str, str | None, int]] = Counter()
        self._open: openings.Snapshot | None = None
        openings.watch(self)

    def lap(self) -> None:
        """Ends a round: takes a sample of the process. From round 25 on only now and then, about 5 % of the time."""
        if self._native.samples_next():
            if self._collect:
                gc.collect()
            if self.rounds == _BASELINE_ROUND - 1:
                self._types = _leadline.count_objects()
                self._live = _count_live()
                self._open = openings.snapshot()
            self._native.lap(sys.getallocatedblocks())
        else:
            self._native.lap()

    @property
    def rounds(self) -> int:
        """Rounds so far."""
        return self._native.rounds

    @property
    def samples(self) -> list[LapSample]:
        """What was seen: `round`, and in bytes `memory`, `allocated`, `accounted`; `objects` is Python's blocks."""
        return self._native.samples

    def report(self) -> LapReport:
        """What the rounds so far show. What grew is looked for only when something does."""
        native = self._native.report()
        if native.verdict != "grows" or self._types is None or self._open is None:
            return LapReport(native, [], {}, [])
        if self._collect:
            gc.collect()
        least = _LEAST_SHARE * (native.rounds - _BASELINE_ROUND)
        opened = []
        if "grows" in (native.descriptors.verdict, native.processes.verdict):
            fewest = min(least, 0.5 * max(native.descriptors.per_round, native.processes.per_round) * native.rounds)
            opened = openings.opened_since(self._open, fewest)[:_MOST_SHOWN]
        return LapReport(native, _grown_live(self._live, least), _grown_types(self._types, least), opened)

    def __repr__(self) -> str:
        return f"<leadline.Laps: {self.rounds} rounds>"


def _count_live() -> Counter[tuple[str, str | None, int]]:
    return Counter((type(thing).__name__, file, line) for thing, file, line in _leadline.live_objects())


def _grown_live(before: Counter[tuple[str, str | None, int]], least: float) -> list[GrownObjects]:
    groups: dict[tuple[str, str | None, int], list[int]] = {}
    for thing in live_objects():
        groups.setdefault((thing.kind, thing.file, thing.line), []).append(thing.bytes)
    grown = []
    for key, sizes in groups.items():
        count = len(sizes) - before[key]
        if count >= least:
            newest = sizes[-count:]
            grown.append(GrownObjects(count, *key, sum(newest) // count))
    return sorted(grown, key=lambda group: (-group.count * group.bytes_each, -group.count))[:_MOST_SHOWN]


def _grown_types(before: dict[str, int], least: float) -> dict[str, int]:
    """Types with more objects than before; those of libraries and of the user first, for lists and dicts say little."""
    grown = {name: count - before.get(name, 0) for name, count in _leadline.count_objects().items()}
    common = least / _LEAST_SHARE * _COMMON_SHARE
    found = [(name, count) for name, count in grown.items() if count >= max(common if name in _COMMON else least, 1)]
    found.sort(key=lambda item: ("." not in item[0], -item[1], item[0]))
    return dict(found[:_MOST_SHOWN])


def laps(iterable: Iterable[T], *, report: bool = True, collect: bool = True) -> LoopLaps[T]:
    """`for item in leadline.laps(iterable):` runs a loop and says at its end whether it leaks.

        for _ in leadline.laps(range(50)):
            step()                        # at the end: "grows 3.2 MiB a round ..." or "flat ..."

    Each turn is a round. When the loop ends, also by break, the verdict is printed to standard error, or shown in a
    notebook; `report=False` keeps it quiet. Keep the object to ask again: `rounds = leadline.laps(...)`,
    `rounds.report()`.
    """
    return LoopLaps(iterable, report=report, collect=collect)


class LoopLaps(Laps, Generic[T]):
    """The Laps of a `for` loop, which samples after each turn. Made by leadline.laps()."""

    def __init__(self, iterable: Iterable[T], *, report: bool, collect: bool) -> None:
        super().__init__(collect=collect)
        self._iterable = iterable
        self._tells = report

    def __len__(self) -> int:
        return len(self._iterable)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[T]:
        try:
            for item in self._iterable:
                yield item
                del item  # or the last round's would count as this one's
                self.lap()
        except GeneratorExit:  # break
            self._tell()
            raise
        self._end()
        self._tell()

    def _end(self) -> None:
        """The last round has a sample: nobody knew that it was the last."""
        if self._collect:
            gc.collect()
        self._native.sample_last(sys.getallocatedblocks())

    def _tell(self) -> None:
        if not self._tells or self.rounds == 0:
            return
        self._tells = False
        report = self.report()
        ipython = sys.modules.get("IPython")
        shell = ipython.get_ipython() if ipython is not None else None
        if shell is not None and getattr(shell, "kernel", None) is not None:
            from IPython.display import display

            display(report)  # type: ignore[no-untyped-call,unused-ignore]  # some versions of IPython have types
        elif sys.stderr is not None:
            print(report, file=sys.stderr, flush=True)
