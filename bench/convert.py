# SPDX-License-Identifier: Apache-2.0
"""Converts saved models with Leadline and, where it is at hand, with TensorFlow's TFLiteConverter, side by side.

    python bench/convert.py model.keras saved_model_folder [--rounds 3] [--tensorflow PYTHON]

Each conversion has a process of its own; its peak is what the system counted (ru_maxrss). Leadline's time is that of the
whole program, file to file; TFLiteConverter's is convert() alone, without importing TensorFlow and loading the model.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import leadline

_TENSORFLOW = """
import os, sys, time
import tensorflow as tf, keras
if os.path.isdir(sys.argv[1]):
    start = time.perf_counter()
    converter = tf.lite.TFLiteConverter.from_saved_model(sys.argv[1])
else:
    model = keras.models.load_model(sys.argv[1])
    start = time.perf_counter()
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
content = converter.convert()
seconds = time.perf_counter() - start
open(sys.argv[2], "wb").write(content)
print("seconds", seconds)
"""


def run(command, env=None) -> tuple[str, float, float]:
    """Standard output, seconds and peak megabytes of a program."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(f"{command[0]} failed with status {status}")
    return output, time.perf_counter() - start, usage.ru_maxrss / 1024


def describe(path: Path) -> tuple[int, int]:
    model = leadline.Model.load(path)
    return model.file_bytes, sum(len(model.subgraph(i).nodes) for i in range(model.subgraph_count))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", help=".keras or .h5 files, or folders of SavedModels")
    parser.add_argument("--rounds", type=int, default=3, help="take the fastest of this many")
    parser.add_argument("--tensorflow", metavar="PYTHON", help="a Python that has TensorFlow")
    parser.add_argument("--program", default=Path(sys.executable).parent / "leadline", help="the leadline program")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "model.tflite"
        for model in options.models:
            row = {"model": "/".join(Path(model).parts[-2:])}
            results = [run([options.program, "convert", model, "-o", target]) for _ in range(options.rounds)]
            size, nodes = describe(target)
            row["leadline"] = dict(
                seconds=min(r[1] for r in results), megabytes=max(r[2] for r in results), bytes=size, nodes=nodes
            )
            if options.tensorflow:
                env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "KERAS_BACKEND": "tensorflow"}
                output, _, megabytes = run([options.tensorflow, "-c", _TENSORFLOW, model, target], env)
                size, nodes = describe(target)
                seconds = float(output.split("seconds")[-1])
                row["tensorflow"] = dict(seconds=seconds, megabytes=megabytes, bytes=size, nodes=nodes)
            rows.append(row)
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    for row in rows:
        for engine in ("leadline", "tensorflow"):
            if engine in row:
                print(f"{row['model']:24} {engine:10} " + "{seconds:8.2f} s {megabytes:7.0f} MB {bytes:12} bytes "
                      "{nodes:5} nodes".format(**row[engine]))  # fmt: skip
        if "tensorflow" in row:
            ours, theirs = row["leadline"], row["tensorflow"]
            print(f"{'':24} ratio {theirs['seconds'] / ours['seconds']:8.0f} x faster, "
                  f"{theirs['megabytes'] / ours['megabytes']:.0f} x less memory")  # fmt: skip


if __name__ == "__main__":
    main()
