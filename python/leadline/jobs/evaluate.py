# SPDX-License-Identifier: Apache-2.0
"""leadline.evaluate: runs a model over a data set and measures its answers, here or on the workers of an executor."""

from __future__ import annotations

import concurrent.futures
import os
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from leadline import _leadline
from leadline._leadline import (
    Budget,
    EvaluateJob,
    EvaluateOptions,
    EvaluateResult,
    Evaluator,
    JobPlan,
    Model,
    SampleReader,
    SampleSource,
    ScoreSum,
)
from leadline._native.arguments import as_budget, as_model, as_threads
from leadline.jobs import calibrate as _calibrate
from leadline.jobs.dataset import DatasetWarning
from leadline.jobs.job import planned_by
from leadline.jobs.progress import progress_of, with_timeout
from leadline.jobs.samples import sample_source, to_numpy

Metric = str | Callable[[list[np.ndarray], list[np.ndarray]], float]


@dataclass
class _Sample:
    """A sample that the engine has checked, in a form that can be sent anywhere."""

    subgraph: int
    inputs: list[tuple]
    targets: list[tuple]

    @property
    def nbytes(self) -> int:
        return sum(len(data) for _, _, data in self.inputs)


class _Function:
    """A metric of the user's, as the engine calls it."""

    def __init__(self, function: Callable[..., float]) -> None:
        self.function = function

    def __call__(self, index: int, outputs: list, targets: list, expected: list) -> float:
        return float(
            self.function(
                [to_numpy(*output) for output in outputs], [to_numpy(*other) for other in targets or expected]
            )
        )


def _threads(num_threads: int | None, executor: concurrent.futures.Executor | None) -> int:
    """Each worker of an executor runs one sample at a time."""
    return as_threads(num_threads) if executor is None else 1


def _settings(metric: Metric, **settings: Any) -> dict[str, Any]:
    """Arguments of EvaluateOptions."""
    if callable(metric):
        return {"metric": "function", "function": _Function(metric), **settings}
    return {"metric": metric, **settings}


def _plan(
    model: Model | bytes | str | os.PathLike,
    dataset: Any = None,
    labels: Any = None,
    *,
    metric: Metric = "accuracy",
    top_k: int = 1,
    reference: Model | bytes | str | os.PathLike | None = None,
    output: int = 0,
    max_samples: int = 0,
    per_sample: bool = False,
    max_confusion_classes: int = 256,
    num_threads: int | None = None,
    executor: concurrent.futures.Executor | None = None,
    budget: Budget | int | str | None = None,
    progress: Any = None,
    timeout: float | None = None,
    **pictures: Any,
) -> JobPlan:
    budget = as_budget(budget)
    loaded = as_model(model, budget)
    other = None if reference is None else as_model(reference, budget)
    settings = _settings(
        metric,
        top_k=top_k,
        output=output,
        max_samples=max_samples,
        per_sample=per_sample,
        max_confusion_classes=max_confusion_classes,
    )
    options = EvaluateOptions(reference=other, budget=budget, num_threads=_threads(num_threads, executor), **settings)
    source = None if dataset is None else sample_source(dataset, labels, loaded, budget=budget, **pictures)
    return EvaluateJob(loaded, options).plan(source)


@planned_by(_plan)
@with_timeout
def evaluate(
    model: Model | bytes | str | os.PathLike,
    dataset: Any,
    labels: Any = None,
    *,
    metric: Metric = "accuracy",
    top_k: int = 1,
    reference: Model | bytes | str | os.PathLike | None = None,
    output: int = 0,
    max_samples: int = 0,
    per_sample: bool = False,
    max_confusion_classes: int = 256,
    num_threads: int | None = None,
    executor: concurrent.futures.Executor | None = None,
    budget: Budget | int | str | None = None,
    progress: bool | Callable[[int, int | None], object] | None = None,
    **pictures: Any,
) -> EvaluateResult:
    """Runs a model over a data set, in order, one sample of each thread in memory, and measures its answers.

        result = leadline.evaluate("model.tflite", images, labels)
        print(result.value, result.correct)
        print(leadline.evaluate.plan("model.tflite"))     # what it will take

    Args:
      model: a .tflite file, its bytes, or a leadline.Model.
      dataset: samples as leadline.calibrate takes them, pairs of sample and label, a DataLoader that gives batches of
        them, or a path: a .npy or .npz file, a folder of them, a folder of PNG and JPEG pictures, or one of class
        folders with pictures.
      labels: what the model should answer: one item for each sample. For a path: the path of a .npy file,
        "file.npz:array", the name of an array in the files, or a .csv file of file,label.
      metric: "accuracy"; "mse", "mae" or "cosine" against labels that are expected outputs, or against the reference
        model; "agreement" with the reference model's top answer; or a function of the outputs and the labels (or the
        outputs of the reference model), two lists of arrays.
      top_k: for accuracy: the label may be any of this many top answers.
      reference: a model to compare with.
      output: position of the output that is judged.
      max_samples: 0: all.
      per_sample: keep the value of each sample.
      max_confusion_classes: keep the table of answers for at most this many classes; 0: no table.
      num_threads: samples that run at the same time; None: as many as CPUs. Not with an executor.
      executor: any concurrent.futures.Executor whose workers have Leadline: a process or thread pool, or Dask's
        client.get_executor().
      budget: the most memory to take, of this process and of each worker.
      progress, timeout: as in leadline.calibrate.
      image_size, mean, scale, colors, resize, classes: for pictures: (height, width) where the model takes any; values
        are (pixel - mean) * scale; "rgb", "bgr" or "grey"; "bilinear" or "nearest"; a text file of class names.

    The result is the same to the last bit, however many threads or workers there were.

    Raises BudgetError before the first sample is read when the plan does not fit the budget.
    """
    budget = as_budget(budget)
    loaded = as_model(model, budget)
    other = None if reference is None else as_model(reference, budget)
    settings = _settings(
        metric,
        top_k=top_k,
        output=output,
        max_samples=max_samples,
        per_sample=per_sample,
        max_confusion_classes=max_confusion_classes,
    )
    source = sample_source(dataset, labels, loaded, budget=budget, **pictures)
    if executor is not None:
        options = EvaluateOptions(reference=other, budget=budget, **settings)
        result, findings = _distribute(
            executor, model, loaded, reference, other, budget, settings, options, source, progress
        )
    else:
        options = EvaluateOptions(
            reference=other, budget=budget, num_threads=_threads(num_threads, executor), **settings
        )
        job = EvaluateJob(loaded, options)
        with progress_of(progress, "Evaluating") as report:
            # The engine says -1 where the number of samples is not known.
            told = None if report is None else lambda done, total: report(done, None if total < 0 else total)
            result = job.run(source, told)
        findings = result.findings
    for severity, message, _, _ in findings:
        if severity == "warning":
            warnings.warn(message, DatasetWarning, stacklevel=3)
    return result


# Workers ----------------------------------------------------------------------------------------


def _distribute(
    executor: concurrent.futures.Executor,
    given: Any,
    model: Model,
    given_reference: Any,
    reference: Model | None,
    budget: Budget | None,
    settings: dict[str, Any],
    options: EvaluateOptions,
    source: SampleSource,
    progress: Any,
) -> tuple[EvaluateResult, list]:
    start = time.perf_counter()
    EvaluateJob(model, options).admit(source)  # what one worker takes
    reader = SampleReader(model, source, settings["max_samples"])
    content = None if reference is None else _content(given_reference, reference)
    work = _DistributedScores(executor, given, model, budget, {"settings": settings, "reference": content})
    work.sum = ScoreSum(options)
    with progress_of(progress, "Evaluating") as report:
        work.run(_checked(reader), reader.size, report)
    return work.sum.result(time.perf_counter() - start), reader.findings


def _content(given: Any, model: Model) -> bytes:
    if isinstance(given, (str, os.PathLike)):
        return Path(given).read_bytes()
    return model.to_tflite() if isinstance(given, Model) else bytes(given)


def _checked(reader: SampleReader) -> Iterator[_Sample]:
    while (sample := reader.next()) is not None:
        yield _Sample(*sample)


class _Scorer:
    """An evaluator in a worker. The function of the user's comes with each chunk."""

    def __init__(self, model: Model, budget: Budget | None, options: dict[str, Any]):
        self.reference = options["reference"]
        self._function: Any = None
        settings = dict(options["settings"])
        if "function" in settings:
            settings["function"] = self._call
        reference = None if self.reference is None else Model.from_bytes(self.reference, budget)
        self._evaluator = Evaluator(model, EvaluateOptions(reference=reference, budget=budget, **settings))

    def _call(self, *arguments: Any) -> float:
        return self._function(*arguments)

    def run(self, options: dict[str, Any], first: int, samples: list[_Sample]) -> list[tuple]:
        self._function = options["settings"].get("function")
        scores = []
        for number, sample in enumerate(samples, first):
            try:
                scores.append(self._evaluator.run(number, sample.subgraph, sample.inputs, sample.targets))
            except _leadline.Error as error:
                raise _calibrate._like(type(error), f"sample {number}: {error}", _calibrate._details(error)) from error
        return scores


def _score_chunk(
    digest: str,
    path: str | None,
    content: bytes | None,
    limit: int | None,
    options: dict[str, Any],
    first: int,
    samples: list[_Sample],
) -> tuple:
    """What a worker does. Returns ("done", scores), ("model",) when it has to be sent the model, or ("error", ...)."""
    try:
        held = _calibrate._find_model(digest, path, content, limit)
        if held is None:
            return ("model",)
        key = repr(
            ("evaluate", sorted((name, value) for name, value in options["settings"].items() if name != "function"))
        )
        with _calibrate._held_lock:
            place = next((i for i, (other, _) in enumerate(held.idle) if other == key), None)
            scorer = None if place is None else held.idle.pop(place)[1]
        if scorer is None or scorer.reference != options["reference"]:
            scorer = _Scorer(held.model, held.budget, options)
        scores = scorer.run(options, first, samples)
        with _calibrate._held_lock:
            held.idle.append((key, scorer))
        return ("done", scores)
    except _leadline.Error as error:  # a plain text comes through every kind of executor
        return ("error", type(error).__name__, str(error), _calibrate._details(error))


class _DistributedScores(_calibrate._Distributed):
    _doing = "evaluating"
    sum: ScoreSum

    def _task(self) -> Callable[..., tuple]:
        return _score_chunk

    def _merge(self, answer: tuple) -> None:
        for score in answer[1]:
            self.sum.add(score)
