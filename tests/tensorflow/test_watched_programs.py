# SPDX-License-Identifier: Apache-2.0
"""The watch beside TensorFlow, which does not survive a refused allocation: a program that works must not die of it."""

import os
import subprocess
import sys

PREDICT = """
import numpy as np
import tensorflow as tf
import leadline

model = tf.keras.Sequential([tf.keras.layers.Input((128, 128, 1)), tf.keras.layers.Conv2D(64, 3, padding="same"),
                             tf.keras.layers.GlobalAveragePooling2D()])
data = np.ones((96, 128, 128, 1), np.float32)
model.predict(data[:1], verbose=0)
with open("/proc/self/statm") as file:
    resident = int(file.read().split()[1]) * 4096
try:
    with leadline.watch(limit={limit}):
        print(model.predict(data, batch_size=96, verbose=0).shape)  # 400 MB of activations in one native call
except leadline.MemoryLimitError as error:
    print("stopped:", str(error)[:200])
print("alive", model.predict(data[:1], verbose=0).shape)
"""


def run(limit, tmp_path):
    env = {**os.environ, "LEADLINE_FLIGHTS": str(tmp_path / "flights"), "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, "-c", PREDICT.format(limit=limit)]
    result = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, result  # a signal is a negative number
    assert result.stdout.endswith("alive (1, 64)\n"), result
    return result.stdout


def test_a_predict_that_fits_is_left_alone(tmp_path):
    assert run("0.98", tmp_path).startswith("(96, 64)\n")


def test_a_predict_above_a_limit_of_the_process_is_stopped_or_ends_well(tmp_path):
    """A single native call that takes more than the limit is not refused its memory. Refused as a watch once did it
    (refuse_native=True, refuse_large=False), this very program dies of signal 11."""
    told = run("resident + 100_000_000", tmp_path)
    assert told.startswith(("(96, 64)\n", "stopped: this process has")), told
