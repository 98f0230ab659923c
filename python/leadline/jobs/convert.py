# SPDX-License-Identifier: Apache-2.0
"""leadline.convert: a Keras file or a SavedModel to a .tflite file, weights streaming from one to the other."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from leadline._leadline import Budget, Converter, JobPlan
from leadline._native.arguments import as_budget
from leadline.jobs.job import planned_by
from leadline.jobs.progress import progress_of, with_timeout


def _read(
    model: str | os.PathLike, signature_keys: Sequence[str], allow_custom_ops: bool, budget: Budget | int | str | None
) -> Converter:
    if os.path.isdir(model):
        return Converter.from_saved_model(
            model, list(signature_keys), budget=as_budget(budget), allow_custom_ops=allow_custom_ops
        )
    return Converter.from_keras(model, as_budget(budget))


def _plan(
    model, output=None, *, signature_keys=(), allow_custom_ops=False, budget=None, progress=None, timeout=None
) -> JobPlan:
    return _read(model, signature_keys, allow_custom_ops, budget).job_plan()


@planned_by(_plan)
@with_timeout
def convert(
    model: str | os.PathLike,
    output: str | os.PathLike,
    *,
    signature_keys: Sequence[str] = (),
    allow_custom_ops: bool = False,
    budget: Budget | int | str | None = None,
    progress: bool | Callable[[int, int], object] | None = None,
) -> None:
    """Writes the .tflite file of a model that Keras or TensorFlow saved.

        print(leadline.convert.plan("model.keras"))  # what it will take, phase by phase
        leadline.convert("model.keras", "model.tflite")

    TFLiteConverter takes models in memory too, and quantizes.

    Args:
      model: a .keras file, a whole-model .h5 file, or the folder of a SavedModel.
      output: the .tflite file, which appears whole or not at all.
      signature_keys, allow_custom_ops: of a SavedModel; no keys: all signatures.
      budget: the most memory to take.
      progress, timeout: as in leadline.calibrate; counts bytes.
    """
    converter = _read(model, signature_keys, allow_custom_ops, budget)
    with progress_of(progress, "Converting") as report:
        converter.convert_to(output, report)
