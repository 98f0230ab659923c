# SPDX-License-Identifier: Apache-2.0
"""CALL_ONCE IF WHILE."""

from __future__ import annotations

from itertools import count

import numpy as np
from harness import Case, Data, given, result

import leadline
from leadline import DType

F32, I32 = np.float32, np.int32
_names = count()


def op(graph, name, inputs, dtype, shape=(), quantization=None, **attributes) -> int:
    """A node with one output."""
    output = graph.tensor(f"t{next(_names)}", dtype, shape, **(quantization or {}))
    graph.node(name, inputs, [output], **attributes)
    return output


def const(graph, value, dtype=None) -> int:
    return graph.constant(f"c{next(_names)}", np.asarray(value, dtype))


def subgraph(builder, name, values, make, quantization=None) -> int:
    """A subgraph whose inputs are like `values`; `make` gives its outputs."""
    graph = builder.subgraph(name)
    inputs = [graph.input(f"{name}{i}", v.dtype, v.shape, **(quantization or {})) for i, v in enumerate(values)]
    graph.output(*make(graph, *inputs))
    return graph.index


def loop(values, cond, body, quantization=None, outputs=None) -> bytes:
    """WHILE cond(state): state = body(state). `outputs`: those of its results that the model gives."""
    builder = leadline.ModelBuilder()
    inputs = [builder.input(f"in{i}", v.dtype, v.shape, **(quantization or {})) for i, v in enumerate(values)]
    results = [builder.tensor(f"out{i}", v.dtype, (), **(quantization or {})) for i, v in enumerate(values)]
    condition = subgraph(builder, "cond", values, lambda *a: [cond(*a)], quantization)
    rounds = subgraph(builder, "body", values, body, quantization)
    builder.node("WHILE", inputs, results, cond_subgraph_index=condition, body_subgraph_index=rounds)
    builder.output(*(results if outputs is None else [results[i] for i in outputs]))
    return builder.to_tflite()


def branch(values, then, other, results, quantization=None) -> bytes:
    """IF the first input: then(values), else other(values); `results` are the types it gives."""
    builder = leadline.ModelBuilder()
    condition = builder.input("condition", bool, ())
    inputs = [builder.input(f"in{i}", v.dtype, v.shape, **(quantization or {})) for i, v in enumerate(values)]
    outputs = [builder.tensor(f"out{i}", kind, (), **(quantization or {})) for i, kind in enumerate(results)]
    yes = subgraph(builder, "then", values, then, quantization)
    no = subgraph(builder, "else", values, other, quantization)
    builder.node("IF", [condition, *inputs], outputs, then_subgraph_index=yes, else_subgraph_index=no)
    builder.output(*outputs)
    return builder.to_tflite()


def below(limit, dtype=I32):
    """A condition: the first of the state is below `limit`."""
    return lambda g, i, *_: op(g, "LESS", [i, const(g, limit, dtype)], bool)


def plus(g, x, value, dtype=F32, shape=()):
    return op(g, "ADD", [x, const(g, value, dtype)], dtype, shape)


def cases():
    yield from branches()
    yield from quantized_branches()
    yield from loops()
    yield from growing_loops()
    yield from typed_loops()
    yield from nested()
    yield from initializers()
    yield from around()


def both_conditions(op_name, name, values, outputs, build, **options):
    """The case with a true and with a false condition, and one that runs both in turn."""
    for first in (True, False):
        feeds = [given(np.array(first)), *(given(v) for v in values)]
        turns = [[np.array(c), *values] for c in (not first, first, first, not first)]
        yield Case(op_name, f"{name} {first}", feeds, outputs, build=build, **options)
        yield Case(op_name, f"{name} {first} first", feeds, outputs, build=build, runs=turns, **options)


def branches():
    x, y = Data("if").floats((2, 3)), Data("if other").floats((2, 3))
    one = [result(F32)]
    table = {
        "add or multiply": ((x, y), lambda g, a, b: [op(g, "ADD", [a, b], F32)], lambda g, a, b: [op(g, "MUL", [a, b], F32)], [F32]),
        "either input": ((x, y), lambda g, a, b: [a], lambda g, a, b: [b], [F32]),
        "computed or passed": ((x,), lambda g, a: [op(g, "NEG", [a], F32)], lambda g, a: [a], [F32]),
        "swap or not": ((x, y), lambda g, a, b: [b, a], lambda g, a, b: [a, b], [F32, F32]),
        "one twice": ((x, y), lambda g, a, b: [a, a], lambda g, a, b: [a, b], [F32, F32]),
        "constants": ((x,), lambda g, a: [const(g, [1, 2], F32)], lambda g, a: [const(g, [3, 4], F32)], [F32]),
        "constants of two shapes": ((x,), lambda g, a: [const(g, [1, 2], F32)], lambda g, a: [const(g, [[3]], F32)], [F32]),
        "two shapes": ((x,), lambda g, a: [op(g, "NEG", [a], F32)], lambda g, a: [op(g, "CONCATENATION", [a, a], F32)], [F32]),
        "two ranks": ((x,), lambda g, a: [op(g, "RESHAPE", [a, const(g, [6], I32)], F32)],
                      lambda g, a: [op(g, "SUM", [a, const(g, [0, 1], I32)], F32)], [F32]),
        "mixed results": ((x,), lambda g, a: [op(g, "CAST", [a], I32), a],
                          lambda g, a: [const(g, [7, 7], I32), op(g, "ABS", [a], F32)], [I32, F32]),
        "several nodes": ((x, y), lambda g, a, b: [plus(g, op(g, "MUL", [a, b], F32), 1.0), op(g, "SUB", [a, b], F32)],
                          lambda g, a, b: [op(g, "MAXIMUM", [a, b], F32), plus(g, plus(g, a, 2.0), 3.0)], [F32, F32]),
    }  # fmt: skip
    for name, (values, then, other, kinds) in table.items():
        outputs = [result(k) for k in kinds]
        yield from both_conditions("IF", name, values, outputs, lambda v=values, t=then, o=other, k=kinds: branch(v, t, o, k))
    yield from both_conditions("IF", "computed twice", (x,), [result(F32)] * 2,
                               lambda: branch((x,), lambda g, a: [op(g, "NEG", [a], F32)] * 2,
                                              lambda g, a: [op(g, "EXP", [a], F32)] * 2, [F32, F32]),
                               litert="wrong", because="the first of two outputs that are one tensor is not written",
                               reference=lambda c, v: [-v if c else np.exp(v)] * 2)  # fmt: skip
    # Shapes that only data tell.
    where = lambda g, a: [op(g, "WHERE", [op(g, "GREATER", [a, const(g, 0, F32)], bool)], np.int64)]  # noqa: E731
    none = lambda g, a: [const(g, [[5, 5]], np.int64)]  # noqa: E731
    yield from both_conditions("IF", "where", (x,), [result(np.int64)], lambda: branch((x,), where, none, [np.int64]))
    feeds = [given(np.array(True)), given(Data("if resized").floats((5,)))]
    turns = [[np.array(c), Data("if resized").floats((n,))] for c, n in ((False, 5), (True, 2), (False, 1))]
    small = np.zeros((1,), F32)
    yield Case("IF", "resized", feeds, one, runs=turns,
               build=lambda: branch((small,), lambda g, a: [op(g, "NEG", [a], F32)], lambda g, a: [plus(g, a, 1.0)], [F32]))  # fmt: skip
    for kind in (np.int8, np.int16, np.int64, bool, np.uint8):
        values = (Data("if types").any(kind, (2, 3)), Data("if types 2").any(kind, (2, 3)))
        yield from both_conditions("IF", f"{np.dtype(kind).name}", values, [result(kind)],
                                   lambda v=values, k=kind: branch(v, lambda g, a, b: [a], lambda g, a, b: [b], [k]))  # fmt: skip
    texts = (np.array([b"deep", b"", b"x"], object), np.array([b"a", b"bb"], object))
    yield from both_conditions("IF", "strings", texts, [result(object)],
                               lambda: branch(texts, lambda g, a, b: [a], lambda g, a, b: [b], [object]))  # fmt: skip


def quantized_branches():
    for kind, scale, zero in ((np.int8, 0.5, -3), (np.uint8, 0.25, 128)):
        q = dict(scales=scale, zero_points=zero)
        values = (Data("if quantized").ints(kind, (2, 3)), Data("if quantized 2").ints(kind, (2, 3)))
        then = lambda g, a, b, q=q, kind=kind: [op(g, "ADD", [a, b], kind, quantization=q)]  # noqa: E731
        other = lambda g, a, b: [b]  # noqa: E731
        yield from both_conditions("IF", f"quantized {np.dtype(kind).name}", values, [result(kind, scale, zero)],
                                   lambda v=values, t=then, o=other, k=kind, q=q: branch(v, t, o, [k], q))  # fmt: skip


SWAPS = "values that a body gives in another order overwrite each other"


def rounds_of(limit, body):
    """A loop in numpy: the reference of loops that LiteRT gets wrong."""

    def run(i, *state):
        while np.all(i < limit):
            i, state = i + np.ones_like(i), body(*state)
        return [i, *state]

    return run


def loops():
    zero, x, y = np.array(0, I32), Data("while").floats((2, 3)), Data("while 2").floats((2, 3))
    step = lambda g, i: plus(g, i, 1, I32)  # noqa: E731
    table = {
        "count": ((zero,), lambda g, i: [step(g, i)]),
        "double": ((zero, x), lambda g, i, a: [step(g, i), op(g, "ADD", [a, a], F32)]),
        "swap": ((zero, x, y), lambda g, i, a, b: [step(g, i), b, a]),
        "rotate": ((zero, x, y, x + y), lambda g, i, a, b, c: [step(g, i), b, c, a]),
        "fibonacci": ((zero, np.array(1, I32), np.array(1, I32)), lambda g, i, a, b: [step(g, i), b, op(g, "ADD", [a, b], I32)]),
        "passed through": ((zero, x, y), lambda g, i, a, b: [step(g, i), a, op(g, "SUB", [b, a], F32)]),
        "one twice": ((zero, x, y), lambda g, i, a, b: [step(g, i), a, a]),
        "computed twice": ((zero, x, y), lambda g, i, a, b: [step(g, i), *([op(g, "ADD", [a, b], F32)] * 2)]),
        "constant": ((zero, x), lambda g, i, a: [step(g, i), const(g, np.full((2, 3), 4), F32)]),
        "many nodes": ((zero, x), lambda g, i, a: [step(g, i), op(g, "TANH", [plus(g, op(g, "MUL", [a, a], F32), 0.5)], F32)]),
        "vector of one": ((np.zeros(1, I32), x), lambda g, i, a: [plus(g, i, [1], I32), op(g, "NEG", [a], F32)]),
    }  # fmt: skip
    for name, (values, body) in table.items():
        for rounds in (0, 1, 2, 7):
            limit = [rounds] if values[0].shape else rounds
            feeds = [given(v) for v in values]
            again = [[np.full_like(values[0], start), *values[1:]] for start in (rounds, 0, 1)]
            fault = {}
            if name in ("swap", "rotate") and rounds:
                fault = dict(litert="wrong", because=SWAPS, reference=rounds_of(rounds, lambda a, *rest: (*rest, a)))
            yield Case("WHILE", f"{name}, {rounds} rounds", feeds, [result(v.dtype) for v in values], runs=again,
                       build=lambda v=values, b=body, n=limit: loop(v, below(n), b), **fault)  # fmt: skip
    yield Case("WHILE", "some results", [given(zero), given(x), given(y)], [result(F32)],
               build=lambda: loop((zero, x, y), below(3), table["passed through"][1], outputs=[2]))  # fmt: skip
    # The number of rounds depends on the data alone.
    body = lambda g, a: [op(g, "MUL", [a, const(g, 2, F32)], F32)]  # noqa: E731
    cond = lambda g, a: op(g, "LESS", [op(g, "SUM", [a, const(g, [0], I32)], F32), const(g, 100, F32)], bool)  # noqa: E731
    runs = [[np.array(v, F32)] for v in ([1, 1, 1], [99, 0, 0], [200, 0, 0])]
    yield Case("WHILE", "until large", [given(np.array([3, 4, 5], F32))], [result(F32)], runs=runs,
               build=lambda: loop((np.zeros(3, F32),), cond, body))  # fmt: skip


def growing_loops():
    zero = np.array(0, I32)
    step = lambda g, i: plus(g, i, 1, I32)  # noqa: E731
    x = Data("while grows").floats((2,))
    table = {
        "doubles": ((zero, x), lambda g, i, a: [step(g, i), op(g, "CONCATENATION", [a, a], F32, (0,))]),
        "longer by two": ((zero, x), lambda g, i, a: [step(g, i), op(g, "CONCATENATION", [a, const(g, [1, 2], F32)], F32, (0,))]),
        "grows and stays": ((zero, x, x + 1), lambda g, i, a, b: [step(g, i), op(g, "CONCATENATION", [a, b], F32, (0,)), b]),
        "swaps while it grows": ((zero, x, x + 1), lambda g, i, a, b: [step(g, i), b, op(g, "CONCATENATION", [a, b], F32, (0,))]),
        "pads": ((zero, x.reshape(1, 2)), lambda g, i, a: [step(g, i), op(g, "PAD", [a, const(g, [[0, 1], [1, 0]], I32)], F32, (0, 0))]),
    }  # fmt: skip
    for name, (values, body) in table.items():
        for rounds in (0, 1, 2, 4):
            again = [[np.array(start, I32), *values[1:]] for start in (rounds, 0, 1)]
            fault = {}
            if name == "swaps while it grows" and rounds:
                reference = rounds_of(rounds, lambda a, b: (b, np.concatenate([a, b])))
                fault = dict(litert="wrong", because=SWAPS, reference=reference)
            yield Case("WHILE", f"{name}, {rounds} rounds", [given(v) for v in values], [result(v.dtype) for v in values],
                       runs=again, build=lambda v=values, b=body, n=rounds: loop(v, below(n), b), **fault)  # fmt: skip


def typed_loops():
    zero = np.array(0, I32)
    step = lambda g, i: plus(g, i, 1, I32)  # noqa: E731
    for kind in (np.int8, np.uint8, np.int16, np.int64, bool, np.float64, np.float16):
        values = (zero, Data("while types").any(kind, (3,)))
        yield Case("WHILE", f"{np.dtype(kind).name} kept", [given(v) for v in values], [result(v.dtype) for v in values],
                   build=lambda v=values: loop(v, below(3), lambda g, i, a: [step(g, i), a]))  # fmt: skip
    flag = np.array(True)
    turn = lambda g, f, i: [op(g, "LESS", [i, const(g, 3, I32)], bool), step(g, i)]  # noqa: E731
    for start in (True, False):
        yield Case("WHILE", f"flag {start}", [given(np.array(start)), given(zero)], [result(bool), result(I32)],
                   build=lambda: loop((flag, zero), lambda g, f, i: f, turn))  # fmt: skip
    texts = (zero, np.array([b"deep", b"", b"water"], object), np.array([b"a", b"bb", b""], object))
    for name, order in (("kept", lambda a, b: (a, b)), ("swapped", lambda a, b: (b, a))):
        for rounds in (0, 1, 2, 3):
            fault = {}
            if rounds:
                fault = dict(litert="refuses", because="the strings have no shape after a round: 'Invalid tensor size'")
                fault["reference"] = rounds_of(rounds, order)
            yield Case("WHILE", f"strings {name}, {rounds} rounds", [given(v) for v in texts],
                       [result(I32), result(object), result(object)],
                       build=lambda n=rounds, f=order: loop(texts, below(n), lambda g, i, *t: [step(g, i), *f(*t)]),
                       **fault)  # fmt: skip
    for kind, scale, offset in ((np.int8, 0.5, -3), (np.uint8, 0.25, 128)):
        q = dict(scales=scale, zero_points=offset)
        values = (Data("while quantized").ints(kind, (4,)),)
        body = lambda g, a, q=q, kind=kind: [op(g, "ADD", [a, a], kind, quantization=q)]  # noqa: E731
        cond = lambda g, a: op(g, "LESS", [op(g, "REDUCE_MAX", [op(g, "DEQUANTIZE", [a], F32), const(g, [0], I32)], F32),  # noqa: E731
                                           const(g, 20, F32)], bool)  # fmt: skip
        yield Case("WHILE", f"quantized {np.dtype(kind).name}", [given(np.array([3, 4, 5, 6], kind) + kind(max(offset, 0)))],
                   [result(kind, scale, offset)], build=lambda v=values, q=q, b=body, c=cond: loop(v, c, b, q))  # fmt: skip


def nested():
    """A loop in a loop, a branch in a loop, a loop in a branch."""
    x = Data("nested").floats((2, 3))
    zero = np.array(0, I32)

    def loop_in_loop(inner_rounds, grows=False) -> bytes:
        builder = leadline.ModelBuilder()
        values = (zero, x)
        inner = subgraph(builder, "inner cond", values, lambda g, i, a: [below(inner_rounds)(g, i)])
        shape = (0, 0) if grows else ()
        twice = lambda g, a: op(g, "CONCATENATION", [a, a], F32, shape) if grows else op(g, "ADD", [a, a], F32)  # noqa: E731
        work = subgraph(builder, "inner body", values, lambda g, i, a: [plus(g, i, 1, I32), twice(g, a)])

        def body(g, i, a):
            outputs = [g.tensor("n", I32, ()), g.tensor("m", F32, ())]
            g.node("WHILE", [const(g, 0, I32), a], outputs, cond_subgraph_index=inner, body_subgraph_index=work)
            return [plus(g, i, 1, I32), outputs[1]]

        outer = subgraph(builder, "outer cond", values, lambda g, i, a: [below(3)(g, i)])
        rounds = subgraph(builder, "outer body", values, body)
        inputs = [builder.input("i", I32, ()), builder.input("x", F32, x.shape)]
        outputs = [builder.tensor("n", I32, ()), builder.tensor("y", F32, ())]
        builder.node("WHILE", inputs, outputs, cond_subgraph_index=outer, body_subgraph_index=rounds)
        builder.output(*outputs)
        return builder.to_tflite()

    def branch_in_loop(shapes_differ) -> bytes:
        builder = leadline.ModelBuilder()
        values = (zero, x)
        even = subgraph(builder, "even", (x,), lambda g, a: [op(g, "NEG", [a], F32)])
        odd = subgraph(builder, "odd", (x,), lambda g, a: [op(g, "CONCATENATION", [a, a], F32, (0, 0)) if shapes_differ
                                                          else op(g, "ADD", [a, a], F32)])  # fmt: skip

        def body(g, i, a):
            rest = op(g, "FLOOR_MOD", [i, const(g, 2, I32)], I32)
            output = g.tensor("taken", F32, ())
            condition = op(g, "EQUAL", [rest, const(g, 0, I32)], bool)
            g.node("IF", [condition, a], [output], then_subgraph_index=even, else_subgraph_index=odd)
            return [plus(g, i, 1, I32), output]

        cond = subgraph(builder, "cond", values, lambda g, i, a: [below(5)(g, i)])
        rounds = subgraph(builder, "body", values, body)
        inputs = [builder.input("i", I32, ()), builder.input("x", F32, x.shape)]
        outputs = [builder.tensor("n", I32, ()), builder.tensor("y", F32, ())]
        builder.node("WHILE", inputs, outputs, cond_subgraph_index=cond, body_subgraph_index=rounds)
        builder.output(*outputs)
        return builder.to_tflite()

    def shared_subgraphs(dynamic) -> bytes:
        """Two branches and two loops that call the same subgraphs."""
        builder = leadline.ModelBuilder()
        flag, a = builder.input("flag", bool, ()), builder.input("x", F32, x.shape)
        twice = subgraph(builder, "twice", (x,), lambda g, v: [op(g, "CONCATENATION", [v, v], F32, (0, 0)) if dynamic
                                                               else op(g, "ADD", [v, v], F32)])  # fmt: skip
        minus = subgraph(builder, "minus", (x,), lambda g, v: [op(g, "NEG", [v], F32)])
        one, two, three = (builder.tensor(f"y{i}", F32, ()) for i in range(3))
        builder.node("IF", [flag, a], [one], then_subgraph_index=twice, else_subgraph_index=minus)
        builder.node("IF", [flag, one], [two], then_subgraph_index=twice, else_subgraph_index=twice)
        builder.node("IF", [flag, a], [three], then_subgraph_index=minus, else_subgraph_index=twice)
        builder.output(one, two, three)
        return builder.to_tflite()

    outputs = [result(I32), result(F32)]
    feeds = [given(zero), given(x)]
    again = [[np.array(i, I32), x] for i in (1, 3, 0)]
    for rounds in (0, 1, 3):
        yield Case("WHILE", f"in a loop, {rounds} rounds", feeds, outputs, runs=again, build=lambda n=rounds: loop_in_loop(n))
        yield Case("WHILE", f"in a loop, growing, {rounds} rounds", feeds, outputs, runs=again,
                   build=lambda n=rounds: loop_in_loop(n, True))  # fmt: skip
    for differ in (False, True):
        yield Case("WHILE", f"with a branch, shapes {differ}", feeds, outputs, runs=again,
                   build=lambda d=differ: branch_in_loop(d))  # fmt: skip


    yield from both_conditions("IF", "shared subgraphs", (x,), [result(F32)] * 3, lambda: shared_subgraphs(False))
    twice = lambda v: np.concatenate([v, v])  # noqa: E731
    fault = dict(litert="wrong", because="a later caller of a subgraph overwrites the results of an earlier one")
    fault["reference"] = lambda c, v: [twice(v), twice(twice(v)), -v] if c else [-v, twice(-v), twice(v)]
    turns = [[np.array(c), x] for c in (True, False)]
    yield Case("IF", "shared subgraphs of two shapes", [given(np.array(False)), given(x)], [result(F32)] * 3, runs=turns,
               build=lambda: shared_subgraphs(True), **fault)  # fmt: skip


def initializers():
    def once(times, in_between) -> bytes:
        """v is set to 1 by CALL_ONCE, however often it is called; every run adds x."""
        builder = leadline.ModelBuilder()
        init = builder.subgraph("init")
        resource = op(init, "VAR_HANDLE", [], DType.RESOURCE, [1], shared_name="v")
        init.node("ASSIGN_VARIABLE", [resource, const(init, [1, 1], F32)], [])
        x = builder.input("x", F32, [2])
        for _ in range(times):
            builder.node("CALL_ONCE", [], [], init_subgraph_index=init.index)
        resource = op(builder, "VAR_HANDLE", [], DType.RESOURCE, [1], shared_name="v")
        total = op(builder, "ADD", [op(builder, "READ_VARIABLE", [resource], F32, [2]), x], F32, [2])
        builder.node("ASSIGN_VARIABLE", [resource, total], [])
        if in_between:
            builder.node("CALL_ONCE", [], [], init_subgraph_index=init.index)
        builder.output(op(builder, "READ_VARIABLE", [resource], F32, [2]))
        return builder.to_tflite()

    def loop_on_a_variable(passed: bool) -> bytes:
        """The body adds to a variable, whose handle is `passed` to it or its own; the rest of the state only counts."""
        builder = leadline.ModelBuilder()
        x, i = builder.input("x", F32, [2]), builder.input("i", I32, ())
        resource = op(builder, "VAR_HANDLE", [], DType.RESOURCE, [1], shared_name="v")
        builder.node("ASSIGN_VARIABLE", [resource, x], [])
        graphs = {}
        for name in ("cond", "body"):
            graph = graphs[name] = builder.subgraph(name)
            counter = graph.input("i", I32, ())
            inner = graph.input("r", DType.RESOURCE, [1]) if passed else None
            if name == "cond":
                graph.output(below(3)(graph, counter))
                continue
            if not passed:
                inner = op(graph, "VAR_HANDLE", [], DType.RESOURCE, [1], shared_name="v")
            old = op(graph, "READ_VARIABLE", [inner], F32, [2])
            graph.node("ASSIGN_VARIABLE", [inner, op(graph, "ADD", [old, old], F32, [2])], [])
            graph.output(*([plus(graph, counter, 1, I32)] + [inner] * passed))
        outputs = [builder.tensor("count", I32, ())] + [builder.tensor("r", DType.RESOURCE, [1])] * passed
        indices = dict(cond_subgraph_index=graphs["cond"].index, body_subgraph_index=graphs["body"].index)
        builder.node("WHILE", [i] + [resource] * passed, outputs, **indices)
        builder.output(outputs[0], op(builder, "READ_VARIABLE", [resource], F32, [2]))
        return builder.to_tflite()

    def branch_on_a_variable() -> bytes:
        """Writes to the variable that is given to it, or only reads it."""
        builder = leadline.ModelBuilder()
        x, flag = builder.input("x", F32, [2]), builder.input("flag", bool, ())
        resource = op(builder, "VAR_HANDLE", [], DType.RESOURCE, [1], shared_name="v")
        builder.node("ASSIGN_VARIABLE", [resource, x], [])
        graphs = []
        for write in (True, False):
            graph = builder.subgraph(f"write {write}")
            inner = graph.input("r", DType.RESOURCE, [1])
            old = op(graph, "READ_VARIABLE", [inner], F32, [2])
            if write:
                graph.node("ASSIGN_VARIABLE", [inner, op(graph, "ADD", [old, old], F32, [2])], [])
            graph.output(old)
            graphs.append(graph.index)
        before = builder.tensor("before", F32, ())
        builder.node("IF", [flag, resource], [before], then_subgraph_index=graphs[0], else_subgraph_index=graphs[1])
        builder.output(before, op(builder, "READ_VARIABLE", [resource], F32, [2]))
        return builder.to_tflite()

    runs = [[np.array(v, F32)] for v in ([1, 2], [3, 4], [0, 0])]
    first = given(np.array([5, 6], F32))
    for times in (1, 2):
        for between in (False, True):
            yield Case("CALL_ONCE", f"{times} times, {between}", [first], [result(F32)], runs=runs,
                       build=lambda t=times, b=between: once(t, b))  # fmt: skip
    zero = np.array(0, I32)
    for passed in (False, True):
        fault = {}
        if not passed:
            fault = dict(litert="dies", because="segmentation fault for handles made inside a body")
            fault["reference"] = lambda x, i: [np.array(3, I32), 8 * x]
        yield Case("WHILE", f"on a variable, passed {passed}", [first, given(zero)], [result(I32), result(F32)],
                   runs=[[*values, zero] for values in runs], build=lambda p=passed: loop_on_a_variable(p),
                   **fault)  # fmt: skip
    for flag in (True, False):
        yield Case("IF", f"on a variable, {flag}", [first, given(np.array(flag))], [result(F32), result(F32)],
                   runs=[[*values, np.array(not flag)] for values in runs], build=branch_on_a_variable)  # fmt: skip


def around():
    """What surrounds branches and loops: constant conditions, dynamic inputs, nodes that read their results."""
    x = Data("around").floats((4, 3)) + F32(0.2)
    x[0, 0], x[1, 1] = 2.0, 3.0
    zero = np.array(0, I32)

    def with_condition(make_condition, values=()) -> bytes:
        builder = leadline.ModelBuilder()
        inputs = [builder.input(f"in{i}", v.dtype, v.shape) for i, v in enumerate((x, *values))]
        yes = subgraph(builder, "yes", (x,), lambda g, a: [op(g, "NEG", [a], F32)])
        no = subgraph(builder, "no", (x,), lambda g, a: [op(g, "ABS", [a], F32)])
        output = builder.tensor("y", F32, ())
        builder.node("IF", [make_condition(builder, *inputs), inputs[0]], [output], then_subgraph_index=yes,
                     else_subgraph_index=no)  # fmt: skip
        builder.output(op(builder, "EXP", [output], F32), output)
        return builder.to_tflite()

    def total(g, a):
        return op(g, "SUM", [a, const(g, [0, 1], I32)], F32)

    two = [result(F32), result(F32)]
    for value in (True, False):
        yield Case("IF", f"constant {value}", [given(x)], two, build=lambda v=value: with_condition(lambda g, a: const(g, v)))
        one = np.array([value])
        yield Case("IF", f"vector of one {value}", [given(x), given(one)], two,
                   build=lambda o=one: with_condition(lambda g, a, c: c, (o,)))  # fmt: skip
    yield Case("IF", "computed condition", [given(x)], two, runs=[[-x], [x]],
               build=lambda: with_condition(lambda g, a: op(g, "GREATER", [total(g, a), const(g, 0, F32)], bool)))  # fmt: skip

    def without_inputs() -> bytes:
        builder = leadline.ModelBuilder()
        flag = builder.input("flag", bool, ())
        yes = subgraph(builder, "yes", (), lambda g: [const(g, [1, 2, 3], F32)])
        no = subgraph(builder, "no", (), lambda g: [op(g, "NEG", [const(g, [4, 5, 6], F32)], F32)])
        output = builder.tensor("y", F32, ())
        builder.node("IF", [flag], [output], then_subgraph_index=yes, else_subgraph_index=no)
        builder.output(output)
        return builder.to_tflite()

    yield from both_conditions("IF", "without inputs", (), [result(F32)], without_inputs)

    def on_dynamic(kind) -> bytes:
        """The state or the argument has a shape that is found at run time; its result is used again."""
        builder = leadline.ModelBuilder()
        a = builder.input("x", F32, x.shape)
        where = op(builder, "WHERE", [op(builder, "GREATER", [a, const(builder, 0, F32)], bool)], np.int64)
        taken = op(builder, "GATHER_ND", [a, where], F32)
        some = np.zeros((1,), F32)
        output = builder.tensor("y", F32, ())
        if kind == "IF":
            yes = subgraph(builder, "yes", (some,), lambda g, v: [op(g, "NEG", [v], F32)])
            no = subgraph(builder, "no", (some,), lambda g, v: [v])
            flag = op(builder, "GREATER", [total(builder, a), const(builder, 0, F32)], bool)
            builder.node("IF", [flag, taken], [output], then_subgraph_index=yes, else_subgraph_index=no)
        else:
            cond = subgraph(builder, "cond", (zero, some), lambda g, i, v: [below(3)(g, i)])
            body = subgraph(builder, "body", (zero, some), lambda g, i, v: [plus(g, i, 1, I32), op(g, "ADD", [v, v], F32)])
            number = builder.tensor("n", I32, ())
            builder.node("WHILE", [const(builder, 0, I32), taken], [number, output], cond_subgraph_index=cond,
                         body_subgraph_index=body)  # fmt: skip
        builder.output(op(builder, "SUM", [op(builder, "EXP", [output], F32), const(builder, [0], I32)], F32), output)
        return builder.to_tflite()

    for kind in ("IF", "WHILE"):
        runs = [[np.roll(x, 1, 0)], [np.abs(x)], [x]]
        yield Case(kind, "on a dynamic shape", [given(x)], two, runs=runs, build=lambda k=kind: on_dynamic(k))

    weights = Data("around weights").floats((3, 3), -0.5, 0.5)

    def recurrent(rounds) -> bytes:
        """h = tanh(W (h + x[i])), one row of x in a round, all h joined in the end."""
        h = np.zeros((1, 3), F32)

        def body(g, i, state, rows, log):
            row = op(g, "GATHER", [rows, op(g, "RESHAPE", [i, const(g, [1], I32)], I32)], F32, axis=0)
            product = op(g, "FULLY_CONNECTED", [op(g, "ADD", [state, row], F32), const(g, weights), const(g, [0.1, 0.2, 0.3], F32)], F32)
            new = op(g, "TANH", [product], F32)
            return [plus(g, i, 1, I32), new, rows, op(g, "CONCATENATION", [log, new], F32, (0, 0), axis=0)]

        return loop((zero, h, x, h), below(rounds), body)

    h = np.zeros((1, 3), F32)
    for rounds in (0, 1, 4):
        yield Case("WHILE", f"recurrent, {rounds} rounds", [given(zero), given(h), given(x), given(h)],
                   [result(I32)] + [result(F32)] * 3, runs=[[zero, h + F32(1), -x, h]],
                   build=lambda n=rounds: recurrent(n))  # fmt: skip

    def many_rounds() -> bytes:
        body = lambda g, i, a: [plus(g, i, 1, I32), op(g, "MUL", [plus(g, a, 0.5), const(g, 0.75, F32)], F32)]  # noqa: E731
        return loop((zero, x), below(1000), body)

    yield Case("WHILE", "1000 rounds", [given(zero), given(x)], [result(I32), result(F32)], build=many_rounds)

    def update_row() -> bytes:
        """Replaces row i of the state by pieces: slices before and after, joined again."""

        def body(g, i, a):
            start = op(g, "PACK", [i, const(g, 0, I32)], I32, values_count=2, axis=0)
            row = op(g, "SLICE", [a, start, const(g, [1, 3], I32)], F32, (1, 3))
            begin = op(g, "SLICE", [a, const(g, [0, 0], I32), op(g, "PACK", [i, const(g, 3, I32)], I32, values_count=2, axis=0)], F32)
            after = op(g, "PACK", [plus(g, i, 1, I32), const(g, 0, I32)], I32, values_count=2, axis=0)
            end = op(g, "SLICE", [a, after, const(g, [-1, -1], I32)], F32)
            return [plus(g, i, 1, I32), op(g, "CONCATENATION", [begin, op(g, "NEG", [row], F32), end], F32, axis=0)]

        return loop((zero, x), below(4), body)

    yield Case("WHILE", "updates rows", [given(zero), given(x)], [result(I32), result(F32)], build=update_row)

    def two_loops() -> bytes:
        """The second starts where the first ended, with the same subgraphs."""
        builder = leadline.ModelBuilder()
        i, a = builder.input("i", I32, ()), builder.input("x", F32, x.shape)
        cond = subgraph(builder, "cond", (zero, x), lambda g, n, v: [below(3)(g, n)])
        body = subgraph(builder, "body", (zero, x), lambda g, n, v: [plus(g, n, 1, I32), op(g, "ADD", [v, v], F32)])
        first = [builder.tensor("n1", I32, ()), builder.tensor("y1", F32, ())]
        second = [builder.tensor("n2", I32, ()), builder.tensor("y2", F32, ())]
        builder.node("WHILE", [i, a], first, cond_subgraph_index=cond, body_subgraph_index=body)
        back = op(builder, "SUB", [first[0], const(builder, 2, I32)], I32)
        builder.node("WHILE", [back, first[1]], second, cond_subgraph_index=cond, body_subgraph_index=body)
        builder.output(*second, first[1])
        return builder.to_tflite()

    yield Case("WHILE", "twice", [given(zero), given(x)], [result(I32), result(F32), result(F32)], runs=[[zero, -x]],
               build=two_loops)  # fmt: skip

    empty = np.zeros((0, 3), F32)
    yield Case("WHILE", "empty state", [given(zero), given(empty)], [result(I32), result(F32)],
               build=lambda: loop((zero, empty), below(2), lambda g, i, a: [plus(g, i, 1, I32), op(g, "NEG", [a], F32)]))  # fmt: skip
    runs = [[zero, np.ones(s, F32)] for s in ((3,), (1,), (5,))]
    yield Case("WHILE", "resized", [given(zero), given(np.ones(2, F32))], [result(I32), result(F32)], runs=runs,
               build=lambda: loop((zero, np.zeros(1, F32)), below(3),
                                  lambda g, i, a: [plus(g, i, 1, I32), op(g, "ADD", [a, a], F32)]))  # fmt: skip
