# SPDX-License-Identifier: Apache-2.0
"""The arguments that every function of Leadline takes alike: a model, a budget, threads, a mode, a method."""

from __future__ import annotations

import operator
import os
from typing import Any

from leadline import _leadline
from leadline._leadline import Budget, CalibrationMethod, InvalidArgumentError, Model, QuantizationMode


def as_model(model: Any, budget: Budget | None = None) -> Model:
    """A Model from itself, the path of a .tflite file, or its bytes. `bytes` are borrowed, other buffers copied."""
    if isinstance(model, Model):
        return model
    if isinstance(model, (str, os.PathLike)):
        return Model.load(os.fspath(model), budget)
    try:
        memoryview(model)
    except TypeError:
        raise InvalidArgumentError(
            f"model should be the path of a .tflite file, its bytes, or a leadline.Model; got {type(model).__name__}"
        ) from None
    return Model.from_bytes(model, budget)


def as_budget(budget: Budget | int | str | None) -> Budget | None:
    """A Budget from itself, a number of bytes, or a text such as "200MB" or "50%". None stays None."""
    if budget is None or isinstance(budget, Budget):
        return budget
    if isinstance(budget, str):
        return Budget(budget)
    try:
        return Budget(operator.index(budget))
    except TypeError:
        raise InvalidArgumentError(
            f"budget should be a number of bytes, a text such as '200MB', or a Budget; got {type(budget).__name__}"
        ) from None


def as_threads(num_threads: int | None) -> int:
    """The number of threads as the engine takes it: -1 means all usable CPUs, and so does None."""
    if num_threads is None:
        return -1
    try:
        threads = operator.index(num_threads)
    except TypeError:
        raise InvalidArgumentError(
            f"type of num_threads should be int, None or -1 for all CPUs; got {type(num_threads).__name__}"
        ) from None
    if threads < 1 and threads != -1:
        raise InvalidArgumentError(f"num_threads should >= 1, or None or -1 for all CPUs; got {threads}")
    return threads


def as_mode(mode: str | QuantizationMode, argument: str = "mode") -> QuantizationMode:
    """A QuantizationMode from itself or its name; '-' and '_' are the same."""
    return mode if isinstance(mode, QuantizationMode) else _leadline.parse_quantization_mode(str(mode), argument)


def as_method(method: str | CalibrationMethod) -> CalibrationMethod:
    """A CalibrationMethod from itself or its name; '-' and '_' are the same."""
    return method if isinstance(method, CalibrationMethod) else _leadline.parse_calibration_method(str(method).lower())
