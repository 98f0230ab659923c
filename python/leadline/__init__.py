# SPDX-License-Identifier: Apache-2.0
"""Leadline loads, verifies, plans and runs .tflite models, with memory known in advance.

    import leadline

    interpreter = leadline.lite.Interpreter("model.tflite", budget="200MB")
    print(interpreter.plan())            # what the run will take; nothing large is allocated yet
    interpreter.allocate_tensors()

`leadline.lite` has the interface of `tf.lite`. Everything Leadline raises is a `leadline.Error`.
"""

from leadline import _leadline, lite
from leadline._leadline import (
    Budget,
    BudgetError,
    Calibration,
    CalibrationMethod,
    CalibrationRule,
    Device,
    DType,
    Error,
    Finding,
    InvalidArgumentError,
    InvalidModelError,
    IoError,
    MemoryLimits,
    Model,
    OpInfo,
    OutOfMemoryError,
    PassInfo,
    Plan,
    Postmortem,
    TimeLimitError,
    UnsupportedError,
    __version__,
    format_bytes,
    known_ops,
    list_passes,
    parse_bytes,
    read_memory_limits,
    time_limit,
)
from leadline._model_builder import ModelBuilder
from leadline.custom_ops import CustomOp, register_op, registered_ops, unregister_op
from leadline.keras_layers import register_keras_layer, registered_keras_layers, unregister_keras_layer

__all__ = [
    "Budget",
    "BudgetError",
    "Calibration",
    "CalibrationMethod",
    "CalibrationRule",
    "CustomOp",
    "DType",
    "DatasetWarning",
    "DebugResult",
    "Device",
    "DeviceList",
    "DoctorReport",
    "Error",
    "Finding",
    "GuardError",
    "InvalidArgumentError",
    "InvalidModelError",
    "IoError",
    "LapReport",
    "Laps",
    "LiveObject",
    "MemoryLimitError",
    "MemoryLimits",
    "Model",
    "ModelBuilder",
    "OpInfo",
    "OutOfMemoryError",
    "PassInfo",
    "Plan",
    "Postmortem",
    "TimeLimitError",
    "TuneResult",
    "UnsupportedError",
    "Watch",
    "WatchReport",
    "__version__",
    "all_postmortems",
    "calibrate",
    "debug",
    "devices",
    "doctor",
    "format_bytes",
    "guard",
    "known_ops",
    "list_passes",
    "laps",
    "largest_objects",
    "lint_dataset",
    "lite",
    "live_objects",
    "parse_bytes",
    "postmortem",
    "quantize",
    "read_memory_limits",
    "register_keras_layer",
    "register_op",
    "registered_keras_layers",
    "registered_ops",
    "tf",
    "time_limit",
    "tune",
    "unregister_keras_layer",
    "unregister_op",
    "watch",
]

_LATER = {
    "DatasetWarning": "_dataset",
    "DebugResult": "_debugger",
    "DeviceList": "_doctor",
    "DoctorReport": "_doctor",
    "GuardError": "_guard",
    "LapReport": "_laps",
    "Laps": "_laps",
    "LiveObject": "_laps",
    "MemoryLimitError": "_watch",
    "TuneResult": "_tuning",
    "Watch": "_watch",
    "WatchReport": "_watch",
    "all_postmortems": "_postmortem",
    "calibrate": "_calibration",
    "debug": "_debugger",
    "devices": "_doctor",
    "doctor": "_doctor",
    "guard": "_guard",
    "laps": "_laps",
    "largest_objects": "_largest",
    "lint_dataset": "_calibration",
    "live_objects": "_laps",
    "postmortem": "_postmortem",
    "quantize": "_quantizer",
    "tune": "_tuning",
    "watch": "_watch",
}


_leadline.set_package_folder(f"{__path__[0]}/")  # for live_objects(): lines below it are not the user's


def __getattr__(name: str):
    # Running needs none of these, and their imports take time.
    if name in _LATER or name == "tf":
        import importlib

        if name == "tf":
            return importlib.import_module("leadline.tf")
        return getattr(importlib.import_module(f"leadline.{_LATER[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def load_ipython_extension(ipython) -> None:
    """`%load_ext leadline`: the magics of leadline._magics, and the watch of the notebook."""
    from leadline import _magics, _watch_notebook

    _magics.register(ipython)
    _watch_notebook.load(ipython)


def unload_ipython_extension(ipython) -> None:
    """`%unload_ext leadline`: ends the watch."""
    from leadline import _watch_notebook

    _watch_notebook.unload(ipython)
