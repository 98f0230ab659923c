# SPDX-License-Identifier: Apache-2.0
"""A drop-in for `tf.lite` and `ai_edge_litert.interpreter`: the same names, arguments, dicts and kinds of errors.

What is different: views from `tensor()` never make another call fail, memory is planned before it is taken (`plan()`,
`budget=`), and what cannot run says why.
"""

from __future__ import annotations

import importlib
from typing import Any

from leadline.lite.interpreter import Interpreter, OpResolverType, SignatureRunner, load_delegate

# Converting needs modules that running does not, and their imports take time.
_LATER = {
    "Optimize": "converter",
    "OpsSet": "converter",
    "RepresentativeDataset": "converter",
    "TFLiteConverter": "converter",
    "TargetSpec": "converter",
}

__all__ = ["Interpreter", "OpResolverType", "SignatureRunner", "experimental", "load_delegate", *_LATER]


def __getattr__(name: str) -> Any:
    if name == "experimental":
        return importlib.import_module("leadline.lite.experimental")
    if name in _LATER:
        return getattr(importlib.import_module(f"leadline.lite.{_LATER[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
