# SPDX-License-Identifier: Apache-2.0
"""Stretches of a plan that the engine runs as one model: neighbouring steps that all have a lowering. Products of
matrices stay alone, so that transposed operands are used where they lie."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from leadline._leadline import BudgetError
from leadline.tf import engine, shapes
from leadline.tf.plan import Plan, Step
from leadline.tf.tensor import Tensor

_LEAST_STEPS = 2


class Group:
    """Steps that run together, what they read and what others need of them."""

    def __init__(self, steps: list[Step], outputs: list[Tensor]) -> None:
        self.steps = steps
        made = {t for step in steps for t in step.op.outputs}
        reads = [t for step in steps for t in step.op.inputs if t not in made]
        self.inputs = list(dict.fromkeys(reads))
        self.outputs = outputs
        self._key: tuple | None = None

    def run(self, arrays: dict[Tensor, np.ndarray]) -> bool:
        """Puts the outputs into `arrays`; False when the steps should run one by one."""
        inputs = [arrays[t] for t in self.inputs]
        try:
            results = engine.run(self._signature(), self._build, inputs)
        except BudgetError:
            return False
        if results is None:
            return False
        arrays.update(zip(self.outputs, results))
        return True

    def _signature(self) -> tuple:
        """Equal for groups that give the same model."""
        if self._key is None:
            numbers: dict[Tensor, int] = {t: i for i, t in enumerate(self.inputs)}
            parts = []
            for step in self.steps:
                parts.append(
                    (
                        step.op.type,
                        tuple(numbers[t] for t in step.op.inputs),
                        tuple(map(_text, step.ins)),
                        tuple(sorted((k, repr(v)) for k, v in step.op.attrs.items())),
                    )
                )
                for tensor in step.op.outputs:
                    numbers[tensor] = len(numbers)
            self._key = ("group", tuple(parts), tuple(numbers[t] for t in self.outputs))
        return self._key

    def _build(self) -> bytes | None:
        stretch = engine.Stretch()
        numbers: dict[Tensor, int] = {}
        specs = {t: spec for step in self.steps for t, spec in zip(step.op.inputs, step.ins)}
        for tensor in self.inputs:
            numbers[tensor] = stretch.input(specs[tensor])
        for step in self.steps:
            results = step.op.row.engine(
                stretch, [numbers[t] for t in step.op.inputs], step.op.attrs, step.ins, step.outs
            )
            if results is None:
                return None
            numbers.update(zip(step.op.outputs, results))
        return stretch.model([numbers[t] for t in self.outputs])


def _text(spec) -> tuple:
    return spec[0].name, spec[1]


class _Probe:
    """Takes what a lowering adds, and makes nothing of it."""

    def constant(self, value, dtype=None) -> int:
        return 0

    def node(self, op, inputs, *specs, **attributes) -> list[int]:
        return [0] * len(specs)


def _lowers(step: Step) -> bool:
    row = step.op.row
    if row.engine is None or row.prepare is not None or row.stateful or not step.op.inputs:
        return False
    if any(not shapes.is_known(dims) for _, dims in (*step.ins, *step.outs)):
        return False
    return row.engine(_Probe(), [0] * len(step.ins), step.op.attrs, step.ins, step.outs) is not None


def split(plan: Plan) -> list[Step | Group]:
    """The steps in an order with the same results, with groups for the engine in it."""
    items: list[Step | Group] = []
    current: list[Step] = []
    made: set[Tensor] = set()

    def close() -> None:
        items.extend(_grouped(plan, current))
        current.clear()
        made.clear()

    for step in plan.steps:
        row = step.op.row
        if _lowers(step) and not (row.view and step.op.inputs[0] not in made):
            current.append(step)
            made.update(step.op.outputs)
            continue
        # What only looks at memory, or reads nothing, may come before the stretch; everything else ends it.
        harmless = not step.op.inputs or row.borrowed or row.view
        if current and (row.writes or not harmless or any(t in made for t in step.op.inputs)):
            close()
        items.append(step)
    close()
    return items


def lifetimes(plan: Plan, items: Sequence[Step | Group]) -> list[list[Tensor]]:
    """For each item the tensors that are not needed after it, views of the same memory among them."""
    groups = [[item] if isinstance(item, Step) else item.steps for item in items]
    members: dict[Tensor, list[Tensor]] = {}
    for tensor, root in plan.roots.items():
        members.setdefault(root, []).append(tensor)
    kept = {plan.roots[tensor] for tensor in plan.fetches}
    dead: list[list[Tensor]] = [[] for _ in items]
    for root, i in plan.last_uses(groups).items():
        if root not in kept:
            dead[i] += members[root]
    return dead


def _grouped(plan: Plan, steps: Sequence[Step]) -> list[Step | Group]:
    elements = sum(shapes.element_count(dims) for step in steps for _, dims in step.outs)
    if len(steps) < _LEAST_STEPS or elements < engine._WORTH_ELEMENTS:
        return list(steps)
    made = [t for step in steps for t in step.op.outputs]
    inside = {step.op for step in steps}
    needed = {t for other in plan.steps if other.op not in inside for t in other.op.inputs} | set(plan.fetches)
    outputs = [t for t in made if t in needed]
    return [Group(list(steps), outputs)] if outputs else list(steps)
