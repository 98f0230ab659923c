# SPDX-License-Identifier: Apache-2.0
"""Which descriptors and child processes a loop leaves behind, and which lines opened them.

Lines come from Python's audit events (`open`, `socket.__new__`, `subprocess.Popen`, `os.fork`), which are looked at
while a Laps object lives.
"""

from __future__ import annotations

import os
import socket
import sys
import types
import weakref
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_Line = tuple[str, int]
_MOST_PATHS = 4096
_LIBRARY = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STARTS = ("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn")

_watchers = 0
_is_hooked = False
_files: OrderedDict[str, _Line] = OrderedDict()
_sockets: weakref.WeakKeyDictionary[socket.socket, _Line] = weakref.WeakKeyDictionary()
_starts: Counter[_Line] = Counter()


@dataclass(frozen=True)
class OpenThings:
    """`count` descriptors or processes of one `kind` more than before: `name` is one of them, `file` and `line` opened
    them (None, 0 when unknown)."""

    count: int
    kind: str  # "file", "socket", "pipe", "process", "descriptor"
    name: str
    file: str | None
    line: int

    def text(self, where: Callable[[str | None, int], str]) -> str:
        many = {"process": "processes"}.get(self.kind, self.kind + "s")
        what = f"{self.count} {many if self.count != 1 else self.kind} more"
        named = f", such as {self.name}" if self.name else ""
        verb = "started" if self.kind == "process" else "opened"
        return what + named + (f", {verb} at {where(self.file, self.line)}" if self.file is not None else "")


def watch(owner: object) -> None:
    """Notes the lines that open something, as long as `owner` lives."""
    global _is_hooked, _watchers
    if not _is_hooked:
        sys.addaudithook(_on_event)
        _is_hooked = True
    _watchers += 1
    weakref.finalize(owner, _unwatch).atexit = False


def _unwatch() -> None:
    global _watchers
    _watchers -= 1
    if _watchers == 0:
        _files.clear()
        _starts.clear()


def _on_event(event: str, arguments: tuple[Any, ...]) -> None:
    if not _watchers:
        return
    try:
        if event == "open":
            _note_file(arguments[0])
        elif event == "socket.__new__":
            _sockets[arguments[0]] = _calling_line()
        elif event in _STARTS:
            _starts[_calling_line()] += 1
    except Exception:  # what is not noted has no line; the program must not notice
        pass


def _note_file(path: Any) -> None:
    if isinstance(path, (str, bytes, os.PathLike)):
        name = os.path.abspath(os.fsdecode(path))
        _files.pop(name, None)
        _files[name] = _calling_line()
        if len(_files) > _MOST_PATHS:
            _files.popitem(last=False)


def _calling_line() -> _Line:
    """The innermost line that is the user's own, not the library's."""
    innermost = sys._getframe(2)
    found = (innermost.f_code.co_filename, innermost.f_lineno)
    frame: types.FrameType | None = innermost
    while frame is not None:
        file = frame.f_code.co_filename
        own = (
            not file.startswith((_LIBRARY, _PACKAGE, "<frozen")) and "/site-packages/" not in file and file != __file__
        )
        if own:
            return file, frame.f_lineno
        frame = frame.f_back
    return found


@dataclass
class Snapshot:
    """What is open at a moment."""

    descriptors: dict[int, str]
    processes: set[int]
    starts: Counter[_Line]


def snapshot() -> Snapshot:
    descriptors = {}
    for entry in os.listdir("/proc/self/fd"):
        try:
            descriptors[int(entry)] = os.readlink(f"/proc/self/fd/{entry}")
        except OSError:  # the folder's own
            pass
    return Snapshot(descriptors, set(_children()), Counter(_starts))


def _children() -> list[int]:
    found = []
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/children") as file:
                found += [int(pid) for pid in file.read().split()]
        except OSError:
            pass
    return found


def opened_since(before: Snapshot, least: float) -> list[OpenThings]:
    """What there is more of, by the line that opened it; those with fewer than `least` are left out."""
    now = snapshot()
    lines = {fd: line for thing, line in list(_sockets.items()) if (fd := thing.fileno()) >= 0}
    groups: dict[tuple[str, _Line | None], list[str]] = {}
    for fd, target in now.descriptors.items():
        if before.descriptors.get(fd) == target:
            continue
        kind, name, line = _describe(fd, target, lines)
        groups.setdefault((kind, line), []).append(name)
    new_processes = [_process_name(pid) for pid in sorted(now.processes - before.processes)]
    if new_processes:
        started = now.starts - before.starts
        best = max(started, key=lambda line: started[line]) if started else None
        groups["process", best] = new_processes
    found = []
    for (kind, line), names in groups.items():
        if len(names) >= least:
            file, number = line or (None, 0)
            found.append(OpenThings(len(names), kind, names[-1], file, number))
    return sorted(found, key=lambda thing: (-thing.count, thing.kind))


def _describe(fd: int, target: str, socket_lines: dict[int, _Line]) -> tuple[str, str, _Line | None]:
    if target.startswith("socket:"):
        return "socket", _socket_name(fd), socket_lines.get(fd)
    if target.startswith("pipe:"):
        return "pipe", "", None
    if target.startswith("/"):
        return "file", target, _files.get(target.removesuffix(" (deleted)"))
    return "descriptor", target, None


def _socket_name(fd: int) -> str:
    try:
        with socket.socket(fileno=os.dup(fd)) as copy:
            family = copy.family.name.removeprefix("AF_")
            for name in (copy.getpeername, copy.getsockname):
                try:
                    address = name()
                except OSError:
                    continue
                if address:
                    host = f"{address[0]}:{address[1]}" if isinstance(address, tuple) else str(address)
                    return f"{family} {host}"
            return family
    except OSError:
        return ""


def _process_name(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/stat") as file:
            text = file.read()
    except OSError:
        return f"{pid}"
    name, _, rest = text.partition("(")[2].rpartition(")")
    ended = " (ended, but nobody waited for it)" if rest.split()[:1] == ["Z"] else ""
    return f"'{name}' {pid}{ended}"
