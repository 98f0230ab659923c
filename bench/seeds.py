# SPDX-License-Identifier: Apache-2.0
"""Time and peak memory of programs written for TensorFlow, on TensorFlow and on leadline.tf: the table of docs/seeds.md.

    python bench/seeds.py ../shared/seeds/examples/*.py [--tensorflow .venv-tensorflow/bin/python] [--rounds 3]

Each run is a process of its own, from its start to its end, imports included; the fastest of the rounds counts. CPU time
is that of all threads. The peak is what the system counted for the process (ru_maxrss). Programs find a SavedModel at
path/to/saved_model, made by TensorFlow.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIMIT_SECONDS = 600

# Both engines: the program's text as __main__.
_CHILD = """
import sys
engine, path = sys.argv[1:3]
if engine == "leadline":
    import leadline.tf
    leadline.tf.install()
exec(compile(open(path).read(), path, "exec"), {"__name__": "__main__"})
"""

_SAVED_MODEL = """
import sys, tensorflow as tf
model = tf.keras.Sequential([tf.keras.layers.Input((32, 32, 3)), tf.keras.layers.Conv2D(32, 3, activation="relu"),
                             tf.keras.layers.Flatten(), tf.keras.layers.Dense(10)])
model.export(sys.argv[1], verbose=False)
"""


def environment() -> dict[str, str]:
    env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    env.pop("KERAS_BACKEND", None)
    return env


def run_once(python: str, engine: str, program: Path, saved_model: Path | None) -> dict:
    with tempfile.TemporaryDirectory(prefix="seeds") as folder:
        if saved_model is not None and "path/to/saved_model" in program.read_text():
            shutil.copytree(saved_model, Path(folder) / "path/to/saved_model")
        command = [python, "-c", _CHILD, engine, str(program.resolve())]
        with tempfile.TemporaryFile() as output:
            begin = time.perf_counter()
            process = subprocess.Popen(command, stdout=output, stderr=output, cwd=folder, env=environment())
            status, usage = wait(process, begin)
            seconds = time.perf_counter() - begin
            output.seek(0)
            text = output.read().decode("utf-8", "replace")
    return {
        "seconds": seconds,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "megabytes": usage.ru_maxrss * 1024 / 1e6,
        "end": end_of(text, status),
    }


def wait(process: subprocess.Popen, begin: float):
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, usage
        if time.perf_counter() - begin > LIMIT_SECONDS:
            process.kill()
        time.sleep(0.002)


def end_of(text: str, status: int) -> str:
    """How a run ended, in a few words."""
    if status == 0:
        return "finishes"
    if status < 0:
        return f"killed by signal {-status}"
    errors = re.findall(r"^(?:\w+\.)*(\w+(?:Error|Exception|Exhausted\w*)): ?(.*)$", text, re.MULTILINE)
    return f"{errors[-1][0]}: {errors[-1][1][:90]}" if errors else f"exit code {status}"


def measure(python: str, engine: str, program: Path, rounds: int, saved_model: Path | None) -> dict:
    runs = [run_once(python, engine, program, saved_model) for _ in range(rounds)]
    best = min(runs, key=lambda run: run["seconds"])
    best["cpu_seconds"] = min(run["cpu_seconds"] for run in runs)
    best["megabytes"] = min(run["megabytes"] for run in runs)
    return best


def table(rows: dict[str, dict[str, dict]]) -> str:
    engines = list(next(iter(rows.values())))
    head = "".join(f" {e} ends with | s | CPU s | peak MB |" for e in engines)
    lines = [f"| program |{head}", "|---|" + "---|---:|---:|---:|" * len(engines)]
    for name, row in rows.items():
        cells = ""
        for engine in engines:
            run = row[engine]
            cells += f" {run['end'].replace('|', ' ')} | {run['seconds']:.2f} | {run['cpu_seconds']:.2f} | {run['megabytes']:.0f} |"
        lines.append(f"| {name} |{cells}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="+", type=Path)
    parser.add_argument("--python", default=str(ROOT / ".venv/bin/python"), help="has Leadline and no TensorFlow")
    parser.add_argument("--tensorflow", metavar="PYTHON", help="has TensorFlow")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds must be positive")
    for name in ("python", "tensorflow"):  # the programs run in folders of their own
        if (given := getattr(options, name)) is not None:
            found = shutil.which(given) or parser.error(f"--{name}: there is no program '{given}'")
            setattr(options, name, os.path.abspath(found))
    with tempfile.TemporaryDirectory(prefix="seeds") as folder:
        saved_model = None
        if options.tensorflow:
            saved_model = Path(folder) / "saved_model"
            command = [options.tensorflow, "-c", _SAVED_MODEL, str(saved_model)]
            subprocess.run(command, check=True, env=environment(), capture_output=True, timeout=LIMIT_SECONDS)
        engines = {"leadline": options.python}
        if options.tensorflow:
            engines = {"tensorflow": options.tensorflow, **engines}
        rows = {}
        for program in options.programs:
            rows[program.stem] = {
                engine: measure(python, engine, program, options.rounds, saved_model)
                for engine, python in engines.items()
            }
            print(f"{program.stem}: done", file=sys.stderr)
    print(json.dumps(rows, indent=2) if options.json else table(rows))


if __name__ == "__main__":
    main()
