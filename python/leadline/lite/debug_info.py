# SPDX-License-Identifier: Apache-2.0
"""Where the nodes of a model were made, as TensorFlow notes it (GraphDebugInfo): with TensorFlow, and when asked."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def of_functions(functions: Sequence[Any]) -> Any:
    """Of the operations of concrete functions."""
    from tensorflow.python.framework import error_interpolation

    operations = [("", operation) for function in functions for operation in function.graph.get_operations()]
    return error_interpolation.create_graph_debug_info_def(operations)


def of_saved_model(path: str | os.PathLike[str]) -> Any:
    """Of a SavedModel that was saved with it (SaveOptions(save_debug_info=True)); else None."""
    file = Path(path) / "debug" / "saved_model_debug_info.pb"
    if not file.exists():
        return None
    from tensorflow.core.framework import graph_debug_info_pb2

    return graph_debug_info_pb2.GraphDebugInfo.FromString(file.read_bytes())
