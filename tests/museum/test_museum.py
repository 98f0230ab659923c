# SPDX-License-Identifier: Apache-2.0
"""Every case of the museum: the right result, or an error of Leadline's that names the cause.

pytest tests/museum -k I09
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "conformance"), str(HERE.parent / "python")]

from make_table import PAGE, PEERS  # noqa: E402
from museum import ALL  # noqa: E402
from visitor import Visitor, judge  # noqa: E402

HINT = "run: .venv/bin/python tests/museum/make_table.py"
# Advisories by year and number; 37689 is also K09, 36027 also K08.
ADVISORIES = {
    2020: [*range(15207, 15215)],
    2021: [*range(29585, 29607), *range(37680, 37690), 37691],
    2022: [21741, *range(23557, 23562), 29212, 35937, 35938, 35939, 36027, 41894],
    2023: [27579],
}


@pytest.fixture(scope="module")
def visitor():
    with Visitor("leadline.lite", seconds=120) as made:
        yield made


@pytest.mark.parametrize("exhibit", ALL, ids=lambda exhibit: exhibit.id)
def test_museum(exhibit, visitor):
    for module in exhibit.needs:
        pytest.importorskip(module)
    failures = [why for view in exhibit.views if (why := judge(view, visitor.look(view)))]
    assert not failures, "\n".join(failures)
    if exhibit.ours is not None:
        assert exhibit.ours()


def test_every_report_is_a_case():
    expected = {f"{hall}{n:02}" for hall, count in (("L", 17), ("I", 27), ("K", 19), ("M", 12), ("S", 8))
                for n in range(1, count + 1)}  # fmt: skip
    expected |= {f"CVE-{year}-{number}" for year, numbers in ADVISORIES.items() for number in numbers}
    assert sum(map(len, ADVISORIES.values())) == 54
    ids = [exhibit.id for exhibit in ALL]
    assert set(ids) == expected | {"TFSA-2018-003"} and len(ids) == len(set(ids))
    assert all(exhibit.views or exhibit.ours for exhibit in ALL)


def test_page_lists_exactly_these_cases():
    rows = re.findall(r"^\| ([A-Z]+[-0-9]+) \| (.*?) \| (.*?) \| (.*?) \| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    assert [row[:3] for row in rows] == [(e.id, e.title, e.source) for e in ALL], HINT
    assert all(peers and ours for *_, peers, ours in rows)
    assert list(json.loads(PEERS.read_text())) == [e.id for e in ALL], f"{HINT} --peers"
