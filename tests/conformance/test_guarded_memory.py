# SPDX-License-Identifier: Apache-2.0
"""Inputs and outputs in memory of the caller whose neighbours may not be touched, for a part of the cases of every op.

Inputs are read-only pages. What a kernel reads or writes beside its tensors ends the process, so a child runs the cases
and says which one it is at. LEADLINE_LONG=1 runs all cases.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import leadline
from leadline import lite

ONE_IN = 1 if os.environ.get("LEADLINE_LONG") == "1" else 20
NONE, READ, READ_WRITE = 0, 1, 3
PRIVATE_ANONYMOUS = 0x22
RANDOM = {"MULTINOMIAL", "RANDOM_STANDARD_NORMAL", "RANDOM_UNIFORM"}  # seeds of 0 give other numbers every time

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
PAGE = os.sysconf("SC_PAGESIZE")


class Guarded:
    """An array that begins (or ends) where a page that may not be touched ends (or begins)."""

    def __init__(self, like: np.ndarray, at_end: bool):
        self.body = -(-like.nbytes // PAGE) * PAGE
        self.base = libc.mmap(None, self.body + 2 * PAGE, NONE, PRIVATE_ANONYMOUS, -1, 0)
        assert self.base
        if self.body:
            libc.mprotect(self.base + PAGE, self.body, READ_WRITE)
        start = self.base + PAGE + (self.body - like.nbytes if at_end else 0)
        memory = (ctypes.c_uint8 * like.nbytes).from_address(start)
        self.array = np.ndarray(like.shape, like.dtype, memory)
        self.array[...] = like

    def protect(self) -> None:
        if self.body:
            libc.mprotect(self.base + PAGE, self.body, READ)
        self.array.flags.writeable = False

    def free(self) -> None:
        libc.munmap(self.base, self.body + 2 * PAGE)


def run_bound(model: bytes, feed: list[np.ndarray], shapes: dict[int, np.ndarray], at_end: bool) -> dict:
    """The outputs that could be bound; `shapes` are arrays like them."""
    interpreter = lite.Interpreter(model_content=model, num_threads=2)
    inputs = interpreter.get_input_details()
    for details, value in zip(inputs, feed, strict=True):
        interpreter.resize_tensor_input(details["index"], np.shape(value))
    guarded = []
    copied = []
    for details, value in zip(inputs, map(np.asarray, feed), strict=True):
        try:
            guarded.append(Guarded(value, at_end))
            interpreter.bind_tensor(details["index"], guarded[-1].array)
            guarded[-1].protect()
        except (leadline.UnsupportedError, leadline.InvalidArgumentError, TypeError):
            copied.append((details["index"], value))
    results = {}
    for index, value in shapes.items():
        if index in [details["index"] for details in inputs] or value.dtype.hasobject:
            continue
        try:
            guarded.append(Guarded(np.zeros_like(value), at_end))
            interpreter.bind_tensor(index, guarded[-1].array)
            results[index] = guarded[-1].array
        except leadline.UnsupportedError:  # less than 8 bits
            continue
    interpreter.allocate_tensors()
    for index, value in copied:
        interpreter.set_tensor(index, value)
    interpreter.invoke()
    results = {index: result.tobytes() for index, result in results.items()}
    del interpreter
    for memory in guarded:
        memory.free()
    return results


def run_case(case) -> None:
    model, feed = case.model(), case.feeds()[0]
    interpreter = lite.Interpreter(model_content=model, num_threads=2)
    for details, value in zip(interpreter.get_input_details(), feed, strict=True):
        interpreter.resize_tensor_input(details["index"], np.shape(value))
    interpreter.allocate_tensors()
    for details, value in zip(interpreter.get_input_details(), feed, strict=True):
        interpreter.set_tensor(details["index"], value)
    interpreter.invoke()
    expected = {d["index"]: np.asarray(interpreter.get_tensor(d["index"])) for d in interpreter.get_output_details()}
    for at_end in (True, False):
        for index, result in run_bound(model, feed, expected, at_end).items():
            same = result == expected[index].tobytes() or case.op in RANDOM
            assert same, "the result differs from that in other memory"


def main() -> None:
    from test_conformance import CASES

    for op in sorted(CASES):
        for case in CASES[op][::ONE_IN]:
            print(op, case, flush=True)
            run_case(case)
    print("all", flush=True)


def test_kernels_touch_only_their_tensors():
    pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed")
    child = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=False)
    last = child.stdout.splitlines()[-1:]
    assert last == ["all"], f"ended with {child.returncode} in {last}: {child.stderr[-2000:]}"


if __name__ == "__main__":
    main()
