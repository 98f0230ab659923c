# SPDX-License-Identifier: Apache-2.0
"""Mutants of models, made through the schema (fuzz/mutants): a small run of what `make fuzz` does at length."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PER_OP = 40  # models of each op to take apart; all of them take longer to write than to use
MUTANTS = 2000


def find_program():
    built = ROOT / "build"
    places = [os.environ.get("LEADLINE_FUZZ"), built / "release/leadline_fuzz", *sorted(built.glob("*/leadline_fuzz"))]
    return next((Path(place) for place in places if place and Path(place).exists()), None)


PROGRAM = find_program()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="leadline_fuzz is not built")


def run(*arguments, expected=0) -> str:
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=1800)
    assert done.returncode == expected, done.stdout[-6000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def bases(tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("fuzz") / "bases.bin"
    subprocess.run([sys.executable, ROOT / "fuzz" / "write_bases.py", file, "--per-op", str(PER_OP)], check=True)
    return file


def test_mutants_end_in_success_or_an_error(bases, tmp_path):
    text = run("--bases", bases, "--seed", 9, "--count", MUTANTS, "--jobs", 2, "--findings", tmp_path, "--slow", 10)
    results = text.splitlines()[-1]
    assert f"{MUTANTS} mutants" in results and "0 findings" in results
    # A fair part of them gets past the checks, else nothing is tested.
    ran = int(results.split(" ran ")[1].split(",")[0])
    assert ran > MUTANTS / 5, results


def test_what_was_found_before_stays_fixed(tmp_path):
    files = sorted((ROOT / "fuzz" / "regressions").glob("*.txt"))
    assert files
    run("--run", *files, "--rounds", 24, "--findings", tmp_path / "x", "--slow", 10)


def test_deaths_exceptions_and_hangs_are_found_and_made_small(bases, tmp_path):
    arguments = ["--bases", bases, "--count", 60, "--plant", 2, "--slow", 0.1, "--per-fault", 1, "--minimize", 8]
    text = run(*arguments, "--findings", tmp_path, expected=1)
    death = "SEGV" if "with sanitizers" in text else "death: Segmentation fault"
    for words in (death, "exception: not a std::exception", "internal: planted", "hang: no end"):
        assert words in text
    kept = [file for file in tmp_path.glob("*.txt") if "minimized" in file.read_text().splitlines()[1]]
    assert len(kept) >= 3
    # What was kept can be run again, from text and as a file.
    run("--run", *kept, *(file.with_suffix(".tflite") for file in kept), "--rounds", 1, "--findings", tmp_path / "x")


def test_the_same_seed_gives_the_same_mutant(bases, tmp_path):
    for name in ("a", "b"):
        run("--bases", bases, "--seed", 3, "--only", 17, "--keep", tmp_path / name)
    run("--bases", bases, "--seed", 3, "--only", 18, "--keep", tmp_path / "c")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() != (tmp_path / "c").read_bytes()
