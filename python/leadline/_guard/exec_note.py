# SPDX-License-Identifier: Apache-2.0
"""A process that becomes another program (exec) leaves a word in its recording, or it would look as if it had been
killed."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from leadline._leadline import note_exec


def note_execs() -> None:
    """Wraps os.execv and os.execve, which all others of the os module call, once. Children of fork are not noted: they
    have no recording."""
    for name in ("execv", "execve"):
        original = getattr(os, name)
        if not hasattr(original, "noted_by_leadline"):
            setattr(os, name, _noting(original))


def _noting(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(path: Any, *args: Any) -> Any:
        note_exec(os.fsdecode(path) if not isinstance(path, int) else f"descriptor {path}")
        try:
            return original(path, *args)
        except BaseException:
            note_exec("", failed=True)
            raise

    call.noted_by_leadline = True  # type: ignore[attr-defined]
    if original in os.supports_fd:
        os.supports_fd.add(call)
    return call
