# SPDX-License-Identifier: Apache-2.0
"""`tflite_runtime.interpreter` and `ai_edge_litert.interpreter` find leadline.lite where those are not installed.

A real package wins, even a broken one, whose own error then shows; install(force=True) puts Leadline's interpreter
first and leaves the rest of the real package what it is.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Sequence

from leadline._leadline import __version__
from leadline._native.aliases import Alias

# The interface that each is: the last version of tflite_runtime, and the LiteRT that results are compared with.
_VERSIONS = {"tflite_runtime": "2.14.0", "ai_edge_litert": "2.3.0"}
_TARGETS = {
    "": "leadline.lite",
    "interpreter": "leadline.lite.interpreter",
    "metrics_portable": "leadline.lite.metrics",
}


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self) -> None:
        self.replaced: dict[str, types.ModuleType] = {}  # what was imported before it was forced away
        self.forced = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        package, _, part = fullname.partition(".")
        if package not in _VERSIONS:
            return None
        if self.forced and part != "interpreter" and _is_real(package):
            return None  # everything but the interpreter is the real package's
        if not self.forced and part and not isinstance(sys.modules.get(package), Alias):
            return None  # of a real package that is broken
        if part not in _TARGETS:
            raise ModuleNotFoundError(
                f"No module named {fullname!r}: this is leadline.lite in place of {package}, of which it has the "
                f"interpreter. The real package has the rest: pip install {package.replace('_', '-')}",
                name=fullname,
            )
        return importlib.machinery.ModuleSpec(fullname, self, is_package=not part)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        package, _, part = spec.name.partition(".")
        target = importlib.import_module(_TARGETS[part])
        shown = f"leadline.lite in place of {package}"
        return Alias(spec.name, target, shown, __version__=f"{_VERSIONS[package]}+leadline.{__version__}")

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def _is_real(package: str) -> bool:
    """Whether a package of this name is installed, or was imported from elsewhere."""
    loaded = sys.modules.get(package)
    if loaded is not None:
        return not isinstance(loaded, Alias)
    try:
        return importlib.machinery.PathFinder.find_spec(package) is not None
    except (ImportError, ValueError):
        return False


_finder = _Finder()


def install(force: bool = False) -> tuple[str, ...]:
    """Makes `import tflite_runtime.interpreter` and `import ai_edge_litert.interpreter` find leadline.lite where there
    is no such package; with `force` in any case.

    Returns the modules that Leadline stands for from now on. One that is imported already stays what it is unless
    forced; programs that hold names of it (`from ai_edge_litert.interpreter import Interpreter`) keep them even then.
    """
    uninstall()
    _finder.forced = force
    if not force:
        found = tuple(f"{package}.interpreter" for package in _VERSIONS if not _is_real(package))
        sys.meta_path.append(_finder)
        return found
    for package in _VERSIONS:
        name = f"{package}.interpreter"
        if (loaded := sys.modules.pop(name, None)) is not None:
            _finder.replaced[name] = loaded
            if vars(sys.modules[package]).get("interpreter") is loaded:
                del sys.modules[package].interpreter
    sys.meta_path.insert(0, _finder)
    return tuple(f"{package}.interpreter" for package in _VERSIONS)


def uninstall() -> None:
    """Takes back what install() did. Modules that were imported keep working where they are used."""
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    for name in [name for name in sys.modules if name.partition(".")[0] in _VERSIONS]:
        if not isinstance(sys.modules[name], Alias):
            continue
        alias = sys.modules.pop(name)
        package, _, part = name.partition(".")
        parent = sys.modules.get(package)
        if part and parent is not None and vars(parent).get(part) is alias:
            delattr(parent, part)
    for name, module in _finder.replaced.items():
        sys.modules[name] = module
        package, _, part = name.partition(".")
        setattr(sys.modules[package], part, module)
    _finder.replaced.clear()


def is_installed() -> bool:
    """Whether install() is in force."""
    return _finder in sys.meta_path
