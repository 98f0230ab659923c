# SPDX-License-Identifier: Apache-2.0
"""Names of a package that are imported on first use, so that `import leadline` is quick."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from leadline._leadline import Error


def lazy_names(
    package: str, later: Mapping[str, str], public: Sequence[str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The package's __getattr__ and __dir__. `later`: the module of each name; a module's own name stands for itself.
    `public`: the package's __all__."""

    def __getattr__(name: str) -> Any:
        if name not in later:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if sys.is_finalizing():  # in a __del__, say: nothing can be imported any more
            raise Error(f"{package}.{name} cannot be imported: this Python is shutting down")
        module = import_module(f"{package}.{later[name]}")
        return module if later[name] == name else getattr(module, name)

    def __dir__() -> list[str]:
        return list({*public, *(name for name in vars(sys.modules[package]) if name.startswith("__"))})

    return __getattr__, __dir__
