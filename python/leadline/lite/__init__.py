# SPDX-License-Identifier: Apache-2.0
"""A drop-in for `tf.lite` and `ai_edge_litert.interpreter`: the same names, arguments, dicts and kinds of errors.

What is different: views from `tensor()` never make another call fail, memory is planned before it is taken (`plan()`,
`budget=`), and what cannot run says why.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from leadline.lite.interpreter import Interpreter, OpResolverType, SignatureRunner, load_delegate

if TYPE_CHECKING:  # __getattr__ imports these when they are needed: running does without, and they take time
    from leadline.lite import experimental
    from leadline.lite.converter import OpsSet, Optimize, RepresentativeDataset, TargetSpec, TFLiteConverter

__all__ = [
    "Interpreter",
    "OpResolverType",
    "OpsSet",
    "Optimize",
    "RepresentativeDataset",
    "SignatureRunner",
    "TFLiteConverter",
    "TargetSpec",
    "experimental",
    "load_delegate",
]

_LATER = {
    "Optimize": "converter",
    "OpsSet": "converter",
    "RepresentativeDataset": "converter",
    "TFLiteConverter": "converter",
    "TargetSpec": "converter",
    "experimental": "experimental",
}


if not TYPE_CHECKING:  # or every misspelled name would have the type Any

    def __getattr__(name: str):
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        module = import_module(f"{__name__}.{_LATER[name]}")
        return module if _LATER[name] == name else getattr(module, name)


def __dir__() -> list[str]:
    return list({*__all__, *(name for name in globals() if name.startswith("__"))})
