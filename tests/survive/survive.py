#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs cells that take all memory in kernels in containers, and counts the dead: `make survive`.

usage: survive.py [--containers 512MB,3GB] [--only TEXT] [--steps 40] [--part 1/3] [--pauses 0,0.3]
           [--python FILE] [--unwatched] [--json FILE]
       survive.py --healthy 100 [--only TEXT]
       survive.py --table FILE...     what runs with --json FILE found, as a table for docs/watch.md

A container is a memory control group (v1 or v2), which takes root or a delegated group. A kernel runs cell after cell and
is replaced when it dies. So that the whole takes hours and not days, a loop of small steps begins in a notebook that has
data already, which leaves 400 MB (pandas 200 MB) of the container; --hold off starts every loop in an empty one. Exit code 1
when a cell of Python's or numpy's own memory ended its kernel, lost a variable or did not end in an error; deaths in native
libraries are counted, and what could be restored after them. With --healthy: when a notebook that fits was not left
alone.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "notebook"))

import healthy_run  # noqa: E402
import situations  # noqa: E402

import kernels  # noqa: E402

UNITS = {"MB": 10**6, "GB": 10**9, "MiB": 2**20, "GiB": 2**30}
TIMEOUT = 600.0  # eight gigabytes of small objects take minutes on a busy machine
BASE = 150 * 10**6  # what a kernel takes, with the libraries of Python's own situations
USABLE = 0.9  # of a container, before alarms and refusals
ERRORS = ("MemoryError", "MemoryLimitError")


def parse(size: str) -> int:
    for unit, factor in UNITS.items():
        if size.endswith(unit):
            return int(float(size.removesuffix(unit)) * factor)
    return int(size)


class Notebook:
    """A kernel in a container that comes back when it dies."""

    def __init__(self, python: str, group: kernels.MemoryGroup, folder: Path, watched: bool) -> None:
        self.python, self.group, self.folder, self.watched = python, group, folder, watched
        self.kernel, self.prepared, self.held = None, "", 0

    def start(self, prepare: str, hold: int) -> None:
        if self.kernel is None:
            env = {"LEADLINE_FLIGHTS": str(self.folder / "flights"), "LEADLINE_WATCH": None if self.watched else "off"}
            self.kernel = kernels.Kernel(self.python, self.folder, wrapper=self.group.wrapper, env=env)
            self.loaded = self.kernel.run(situations.SETUP, timeout=TIMEOUT)
            assert self.loaded.error is None and not self.loaded.died, self.loaded
            self.prepared, self.held = "", 0
        for code, done in ((prepare, self.prepared == prepare), (f"hold({hold})", self.held == hold)):
            if code and not done:
                result = self.kernel.run(code, timeout=TIMEOUT)
                assert result.error is None and not result.died, result
        self.prepared, self.held = prepare, hold

    def run(self, cell: str) -> tuple[str, kernels.Result]:
        """How it ended: 'error', 'dead', 'lost' (a variable), 'no error', 'stuck'."""
        try:
            result = self.kernel.run(cell, timeout=TIMEOUT)
        except TimeoutError:
            self.close()
            return "stuck", kernels.Result()
        if result.died:
            return "dead", result
        checked = self.kernel.run(situations.CHECK, timeout=60)
        if checked.died:
            return "dead", checked
        if checked.value != situations.CHECKED:
            return "lost", checked
        return ("error" if result.error else "no error"), result

    def restorable(self) -> bool:
        """After a death: whether a new kernel brings the variables back. It is the next cell's if it does."""
        self.kernel.restart()
        self.prepared, self.held = "", 0
        result = self.kernel.run("%load_ext leadline\n%restore", timeout=TIMEOUT)
        checked = self.kernel.run(situations.CHECK, timeout=60)
        restored = result.error is None and checked.value == situations.CHECKED
        if not restored:
            self.close()
        return restored

    def close(self) -> None:
        if self.kernel is not None:
            self.kernel.close()
            self.kernel = None


def has(python: str, library: str) -> bool:
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({library!r}) is None)"
    return subprocess.run([python, "-c", code], check=False).returncode == 0


def run_container(size: str, chosen, options, report) -> None:
    with tempfile.TemporaryDirectory() as folder, kernels.MemoryGroup(parse(size)) as group:
        if not group.made:
            raise SystemExit("no control group with a memory limit can be made here: are you root?")
        notebook = Notebook(options.python, group, Path(folder), not options.unwatched)
        for situation in chosen:
            if not has(options.python, situation.library):
                print(f"{size:>7}  {situation.name:<34} skipped: {situation.library} is not installed", flush=True)
                continue
            for pause in options.pauses:
                report.append(run_situation(notebook, size, situation, pause, options))
                if options.json:
                    Path(options.json).write_text(json.dumps(report, indent=1))
            for file in Path(folder).glob("*.csv"):
                file.unlink()
        notebook.close()


def run_situation(notebook: Notebook, size: str, situation, pause: float, options) -> dict:
    cells, container, started = [], parse(size), time.monotonic()
    all_sizes = situations.sizes(container, options.steps, situation.largest, situation.smallest)
    for step in all_sizes[options.part[0] - 1 :: options.part[1]]:
        room = situations.room_of(situation, step)
        held = max(int(USABLE * container) - BASE - room, 0) if options.hold == "on" and not situation.native else 0
        if held == 0:
            room = container
        begun = time.monotonic()
        try:
            notebook.start(situation.prepare, held)
        except AssertionError as error:
            notebook.close()
            cells.append({"step": step, "end": "no room for the library"})
            print(f"{size:>7}  {situation.name:<34} {str(error)[:200]!r}", flush=True)
            break
        seconds = situations.pause_of(pause, step, room)
        end, result = notebook.run(situation.cell.format(size=step, pause=seconds))
        if end == "dead":
            exit_code = notebook.kernel.exit_code
            end = "dead, restored" if not options.unwatched and notebook.restorable() else "dead"
            if end == "dead":
                notebook.close()
            print(f"{size:>7}  {situation.name:<34} {step / 1e6:.0f} MB: {end} ({exit_code})", flush=True)
        no_memory = result.error in ERRORS or "out of memory" in result.message  # so pandas' parser says
        if end == "error" and not no_memory and not situation.native:
            end = f"wrong error {result.error}"
        if options.verbose and end != "error":
            print(step, end, result, flush=True)
        cells.append({"step": step, "held": held, "pause": seconds, "end": end, "error": result.error,
                      "seconds": round(time.monotonic() - begun, 1)})  # fmt: skip
    ends = Counter(cell["end"] for cell in cells)
    counts = ", ".join(f"{count} {end}" for end, count in sorted(ends.items()))
    places = " ".join(f"{cell['step'] / 1e6:.0f}MB:{cell['end']}" for cell in cells if cell["end"] != "error")
    print(f"{size:>7}  {situation.name:<34} pause {pause:<4} {counts}  {time.monotonic() - started:.0f} s  {places}",
          flush=True)  # fmt: skip
    return {"container": size, "situation": situation.name, "pause": pause, "native": situation.native,
            "watched": not options.unwatched, "cells": cells}  # fmt: skip


def print_table(files: list[str]) -> None:
    """Rows are situations, columns containers; an entry counts the ends of all cells, with and without pauses."""
    ends: dict[tuple[str, bool], dict[str, Counter]] = {}
    for file in files:
        for line in json.loads(Path(file).read_text()):
            row = ends.setdefault((line["situation"], line["watched"]), {})
            row.setdefault(line["container"], Counter()).update(cell["end"] for cell in line["cells"])
    columns = sorted({size for row in ends.values() for size in row}, key=parse)
    print("| cell | " + " | ".join(columns) + " |\n|---|" + "---|" * len(columns))
    for (name, watched), row in ends.items():
        entries = [", ".join(f"{n} {end}" for end, n in sorted(row.get(size, {}).items())) for size in columns]
        print(f"| {name if watched else name + ', no watch'} | " + " | ".join(entries) + " |")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--containers", default="512MB,700MB,1.8GB,3GB,8GB")
    parser.add_argument(
        "--only", default="", help="situations with one of these texts (bytes;lists), 'native' or 'python'"
    )
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--part", default="1/1", help="2/3: every third size, from the second on")
    parser.add_argument("--pauses", default="0,0.3")
    parser.add_argument("--python", default=kernels.PLAIN)
    parser.add_argument("--unwatched", action="store_true", help="for comparison: without a watch")
    parser.add_argument("--healthy", type=int, metavar="N", help="instead: so many notebooks that fit, none stopped")
    parser.add_argument("--json", help="write the results to a file")
    parser.add_argument("--hold", choices=("on", "off"), default="on", help="data beside loops of small steps")
    parser.add_argument("--table", nargs="+", metavar="FILE", help="print what these files of --json have")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    if options.table:
        print_table(options.table)
        return 0
    options.python = os.path.abspath(options.python)
    options.part = [int(number) for number in options.part.split("/")]
    if options.healthy:
        return healthy_run.run_healthy(options, parse, has)
    options.pauses = [float(pause) for pause in options.pauses.split(",")]
    groups = {"python": situations.PYTHON, "native": situations.NATIVE}
    everything = situations.PYTHON + situations.NATIVE
    words = options.only.split(";")
    chosen = groups.get(options.only) or [s for word in words for s in everything if word in s.name]
    report: list[dict] = []
    for size in options.containers.split(","):
        run_container(size, chosen, options, report)
    ends = [(cell["end"], line["native"]) for line in report for cell in line["cells"]]
    bad = sum(end != "error" for end, native in ends if not native)
    cells = len(ends)
    print(f"{cells} cells, {bad} of Python's own memory ended wrong")
    return 1 if bad and not options.unwatched else 0


if __name__ == "__main__":
    os.umask(0o077)
    sys.exit(main())
