# SPDX-License-Identifier: Apache-2.0
"""Leadline loads, verifies, plans and runs .tflite models, with memory known in advance.

    import leadline

    interpreter = leadline.lite.Interpreter("model.tflite", budget="200MB")
    print(interpreter.plan())            # what the run will take; nothing large is allocated yet
    interpreter.allocate_tensors()

`leadline.lite` has the interface of `tf.lite`. Everything Leadline raises is a `leadline.Error`.
"""

from typing import TYPE_CHECKING, Any

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
    EvaluateResult,
    Finding,
    InvalidArgumentError,
    InvalidModelError,
    IoError,
    JobPhase,
    JobPlan,
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
from leadline._native.lazy import lazy_names
from leadline.custom_ops import CustomOp, register_op, registered_ops, unregister_op
from leadline.keras_layers import register_keras_layer, registered_keras_layers, unregister_keras_layer
from leadline.model_builder import ModelBuilder

if TYPE_CHECKING:  # __getattr__ imports these when they are needed: running does without, and they take time
    from leadline import tf
    from leadline._guard.doctor import DeviceList, DoctorReport, devices, doctor
    from leadline._guard.guard import GuardError, guard
    from leadline._guard.laps import LapReport, Laps, LiveObject, laps, live_objects
    from leadline._guard.largest import largest_objects
    from leadline._guard.postmortem import all_postmortems, postmortem
    from leadline._guard.save import restore
    from leadline._guard.watch import MemoryLimitError, Watch, WatchReport, watch
    from leadline.jobs.calibrate import calibrate
    from leadline.jobs.convert import convert
    from leadline.jobs.debug import DebugResult, DebugSuggestion, debug
    from leadline.jobs.evaluate import evaluate
    from leadline.jobs.quantize import quantize
    from leadline.jobs.samples import DatasetWarning, lint_dataset
    from leadline.jobs.tune import TuneResult, tune

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
    "DebugSuggestion",
    "Device",
    "DeviceList",
    "DoctorReport",
    "Error",
    "EvaluateResult",
    "Finding",
    "GuardError",
    "InvalidArgumentError",
    "InvalidModelError",
    "IoError",
    "JobPhase",
    "JobPlan",
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
    "convert",
    "debug",
    "devices",
    "doctor",
    "evaluate",
    "format_bytes",
    "guard",
    "known_ops",
    "laps",
    "largest_objects",
    "lint_dataset",
    "list_passes",
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
    "restore",
    "tf",
    "time_limit",
    "tune",
    "unregister_keras_layer",
    "unregister_op",
    "watch",
]

_LATER = {
    "DatasetWarning": "jobs.samples",
    "DebugResult": "jobs.debug",
    "DebugSuggestion": "jobs.debug",
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
    "convert": "jobs.convert",
    "debug": "jobs.debug",
    "devices": "_guard.doctor",
    "doctor": "_guard.doctor",
    "evaluate": "jobs.evaluate",
    "guard": "_guard.guard",
    "laps": "_guard.laps",
    "largest_objects": "_guard.largest",
    "lint_dataset": "jobs.samples",
    "live_objects": "_guard.laps",
    "postmortem": "_guard.postmortem",
    "quantize": "jobs.quantize",
    "restore": "_guard.save",
    "tf": "tf",
    "tune": "jobs.tune",
    "watch": "_guard.watch",
}


_leadline.set_package_folder(f"{__path__[0]}/")  # for live_objects(): lines below it are not the user's


if not TYPE_CHECKING:  # or every misspelled name would have the type Any
    __getattr__, __dir__ = lazy_names(__name__, _LATER, __all__)


def load_ipython_extension(ipython: Any) -> None:
    """`%load_ext leadline`: the magics, and the watch of the notebook."""
    from leadline.notebook import magics, watch

    magics.register(ipython)
    watch.load(ipython)


def unload_ipython_extension(ipython: Any) -> None:
    """`%unload_ext leadline`: ends the watch."""
    from leadline.notebook import watch

    watch.unload(ipython)
