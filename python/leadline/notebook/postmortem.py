# SPDX-License-Identifier: Apache-2.0
"""Post-mortems in notebooks and as pages: the text, and the curve of memory as a picture that suits light and dark."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from pathlib import Path

from leadline._leadline import Postmortem, flights_folder, format_bytes
from leadline.notebook.html import escape

_WIDTH, _HEIGHT = 640, 180
_LEFT, _RIGHT, _TOP, _BOTTOM = 8, 8, 18, 20
_MOST_PAGES = 40

Sample = tuple[float, int, int, int]  # seconds before the end; resident, used, capacity in bytes

# Colours that have contrast on white and on black; text takes the colour of its surroundings.
_STYLE = (
    ".leadline-curve text{fill:currentColor;font:11px sans-serif}"
    ".leadline-curve .own{fill:none;stroke:#e8590c;stroke-width:2}"
    ".leadline-curve .all{fill:#4dabf7;fill-opacity:.25;stroke:#4dabf7}"
    ".leadline-curve .limit{stroke:#e03131;stroke-dasharray:6 4}"
    ".leadline-curve .axis{stroke:currentColor;stroke-opacity:.4}"
)


def memory_curve(samples: Sequence[Sample]) -> str:
    """An SVG of the last minutes: this process, all that was in use, and the limit. Empty for less than two samples."""
    if len(samples) < 2:
        return ""
    longest = max(samples[0][0], 0.1)
    limit = max(sample[3] for sample in samples)
    most = max(limit, *(max(sample[1], sample[2]) for sample in samples), 1)

    def x(seconds: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (1 - seconds / longest)

    def y(count: float) -> float:
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - count / most)

    def line(which: int) -> str:
        return " ".join(f"{x(sample[0]):.1f},{y(sample[which]):.1f}" for sample in samples)

    floor = y(0)
    own, used = samples[-1][1], samples[-1][2]
    title = f"memory of the last {longest:.0f} s: {format_bytes(own)} of this process"
    head = (
        f'<svg class="leadline-curve" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" style="max-width:100%" '
        f'role="img" aria-label="{escape(title)}"><style>{_STYLE}</style><title>{escape(title)}</title>'
    )
    parts = [head]
    if limit:
        first, last = f"{x(longest):.1f},{floor:.1f}", f"{x(samples[-1][0]):.1f},{floor:.1f}"
        parts.append(
            f'<polygon class="all" points="{first} {line(2)} {last}"/>'
            f'<line class="limit" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y(limit):.1f}" y2="{y(limit):.1f}"/>'
            f'<text x="{_LEFT}" y="{y(limit) - 5:.1f}">limit {format_bytes(limit)}; in use at the end '
            f"{format_bytes(used)}</text>"
        )
    parts.append(
        f'<polyline class="own" points="{line(1)}"/>'
        f'<line class="axis" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{floor:.1f}" y2="{floor:.1f}"/>'
        f'<text x="{_LEFT}" y="{_HEIGHT - 6}">{longest:.0f} s before the end</text>'
        f'<text x="{_WIDTH - _RIGHT}" y="{_HEIGHT - 6}" text-anchor="end">the end: {format_bytes(own)} of this process'
        "</text></svg>"
    )
    return "".join(parts)


def to_html(report: Postmortem) -> str:
    """What a notebook shows: the sentence, what to do, the curve; the rest can be unfolded."""
    lines = [f"<div><strong>{escape(report.summary)}</strong></div>"]
    for line in report.brief().splitlines()[1:]:
        lines.append(f"<div><b>{escape(line[2:10].strip())}</b> {escape(line[10:])}</div>")
    lines.append(memory_curve(report.samples))
    lines.append(f"<details><summary>All that is known</summary><pre>{escape(str(report))}</pre></details>")
    return "\n".join(lines)


def to_page(report: Postmortem) -> str:
    """A page of its own, without anything from elsewhere."""
    head = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">'
        "<title>Leadline: post-mortem</title><style>body{font:15px/1.5 sans-serif;max-width:60em;margin:2em auto;"
        "padding:0 1em}pre{white-space:pre-wrap;overflow-wrap:anywhere;font-size:13px}"
        "h1{font-size:1.3em}</style></head><body>"
    )
    brief = report.brief().splitlines()
    return (
        f"{head}<h1>{escape(brief[0])}</h1><pre>{escape(chr(10).join(brief[1:]))}</pre>"
        f"{memory_curve(report.samples)}<h2>All that is known</h2><pre>{escape(str(report))}</pre></body></html>\n"
    )


def write_page(report: Postmortem) -> Path:
    """Writes the page beside the recording, or where recordings are; readable by its owner only."""
    if report.path:
        path = Path(report.path).with_suffix(".html")
    else:
        moment = time.strftime("%Y%m%dT%H%M%S", time.gmtime(report.last_sign))
        path = Path(flights_folder()) / f"{moment}.000Z-{report.pid}.html"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(to_page(report))
    for old in sorted(path.parent.glob("*.html"))[:-_MOST_PAGES]:
        with contextlib.suppress(OSError):
            old.unlink()
    return path


def read_page(path: Path) -> str | None:
    """A page that write_page() wrote; None when it is gone."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(descriptor, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return None
