# SPDX-License-Identifier: Apache-2.0
"""The HTML tables that notebooks show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from leadline._leadline import format_bytes


def escape(text: str) -> str:
    """`text` for HTML. The module is imported here because most programs never show a table."""
    import html

    return html.escape(text)


def html_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A plain HTML table; every cell is escaped."""

    def line(cells: Sequence[object], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(line(row, "td") for row in rows)
    return f"<table><thead>{line(header, 'th')}</thead><tbody>{body}</tbody></table>"


def interpreter_html(title: str, tensors: Iterable[tuple[str, dict[str, Any]]], facts: dict[str, object]) -> str:
    """What a notebook shows for an interpreter: its inputs and outputs, and what the plan says."""
    rows = []
    for role, details in tensors:
        scale, zero_point = details["quantization"]
        quantization = f"{scale:g}, {zero_point}" if scale else ""
        name, shape = details["name"], details["shape"].tolist()
        rows.append((role, details["index"], name, details["dtype"].__name__, shape, quantization))
    table = html_table(("", "index", "name", "dtype", "shape", "scale, zero point"), rows)
    shown = ((key, format_bytes(value) if isinstance(value, int) else value) for key, value in facts.items())
    return f"<div><strong>{escape(title)}</strong>{table}{html_table(('memory', ''), shown)}</div>"
