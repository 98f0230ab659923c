# SPDX-License-Identifier: Apache-2.0
"""Tables for people: the profile of an interpreter, and the HTML forms that notebooks show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from leadline._leadline import NodeProfile, format_bytes


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


class Profile(list[NodeProfile]):
    """Time per node, in the order of the file: a list with a text and an HTML form."""

    @property
    def total_ms(self) -> float:
        """Milliseconds in all nodes and runs."""
        return sum(node.total_ms for node in self)

    def by_op(self) -> dict[str, float]:
        """Milliseconds by op, the most expensive first."""
        sums: dict[str, float] = {}
        for node in self:
            sums[node.op] = sums.get(node.op, 0.0) + node.total_ms
        return dict(sorted(sums.items(), key=lambda item: -item[1]))

    def to_dict(self) -> list[dict[str, object]]:
        """One dict per node."""
        fields = ("subgraph", "node", "op", "name", "runs", "total_ms", "fastest_ms")
        return [{field: getattr(node, field) for field in fields} for node in self]

    def _rows(self) -> Iterable[tuple[str, ...]]:
        total = self.total_ms or 1.0
        for node in self:
            where = f"{node.node}" if node.subgraph == 0 else f"{node.subgraph}:{node.node}"
            mean = node.total_ms / node.runs if node.runs else 0.0
            share = f"{100 * node.total_ms / total:.1f} %"
            yield where, node.op, f"{node.runs}", f"{mean:.4f}", f"{node.fastest_ms:.4f}", share, node.name

    _HEADER = ("node", "op", "runs", "mean ms", "fastest ms", "share", "name")

    def __str__(self) -> str:
        rows = [self._HEADER, *self._rows()]
        widths = [max(len(row[column]) for row in rows) for column in range(len(self._HEADER))]
        # Text left, numbers right.
        left = (1, 6)
        lines = []
        for row in rows:
            cells = (c.ljust(w) if i in left else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths)))
            lines.append("  ".join(cells).rstrip())
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return html_table(self._HEADER, self._rows())


def interpreter_html(title: str, tensors: Iterable[tuple[str, dict]], facts: dict[str, object]) -> str:
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
