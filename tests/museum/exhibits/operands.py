# SPDX-License-Identifier: Apache-2.0
"""Operands, edits and cases of single ops that several exhibits use."""

from __future__ import annotations

import numpy as np
from exhibit import op
from harness import SAME, VALID, Case, constant, given, result
from surgery import edited

F32, I32 = np.float32, np.int32
HUGE = 2**31 - 1


def ints(*values) -> np.ndarray:
    return np.array(values, I32)


def floats(*shape) -> np.ndarray:
    """1, 2, 3, ... in that shape."""
    return np.arange(1, 1 + np.prod(shape, dtype=int), dtype=F32).reshape(shape)


def absent(*, inputs=None, outputs=None):
    """An edit: one input or output of the only node becomes -1."""

    def change(model) -> None:
        node = model.subgraphs[0].operators[0]
        if inputs is not None:
            node.inputs[inputs] = -1
        if outputs is not None:
            node.outputs[outputs] = -1

    return change


def without_data(tensor: str):
    """An edit: a constant loses its buffer."""

    def change(model) -> None:
        next(t for t in model.subgraphs[0].tensors if t.name == tensor).buffer = 0

    return change


def conv(kind: str, image, weights, *, bias=None, refuses=(), expect=None, called="", **attributes):
    options = dict(padding=VALID, stride_w=1, stride_h=1) | attributes
    if kind == "DEPTHWISE_CONV_2D":
        options.setdefault("depth_multiplier", 1)
    channels = weights.shape[3 if kind == "DEPTHWISE_CONV_2D" else 0]
    operands = [given(image), constant(weights), constant(np.zeros(channels, F32) if bias is None else bias)]
    return op(kind, operands, [result(F32)], refuses=refuses, expect=expect, called=called, **options)


def pool(kind: str, refuses, called="", **attributes):
    options = dict(padding=SAME, stride_w=1, stride_h=1, filter_width=2, filter_height=2) | attributes
    return op(kind, [given(floats(1, 4, 4, 1))], [result(F32)], refuses=refuses, called=called, **options)


def gather_nd(indices, refuses, params=None, called=""):
    source = floats(2, 2) if params is None else params
    return op("GATHER_ND", [given(source), given(indices)], [result(F32)], refuses=refuses, called=called)


def with_shape(shape) -> bytes:
    content = Case("RELU", "", [given(floats(2))], [result(F32)]).model()
    return edited(content, lambda m: setattr(m.subgraphs[0].tensors[1], "shape", shape))
