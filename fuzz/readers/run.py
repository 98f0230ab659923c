#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs libFuzzer on the readers and says what was found.

usage: run.py fuzz_readers [--work FOLDER] [--minutes 5] [--jobs 2] [--extra FOLDER] [reader ...]

The work folder keeps a corpus for each reader, so that the next run continues from there, and the inputs of findings.
Exit code 1 when there are findings.
"""

import argparse
import os
import re
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

# An input may take so much: seconds, megabytes in all, megabytes in one piece.
LIMITS = ["-timeout=5", "-rss_limit_mb=512", "-malloc_limit_mb=256"]
# The sanitizer keeps freed memory for a while; it is not the reader's.
SANITIZER = {"ASAN_OPTIONS": "quarantine_size_mb=16"}
MOST_BYTES = {"keras_file": 32768, "hdf5": 16384, "calibration": 65536, "flight": 16384, "keras_config": 8192}


@dataclass
class Result:
    reader: str
    executions: int = 0
    edges: int = 0
    features: int = 0
    corpus: int = 0
    seconds: int = 0
    findings: list = field(default_factory=list)


def real_models(folder, most):
    """Small .tflite files below the folder, those in .zip files included."""
    for path in sorted(folder.rglob("*.tflite")):
        if path.stat().st_size <= most:
            yield path.read_bytes()
    for path in sorted(folder.rglob("*.zip")):
        with zipfile.ZipFile(path) as archive:
            names = [i.filename for i in archive.infolist() if i.filename.endswith(".tflite") and i.file_size <= most]
            for name in names[:: max(1, len(names) // 8)]:  # they resemble each other
                yield archive.read(name)


def prepare(program, reader, work, extra):
    """The folder of the reader, with seeds, words and a corpus."""
    folder = work / reader
    (folder / "corpus").mkdir(parents=True, exist_ok=True)
    (folder / "findings").mkdir(exist_ok=True)
    subprocess.run([program, f"--reader={reader}", f"--write={folder}"], check=True)
    if extra and reader in ("tflite", "quantize"):
        for number, data in enumerate(real_models(extra, 4096)):
            (folder / "seeds" / f"real{number}").write_bytes(data)
    return folder


def fuzz(program, reader, work, minutes, extra):
    folder = prepare(program, reader, work, extra)
    before = set((folder / "findings").iterdir())
    command = [program, f"--reader={reader}", *LIMITS, f"-max_total_time={round(60 * minutes)}", "-print_final_stats=1",
               f"-max_len={MOST_BYTES.get(reader, 4096)}", f"-artifact_prefix={folder}/findings/", "-reload=0",
               folder / "corpus", folder / "seeds"]  # fmt: skip
    if (folder / "words.dict").stat().st_size:
        command.append(f"-dict={folder}/words.dict")
    with open(folder / "log", "wb") as log:
        subprocess.run(["nice", *map(str, command)], stdout=log, stderr=log, check=False, env=os.environ | SANITIZER)
    result = Result(reader, findings=sorted(set((folder / "findings").iterdir()) - before))
    text = (folder / "log").read_text(errors="replace")
    for match in re.finditer(r"cov: (\d+) ft: (\d+) corp: (\d+)", text):
        result.edges, result.features, result.corpus = map(int, match.groups())
    if match := re.search(r"stat::number_of_executed_units:\s*(\d+)", text):
        result.executions = int(match[1])
    if match := re.search(r"Done \d+ runs in (\d+) second", text):
        result.seconds = int(match[1])
    elif not result.findings:
        result.findings.append(folder / "log")  # it ended, and not by itself
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=lambda p: Path(p).resolve())
    parser.add_argument("readers", nargs="*")
    parser.add_argument("--work", type=Path, default=Path("build/fuzz/readers"))
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--extra", type=Path, help="a folder of real models to begin with; LEADLINE_SHARED")
    options = parser.parse_intermixed_args()
    if options.extra is None and os.environ.get("LEADLINE_SHARED"):
        options.extra = Path(os.environ["LEADLINE_SHARED"])
    names = subprocess.run([options.program], capture_output=True, text=True, check=True).stdout.split()
    chosen = options.readers or names
    if unknown := set(chosen) - set(names):
        sys.exit(f"there is no reader {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    results = []
    print(f"{'reader':14} {'executions':>12} {'edges':>7} {'features':>9} {'corpus':>7}  findings", flush=True)
    with ThreadPoolExecutor(options.jobs) as pool:
        for result in pool.map(
            lambda name: fuzz(options.program, name, options.work, options.minutes, options.extra), chosen
        ):
            results.append(result)
            found = ", ".join(map(str, result.findings)) or "none"
            print(f"{result.reader:14} {result.executions:12,} {result.edges:7,} {result.features:9,} "
                  f"{result.corpus:7,}  {found}", flush=True)  # fmt: skip
    print(f"{sum(r.executions for r in results):,} executions, {sum(len(r.findings) for r in results)} findings")
    return 1 if any(r.findings for r in results) else 0


if __name__ == "__main__":
    sys.exit(main())
