# SPDX-License-Identifier: Apache-2.0
"""Runs models in Leadline and in LiteRT side by side and prints ratios.

Each engine runs in a process of its own; rounds alternate between the two, so that a busy machine disturbs both alike.
usage: compare.py [--threads 1] [--rounds 7] [--json FILE] MODEL.tflite ...
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

ENGINES = {"leadline": "leadline.lite", "litert": "ai_edge_litert.interpreter"}


def random_input(np, details):
    """Values that every model accepts: small integers for indices, the full range for quantized tensors."""
    rng = np.random.default_rng(0)
    dtype = np.dtype(details["dtype"])
    if dtype.kind == "f":
        return rng.uniform(-1, 1, details["shape"]).astype(dtype)
    if dtype.kind in "iu" and dtype.itemsize <= 2:
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max + 1, details["shape"]).astype(dtype)
    return rng.integers(0, 2, details["shape"]).astype(dtype)


def child(engine, model, threads):
    """Loads the model, reports the time to the first result, then times one batch of runs per line of input."""
    begin = time.perf_counter()
    import importlib

    import numpy as np

    numpy_ready = time.perf_counter()
    interpreter = importlib.import_module(ENGINES[engine]).Interpreter(model_path=model, num_threads=threads)
    interpreter.allocate_tensors()
    for details in interpreter.get_input_details():
        interpreter.set_tensor(details["index"], random_input(np, details))
    interpreter.invoke()
    first = time.perf_counter()
    with open("/proc/self/status") as status:
        peak = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
    report = {"first_ms": 1e3 * (first - begin), "numpy_ms": 1e3 * (numpy_ready - begin), "peak_bytes": peak}
    print(json.dumps(report), flush=True)
    for line in sys.stdin:
        runs = int(line)
        times = []
        for _ in range(runs):
            start = time.perf_counter()
            interpreter.invoke()
            times.append(1e3 * (time.perf_counter() - start))
        print(json.dumps(times), flush=True)


class Engine:
    """One engine's process."""

    def __init__(self, engine, model, threads):
        command = [sys.executable, os.path.abspath(__file__), model, "--child", engine, "--threads", str(threads)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        line = self.process.stdout.readline()
        self.start = json.loads(line) if line else None
        self.times = []

    def run(self, count):
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        times = json.loads(self.process.stdout.readline())
        self.times += times
        return times

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def compare(model, threads, rounds):
    """The figures of one model, or the name of the engine that could not run it."""
    engines = {name: Engine(name, model, threads) for name in ENGINES}
    broken = [name for name, engine in engines.items() if engine.start is None]
    if not broken:
        longest = max(max(engine.run(2)) for engine in engines.values())
        for engine in engines.values():
            engine.times.clear()
        count = max(3, min(200, int(150 / max(longest, 0.01))))
        for _ in range(rounds):
            for engine in engines.values():
                engine.run(count)
    for engine in engines.values():
        engine.close()
    if broken:
        return {"model": model, "broken": broken}
    result = {"model": model, "threads": threads}
    for name, engine in engines.items():
        result[name] = dict(
            engine.start, fastest_ms=min(engine.times), median_ms=statistics.median(engine.times)
        )
    return result


def first_results(model, rounds):
    """Fresh processes in turn: import, load and first inference, fastest of `rounds`, with the peak resident bytes."""
    best = {}
    for _ in range(rounds):
        for name in ENGINES:
            engine = Engine(name, model, 1)
            engine.close()
            if engine.start is None:
                return None
            if name not in best or engine.start["first_ms"] < best[name]["first_ms"]:
                best[name] = engine.start
    return best


def print_table(results):
    print(f"{'model':44} {'threads':>7} {'leadline':>10} {'litert':>10} {'litert/leadline':>15}")
    product, count = 1.0, 0
    for r in results:
        name = os.path.basename(r["model"])[:44]
        if "broken" in r:
            print(f"{name:44} {'':7} not run by {', '.join(r['broken'])}")
            continue
        ours, theirs = r["leadline"]["fastest_ms"], r["litert"]["fastest_ms"]
        product *= theirs / ours
        count += 1
        print(f"{name:44} {r['threads']:7} {ours:8.3f}ms {theirs:8.3f}ms {theirs / ours:15.2f}")
    if count:
        print(f"geometric mean of litert/leadline over {count} runs: {product ** (1 / count):.2f} (above 1: Leadline is faster)")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", help="write the figures here")
    parser.add_argument("--first", action="store_true", help="measure import + load + first inference only")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        return child(args.child, args.models[0], args.threads[0])
    if args.first:
        for model in args.models:
            best = first_results(model, args.rounds)
            print(os.path.basename(model), json.dumps(best))
        return None
    results = [compare(model, threads, args.rounds) for model in args.models for threads in args.threads]
    print_table(results)
    if args.json:
        with open(args.json, "w") as file:
            json.dump(results, file, indent=1)
    return None


if __name__ == "__main__":
    sys.exit(main())
