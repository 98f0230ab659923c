# SPDX-License-Identifier: Apache-2.0
"""What a guarded process asks of the one that called it: to show something in its notebook or terminal, and input."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def shell() -> Any:
    """IPython's shell that this process runs, or None."""
    ipython = sys.modules.get("IPython")
    get = getattr(ipython, "get_ipython", None)
    return get() if get is not None else None


def serve(kind: str, *arguments: Any) -> Any:
    """Answers one request."""
    services: dict[str, Callable[..., Any]] = {"display": _display, "clear": _clear, "input": _input}
    return services[kind](*arguments)


def _display(data: dict[str, Any], metadata: dict[str, Any], transient: dict[str, Any], update: bool) -> None:
    here = shell()
    if here is not None:
        here.display_pub.publish(data=data, metadata=metadata, transient=transient, update=update)
    elif sys.stdout is not None:
        print(data.get("text/plain", ""), flush=True)


def _clear(wait: bool) -> None:
    here = shell()
    if here is not None:
        here.display_pub.clear_output(wait)


def _input(prompt: str) -> str:
    return input(prompt)
