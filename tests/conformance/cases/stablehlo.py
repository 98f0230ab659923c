# SPDX-License-Identifier: Apache-2.0
"""The StableHLO ops that move or reduce windows: GATHER, SCATTER, PAD, REDUCE_WINDOW, and REDUCE_WINDOW and
STABLEHLO_CASE and STABLEHLO_COMPOSITE."""

from __future__ import annotations

import numpy as np
from harness import Case, Data, constant, given, result

import leadline


def cases():
    yield from _pad()
    yield from _gather()
    yield from _scatter()
    yield from _reduce_window()
    yield from _stablehlo_reduce_window()
    yield from _case()
    yield from _composite()


def _pad():
    forms = [
        ([0, 0], [0, 0], [0, 0]), ([1, 0], [0, 2], [0, 1]), ([-1, 0], [0, -1], [0, 0]), ([2, 1], [1, 3], [2, 0]),
        ([-1, -1], [-1, -1], [1, 1]), ([0, 0], [0, 0], [3, 2]), ([-2, 1], [1, -2], [1, 0]), ([-3, 0], [0, 0], [0, 0]),
    ]  # fmt: skip
    types = (np.float32, np.float64, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.bool_)
    for low, high, interior in forms:
        for dtype in types:
            name = f"{np.dtype(dtype)} {low} {high} {interior}"
            data = Data(name)
            inputs = [given(data.any(dtype, (3, 4))), given(np.array(1, dtype))]
            options = dict(edge_padding_low=low, edge_padding_high=high, interior_padding=interior)
            yield Case("STABLEHLO_PAD", name, inputs, [result(dtype)], **options)


def _gather():
    operand = (3, 4, 2)
    forms = [
        # Indices, offset_dims, collapsed_slice_dims, start_index_map, index_vector_dim, slice_sizes
        ([[[0, 0], [1, 0], [2, 1]], [[0, 1], [1, 1], [0, 9]]], [2, 3], [0], [1, 0], 2, [1, 2, 2]),
        ([[0], [2], [1]], [1, 2], [0], [0], 1, [1, 4, 2]),
        ([[5], [-2]], [1, 2], [0], [0], 1, [1, 3, 1]),
        ([[1, 1, 0]], [1, 2], [0], [0, 1, 2], 1, [1, 2, 2]),
    ]
    for dtype in (np.float32, np.int8, np.uint8, np.int16, np.int32, np.int64, np.bool_):
        for indices, offsets, collapsed, starts, vector, sizes in forms:
            for index in (np.int32, np.int64):
                at = np.array(indices, index)
                name = f"{np.dtype(dtype)} {at.tolist()} {np.dtype(index)} sizes {sizes}"
                inputs = [given(Data(name).any(dtype, operand)), given(at)]
                options = dict(
                    offset_dims=offsets, collapsed_slice_dims=collapsed, start_index_map=starts,
                    index_vector_dim=vector, slice_sizes=sizes,
                )  # fmt: skip
                output = result(dtype, shape=_gather_shape(at, offsets, collapsed, vector, sizes))
                yield Case("STABLEHLO_GATHER", name, inputs, [output], **options)
    at = np.array([0, 2], np.int32)
    yield Case(
        "STABLEHLO_GATHER", "index vectors of one implicit element", [given(Data("").floats(operand)), given(at)],
        [result(np.float32, shape=(2, 4, 2))], offset_dims=[1, 2], collapsed_slice_dims=[0], start_index_map=[0],
        index_vector_dim=1, slice_sizes=[1, 4, 2], reference=lambda x, i: [x[i]], litert="dies",
        because="SIGSEGV: index_vector_dim equal to the rank of the indices is legal, but it reads that dimension",
    )  # fmt: skip


def _gather_shape(indices, offsets, collapsed, vector, sizes) -> list[int]:
    batch = [size for axis, size in enumerate(indices.shape) if axis != vector]
    window = [size for axis, size in enumerate(sizes) if axis not in collapsed]
    rank = len(batch) + len(window)
    return [(window if axis in offsets else batch).pop(0) for axis in range(rank)]


BODIES = ("STABLEHLO_ADD", "STABLEHLO_MULTIPLY", "STABLEHLO_MAXIMUM", "STABLEHLO_MINIMUM", None)


def _body(builder, op, dtype, shape=()) -> int:
    """A subgraph of two values that combines them with `op`; without one it gives the second."""
    body = builder.subgraph("body")
    a, b = body.input("a", dtype, shape), body.input("b", dtype, shape)
    if op is None:
        body.output(b)
    else:
        c = body.tensor("c", dtype, shape)
        body.node(op, [a, b], [c])
        body.output(c)
    return body.index


def _scatter():
    forms = [
        # Operand, indices, updates, update_window_dims, inserted_window_dims, scatter_dims_to_operand_dims, vector dim
        ((3, 4, 2), [[[0, 2], [1, 0], [2, 1]], [[0, 1], [1, 0], [0, 9]]], (2, 3, 2, 2), [2, 3], [0], [1, 0], 2),
        ((5,), [[1], [3], [1]], (3,), [], [0], [0], 1),
        ((4, 3), [[0], [2]], (2, 3), [1], [0], [0], 1),
        ((2, 3, 3), [[0, 1], [1, 2]], (2, 3), [1], [0, 1], [0, 1], 1),
    ]
    for body in BODIES:
        for dtype in (np.float32, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint32):
            for index in (np.int32, np.int64):
                for shape, at, updates, window, inserted, to_operand, vector in forms:
                    name = f"{body} {np.dtype(dtype)} {np.dtype(index)} {shape} at {at}"
                    data = Data(name)
                    values = [data.any(dtype, shape) % 11, np.array(at, index), data.any(dtype, updates) % 5]
                    values = [value.astype(kind) for value, kind in zip(values, (dtype, index, dtype), strict=True)]
                    options = dict(
                        update_window_dims=window, inserted_window_dims=inserted,
                        scatter_dims_to_operand_dims=to_operand, index_vector_dim=vector,
                    )  # fmt: skip
                    yield _scatter_case(name, body, dtype, values, options)


def _scatter_case(name, body, dtype, values, options):
    def build() -> bytes:
        builder = leadline.ModelBuilder()
        inputs = [builder.input(f"x{i}", value.dtype, value.shape) for i, value in enumerate(values)]
        y = builder.tensor("y", dtype, values[0].shape)
        index = _body(builder, body, dtype)
        builder.node("STABLEHLO_SCATTER", inputs, [y], update_computation_subgraph_index=index, **options)
        builder.output(y)
        return builder.to_tflite()

    return Case("STABLEHLO_SCATTER", name, [given(value) for value in values], build=build)


WINDOWS = [
    # Shape, window, strides, base dilations, window dilations, padding
    ((6, 5), (2, 2), (1, 1), (1, 1), (1, 1), (0, 0, 0, 0)),
    ((6, 5), (3, 2), (2, 1), (1, 1), (1, 1), (1, 0, 0, 1)),
    ((6, 5), (2, 3), (1, 2), (2, 1), (1, 1), (0, 0, 0, 0)),
    ((6, 7), (2, 2), (1, 1), (1, 1), (3, 2), (0, 0, 0, 0)),
    ((7,), (3,), (2,), (2,), (2,), (2, 1)),
    ((5, 4), (2, 2), (1, 1), (1, 1), (1, 1), (-1, 0, 0, -1)),
    ((1, 7, 6, 2), (1, 2, 3, 1), (1, 1, 2, 1), (1, 1, 1, 1), (1, 1, 1, 1), (0, 0, 1, 1, 0, 0, 0, 0)),
    ((3, 3), (1, 1), (1, 1), (1, 1), (1, 1), (0, 0, 0, 0)),
]


def _reduce_window():
    functions = {1: "add", 2: "multiply", 3: "minimum", 4: "maximum", 5: "all", 6: "any"}
    for function in functions:
        types = (np.bool_,) if function > 4 else (np.float32, np.int8, np.int16, np.int32, np.int64, np.uint8)
        for dtype in types:
            for i, (shape, window, strides, _, dilations, _) in enumerate(WINDOWS):
                name = f"{functions[function]} {np.dtype(dtype)} {i}: {shape} by {window} {strides} {dilations}"
                value = Data(name).any(dtype, shape)
                initial = np.array(function == 5 if dtype is np.bool_ else 1, dtype)
                inputs = [given((value % 3).astype(dtype) if dtype is not np.bool_ else value), given(initial)]
                inputs += [constant(np.array(v, np.int64)) for v in (window, strides, dilations)]
                yield Case("REDUCE_WINDOW", name, inputs, [result(dtype)], reduce_function=function)


def _stablehlo_reduce_window():
    bodies = {"STABLEHLO_ADD": 0, "STABLEHLO_MULTIPLY": 1, "STABLEHLO_MAXIMUM": -100, "STABLEHLO_MINIMUM": 100}
    for body, initial in bodies.items():
        for dtype in (np.float32, np.int8, np.int16, np.int32, np.int64, np.uint8):
            for form in WINDOWS:
                start = np.array(max(initial, 0) if dtype is np.uint8 else initial, dtype)
                name = f"{body} {np.dtype(dtype)} {form}"
                value = (Data(name).any(dtype, form[0]) % 4).astype(dtype)
                yield _window_case(name, body, value, start, form)
    for body in ("STABLEHLO_AND", "STABLEHLO_OR"):
        for form in WINDOWS if body == "STABLEHLO_AND" else ():
            name = f"{body} bool {form}"
            yield _window_case(name, body, Data(name).bools(form[0]), np.array(body == "STABLEHLO_AND"), form)


def _window_case(name, body, value, start, form):
    _, window, strides, base, dilations, padding = form

    def build() -> bytes:
        builder = leadline.ModelBuilder()
        x = builder.input("x", value.dtype, value.shape)
        initial = builder.input("initial", start.dtype, ())
        y = builder.tensor("y", value.dtype, value.shape)
        options = dict(
            window_dimensions=list(window), window_strides=list(strides), base_dilations=list(base),
            window_dilations=list(dilations), padding=list(padding),
        )  # fmt: skip
        index = _body(builder, body, value.dtype)
        builder.node("STABLEHLO_REDUCE_WINDOW", [x, initial], [y], body_subgraph_index=index, **options)
        builder.output(y)
        return builder.to_tflite()

    return Case("STABLEHLO_REDUCE_WINDOW", name, [given(value), given(start)], build=build)


def _case():
    for choice in (-3, 0, 1, 2, 9):
        for shape in [(2, 3), (1,), ()]:
            value = Data(f"{shape}").floats(shape)
            yield _branches_case(f"branch {choice} {shape}", np.array(choice, np.int32), value)


def _branches_case(name, choice, value):
    def build() -> bytes:
        builder = leadline.ModelBuilder()
        branches = []
        for op in ("ADD", "MUL", "SUB"):
            branch = builder.subgraph(op)
            x = branch.input("x", np.float32, value.shape)
            y = branch.tensor("y", np.float32, value.shape)
            branch.node(op, [x, branch.constant("three", np.float32(3))], [y])
            branch.output(y)
            branches.append(branch.index)
        which = builder.input("which", np.int32, choice.shape)
        x = builder.input("x", np.float32, value.shape)
        y = builder.tensor("y", np.float32, value.shape)
        builder.node("STABLEHLO_CASE", [which, x], [y], branch_subgraph_indices=branches)
        builder.output(y)
        return builder.to_tflite()

    return Case("STABLEHLO_CASE", name, [given(choice), given(value)], build=build)


def _composite():
    for op in ("ADD", "MUL", "MAXIMUM"):
        for shape in [(4,), (2, 3), (0, 2), ()]:
            data = Data(f"{op} {shape}")
            yield _composite_case(f"{op} {shape}", op, data.floats(shape), data.floats(shape))


def _composite_case(name, op, a, b):
    def build() -> bytes:
        builder = leadline.ModelBuilder()
        inside = builder.subgraph("decomposition")
        p, q = inside.input("p", np.float32, a.shape), inside.input("q", np.float32, a.shape)
        r = inside.tensor("r", np.float32, a.shape)
        inside.node(op, [p, q], [r])
        inside.output(r)
        p, q = builder.input("p", np.float32, a.shape), builder.input("q", np.float32, a.shape)
        r = builder.tensor("r", np.float32, a.shape)
        builder.node("STABLEHLO_COMPOSITE", [p, q], [r], name="my.op", decomposition_subgraph_index=inside.index)
        builder.output(r)
        return builder.to_tflite()

    return Case("STABLEHLO_COMPOSITE", name, [given(a), given(b)], build=build)
