# SPDX-License-Identifier: Apache-2.0
"""Skipped tests are counted by reason at the end of a run, and a run with more of them than the ceiling fails: tests
that are skipped show nothing, and a suite must not come to consist of them unnoticed."""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path

import pytest

SHARED = Path(os.environ.get("LEADLINE_SHARED") or Path(__file__).resolve().parents[1] / "shared")
# Of a whole run with the folder of real models, and without it. Lower them when there are fewer.
CEILINGS = {True: 30, False: 60}
# Tests of programs that were not built count only where everything should have been (make test).
COMPLETE = os.environ.get("LEADLINE_COMPLETE") == "1"
# Of the machine, not of the suite: tests in small containers need root, or a delegated control group.
MACHINE = "no control group with a memory limit can be made here"


class SkipCounter:
    """Counts the reasons for which tests and modules were skipped."""

    def __init__(self, ceiling: int) -> None:
        self.ceiling = ceiling
        self.reasons: Counter[str] = Counter()

    @property
    def total(self) -> int:
        return sum(count for reason, count in self.reasons.items() if self._counts(reason))

    @staticmethod
    def _counts(reason: str) -> bool:
        return reason != MACHINE and (COMPLETE or not reason.endswith("is not built"))

    def _note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            where = report.longrepr
            reason = where[2] if isinstance(where, tuple) else str(where)
            self.reasons[re.sub(r"^Skipped: ", "", reason).splitlines()[0]] += 1

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._note(report)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.total > self.ceiling and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for reason, count in self.reasons.most_common():
            terminalreporter.write_line(f"skipped {count:4}: {reason[:140]}")
        if self.total > self.ceiling:
            terminalreporter.write_line(
                f"FAILED: {self.total} tests were skipped, the ceiling is {self.ceiling} (CEILINGS in conftest.py)"
            )


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # workers of pytest-xdist send their reports to the one that counts
        has_models = (SHARED / "models" / "MODELS.md").is_file()
        config.pluginmanager.register(SkipCounter(CEILINGS[has_models]), "skip-counter")
