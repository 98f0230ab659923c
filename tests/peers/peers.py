# SPDX-License-Identifier: Apache-2.0
"""Runs the suites of LiteRT, Keras and keras-hub on Leadline and compares with TensorFlow: see README.md beside this file."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from run import run
from suites import SUITES, extract

DIFFERENCES = Path(__file__).with_name("differences.json")


def compare(suite: str, peer: dict, own: dict) -> tuple[str, list[str]]:
    """A line for the table, and what is wrong."""
    listed = {
        test: reason
        for group in json.loads(DIFFERENCES.read_text()).get(suite, [])
        for test in group["tests"]
        for reason in [group["reason"]]
    }
    short = {test: test.split(".", 1)[1] for test in peer}
    counted = [test for test, line in peer.items() if line["outcome"] == "pass"]
    same = [test for test in counted if own[test]["outcome"] == "pass"]
    besides = [test for test, line in own.items() if line["outcome"] == "pass" and peer[test]["outcome"] != "pass"]
    problems = [
        f"{suite}: {short[test]}: {own[test]['outcome']}: {own[test]['message'].splitlines()[:1]}"
        for test in (peer if SUITES[suite].own else counted)
        if own[test]["outcome"] != "pass" and short[test] not in listed
    ]
    passes = besides + same
    problems += [
        f"{suite}: {short[test]} passes, but differences.json lists it" for test in passes if short[test] in listed
    ]
    known = sum(short[test] in listed for test in peer)
    row = f"| {suite} | {len(peer)} | {len(counted)} | {len(same)} | {known} | {len(besides)} |"
    return row, problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", nargs="*", help=f"of {', '.join(SUITES)}; without: all")
    parser.add_argument("--sources", type=Path, required=True, help="the folder with the clones")
    parser.add_argument("--python", default=sys.executable, help="of an environment with requirements-peers.txt")
    parser.add_argument("--keep", type=Path, help="a folder for the outcomes of all tests")
    chosen = parser.parse_args()
    if unknown := [name for name in chosen.suites if name not in SUITES]:
        parser.error(f"unknown suite {unknown[0]}; expected some of {', '.join(SUITES)}")
    rows, problems = [], []
    with tempfile.TemporaryDirectory(prefix="leadline-peers-") as temporary:
        kept = chosen.keep or Path(temporary)
        kept.mkdir(parents=True, exist_ok=True)
        for name in chosen.suites or SUITES:
            folder = Path(temporary) / name
            folder.mkdir()
            file = extract(SUITES[name], chosen.sources.expanduser(), folder, chosen.python)
            lines = {
                engine: run(chosen.python, engine, folder, file, kept / f"{name}.{engine}.jsonl")
                for engine in ("tensorflow", "leadline")
            }
            row, wrong = compare(name, lines["tensorflow"], lines["leadline"])
            rows.append(row)
            problems += wrong
            if not lines["tensorflow"]:
                problems.append(f"{name}: no test was run; does ONLY match a name?")
            print(row, flush=True)
    print("\n| suite | tests | TensorFlow passes | of these Leadline | listed differences | Leadline besides |")
    print("|---|---|---|---|---|---|", *rows, sep="\n")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
