# SPDX-License-Identifier: Apache-2.0
"""How ops are done by parts of the first axis: a row's `rows` says which inputs are cut, and what becomes of the parts.

Given (specs of inputs, specs of outputs, attributes) it returns a Cut, or None when the op needs everything at once.
"""

from __future__ import annotations

from typing import NamedTuple


class Cut(NamedTuple):
    cut: tuple[bool, ...]  # for each input: cut along its first axis, or needed whole
    combine: str = ""  # "": parts are stacked; "add", "maximum", ...: results of the parts are combined by that ufunc
    divide: bool = False  # a mean: sums are divided by the count in the end


def elementwise(ins, outs, attrs) -> Cut | None:
    """Inputs that have the result's first axis are cut, those that are broadcast along it are not."""
    dims = outs[0][1]
    if not dims:
        return None
    return Cut(tuple(len(d) == len(dims) and d[0] == dims[0] for _, d in ins))


def first(ins, outs, attrs) -> Cut | None:
    """Only the first input has rows: matrix products, biases."""
    if not ins[0][1] or not outs[0][1] or ins[0][1][0] != outs[0][1][0]:
        return None
    return Cut((True,) + (False,) * (len(ins) - 1))


def batch(ins, outs, attrs) -> Cut | None:
    """Products of stacks of matrices: both have the stack's axis, or only the first does."""
    a, b, result = ins[0][1], ins[1][1], outs[0][1]
    if len(result) < 3:
        return Cut((True, False)) if not (attrs.get("adj_x") or attrs.get("transpose_a")) else None
    whole = len(b) < len(result) or b[0] == 1
    if len(a) != len(result) or a[0] != result[0] or not (whole or b[0] == result[0]):
        return None
    return Cut((True, not whole))


def source(ins, outs, attrs) -> Cut | None:
    """Ops that make their rows one after the other: random numbers."""
    return Cut((False,) * len(ins)) if outs[0][1] else None


def reduction(combine: str, divide: bool = False):
    def rule(ins, outs, attrs) -> Cut | None:
        dims = ins[0][1]
        axes = attrs.get("axes")
        if not dims:
            return None
        if axes is None or 0 in axes:
            return Cut((True,), combine, divide) if combine else None
        return Cut((True,))

    return rule


def not_last_axis(ins, outs, attrs) -> Cut | None:
    """Softmax and the like work along the last axis."""
    return Cut((True,)) if len(ins[0][1]) >= 2 else None
