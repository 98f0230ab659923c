# SPDX-License-Identifier: Apache-2.0
"""SVDF."""

from __future__ import annotations

import numpy as np
from harness import NONE, RELU, RELU6, RELU_N1_TO_1, TANH, Case, Data, constant, given, result, state

# batch, inputs, units, rank, memory
SIZES = [(1, 1, 1, 1, 1), (2, 3, 4, 1, 10), (2, 3, 4, 2, 10), (1, 16, 8, 3, 5), (3, 33, 5, 1, 17)]
RUNS = 5


def cases():
    for size in SIZES:
        for bias in (True, False):
            for activation in (NONE, RELU, RELU_N1_TO_1, RELU6, TANH):
                yield _real("f32", size, bias, activation)
            for kind in ("hybrid", "hybrid asymmetric", "hybrid u8"):
                yield _real(kind, size, bias, NONE)
                yield _real(kind, size, bias, RELU)
            for zero in (0, -128, 5):
                yield _integer(size, bias, zero)


def _real(kind, size, bias, activation):
    batch, inputs, units, rank, memory = size
    data = Data(f"svdf {kind} {size} {bias} {activation}")

    def weights(shape):
        if kind == "f32":
            return constant(data.floats(shape, -1, 1))
        levels = data.ints(np.int8, shape, -127, 127)
        return constant(levels.view(np.uint8) if kind == "hybrid u8" else levels, data.rng.uniform(0.3, 0.8) / 127, 0)

    filters = units * rank
    operands = [
        given(data.floats((batch, inputs))), weights((filters, inputs)), weights((filters, memory)),
        constant(data.floats(units)) if bias else None, state((batch, memory * filters)),
    ]  # fmt: skip
    attributes = dict(rank=rank, fused_activation_function=activation)
    attributes["asymmetric_quantize_inputs"] = kind == "hybrid asymmetric"
    runs = [[data.floats((batch, inputs))] for _ in range(RUNS)]
    name = f"{kind} {size} activation {activation}{' bias' * bias}"
    return Case("SVDF", name, operands, [result(np.float32)], attributes=attributes, runs=runs, loose=kind != "f32")


def _integer(size, bias, zero):
    batch, inputs, units, rank, memory = size
    data = Data(f"svdf integer {size} {bias} {zero}")
    filters = units * rank
    state_scale, time_scale = 8 / 32767, 1 / 1000
    time = data.ints(np.int16, (filters, memory), -1000, 1000)  # the sum of the products has 32 bits
    operands = [
        given(data.ints(np.int8, (batch, inputs)), 0.03, zero),
        constant(data.ints(np.int8, (filters, inputs), -127, 127), 1 / 127, 0),
        constant(time, time_scale, 0),
        constant(data.ints(np.int32, units, -1000, 1000), state_scale * time_scale, 0) if bias else None,
        state((batch, memory * filters), np.int16, state_scale, 0),
    ]  # fmt: skip
    runs = [[data.ints(np.int8, (batch, inputs))] for _ in range(RUNS)]
    name = f"i8 {size} zero {zero}{' bias' * bias}"
    attributes = dict(rank=rank, fused_activation_function=RELU)
    return Case("SVDF", name, operands, [result(np.int8, 0.05, -zero - 1)], attributes=attributes, runs=runs)
