# SPDX-License-Identifier: Apache-2.0
"""DENSIFY, and ops that read what it gives."""

from __future__ import annotations

import numpy as np
from harness import Case, Data, given

import leadline


def compressed_rows(dense: np.ndarray):
    """Stored values and sparsity of a matrix whose second dimension is compressed."""
    segments, indices, stored = [0], [], []
    for row in dense:
        for column in np.flatnonzero(row):
            indices.append(int(column))
            stored.append(row[column])
        segments.append(len(indices))
    levels = [(dense.shape[0], None), (0, (segments, indices))]
    return np.array(stored, dense.dtype), leadline._leadline.make_sparsity_info([0, 1], [], levels)


def compressed_blocks(dense: np.ndarray, height: int, width: int):
    """The same in dense blocks of height x width."""
    segments, indices, stored = [0], [], []
    for top in range(0, dense.shape[0], height):
        for left in range(0, dense.shape[1], width):
            block = dense[top : top + height, left : left + width]
            if np.any(block):
                indices.append(left // width)
                stored.append(block.reshape(-1))
        segments.append(len(indices))
    levels = [(dense.shape[0] // height, None), (0, (segments, indices)), (height, None), (width, None)]
    values = np.concatenate(stored) if stored else np.zeros(0, dense.dtype)
    return values, leadline._leadline.make_sparsity_info([0, 1, 2, 3], [0, 1], levels)


def cases():
    for dtype in (np.float32, np.float16, np.int8):
        for shape in [(4, 8), (3, 5), (16, 16), (1, 4)]:
            for share in (0.0, 0.3, 1.0):
                name = f"{np.dtype(dtype)} {shape} {share}"
                data = Data(name)
                dense = (data.any(dtype, shape) * (data.rng.random(shape) < share)).astype(dtype)
                quantization = (0.5, 0) if dtype is np.int8 else ()
                forms = [("rows", compressed_rows(dense))]
                if shape[0] % 4 == 0 and shape[1] % 4 == 0:
                    forms += [("4x4", compressed_blocks(dense, 4, 4)), ("1x4", compressed_blocks(dense, 1, 4))]
                for form, (stored, sparsity) in forms:
                    if not stored.size:
                        continue
                    x = data.floats(shape)
                    yield _case(f"{name} {form}", stored, quantization, sparsity, x)


def _case(name, stored, quantization, sparsity, x):
    """x + densified: LiteRT's default kernels refuse graphs without an input."""

    def build() -> bytes:
        builder = leadline.ModelBuilder()
        scales = dict(zip(("scales", "zero_points"), quantization, strict=False))  # none, or both
        weights = builder.constant("weights", stored, sparsity=sparsity, shape=x.shape, **scales)
        dense = builder.tensor("dense", stored.dtype, x.shape, **scales)
        builder.node("DENSIFY", [weights], [dense])
        if stored.dtype != np.float32:
            real = builder.tensor("real", np.float32, x.shape)
            builder.node("DEQUANTIZE", [dense], [real])
            dense = real
        y = builder.tensor("y", np.float32, x.shape)
        builder.node("ADD", [builder.input("x", np.float32, x.shape), dense], [y])
        builder.output(y)
        return builder.to_tflite()

    return Case("DENSIFY", name, [given(x)], build=build)
