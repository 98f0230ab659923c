# SPDX-License-Identifier: Apache-2.0
"""Runs the samples of a representative dataset, here or on the workers of an executor, and merges what they recorded.

Samples go to workers in chunks, a bounded number at a time, and come back as statistics that are merged in order: the
result is the same to the byte, however many workers there were. A worker gets the model once and keeps it until another
one comes.
"""

from __future__ import annotations

import concurrent.futures
import hashlib
import os
from _thread import allocate_lock
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from leadline import _leadline
from leadline._leadline import (
    Budget,
    CalibrateJob,
    Calibration,
    CalibrationMethod,
    Calibrator,
    Error,
    InvalidArgumentError,
    JobPlan,
    Model,
)
from leadline._native import tensors
from leadline._native.arguments import as_budget, as_method, as_model, as_threads
from leadline.jobs.dataset import DatasetReader, Finding, Sample, lint_dataset as _lint_model_dataset, open_dataset
from leadline.jobs.job import planned_by
from leadline.jobs.progress import progress_of, tell, with_timeout

# A chunk is sent at once; with 2 for each worker no worker waits for the next.
_CHUNK_SAMPLES, _CHUNK_BYTES = 16, 4 << 20
_WORKERS_UNKNOWN = 4
# Dask logs an error for each chunk that is cancelled while it runs.
_QUIETLY_CANCELLED = (concurrent.futures.ThreadPoolExecutor, concurrent.futures.ProcessPoolExecutor)


def _plan(
    model,
    dataset=None,
    method=None,
    *,
    executor=None,
    budget=None,
    num_threads=1,
    keep_state=False,
    progress=None,
    timeout=None,
) -> JobPlan:
    budget = as_budget(budget)
    return CalibrateJob(as_model(model, budget), budget=budget, **_options(method, num_threads, keep_state)).plan()


def _options(method, num_threads, keep_state) -> dict[str, Any]:
    return {
        "histograms": method is None or _leadline.needs_histograms(as_method(method)),
        "keep_state": bool(keep_state),
        "num_threads": as_threads(num_threads),
    }


@planned_by(_plan)
@with_timeout
def calibrate(
    model: Model | bytes | str | os.PathLike,
    dataset: Any,
    method: str | CalibrationMethod | None = None,
    *,
    executor: concurrent.futures.Executor | None = None,
    budget: Budget | int | str | None = None,
    num_threads: int | None = 1,
    keep_state: bool = False,
    progress: bool | Callable[[int, int | None], object] | None = None,
    timeout: float | None = None,
) -> Calibration:
    """Runs a float model on samples and returns what its tensors held.

        print(leadline.calibrate.plan("model.tflite"))  # what it will take, phase by phase
        calibration = leadline.calibrate("model.tflite", lambda: ([image] for image in images))
        calibration.range(subgraph=0, tensor=5)

    Args:
      model: a .tflite file, its bytes, or a leadline.Model.
      dataset: samples in any form that TFLiteConverter.representative_dataset takes: a function that yields lists of
        arrays, dicts by input name, or pairs of signature key and dict; a list or an array of samples works too.
      method: what the ranges will be chosen by. "min_max" and "moving_average" take less memory and time; without one
        every method can be used later.
      executor: any concurrent.futures.Executor whose workers have Leadline: a process or thread pool, or Dask's
        client.get_executor(). The result is the same to the byte.
      budget: the most memory to take, of this process and of each worker.
      num_threads: threads of one run.
      keep_state: variables keep their values from sample to sample; for models that take a stream in pieces. Otherwise
        every sample begins with the initial state. Cannot be split, so not with an executor.
      progress: called with the number of samples done, and of all samples or None; stops the work when it returns
        False. None shows a bar when it takes more than a second and a person can see it, True always, False never.
      timeout: seconds after which the work ends with TimeLimitError. Work of an executor that has begun is waited for.

    Raises:
      InvalidArgumentError: a sample that cannot serve, by number and input, before it is run.
      BudgetError: the statistics or a run do not fit the budget.

    Warns with leadline.DatasetWarning about samples that may not be what was meant (see lint_dataset).
    """
    del timeout  # kept by with_timeout
    return run_calibration(
        model,
        dataset,
        method,
        executor=executor,
        budget=as_budget(budget),
        num_threads=num_threads,
        keep_state=keep_state,
        progress=progress,
    )


def run_calibration(
    model,
    dataset,
    method,
    *,
    executor=None,
    budget=None,
    num_threads=1,
    keep_state=False,
    progress=None,
    admitted=False,
) -> Calibration:
    """calibrate() for jobs that calibrate on their way: `admitted` when their plan, which includes this, was."""
    loaded = as_model(model, budget)
    options = _options(method, num_threads, keep_state)
    if executor is not None and keep_state:
        raise InvalidArgumentError("keep_state needs the samples in one piece: leave out executor=")
    reader = DatasetReader(loaded)
    samples, total = open_dataset(dataset)
    with progress_of(progress, "Calibrating") as report:
        if executor is None:
            if not admitted:
                CalibrateJob(loaded, budget=budget, **options).admit()
            runner = _Runner(loaded, budget, options)
            for number, sample in enumerate(reader.samples(samples)):
                runner.run(number, sample)
                tell(report, number + 1, total)
            result, not_finite = runner.calibrator.calibration(), runner.calibrator.first_not_finite
        else:
            work = _Distributed(executor, model, loaded, budget, options)
            result = work.run(reader.samples(samples), total, report)
            not_finite = work.first_not_finite
    reader.look_at(result)
    if not_finite is not None:
        reader.note_not_finite(*not_finite)
    reader.warn()
    return result


def lint_dataset(model: Model | bytes | str | os.PathLike, dataset: Any, limit: int | None = None) -> list[Finding]:
    """Checks a representative dataset without running the model: shapes, types, NaN, constant inputs, values far
    outside of what is usual. Reads all samples, or the first `limit`; an error ends the reading and comes last."""
    return _lint_model_dataset(as_model(model, None), dataset, limit)


def _details(error: Error) -> dict[str, Any]:
    return {name: getattr(error, name) for name in ("code", "needed", "limit") if hasattr(error, name)}


def _like(kind: type[Error], message: str, details: dict[str, Any]) -> Error:
    """An error of this kind with another message."""
    error = kind(message)
    for name, value in details.items():
        setattr(error, name, value)
    return error


class _Runner:
    """A calibrator and the shapes its inputs have."""

    def __init__(self, model: Model, budget: Budget | None, options: dict[str, Any]):
        self.calibrator = Calibrator(model, budget=budget, **options)
        self._specs: dict[int, list[tensors.TensorSpec]] = {}

    def run(self, number: int, sample: Sample) -> None:
        try:
            self._run(sample)
        except Error as error:
            raise _like(type(error), f"sample {number}: {error}", _details(error)) from error

    def _run(self, sample: Sample) -> None:
        interpreter = self.calibrator.interpreter(sample.subgraph)
        specs = self._specs.get(sample.subgraph)
        if specs is None or any(spec.shape != array.shape for spec, array in zip(specs, sample.arrays, strict=True)):
            for index, array in zip(interpreter.inputs, sample.arrays, strict=True):
                interpreter.resize_input(index, array.shape)
            specs = [tensors.TensorSpec.of(interpreter.tensor_info(index)) for index in interpreter.inputs]
            self._specs[sample.subgraph] = specs
        for spec, array in zip(specs, sample.arrays, strict=True):
            interpreter.set_tensor(spec.index, tensors.to_bytes(array, spec))
        self.calibrator.add_sample(sample.subgraph)


# Workers ----------------------------------------------------------------------------------------


class _Held:
    """A model in a worker, with the runners that are not in use."""

    def __init__(self, digest: str, model: Model, budget: Budget | None):
        self.digest = digest
        self.model = model
        self.budget = budget
        self.idle: list[tuple[str, Any]] = []


_held: _Held | None = None
_BETWEEN_LOOKS = 0.05  # seconds
_held_lock = allocate_lock()


def _hold(digest: str, model: Model, budget: Budget | None) -> _Held:
    global _held
    with _held_lock:
        if _held is None or _held.digest != digest:
            _held = _Held(digest, model, budget)
        return _held


def _release(digest: str) -> None:
    global _held
    with _held_lock:
        if _held is not None and _held.digest == digest:
            _held = None


def _find_model(digest: str, path: str | None, content: bytes | None, limit: int | None) -> _Held | None:
    held = _held
    if held is not None and held.digest == digest:
        return held
    budget = None if limit is None else Budget(limit)
    if content is not None:
        return _hold(digest, Model.from_bytes(content, budget), budget)
    try:
        if path is None or hashlib.sha256(Path(path).read_bytes()).hexdigest() != digest:
            return None
    except OSError:  # a worker on another machine
        return None
    return _hold(digest, Model.load(path, budget), budget)


def _run_chunk(
    digest: str,
    path: str | None,
    content: bytes | None,
    limit: int | None,
    options: dict[str, Any],
    first: int,
    samples: list[Sample],
) -> tuple:
    """What a worker does. Returns ("done", bytes, first_not_finite), ("model",) when it has to be sent the model, or
    ("error", ...)."""
    try:
        held = _find_model(digest, path, content, limit)
        if held is None:
            return ("model",)
        key = repr(sorted(options.items()))
        with _held_lock:
            place = next((i for i, (other, _) in enumerate(held.idle) if other == key), None)
            runner = None if place is None else held.idle.pop(place)[1]
        if runner is None:
            runner = _Runner(held.model, held.budget, options)
        runner.calibrator.clear()
        for number, sample in enumerate(samples, first):
            runner.run(number, sample)
        result, not_finite = runner.calibrator.calibration().to_bytes(), runner.calibrator.first_not_finite
        if not_finite is not None:
            not_finite = (first + not_finite[0], *not_finite[1:])
        with _held_lock:
            held.idle.append((key, runner))
        return ("done", result, not_finite)
    except Error as error:  # a plain text comes through every kind of executor
        return ("error", type(error).__name__, str(error), _details(error))


class _Distributed:
    """Sends chunks to an executor and merges the answers in their order."""

    _doing = "calibrating"

    def __init__(self, executor, source: Any, model: Model, budget: Budget | None, options: dict[str, Any]):
        if not hasattr(executor, "submit"):
            raise InvalidArgumentError(
                f"executor should be a concurrent.futures.Executor; got {type(executor).__name__}"
            )
        self._executor = executor
        self._path = os.path.abspath(source) if isinstance(source, (str, os.PathLike)) else None
        if self._path is not None:
            self._content = Path(self._path).read_bytes()
        else:
            self._content = model.to_tflite() if isinstance(source, Model) else bytes(source)
        self._digest = hashlib.sha256(self._content).hexdigest()
        self._budget = budget
        self._options = options
        self._model = model
        self._in_flight = 2 * _workers_of(executor)
        self._pending: deque[tuple[int, list, concurrent.futures.Future]] = deque()
        self._result = Calibration()
        self.first_not_finite: tuple[int, int, int] | None = None

    def run(self, samples: Iterator[Any], total: int | None, progress) -> Calibration:
        # Threads of this process find the model here, and so do processes that are forked from it.
        _hold(self._digest, self._model, self._budget)
        try:
            for first, chunk in _chunks(samples):
                self._submit(first, chunk)
                while len(self._pending) >= self._in_flight:
                    self._take(total, progress)
            while self._pending:
                self._take(total, progress)
        finally:
            self._stop()
            _release(self._digest)
        return self._result

    def _submit(self, first: int, chunk: list[Sample], *, content: bytes | None = None, front: bool = False) -> None:
        limit = None if self._budget is None else self._budget.limit
        try:
            future = self._executor.submit(
                self._task(), self._digest, self._path, content, limit, self._options, first, chunk
            )
        except RuntimeError as error:  # a pool that is broken or was shut down
            raise Error(f"the executor takes no more work: {error}") from error
        (self._pending.appendleft if front else self._pending.append)((first, chunk, future))

    def _take(self, total: int | None, progress) -> None:
        """Waits for the oldest chunk."""
        first, chunk, future = self._pending.popleft()
        last = first + len(chunk) - 1
        try:
            answer = _result_of(future)
        except concurrent.futures.CancelledError as error:
            raise Error(f"{self._doing} samples {first} to {last} was cancelled") from error
        except Exception as error:
            raise Error(
                f"a worker failed while {self._doing} samples {first} to {last}: {type(error).__name__}: {error}"
            ) from error
        if answer[0] == "model":
            self._submit(first, chunk, content=self._content, front=True)
            return
        if answer[0] == "error":
            _, name, message, details = answer
            raise _like(getattr(_leadline, name, Error), message, details)
        self._merge(answer)
        tell(progress, last + 1, total)

    def _task(self) -> Callable[..., tuple]:
        """What a worker does."""
        return _run_chunk

    def _merge(self, answer: tuple) -> None:
        self._result.merge(Calibration.from_bytes(answer[1], self._budget))
        self.first_not_finite = self.first_not_finite or answer[2]

    def _stop(self) -> None:
        """After a failure: nothing of ours goes on running."""
        running = [future for _, _, future in self._pending]
        self._pending.clear()
        if isinstance(self._executor, _QUIETLY_CANCELLED):
            running = [future for future in running if not future.cancel()]
        # The others are few. They are waited for, but not for ever: their cluster may be gone.
        concurrent.futures.wait([future for future in running if not future.done()], timeout=60)


def _result_of(future: concurrent.futures.Future) -> Any:
    """Waits in small pieces, so that time limits hold."""
    while True:
        try:
            return future.result(timeout=_BETWEEN_LOOKS)
        except (concurrent.futures.TimeoutError, TimeoutError):
            if future.done():
                return future.result()
        _leadline.check_limits()


def _workers_of(executor: concurrent.futures.Executor) -> int:
    """How many chunks run at a time, as far as executors tell."""
    workers = getattr(executor, "_max_workers", None)
    client: Any = getattr(executor, "_client", None)  # Dask's
    if workers is None and hasattr(client, "nthreads"):
        workers = sum(client.nthreads().values())
    return workers or _WORKERS_UNKNOWN


def _chunks(samples: Iterator[Any]) -> Iterator[tuple[int, list]]:
    """Chunks of a few samples or a few megabytes, with the number of their first sample."""
    first, chunk, size = 0, [], 0
    for sample in samples:
        chunk.append(sample)
        size += sample.nbytes
        if len(chunk) >= _CHUNK_SAMPLES or size >= _CHUNK_BYTES:
            yield first, chunk
            first, chunk, size = first + len(chunk), [], 0
    if chunk:
        yield first, chunk
