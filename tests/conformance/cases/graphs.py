# SPDX-License-Identifier: Apache-2.0
"""Several nodes: shapes that become known in the middle, and inputs, constants and outputs that coincide."""

from __future__ import annotations

from itertools import count

import numpy as np
from harness import Case, Data, given, result

import leadline
from leadline import DType

F32, I32, I64 = np.float32, np.int32, np.int64
INT32, INT64 = DType.INT32.value, DType.INT64.value


class Sketch:
    """Nodes one after the other; every method returns a tensor's index."""

    def __init__(self, *values, declared=None):
        self.builder = leadline.ModelBuilder()
        shapes = declared or [v.shape for v in values]
        self.inputs = [
            self.builder.input(f"in{i}", v.dtype, s) for i, (v, s) in enumerate(zip(values, shapes, strict=True))
        ]
        self._names = count()

    def op(self, name, inputs, dtype=F32, **attributes) -> int:
        output = self.builder.tensor(f"t{next(self._names)}", dtype, ())
        self.builder.node(name, inputs, [output], **attributes)
        return output

    def const(self, value, dtype=I32) -> int:
        return self.builder.constant(f"c{next(self._names)}", np.asarray(value, dtype))

    def done(self, *outputs) -> bytes:
        self.builder.output(*outputs)
        return self.builder.to_tflite()


def cases():
    yield from chains()
    yield from coincidences()
    yield from repeated()
    yield from random_graphs()


def positive(s, x):
    """Where x > 0, as rows of indices."""
    return s.op("WHERE", [s.op("GREATER", [x, s.const(0, F32)], bool)], I64)


def take_positive(s, x):
    return s.done(s.op("GATHER_ND", [x, positive(s, x)]))


def sum_positive(s, x):
    return s.done(s.op("SUM", [s.op("GATHER_ND", [x, positive(s, x)]), s.const([0])]))


def positive_and_more(s, x):
    """Nodes of static and of dynamic shape in turn."""
    y = s.op("EXP", [x])
    taken = s.op("GATHER_ND", [y, positive(s, x)])
    z = s.op("MUL", [y, y])
    both = s.op("CONCATENATION", [taken, s.op("RESHAPE", [z, s.const([-1])])], axis=0)
    return s.done(both, z, taken)


def twice_dynamic(s, x):
    """A second dynamic shape that depends on the first."""
    taken = s.op("GATHER_ND", [x, positive(s, x)])
    large = s.op("WHERE", [s.op("GREATER", [taken, s.const(1, F32)], bool)], I64)
    return s.done(s.op("GATHER_ND", [taken, large]), large, taken)


def flatten(s, x):
    """Shape arithmetic: [rows, -1]."""
    shape = s.op("SHAPE", [x], I32, out_type=INT32)
    rows = s.op("STRIDED_SLICE", [shape, s.const([0]), s.const([1]), s.const([1])], I32, shrink_axis_mask=1)
    return s.done(s.op("RESHAPE", [x, s.op("PACK", [rows, s.const(-1)], I32, values_count=2, axis=0)]))


def ones_like(s, x):
    """FILL by a shape that is computed."""
    return s.done(s.op("ADD", [x, s.op("FILL", [s.op("SHAPE", [x], I64, out_type=INT64), s.const(1, F32)])]))


def ranged(s, x):
    """RANGE up to the number of elements, in the shape of x."""
    shape = s.op("SHAPE", [x], I32, out_type=INT32)
    size = s.op("REDUCE_PROD", [shape, s.const([0])], I32)
    numbers = s.op("RANGE", [s.const(0), size, s.const(1)], I32)
    return s.done(s.op("ADD", [x, s.op("CAST", [s.op("RESHAPE", [numbers, shape], I32)])]), numbers)


def tiled(s, x):
    """TILE by its own rank, BROADCAST_TO a shape that is joined."""
    shape = s.op("SHAPE", [x], I32, out_type=INT32)
    wide = s.op("BROADCAST_TO", [x, s.op("CONCATENATION", [s.const([2]), shape], I32, axis=0)])
    rank = s.op("RANK", [wide], I32)
    times = s.op("FILL", [s.op("RESHAPE", [rank, s.const([1])], I32), s.const(2)], I32)
    return s.done(s.op("TILE", [wide, times]))


def padded(s, x):
    """PAD to a multiple of 4 along the last axis, then look at the result in fours."""
    shape = s.op("SHAPE", [x], I32, out_type=INT32)
    last = s.op("STRIDED_SLICE", [shape, s.const([-1]), s.const([0]), s.const([1])], I32, end_mask=1)
    missing = s.op("FLOOR_MOD", [s.op("NEG", [last], I32), s.const([4])], I32)
    row = s.op("CONCATENATION", [s.const([0]), missing], I32, axis=0)
    borders = s.op("PACK", [s.const([0, 0]), row], I32, values_count=2, axis=0)
    return s.done(s.op("RESHAPE", [s.op("PAD", [x, borders]), s.const([-1, 4])]))


def sorted_rows(s, x):
    """TOPK_V2 of all, then GATHER by its indices."""
    shape = s.op("SHAPE", [x], I32, out_type=INT32)
    last = s.op("STRIDED_SLICE", [shape, s.const([1]), s.const([2]), s.const([1])], I32, shrink_axis_mask=1)
    values, indices = s.builder.tensor("values", F32, ()), s.builder.tensor("indices", I32, ())
    s.builder.node("TOPK_V2", [x, last], [values, indices])
    return s.done(values, s.op("GATHER", [x, indices], axis=1, batch_dims=1))


def split_dynamic(s, x):
    """SPLIT_V by a computed size; the parts are put back in the other order."""
    shape = s.op("SHAPE", [x], I32, out_type=INT32)
    last = s.op("STRIDED_SLICE", [shape, s.const([1]), s.const([2]), s.const([1])], I32)
    half = s.op("FLOOR_DIV", [last, s.const([2])], I32)
    sizes = s.op("CONCATENATION", [half, s.op("SUB", [last, half], I32)], I32, axis=0)
    one, two = s.builder.tensor("one", F32, ()), s.builder.tensor("two", F32, ())
    s.builder.node("SPLIT_V", [x, sizes, s.const(1)], [one, two], num_splits=2)
    return s.done(s.op("CONCATENATION", [two, one], axis=1), one)


def hot(s, x):
    """ONE_HOT of an ARG_MAX with a computed depth, then CUMSUM and REVERSE_V2."""
    shape = s.op("SHAPE", [x], I32, out_type=INT32)
    depth = s.op("STRIDED_SLICE", [shape, s.const([1]), s.const([2]), s.const([1])], I32, shrink_axis_mask=1)
    best = s.op("ARG_MAX", [x, s.const(1)], I32, output_type=INT32)
    hot_ = s.op("ONE_HOT", [best, depth, s.const(1, F32), s.const(0, F32)], axis=-1)
    return s.done(s.op("REVERSE_V2", [s.op("CUMSUM", [hot_, s.const(1)]), s.const([0])]))


def dense(s, x):
    """A matrix product behind a dynamic shape, and its softmax."""
    rows = s.op(
        "GATHER",
        [
            x,
            s.op(
                "RESHAPE",
                [
                    s.op(
                        "WHERE",
                        [s.op("GREATER", [s.op("REDUCE_MAX", [x, s.const([1])]), s.const(0.5, F32)], bool)],
                        I64,
                    ),
                    s.const([-1]),
                ],
                I64,
            ),
        ],
        axis=0,
    )
    weights = s.const(Data("dense").floats((3, 4)), F32)
    bias = s.const([1, 2, 3], F32)
    y = s.op("FULLY_CONNECTED", [rows, weights, bias])
    return s.done(s.op("SOFTMAX", [y], beta=1.0), y)


def in_place(s, x):
    """Elementwise chains on both sides of a dynamic node."""
    y = s.op("TANH", [s.op("EXP", [s.op("NEG", [x])])])
    z = s.op("GATHER_ND", [y, positive(s, x)])
    w = s.op("NEG", [s.op("ABS", [s.op("ADD", [z, z])])])
    return s.done(s.op("RESHAPE", [s.op("EXP", [w]), s.const([1, -1])]), w)


CHAINS = [
    take_positive, sum_positive, positive_and_more, twice_dynamic, flatten, ones_like, ranged, tiled, padded,
    sorted_rows,
    split_dynamic, hot, dense, in_place,
]  # fmt: skip


def chains():
    for chain in CHAINS:
        x = Data(chain.__name__)
        outputs = [result(F32)] * 3
        value = x.floats((5, 4)) + F32(0.3)
        value[0, 0], value[1, 1] = 2.0, 1.5  # some are positive, some larger than 1
        runs = [[np.roll(value, 1, 0)], [value]]
        name = chain.__name__.replace("_", " ")
        yield Case("graph", name, [given(value)], outputs, runs=runs, build=lambda c=chain, v=value: _made(c, v))
        # Rows come and go; the columns stay, as weights ask for them.
        runs = [[value[:2]], [np.concatenate([value, value])], [value[:1] + F32(3)], [value]]
        yield Case(
            "graph",
            f"{name}, resized",
            [given(value)],
            outputs,
            runs=runs,
            build=lambda c=chain, v=value: _made(c, v[:1]),
        )


def _made(chain, value) -> bytes:
    sketch = Sketch(value)
    return chain(sketch, *sketch.inputs)


def coincidences():
    x, y = Data("graph x").floats((2, 3)), Data("graph y").floats((2, 3))

    def model(make, *values):
        sketch = Sketch(*values)
        return sketch.done(*make(sketch, *sketch.inputs))

    table = {
        "input as output": ([x], lambda s, a: [a]),
        "inputs in another order": ([x, y], lambda s, a, b: [b, a]),
        "input twice": ([x], lambda s, a: [a, a]),
        "input and result": ([x], lambda s, a: [a, s.op("NEG", [a])]),
        "result twice": ([x], lambda s, a: [s.op("NEG", [a])] * 2),
        "result and what it is made of": ([x], lambda s,
            a: (lambda e: [e, s.op("NEG", [e]), s.op("ABS", [e])])(s.op("EXP", [a]))),
        "constant": ([x], lambda s, a: [s.const([1, 2, 3], F32)]),
        "constant twice": ([x], lambda s, a: [s.const([1, 2, 3], F32)] * 2),
        "constant and result": ([x], lambda s, a: (lambda c: [c, s.op("ADD", [a, c])])(s.const([1, 2, 3], F32))),
        "computed from constants": ([x], lambda s, a: [s.op("NEG", [s.const([1, 2, 3], F32)]), s.op("ABS", [a])]),
        "unused input": ([x, y], lambda s, a, b: [s.op("NEG", [b])]),
        "unused result": ([x], lambda s, a: [(s.op("EXP", [a]), s.op("NEG", [a]))[1]]),
        "x + x": ([x], lambda s, a: [s.op("ADD", [a, a])]),
        "x * x - x": ([x], lambda s, a: [s.op("SUB", [s.op("MUL", [a, a]), a])]),
        "reshape of an input": ([x], lambda s, a: [s.op("RESHAPE", [a, s.const([3, 2])])]),
        "reshape of an input, used again": ([x], lambda s, a: (lambda r: [r, s.op("NEG", [r]), s.op("EXP", [a])])(
            s.op("RESHAPE", [a, s.const([3, 2])]))),
        "reshape of reshape": ([x], lambda s,
            a: [s.op("RESHAPE", [s.op("RESHAPE", [a, s.const([6])]), s.const([1, 6])])]),
        "reshape of a result": ([x], lambda s,
            a: (lambda n: [n, s.op("RESHAPE", [n, s.const([6])])])(s.op("NEG", [a]))),
        "reshape of a constant": ([x], lambda s, a: [s.op("RESHAPE", [s.const([[1, 2]], F32), s.const([2])])]),
        "one tensor in many nodes": ([x], lambda s,
            a: [s.op(n, [a]) for n in ("NEG", "ABS", "EXP", "SIN", "COS", "SQUARE")]),
        "concatenation with itself": ([x], lambda s, a: [s.op("CONCATENATION", [a, a, a], axis=1)]),
        "pack of constants and inputs": ([x], lambda s,
            a: [s.op("PACK", [a, s.const(x, F32), a], values_count=3, axis=0)]),
        "strings as they are": ([Data("graph strings").any(object, (2, 2))], lambda s, a: [a]),
        "int4 constant": ([x], lambda s,
            a: [s.builder.constant("c", np.array([-8, 7, 3], np.int8), DType.INT4), s.op("NEG", [a])]),
    }  # fmt: skip
    for name, (values, make) in table.items():
        runs = [[np.array(v) if v.dtype == object else v + v for v in values], values]
        outputs = [result(F32)] * 6
        yield Case(
            "graph", name, [given(v) for v in values], outputs, runs=runs, build=lambda m=make, v=values: model(m, *v)
        )

    def constants_only():
        sketch = Sketch()
        numbers = sketch.const([3, 4])
        return sketch.done(numbers, sketch.op("NEG", [numbers], I32))

    yield Case("graph", "no inputs", [], [result(I32)] * 2, runs=[[]], build=constants_only)


def repeated():
    """Long chains, whose memory is used again and again."""

    def long_chain(n, x):
        s = Sketch(x)
        y = s.inputs[0]
        for i in range(n):
            y = s.op(("NEG", "ABS", "SQUARE", "SIN", "TANH")[i % 5], [y])
        return s.done(y)

    def ladder(n, x):
        """Every node reads the last two."""
        s = Sketch(x)
        a, b = s.inputs[0], s.op("NEG", [s.inputs[0]])
        for i in range(n):
            a, b = b, s.op(("ADD", "SUB", "MAXIMUM")[i % 3], [a, b])
        return s.done(a, b)

    def fan(n, x):
        s = Sketch(x)
        parts = [s.op("MUL", [s.inputs[0], s.const(i, F32)]) for i in range(n)]
        return s.done(s.op("CONCATENATION", parts, axis=0), parts[n // 2])

    x = Data("graph chains").floats((3, 5))
    runs = [[x * F32(0.5)]]
    for name, make, n in (("long chain", long_chain, 60), ("ladder", ladder, 25), ("fan", fan, 20)):
        yield Case("graph", name, [given(x)], [result(F32)] * 2, runs=runs, build=lambda m=make, n=n: m(n, x))


class Grower:
    """Grows a random graph over tensors of four columns. Tensors of one kind have the same rows in every run."""

    def __init__(self, seed: int, x: np.ndarray):
        self.rng = Data(f"random graph {seed}").rng
        self.builder = leadline.ModelBuilder()
        self.names = count()
        self.kinds = count()
        self.of_kind: dict[int, list[int]] = {next(self.kinds): [self.builder.input("x", F32, x.shape)]}

    def op(self, graph, name, inputs, dtype=F32, **attributes) -> int:
        output = graph.tensor(f"t{next(self.names)}", dtype, ())
        graph.node(name, inputs, [output], **attributes)
        return output

    def const(self, graph, value, dtype=I32) -> int:
        return graph.constant(f"c{next(self.names)}", np.asarray(value, dtype))

    def pick(self) -> tuple[int, int]:
        kind = int(self.rng.choice(list(self.of_kind)))
        return kind, int(self.rng.choice(self.of_kind[kind]))

    def elementwise(self, g, a) -> int:
        """A few nodes that keep the shape."""
        for _ in range(int(self.rng.integers(1, 4))):
            name = str(self.rng.choice(["NEG", "ABS", "TANH", "ADD", "MUL", "RESHAPE", "REVERSE_V2"]))
            if name in ("ADD", "MUL"):
                a = self.op(g, name, [a, a if self.rng.random() < 0.3 else self.const(g, [0.5, -1.5, 1, 2], F32)])
            elif name == "RESHAPE":
                a = self.op(g, name, [self.op(g, name, [a, self.const(g, [-1])]), self.const(g, [-1, 4])])
            elif name == "REVERSE_V2":
                a = self.op(g, name, [a, self.const(g, [1])])
            else:
                a = self.op(g, name, [a])
        return a

    def grow(self) -> None:
        g, rng = self.builder, self.rng
        kind, a = self.pick()
        step = str(rng.choice(["elementwise", "binary", "join", "rows", "half", "tile", "if", "while", "sort"]))
        same, new = None, None
        if step == "elementwise":
            same = self.elementwise(g, a)
        elif step == "binary":
            same = self.op(g, str(rng.choice(["ADD", "SUB", "MAXIMUM"])), [a, int(rng.choice(self.of_kind[kind]))])
        elif step == "join":
            new = self.op(g, "CONCATENATION", [a, self.pick()[1]], axis=0)
        elif step == "rows":
            large = self.op(
                g, "GREATER", [self.op(g, "REDUCE_MAX", [a, self.const(g, [1])]), self.const(g, 0.123, F32)], bool
            )
            at = self.op(g, "RESHAPE", [self.op(g, "WHERE", [large], I64), self.const(g, [-1])], I64)
            new = self.op(
                g, "CONCATENATION", [self.op(g, "GATHER", [a, at], axis=0), self.const(g, [[1, 2, 3, 4]], F32)], axis=0
            )
        elif step == "half":
            rows = self.op(
                g,
                "STRIDED_SLICE",
                [
                    self.op(g, "SHAPE", [a], I32, out_type=INT32),
                    self.const(g, [0]),
                    self.const(g, [1]),
                    self.const(g, [1]),
                ],
                I32,
            )
            half = self.op(
                g, "FLOOR_DIV", [self.op(g, "ADD", [rows, self.const(g, [1])], I32), self.const(g, [2])], I32
            )
            size = self.op(g, "CONCATENATION", [half, self.const(g, [4])], I32, axis=0)
            new = self.op(g, "SLICE", [a, self.const(g, [0, 0]), size])
        elif step == "tile":
            new = self.op(g, "TILE", [a, self.const(g, [2, 1])])
        elif step == "sort":
            values, indices = (g.tensor(f"t{next(self.names)}", k, ()) for k in (F32, I32))
            g.node("TOPK_V2", [a, self.const(g, 4)], [values, indices])
            same = values
        else:
            same = self.call(step, a)
        if same is not None:
            self.of_kind[kind].append(same)
        else:
            self.of_kind[next(self.kinds)] = [new]

    def inner(self, name, counts=False):
        graph = self.builder.subgraph(f"{name}{next(self.names)}")
        numbers = [graph.input("i", I32, ())] if counts else []
        return graph, numbers, graph.input("x", F32, (1, 4))

    def call(self, step, a) -> int:
        output = self.builder.tensor(f"t{next(self.names)}", F32, ())
        if step == "if":
            branches = []
            for _ in range(2):
                graph, _, value = self.inner("branch")
                graph.output(value if self.rng.random() < 0.3 else self.elementwise(graph, value))
                branches.append(graph.index)
            total = self.op(self.builder, "SUM", [a, self.const(self.builder, [0, 1])])
            flag = self.op(self.builder, "GREATER", [total, self.const(self.builder, 0.321, F32)], bool)
            indices = dict(then_subgraph_index=branches[0], else_subgraph_index=branches[1])
            self.builder.node("IF", [flag, a], [output], **indices)
            return output
        cond, (number,), _ = self.inner("cond", True)
        cond.output(self.op(cond, "LESS", [number, self.const(cond, int(self.rng.integers(0, 4)))], bool))
        body, (number,), value = self.inner("body", True)
        body.output(self.op(body, "ADD", [number, self.const(body, 1)], I32), self.elementwise(body, value))
        rounds = self.builder.tensor(f"t{next(self.names)}", I32, ())
        start = self.op(self.builder, "RANK", [a], I32)
        zero = self.op(self.builder, "SUB", [start, self.const(self.builder, 2)], I32)
        indices = dict(cond_subgraph_index=cond.index, body_subgraph_index=body.index)
        self.builder.node("WHILE", [zero, a], [rounds, output], **indices)
        return output

    def done(self, nodes: int) -> bytes:
        for _ in range(nodes):
            self.grow()
        tensors = [t for kind in self.of_kind.values() for t in kind[-2:]]
        chosen = self.rng.choice(tensors, min(4, len(tensors)), replace=False)
        self.builder.output(*(int(t) for t in chosen), int(tensors[-1]))
        return self.builder.to_tflite()


def random_graphs():
    for seed in range(120):
        x = Data(f"random graph values {seed}").floats((3, 4), -1, 1)
        runs = [[np.roll(x, 1, 0)], [-x], [x]]
        if seed % 3 == 0:
            runs += [[np.concatenate([x, x])], [x[:1]], [x]]
        yield Case(
            "graph",
            f"random {seed}",
            [given(x)],
            [],
            runs=runs,
            build=lambda s=seed, x=x: Grower(s, x).done(3 + s // 10),
        )
