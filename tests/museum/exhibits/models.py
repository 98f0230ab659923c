# SPDX-License-Identifier: Apache-2.0
"""Models that several exhibits use."""

from __future__ import annotations

import math

import numpy as np
from surgery import edited

import leadline

F32 = np.float32


def stored_rows(dense: np.ndarray):
    """Stored values and sparsity of a matrix whose second dimension is compressed."""
    segments, indices, stored = [0], [], []
    for row in dense:
        for column in np.flatnonzero(row):
            indices.append(int(column))
            stored.append(row[column])
        segments.append(len(indices))
    levels = [(dense.shape[0], None), (0, (segments, indices))]
    return np.array(stored, dense.dtype), leadline._leadline.make_sparsity_info([0, 1], [], levels)


def compressed(stored, sparsity, shape) -> bytes:
    """x + a sparse constant that DENSIFY makes dense."""
    builder = leadline.ModelBuilder()
    x = builder.input("x", F32, shape)
    sparse = builder.constant("sparse", stored, sparsity=sparsity, shape=shape)
    dense = builder.tensor("dense", F32, shape)
    builder.node("DENSIFY", [sparse], [dense])
    y = builder.tensor("y", F32, shape)
    builder.node("ADD", [x, dense], [y])
    builder.output(y)
    return builder.to_tflite()


def transpose_conv() -> bytes:
    """A float model that doubles the size of an image."""
    builder = leadline.ModelBuilder()
    x = builder.input("x", F32, [1, 4, 4, 2])
    y = builder.tensor("y", F32, [1, 8, 8, 2])
    weights = builder.constant("weights", np.arange(1, 37, dtype=F32).reshape(2, 3, 3, 2) / 36 * np.array([1, -3], F32))
    target = builder.constant("target", np.array([1, 8, 8, 2], np.int32))
    builder.node("TRANSPOSE_CONV", [target, weights, x], [y], padding=0, stride_w=2, stride_h=2)
    builder.output(y)
    return builder.to_tflite()


def relu(shape=(1, 4)) -> bytes:
    """The smallest model."""
    builder = leadline.ModelBuilder()
    x = builder.input("x", F32, shape)
    y = builder.tensor("y", F32, shape)
    builder.node("RELU", [x], [y])
    builder.output(y)
    return builder.to_tflite()


def vision_block() -> tuple[bytes, np.ndarray, np.ndarray]:
    """A block of a vision transformer with one head: the model, what it gives, and an image."""
    rng = np.random.default_rng(14)
    image = rng.normal(size=(1, 8, 8, 3)).astype(F32)
    patches, wide = rng.normal(size=(16, 4, 4, 3)).astype(F32) / 7, 16
    query, key, value, dense = (rng.normal(size=(wide, wide)).astype(F32) / 4 for _ in range(4))

    builder = leadline.ModelBuilder()

    def node(op, inputs, shape, **attributes):
        output = builder.tensor(f"t{len(names)}", F32, shape)
        names.append(op)
        builder.node(op, inputs, [output], **attributes)
        return output

    def constant(array):
        names.append("constant")
        return builder.constant(f"c{len(names)}", array)

    names: list[str] = []
    x = builder.input("image", F32, image.shape)
    tokens = node(
        "CONV_2D",
        [x, constant(patches), constant(np.zeros(wide, F32))],
        [1, 2, 2, wide],
        padding=1,
        stride_w=4,
        stride_h=4,
    )
    tokens = node("RESHAPE", [tokens, constant(np.array([4, wide], np.int32))], [4, wide])
    axis = constant(np.array([1], np.int32))
    mean = node("MEAN", [tokens, axis], [4, 1], keep_dims=True)
    spread = node("SQUARED_DIFFERENCE", [tokens, mean], [4, wide])
    spread = node("MEAN", [spread, axis], [4, 1], keep_dims=True)
    spread = node("RSQRT", [node("ADD", [spread, constant(F32(1e-3))], [4, 1])], [4, 1])
    normal = node("MUL", [node("SUB", [tokens, mean], [4, wide]), spread], [4, wide])
    q, k, v = (node("FULLY_CONNECTED", [normal, constant(w), None], [4, wide]) for w in (query, key, value))
    scores = node("BATCH_MATMUL", [q, k], [4, 4], adj_y=True)
    mixed = node("BATCH_MATMUL", [node("SOFTMAX", [scores], [4, 4], beta=0.25), v], [4, wide])
    hidden = node("GELU", [node("FULLY_CONNECTED", [mixed, constant(dense), None], [4, wide])], [4, wide])
    builder.output(node("ADD", [tokens, hidden], [4, wide]))

    cut = image.reshape(2, 4, 2, 4, 3).transpose(0, 2, 1, 3, 4).reshape(4, -1)
    t = cut @ patches.reshape(wide, -1).T
    n = (t - t.mean(1, keepdims=True)) / np.sqrt(t.var(1, keepdims=True) + 1e-3)
    s = (n @ query.T) @ (n @ key.T).T * 0.25
    s = np.exp(s - s.max(1, keepdims=True))
    h = s / s.sum(1, keepdims=True) @ (n @ value.T) @ dense.T
    gelu = h * 0.5 * (1 + np.vectorize(math.erf)(h / math.sqrt(2)))
    return builder.to_tflite(), (t + gelu).astype(F32), image


def chain(length: int, size: int) -> bytes:
    """EXP after EXP on `size` floats, all of them outputs, so that none can share memory."""
    builder = leadline.ModelBuilder()
    last = builder.input("x", F32, [size])
    for i in range(length):
        y = builder.tensor(f"y{i}", F32, [size])
        builder.node("TANH", [last], [y])
        builder.output(y)
        last = y
    return builder.to_tflite()


def strings_of(data: bytes) -> bytes:
    """FILL with a string constant of these raw bytes, three times."""
    builder = leadline.ModelBuilder()
    builder.input("unused", F32, [1])
    text = builder.constant("text", np.array(b"text"))
    y = builder.tensor("y", np.dtype("O"), [3])
    builder.node("FILL", [builder.constant("dims", np.array([3], np.int32)), text], [y])
    builder.output(y)

    def edit(model) -> None:
        tensor = next(t for t in model.subgraphs[0].tensors if t.name == "text")
        model.buffers[tensor.buffer].data = list(data)

    return edited(builder.to_tflite(), edit)


def matmul() -> bytes:
    builder = leadline.ModelBuilder()
    x = builder.input("x", F32, [64, 64])
    y = builder.tensor("y", F32, [64, 64])
    builder.node("FULLY_CONNECTED", [x, builder.constant("w", np.ones((64, 64), F32)), None], [y])
    builder.output(y)
    builder.signature("serve", builder, {"x": x}, {"y": y})
    return builder.to_tflite()


def stored_behind() -> bytes:
    """x + 5, where the 5 lies behind the flatbuffer, as in files beyond 2 GiB."""
    builder = leadline.ModelBuilder()
    x = builder.input("x", F32, [1, 4])
    y = builder.tensor("y", F32, [1, 4])
    builder.node("ADD", [x, builder.constant("five", np.full((1, 4), 5, F32))], [y])
    builder.output(y)
    content, place = builder.to_tflite(), 4096

    def edit(model) -> None:
        buffer = next(b for b in model.buffers if b.data)
        buffer.data, buffer.offset, buffer.size = None, place, 16

    flatbuffer = edited(content, edit)
    return flatbuffer + bytes(place - len(flatbuffer)) + np.full(4, 5, F32).tobytes()
