# SPDX-License-Identifier: Apache-2.0
"""Runs the models of the museum in a child process, with a time limit: in Leadline, or in the peer to see what it does.

As a program, it is that child: requests and answers are pickles on stdin and stdout.
"""

from __future__ import annotations

import importlib
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
TESTS = HERE.parent
sys.path[:0] = [str(HERE), str(TESTS / "conformance"), str(TESTS / "python")]

from exhibit import View  # noqa: E402
from peer import Answer, _read, _write, child_environment  # noqa: E402

PEER_BYTES = 6 << 30
ERRORS = ("Error", "InvalidModelError", "UnsupportedError", "InvalidArgumentError", "BudgetError", "IoError")


@dataclass
class Outcome:
    """What came of a view: "result", "error", "death" or "hang"; `text` says more."""

    kind: str
    text: str = ""
    outputs: list[list[np.ndarray]] | None = None
    left_bytes: int = 0  # charged after everything was given back


class Visitor:
    """A child that runs views one after the other; it is started again when one kills it."""

    def __init__(self, module: str, seconds: float = 20.0):
        self._command = [sys.executable, str(HERE / "visitor.py"), module]
        self._environment = child_environment(module)
        self._seconds = seconds
        self._child: subprocess.Popen | None = None

    def __enter__(self) -> Visitor:
        return self

    def __exit__(self, *_) -> None:
        self._end(kill=False)

    def look(self, shown: View) -> Outcome:
        if self._child is None:
            pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            self._child = subprocess.Popen(self._command, env=self._environment, **pipes)
            _read(self._child.stdout)  # it has imported everything: from here on, time is the model's
        try:
            _write(self._child.stdin, (shown.model(), shown.feeds, shown.budget, shown.from_file))
        except BrokenPipeError:
            pass  # how it died is seen below
        if not select.select([self._child.stdout], [], [], self._seconds)[0]:
            self._end(kill=True)
            return Outcome("hang", f"no answer after {self._seconds:g} s")
        try:
            answer, left_bytes = _read(self._child.stdout)
        except EOFError:
            return Outcome("death", _death(self._end(kill=False)))
        kind = "error" if answer.outputs is None else "result"
        return Outcome(kind, answer.error, answer.outputs, left_bytes)

    def _end(self, kill: bool) -> int:
        if self._child is None:
            return 0
        if kill:
            self._child.kill()
        self._child.stdin.close()
        code = self._child.wait(60)
        self._child.stdout.close()
        self._child = None
        return code


def _death(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"the process ended with {code}"


def judge(shown: View, outcome: Outcome) -> str:
    """Empty when Leadline did what it must, else what it did instead."""
    if outcome.kind not in ("result", "error"):
        return f"{shown.name}: {outcome.kind}: {outcome.text}"
    if outcome.left_bytes:
        return f"{shown.name}: {outcome.left_bytes} bytes are still charged"
    if shown.outputs is None:
        if outcome.kind == "result":
            return f"{shown.name}: runs, where an error about {', '.join(shown.refuses)} was expected"
        if outcome.text.split(": ")[1] not in ERRORS:
            return f"{shown.name}: no error of Leadline's: {outcome.text}"
        missing = [word for word in shown.refuses if word.lower() not in outcome.text.lower()]
        return f"{shown.name}: {outcome.text}\n    does not say {', '.join(missing)}" if missing else ""
    if outcome.kind == "error":
        return f"{shown.name}: does not run: {outcome.text}"
    return difference(shown, outcome.outputs)


def difference(shown: View, outputs: list[list[np.ndarray]]) -> str:
    """Empty when the outputs are those that numpy states."""
    for run, (got, wanted) in enumerate(zip(outputs, shown.outputs, strict=True)):
        if len(got) != len(wanted):
            return f"{shown.name}: {len(got)} outputs, expected {len(wanted)}"
        for g, w in zip(got, map(np.asarray, wanted), strict=True):
            if g.shape != w.shape or (w.dtype.kind != "O" and g.dtype != w.dtype):
                return f"{shown.name}: run {run}: {g.dtype} {g.shape}, expected {w.dtype} {w.shape}"
            same = np.array_equal(g, w) if w.dtype.kind == "O" else np.allclose(
                g.astype(np.float64), w.astype(np.float64), 0, shown.tolerance, equal_nan=True
            )  # fmt: skip
            if not same:
                return f"{shown.name}: run {run}: got {g.reshape(-1)[:8]}, expected {w.reshape(-1)[:8]}"
    return ""


def _answer(make, feeds: list[list[np.ndarray] | None]) -> Answer:
    """As the conformance suite does it, but a feed of None sets nothing."""
    stage = "load"
    try:
        interpreter = make()
        outputs: list[list[np.ndarray]] = []
        for values in feeds:
            details = interpreter.get_input_details() if values is not None else []
            stage = "resize"
            shapes = [tuple(tensor["shape"]) for tensor in details]
            for tensor, value, shape in zip(details, values or (), shapes, strict=True):
                if shape != value.shape:
                    interpreter.resize_tensor_input(tensor["index"], list(value.shape))
            stage = "allocate"
            if not outputs or shapes != [value.shape for value in values or ()]:
                interpreter.allocate_tensors()
            stage = "set"
            for tensor, value in zip(details, values or (), strict=True):
                interpreter.set_tensor(tensor["index"], value)
            stage = "invoke"
            interpreter.invoke()
            stage = "get"
            outputs.append([np.array(interpreter.get_tensor(t["index"])) for t in interpreter.get_output_details()])
        return Answer(outputs)
    except Exception as error:  # whatever the interpreter raises is its answer
        return Answer(None, f"{stage}: {type(error).__name__}: {error}")


def _run(name: str, module, request: tuple) -> tuple[Answer, int]:
    content, feeds, limit, from_file = request
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tflite"
        if from_file:
            path.write_bytes(content)
        where = {"model_path": str(path)} if from_file else {"model_content": content}
        if name != "leadline.lite":
            return _answer(lambda: module.Interpreter(**where, num_threads=1), feeds), 0
        from leadline import Budget

        budget = Budget(limit)
        answer = _answer(lambda: module.Interpreter(**where, num_threads=1, budget=budget), feeds)
        return answer, budget.used


def main() -> None:
    name = sys.argv[1]
    module = importlib.import_module(name)
    if name != "leadline.lite":  # Leadline has a budget; others must not take the machine
        resource.setrlimit(resource.RLIMIT_AS, (PEER_BYTES, PEER_BYTES))
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print must not mix with the answers
    _write(answers, time.time())
    while True:
        try:
            request = _read(requests)
        except EOFError:
            return
        _write(answers, _run(name, module, request))


if __name__ == "__main__":
    main()
