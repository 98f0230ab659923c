# SPDX-License-Identifier: Apache-2.0
"""A graph on its way to a run: the operations it needs, their true shapes, how long each result lives, and the most
memory that takes at one time. Nothing large is allocated here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from leadline.tf import memory, op as op_module, shapes
from leadline.tf.graph import Operation
from leadline.tf.tensor import Tensor

# Values this small are computed while planning, so that shapes that depend on them are known.
_FOLDED_ELEMENTS = 1024
_LISTED = 8


class Step:
    """One operation of the run."""

    __slots__ = ("dead", "ins", "op", "outs", "overwrites")

    def __init__(self, op: Operation, ins, outs) -> None:
        self.op = op
        self.ins = ins  # specs
        self.outs = outs
        self.dead: dict[Tensor, None] = {}  # tensors that are not needed after this step; lists would compare them
        self.overwrites: int | None = None  # the input whose memory the result takes


class Plan:
    """What a run does and takes. `peak` counts what the run itself allocates: not feeds, constants and variables."""

    def __init__(
        self,
        operations: Sequence[Operation],
        fetches: Sequence[Tensor],
        feeds: dict[Tensor, np.ndarray],
        fed_values: bool = True,
    ) -> None:
        self.fetches = list(fetches)
        self.specs: dict[Tensor, tuple] = {}
        self.values: dict[Tensor, np.ndarray] = {}
        for tensor, array in feeds.items():
            self.specs[tensor] = (tensor._dtype, array.shape)
            if fed_values and array.size <= _FOLDED_ELEMENTS:
                self.values[tensor] = array
        self.steps = [self._step(op) for op in operations if not all(t in feeds for t in op.outputs) or not op.outputs]
        self.roots: dict[Tensor, Tensor] = {t: t for t in feeds}
        self.owned: dict[Tensor, int] = {}  # bytes of each result that has memory of its own
        self._find_roots()
        self._find_lifetimes()
        self._shown_by = Counter(self.roots[tensor] for tensor in dict.fromkeys(self.fetches))
        self.peak = self._measure()

    def _step(self, op: Operation) -> Step:
        ins = [self.specs[t] for t in op.inputs]
        values = [self._value(t) for t in op.inputs]
        call = op_module.Call(op.type, ins, values, op.attrs, op.name, False)
        outs = op.row.infer(call)
        for tensor, (dtype, dims) in zip(op.outputs, outs):
            if dims is None or None in dims:
                dims = shapes.TensorShape(dims).merge_with(tensor._dims)._dims  # what set_shape() added
            self.specs[tensor] = (dtype, dims)
        found = op_module.fold(op.row, ins, values, op.attrs, outs, _FOLDED_ELEMENTS)
        if found is not None:
            self.values.update(zip(op.outputs, found))
        return Step(op, ins, outs)

    def _value(self, tensor: Tensor):
        known = tensor.op.values[tensor.value_index]
        return known if known is not None else self.values.get(tensor)

    def _find_roots(self) -> None:
        for step in self.steps:
            row = step.op.row
            for tensor, spec in zip(step.op.outputs, step.outs):
                if row.view:
                    self.roots[tensor] = self.roots.get(step.op.inputs[0], step.op.inputs[0])
                    continue
                self.roots[tensor] = tensor
                if not row.borrowed:
                    self.owned[tensor] = op_module.bytes_of([spec])

    def _find_lifetimes(self) -> None:
        """Which results are needed no more after each step; a view keeps what it shows."""
        kept = {self.roots[tensor] for tensor in self.fetches}
        for tensor, i in self.last_uses([[step] for step in self.steps]).items():
            if tensor not in kept:
                self.steps[i].dead[tensor] = None
        for step in self.steps:
            self._let_overwrite(step, kept)

    def last_uses(self, groups: Sequence[Sequence[Step]]) -> dict[Tensor, int]:
        """Which of `groups` of steps is the last that needs each memory, by the tensor that has it."""
        last: dict[Tensor, int] = {}
        for i, steps in enumerate(groups):
            for step in steps:
                for tensor in (*step.op.inputs, *step.op.outputs):
                    last[self.roots[tensor]] = i
        return last

    def _let_overwrite(self, step: Step, kept: set) -> None:
        """An elementwise result may take the memory of an input that dies with it."""
        if step.op.row.ufunc is None:
            return
        for i, tensor in enumerate(step.op.inputs):
            free = tensor in step.dead and self.roots[tensor] is tensor and tensor in self.owned
            if free and step.ins[i] == step.outs[0] and not self._shown(tensor, step):
                step.overwrites = i
                del step.dead[tensor]
                return

    def _shown(self, tensor: Tensor, step: Step) -> bool:
        """Whether another input of the step looks at the same memory."""
        return sum(self.roots[t] is tensor for t in step.op.inputs) > 1

    def _measure(self) -> int:
        live = peak = 0
        for step in self.steps:
            if step.overwrites is None:  # else the result has the bytes of its operand, which is not freed
                live += sum(self.owned.get(t, 0) for t in step.op.outputs)
            beside = op_module.scratch_bytes(step.op.row, step.ins, step.outs, step.op.attrs)
            peak = max(peak, live + beside)
            live -= sum(self.owned.get(t, 0) for t in step.dead)
        copies = sum(op_module.bytes_of([self.specs[t]]) for t in dict.fromkeys(self.fetches) if not self.is_fresh(t))
        return max(peak, live + copies)

    def is_fresh(self, tensor: Tensor) -> bool:
        """Whether the memory of a fetched tensor is the run's own, and no other fetch shows it."""
        root = self.roots[tensor]
        return root in self.owned and self._shown_by[root] == 1

    def refusal(self) -> Exception:
        """The error for a run that does not fit: what needs how much, largest first, and the lines that ask for it."""
        rows = sorted(((size, t) for t, size in self.owned.items() if size), key=lambda item: -item[0])
        lines = [f"\n  {'bytes':>12}  operation"]
        for size, tensor in rows[:_LISTED]:
            dims = shapes.text(self.specs[tensor][1])
            lines.append(
                f"  {memory.size_text(size):>12}  {tensor.op.name} ({tensor.op.type}) {dims}  {tensor.op.where}"
            )
        if len(rows) > _LISTED:
            lines.append(f"  {'':>12}  and {len(rows) - _LISTED} more")
        where = rows[0][1].op.where if rows else ""
        return memory.refusal(self.peak, f"this graph of {len(self.steps)} operations", "\n".join(lines), where)


def needed(fetches: Sequence, feeds) -> list[Operation]:
    """The operations that the fetches depend on, in the order they were made. What is fed needs none."""
    found: dict[Operation, None] = {}
    waiting = [item.op if isinstance(item, Tensor) else item for item in fetches if item not in feeds]
    while waiting:
        operation = waiting.pop()
        if operation in found:
            continue
        found[operation] = None
        waiting += operation.control_inputs
        waiting += [tensor.op for tensor in operation.inputs if tensor not in feeds]
    if not found:
        return []
    order = {op: i for i, op in enumerate(next(iter(found)).graph._operations)}
    return sorted(found, key=order.__getitem__)
