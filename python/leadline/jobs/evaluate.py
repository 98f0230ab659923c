# SPDX-License-Identifier: Apache-2.0
"""leadline.evaluate: runs a model over a data set and measures its answers, here or on the workers of an executor."""

from __future__ import annotations

import concurrent.futures
import hashlib
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from leadline._leadline import (
    Budget,
    EvaluateJob,
    EvaluateOptions,
    EvaluateResult,
    Evaluator,
    Model,
    SampleReader,
    ScoreSum,
)
from leadline._native.arguments import as_budget, as_model, as_threads
from leadline.jobs.distribute import Sample, content_of, distribute
from leadline.jobs.job import Job, Planned
from leadline.jobs.progress import observing, progress_of
from leadline.jobs.samples import sample_source, to_numpy, warn_of

Metric = str | Callable[[list[np.ndarray], list[np.ndarray]], float]


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


def _settings(metric: Metric, **settings: Any) -> dict[str, Any]:
    """Arguments of EvaluateOptions."""
    if callable(metric):
        return {"metric": "function", "function": _Function(metric), **settings}
    return {"metric": metric, **settings}


@Job
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
    timeout: float | None = None,
    **pictures: Any,
) -> Planned[EvaluateResult]:
    """Runs a model over a data set, in order, one sample of each thread in memory, and measures its answers.

        result = leadline.evaluate("model.tflite", images, labels)
        print(result.value, result.correct)
        print(leadline.evaluate.plan("model.tflite"))     # what it will take

    Args:
      model: a .tflite file, its bytes, or a leadline.Model.
      dataset: samples as leadline.calibrate takes them, pairs of sample and label, a DataLoader that yields batches of
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
    del timeout  # kept by Job
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
    # Each worker of an executor runs one sample at a time.
    threads = as_threads(num_threads) if executor is None else 1
    options = EvaluateOptions(reference=other, budget=budget, num_threads=threads, **settings)
    source = sample_source(dataset, labels, loaded, budget=budget, **pictures)
    job = EvaluateJob(loaded, options)
    yield lambda: job.plan(source)
    if executor is None:
        with observing(progress, evaluate="Evaluating") as observer:
            result = job.run(source, observer)
        findings = result.findings
    else:
        start = time.perf_counter()
        job.admit(source)  # what one worker takes
        reader = SampleReader(loaded, source, max_samples)
        scores = ScoreSum(options)
        sent = {"settings": settings, "reference": None if other is None else content_of(reference, other)}

        def merge(answer: list[tuple]) -> None:
            for score in answer:
                scores.add(score)

        with progress_of(progress, "Evaluating") as report:
            distribute(executor, _Runner, model, loaded, budget, sent, reader, merge, report, "evaluating")
        result, findings = scores.result(time.perf_counter() - start), reader.findings
    warn_of(findings, 3)
    return result


class _Runner:
    """An evaluator in a worker. The function of the user's comes with each chunk."""

    def __init__(self, model: Model, budget: Budget | None, options: dict[str, Any]):
        self._function: Any = None
        self._scores: list[tuple] = []
        settings = dict(options["settings"])
        if "function" in settings:
            settings["function"] = self._call
        reference = None if options["reference"] is None else Model.from_bytes(options["reference"], budget)
        self._evaluator = Evaluator(model, EvaluateOptions(reference=reference, budget=budget, **settings))

    def _call(self, *arguments: Any) -> float:
        return self._function(*arguments)

    @staticmethod
    def key(options: dict[str, Any]) -> str:
        settings = sorted((name, value) for name, value in options["settings"].items() if name != "function")
        reference = options["reference"]
        return repr(("evaluate", settings, reference and hashlib.sha256(reference).hexdigest()))

    def begin(self, options: dict[str, Any], first: int) -> None:
        del first
        self._function = options["settings"].get("function")
        self._scores = []

    def run(self, number: int, sample: Sample) -> None:
        self._scores.append(self._evaluator.run(number, sample.subgraph, sample.inputs, sample.targets))

    def finish(self) -> list[tuple]:
        return self._scores
