#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the instructions of single ops and small models under callgrind and compares them with the counts on file.

    tools/count_instructions.py --program PROGRAM --expected data/instruction_counts.json [--refresh] [MODEL ...]

Counts do not depend on how busy the machine is. valgrind shows programs a CPU with AVX2 and without AVX-512, so they do
not depend on the CPU either; they do depend on the compiler, and are compared only with those of the same one.
Exit code: 0 equal within the tolerance or better, 1 a case takes more, 77 (skipped) where counting makes no sense.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED = 77


def count(program, models):
    """Instructions of each case, by name."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "counts"
        command = [
            "valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--toggle-collect=leadline_counted_run",
            "--dump-before=leadline_next_case", "--combine-dumps=no", program, *models,
        ]  # fmt: skip
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            sys.exit(f"{program} failed under valgrind:\n{result.stderr[-2000:]}")
        names = result.stdout.split("\n")[:-1]
        # The first file is what was counted before the first case: nothing.
        totals = [
            int(re.search(r"^totals: (\d+)", Path(f"{out}.{i}").read_text(), re.MULTILINE).group(1))
            for i in range(2, len(names) + 2)
        ]
        return dict(zip(names, totals, strict=True))


def compare(counts, expected, tolerance):
    """Prints what changed; whether a case takes more than it may."""
    worse = False
    for name, now in counts.items():
        before = expected.get(name)
        if before is None:
            print(f"  new     {name}: {now:,}")
            worse = True
        elif now > before * (1 + tolerance):
            print(f"  WORSE   {name}: {now:,}, {100 * (now / before - 1):+.1f} % of {before:,}")
            worse = True
        elif now < before * (1 - tolerance):
            print(f"  better  {name}: {now:,}, {100 * (now / before - 1):+.1f} % of {before:,}")
    for name in expected.keys() - counts.keys():
        print(f"  gone    {name}")
        worse = True
    return worse


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="tests/programs/instruction_counts.cc, built for release")
    parser.add_argument("--expected", type=Path, required=True)
    parser.add_argument("--compiler", default="", help="what built it, as CMake names it")
    parser.add_argument("--refresh", action="store_true", help="write the counts instead of comparing")
    parser.add_argument("models", nargs="*")
    args = parser.parse_args()
    known = json.loads(args.expected.read_text()) if args.expected.exists() else {"tolerance": 0.02}
    if shutil.which("valgrind") is None:
        print("skipped: valgrind is not installed (tools/setup.sh tests)")
        return SKIPPED
    if "avx2" not in Path("/proc/cpuinfo").read_text():
        print("skipped: the counts are those of AVX2 kernels, which this CPU does not have")
        return SKIPPED
    if not args.refresh and known.get("compiler") != args.compiler:
        print(f"skipped: the counts are those of {known.get('compiler')}, this is {args.compiler}")
        return SKIPPED
    counts = count(args.program, args.models)
    if args.refresh:
        compare(counts, known.get("counts", {}), 0.0)
        known |= {"compiler": args.compiler, "counts": counts}
        args.expected.write_text(json.dumps(known, indent=1) + "\n")
        return 0
    if compare(counts, known["counts"], known["tolerance"]):
        print("If that is meant: make instruction-counts, and say in the commit why it is worth it.")
        return 1
    print(f"{len(counts)} cases within {100 * known['tolerance']:g} % of {args.expected.name} or better")
    return 0


if __name__ == "__main__":
    sys.exit(main())
