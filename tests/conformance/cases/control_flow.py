# SPDX-License-Identifier: Apache-2.0
"""IF WHILE; the ways in which they meet other nodes are in control_flow_nested.py."""

from __future__ import annotations

from itertools import count

import numpy as np
from harness import Case, Data, given, result

import leadline

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
    """A subgraph whose inputs are like `values`; `make` returns its outputs."""
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
        "add or multiply": ((x, y), lambda g, a, b: [op(g, "ADD", [a, b], F32)], lambda g, a,
            b: [op(g, "MUL", [a, b], F32)], [F32]),
        "either input": ((x, y), lambda g, a, b: [a], lambda g, a, b: [b], [F32]),
        "computed or passed": ((x,), lambda g, a: [op(g, "NEG", [a], F32)], lambda g, a: [a], [F32]),
        "swap or not": ((x, y), lambda g, a, b: [b, a], lambda g, a, b: [a, b], [F32, F32]),
        "one twice": ((x, y), lambda g, a, b: [a, a], lambda g, a, b: [a, b], [F32, F32]),
        "constants": ((x,), lambda g, a: [const(g, [1, 2], F32)], lambda g, a: [const(g, [3, 4], F32)], [F32]),
        "constants of two shapes": ((x,), lambda g, a: [const(g, [1, 2], F32)], lambda g, a: [const(g, [[3]], F32)],
            [F32]),
        "two shapes": ((x,), lambda g, a: [op(g, "NEG", [a], F32)], lambda g, a: [op(g, "CONCATENATION", [a, a], F32)],
            [F32]),
        "two ranks": ((x,), lambda g, a: [op(g, "RESHAPE", [a, const(g, [6], I32)], F32)],
                      lambda g, a: [op(g, "SUM", [a, const(g, [0, 1], I32)], F32)], [F32]),
        "mixed results": ((x,), lambda g, a: [op(g, "CAST", [a], I32), a],
                          lambda g, a: [const(g, [7, 7], I32), op(g, "ABS", [a], F32)], [I32, F32]),
        "several nodes": ((x, y), lambda g, a, b: [plus(g, op(g, "MUL", [a, b], F32), 1.0), op(g, "SUB", [a, b], F32)],
                          lambda g, a, b: [op(g, "MAXIMUM", [a, b], F32), plus(g, plus(g, a, 2.0), 3.0)], [F32, F32]),
    }  # fmt: skip
    for name, (values, then, other, kinds) in table.items():
        outputs = [result(k) for k in kinds]
        yield from both_conditions(
            "IF", name, values, outputs, lambda v=values, t=then, o=other, k=kinds: branch(v, t, o, k)
        )
    yield from both_conditions(
        "IF",
        "computed twice",
        (x,),
        [result(F32)] * 2,
        lambda: branch(
            (x,), lambda g, a: [op(g, "NEG", [a], F32)] * 2, lambda g, a: [op(g, "EXP", [a], F32)] * 2, [F32, F32]
        ),
        litert="wrong",
        because="the first of two outputs that are one tensor is not written",
        reference=lambda c, v: [-v if c else np.exp(v)] * 2,
    )
    # Shapes that only data decide.
    where = lambda g, a: [op(g, "WHERE", [op(g, "GREATER", [a, const(g, 0, F32)], bool)], np.int64)]  # noqa: E731
    none = lambda g, a: [const(g, [[5, 5]], np.int64)]  # noqa: E731
    yield from both_conditions("IF", "where", (x,), [result(np.int64)], lambda: branch((x,), where, none, [np.int64]))
    feeds = [given(np.array(True)), given(Data("if resized").floats((5,)))]
    turns = [[np.array(c), Data("if resized").floats((n,))] for c, n in ((False, 5), (True, 2), (False, 1))]
    small = np.zeros((1,), F32)
    yield Case(
        "IF",
        "resized",
        feeds,
        one,
        runs=turns,
        build=lambda: branch((small,), lambda g, a: [op(g, "NEG", [a], F32)], lambda g, a: [plus(g, a, 1.0)], [F32]),
    )
    for kind in (np.int8, np.int16, np.int64, bool, np.uint8):
        values = (Data("if types").any(kind, (2, 3)), Data("if types 2").any(kind, (2, 3)))
        yield from both_conditions(
            "IF",
            f"{np.dtype(kind).name}",
            values,
            [result(kind)],
            lambda v=values, k=kind: branch(v, lambda g, a, b: [a], lambda g, a, b: [b], [k]),
        )
    texts = (np.array([b"deep", b"", b"x"], object), np.array([b"a", b"bb"], object))
    yield from both_conditions(
        "IF",
        "strings",
        texts,
        [result(object)],
        lambda: branch(texts, lambda g, a, b: [a], lambda g, a, b: [b], [object]),
    )


def quantized_branches():
    for kind, scale, zero in ((np.int8, 0.5, -3), (np.uint8, 0.25, 128)):
        q = dict(scales=scale, zero_points=zero)
        values = (Data("if quantized").ints(kind, (2, 3)), Data("if quantized 2").ints(kind, (2, 3)))
        then = lambda g, a, b, q=q, kind=kind: [op(g, "ADD", [a, b], kind, quantization=q)]  # noqa: E731
        other = lambda g, a, b: [b]  # noqa: E731
        yield from both_conditions(
            "IF",
            f"quantized {np.dtype(kind).name}",
            values,
            [result(kind, scale, zero)],
            lambda v=values, t=then, o=other, k=kind, q=q: branch(v, t, o, [k], q),
        )


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
        "fibonacci": ((zero, np.array(1, I32), np.array(1, I32)), lambda g, i, a,
            b: [step(g, i), b, op(g, "ADD", [a, b], I32)]),
        "passed through": ((zero, x, y), lambda g, i, a, b: [step(g, i), a, op(g, "SUB", [b, a], F32)]),
        "one twice": ((zero, x, y), lambda g, i, a, b: [step(g, i), a, a]),
        "computed twice": ((zero, x, y), lambda g, i, a, b: [step(g, i), *([op(g, "ADD", [a, b], F32)] * 2)]),
        "constant": ((zero, x), lambda g, i, a: [step(g, i), const(g, np.full((2, 3), 4), F32)]),
        "many nodes": ((zero, x), lambda g, i,
            a: [step(g, i), op(g, "TANH", [plus(g, op(g, "MUL", [a, a], F32), 0.5)], F32)]),
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
            yield Case(
                "WHILE",
                f"{name}, {rounds} rounds",
                feeds,
                [result(v.dtype) for v in values],
                runs=again,
                build=lambda v=values, b=body, n=limit: loop(v, below(n), b),
                **fault,
            )
    yield Case(
        "WHILE",
        "some results",
        [given(zero), given(x), given(y)],
        [result(F32)],
        build=lambda: loop((zero, x, y), below(3), table["passed through"][1], outputs=[2]),
    )
    # The number of rounds depends on the data alone.
    body = lambda g, a: [op(g, "MUL", [a, const(g, 2, F32)], F32)]  # noqa: E731
    cond = lambda g, a: op(g, "LESS", [op(g, "SUM", [a, const(g, [0], I32)], F32), const(g, 100, F32)], bool)  # noqa: E731
    runs = [[np.array(v, F32)] for v in ([1, 1, 1], [99, 0, 0], [200, 0, 0])]
    yield Case(
        "WHILE",
        "until large",
        [given(np.array([3, 4, 5], F32))],
        [result(F32)],
        runs=runs,
        build=lambda: loop((np.zeros(3, F32),), cond, body),
    )


def growing_loops():
    zero = np.array(0, I32)
    step = lambda g, i: plus(g, i, 1, I32)  # noqa: E731
    x = Data("while grows").floats((2,))
    table = {
        "doubles": ((zero, x), lambda g, i, a: [step(g, i), op(g, "CONCATENATION", [a, a], F32, (0,))]),
        "longer by two": ((zero, x), lambda g, i,
            a: [step(g, i), op(g, "CONCATENATION", [a, const(g, [1, 2], F32)], F32, (0,))]),
        "grows and stays": ((zero, x, x + 1), lambda g, i, a,
            b: [step(g, i), op(g, "CONCATENATION", [a, b], F32, (0,)), b]),
        "swaps while it grows": ((zero, x, x + 1), lambda g, i, a,
            b: [step(g, i), b, op(g, "CONCATENATION", [a, b], F32, (0,))]),
        "pads": ((zero, x.reshape(1, 2)), lambda g, i,
            a: [step(g, i), op(g, "PAD", [a, const(g, [[0, 1], [1, 0]], I32)], F32, (0, 0))]),
    }  # fmt: skip
    for name, (values, body) in table.items():
        for rounds in (0, 1, 2, 4):
            again = [[np.array(start, I32), *values[1:]] for start in (rounds, 0, 1)]
            fault = {}
            if name == "swaps while it grows" and rounds:
                reference = rounds_of(rounds, lambda a, b: (b, np.concatenate([a, b])))
                fault = dict(litert="wrong", because=SWAPS, reference=reference)
            yield Case(
                "WHILE",
                f"{name}, {rounds} rounds",
                [given(v) for v in values],
                [result(v.dtype) for v in values],
                runs=again,
                build=lambda v=values, b=body, n=rounds: loop(v, below(n), b),
                **fault,
            )


def typed_loops():
    zero = np.array(0, I32)
    step = lambda g, i: plus(g, i, 1, I32)  # noqa: E731
    for kind in (np.int8, np.uint8, np.int16, np.int64, bool, np.float64, np.float16):
        values = (zero, Data("while types").any(kind, (3,)))
        yield Case(
            "WHILE",
            f"{np.dtype(kind).name} kept",
            [given(v) for v in values],
            [result(v.dtype) for v in values],
            build=lambda v=values: loop(v, below(3), lambda g, i, a: [step(g, i), a]),
        )
    flag = np.array(True)
    turn = lambda g, f, i: [op(g, "LESS", [i, const(g, 3, I32)], bool), step(g, i)]  # noqa: E731
    for start in (True, False):
        yield Case(
            "WHILE",
            f"flag {start}",
            [given(np.array(start)), given(zero)],
            [result(bool), result(I32)],
            build=lambda: loop((flag, zero), lambda g, f, i: f, turn),
        )
    texts = (zero, np.array([b"deep", b"", b"water"], object), np.array([b"a", b"bb", b""], object))
    for name, order in (("kept", lambda a, b: (a, b)), ("swapped", lambda a, b: (b, a))):
        for rounds in (0, 1, 2, 3):
            fault = {}
            if rounds:
                fault = dict(litert="refuses", because="the strings have no shape after a round: 'Invalid tensor size'")
                fault["reference"] = rounds_of(rounds, order)
            yield Case(
                "WHILE",
                f"strings {name}, {rounds} rounds",
                [given(v) for v in texts],
                [result(I32), result(object), result(object)],
                build=lambda n=rounds, f=order: loop(texts, below(n), lambda g, i, *t: [step(g, i), *f(*t)]),
                **fault,
            )
    for kind, scale, offset in ((np.int8, 0.5, -3), (np.uint8, 0.25, 128)):
        q = dict(scales=scale, zero_points=offset)
        values = (Data("while quantized").ints(kind, (4,)),)
        body = lambda g, a, q=q, kind=kind: [op(g, "ADD", [a, a], kind, quantization=q)]  # noqa: E731

        def cond(g, a):
            return op(
                g,
                "LESS",
                [
                    op(g, "REDUCE_MAX", [op(g, "DEQUANTIZE", [a], F32), const(g, [0], I32)], F32),
                    const(g, 20, F32),
                ],
                bool,
            )

        yield Case(
            "WHILE",
            f"quantized {np.dtype(kind).name}",
            [given(np.array([3, 4, 5, 6], kind) + kind(max(offset, 0)))],
            [result(kind, scale, offset)],
            build=lambda v=values, q=q, b=body, c=cond: loop(v, c, b, q),
        )
