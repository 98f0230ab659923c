# SPDX-License-Identifier: Apache-2.0
"""VAR_HANDLE READ_VARIABLE ASSIGN_VARIABLE."""

from __future__ import annotations

import numpy as np
from harness import Case, Data, given, result

import leadline
from leadline import DType

TYPES = [
    np.float32, np.float64, np.float16, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64,
    np.uint64, bool,
    np.complex64,
]  # fmt: skip


def handle(builder, name: str, container: str = "") -> int:
    resource = builder.tensor(f"handle {container} {name}", DType.RESOURCE, [1])
    builder.node("VAR_HANDLE", [], [resource], container=container, shared_name=name)
    return resource


def read(builder, resource: int, dtype, shape=(), name="read", **quantization) -> int:
    value = builder.tensor(name, dtype, shape, **quantization)
    builder.node("READ_VARIABLE", [resource], [value])
    return value


def write_then_read(value, declared, **quantization) -> bytes:
    builder = leadline.ModelBuilder()
    x = builder.input("x", value.dtype, value.shape, **quantization)
    resource = handle(builder, "v")
    builder.node("ASSIGN_VARIABLE", [resource, x], [])
    builder.output(read(builder, resource, value.dtype, declared, **quantization))
    return builder.to_tflite()


def accumulate(dtype, shape, reset: bool) -> bytes:
    """v += x in every run; the first value comes from an initializer."""
    builder = leadline.ModelBuilder()
    init = builder.subgraph("init")
    resource = handle(init, "v")
    init.node("ASSIGN_VARIABLE", [resource, init.constant("zero", np.ones(shape, dtype))], [])
    x = builder.input("x", dtype, shape)
    if reset:
        builder.node("CALL_ONCE", [], [], init_subgraph_index=init.index)
    resource = handle(builder, "v")
    old = read(builder, resource, dtype, shape, "old")
    new = builder.tensor("new", dtype, shape)
    builder.node("ADD", [old, x], [new])
    builder.node("ASSIGN_VARIABLE", [resource, new], [])
    builder.output(read(builder, resource, dtype, shape, "now"), old)
    return builder.to_tflite()


def two_variables(same: bool, containers=("", "")) -> bytes:
    """Writes x to one, y to the other, reads both."""
    builder = leadline.ModelBuilder()
    x, y = builder.input("x", np.float32, [2]), builder.input("y", np.float32, [2])
    one = handle(builder, "a", containers[0])
    other = builder.tensor("other", DType.RESOURCE, [1])
    builder.node("VAR_HANDLE", [], [other], container=containers[1], shared_name="a" if same else "b")
    builder.node("ASSIGN_VARIABLE", [one, x], [])
    builder.node("ASSIGN_VARIABLE", [other, y], [])
    builder.output(read(builder, one, np.float32, [2], "first"), read(builder, other, np.float32, [2], "second"))
    return builder.to_tflite()


def read_before_write(shape) -> bytes:
    """What the run before left, which is what the input was then."""
    builder = leadline.ModelBuilder()
    x = builder.input("x", np.float32, shape)
    init = builder.subgraph("init")
    init.node("ASSIGN_VARIABLE", [handle(init, "v"), init.constant("first", np.full(shape, 7, np.float32))], [])
    builder.node("CALL_ONCE", [], [], init_subgraph_index=init.index)
    resource = handle(builder, "v")
    old = read(builder, resource, np.float32, shape, "old")
    builder.node("ASSIGN_VARIABLE", [resource, x], [])
    builder.output(old)
    return builder.to_tflite()


def cases():
    data = Data("variables")
    for kind in TYPES:
        x = data.any(kind, (2, 3))
        runs = [[data.any(kind, (2, 3))] for _ in range(3)]
        for declared in ((), (2, 3)):
            yield Case(
                "ASSIGN_VARIABLE",
                f"{np.dtype(kind).name} read as {declared}",
                [given(x)],
                [result(kind)],
                runs=runs,
                build=lambda x=x, d=declared: write_then_read(x, d),
            )
    for shape in ((), (1,), (2, 1, 3, 2, 1, 2)):
        x = data.floats(shape)
        yield Case(
            "ASSIGN_VARIABLE",
            f"{shape}",
            [given(x)],
            [result(np.float32)],
            runs=[[data.floats(shape)]],
            build=lambda x=x: write_then_read(x, ()),
        )
    for kind, scale, zero in ((np.int8, 0.5, -128), (np.uint8, 3.0, 255), (np.int16, 1e-3, 0)):
        x = data.ints(kind, (5,))
        yield Case(
            "ASSIGN_VARIABLE",
            f"quantized {np.dtype(kind).name}",
            [given(x)],
            [result(kind, scale, zero)],
            exact=True,
            build=lambda x=x, s=scale, z=zero: write_then_read(x, (5,), scales=s, zero_points=z),
        )
    for kind in (np.float32, np.int32, np.int64):
        runs = [[data.any(kind, (2, 3))] for _ in range(4)]
        yield Case(
            "READ_VARIABLE",
            f"sum over runs {np.dtype(kind).name}",
            [given(data.any(kind, (2, 3)))],
            [result(kind), result(kind)],
            runs=runs,
            build=lambda kind=kind: accumulate(kind, (2, 3), True),
        )
    runs = [[data.floats((4,))] for _ in range(3)]
    yield Case(
        "READ_VARIABLE",
        "before it is written",
        [given(data.floats((4,)))],
        [result(np.float32)],
        runs=runs,
        build=lambda: read_before_write((4,)),
    )
    pair = [given(data.floats((2,))), given(data.floats((2,)))]
    runs = [[data.floats((2,)), data.floats((2,))]]
    outputs = [result(np.float32), result(np.float32)]
    yield Case("VAR_HANDLE", "two names", pair, outputs, runs=runs, build=lambda: two_variables(False))
    yield Case("VAR_HANDLE", "one name twice", pair, outputs, runs=runs, build=lambda: two_variables(True))
    yield Case(
        "VAR_HANDLE",
        "one name in two containers",
        pair,
        outputs,
        runs=runs,
        build=lambda: two_variables(True, ("c", "d")),
    )
