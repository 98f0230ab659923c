# SPDX-License-Identifier: Apache-2.0
"""How far a long piece of work is, on standard error: a bar in terminals and notebooks, nothing in pipes."""

from __future__ import annotations

import contextlib
import functools
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, TextIO, TypeAlias, TypeVar, cast

from leadline._leadline import Error, time_limit

F = TypeVar("F", bound=Callable[..., Any])
Progress: TypeAlias = "bool | Callable[..., object] | None"

_PATIENCE = 1.0  # seconds before a bar appears
_BETWEEN = 0.1  # seconds between two drawings
_LETTERS = 30


class ProgressBar:
    """Draws one line over and over. Call it with (done, total); use it in a `with` statement, which clears the line."""

    def __init__(self, title: str, *, patience: float = _PATIENCE, file: TextIO | None = None) -> None:
        self._title = title
        self._file = sys.stderr if file is None else file
        self._start = time.monotonic()
        self._next = self._start + patience
        self._width = 0

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._width:
            self._write("\r" + " " * self._width + "\r")

    def __call__(self, done: int, total: int | None) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _BETWEEN
        line = self.line(done, total, int(now - self._start))
        self._write("\r" + line.ljust(self._width))
        self._width = len(line)

    def line(self, done: int, total: int | None, seconds: int) -> str:
        if total is None:  # a dataset without a known length
            return f"{self._title} {done}  {seconds // 60}:{seconds % 60:02}"
        part = min(max(done / total, 0.0), 1.0) if total else 1.0
        bar = "#" * int(part * _LETTERS)
        return f"{self._title} [{bar:<{_LETTERS}}] {part:4.0%}  {seconds // 60}:{seconds % 60:02}"

    def _write(self, text: str) -> None:
        try:
            self._file.write(text)
            self._file.flush()
        except (OSError, ValueError):  # closed meanwhile: the work matters more than its picture
            pass


def _is_watched() -> bool:
    """Whether a person sees standard error: a terminal, or a notebook."""
    try:
        return sys.stderr.isatty() or "ipykernel" in sys.modules
    except (AttributeError, ValueError):
        return False


class _Silent:
    def __enter__(self) -> None:
        return None

    def __exit__(self, *exception: object) -> None:
        return None


class _Given:
    def __init__(self, function: Callable[..., object]) -> None:
        self._function = function

    def __enter__(self) -> Callable[..., object]:
        return self._function

    def __exit__(self, *exception: object) -> None:
        return None


def with_timeout(function: F) -> F:
    """Applies the argument `timeout` of a function: after this many seconds its work ends with TimeLimitError."""

    @functools.wraps(function)
    def limited(*args: Any, timeout: float | None = None, **settings: Any) -> Any:
        if timeout is None:
            return function(*args, **settings)
        with time_limit(timeout):
            return function(*args, **settings)

    return cast("F", limited)


def tell(report: Callable[..., object] | None, done: int, total: int | None) -> None:
    """Calls what progress_of() returned. Raises Error when that says no."""
    if report is not None and report(done, total) is False:
        error = Error("stopped before it was finished")
        error.code = "cancelled"
        raise error


def progress_of(progress: Progress, title: str) -> ProgressBar | _Silent | _Given:
    """A context that yields what to call with (done, total), or None.

    None shows a bar where a person can see it, True always, False never; a function is called itself, and stops the
    work when it returns False.
    """
    if callable(progress):
        return _Given(progress)
    if progress or (progress is None and _is_watched()):
        return ProgressBar(title)
    return _Silent()


@contextlib.contextmanager
def observing(progress: Progress, **titles: str) -> Iterator[Callable[..., object] | None]:
    """A context that yields the observer of a job, or None: it is called with (phase, done, total). Each phase that has
    a title has a bar of its own, as progress_of() says; a function is told of the first of them."""
    if callable(progress):
        first = next(iter(titles))
        yield lambda phase, done, total: progress(done, total) if phase == first else None
        return
    if not progress and (progress is not None or not _is_watched()):
        yield None
        return
    with contextlib.ExitStack() as shown:
        bars: dict[str, ProgressBar] = {}

        def show(phase: str, done: int, total: int | None) -> None:
            if phase not in titles:
                return
            if phase not in bars:
                shown.close()
                bars[phase] = shown.enter_context(ProgressBar(titles[phase]))
            bars[phase](done, total)

        yield show
