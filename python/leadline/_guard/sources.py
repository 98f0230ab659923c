# SPDX-License-Identifier: Apache-2.0
"""Whether the sources that a process has imported are still what lies on disk; and hooks on imports."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import os
import site
import sys
import sysconfig
import time
import types
from collections.abc import Callable, Sequence

_Stamp = tuple[int, int, int]  # inode, size, time of the last change in nanoseconds


def _stamp(path: str) -> _Stamp | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _installed_folders() -> tuple[str, ...]:
    """Folders whose modules do not change while programs run: Python's own and those that pip fills."""
    paths = sysconfig.get_paths()
    folders = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders.update(site.getsitepackages() if hasattr(site, "getsitepackages") else ())
    folders.add(site.getusersitepackages())
    folders.add(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return tuple(folder.rstrip("/") + "/" for folder in folders)


class LoadedSources:
    """The modules of the user's own that this process has imported, and what their files were then."""

    def __init__(self) -> None:
        self._installed = _installed_folders()
        self._seen: set[str] = set()
        self._stamps: dict[str, _Stamp | None] = {}
        self._started = time.time_ns()
        self.take_in_new()

    def start_call(self) -> None:
        """What is imported from here on was read after this moment."""
        self._started = time.time_ns()

    def take_in_new(self) -> None:
        """Remembers the modules that were imported since the last time."""
        for name in sys.modules.keys() - self._seen:
            self._seen.add(name)
            path = getattr(sys.modules.get(name), "__file__", None)
            if not isinstance(path, str) or not path.endswith(".py"):
                continue
            path = os.path.abspath(path)
            if "/site-packages/" in path or "/dist-packages/" in path or path.startswith(self._installed):
                continue
            stamp = _stamp(path)
            # Written while the call ran: nobody knows whether before or after it was imported.
            unsure = stamp is not None and stamp[2] > self._started
            self._stamps[path] = None if unsure else stamp

    def changed(self) -> bool:
        """Whether a file is not what was imported."""
        return any(stamp is None or _stamp(path) != stamp for path, stamp in self._stamps.items())


def when_imported(package: str, action: Callable[[], object]) -> None:
    """Calls `action` once, when the package is imported; now, if it is already."""
    if any(isinstance(finder, _Hook) and finder.package == package for finder in sys.meta_path):
        return
    if package in sys.modules:
        action()
    else:
        sys.meta_path.insert(0, _Hook(package, action))


class _Hook(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports the package in the moment in which it is looked for, runs the action, and hands out the same module."""

    def __init__(self, package: str, action: Callable[[], object]):
        self.package = package
        self._action = action
        self._spec: importlib.machinery.ModuleSpec | None = None

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != self.package:
            return None
        sys.meta_path.remove(self)
        module = importlib.import_module(name)
        self._spec = module.__spec__
        self._action()
        return importlib.machinery.ModuleSpec(name, self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return sys.modules[self.package]

    def exec_module(self, module: types.ModuleType) -> None:
        module.__spec__ = self._spec
