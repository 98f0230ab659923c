# SPDX-License-Identifier: Apache-2.0
"""`import tensorflow` finds leadline.tf where TensorFlow is not installed.

A real TensorFlow wins, even a broken one, whose own error then shows; install(force=True) puts leadline.tf first.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys

from leadline._native.aliases import Alias

_NAMES = ("tensorflow",)
# Modules inside of TensorFlow that scripts import tf.lite's classes from.
_INSIDE = {
    "tensorflow.lite.python": "leadline.lite",
    "tensorflow.lite.python.lite": "leadline.lite",
    "tensorflow.lite.python.interpreter": "leadline.lite.interpreter",
    "tensorflow.lite.python.convert": "leadline.lite.convert",
    "tensorflow.lite.python.metrics": "leadline.lite.metrics",
    "tensorflow.lite.python.metrics.metrics": "leadline.lite.metrics",
}


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, fullname, path=None, target=None):
        if fullname.split(".")[0] not in _NAMES:
            return None
        if fullname != "tensorflow" and not isinstance(sys.modules.get("tensorflow"), Alias):
            return None  # a submodule of a real TensorFlow
        if _asked_by_keras():
            return None  # it would take leadline.tf for a backend
        if self._target(fullname) is None:
            raise ModuleNotFoundError(
                f"No module named {fullname!r}: this is leadline.tf in place of TensorFlow, which has the part of it "
                "that runs on Leadline's engine. Real TensorFlow has the rest: pip install tensorflow",
                name=fullname,
            )
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec):
        return Alias(spec.name, self._target(spec.name), "leadline.tf in place of TensorFlow")

    def exec_module(self, module) -> None:
        pass

    @staticmethod
    def _target(fullname: str):
        if fullname in _INSIDE:
            return importlib.import_module(_INSIDE[fullname])
        found = importlib.import_module("leadline.tf")
        for part in fullname.split(".")[1:]:
            try:
                found = getattr(found, part)
            except AttributeError:
                try:
                    found = importlib.import_module(f"{found.__name__}.{part}")  # of Keras
                except (ImportError, AttributeError):
                    return None
        return found


def _asked_by_keras() -> bool:
    frame = sys._getframe(2)
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if not name.startswith("importlib") and name != __name__:
            return name == "keras" or name.startswith(("keras.", "jax.", "torch."))
        frame = frame.f_back
    return False


_finder = _Finder()


def install(force: bool = False) -> bool:
    """Makes `import tensorflow` find leadline.tf when there is no TensorFlow; with `force` in any case.

    Returns whether `import tensorflow` will be leadline.tf. A TensorFlow that is imported already stays what it is
    unless forced.
    """
    uninstall()
    if force:
        for name in [name for name in sys.modules if name.split(".")[0] in _NAMES]:
            del sys.modules[name]
        sys.meta_path.insert(0, _finder)
        return True
    real = "tensorflow" in sys.modules or _real_spec() is not None
    sys.meta_path.append(_finder)
    return not real


def _real_spec():
    try:
        return importlib.machinery.PathFinder.find_spec("tensorflow")
    except (ImportError, ValueError):
        return None


def uninstall() -> None:
    """Takes back what install() did. Modules that were imported keep working where they are used."""
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    for name in [name for name, module in sys.modules.items() if isinstance(module, Alias)]:
        del sys.modules[name]


def is_installed() -> bool:
    return _finder in sys.meta_path
