# SPDX-License-Identifier: Apache-2.0
"""Quantizes models with Leadline and with TensorFlow's TFLiteConverter, from the same weights and samples.

    python bench/quantize.py --tensorflow PYTHON [--rounds 3] [--part accuracy|cost] [--json]

accuracy: keyword spotting (from LEADLINE_SHARED), a convnet trained here on Fashion-MNIST, and MobileNetV2 of random
weights, in four modes: share of right answers (for random weights the error of the logits over their spread, smaller is
better) and size of the file. All results run in Leadline's interpreter.
cost: a .keras file to a full-integer file with 8 samples. Each run has a process of its own; its peak is what the
system counted (ru_maxrss). TFLiteConverter's time is that of convert() alone, without importing TensorFlow and loading
the model; Leadline's reads the file too.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import leadline

SUBJECTS = Path(__file__).parents[1] / "tests" / "tensorflow"
sys.path.insert(0, str(SUBJECTS))
import quantize_subjects as subjects  # noqa: E402  found through the line before

COST_MODELS = {"MobileNetV2": 224, "ResNet50": 224}
ENGINES = ("leadline", "tensorflow")

_MAKE = """
import sys, keras
keras.utils.set_random_seed(1)
getattr(keras.applications, sys.argv[1])(weights=None).save(sys.argv[2])
"""
_RUN = """
import sys, time
import numpy as np
path, target, engine, size = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
samples = np.random.default_rng(2).uniform(-1, 1, (8, 1, size, size, 3)).astype(np.float32)
if engine == "tensorflow":
    import tensorflow as tf, keras
    lite, model = tf.lite, keras.models.load_model(path)
    start = time.perf_counter()
    converter = lite.TFLiteConverter.from_keras_model(model)
else:
    from leadline import lite
    start = time.perf_counter()
    converter = lite.TFLiteConverter.from_keras_file(path)
converter.optimizations = [lite.Optimize.DEFAULT]
converter.representative_dataset = lambda: ([sample] for sample in samples)
converter.target_spec.supported_ops = [lite.OpsSet.TFLITE_BUILTINS_INT8]
content = converter.convert()
seconds = time.perf_counter() - start
open(target, "wb").write(content)
print("seconds", seconds)
"""


def run(command) -> tuple[str, float]:
    """Standard output and peak megabytes of a program."""
    env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "KERAS_BACKEND": "tensorflow", "CUDA_VISIBLE_DEVICES": ""}
    env["TF_ENABLE_ONEDNN_OPTS"] = "0"
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(f"{' '.join(map(str, command[:2]))} failed with status {status}")
    return output, usage.ru_maxrss / 1024


def quality(content: bytes, data, wanted) -> float:
    results = subjects.outputs(leadline.lite.Interpreter, content, data["inputs"])
    return subjects.accuracy(results, data["labels"]) if "labels" in data else subjects.noise(wanted, results)


def measure_accuracy(tensorflow: str, folder: Path) -> list[dict]:
    run([tensorflow, SUBJECTS / "quantize_subjects.py", folder])
    rows = []
    for path in sorted(folder.glob("*.npz")):
        data = dict(np.load(path))
        floats = (folder / f"{path.stem}_float.tflite").read_bytes()
        wanted = subjects.outputs(leadline.lite.Interpreter, floats, data["inputs"])
        measure = "accuracy" if "labels" in data else "error"
        rows.append({"model": path.stem, "mode": "float", "measure": measure})
        rows[-1]["tensorflow"] = {"quality": quality(floats, data, wanted), "bytes": len(floats)}
        for mode in subjects.MODES:
            samples = subjects.dataset(data["samples"]) if mode in subjects.CALIBRATED else None
            files = {
                "leadline": leadline.quantize(floats, mode, samples),
                "tensorflow": (folder / f"{path.stem}_{mode}.tflite").read_bytes(),
            }
            row = {"model": path.stem, "mode": mode, "measure": measure}
            for engine, content in files.items():
                row[engine] = {"quality": quality(content, data, wanted), "bytes": len(content)}
            rows.append(row)
    return rows


def measure_cost(tensorflow: str, folder: Path, rounds: int) -> list[dict]:
    rows = []
    for name, size in COST_MODELS.items():
        source, target = folder / f"{name}.keras", folder / "quantized.tflite"
        run([tensorflow, "-c", _MAKE, name, source])
        row = {"model": name}
        for engine, python in zip(ENGINES, (sys.executable, tensorflow), strict=True):
            results = []
            for _ in range(rounds):
                output, megabytes = run([python, "-c", _RUN, source, target, engine, str(size)])
                results.append((float(output.split("seconds")[-1]), megabytes))
            row[engine] = {
                "seconds": min(seconds for seconds, _ in results),
                "megabytes": max(megabytes for _, megabytes in results),
                "bytes": target.stat().st_size,
            }
        rows.append(row)
    return rows


def print_accuracy(rows: list[dict]) -> None:
    engines = f"{'Leadline':>10} {'TensorFlow':>10}"
    print(f"{'model':14} {'mode':8} {'':8} {engines}   {engines} bytes")
    for row in rows:
        ours, theirs = row.get("leadline"), row["tensorflow"]
        shown = "{:9.2f}%" if row["measure"] == "accuracy" else "{:10.4f}"
        values = [shown.format(side["quality"]) if side else " " * 10 for side in (ours, theirs)]
        sizes = [f"{side['bytes']:10}" if side else " " * 10 for side in (ours, theirs)]
        ratio = f"{100 * ours['bytes'] / theirs['bytes'] - 100:+7.2f} %" if ours else ""
        print(f"{row['model']:14} {row['mode']:8} {row['measure']:8} {' '.join(values)}   {' '.join(sizes)} {ratio}")


def print_cost(rows: list[dict]) -> None:
    for row in rows:
        for engine in ENGINES:
            print(f"{row['model']:14} int8 from .keras, 8 samples  {engine:10} "
                  "{seconds:7.2f} s {megabytes:6.0f} MB {bytes:10} bytes".format(**row[engine]))  # fmt: skip
        ours, theirs = row["leadline"], row["tensorflow"]
        print(f"{'':14} {theirs['seconds'] / ours['seconds']:.0f} x faster, "
              f"{theirs['megabytes'] / ours['megabytes']:.0f} x less memory")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tensorflow", metavar="PYTHON", required=True, help="a Python that has TensorFlow")
    parser.add_argument("--rounds", type=int, default=3, help="take the fastest of this many")
    parser.add_argument("--part", choices=("accuracy", "cost"), help="only this part")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    result = {}
    with tempfile.TemporaryDirectory() as folder:
        if options.part != "cost":
            result["accuracy"] = measure_accuracy(options.tensorflow, Path(folder))
        if options.part != "accuracy":
            result["cost"] = measure_cost(options.tensorflow, Path(folder), options.rounds)
    if options.json:
        print(json.dumps(result, indent=2))
        return
    if "accuracy" in result:
        print_accuracy(result["accuracy"])
    if "cost" in result:
        print_cost(result["cost"])


if __name__ == "__main__":
    main()
