# SPDX-License-Identifier: Apache-2.0
"""What the operating system sees: a run's resident memory grows by no more than was planned, plus 2 MB."""

import subprocess
import sys

import pytest

SLACK = 2 * 1024 * 1024
MODELS = [
    "mlperf_vww_mobilenet_float",
    "coral_tf2_mobilenet_v2_ptq_int8",
    "mp_iris_landmark",
    "mp_palm_detection_full",
    "ssd_mobilenet_v1_coco_uint8",
    "basic_pitch_nmp",
]

# A first model brings the code itself into memory; the second is measured.
CHILD = """
import os, sys
from leadline import lite

def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE")

def run(path):
    interpreter = lite.Interpreter(path, num_threads=2)
    interpreter.allocate_tensors()
    interpreter.invoke()
    return interpreter

warm = run(sys.argv[1])
before = resident()
interpreter = run(sys.argv[2])
print(resident() - before, interpreter.plan().peak_bytes)
"""


@pytest.mark.parametrize("name", MODELS)
def test_resident_growth_is_what_was_planned(name, shared):
    quantized = "int8" in name  # uint8 too
    warm = "mltk_keyword_spotting_on_off_v3_int8" if quantized else "mltk_keyword_spotting_on_off_v3_float"
    models = [str(shared / "models" / f"{model}.tflite") for model in (warm, name)]
    arguments = [sys.executable, "-c", CHILD, *models]
    output = subprocess.run(arguments, capture_output=True, text=True, check=True).stdout
    growth, planned = map(int, output.split())
    assert growth <= planned + SLACK, f"grew by {growth} bytes, planned {planned}"
