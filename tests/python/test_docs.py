# SPDX-License-Identifier: Apache-2.0
"""What the documentation shows is what there is: the list of ops, and the examples of custom ops."""

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from test_cli import PROGRAM, leadline_json
from tflite_builder import ModelBuilder

import leadline

ROOT = Path(__file__).parents[2]
BUILTIN_CODES = range(162)
CUSTOM = 32
needs_program = pytest.mark.skipif(PROGRAM is None, reason="the leadline program is not built")


@needs_program
def test_ops_page_is_current():
    text = subprocess.run([PROGRAM, "ops", "--markdown"], capture_output=True, text=True, check=True).stdout
    assert (ROOT / "docs" / "ops.md").read_text() == text, "run: .venv/bin/leadline ops --markdown > docs/ops.md"


@needs_program
def test_every_builtin_op_runs_or_has_a_reason():
    ops = leadline_json("ops")["ops"]
    assert {op["code"] for op in ops} >= set(BUILTIN_CODES) - {CUSTOM}
    for op in ops:
        assert op["types"] if op["runs"] else op["reason"], op
    assert len({op["name"] for op in ops}) == len(ops)


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "docs" / "custom_ops.md").read_text(), re.DOTALL)


def test_the_python_ops_of_the_page_run():
    builder = ModelBuilder()
    graph = builder.subgraph()
    x = graph.input("x", np.float32, [4])
    options = bytes.fromhex("666163746f72000108000000040000000100000001000000000040400e052601")  # {"factor": 3.0}
    graph.output(graph.op("Scale", [x], ("y", np.float32, [4]), custom_options=options))
    namespace = {}
    try:
        for code in blocks("python"):
            exec(code, namespace)
            interpreter = leadline.lite.Interpreter(model_content=builder.build())
            interpreter.allocate_tensors()
            interpreter.set_tensor(0, np.arange(4, dtype=np.float32))
            interpreter.invoke()
            assert interpreter.get_tensor(1).tolist() == [0, 3, 6, 9]
            assert interpreter.plan().steps[0].scratch_bytes == 1024
            assert interpreter.plan().peak_bytes == interpreter.counted_peak_bytes()
    finally:
        leadline.unregister_op("Scale")
    assert len(blocks("python")) == 2


def test_the_cpp_op_of_the_page_is_that_of_the_example():
    example = (ROOT / "examples" / "custom_op.cc").read_text()
    assert len(blocks("cpp")) == 2
    for code in blocks("cpp"):
        assert code.strip() in example
