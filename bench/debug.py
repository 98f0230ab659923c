# SPDX-License-Identifier: Apache-2.0
"""Rounds of quantizing and debugging a model, with Leadline and with TensorFlow's QuantizationDebugger, side by side.

    python bench/debug.py model.keras [--samples 8] [--rounds 3] [--tensorflow PYTHON]

A round converts the float model to int8 with the samples, makes a QuantizationDebugger of the converter, runs it on the
same samples and writes the CSV. Each engine has a process of its own that does all rounds; the fastest counts, of the
clock and of CPU time. Leadline's rounds read the file; TensorFlow's start with the model in memory, and importing is
counted for neither. The peak is what the system counted for the process (ru_maxrss), after the first round and after all.
"""

import argparse
import json
import os
import subprocess
import sys

# The child: the same lines for both engines but for where the converter comes from.
_CHILD = """
import io, json, resource, sys, time
import numpy as np
engine, path, samples, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
if engine == "tensorflow":
    import tensorflow as tf, keras
    lite, model = tf.lite, keras.models.load_model(path, compile=False)
    make_converter = lambda: lite.TFLiteConverter.from_keras_model(model)
else:
    import leadline.lite as lite
    make_converter = lambda: lite.TFLiteConverter.from_keras_file(path)
shape = tuple(json.loads(sys.argv[5]))
dataset = [[np.random.default_rng(i).standard_normal((1, *shape)).astype(np.float32)] for i in range(samples)]

def round():
    converter = make_converter()
    converter.optimizations = [lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: iter(dataset)
    debugger = lite.experimental.QuantizationDebugger(converter=converter, debug_dataset=lambda: iter(dataset))
    debugger.run()
    file = io.StringIO()
    debugger.layer_statistics_dump(file)
    return file.getvalue().count("\\n") - 1

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

for _ in range(rounds):
    wall, cpu = time.perf_counter(), time.process_time()
    layers = round()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print("ROUND", json.dumps({"seconds": wall, "cpu_seconds": cpu, "megabytes": peak(), "layers": layers}), flush=True)
"""


def run(python: str, engine: str, options: argparse.Namespace) -> dict:
    env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "KERAS_BACKEND": "tensorflow", "CUDA_VISIBLE_DEVICES": ""}
    shape = json.dumps(options.shape)
    command = [python, "-c", _CHILD, engine, options.model, str(options.samples), str(options.rounds), shape]
    process = subprocess.run(command, capture_output=True, text=True, env=env)
    rounds = [json.loads(line[6:]) for line in process.stdout.splitlines() if line.startswith("ROUND ")]
    if process.returncode != 0 or not rounds:
        raise SystemExit(f"{engine} failed:\n{process.stderr[-2000:]}")
    return {
        "seconds": min(r["seconds"] for r in rounds),
        "cpu_seconds": min(r["cpu_seconds"] for r in rounds),
        "first_megabytes": rounds[0]["megabytes"],
        "megabytes": rounds[-1]["megabytes"],
        "layers": rounds[0]["layers"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="a .keras or .h5 file")
    parser.add_argument("--shape", type=json.loads, default=[224, 224, 3], help="of a sample, such as [224,224,3]")
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3, help="take the fastest of this many")
    parser.add_argument("--tensorflow", metavar="PYTHON", help="a Python that has TensorFlow")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = {"leadline": run(sys.executable, "leadline", options)}
    if options.tensorflow:
        rows["tensorflow"] = run(options.tensorflow, "tensorflow", options)
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    for engine, row in rows.items():
        print(f"{engine:10} " + "{seconds:7.2f} s {cpu_seconds:7.2f} s CPU {first_megabytes:6.0f} MB after a round "
              "{megabytes:6.0f} MB after all {layers:4} layers".format(**row))  # fmt: skip
    if options.tensorflow:
        ours, theirs = rows["leadline"], rows["tensorflow"]
        ratios = {key: theirs[key] / ours[key] for key in ours}
        print("ratio      {seconds:7.1f} x {cpu_seconds:7.1f} x     {first_megabytes:6.1f} x                "
              "{megabytes:6.1f} x".format(**ratios))  # fmt: skip


if __name__ == "__main__":
    main()
