# SPDX-License-Identifier: Apache-2.0
"""Keras 3 models in memory: their variables where .keras files would have them, without writing one."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from leadline._leadline import DType, KerasWeight
from leadline.model_builder import dtype_of


def weights_by_path(model: Any) -> dict[str, list[KerasWeight]]:
    """The variables of each layer of a Keras 3 model, by the path that Keras's own saving gives them.

    Raises whatever Keras does when it is a version that saves in another way; callers save to a file then.
    """
    from keras.src.saving import saving_lib

    class Store(saving_lib.NpzIOStore):  # type: ignore[misc,unused-ignore]  # Keras has no types
        """What Keras saves to; keeps the variables instead."""

        def __init__(self) -> None:  # no file is opened
            self.contents: dict[str, dict[str, Any]] = {}

        def make(self, path: str, metadata: Any = None) -> dict[str, Any]:
            del metadata
            return self.contents.setdefault(path or "", {})

    store = Store()
    saving_lib._save_state(model, weights_store=store, assets_store=None, inner_path="", visited_saveables=set())
    result = {}
    for path, variables in store.contents.items():
        if not path.startswith("optimizer"):
            result[path] = [array_weight(variables[key]) for key in sorted(variables, key=_order)]
    return result


def weights_below(layer: Any, path: str) -> dict[str, list[KerasWeight]]:
    """The same of a layer that has `path` in the model."""
    return {f"{path}/{part}".rstrip("/"): weights for part, weights in weights_by_path(layer).items()}


def _order(key: str) -> tuple[bool, int, str]:
    """As they lie in a file: numbers by value, before words."""
    return (not key.isdigit(), int(key) if key.isdigit() else 0, key)


def array_weight(variable: Any) -> KerasWeight:
    """A variable, array or tensor of the backend, read when it is needed."""
    dtype = getattr(variable.dtype, "name", str(variable.dtype)).removeprefix("torch.")
    name = getattr(variable, "name", "")
    kind = DType.BFLOAT16 if dtype == "bfloat16" else dtype_of(dtype)
    shape = [int(size) for size in variable.shape]
    return KerasWeight(name if isinstance(name, str) else "", kind, shape, functools.partial(_read, variable))


def _read(variable: Any, memory: memoryview) -> None:
    values = variable
    if not isinstance(values, np.ndarray):
        from keras import ops

        values = ops.convert_to_numpy(variable)  # of CPU memory a view, where the backend has one
    values = np.asarray(values)
    target = np.frombuffer(memory, np.uint8)
    target[...] = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
