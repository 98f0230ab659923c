# SPDX-License-Identifier: Apache-2.0
"""What Interpreter.profile() returns."""

from __future__ import annotations

from collections.abc import Iterable

from leadline._leadline import NodeProfile
from leadline.notebook.html import html_table


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
            cells = (c.ljust(w) if i in left else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True)))
            lines.append("  ".join(cells).rstrip())
        return "\n".join(lines)

    def __repr__(self) -> str:
        text = f"<leadline.lite.Profile: {len(self)} nodes, {self.total_ms:.3f} ms"
        if self.total_ms:
            op, time = next(iter(self.by_op().items()))
            text += f", most of it in {op} ({time / self.total_ms:.0%})"
        return text + ">"

    def _repr_html_(self) -> str:
        return html_table(self._HEADER, self._rows())
