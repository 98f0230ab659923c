# SPDX-License-Identifier: Apache-2.0
"""Delegates and registerers of custom ops: what is loaded into LiteRT's own C++ classes, which Leadline does not have.

Everything here ends in an error of the kinds that programs fall back to the CPU for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from leadline._leadline import InvalidArgumentError, UnsupportedError


class DelegateError(UnsupportedError, OSError):
    """A delegate cannot be used. LiteRT raises ValueError, and OSError where the library is missing: it is both."""

    __module__ = "leadline.lite"


class Delegate:
    """A delegate of LiteRT's: its constructor always raises DelegateError."""

    __module__ = "leadline.lite"

    def __init__(self, library: str, options: dict[str, Any] | None = None) -> None:
        del options
        raise DelegateError(
            f"Failed to load delegate from {library}\n"
            "Leadline runs models on the CPU and does not take delegates: create the Interpreter without one."
        )


def load_delegate(library: str, options: dict[str, Any] | None = None) -> Delegate:
    """Raises DelegateError, a ValueError and an OSError, as LiteRT does when a delegate cannot be loaded."""
    return Delegate(library, options)


def check_registerers(registerers: Iterable[str | Callable[[int], None]] | None) -> None:
    """Refuses what registers custom ops with LiteRT's op resolver: a name "symbol" or "library.symbol", or a function.

    A name that cannot be found is an InvalidArgumentError with LiteRT's words.
    """
    import ctypes  # few programs come here

    for registerer in registerers or ():
        if not isinstance(registerer, str):
            name = getattr(registerer, "__name__", type(registerer).__name__)
            raise UnsupportedError(f"the registerer {name}: {_HOW}")
        module, _, symbol = registerer.rpartition(".")
        library = f"{module}.so" if module else None
        try:
            loaded = ctypes.CDLL(library)
        except OSError as error:
            raise InvalidArgumentError(f"Loading library '{library}' failed with error '{error}'. {_HOW}") from None
        try:
            getattr(loaded, symbol)
        except AttributeError as error:
            raise InvalidArgumentError(f"Looking up symbol '{symbol}' failed with error '{error}'. {_HOW}") from None
        raise UnsupportedError(f"the registerer {registerer}: {_HOW}")


_HOW = "Leadline has no op resolver of LiteRT's to register ops with: write the op for leadline.register_op"
