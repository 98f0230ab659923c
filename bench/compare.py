# SPDX-License-Identifier: Apache-2.0
"""Times models in Leadline, LiteRT and OpenVINO side by side: tables, bars, JSON and a page with charts.

    python bench/compare.py [MODEL.tflite ...] [--threads 1 2] [--json FILE] [--html FILE]

Without models: those of build/bench-models (bench/bench_models.py makes them). Each engine has a process of its own for
each model and number of threads; rounds go from engine to engine, so that a busy machine disturbs all alike, and the
fastest run counts. Needs numpy, leadline, and the packages of requirements-bench.txt.
"""

import argparse
import datetime
import hashlib
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import bench_report
import numpy as np
from bench_models import FOLDER, file_names

import leadline

WORKER = Path(__file__).parents[1] / "src" / "cli" / "bench_engine.py"
ENGINES = ("leadline", "litert", "openvino")


def random_input(details, rng):
    """Values that every model accepts: small integers for indices, the full range for quantized tensors."""
    dtype = np.dtype(details["dtype"])
    if dtype.kind == "f":
        return rng.uniform(-1, 1, details["shape"]).astype(dtype)
    if dtype.kind in "iu" and dtype.itemsize <= 2:
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max + 1, details["shape"]).astype(dtype)
    return rng.integers(0, 2, details["shape"]).astype(dtype)


class Engine:
    """One engine's process. `start` is what it told about its first run, or why there was none."""

    def __init__(self, name, model, threads, inputs, env=None):
        command = [sys.executable, str(WORKER), name, str(model), str(threads), str(inputs)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env={**os.environ, **(env or {})},
        )  # fmt: skip
        self.start = self._answer()
        self.ms, self.cpu_ms = [], []

    def _answer(self):
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        return {"error": f"died with exit status {self.process.wait()}"}

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def run(self, count):
        answer = self.ask(run=count)
        if "error" in answer:
            raise RuntimeError(f"{self.start['engine']} {answer['error']}")
        self.ms += answer["ms"]
        self.cpu_ms += answer["cpu_ms"]
        self.start["peak_bytes"] = answer["peak_bytes"]
        return answer["ms"]

    def outputs(self, path):
        self.ask(save=str(path))
        with np.load(path) as arrays:
            return [arrays[f"output_{i}"] for i in range(len(arrays))]

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


def low(times):
    """About the fastest: the tenth percentile, but never the very fastest. A virtual machine takes time that its host
    stole off the CPU clock of the process that runs when it learns of it, so that the least of many is often less than true."""
    ordered = sorted(times)
    return ordered[min(max(1, len(ordered) // 10), len(ordered) - 1)]


def difference(outputs, reference):
    """The largest difference: in steps of integers, or as a share of the reference's range of floats."""
    largest = {}
    for value, wanted in zip(outputs, reference, strict=False):
        if value.size != wanted.size or wanted.size == 0 or wanted.dtype.kind not in "iuf":
            continue
        # OpenVINO gives integer tensors that it computed as floats back as their type.
        apart = float(np.max(np.abs(value.astype(np.float64).ravel() - wanted.astype(np.float64).ravel())))
        if wanted.dtype.kind == "f":
            apart /= max(float(np.ptp(wanted)), 1e-30)
        unit = "of range" if wanted.dtype.kind == "f" else "steps"
        largest[unit] = max(largest.get(unit, 0.0), apart)
    return largest


class Bench:
    """Measures models; knows where inputs, outputs and cached references lie."""

    def __init__(self, args, folder):
        self.args, self.folder = args, folder

    def inputs(self, model):
        rng = np.random.default_rng(0)
        interpreter = leadline.lite.Interpreter(model_path=str(model))
        values = [random_input(details, rng) for details in interpreter.get_input_details()]
        path = self.folder / "inputs.npz"
        np.savez(path, **{f"input_{i}": value for i, value in enumerate(values)})
        return path

    def references(self, model, inputs):
        """Outputs of plain kernels: Leadline's own without SIMD, and LiteRT's (cached, they are slow)."""
        result = {}
        plain = Engine("leadline", model, 1, inputs, {"LEADLINE_ISA": "scalar"})
        if "error" not in plain.start:
            result["scalar"] = plain.outputs(self.folder / "scalar.npz")
        plain.close()
        key = hashlib.sha256(Path(model).read_bytes() + inputs.read_bytes()).hexdigest()[:16]
        cached = FOLDER / "reference" / f"{Path(model).stem}-{key}.npz"
        if not cached.exists():
            cached.parent.mkdir(parents=True, exist_ok=True)
            reference = Engine("litert_reference", model, 1, inputs)
            if "error" in reference.start:
                np.savez(cached, error=np.array(reference.start["error"]))
            else:
                reference.outputs(cached)
            reference.close()
        with np.load(cached) as arrays:
            if "error" not in arrays:
                result["litert_reference"] = [arrays[f"output_{i}"] for i in range(len(arrays))]
        return result

    def start(self, name, model, threads, inputs):
        """The engine's last process of several, with the shortest times to the first result of all."""
        starts = []
        for last in range(self.args.starts - 1, -1, -1):
            engine = Engine(name, model, threads, inputs)
            if "error" in engine.start:
                return engine
            starts.append(engine.start)
            if last:
                engine.close()
        for key in ("import_ms", "first_ms", "first_cpu_ms"):
            engine.start[key] = min(start[key] for start in starts)
        return engine

    def rounds(self, engines):
        """Interleaved runs; the first of each turn wakes caches and threads up and does not count."""
        longest = max(min(engine.run(2)) for engine in engines)
        for engine in engines:
            engine.ms.clear()
            engine.cpu_ms.clear()
        count = max(2, min(200, int(self.args.round_ms / max(longest, 0.01))))
        for _ in range(self.args.rounds):
            for engine in engines:
                time.sleep(0.002)  # the threads of the one before fall asleep
                engine.ask(run=1)
                engine.run(count)

    def measure(self, model, threads, references, inputs):
        engines = {name: self.start(name, model, threads, inputs) for name in self.args.engines}
        running = [engine for engine in engines.values() if "error" not in engine.start]
        if running:
            self.rounds(running)
        row = {"model": Path(model).stem, "threads": threads, "engines": {}}
        for name, engine in engines.items():
            figures = dict(engine.start)
            if "error" not in figures:
                figures |= {
                    "fastest_ms": min(engine.ms), "median_ms": statistics.median(engine.ms),
                    "p95_ms": float(np.percentile(engine.ms, 95)), "runs": len(engine.ms),
                    "cpu_ms": low(engine.cpu_ms), "cpu_median_ms": statistics.median(engine.cpu_ms),
                }  # fmt: skip
                outputs = engine.outputs(self.folder / "outputs.npz")
                figures["difference"] = {key: difference(outputs, wanted) for key, wanted in references.items()}
            row["engines"][name] = figures
            engine.close()
        return row

    def model(self, model):
        inputs = self.inputs(model)
        references = self.references(model, inputs) if self.args.reference else {}
        for threads in self.args.threads:
            row = self.measure(model, threads, references, inputs)
            bench_report.print_row(row)
            yield row


def machine():
    """What the results depend on."""
    with open("/proc/cpuinfo") as file:
        text = file.read()
    name = re.search(r"model name\s*: (.*)", text)
    flags = set(re.search(r"flags\s*: (.*)", text).group(1).split()) if "flags" in text else set()
    known = ["avx2", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8"]
    family = [re.search(rf"{key}\s*: (\d+)", text) for key in ("cpu family", "model")]
    return {
        "cpu": name.group(1) if name else platform.processor(),
        "family_model": "/".join(m.group(1) for m in family if m),
        "instructions": [flag for flag in known if flag in flags],
        "cpus": os.cpu_count(), "load_average": os.getloadavg()[0],
        "limits": {key: os.environ[key] for key in ("LEADLINE_ISA", "ONEDNN_MAX_CPU_ISA") if key in os.environ},
        "python": platform.python_version(), "date": datetime.datetime.now(datetime.timezone.utc).isoformat("T", "seconds"),
    }  # fmt: skip


def missing_engines(names, model, inputs):
    return [name for name in names if Engine(name, model, 1, inputs).start.get("missing")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--also", nargs="*", type=Path, default=[], metavar="MODEL", help="models after those")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--round-ms", type=float, default=150, help="about how long the slowest engine's turn is")
    parser.add_argument("--starts", type=int, default=3, help="processes per engine for the time to the first result")
    parser.add_argument("--engines", nargs="+", default=list(ENGINES), choices=ENGINES)
    parser.add_argument("--only", default="", metavar="REGEX", help="models whose name contains this")
    parser.add_argument("--no-reference", dest="reference", action="store_false", help="do not compare outputs")
    parser.add_argument("--json", type=Path, help="write the results here")
    parser.add_argument("--html", type=Path, help="write a page with charts here")
    parser.add_argument("--from-json", type=Path, help="measure nothing: show the results in this file")
    args = parser.parse_args()
    if args.from_json:
        document = json.loads(args.from_json.read_text())
        for row in document["results"]:
            bench_report.print_row(row)
    else:
        models = args.models or [path for path in map(FOLDER.joinpath, file_names()) if path.exists()]
        models = [path for path in [*models, *args.also] if re.search(args.only, path.stem)]
        if not models:
            parser.error("no models; bench/bench_models.py makes some")
        document = {"machine": machine(), "rounds": args.rounds, "results": []}
        with tempfile.TemporaryDirectory() as folder:
            bench = Bench(args, Path(folder))
            missing = missing_engines(args.engines, models[0], bench.inputs(models[0]))
            if missing:
                raise SystemExit(f"not installed: {', '.join(missing)}; run tools/setup.sh bench, or\n"
                                 f"  {sys.executable} -m pip install -r requirements-bench.txt")  # fmt: skip
            for model in models:
                document["results"] += bench.model(model)
                if args.json:  # a long run that is stopped leaves what it has
                    args.json.write_text(json.dumps(document, indent=1))
    bench_report.print_summary(document)
    if args.html:
        args.html.write_text(bench_report.page(document))
        print(f"page: {args.html}")


if __name__ == "__main__":
    main()
