# SPDX-License-Identifier: Apache-2.0
"""What a type checker makes of the public names. Not run: tools/lint_python.sh has mypy read it, strictly, so that a name
without a type (Any), or one that should be an error and is not, is a finding."""

from pathlib import Path

import numpy as np
from typing_extensions import assert_type

import leadline
from leadline import lite

Arrays = list[list[np.ndarray[tuple[int, ...], np.dtype[np.float32]]]]


def run(path: Path) -> None:
    interpreter = lite.Interpreter(path, budget="200MB", num_threads=2)
    assert_type(interpreter, lite.Interpreter)
    assert_type(interpreter.plan(), leadline.Plan)
    assert_type(interpreter.plan().categories, dict[str, int])
    assert_type(interpreter.budget, leadline.Budget)
    assert_type(interpreter.model.subgraph(0).nodes[0].op, str)
    assert_type(interpreter.get_signature_runner(), lite.SignatureRunner)
    assert_type(interpreter.profile().by_op(), dict[str, float])
    interpreter.invoke(timeout=1.5)
    interpreter.invoke(timeout="soon")  # type: ignore[arg-type]
    interpreter.infoke()  # type: ignore[attr-defined]


def convert(path: Path) -> None:
    converter = lite.TFLiteConverter.from_keras_file(path, budget="1GB")
    converter.optimizations = [lite.Optimize.DEFAULT]
    assert_type(converter.convert(progress=False, timeout=60), bytes)
    converter.convert(tiemout=60)  # type: ignore[call-arg]
    lite.experimental.QuantizationDebugger(converter=converter).run(timeout=60)


def jobs(path: Path, samples: Arrays) -> None:
    assert_type(leadline.quantize(path, "int8", samples, timeout=60), bytes)
    assert_type(leadline.calibrate(path, samples, timeout=60), leadline.Calibration)
    assert_type(leadline.debug(path, path, samples, timeout=60), leadline.DebugResult)
    assert_type(leadline.tune(path, samples, len, 0.5), leadline.TuneResult)
    leadline.quantise(path)  # type: ignore[attr-defined]


def guard() -> None:
    with leadline.watch("3GB") as watch:
        assert_type(watch, leadline.Watch)
        assert_type(watch.laps.report(), leadline.LapReport)
    for item in leadline.laps(range(3)):
        assert_type(item, int)
    assert_type(leadline.doctor(), leadline.DoctorReport)
    assert_type(leadline.postmortem(), leadline.Postmortem | None)
    try:
        leadline.guard(len, [], memory="2GB")
    except leadline.GuardError as error:
        assert_type(error.last_lines, list[str])
    except leadline.MemoryLimitError as error:
        assert_type(error.code, str)
