# SPDX-License-Identifier: Apache-2.0
"""RNN UNIDIRECTIONAL_SEQUENCE_RNN BIDIRECTIONAL_SEQUENCE_RNN."""

from __future__ import annotations

import numpy as np
from harness import NONE, RELU, RELU6, RELU_N1_TO_1, TANH, Case, Data, constant, given, result, state

KINDS = ("f32", "hybrid", "hybrid asymmetric", "hybrid u8")
# batch, steps, inputs, units
SIZES = [(1, 1, 1, 1), (2, 4, 3, 5), (3, 5, 16, 33)]


def _weights(data, kind, shape):
    largest = 1.2 / np.sqrt(shape[1])  # larger ones make the state chaotic, and any last bit matter
    if kind == "f32":
        return constant(data.floats(shape, -largest, largest))
    levels = data.ints(np.int8, shape, -127, 127)
    return constant(levels.view(np.uint8) if kind == "hybrid u8" else levels, largest / 127, 0)


def _cell(data, kind, inputs, units):
    return [_weights(data, kind, (units, inputs)), _weights(data, kind, (units, units)), constant(data.floats(units))]


def _traits(kind, activation):
    attributes = dict(fused_activation_function=activation)
    if kind == "hybrid asymmetric":
        attributes["asymmetric_quantize_inputs"] = True
    return attributes


def cases():
    for kind in KINDS:
        for size in SIZES:
            for activation in (NONE, RELU, RELU_N1_TO_1, RELU6, TANH):
                yield from _one_way(kind, size, activation)
            for merged in (False, True):
                for time_major in (False, True):
                    # With 8-bit weights, LiteRT writes past a merged time-major output.
                    if kind == "f32" or not (merged and time_major):
                        for aux in ("", "weighed", "backward"):
                            yield _both_ways(kind, size, merged, time_major, aux)


def _one_way(kind, size, activation):
    batch, steps, inputs, units = size
    data = Data(f"rnn {kind} {size} {activation}")
    loose = kind != "f32"
    attributes = _traits(kind, activation)
    name = f"{kind} {size} activation {activation}"
    operands = [given(data.floats((batch, inputs))), *_cell(data, kind, inputs, units), state((batch, units))]
    runs = [[data.floats((batch, inputs))] for _ in range(3)]
    yield Case("RNN", name, operands, [result(np.float32)], attributes=attributes, runs=runs, loose=loose)
    for time_major in (False, True):
        shape = (steps, batch, inputs) if time_major else (batch, steps, inputs)
        operands = [given(data.floats(shape)), *_cell(data, kind, inputs, units), state((batch, units))]
        yield Case(
            "UNIDIRECTIONAL_SEQUENCE_RNN", f"{name}{' time_major' * time_major}", operands, [result(np.float32)],
            attributes=attributes | {"time_major": time_major}, runs=[[data.floats(shape)]], loose=loose,
        )  # fmt: skip


def _both_ways(kind, size, merged, time_major, aux):
    batch, steps, inputs, units = size
    data = Data(f"bidirectional rnn {kind} {size} {merged} {time_major} {aux}")

    def shape(width):
        return (steps, batch, width) if time_major else (batch, steps, width)

    operands = [given(data.floats(shape(inputs)))]
    for _ in range(2):
        operands += [*_cell(data, kind, inputs, units), state((batch, units))]
    width = inputs if aux else 0  # LiteRT steps over an auxiliary input as if it were as wide as the input
    operands.append(given(data.floats(shape(width))) if aux else None)
    operands += [_weights(data, kind, (units, width)) if aux == "weighed" else None for _ in range(2)]
    attributes = _traits(kind, TANH) | {"time_major": time_major, "merge_outputs": merged}
    feed = [data.floats(shape(size)) for size in (inputs, width) if size]
    traits = f"{' merged' * merged}{' time_major' * time_major}{f' aux {aux}' if aux else ''}"
    return Case(
        "BIDIRECTIONAL_SEQUENCE_RNN", f"{kind} {size}{traits}", operands,
        [result(np.float32)] if merged else [result(np.float32), result(np.float32)], attributes=attributes,
        runs=[feed], loose=kind != "f32",
    )  # fmt: skip
