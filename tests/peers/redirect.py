# SPDX-License-Identifier: Apache-2.0
"""Lets the imports of a suite find the engine under test.

LiteRT's tests import `tflite.python...`, which no wheel has: such a name is the module of TensorFlow that it was made
from, with the names of the engine in place of TensorFlow's own.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from pathlib import Path
from typing import Any

# Helpers that tests bring along, and extensions that only LiteRT's own build makes.
_BROUGHT_ALONG = {"lite_v2_test_util", "test_util"}
_NOT_BUILT = {"_pywrap_test_registerer", "double_op"}


class _Redirected(types.ModuleType):
    """A module of TensorFlow under another name, some of its names replaced."""

    def __init__(self, name: str, original: types.ModuleType | None, replaced: dict[str, Any]) -> None:
        super().__init__(name)
        self.__path__: list[str] = []
        self._original = original
        self.__dict__.update(replaced)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if self._original is None:
            raise RuntimeError(f"{self.__name__}.{name} is made by LiteRT's own build only")
        value = getattr(self._original, name)
        # Submodules have to come this way too, or TensorFlow's would be what is tested.
        return importlib.import_module(f"{self.__name__}.{name}") if isinstance(value, types.ModuleType) else value


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, folder: Path, replaced: dict[str, dict[str, Any]]) -> None:
        self._folder = folder
        self._replaced = replaced

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        del path, target
        if name.split(".")[0] != "tflite":
            return None
        if name.rsplit(".", 1)[-1] in _BROUGHT_ALONG:
            return importlib.util.spec_from_file_location(name, self._folder / (name.replace(".", "/") + ".py"))
        return importlib.util.spec_from_loader(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        name = spec.name
        if name.rsplit(".", 1)[-1] in _NOT_BUILT:
            return _Redirected(name, None, {})
        try:
            original = importlib.import_module("tensorflow.lite" + name.removeprefix("tflite"))
        except ImportError:
            return types.ModuleType(name)  # a folder
        return _Redirected(name, original, self._replaced.get(name, {}))

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def _leadline_names() -> dict[str, dict[str, Any]]:
    """By module of the suites: what Leadline has in place of TensorFlow's."""
    from leadline import lite
    from leadline.lite import convert, debugger, metrics

    def pick(owner: Any, *names: str) -> dict[str, Any]:
        return {name: getattr(owner, name) for name in names if hasattr(owner, name)}

    running = pick(
        lite, "Interpreter", "InterpreterWithCustomOps", "OpResolverType", "SignatureRunner", "load_delegate"
    )
    running |= pick(lite, "Delegate")
    converting = pick(lite, "TFLiteConverter", "Optimize", "OpsSet", "TargetSpec", "RepresentativeDataset")
    debugging = {name: value for name, value in vars(debugger).items() if not name.startswith("__")}
    return {
        "tflite.python.interpreter": running,
        "tflite.python.lite": {**running, **converting, "TFLiteConverterV2": lite.TFLiteConverter},
        "tflite.python.convert": pick(convert, "ConverterError", "mlir_quantize"),
        "tflite.python.metrics.metrics": pick(metrics, "TFLiteMetrics", "TFLiteConverterMetrics"),
        "tflite.tools.optimize.debugging.python.debugger": debugging,
    }


_litert: list[Any] = []


def litert_interpreter() -> Any:
    """LiteRT's own Interpreter, whatever its name finds."""
    return _litert[0]


def install(engine: str, folder: Path) -> None:
    """`engine` is 'tensorflow' or 'leadline'. Ends the program when a name does not find it."""
    import ai_edge_litert.interpreter
    import tensorflow as tf

    _litert.append(ai_edge_litert.interpreter.Interpreter)

    replaced: dict[str, dict[str, Any]] = {}
    if engine == "leadline":
        replaced = _leadline_names()
        for name, value in replaced["tflite.python.lite"].items():
            if hasattr(tf.lite, name):
                setattr(tf.lite, name, value)
        for name in ("QuantizationDebugger", "QuantizationDebugOptions"):
            setattr(tf.lite.experimental, name, replaced["tflite.tools.optimize.debugging.python.debugger"][name])
        ai_edge_litert.interpreter.Interpreter = replaced["tflite.python.interpreter"]["Interpreter"]
    sys.meta_path.insert(0, Finder(folder, replaced))
    from tflite.python import interpreter, lite
    from tflite.tools.optimize.debugging.python import debugger

    used = [interpreter.Interpreter, lite.TFLiteConverterV2, debugger.QuantizationDebugger, tf.lite.TFLiteConverter]
    wrong = [item for item in used if item.__module__.startswith("leadline") != (engine == "leadline")]
    if wrong:
        raise SystemExit(f"the suite would not test {engine}, but {wrong}")
