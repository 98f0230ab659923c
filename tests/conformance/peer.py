# SPDX-License-Identifier: Apache-2.0
"""An interpreter in a child process that runs one model after the other; it is started again when a model kills it.

As a program, it is that child: requests and answers are pickles on stdin and stdout.
"""

from __future__ import annotations

import importlib
import os
import pickle
import struct
import subprocess
import sys
from dataclasses import dataclass

import numpy as np

TIMEOUT_SECONDS = 60


@dataclass
class Answer:
    """What came of a model. `outputs` has a list per run; None: it failed with `error`, or took the process down."""

    outputs: list[list[np.ndarray]] | None
    error: str = ""
    died: bool = False


def child_environment(module: str) -> dict[str, str]:
    """What a child that imports `module` gets: sanitizers that are loaded first (tools/sanitized_tests.sh) are Leadline's."""
    return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD" or module.startswith("leadline")}


class Peer:
    """`module` has a class Interpreter; `resolver` names a member of its OpResolverType."""

    def __init__(self, module: str, resolver: str = ""):
        self._command = [sys.executable, os.path.abspath(__file__), module, resolver]
        self._environment = child_environment(module)
        self._child: subprocess.Popen | None = None

    def close(self) -> None:
        if self._child is not None:
            self._child.stdin.close()
            self._child.wait(TIMEOUT_SECONDS)
            self._child.stdout.close()
            self._child = None

    def send(self, model: bytes, feeds: list[list[np.ndarray]]) -> None:
        """Asks; the answer is for receive() to fetch, so that two peers can work at once."""
        if self._child is None:
            pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            self._child = subprocess.Popen(self._command, env=self._environment, **pipes)
        try:
            _write(self._child.stdin, (model, feeds))
        except BrokenPipeError:
            pass  # receive() finds out how it died

    def receive(self) -> Answer:
        try:
            return _read(self._child.stdout)
        except EOFError:
            code = self._child.wait(TIMEOUT_SECONDS)
            self._child.stdout.close()
            self._child = None
            return Answer(None, f"the process ended with {code}", died=True)

    def run(self, model: bytes, feeds: list[list[np.ndarray]]) -> Answer:
        self.send(model, feeds)
        return self.receive()


def _write(stream, message) -> None:
    data = pickle.dumps(message)
    stream.write(struct.pack("<Q", len(data)) + data)
    stream.flush()


def _read(stream):
    header = stream.read(8)
    if len(header) < 8:
        raise EOFError
    return pickle.loads(stream.read(struct.unpack("<Q", header)[0]))


def _answer(make, model: bytes, feeds: list[list[np.ndarray]]) -> Answer:
    stage = "load"
    try:
        interpreter = make(model)
        outputs = []
        for values in feeds:
            stage = "resize"
            details = interpreter.get_input_details()
            resized = False
            for tensor, value in zip(details, values, strict=True):
                if tuple(tensor["shape"]) != value.shape:
                    interpreter.resize_tensor_input(tensor["index"], list(value.shape))
                    resized = True
            stage = "allocate"
            if resized or not outputs:
                interpreter.allocate_tensors()
            stage = "set"
            for tensor, value in zip(details, values, strict=True):
                # LiteRT takes the pointer of a 0-d object array for the text itself.
                scalar_text = value.dtype.kind == "O" and value.ndim == 0
                interpreter.set_tensor(tensor["index"], np.array(value.item()) if scalar_text else value)
            stage = "invoke"
            interpreter.invoke()
            stage = "get"
            outputs.append([np.array(interpreter.get_tensor(t["index"])) for t in interpreter.get_output_details()])
        return Answer(outputs)
    except Exception as error:  # whatever the interpreter raises is its answer
        return Answer(None, f"{stage}: {type(error).__name__}: {error}")


def main() -> None:
    module = importlib.import_module(sys.argv[1])
    options = {}
    if sys.argv[2]:
        options["experimental_op_resolver_type"] = getattr(module.OpResolverType, sys.argv[2])
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print must not mix with the answers
    try:
        import ml_dtypes  # noqa: F401  LiteRT can describe bfloat16 only once numpy knows it
    except ImportError:
        pass
    while True:
        try:
            model, feeds = _read(requests)
        except EOFError:
            return
        make = lambda content: module.Interpreter(model_content=content, num_threads=1, **options)  # noqa: E731
        _write(answers, _answer(make, model, feeds))


if __name__ == "__main__":
    sys.modules["peer"] = sys.modules["__main__"]  # pickles name the class peer.Answer
    Answer.__module__ = "peer"
    main()
