# SPDX-License-Identifier: Apache-2.0
"""A graph that does not fit whole, run by blocks of rows: a matrix product and what is done to its rows need only some
of them at a time, a reduction keeps only its result."""

from __future__ import annotations

import numpy as np

from leadline.tf import op as op_module, shapes
from leadline.tf.plan import Plan, Step
from leadline.tf.tensor import Tensor

# Blocks this large keep the engine busy; larger ones only take more memory.
_GOOD_BLOCK_BYTES = 64 << 20


class Region:
    """Steps that run together in a loop over blocks of their first axis."""

    def __init__(self, plan: Plan, limit: int) -> None:
        """Raises NotTileable when there is no such loop that fits `limit` bytes."""
        self._plan = plan
        big = self._big(limit)
        self.steps = [step for step in plan.steps if any(t in big for t in (*step.op.outputs, *step.op.inputs))]
        self._made = {t: step for step in self.steps for t in step.op.outputs}
        self.cuts = {step.op: self._cut(step) for step in self.steps}
        self._check_order()
        self.collected = self._collected(big)
        self.rows = self._row_count()
        self.block, self.peak = self._choose_block(limit)

    def _big(self, limit: int) -> set[Tensor]:
        """Results that must not exist whole: the largest, until the others fit."""
        plan = self._plan
        fetched = {plan.roots[t] for t in plan.fetches}
        big = {t for t, size in plan.owned.items() if size > limit // 4 and t not in fetched}
        if not big:
            raise NotTileable
        return big | {t for t in plan.specs if plan.roots.get(t) in big}

    def _cut(self, step: Step):
        rule = step.op.row.rows
        known = all(shapes.is_known(dims) for _, dims in (*step.ins, *step.outs))
        cut = rule(step.ins, step.outs, step.op.attrs) if rule and known else None
        if cut is None:
            raise NotTileable
        for tensor, is_cut in zip(step.op.inputs, cut.cut):
            producer = self._made.get(tensor)
            if producer is not None and (not is_cut or self.cuts_of(producer).combine):
                raise NotTileable
        return cut

    def cuts_of(self, step: Step):
        return step.op.row.rows(step.ins, step.outs, step.op.attrs)

    def _check_order(self) -> None:
        """What the loop reads from outside must not depend on what it computes."""
        inside = {step.op for step in self.steps}
        tainted = set(inside)
        for step in self._plan.steps:
            if step.op in inside:
                if any(t.op in tainted and t.op not in inside for t in step.op.inputs):
                    raise NotTileable
            elif any(t.op in tainted for t in step.op.inputs):
                tainted.add(step.op)

    def _collected(self, big: set[Tensor]) -> set[Tensor]:
        """Results that are needed whole after the loop."""
        inside = {step.op for step in self.steps}
        used = {t for step in self._plan.steps if step.op not in inside for t in step.op.inputs}
        wanted = used | set(self._plan.fetches)
        if wanted & big:
            raise NotTileable
        return {t for t in self._made if t in wanted}

    def _row_count(self) -> int:
        counts = set()
        for step in self.steps:
            for (_, dims), is_cut in zip(step.ins, self.cuts[step.op].cut):
                if is_cut:
                    counts.add(dims[0])
            if not self.cuts[step.op].combine:
                counts.add(step.outs[0][1][0])
        if len(counts) != 1:
            raise NotTileable
        return counts.pop()

    def _choose_block(self, limit: int) -> tuple[int, int]:
        plan = self._plan
        inside = {step.op for step in self.steps}
        per_row = sum(
            plan.owned.get(t, 0) // max(self.rows, 1)
            for step in self.steps
            if not self.cuts[step.op].combine
            for t in step.op.outputs
        )
        outside = sum(size for t, size in plan.owned.items() if t.op not in inside or t in self.collected)
        left = limit - outside
        if per_row * 2 > left:
            raise NotTileable
        rows = int(max(1, min(self.rows, min(left // 2, _GOOD_BLOCK_BYTES) // max(per_row, 1))))
        return rows, outside + 2 * rows * per_row

    def run(self, arrays: dict[Tensor, np.ndarray]) -> None:
        """Runs the loop. Puts what is needed afterwards into `arrays`."""
        results: dict[Tensor, np.ndarray] = {}
        for start in range(0, self.rows, self.block):
            stop = min(start + self.block, self.rows)
            parts: dict[Tensor, np.ndarray] = {}
            for step in self.steps:
                self._run_part(step, start, stop, arrays, parts, results)
        for step in self.steps:
            cut = self.cuts[step.op]
            for tensor, (dtype, dims) in zip(step.op.outputs, step.outs):
                if tensor in results and cut.divide:
                    count = shapes.element_count(step.ins[0][1]) // max(shapes.element_count(dims), 1)
                    results[tensor] = op_module.conform(results[tensor] / count, dtype)
        arrays.update(results)

    def _run_part(self, step: Step, start: int, stop: int, arrays, parts, results) -> None:
        op, cut = step.op, self.cuts[step.op]
        inputs = []
        for tensor, is_cut in zip(op.inputs, cut.cut):
            if tensor in parts:
                inputs.append(parts[tensor])
            else:
                inputs.append(arrays[tensor][start:stop] if is_cut else arrays[tensor])
        row = op_module.ROWS["Sum"] if cut.divide else op.row
        if not op.inputs or row.stateful:
            inputs[0] = np.array([stop - start, *step.outs[0][1][1:]], np.int64)  # how many rows to make
        specs = step.outs if cut.combine else [(dtype, (stop - start, *dims[1:])) for dtype, dims in step.outs]
        for tensor, array, (_, dims) in zip(op.outputs, op_module.compute(row, inputs, op.attrs, specs), step.outs):
            if cut.combine:
                results[tensor] = array if start == 0 else getattr(np, cut.combine)(results[tensor], array)
                continue
            parts[tensor] = array
            if tensor in self.collected:
                if start == 0:
                    results[tensor] = np.empty(dims, array.dtype)
                results[tensor][start:stop] = array


class NotTileable(Exception):
    """There is no way by blocks of rows that fits."""
