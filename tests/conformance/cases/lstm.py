# SPDX-License-Identifier: Apache-2.0
"""LSTM: one step of the full and of the basic cell."""

from __future__ import annotations

import numpy as np
from harness import NONE, TANH, Case, Data, constant, given, result, state
from lstm_cell import Cell, Operands, variants


def _case(cell, batch=2, *, runs=2, suffix="", **attributes):
    o = Operands(cell, f"step {batch}")
    shape = (batch, cell.inputs)
    return Case(
        "LSTM", f"{cell} batch {batch}{suffix}", o.inputs(o.given(shape), batch), [o.result()],
        attributes=dict(fused_activation_function=TANH) | attributes, runs=[[o.values(shape)] for _ in range(runs)],
        intermediates=o.intermediates(), loose=cell.kind.startswith("hybrid"),
    )  # fmt: skip


def cases():
    for kind in ("f32", "hybrid", "i8"):
        for cell in variants(kind):
            yield _case(cell)
        plain = Cell(kind)
        full = Cell(kind, 5, 7, 3, peephole=True, projection=True, projection_bias=True, norm=True)
        for cell in (plain, full):
            for batch in (1, 5):
                yield _case(cell, batch, runs=3)
            yield _case(cell, suffix=" clipped", cell_clip=0.3)
            if cell.projection:
                yield _case(cell, suffix=" clips", cell_clip=0.4, proj_clip=0.2)
            if kind == "hybrid":
                yield _case(cell, suffix=" asymmetric", asymmetric_quantize_inputs=True)
    yield _case(Cell("hybrid u8"))
    for activation in (1, 3):
        yield _case(Cell(), suffix=f" activation {activation}", fused_activation_function=activation)
    yield _without_activation()
    for batch, inputs, depth in ((1, 2, 4), (2, 3, 5), (3, 12, 4)):
        for kept in (False, True):
            yield from _basic(batch, inputs, depth, kept)


def _without_activation():
    o = Operands(Cell(), "no activation")
    return Case(
        "LSTM", "f32 no activation", o.inputs(o.given((2, 3)), 2), [o.result()], fused_activation_function=NONE,
        litert="wrong", because="the cell state is not copied: the output gate weighs old scratch",
        reference=lambda x: [o.reference(x[None])[0]],
    )  # fmt: skip


def _basic(batch, inputs, depth, kept):
    """The basic kernel: one matrix for all gates; last activation and state are operands, or kept as variables."""
    data = Data(f"basic {batch} {inputs} {depth} {kept}")
    sizes = f"{batch} {inputs} {depth}{' kept' if kept else ''}"

    def operand(value, *quantization):
        return state(value.shape, value.dtype, *quantization) if kept else given(value, *quantization)

    total = inputs + depth
    feeds = [[data.floats((batch, inputs)), data.floats((batch, depth)), data.floats((batch, depth))] for _ in range(3)]
    tensors = [
        given(feeds[0][0]), operand(feeds[0][1]), constant(data.floats((4 * depth, total), -1, 1)),
        constant(data.floats(4 * depth)), operand(feeds[0][2]),
    ]  # fmt: skip
    outputs = [result(np.float32) for _ in range(4)]
    attributes = dict(kernel_type=1, fused_activation_function=TANH)
    runs = [feed[:1] if kept else feed for feed in feeds[1:]]
    yield Case("LSTM", f"basic f32 {sizes}", tensors, outputs, attributes=attributes, runs=runs)
    around = (1 / 128, 128)
    feeds = [
        [data.ints(np.uint8, (batch, inputs)), data.ints(np.uint8, (batch, depth)), data.ints(np.int16, (batch, depth))]
        for _ in range(3)
    ]
    tensors = [
        given(feeds[0][0], *around), operand(feeds[0][1], *around),
        constant(data.ints(np.uint8, (4 * depth, total)), 0.0078, 131),
        constant(data.ints(np.int32, 4 * depth, -20000, 20000), 0.0078 / 128, 0), operand(feeds[0][2], 2.0**-11, 0),
    ]  # fmt: skip
    outputs = [
        result(np.uint8, *around), result(np.int16, 2.0**-11, 0), result(np.uint8, *around),
        result(np.int16, 2.0**-12, 0),
    ]  # fmt: skip
    runs = [feed[:1] if kept else feed for feed in feeds[1:]]
    yield Case("LSTM", f"basic u8 {sizes}", tensors, outputs, attributes=attributes, runs=runs)
