# SPDX-License-Identifier: Apache-2.0
"""leadline.convert: a Keras file or a SavedModel to a .tflite file, weights streaming from one to the other."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from leadline._leadline import Budget, ConvertJob
from leadline._native.arguments import as_budget
from leadline.jobs.job import Job, Planned
from leadline.jobs.progress import observing


@Job
def convert(
    model: str | os.PathLike,
    output: str | os.PathLike,
    *,
    signature_keys: Sequence[str] = (),
    allow_custom_ops: bool = False,
    select_tf_ops: bool = False,
    budget: Budget | int | str | None = None,
    progress: bool | Callable[[int, int], object] | None = None,
    timeout: float | None = None,
) -> Planned[None]:
    """Writes the .tflite file of a model that Keras or TensorFlow saved.

        print(leadline.convert.plan("model.keras"))  # what it will take, phase by phase
        leadline.convert("model.keras", "model.tflite")

    TFLiteConverter takes models in memory too, and quantizes.

    Args:
      model: a .keras file, a whole-model .h5 file, or the folder of a SavedModel.
      output: the .tflite file, which appears whole or not at all.
      signature_keys, allow_custom_ops: of a SavedModel; no keys: all signatures.
      select_tf_ops: ops without a conversion stay TensorFlow's own ("Flex"), many of which Leadline runs.
      budget: the most memory to take.
      progress, timeout: as in leadline.calibrate; counts bytes.
    """
    del timeout  # kept by Job
    job = ConvertJob(model, list(signature_keys), allow_custom_ops, select_tf_ops, as_budget(budget))
    yield job.plan
    with observing(progress, convert="Converting") as observer:
        job.run_to_file(output, observer)
