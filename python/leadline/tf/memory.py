# SPDX-License-Identifier: Apache-2.0
"""What tensors may take. Every array that a tensor owns is charged here before it is made.

The limit is that of set_budget() or LEADLINE_MEMORY. Without either it is 90 % of what the machine and its limits
leave at that moment, because other code of the process takes memory too.
"""

from __future__ import annotations

import os
import sys

from leadline import _leadline
from leadline._leadline import Budget, format_bytes
from leadline._native.arguments import as_budget
from leadline.tf import errors

# Below this, asking what the machine has left costs more than it is worth.
_ALWAYS_FITS = 1 << 20
_NO_LIMIT = (1 << 63) - 1
_PACKAGE = os.path.dirname(os.path.abspath(__file__))

_counted = Budget(_NO_LIMIT)  # what tensors hold now
_limited: Budget | None = None
_asked_environment = False


def set_budget(budget: Budget | int | str | None) -> None:
    """The most that tensors and runs may take: "2GB", bytes, or a Budget shared with others; None: what is free.

    What was charged before stays with the budget it was charged to.
    """
    global _limited, _asked_environment
    _limited = as_budget(budget)
    _asked_environment = True


def get_budget() -> Budget:
    """The budget in force. Without one of its own, a count of what tensors hold that has no limit."""
    return _chosen() or _counted


def _chosen() -> Budget | None:
    global _limited, _asked_environment
    if not _asked_environment:
        _asked_environment = True
        if os.environ.get("LEADLINE_MEMORY"):
            _limited = Budget.machine_default()
    return _limited


def available() -> int:
    """Bytes that can still be taken now."""
    chosen = _chosen()
    if chosen is not None:
        return chosen.available
    return int(0.9 * _leadline.read_memory_limits().available)


def fits(count: int) -> bool:
    """Whether this many bytes can be taken now, if need be after releasing what is unused."""
    if count <= _ALWAYS_FITS and _chosen() is None:
        return True
    return count <= available() or (give_back(count) and count <= available())


def run_budget() -> Budget:
    """What one run of the engine is charged to."""
    chosen = _chosen()
    return chosen.child() if chosen is not None else Budget(max(available(), 0))


class Charge:
    """Bytes that are charged until this object is destroyed."""

    __slots__ = ("_budget", "bytes")

    def __init__(self, count: int, what) -> None:
        """`what` is called for a text only when the bytes do not fit."""
        self._budget: Budget | None = None
        self.bytes = count
        if not self._take(count) and not (give_back(count) and self._take(count)):
            raise refusal(count, what)

    def _take(self, count: int) -> bool:
        budget = get_budget()
        if count >= _NO_LIMIT or (count > _ALWAYS_FITS and budget is _counted and count > available()):
            return False
        try:
            budget.charge(count)
        except MemoryError:
            return False
        self._budget = budget
        return True

    def __del__(self) -> None:
        if self._budget is not None:
            self._budget.release(self.bytes)


def give_back(wanted: int) -> bool:
    """Frees what is unused: interpreters kept for the next run, and graphs, whose parts refer to each other.

    False, and nothing is done, when that could not make room for `wanted` bytes.
    """
    if wanted > available() + get_budget().used:
        return False
    import gc

    from leadline.tf import engine

    engine.clear()
    gc.collect()
    return True


def size_text(count: int) -> str:
    """In the units of the budget's limit."""
    chosen = _chosen()
    count = min(count, _NO_LIMIT)
    return chosen.format(count) if chosen is not None else format_bytes(count)


def refusal(needed: int, what, table: str = "", where: str | None = None) -> errors.BudgetError:
    """The error for `needed` bytes that do not fit. `what` is a text or a function that returns one."""
    left = max(available(), 0)
    where = user_line() if where is None else where
    text = what() if callable(what) else what
    chosen = _chosen()
    limit = (
        f"the budget of {size_text(chosen.limit)} has {size_text(left)} left"
        if chosen is not None
        else f"this machine leaves {size_text(left)} (90 % of what is available)"
    )
    place = f"\n  asked for in {where}" if where else ""
    error = errors.BudgetError(message=f"OOM: {text} needs {size_text(needed)}; {limit}.{place}{table}")
    error.needed, error.limit, error.where = needed, left, where
    return error


def user_line() -> str:
    """'program.py:12: a = tf.random.normal(...)': the innermost line that is not of this package."""
    frame = user_frame()
    return describe_frame(frame.f_code.co_filename, frame.f_lineno) if frame is not None else ""


def user_frame():
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return frame


def describe_frame(filename: str, line: int) -> str:
    import linecache

    text = linecache.getline(filename, line).strip()
    return f"{filename}:{line}: {text}" if text else f"{filename}:{line}"
