# SPDX-License-Identifier: Apache-2.0
"""tf.keras: the real Keras with a backend that is installed, imported when it is needed. Until then Sequential models
of common layers are outlines (keras_outline.py), which can be converted without it."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys

from leadline.tf.keras_outline import LAYER_NAMES, ClassOutline, LayerOutline, SequentialOutline

_module = None


def load():
    """The package keras. Raises ImportError that says what to install."""
    global _module
    if _module is None:
        if "keras" not in sys.modules:
            _choose_backend()
        _module = _import_keras()
    return _module


def _choose_backend() -> None:
    """KERAS_BACKEND or keras.json where they name a backend that is there; else JAX, PyTorch, numpy."""
    wanted = os.environ.get("KERAS_BACKEND") or _configured()
    if wanted and wanted != "tensorflow":
        return
    for name in ("jax", "torch"):
        if importlib.util.find_spec(name) is not None:
            os.environ["KERAS_BACKEND"] = name
            return
    os.environ["KERAS_BACKEND"] = "numpy"


def _configured() -> str | None:
    folder = os.environ.get("KERAS_HOME") or os.path.join(os.path.expanduser("~"), ".keras")
    try:
        with open(os.path.join(folder, "keras.json"), encoding="utf-8") as file:
            name = json.load(file).get("backend")
    except (OSError, ValueError, AttributeError):
        return None
    return name if isinstance(name, str) and importlib.util.find_spec(name) is not None else None


def _import_keras():
    from leadline._native.aliases import Alias

    # Keras asks whether TensorFlow is there; leadline.tf is not the one it means.
    hidden = {name: module for name, module in sys.modules.items() if isinstance(module, Alias)}
    for name in hidden:
        del sys.modules[name]
    try:
        module = importlib.import_module("keras")
        if hidden:
            _hide_tensorflow()
        return module
    except ImportError as error:
        raise ImportError(
            f"tf.keras is the package keras with a backend (jax or torch): pip install keras jax. ({error})"
        ) from error
    finally:
        sys.modules.update(hidden)


def _hide_tensorflow() -> None:
    """Keras looks for TensorFlow again later, by name."""
    try:
        from keras.src.utils import module_utils
    except ImportError:
        return
    for item in vars(module_utils).values():
        if getattr(item, "name", "").split(".")[0] == "tensorflow" and hasattr(item, "_available"):
            item._available = False


class _Part:
    """keras.layers or keras.models, with outlines for the classes that have them."""

    def __init__(self, name: str, classes: dict) -> None:
        self.__name__, self._classes = name, classes

    def __getattr__(self, name: str):
        if name in self._classes:
            return self._classes[name]
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(getattr(load(), self.__name__.rsplit(".", 1)[-1]), name)

    def __dir__(self):
        return dir(getattr(load(), self.__name__.rsplit(".", 1)[-1]))


_sequential = ClassOutline("Sequential", SequentialOutline)
_OUTLINES = {
    "Sequential": _sequential,
    "layers": _Part("keras.layers", {name: ClassOutline(f"layers.{name}", LayerOutline) for name in LAYER_NAMES}),
    "models": _Part("keras.models", {"Sequential": _sequential}),
}


def __getattr__(name: str):
    if name in _OUTLINES and "keras" not in sys.modules:
        return _OUTLINES[name]
    if name.startswith("__") and name != "__version__":
        raise AttributeError(name)
    return getattr(load(), name)


def __dir__() -> list[str]:
    return dir(load())
