# SPDX-License-Identifier: Apache-2.0
"""A module that stands in for one of another project."""

from __future__ import annotations

import types
from typing import Any


class Alias(types.ModuleType):
    """Shows the attributes of `target` under the name of another project's module."""

    __path__: list[str] = []  # its submodules are found by the finder that made it, alone

    def __init__(self, name: str, target: Any, shown: str, **extra: Any) -> None:
        super().__init__(name, target.__doc__)
        self.__dict__.update(extra)
        self.__dict__["__leadline__"] = target
        self.__dict__["__path__"] = []
        self.__dict__["_shown"] = shown

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["__leadline__"], name)

    def __dir__(self) -> list[str]:
        return dir(self.__dict__["__leadline__"])

    def __repr__(self) -> str:
        return f"<module {self.__name__!r}: {self.__dict__['_shown']}>"
