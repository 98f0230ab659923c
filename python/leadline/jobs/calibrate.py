# SPDX-License-Identifier: Apache-2.0
"""leadline.calibrate: runs the samples of a representative dataset, here or on the workers of an executor."""

from __future__ import annotations

import concurrent.futures
import os
from collections.abc import Callable
from typing import Any

from leadline import _leadline
from leadline._leadline import (
    Budget,
    CalibrateJob,
    Calibration,
    CalibrationMethod,
    Calibrator,
    InvalidArgumentError,
    Model,
    SampleReader,
    SampleSource,
)
from leadline._native.arguments import as_budget, as_method, as_model, as_threads
from leadline.jobs.distribute import Sample, distribute
from leadline.jobs.job import Job, Planned
from leadline.jobs.progress import observing, progress_of
from leadline.jobs.samples import sample_source, warn_of


@Job
def calibrate(
    model: Model | bytes | str | os.PathLike,
    dataset: Any,
    method: str | CalibrationMethod | None = None,
    *,
    executor: concurrent.futures.Executor | None = None,
    budget: Budget | int | str | None = None,
    num_threads: int | None = 1,
    keep_state: bool = False,
    gram_matrices: bool = False,
    progress: bool | Callable[[int, int | None], object] | None = None,
    timeout: float | None = None,
    **pictures: Any,
) -> Planned[Calibration]:
    """Runs a float model on samples and returns what its tensors held.

        print(leadline.calibrate.plan("model.tflite"))  # what it will take, phase by phase
        calibration = leadline.calibrate("model.tflite", lambda: ([image] for image in images))
        calibration.range(subgraph=0, tensor=5)

    Args:
      model: a .tflite file, its bytes, or a leadline.Model.
      dataset: samples in any form that TFLiteConverter.representative_dataset takes: a function that yields lists of
        arrays, dicts by input name, or pairs of signature key and dict; a list or an array of samples works too, and so
        does what gives samples with labels, which are left out: a PyTorch DataLoader, a tf.data.Dataset, tuples (x, y).
        Or a path: a .npy or .npz file, a PNG or JPEG picture, a folder of either, or one of class folders with
        pictures. leadline.quantize, debug, tune and evaluate take the same.
      method: what the ranges will be chosen by. "min_max" and "moving_average" take less memory and time; without one
        every method can be used later.
      executor: any concurrent.futures.Executor whose workers have Leadline: a process or thread pool, or Dask's
        client.get_executor(). The result is the same to the byte.
      budget: the most memory to take, of this process and of each worker.
      num_threads: threads of one run.
      keep_state: variables keep their values from sample to sample; for models that take a stream in pieces. Otherwise
        every sample begins with the initial state. Cannot be split, so not with an executor.
      gram_matrices: keep what leadline.quantize(rounding="comq") needs, 16 bytes for each pair of weights of an output
        channel.
      progress: called with the number of samples done, and of all samples or None; stops the work when it returns
        False. None shows a bar when it takes more than a second and a person can see it, True always, False never.
      timeout: seconds after which the work ends with TimeLimitError. Work of an executor that has begun is waited for.
      pictures: for pictures: image_size=(height, width) where the model takes any; values are (pixel - mean) * scale;
        colors="rgb", "bgr" or "grey"; resize="bilinear" or "nearest".

    Raises:
      InvalidArgumentError: a sample that cannot serve, by number and input, before it is run.
      BudgetError: the statistics or a run do not fit the budget.

    Warns with leadline.DatasetWarning about samples that may not be what was meant (see lint_dataset).
    """
    del timeout  # kept by Job
    budget = as_budget(budget)
    loaded = as_model(model, budget)
    options: dict[str, Any] = {
        "histograms": method is None or _leadline.needs_histograms(as_method(method)),
        "keep_state": bool(keep_state),
        "num_threads": as_threads(num_threads),
        "gram_matrices": bool(gram_matrices),
    }
    if executor is not None and keep_state:
        raise InvalidArgumentError("keep_state needs the samples in one piece: leave out executor=")
    source = sample_source(dataset, None, loaded, budget=budget, **pictures)
    job = CalibrateJob(loaded, budget=budget, **options)
    yield lambda: job.plan(source)
    if executor is None:
        with observing(progress, calibrate="Calibrating") as observer:
            result, findings = job.run(source, observer)
    else:
        result, findings = calibrate_on(executor, model, loaded, source, budget, options, progress)
    warn_of(findings, 3)
    return result


def calibrate_on(
    executor: concurrent.futures.Executor,
    given: Any,
    model: Model,
    source: SampleSource,
    budget: Budget | None,
    options: dict[str, Any],
    progress: Any,
) -> tuple[Calibration, list[tuple]]:
    """What CalibrateJob.run() does, on workers: each calibrates chunks of samples, and merging them is exact."""
    result = Calibration()
    not_finite: list[tuple[int, int, int]] = []

    def merge(answer: tuple[bytes, tuple[int, int, int] | None]) -> None:
        result.merge(Calibration.from_bytes(answer[0], budget))
        if answer[1] is not None:
            not_finite.append(answer[1])

    reader = SampleReader(model, source)
    with progress_of(progress, "Calibrating") as report:
        distribute(executor, _Runner, given, model, budget, options, reader, merge, report, "calibrating")
    reader.look_at(result, not_finite[0] if not_finite else None)
    return result, reader.findings


class _Runner:
    """A calibrator in a worker."""

    def __init__(self, model: Model, budget: Budget | None, options: dict[str, Any]):
        self._calibrator = Calibrator(model, budget=budget, **options)
        self._first = 0

    @staticmethod
    def key(options: dict[str, Any]) -> str:
        return repr(("calibrate", sorted(options.items())))

    def begin(self, options: dict[str, Any], first: int) -> None:
        del options
        self._calibrator.clear()
        self._first = first

    def run(self, number: int, sample: Sample) -> None:
        del number
        self._calibrator.run_sample(sample.subgraph, sample.inputs)

    def finish(self) -> tuple[bytes, tuple[int, int, int] | None]:
        found = self._calibrator.first_not_finite
        return self._calibrator.calibration().to_bytes(), found and (self._first + found[0], *found[1:])
