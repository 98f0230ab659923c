# SPDX-License-Identifier: Apache-2.0
"""Sums up what tools/coverage.sh measured: lines that ran, by folder, printed and as a page with links to the details.

usage: tools/coverage_report.py FOLDER     with cpp.json and cpp.html (gcovr), python.json and python/ (coverage.py)
"""

from __future__ import annotations

import html
import json
import sys
from collections import defaultdict
from pathlib import Path, PurePath

Lines = tuple[int, int]  # that ran, of


def room(path: str) -> str:
    """The folder whose figures a file counts to: src/ops/loops/split.h to src/ops, python/leadline/tf/op.py to
    python/leadline/tf."""
    parts = PurePath(path).parts[:-1]
    return "/".join(parts[: 3 if parts[0] == "python" else 2])


def by_room(files: dict[str, Lines]) -> dict[str, Lines]:
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for path, (ran, lines) in files.items():
        sums[room(path)][0] += ran
        sums[room(path)][1] += lines
    return {name: (ran, lines) for name, (ran, lines) in sorted(sums.items())}


def read(folder: Path) -> dict[str, dict[str, Lines]]:
    cpp = json.loads((folder / "cpp.json").read_text())["files"]
    python = json.loads((folder / "python.json").read_text())["files"]
    root = Path(__file__).resolve().parent.parent
    return {
        "C++": {file["filename"]: (file["line_covered"], file["line_total"]) for file in cpp},
        "Python": {
            str((root / path).resolve().relative_to(root)): (
                file["summary"]["covered_lines"],
                file["summary"]["num_statements"],
            )
            for path, file in python.items()
        },
    }


def main() -> None:
    folder = Path(sys.argv[1])
    details = {"C++": "cpp.html", "Python": "python/index.html"}
    rows = []
    for language, files in read(folder).items():
        total = (sum(ran for ran, _ in files.values()), sum(lines for _, lines in files.values()))
        for name, (ran, lines) in [*by_room(files).items(), (language, total)]:
            if lines:
                rows.append((name, ran, lines, 100 * ran / lines, details.get(name)))
    for name, ran, lines, share, _ in rows:
        print(f"  {name:24} {ran:6} of {lines:6} lines  {share:5.1f} %")
    table = "".join(
        f"<tr><td>{f'<a href={link!r}>{html.escape(name)}</a>' if link else html.escape(name)}</td><td>{ran}</td>"
        f"<td>{lines}</td><td>{share:.1f} %</td></tr>"
        for name, ran, lines, share, link in rows
    )
    page = folder / "index.html"
    page.write_text(
        "<!doctype html><meta charset='utf-8'><title>Coverage of Leadline</title>"
        "<style>body{font:14px sans-serif;margin:2em}td,th{padding:.2em 1em;text-align:right}"
        "td:first-child,th:first-child{text-align:left}</style>"
        "<h1>Lines that tests run</h1><table><tr><th>where</th><th>ran</th><th>lines</th><th>share</th></tr>"
        f"{table}</table>"
    )
    print(f"coverage: {page}")


if __name__ == "__main__":
    main()
