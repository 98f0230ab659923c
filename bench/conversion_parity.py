# SPDX-License-Identifier: Apache-2.0
"""Converts Keras models from every form they are saved in, beside TensorFlow's TFLiteConverter.

    python bench/conversion_parity.py [model ...] [--folder FOLDER] [--long] [--json]

needs TensorFlow, Keras 3, tf_keras and ai_edge_litert. One row for a model and a form: nodes and bytes of both files,
and how far LiteRT and Leadline are from what Keras predicts, as a part of the predicted range. What TensorFlow makes
(saved models, predictions, its own converted files) stays in the folder; a second run only converts with Leadline.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
sys.path.insert(0, str(Path(__file__).parents[1] / "tests/python"))

import conversion_forms
import keras_models
import numpy as np
from ai_edge_litert.interpreter import Interpreter
from conversion_forms import FORMS, convert, describe, distance

import leadline
from leadline import lite


def all_models(long: bool) -> list[str]:
    return [*keras_models.MODELS, *(keras_models.APPLICATIONS if long else keras_models.QUICK_APPLICATIONS)]


def compare(name: str, form: str, folder: Path) -> dict:
    source, reference = FORMS[form]
    row = {"model": name, "form": form}
    try:
        content = convert(form, folder / source)
    except leadline.Error as error:
        return {**row, "error": str(error)}
    row["bytes"], operators = describe(content)
    row["nodes"] = operators.total()
    known = np.load(folder / f"{reference}.npz")
    row["litert"] = distance(Interpreter, content, known)
    row["leadline"] = distance(lite.Interpreter, content, known)
    theirs = folder / f"{reference}.tflite"
    if theirs.exists():
        row["their_bytes"], other = describe(theirs.read_bytes())
        row["their_nodes"] = other.total()
        row["more"], row["fewer"] = dict(operators - other), dict(other - operators)
    return row


def text(row: dict) -> str:
    start = f"{row['model']:18} {row['form']:16}"
    if "error" in row:
        return f"{start} {row['error']}"
    nodes, size = f"{row['nodes']}/{row.get('their_nodes', '-')}", f"{row['bytes']}/{row.get('their_bytes', '-')}"
    excess = "their_nodes" in row and (
        row["nodes"] > 1.02 * row["their_nodes"] or row["bytes"] > 1.02 * row["their_bytes"]
    )
    far = max(row["litert"], row["leadline"]) > 1e-4
    marks = ("  MORE " + str(row["more"]) + " FEWER " + str(row["fewer"]) if excess else "") + ("  FAR" if far else "")
    return f"{start} {nodes:>9} nodes {size:>21} bytes  error {row['litert']:.1e} {row['leadline']:.1e}{marks}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", help="names of tests/python/keras_models.py; all when none is given")
    parser.add_argument("--folder", type=Path, help="where what TensorFlow makes stays for the next run")
    parser.add_argument("--forms", nargs="+", default=list(FORMS), choices=list(FORMS))
    parser.add_argument("--long", action="store_true", help="all of keras.applications")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--make", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make:
        conversion_forms.make(options.make, options.folder / options.make)
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch)
        rows = []
        for name in options.models or all_models(options.long):
            if not (folder / name / "complete").exists():  # in a process of its own: TensorFlow keeps what it took
                command = [sys.executable, __file__, "--make", name, "--folder", folder]
                done = subprocess.run(command, capture_output=True, text=True)
                if done.returncode != 0:
                    print(f"{name}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
                    continue
            for form in options.forms:
                rows.append(compare(name, form, folder / name))
                if not options.json:
                    print(text(rows[-1]), flush=True)
    if options.json:
        print(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
