# SPDX-License-Identifier: Apache-2.0
"""Runs samples on the workers of an executor. In Python because executors are Python's: processes, threads, Dask.

Samples go to workers in chunks, a bounded number at a time, and what they come to is merged in order: the result is the
same to the byte, however many workers there were. A worker gets the model once and keeps it until another one comes.
"""

from __future__ import annotations

import concurrent.futures
import hashlib
import os
from _thread import allocate_lock
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from leadline import _leadline
from leadline._leadline import Budget, Error, InvalidArgumentError, Model, SampleReader
from leadline.jobs.progress import tell

# A chunk is sent at once; with 2 for each worker no worker waits for the next.
_CHUNK_SAMPLES, _CHUNK_BYTES = 16, 4 << 20
_WORKERS_UNKNOWN = 4
_BETWEEN_LOOKS = 0.05  # seconds
# Dask logs an error for each chunk that is cancelled while it runs.
_QUIETLY_CANCELLED = (concurrent.futures.ThreadPoolExecutor, concurrent.futures.ProcessPoolExecutor)


@dataclass
class Sample:
    """A sample that the engine has checked, in a form that can be sent anywhere."""

    subgraph: int
    inputs: list[tuple]
    targets: list[tuple]

    @property
    def nbytes(self) -> int:
        return sum(len(data) for _, _, data in self.inputs)


class Runner(Protocol):
    """What a worker runs samples with, made of (model, budget, options) and used again for equal keys."""

    @staticmethod
    def key(options: dict[str, Any]) -> str: ...
    def begin(self, options: dict[str, Any], first: int) -> None: ...
    def run(self, number: int, sample: Sample) -> None: ...
    def finish(self) -> Any: ...


def distribute(
    executor: concurrent.futures.Executor,
    runner: Callable[[Model, Budget | None, dict[str, Any]], Runner],
    given: Any,
    model: Model,
    budget: Budget | None,
    options: dict[str, Any],
    reader: SampleReader,
    merge: Callable[[Any], object],
    progress: Callable[..., object] | None,
    doing: str,
) -> None:
    """Runs what `reader` reads on the workers, and calls `merge` with what the runner made of each chunk, in order.
    `given` is the model as the user gave it: workers can read a file themselves."""
    _Distributed(executor, runner, given, model, budget, options, merge, doing).run(reader, progress)


def content_of(given: Any, model: Model) -> bytes:
    """The bytes of a model that was given in any form."""
    if isinstance(given, (str, os.PathLike)):
        return Path(given).read_bytes()
    return model.to_tflite() if isinstance(given, Model) else bytes(given)


# Workers ----------------------------------------------------------------------------------------


class _Held:
    """A model in a worker, with the runners that are not in use."""

    def __init__(self, digest: str, model: Model, budget: Budget | None):
        self.digest = digest
        self.model = model
        self.budget = budget
        self.idle: list[tuple[str, Any]] = []

    def take(self, key: str) -> Any:
        with _held_lock:
            place = next((i for i, (other, _) in enumerate(self.idle) if other == key), None)
            return None if place is None else self.idle.pop(place)[1]

    def give_back(self, key: str, runner: Any) -> None:
        with _held_lock:
            self.idle.append((key, runner))


_held: _Held | None = None
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
    kind: Any,
) -> tuple:
    """What a worker does. Returns ("done", what the runner made), ("model",) when it has to be sent the model, or
    ("error", ...)."""
    try:
        held = _find_model(digest, path, content, limit)
        if held is None:
            return ("model",)
        key = kind.key(options)
        runner = held.take(key) or kind(held.model, held.budget, options)
        runner.begin(options, first)
        for number, sample in enumerate(samples, first):
            try:
                runner.run(number, sample)
            except Error as error:
                raise _like(type(error), f"sample {number}: {error}", _details(error)) from error
        result = runner.finish()
        held.give_back(key, runner)
        return ("done", result)
    except Error as error:  # a plain text comes through every kind of executor
        return ("error", type(error).__name__, str(error), _details(error))


def _details(error: Error) -> dict[str, Any]:
    return {name: getattr(error, name) for name in ("code", "needed", "limit") if hasattr(error, name)}


def _like(kind: type[Error], message: str, details: dict[str, Any]) -> Error:
    """An error of this kind with another message."""
    error = kind(message)
    for name, value in details.items():
        setattr(error, name, value)
    return error


class _Distributed:
    """Sends chunks to an executor and merges the answers in their order."""

    def __init__(
        self,
        executor: concurrent.futures.Executor,
        runner: Any,
        given: Any,
        model: Model,
        budget: Budget | None,
        options: dict[str, Any],
        merge: Callable[[Any], object],
        doing: str,
    ):
        if not hasattr(executor, "submit"):
            raise InvalidArgumentError(
                f"executor should be a concurrent.futures.Executor; got {type(executor).__name__}"
            )
        self._executor = executor
        self._runner = runner
        self._path = os.path.abspath(given) if isinstance(given, (str, os.PathLike)) else None
        self._content = content_of(given, model)
        self._digest = hashlib.sha256(self._content).hexdigest()
        self._budget = budget
        self._options = options
        self._model = model
        self._merge = merge
        self._doing = doing
        self._in_flight = 2 * _workers_of(executor)
        self._pending: deque[tuple[int, list[Sample], concurrent.futures.Future]] = deque()

    def run(self, reader: SampleReader, progress: Callable[..., object] | None) -> None:
        total = reader.size
        # Threads of this process find the model here, and so do processes that are forked from it.
        _hold(self._digest, self._model, self._budget)
        try:
            for first, chunk in _chunks(reader):
                self._submit(first, chunk)
                while len(self._pending) >= self._in_flight:
                    self._take(total, progress)
            while self._pending:
                self._take(total, progress)
        finally:
            self._stop()
            _release(self._digest)

    def _submit(self, first: int, chunk: list[Sample], *, content: bytes | None = None, front: bool = False) -> None:
        limit = None if self._budget is None else self._budget.limit
        arguments = (self._digest, self._path, content, limit, self._options, first, chunk, self._runner)
        try:
            future = self._executor.submit(_run_chunk, *arguments)
        except RuntimeError as error:  # a pool that is broken or was shut down
            raise Error(f"the executor takes no more work: {error}") from error
        (self._pending.appendleft if front else self._pending.append)((first, chunk, future))

    def _take(self, total: int | None, progress: Callable[..., object] | None) -> None:
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
        self._merge(answer[1])
        tell(progress, last + 1, total)

    def _stop(self) -> None:
        """After a failure: nothing of ours keeps running."""
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
    """How many chunks run at a time, as far as executors say."""
    workers = getattr(executor, "_max_workers", None)
    client: Any = getattr(executor, "_client", None)  # Dask's
    if workers is None and hasattr(client, "nthreads"):
        workers = sum(client.nthreads().values())
    return workers or _WORKERS_UNKNOWN


def _chunks(reader: SampleReader) -> Iterator[tuple[int, list[Sample]]]:
    """Chunks of a few samples or a few megabytes, with the number of their first sample."""
    first, chunk, size = 0, [], 0
    while (fields := reader.next()) is not None:
        sample = Sample(*fields)
        chunk.append(sample)
        size += sample.nbytes
        if len(chunk) >= _CHUNK_SAMPLES or size >= _CHUNK_BYTES:
            yield first, chunk
            first, chunk, size = first + len(chunk), [], 0
    if chunk:
        yield first, chunk
