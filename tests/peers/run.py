# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of one suite on one engine and writes what came of each: python run.py ENGINE FOLDER FILE OUT.jsonl

Each line has the test, its outcome (pass, fail, error, skip, died) and the message. A process that dies is started
again after the test that it died of.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

SECONDS_PER_TEST = int(os.environ.get("PEERS_SECONDS", "120"))
MOST_DEATHS = 40


class _Lines(unittest.TestResult):
    def __init__(self, out: TextIO) -> None:
        super().__init__()
        self._out = out
        self._outcome: tuple[str, str] = ("pass", "")

    def _write(self, test: unittest.TestCase, outcome: str, message: str = "") -> None:
        print(
            json.dumps({"test": test.id(), "outcome": outcome, "message": message[:2000]}), file=self._out, flush=True
        )

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self._outcome = ("pass", "")
        self._write(test, "started")
        signal.alarm(SECONDS_PER_TEST)

    def stopTest(self, test: unittest.TestCase) -> None:
        signal.alarm(0)
        self._write(test, *self._outcome)

    def addError(self, test: Any, err: Any) -> None:
        self._outcome = ("error", f"{err[0].__name__}: {err[1]}")

    def addFailure(self, test: Any, err: Any) -> None:
        self._outcome = ("fail", str(err[1]))

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        if err is not None:
            self.addFailure(test, err)

    def addSkip(self, test: Any, reason: str) -> None:
        self._outcome = ("skip", reason)


def _cases(suite: Any) -> Iterator[unittest.TestCase]:
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from _cases(item)
        elif not item.id().endswith(".test_session"):
            yield item


def _too_long(*_: Any) -> None:
    raise TimeoutError(f"the test took more than {SECONDS_PER_TEST} seconds")


def _work(engine: str, folder: Path, file: Path, out: Path) -> None:
    import absl.testing.absltest  # noqa: F401  defines the flags that tests read
    from absl import flags

    flags.FLAGS(sys.argv[:1])
    sys.path.insert(0, str(Path(__file__).parent))
    import redirect

    redirect.install(engine, folder)
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    done = {json.loads(line)["test"] for line in out.read_text().splitlines()}
    cases = _cases(unittest.defaultTestLoader.loadTestsFromModule(module))
    only = os.environ.get("PEERS_ONLY", "")
    left = [case for case in cases if case.id() not in done and re.search(only, case.id())]
    signal.signal(signal.SIGALRM, _too_long)
    with out.open("a") as lines:
        result = _Lines(lines)
        groups: dict[type, list[unittest.TestCase]] = {}
        for case in left:
            groups.setdefault(type(case), []).append(case)
        for kind, cases in groups.items():
            try:
                kind.setUpClass()
            except Exception as error:
                for case in cases:
                    result._write(case, "error", f"setUpClass: {type(error).__name__}: {error}")
                continue
            for case in cases:
                case.run(result)
            kind.tearDownClass()


def outcomes(out: Path) -> dict[str, dict[str, str]]:
    """The last line of each test."""
    return {line["test"]: line for line in map(json.loads, out.read_text().splitlines())}


def run(python: str, engine: str, folder: Path, file: Path, out: Path) -> dict[str, dict[str, str]]:
    """All tests; returns their lines by name."""
    out.write_text("")
    environment = {**os.environ, "PEERS_WORKER": "1", "PEERS_FOLDER": str(folder), "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [python, __file__, engine, str(folder), str(file), str(out)]
    for _ in range(MOST_DEATHS):
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if ended.returncode == 0:
            return outcomes(out)
        open_tests = [test for test, line in outcomes(out).items() if line["outcome"] == "started"]
        if not open_tests:
            raise SystemExit(f"{file.name} cannot be run on {engine}:\n{ended.stderr[-3000:]}")
        with out.open("a") as lines:
            for test in open_tests:
                line = {"test": test, "outcome": "died", "message": f"exit status {ended.returncode}"}
                print(json.dumps(line), file=lines)
    raise SystemExit(f"{file.name}: {MOST_DEATHS} tests died on {engine}")


if __name__ == "__main__":
    _work(sys.argv[1], *map(Path, sys.argv[2:5]))
    sys.stdout.flush()
    os._exit(0)  # not the engines' own endings
