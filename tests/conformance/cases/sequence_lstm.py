# SPDX-License-Identifier: Apache-2.0
"""UNIDIRECTIONAL_SEQUENCE_LSTM."""

from __future__ import annotations

from harness import NONE, TANH, Case, Data, constant
from lstm_cell import Cell, Operands, variants

OP = "UNIDIRECTIONAL_SEQUENCE_LSTM"


def _case(cell, steps=4, batch=2, *, time_major=True, runs=2, suffix="", **attributes):
    o = Operands(cell, f"sequence {steps} {batch}")
    shape = (steps, batch, cell.inputs) if time_major else (batch, steps, cell.inputs)
    attributes = dict(fused_activation_function=TANH, time_major=time_major) | attributes
    name = f"{cell} steps {steps} batch {batch}{'' if time_major else ' batch_major'}{suffix}"
    return Case(
        OP, name, o.inputs(o.given(shape), batch), [o.result()], attributes=attributes,
        runs=[[o.values(shape)] for _ in range(runs)], intermediates=o.intermediates(),
        loose=cell.kind.startswith("hybrid"),
    )  # fmt: skip


def cases():
    for kind in ("f32", "hybrid", "i8"):
        for cell in variants(kind):
            yield _case(cell)
            yield _case(cell, 3, 1, time_major=False)
        plain = Cell(kind)
        full = Cell(kind, 5, 7, 3, peephole=True, projection=True, projection_bias=True, norm=True)
        for cell in (plain, full):
            yield _case(cell, 1, 1)
            yield _case(cell, 9, 3, time_major=False)
            yield _case(cell, suffix=" clipped", cell_clip=0.3)
            if cell.projection:
                yield _case(cell, suffix=" clips", cell_clip=0.4, proj_clip=0.2)
        if kind == "hybrid":
            for cell in (plain, full, Cell(kind, 17, 33, 33)):
                for time_major in (True, False):
                    yield _case(cell, time_major=time_major, suffix=" asymmetric", asymmetric_quantize_inputs=True)
    for cell in (Cell("hybrid u8"), Cell("hybrid u8", outputs=3, projection=True, peephole=True)):
        yield _case(cell)
    for activation in (1, 3):
        yield _case(Cell(), suffix=f" activation {activation}", fused_activation_function=activation)
    yield _without_activation()
    for kind in ("f32", "hybrid"):
        for coupled in (False, True):
            yield _diagonal(Cell(kind, coupled=coupled))
    o = Operands(Cell(), "other lengths")
    more = [[o.values((steps, 2, 3))] for steps in (2, 5)]
    yield Case(
        OP, "f32 other lengths run by run", o.inputs(o.given((4, 2, 3)), 2), [o.result()], runs=more,
        fused_activation_function=TANH, time_major=True,
    )  # fmt: skip


def _diagonal(cell):
    """Recurrent weights that are vectors: each cell sees its own last output only."""
    o = Operands(cell, "diagonal")
    data = Data(f"diagonal {cell}")
    weights = [constant(data.floats(cell.cells, -0.8, 0.8)) if w is not None else None for w in o.recurrent_weights]
    o.recurrent_weights = weights
    return Case(
        OP, f"{cell} diagonal", o.inputs(o.given((4, 2, 3)), 2), [o.result()], fused_activation_function=TANH,
        time_major=True, diagonal_recurrent_tensors=True, runs=[[o.values((4, 2, 3))]], loose=cell.kind != "f32",
    )  # fmt: skip


def _without_activation():
    o = Operands(Cell(), "no activation")
    return Case(
        OP, "f32 no activation", o.inputs(o.given((4, 2, 3)), 2), [o.result()], fused_activation_function=NONE,
        time_major=True, litert="wrong", because="the cell state is not copied: the output gate weighs old scratch",
        reference=lambda x: [o.reference(x)],
    )  # fmt: skip
