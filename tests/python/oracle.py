# SPDX-License-Identifier: Apache-2.0
"""LiteRT in a child process that answers one request after the other, because some models make it crash.

with Oracle() as oracle:
    inputs, outputs = oracle.run("model.tflite", seed="model")
"""

from __future__ import annotations

import os
import pickle
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
from model_list import seeded_inputs


class OracleError(Exception):
    """LiteRT did not run the model; `died`: it took its process down."""

    def __init__(self, message: str, died: bool):
        super().__init__(message)
        self.died = died


class Oracle:
    """Starts the child when it is needed, and again after it died."""

    def __init__(self):
        self._child: subprocess.Popen | None = None

    def __enter__(self) -> Oracle:
        return self

    def __exit__(self, *_) -> None:
        if self._child:
            self._child.stdin.close()
            self._child.wait(timeout=60)
            self._child.stdout.close()

    def run(self, model: str | Path | bytes, seed: str) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Inputs of model_list.seeded_inputs() and the outputs LiteRT computes from them, with one thread."""
        if self._child is None:
            command = [sys.executable, str(Path(__file__).resolve())]
            pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            # Sanitizers that are loaded first (tools/sanitized_tests.sh) are not for LiteRT.
            environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
            self._child = subprocess.Popen(command, env=environment, **pipes)
        try:
            _send(self._child.stdin, (model, seed))
            ok, answer = _receive(self._child.stdout)
        except (BrokenPipeError, EOFError) as error:
            code = self._child.wait(timeout=60)
            self._child = None
            raise OracleError(f"LiteRT died with {code}", died=True) from error
        if not ok:
            raise OracleError(answer, died=False)
        return answer


def _send(stream, message) -> None:
    data = pickle.dumps(message)
    stream.write(struct.pack("<Q", len(data)) + data)
    stream.flush()


def _receive(stream):
    header = stream.read(8)
    if len(header) < 8:
        raise EOFError
    return pickle.loads(stream.read(struct.unpack("<Q", header)[0]))


def _answer(model: str | Path | bytes, seed: str) -> tuple[list[np.ndarray], list[np.ndarray]]:
    from ai_edge_litert.interpreter import Interpreter

    source = {"model_content": model} if isinstance(model, bytes) else {"model_path": str(model)}
    interpreter = Interpreter(**source, num_threads=1)
    interpreter.allocate_tensors()
    inputs = seeded_inputs(seed, interpreter.get_input_details())
    for details, value in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(details["index"], value)
    interpreter.invoke()
    return inputs, [np.asarray(interpreter.get_tensor(item["index"])) for item in interpreter.get_output_details()]


def _serve() -> None:
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    while True:
        try:
            request = _receive(requests)
        except EOFError:
            return
        try:
            message = (True, _answer(*request))
        except Exception as error:
            message = (False, f"{type(error).__name__}: {error}")
        _send(answers, message)


if __name__ == "__main__":
    _serve()
