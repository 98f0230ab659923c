# SPDX-License-Identifier: Apache-2.0
"""Under real limits of the address space, and with files that fail, Python gets an exception and lives on."""

import os
import subprocess
import sys
import textwrap

import pytest
import sample_models

import leadline
from leadline import lite

# Each limit leaves a little more than the last. The job runs again without a limit, and must give what it gave before.
CHILD = """
import gc, hashlib, os, resource, sys
import numpy as np
import leadline
from leadline import lite

path, job_name, step, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])


def run(model_path=None, model_content=None):
    interpreter = lite.Interpreter(model_path=model_path, model_content=model_content)
    interpreter.allocate_tensors()
    shape = interpreter.get_input_details()[0]["shape"]
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.ones(shape, np.float32))
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).tobytes()


def quantize():
    model = leadline.Model.load(path)
    return bytes(leadline.quantize(model, mode="dynamic", progress=False))


job = {"run": lambda: run(model_path=path), "quantize": quantize}[job_name]
digest = lambda: hashlib.sha256(job()).hexdigest()
expected = digest()
expected = digest()
seen = {}
for i in range(count):
    gc.collect()
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + i * step, resource.RLIM_INFINITY))
    try:
        outcome = digest()
    except (MemoryError, OSError) as error:
        outcome = type(error).__name__
        del error
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    if len(outcome) == 64:
        assert outcome == expected, i
        outcome = "success"
    seen[outcome] = seen.get(outcome, 0) + 1
    assert digest() == expected, i
gc.collect()
print(seen)
assert seen.get("success"), "the last limit should leave enough"
assert len(seen) > 1, "the first limit should not leave enough"
"""


@pytest.mark.parametrize(
    ("job", "size", "step"), [("run", 1024, 64 << 10), ("run", 64, 8 << 10), ("quantize", 1024, 256 << 10)]
)
def test_every_limit_gives_a_result_or_an_exception(tmp_path, job, size, step):
    path = tmp_path / "model.tflite"
    path.write_bytes(sample_models.dense(size, size))
    # One arena of malloc and no trimming at its end: the limits hit the same places again and again.
    environment = os.environ | {"MALLOC_ARENA_MAX": "1", "OPENBLAS_NUM_THREADS": "1", "LEADLINE_MEMORY": "1GiB"}
    child = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(CHILD), str(path), job, str(step), "150"],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment,
        check=False,
    )
    assert child.returncode == 0, f"{child.returncode}: {child.stdout[-500:]}{child.stderr[-1500:]}"


def test_a_file_that_is_cut_off_is_an_error_and_no_death(tmp_path):
    path = tmp_path / "model.tflite"
    path.write_bytes(sample_models.dense(256, 256))
    interpreter = lite.Interpreter(model_path=str(path))
    os.truncate(path, 4096)
    with pytest.raises(OSError, match="model.tflite.*changed") as caught:
        interpreter.allocate_tensors()
    assert isinstance(caught.value, leadline.IoError)
    with pytest.raises(leadline.IoError):
        interpreter.allocate_tensors()


def test_errors_about_memory_are_memory_errors():
    assert issubclass(leadline.OutOfMemoryError, MemoryError)
    assert issubclass(leadline.OutOfMemoryError, leadline.Error)
    assert leadline.OutOfMemoryError.code == "out_of_memory"
