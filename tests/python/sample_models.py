# SPDX-License-Identifier: Apache-2.0
"""Small models for the tests of the interface, each made in code."""

from __future__ import annotations

import numpy as np
from tflite_builder import RESOURCE, STRING, ModelBuilder, Scalar

F32 = np.float32


def add(shape=(1, 4), signature=(-1, 4)) -> bytes:
    """y = x + [0, 1, 2, 3], with the signature 'add' (x) -> (sum)."""
    builder = ModelBuilder()
    graph = builder.subgraph()
    x = graph.input("x", F32, shape, signature=signature)
    y = graph.op("ADD", [x, graph.constant("c", np.arange(4, dtype=F32))], ("y", F32, shape))
    graph.output(y)
    builder.signature("add", graph, {"x": x}, {"sum": y})
    return builder.build()


def two_inputs() -> bytes:
    """sum = a + b and product = a * b, both [2, 3]; only resizing both inputs gives shapes that fit."""
    builder = ModelBuilder()
    graph = builder.subgraph()
    a, b = graph.input("a", F32, [2, 3]), graph.input("b", F32, [2, 3])
    graph.output(graph.op("ADD", [a, b], ("sum", F32, [2, 3])), graph.op("MUL", [a, b], ("product", F32, [2, 3])))
    builder.signature("both", graph, {"b": b, "a": a}, {"s": graph.outputs[0], "p": graph.outputs[1]})
    return builder.build()


def chain(length=4, size=1024) -> bytes:
    """`length` times EXP or TANH over a vector: intermediates live in the arena."""
    builder = ModelBuilder()
    graph = builder.subgraph()
    value = graph.input("x", F32, [1, size])
    for i in range(length):
        value = graph.op("TANH", [value], (f"t{i}", F32, [1, size]))
    graph.output(value)
    return builder.build()


def dense(inputs=256, outputs=256, batch=1) -> bytes:
    """A fully connected layer and a softmax, with weights of some size."""
    rng = np.random.default_rng(1)
    builder = ModelBuilder()
    graph = builder.subgraph()
    x = graph.input("x", F32, [batch, inputs])
    w = graph.constant("w", rng.standard_normal((outputs, inputs)).astype(F32) / 16)
    b = graph.constant("b", rng.standard_normal(outputs).astype(F32))
    h = graph.op("FULLY_CONNECTED", [x, w, b], ("h", F32, [batch, outputs]))
    graph.output(graph.op("SOFTMAX", [h], ("y", F32, [batch, outputs]), options={0: Scalar("f", 1.0)}))
    return builder.build()


def slow(size=384, count=8) -> bytes:
    """`count` square matrix products: long enough to see who waits for whom."""
    builder = ModelBuilder()
    graph = builder.subgraph()
    x = graph.input("x", F32, [size, size])
    value = x
    for i in range(count):
        product = graph.op("BATCH_MATMUL", [value, x], (f"m{i}", F32, [size, size]))
        value = graph.op("TANH", [product], (f"t{i}", F32, [size, size]))
    graph.output(value)
    return builder.build()


def quantized() -> bytes:
    """int8 TANH with one scale and zero point, and a constant with a scale per channel that nothing reads."""
    builder = ModelBuilder()
    graph = builder.subgraph()
    x = graph.input("x", np.int8, [1, 8], scales=[0.05], zero_points=[3])
    graph.constant("w", np.ones((3, 2), np.int8), scales=[0.1, 0.2, 0.3], axis=0)
    y = graph.op("TANH", [x], ("y", np.int8, [1, 8]), quantization={"scales": [1 / 128], "zero_points": [0]})
    graph.output(y)
    return builder.build()


# Constants without a numpy type: name -> (type code, shape, bytes).
ODD_CONSTANTS = {
    "int4": (17, [2, 3], b"\x18\x7f\xe2"),
    "uint4": (20, [2, 2], b"\xf0\x73"),
    "bfloat16": (18, [3], np.array([0x3F80, 0xC020, 0x3E20], np.uint16).tobytes()),  # 1, -2.5, 0.15625
    "float16": (1, [2], np.array([0.5, -3], np.float16).tobytes()),
}


def odd_constants() -> bytes:
    """The model `add` with constants of rare types that nothing reads."""
    builder = ModelBuilder()
    graph = builder.subgraph()
    x = graph.input("x", F32, [1, 4])
    for name, (code, shape, data) in ODD_CONSTANTS.items():
        graph.tensor(name, code, shape, data=data)
    graph.output(graph.op("ADD", [x, x], ("y", F32, [1, 4])))
    return builder.build()


def strings(shape=(3,)) -> bytes:
    """Strings in, strings out: GATHER along the first dimension."""
    builder = ModelBuilder()
    graph = builder.subgraph()
    words, indices = graph.input("words", STRING, shape), graph.input("indices", np.int32, [2])
    options = {0: Scalar("i", 0)}
    graph.output(graph.op("GATHER", [words, indices], ("picked", STRING, [2, *shape[1:]]), options=options))
    return builder.build()


def where() -> bytes:
    """The output's shape depends on the data."""
    builder = ModelBuilder()
    graph = builder.subgraph()
    x = graph.input("x", np.bool_, [8])
    graph.output(graph.op("WHERE", [x], ("indices", np.int64, [1, 1])))
    return builder.build()


def custom() -> bytes:
    """A legal model with an unknown op."""
    builder = ModelBuilder()
    graph = builder.subgraph()
    x = graph.input("x", F32, [2])
    graph.output(graph.op("NobodyKnowsThisOp", [x], ("y", F32, [2])))
    return builder.build()


def two_signatures() -> bytes:
    """'double' on subgraph 0 and 'square' on subgraph 1."""
    builder = ModelBuilder()
    for key, op in (("double", "ADD"), ("square", "MUL")):
        graph = builder.subgraph()
        x = graph.input(f"{key}_x", F32, [4])
        y = graph.op(op, [x, x], (f"{key}_y", F32, [4]))
        graph.output(y)
        builder.signature(key, graph, {"x": x}, {"y": y})
    return builder.build()


def counter() -> bytes:
    """'step' on subgraph 0 adds x to a variable and returns it; 'read' on subgraph 1 returns it; 2 sets it to 0."""
    builder = ModelBuilder()
    handle = {1: "total"}

    graph = builder.subgraph()
    x = graph.input("x", F32, [2])
    graph.op("CALL_ONCE", [], options={0: Scalar("i", 2)})
    variable = graph.op("VAR_HANDLE", [], ("handle", RESOURCE, []), options=handle)
    total = graph.op("ADD", [graph.op("READ_VARIABLE", [variable], ("old", F32, [2])), x], ("new", F32, [2]))
    graph.op("ASSIGN_VARIABLE", [variable, total])
    graph.output(total)
    builder.signature("step", graph, {"x": x}, {"total": total})

    graph = builder.subgraph()
    factor = graph.input("factor", F32, [2])
    variable = graph.op("VAR_HANDLE", [], ("handle", RESOURCE, []), options=handle)
    value = graph.op("READ_VARIABLE", [variable], ("value", F32, [2]))
    graph.output(graph.op("MUL", [value, factor], ("scaled", F32, [2])))
    builder.signature("read", graph, {"factor": factor}, {"scaled": graph.outputs[0]})

    graph = builder.subgraph()
    variable = graph.op("VAR_HANDLE", [], ("handle", RESOURCE, []), options=handle)
    graph.op("ASSIGN_VARIABLE", [variable, graph.constant("zero", np.zeros(2, F32))])
    return builder.build()
