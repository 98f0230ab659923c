# SPDX-License-Identifier: Apache-2.0
"""Every case of every op, side by side with LiteRT.

pytest tests/conformance -k CONV_2D
"""

from __future__ import annotations

import importlib
import sys
from collections import defaultdict
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from compare import difference  # noqa: E402
from harness import Case  # noqa: E402
from peer import Answer, Peer  # noqa: E402

SHOWN_FAILURES = 12


def _cases_by_op() -> dict[str, list[Case]]:
    by_op = defaultdict(list)
    for file in sorted((HERE / "cases").glob("*.py")):
        for case in importlib.import_module(f"cases.{file.stem}").cases():
            by_op[case.op].append(case)
    return by_op


CASES = _cases_by_op()


@pytest.fixture(scope="session")
def peers():
    pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed")
    all_peers = [
        Peer("leadline.lite"),
        Peer("ai_edge_litert.interpreter"),
        Peer("ai_edge_litert.interpreter", "BUILTIN_REF"),
    ]
    yield all_peers
    for peer in all_peers:
        peer.close()


def judge(case: Case, peers: list[Peer]) -> str:
    """Empty when the case is as it should be, else what is not."""
    ours, litert, reference_kernels = peers
    model, feeds = case.model(), case.feeds()
    litert.send(model, feeds)
    mine = ours.run(model, feeds)
    theirs = litert.receive()
    if case.litert != "right":
        return _judge_fault(case, mine, theirs)
    if theirs.outputs is None:
        return f"LiteRT does not run it ({theirs.error}); Leadline: {mine.error or 'runs it'}"
    if mine.outputs is None:
        return f"Leadline does not run it: {mine.error}"
    why = difference(case, mine.outputs, theirs.outputs)
    if why:
        # LiteRT has two kernels for many ops; what either of them computes is right.
        other = reference_kernels.run(model, feeds)
        if other.outputs is not None and not difference(case, mine.outputs, other.outputs):
            return ""
    return why


def _judge_fault(case: Case, mine: Answer, theirs: Answer) -> str:
    """A case that LiteRT is known to fail: it still must, and Leadline must compute what numpy says."""
    want = [[*case.reference(*feed)] for feed in case.feeds()]
    if mine.outputs is None:
        return f"Leadline does not run it: {mine.error}"
    seen = "dies" if theirs.died else "refuses" if theirs.outputs is None else "right"
    if seen == "right" and difference(case, theirs.outputs, want):
        seen = "wrong"
    if seen != case.litert:
        return f"LiteRT is said to be '{case.litert}' here, but is '{seen}' ({theirs.error})"
    return difference(case, mine.outputs, want)


@pytest.mark.parametrize("op", sorted(CASES))
def test_op_agrees_with_litert(op, peers):
    failures = [f"{case}: {why}" for case in CASES[op] if (why := judge(case, peers))]
    shown = "\n".join(failures[:SHOWN_FAILURES])
    assert not failures, f"{len(failures)} of {len(CASES[op])} cases of {op} failed:\n{shown}"


def test_case_names_are_unique():
    names = [str(case) for cases in CASES.values() for case in cases]
    twice = {name for name in names if names.count(name) > 1} if len(names) != len(set(names)) else set()
    assert not twice
