# SPDX-License-Identifier: Apache-2.0
"""CALL_ONCE, and IF and WHILE inside each other, with variables, and among other nodes."""

from __future__ import annotations

import numpy as np
from cases.control_flow import F32, I32, below, both_conditions, const, loop, op, plus, subgraph
from harness import Case, Data, given, result

import leadline
from leadline import DType


def cases():
    yield from nested()
    yield from initializers()
    yield from around()


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
        odd = subgraph(
            builder,
            "odd",
            (x,),
            lambda g, a: [op(g, "CONCATENATION", [a, a], F32, (0, 0)) if shapes_differ else op(g, "ADD", [a, a], F32)],
        )

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
        twice = subgraph(
            builder,
            "twice",
            (x,),
            lambda g, v: [op(g, "CONCATENATION", [v, v], F32, (0, 0)) if dynamic else op(g, "ADD", [v, v], F32)],
        )
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
        yield Case(
            "WHILE", f"in a loop, {rounds} rounds", feeds, outputs, runs=again, build=lambda n=rounds: loop_in_loop(n)
        )
        yield Case(
            "WHILE",
            f"in a loop, growing, {rounds} rounds",
            feeds,
            outputs,
            runs=again,
            build=lambda n=rounds: loop_in_loop(n, True),
        )
    for differ in (False, True):
        yield Case(
            "WHILE",
            f"with a branch, shapes {differ}",
            feeds,
            outputs,
            runs=again,
            build=lambda d=differ: branch_in_loop(d),
        )

    yield from both_conditions("IF", "shared subgraphs", (x,), [result(F32)] * 3, lambda: shared_subgraphs(False))
    twice = lambda v: np.concatenate([v, v])  # noqa: E731
    fault = dict(litert="wrong", because="a later caller of a subgraph overwrites the results of an earlier one")
    fault["reference"] = lambda c, v: [twice(v), twice(twice(v)), -v] if c else [-v, twice(-v), twice(v)]
    turns = [[np.array(c), x] for c in (True, False)]
    yield Case(
        "IF",
        "shared subgraphs of two shapes",
        [given(np.array(False)), given(x)],
        [result(F32)] * 3,
        runs=turns,
        build=lambda: shared_subgraphs(True),
        **fault,
    )


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
            yield Case(
                "CALL_ONCE",
                f"{times} times, {between}",
                [first],
                [result(F32)],
                runs=runs,
                build=lambda t=times, b=between: once(t, b),
            )
    zero = np.array(0, I32)
    for passed in (False, True):
        fault = {}
        if not passed:
            fault = dict(litert="dies", because="segmentation fault for handles made inside a body")
            fault["reference"] = lambda x, i: [np.array(3, I32), 8 * x]
        yield Case(
            "WHILE",
            f"on a variable, passed {passed}",
            [first, given(zero)],
            [result(I32), result(F32)],
            runs=[[*values, zero] for values in runs],
            build=lambda p=passed: loop_on_a_variable(p),
            **fault,
        )
    for flag in (True, False):
        yield Case(
            "IF",
            f"on a variable, {flag}",
            [first, given(np.array(flag))],
            [result(F32), result(F32)],
            runs=[[*values, np.array(not flag)] for values in runs],
            build=branch_on_a_variable,
        )


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
        builder.node(
            "IF",
            [make_condition(builder, *inputs), inputs[0]],
            [output],
            then_subgraph_index=yes,
            else_subgraph_index=no,
        )
        builder.output(op(builder, "EXP", [output], F32), output)
        return builder.to_tflite()

    def total(g, a):
        return op(g, "SUM", [a, const(g, [0, 1], I32)], F32)

    two = [result(F32), result(F32)]
    for value in (True, False):
        yield Case(
            "IF", f"constant {value}", [given(x)], two, build=lambda v=value: with_condition(lambda g, a: const(g, v))
        )
        one = np.array([value])
        yield Case(
            "IF",
            f"vector of one {value}",
            [given(x), given(one)],
            two,
            build=lambda o=one: with_condition(lambda g, a, c: c, (o,)),
        )
    yield Case(
        "IF",
        "computed condition",
        [given(x)],
        two,
        runs=[[-x], [x]],
        build=lambda: with_condition(lambda g, a: op(g, "GREATER", [total(g, a), const(g, 0, F32)], bool)),
    )

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
            body = subgraph(
                builder, "body", (zero, some), lambda g, i, v: [plus(g, i, 1, I32), op(g, "ADD", [v, v], F32)]
            )
            number = builder.tensor("n", I32, ())
            builder.node(
                "WHILE",
                [const(builder, 0, I32), taken],
                [number, output],
                cond_subgraph_index=cond,
                body_subgraph_index=body,
            )
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
            product = op(
                g,
                "FULLY_CONNECTED",
                [op(g, "ADD", [state, row], F32), const(g, weights), const(g, [0.1, 0.2, 0.3], F32)],
                F32,
            )
            new = op(g, "TANH", [product], F32)
            return [plus(g, i, 1, I32), new, rows, op(g, "CONCATENATION", [log, new], F32, (0, 0), axis=0)]

        return loop((zero, h, x, h), below(rounds), body)

    h = np.zeros((1, 3), F32)
    for rounds in (0, 1, 4):
        yield Case(
            "WHILE",
            f"recurrent, {rounds} rounds",
            [given(zero), given(h), given(x), given(h)],
            [result(I32)] + [result(F32)] * 3,
            runs=[[zero, h + F32(1), -x, h]],
            build=lambda n=rounds: recurrent(n),
        )

    def many_rounds() -> bytes:
        body = lambda g, i, a: [plus(g, i, 1, I32), op(g, "MUL", [plus(g, a, 0.5), const(g, 0.75, F32)], F32)]  # noqa: E731
        return loop((zero, x), below(1000), body)

    yield Case("WHILE", "1000 rounds", [given(zero), given(x)], [result(I32), result(F32)], build=many_rounds)

    def update_row() -> bytes:
        """Replaces row i of the state by pieces: slices before and after, joined again."""

        def body(g, i, a):
            start = op(g, "PACK", [i, const(g, 0, I32)], I32, values_count=2, axis=0)
            row = op(g, "SLICE", [a, start, const(g, [1, 3], I32)], F32, (1, 3))
            begin = op(
                g,
                "SLICE",
                [a, const(g, [0, 0], I32), op(g, "PACK", [i, const(g, 3, I32)], I32, values_count=2, axis=0)],
                F32,
            )
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

    yield Case(
        "WHILE",
        "twice",
        [given(zero), given(x)],
        [result(I32), result(F32), result(F32)],
        runs=[[zero, -x]],
        build=two_loops,
    )

    empty = np.zeros((0, 3), F32)
    yield Case(
        "WHILE",
        "empty state",
        [given(zero), given(empty)],
        [result(I32), result(F32)],
        build=lambda: loop((zero, empty), below(2), lambda g, i, a: [plus(g, i, 1, I32), op(g, "NEG", [a], F32)]),
    )
    runs = [[zero, np.ones(s, F32)] for s in ((3,), (1,), (5,))]
    yield Case(
        "WHILE",
        "resized",
        [given(zero), given(np.ones(2, F32))],
        [result(I32), result(F32)],
        runs=runs,
        build=lambda: loop(
            (zero, np.zeros(1, F32)), below(3), lambda g, i, a: [plus(g, i, 1, I32), op(g, "ADD", [a, a], F32)]
        ),
    )
