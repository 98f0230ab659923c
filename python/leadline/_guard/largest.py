# SPDX-License-Identifier: Apache-2.0
"""The largest Python objects, found in bounded time while memory is short."""

from __future__ import annotations

import contextlib
import gc
import math
import sys
import time
import types
from typing import Any, NamedTuple

from leadline._leadline import format_bytes

# What they say about their sizes is cheap and true.
_ARRAY_MODULES = ("numpy", "jax", "jaxlib", "torch", "tensorflow", "cupy", "pyarrow", "array", "keras", "tf_keras")
_PLAIN = (str, bytes, bytearray)
_CONTAINERS = (list, tuple, set, frozenset, dict)
_DEPTH = 4


class LargeObject(NamedTuple):
    """One object, or a container with what is in it."""

    bytes: int
    name: str  # of the variable; "": none that was found
    type: str
    detail: str

    def __str__(self) -> str:
        return f"{format_bytes(self.bytes):>10}  {self.name or '(no name)':<16} {self.type} {self.detail}".rstrip()


class _Search:
    def __init__(self, seconds: float) -> None:
        self.deadline = time.monotonic() + seconds
        self.seen: set[int] = set()
        self.packages: set[str] = set()  # of the arrays that were met

    def over(self) -> bool:
        return time.monotonic() > self.deadline

    def own_bytes(self, thing: Any) -> int:
        """Of a leaf; an array that is a view counts for nothing, its base does."""
        if isinstance(thing, _PLAIN):
            return sys.getsizeof(thing, 0)
        module = type(thing).__module__
        package = module.partition(".")[0] if isinstance(module, str) else ""
        if package not in _ARRAY_MODULES:
            return 0
        self.packages.add(package)
        try:
            base = getattr(thing, "base", None)
            if base is not None and module.startswith("numpy"):
                return self.bytes_of(base, _DEPTH)
            size = getattr(thing, "nbytes", None)
            if size is None and package in ("tensorflow", "keras", "tf_keras"):  # whose tensors have none
                size = math.prod(thing.shape) * thing.dtype.size
        except Exception:  # an object that cannot say its size has none here
            return 0
        return size if isinstance(size, int) and size > 0 else 0

    def bytes_of(self, thing: Any, depth: int = 0) -> int:
        """With what is in it, each object once."""
        if id(thing) in self.seen:
            return 0
        self.seen.add(id(thing))
        kind = type(thing)
        if kind not in _CONTAINERS and not isinstance(thing, _CONTAINERS):
            total = self.own_bytes(thing)
            if total == 0 and depth < _DEPTH and hasattr(kind, "__dict__") and not isinstance(thing, type):
                attributes = getattr(thing, "__dict__", None)
                if isinstance(attributes, dict) and kind.__module__ not in ("builtins", "types"):
                    total = self.bytes_of(attributes, depth + 1)
            return total
        total = sys.getsizeof(thing, 0)
        if depth >= _DEPTH:
            return total
        try:
            members = list(thing.values()) if isinstance(thing, dict) else thing
            for number, member in enumerate(members):
                if type(member) in (int, float, bool, complex, type(None)):
                    continue
                total += self.bytes_of(member, depth + 1)
                if number % 256 == 255 and self.over():
                    break
        except Exception:  # changed by another thread, or a strange class
            pass
        return total


def bytes_of(thing: Any, seconds: float = 0.5) -> tuple[int, set[str]]:
    """About how much memory an object and what is in it take, found within about `seconds`; packages of its arrays."""
    search = _Search(seconds)
    return search.bytes_of(thing), search.packages


def _describe(thing: Any) -> tuple[str, str]:
    kind = type(thing)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    try:
        if isinstance(thing, _CONTAINERS):
            return name, f"of {len(thing)}"
        dtype, shape = getattr(thing, "dtype", None), getattr(thing, "shape", None)
        if shape is not None and dtype is not None:
            return name, f"{dtype} {tuple(shape)}"
    except Exception:
        pass
    return name, ""


def _namespaces() -> list[dict[str, Any]]:
    """Where variables have names: the notebook, the functions that run, the main module."""
    spaces = []
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        package = frame.f_globals.get("__name__", "")
        if not package.startswith(("leadline.", "IPython.", "ipykernel.", "asyncio.")):
            spaces.append(frame.f_locals if frame.f_locals is not frame.f_globals else frame.f_globals)
        frame = frame.f_back
    main = sys.modules.get("__main__")
    if main is not None:
        spaces.append(vars(main))
    if "IPython" in sys.modules:
        shell = sys.modules["IPython"].get_ipython()
        if shell is not None:
            spaces.append(shell.user_ns)
    return spaces


def largest_objects(count: int = 10, seconds: float = 2.0) -> list[LargeObject]:
    """The `count` largest objects: variables with what is in them first, then what only others refer to.

    Takes about `seconds` at most. Memory that native code keeps to itself is not seen.
    """
    search = _Search(seconds)
    spaces = _namespaces()
    search.seen.update(id(space) for space in spaces)
    search.seen.update((id(sys.modules), id(search.seen)))
    found: list[LargeObject] = []
    with contextlib.suppress(MemoryError):  # where memory is short, what was found so far has to do
        _add_named(search, spaces, found)
        _add_unnamed(search, found)
    found.sort(key=lambda item: -item.bytes)
    return found[:count]


def _add_named(search: _Search, spaces: list[dict[str, Any]], found: list[LargeObject]) -> None:
    for space in spaces:
        # Names that IPython and Python keep for themselves come last: the same objects have better ones.
        for name, thing in sorted(space.copy().items(), key=lambda item: str(item[0]).startswith("_")):
            if search.over():
                break
            if isinstance(thing, type(sys)) or name in ("In", "Out", "_ih", "_oh", "_dh"):
                continue
            size = search.bytes_of(thing)
            if size >= 1 << 16:
                found.append(LargeObject(size, str(name), *_describe(thing)))


def _add_unnamed(search: _Search, found: list[LargeObject]) -> None:
    """Arrays are not known to the garbage collector, but what refers to them is."""
    tracked = gc.get_objects()
    search.seen.add(id(tracked))
    for start in range(0, len(tracked), 2000):
        if search.over():
            return
        for thing in gc.get_referents(*tracked[start : start + 2000]):
            kind = type(thing)
            if kind in _CONTAINERS or kind is type or id(thing) in search.seen:
                continue
            size = search.own_bytes(thing)
            if size >= 1 << 20 and id(thing) not in search.seen:
                search.seen.add(id(thing))
                found.append(LargeObject(size, "", *_describe(thing)))
