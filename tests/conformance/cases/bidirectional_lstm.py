# SPDX-License-Identifier: Apache-2.0
"""BIDIRECTIONAL_SEQUENCE_LSTM."""

from __future__ import annotations

from dataclasses import replace

from harness import TANH, Case
from lstm_cell import Cell, Operands, variants


def _case(cell, steps=4, batch=2, *, merged=False, time_major=True, backward_input=False, suffix="", **attributes):
    """Both directions have cells of the same make. `backward_input`: an auxiliary input without weights of its own."""
    forward, backward = Operands(cell, f"forward {steps} {batch}"), Operands(cell, f"backward {steps} {batch}")

    def shape(width):
        return (steps, batch, width) if time_major else (batch, steps, width)

    inputs = [forward.given(shape(cell.inputs))]
    for o in (forward, backward):
        inputs += [*o.input_weights, *o.recurrent_weights, *o.peephole, *o.biases, o.projection, o.projection_bias]
    inputs += [*forward.states(batch), *backward.states(batch)]
    width = cell.aux or (cell.inputs if backward_input else 0)
    inputs.append(forward.given(shape(width)) if width else None)
    inputs += [*forward.aux_weights, *backward.aux_weights]
    feeds = [[forward.values(shape(size)) for size in (cell.inputs, width) if size] for _ in range(2)]
    attributes = dict(fused_activation_function=TANH, merge_outputs=merged, time_major=time_major) | attributes
    traits = f"{' merged' * merged}{' batch_major' * (not time_major)}{' backward input' * backward_input}{suffix}"
    return Case(
        "BIDIRECTIONAL_SEQUENCE_LSTM", f"{cell} steps {steps} batch {batch}{traits}", inputs,
        [forward.result()] if merged else [forward.result(), forward.result()], attributes=attributes, runs=feeds,
        loose=cell.kind.startswith("hybrid"),
    )  # fmt: skip


def _batch(merged, time_major):
    """LiteRT steps over the states by the width of the merged output: past their end, where rows are not together."""
    return 1 if merged and not time_major else 2


def cases():
    for kind in ("f32", "hybrid"):
        for cell in variants(kind):
            if cell.norm:
                continue  # the op has no layer normalization
            yield _case(cell, merged=True)
            yield _case(cell, 3, 1, time_major=False)
        for cell in (Cell(kind), Cell(kind, outputs=3, projection=True), Cell(kind, coupled=True)):
            with_aux = replace(cell, aux=5)
            for merged in (False, True):
                for time_major in (False, True):
                    batch = _batch(merged, time_major)
                    yield _case(with_aux, 4, batch, merged=merged, time_major=time_major)
                    yield _case(cell, 4, batch, merged=merged, time_major=time_major, backward_input=True)
        yield _case(Cell(kind), 1, 1)
        yield _case(Cell(kind), 7, 3, time_major=False)
        yield _case(Cell(kind, outputs=3, projection=True), suffix=" clips", cell_clip=0.4, proj_clip=0.2)
    for merged in (False, True):
        for cell in (Cell("hybrid"), Cell("hybrid", aux=4), Cell("hybrid", 17, 33, 9, projection=True)):
            yield _case(cell, merged=merged, suffix=" asymmetric", asymmetric_quantize_inputs=True)
    yield _case(Cell("hybrid u8"))
