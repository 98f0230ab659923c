# SPDX-License-Identifier: Apache-2.0
"""RANDOM_UNIFORM, RANDOM_STANDARD_NORMAL, MULTINOMIAL, STABLEHLO_RNG_BIT_GENERATOR: equal seeds, equal numbers."""

from __future__ import annotations

import numpy as np
from harness import Case, Data, both_ways, constant, given, result

import leadline


def cases():
    for op in ("RANDOM_UNIFORM", "RANDOM_STANDARD_NORMAL"):
        for shape in [(1,), (7,), (3, 5), (2, 3, 4), (0, 2), (301,)]:
            for seeds in [(1, 0), (1234, 5678), (-3, 77), (0, 9), (0, 0)]:
                operands = both_ways(constant(np.array(shape, np.int32)))
                for operand in operands[:1] if 0 in shape else operands:  # LiteRT cannot give empty dynamic results
                    name = f"{shape} seeds {seeds} {operand.role}"
                    runs = [[operand.value]] * 2 if operand.role == "given" else [[], []]
                    options = dict(seed=seeds[0], seed2=seeds[1], runs=runs, shapes_only=seeds == (0, 0))
                    yield Case(op, name, [operand], [result(np.float32)], **options)
    for shape in [(1, 3), (3, 5)]:
        for count in (1, 11):
            for dtype in (np.int32, np.int64):
                for seeds in [(1, 0), (1234, 5678), (0, 0)]:
                    logits = Data(f"{shape}").floats(shape)
                    name = f"{shape} x{count} {np.dtype(dtype)} seeds {seeds}"
                    inputs = [given(logits), constant(np.array(count, np.int32))]
                    options = dict(seed=seeds[0], seed2=seeds[1], runs=[[logits]], shapes_only=seeds == (0, 0))
                    yield Case("MULTINOMIAL", name, inputs, [result(dtype)], **options)
    default, philox, threefry = range(3)
    for algorithm, lengths in ((default, (2, 3)), (philox, (2, 3)), (threefry, (2,))):
        for length in lengths:
            for dtype in (np.int32, np.uint32, np.int64, np.uint64):
                for shape in [(1,), (5,), (2, 4), (3, 0), (17,)]:
                    state = Data(f"{shape}").ints(np.uint64, (length,))
                    name = f"algorithm {algorithm} state {length} {np.dtype(dtype)} {shape}"
                    yield _rng_case(name, algorithm, dtype, shape, state)


def _rng_case(name, algorithm, dtype, shape, state):
    def build() -> bytes:
        builder = leadline.ModelBuilder()
        before = builder.input("before", np.uint64, state.shape)
        after = builder.tensor("after", np.uint64, state.shape)
        bits = builder.tensor("bits", dtype, shape)
        builder.node("STABLEHLO_RNG_BIT_GENERATOR", [before], [after, bits], algorithm=algorithm)
        builder.output(after, bits)
        return builder.to_tflite()

    return Case("STABLEHLO_RNG_BIT_GENERATOR", name, [given(state)], build=build)
