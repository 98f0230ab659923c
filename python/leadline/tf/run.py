# SPDX-License-Identifier: Apache-2.0
"""Runs a plan: whole when it fits, by blocks of rows when it does not, and not at all when neither does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from leadline.tf import memory, op as op_module, stretches
from leadline.tf.errors import OpError
from leadline.tf.plan import Plan, Step, needed
from leadline.tf.tensor import Tensor
from leadline.tf.tiling import NotTileable, Region


class EagerState:
    """Variables hold their values themselves."""

    def read(self, variable) -> np.ndarray:
        return variable._read()

    def assign(self, variable, array: np.ndarray) -> None:
        variable._write(array)


def run(fetches: Sequence, feeds: dict[Tensor, np.ndarray], state, extra: Sequence = ()) -> dict[Tensor, np.ndarray]:
    """The values of the fetched tensors, each in memory of its own that the caller may write to.

    Fetched operations and `extra` ones run for what they do. Raises BudgetError before anything large is allocated.
    """
    tensors = [item for item in fetches if isinstance(item, Tensor)]
    operations = needed([*fetches, *extra], feeds)
    plan = Plan(operations, tensors, feeds)
    region = None
    if not memory.fits(plan.peak):
        left = memory.available()
        try:
            region = Region(plan, left)
        except NotTileable:
            raise plan.refusal() from None
    charge = memory.Charge(region.peak if region else plan.peak, "this graph")
    arrays = dict(feeds)
    if region is None:
        _run_whole(plan, arrays, state)
    else:
        _run_by_blocks(plan, region, arrays, state)
    del charge
    return _handed_over(plan, tensors, arrays)


def _handed_over(plan: Plan, tensors: Sequence[Tensor], arrays: dict) -> dict[Tensor, np.ndarray]:
    """Constants, variables, feeds and memory that two results share are copied; fresh results are not."""
    results = {}
    for tensor in dict.fromkeys(tensors):
        array = arrays[tensor]
        results[tensor] = array if plan.is_fresh(tensor) and array.flags.writeable else array.copy()
    return results


def _run_whole(plan: Plan, arrays: dict, state) -> None:
    items = stretches.split(plan)
    for item, dead in zip(items, stretches.lifetimes(plan, items)):
        if isinstance(item, Step):
            _run_step(item, arrays, state, overwrite=True)
        elif not item.run(arrays):
            for step in item.steps:
                _run_step(step, arrays, state, overwrite=True)
        for tensor in dead:
            arrays.pop(tensor, None)


def _run_by_blocks(plan: Plan, region: Region, arrays: dict, state) -> None:
    """What the loop needs, the loop, and what needs its results."""
    inside = {step.op for step in region.steps}
    later: set = set(inside)
    after: list[Step] = []
    for step in plan.steps:
        if step.op in inside:
            continue
        if any(t.op in later for t in step.op.inputs):
            later.add(step.op)
            after.append(step)
        else:
            _run_step(step, arrays, state, overwrite=False)
    region.run(arrays)
    for step in after:
        _run_step(step, arrays, state, overwrite=False)


def _run_step(step: Step, arrays: dict, state, overwrite: bool) -> None:
    op, row = step.op, step.op.row
    inputs = [arrays[tensor] for tensor in op.inputs]
    try:
        if row.with_state is not None:
            results = row.with_state(state, *inputs, **op.attrs)
        elif step.overwrites is not None and overwrite and inputs[step.overwrites].flags.writeable:
            with np.errstate(all="ignore"):
                results = [row.ufunc(*inputs, out=inputs[step.overwrites])]
        else:
            results = op_module.compute(row, inputs, op.attrs, step.outs)
    except OpError as error:
        if op.where and "\n" not in error.message:
            error.message = f"{error.message} [node {op.name}, {op.where}]"
        raise
    arrays.update(zip(op.outputs, results))


def check_feed(tensor: Tensor, value) -> np.ndarray:
    """A value that is fed, as an array of the tensor's type. Raises ValueError when its shape does not fit."""
    from leadline.tf.shapes import compatible

    array = np.asarray(value, dtype=tensor._dtype.numpy)
    if not compatible(tensor._dims, array.shape):
        raise ValueError(
            f"Cannot feed value of shape {array.shape} for Tensor {tensor.name}, which has shape {tensor.shape}"
        )
    return array
