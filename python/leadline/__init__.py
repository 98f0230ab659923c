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
from leadline.custom_ops import CustomOp, register_op, registered_ops, unregister_op
from leadline.keras_layers import register_keras_layer, registered_keras_layers, unregister_keras_layer
from leadline.model_builder import ModelBuilder

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
    "DatasetWarning": "jobs.dataset",
    "DebugResult": "jobs.debug",
    "DeviceList": "_guard.doctor",
    "DoctorReport": "_guard.doctor",
    "GuardError": "_guard.guard",
    "LapReport": "_guard.laps",
    "Laps": "_guard.laps",
    "LiveObject": "_guard.laps",
    "MemoryLimitError": "_guard.watch",
    "TuneResult": "jobs.tune",
    "Watch": "_guard.watch",
    "WatchReport": "_guard.watch",
    "all_postmortems": "_guard.postmortem",
    "calibrate": "jobs.calibrate",
    "debug": "jobs.debug",
    "devices": "_guard.doctor",
    "doctor": "_guard.doctor",
    "guard": "_guard.guard",
    "laps": "_guard.laps",
    "largest_objects": "_guard.largest",
    "lint_dataset": "jobs.calibrate",
    "live_objects": "_guard.laps",
    "postmortem": "_guard.postmortem",
    "quantize": "jobs.quantize",
    "tune": "jobs.tune",
    "watch": "_guard.watch",
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
    """`%load_ext leadline`: the magics, and the watch of the notebook."""
    from leadline.notebook import magics, watch

    magics.register(ipython)
    watch.load(ipython)


def unload_ipython_extension(ipython) -> None:
    """`%unload_ext leadline`: ends the watch."""
    from leadline.notebook import watch

    watch.unload(ipython)
