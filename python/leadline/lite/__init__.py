# SPDX-License-Identifier: Apache-2.0
"""A drop-in for `tf.lite` and `ai_edge_litert.interpreter`: the same names, arguments, dicts and kinds of errors.

What is different: views from `tensor()` never make another call fail, memory is planned before it is taken (`plan()`,
`budget=`), and what cannot run says why.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from leadline._native.lazy import lazy_names
from leadline.lite.interpreter import (
    Delegate,
    Interpreter,
    InterpreterWithCustomOps,
    OpResolverType,
    SignatureRunner,
    load_delegate,
)

if TYPE_CHECKING:  # __getattr__ imports these when they are needed: running does without, and they take time
    from leadline.lite import convert, experimental, metrics
    from leadline.lite.converter import OpsSet, Optimize, RepresentativeDataset, TargetSpec, TFLiteConverter
    from leadline.lite.installer import install, is_installed, uninstall

__all__ = [
    "Delegate",
    "Interpreter",
    "InterpreterWithCustomOps",
    "OpResolverType",
    "OpsSet",
    "Optimize",
    "RepresentativeDataset",
    "SignatureRunner",
    "TFLiteConverter",
    "TargetSpec",
    "convert",
    "experimental",
    "install",
    "is_installed",
    "load_delegate",
    "metrics",
    "uninstall",
]

_LATER = {
    "Optimize": "converter",
    "OpsSet": "converter",
    "RepresentativeDataset": "converter",
    "TFLiteConverter": "converter",
    "TargetSpec": "converter",
    "convert": "convert",
    "experimental": "experimental",
    "install": "installer",
    "is_installed": "installer",
    "metrics": "metrics",
    "uninstall": "installer",
}


if not TYPE_CHECKING:  # or every misspelled name would have the type Any
    __getattr__, __dir__ = lazy_names(__name__, _LATER, __all__)
