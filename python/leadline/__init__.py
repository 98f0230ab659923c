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
    Plan,
    UnsupportedError,
    __version__,
    format_bytes,
    known_ops,
    parse_bytes,
    read_memory_limits,
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
    "MemoryLimits",
    "Model",
    "ModelBuilder",
    "OpInfo",
    "Plan",
    "TuneResult",
    "UnsupportedError",
    "__version__",
    "calibrate",
    "debug",
    "devices",
    "doctor",
    "format_bytes",
    "guard",
    "known_ops",
    "laps",
    "lint_dataset",
    "lite",
    "live_objects",
    "parse_bytes",
    "quantize",
    "read_memory_limits",
    "register_keras_layer",
    "register_op",
    "registered_keras_layers",
    "registered_ops",
    "tf",
    "tune",
    "unregister_keras_layer",
    "unregister_op",
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
    "TuneResult": "_tuning",
    "calibrate": "_calibration",
    "debug": "_debugger",
    "devices": "_doctor",
    "doctor": "_doctor",
    "guard": "_guard",
    "laps": "_laps",
    "lint_dataset": "_calibration",
    "live_objects": "_laps",
    "quantize": "_quantizer",
    "tune": "_tuning",
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
    """`%load_ext leadline`: the magics of leadline._magics."""
    from leadline import _magics

    _magics.register(ipython)
