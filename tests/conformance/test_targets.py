# SPDX-License-Identifier: Apache-2.0
"""Integer results have the same bits on every instruction set this CPU has, down to plain loops, and with 1 to 4 threads.

A child process for each instruction set (LEADLINE_ISA) runs some conformance cases of every op that has an int8, uint8
or int16 form, and tensors large and odd enough that every kernel is cut between threads and has a rest beside its whole
vectors. LEADLINE_LONG=1 runs all conformance cases.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

import contraction as forms
from harness import SAME, VALID, Case, Data, constant, given, result

PER_OP = None if os.environ.get("LEADLINE_LONG") == "1" else 8
TARGETS = ["scalar", "sse4", "avx2", "avx512", "best"]
THREADS = (1, 2, 3, 4)
RANDOM = {"MULTINOMIAL", "RANDOM_STANDARD_NORMAL", "RANDOM_UNIFORM"}
I8, U8, I16 = np.int8, np.uint8, np.int16
FORMS = (forms.I8, forms.I8_PER_TENSOR, forms.U8, forms.I16)
ZERO_POINT = {I8: -7, U8: 119, I16: 0}


def _is_integer(case: Case) -> bool:
    def kind(tensor) -> np.dtype | None:
        try:
            return np.dtype(tensor.dtype)
        except TypeError:  # less than 8 bits
            return None

    if case.build is not None or case.shapes_only or case.op in RANDOM:
        return False
    results = [kind(t) for t in case.outputs]
    operands = [kind(t) for t in case.inputs if t is not None] + results
    return all(k is not None and k.kind in "iu" for k in results) and any(k in (I8, U8, I16) for k in operands)


def _scale(dtype) -> float:
    return 3.0 / np.iinfo(dtype).max


def _levels(dtype, shape, seed="") -> np.ndarray:
    return Data(f"{np.dtype(dtype)} {shape} {seed}").ints(dtype, shape)


def _operand(dtype, shape, seed="", role=given):
    return role(_levels(dtype, shape, seed), _scale(dtype), ZERO_POINT[dtype])


def _result(dtype, factor=1.0):
    return result(dtype, _scale(dtype) * factor, ZERO_POINT[dtype])


def _products():
    """Convolutions and matrices: many rows, few rows and many columns, one row, a rest of every tile."""
    convolutions = [  # input, filter, stride, padding
        ((1, 23, 21, 35), (67, 1, 1, 35), 1, SAME),
        ((1, 7, 7, 75), (203, 1, 1, 75), 1, SAME),
        ((1, 17, 19, 33), (45, 3, 3, 33), 1, SAME),
        ((1, 19, 18, 17), (37, 3, 3, 17), 2, VALID),
        ((1, 40, 37, 3), (29, 7, 7, 3), 2, SAME),
        ((1, 1, 1, 333), (301, 1, 1, 333), 1, SAME),
        ((1, 12, 13, 24), (40, 3, 3, 12), 1, SAME),  # two groups
    ]
    for form in FORMS:
        for x, w, stride, padding in convolutions:
            if w[3] != x[3] and form.activations is not I8:
                continue
            o = forms.make(form, "large", x, w)
            options = dict(stride_h=stride, stride_w=stride, padding=padding, **form.attributes)
            yield Case("CONV_2D", f"{form.name} {x} {w}", [o.input, o.weights, o.bias], [o.output], attributes=options)
        for x, taps, stride in [((1, 7, 7, 203), 3, 1), ((1, 7, 9, 141), 5, 1), ((1, 41, 37, 35), 3, 2),
                                ((1, 29, 33, 70), 5, 2), ((1, 13, 17, 11), 3, 1)]:  # fmt: skip
            o = forms.make(form, "large", x, (1, taps, taps, x[3]), channel_axis=3, terms=taps * taps)
            options = dict(stride_h=stride, stride_w=stride, padding=SAME, depth_multiplier=1, **form.attributes)
            name = f"{form.name} {x} {taps}"
            yield Case("DEPTHWISE_CONV_2D", name, [o.input, o.weights, o.bias], [o.output], attributes=options)
        for x, w in [((1, 777), (501, 777)), ((61, 250), (131, 250)), ((5, 1030), (70, 1030))]:
            o = forms.make(form, "large", x, w)
            inputs = [o.input, o.weights, o.bias]
            yield Case("FULLY_CONNECTED", f"{form.name} {x} {w}", inputs, [o.output], attributes=form.attributes)
    for dtype in (I8, I16):
        scale = _scale(dtype)
        for a, b in [((3, 53, 70), (3, 70, 61)), ((9, 20, 33), (9, 33, 40)), ((1, 1, 500), (1, 500, 300))]:
            lhs, rhs = (given(_levels(dtype, shape), scale, 0) for shape in (a, b))
            yield Case("BATCH_MATMUL", f"{np.dtype(dtype)} {a} {b}", [lhs, rhs], [result(dtype, 60 * scale, 0)])


def _elementwise():
    shape, row = (1, 53, 61, 37), (1, 1, 1, 37)
    for dtype in (I8, U8, I16):
        name = str(np.dtype(dtype))
        for op in ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE"):
            if op == "SQUARED_DIFFERENCE" and dtype is not I8:
                continue
            factor = 1.0 if op in ("MAXIMUM", "MINIMUM") else 2.1
            for other in (shape, row, (1,)):
                inputs = [_operand(dtype, shape, "a"), _operand(dtype, other, "b")]
                yield Case(op, f"{name} {other}", inputs, [_result(dtype, factor)])
        fixed = {I8: (1 / 256, -128), U8: (1 / 256, 0), I16: (1 / 32768, 0)}[dtype]
        signed = {I8: (1 / 128, 0), U8: (1 / 128, 128), I16: (1 / 32768, 0)}[dtype]
        yield Case("LOGISTIC", name, [_operand(dtype, shape)], [result(dtype, *fixed)])
        yield Case("TANH", name, [_operand(dtype, shape)], [result(dtype, *signed)])
        yield Case("LEAKY_RELU", name, [_operand(dtype, shape)], [_result(dtype, 1.3)], alpha=0.2)
        yield Case("RELU6", name, [_operand(dtype, shape)], [_result(dtype, 1.3)])
        yield Case("QUANTIZE", name, [_operand(dtype, shape)], [_result(dtype, 1.7)])
        for rows in ((401, 51), (9, 3001)):
            softmax = [result(dtype, *fixed)]
            yield Case("SOFTMAX", f"{name} {rows}", [_operand(dtype, rows)], softmax, beta=1.0)
        real = given(Data("reals").floats(shape))
        yield Case("QUANTIZE", f"f32 to {name}", [real], [_result(dtype)])
        if dtype is not I16:
            yield Case("HARD_SWISH", name, [_operand(dtype, shape)], [_result(dtype)])
            alpha = _operand(dtype, (1, 1, 37), role=constant)
            yield Case("PRELU", name, [_operand(dtype, shape), alpha], [_result(dtype, 2.0)])
            yield Case("L2_NORMALIZATION", name, [_operand(dtype, (301, 67))], [result(dtype, *signed)])


def _windows_and_movement():
    shape = (1, 53, 61, 37)
    axes = constant(np.array([1, 2], np.int32))
    for dtype in (I8, U8, I16):
        name = str(np.dtype(dtype))
        x, same = _operand(dtype, shape), _result(dtype)
        for op in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
            for size, stride in ((3, 2), (2, 1)):
                options = dict(filter_height=size, filter_width=size, stride_h=stride, stride_w=stride, padding=SAME)
                yield Case(op, f"{name} {size}", [x], [same], attributes=options)
        for op in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN"):
            output = _result(dtype, 1.0 if op != "SUM" else 700.0)
            for kept in (True, False):
                yield Case(op, f"{name} {kept}", [x, axes], [output], attributes={"keep_dims": kept})
            last = constant(np.array([3], np.int32))
            yield Case(op, f"{name} last axis", [x, last], [output], attributes={"keep_dims": True})
        size = constant(np.array([71, 90], np.int32))
        for op in ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"):
            yield Case(op, name, [x, size], [same], attributes={"half_pixel_centers": True})
        pads = constant(np.array([[0, 0], [3, 2], [1, 5], [0, 1]], np.int32))
        yield Case("PAD", name, [x, pads], [same])
        yield Case("TRANSPOSE", name, [x, constant(np.array([0, 3, 2, 1], np.int32))], [same])
        yield Case("CONCATENATION", name, [x, _operand(dtype, shape, "b")], [same], axis=3)
        yield Case("CONCATENATION", f"{name} outermost", [x, _operand(dtype, shape, "b")], [same], axis=1)
        split = [constant(np.int32(1)), _operand(dtype, (1, 60, 61, 37))]
        yield Case("SPLIT", name, split, [same, same, same], num_splits=3)
        box = [constant(np.array(v, np.int32)) for v in ([0, 3, 5, 1], [1, 40, 41, 30])]
        yield Case("SLICE", name, [x, *box], [same])
        for op in ("ARG_MAX", "ARG_MIN"):
            if dtype is not I16:
                yield Case(op, name, [x, constant(np.int32(3))], [result(np.int32)], output_type=2)
    for form in (forms.I8, forms.U8, forms.I16):
        o = forms.make(form, "large", (1, 17, 19, 23), (31, 3, 3, 23), terms=90)
        sizes = constant(np.array([1, 34, 38, 31], np.int32))
        options = dict(stride_h=2, stride_w=2, padding=SAME, **form.attributes)
        inputs = [sizes, o.weights, o.input, o.bias]
        yield Case("TRANSPOSE_CONV", form.name, inputs, [o.output], attributes=options)


def large_cases() -> list[Case]:
    return [*_products(), *_elementwise(), *_windows_and_movement()]


def _run(model: bytes, feeds: list, threads: int) -> str:
    """A digest of all results of all runs, or what was raised."""
    from leadline import lite

    digest = hashlib.sha256()
    try:
        interpreter = lite.Interpreter(model_content=model, num_threads=threads)
        for feed in feeds:
            for details, value in zip(interpreter.get_input_details(), feed, strict=True):
                interpreter.resize_tensor_input(details["index"], np.shape(value))
            interpreter.allocate_tensors()
            for details, value in zip(interpreter.get_input_details(), feed, strict=True):
                interpreter.set_tensor(details["index"], value)
            interpreter.invoke()
            for details in interpreter.get_output_details():
                value = np.asarray(interpreter.get_tensor(details["index"]))
                digest.update(f"{value.shape} {value.dtype}".encode() + value.tobytes())
    except (RuntimeError, ValueError) as error:
        return f"raises {type(error).__name__}: {error}"
    return digest.hexdigest()


def main() -> None:
    """Reads (model, feeds, numbers of threads) from the file argv[1] and writes the digests of each to argv[2]."""
    models = pickle.loads(Path(sys.argv[1]).read_bytes())
    digests = [[_run(model, feeds, threads) for threads in several] for model, feeds, several in models]
    Path(sys.argv[2]).write_bytes(pickle.dumps(digests))


def test_integers_have_the_same_bits_on_every_instruction_set_and_with_any_number_of_threads(tmp_path):
    from test_conformance import CASES

    chosen = []
    for op in sorted(CASES):
        integer = [case for case in CASES[op] if _is_integer(case)]
        step = 1 if PER_OP is None else max(1, len(integer) // PER_OP)
        chosen += [(case, (1 + i % 4,)) for i, case in enumerate(integer[::step])]
    assert len({case.op for case, _ in chosen}) > 80
    chosen += [(case, THREADS) for case in large_cases()]
    (tmp_path / "models").write_bytes(pickle.dumps([(case.model(), case.feeds(), n) for case, n in chosen]))
    digests = {}
    running = {}
    for target in TARGETS:
        environment = {k: v for k, v in os.environ.items() if k != "LEADLINE_ISA"}
        if target != "best":
            environment["LEADLINE_ISA"] = target
        command = [sys.executable, __file__, str(tmp_path / "models"), str(tmp_path / target)]
        running[target] = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        if len(running) < 2 and target != TARGETS[-1]:
            continue
        for name, child in running.items():
            _, errors = child.communicate()
            assert child.returncode == 0, f"{name}: {errors[-2000:]}"
            digests[name] = pickle.loads((tmp_path / name).read_bytes())
        running = {}
    different = []
    for i, (case, several) in enumerate(chosen):
        wanted = digests["scalar"][i][0]
        assert several != THREADS or not wanted.startswith("raises"), f"{case}: {wanted}"
        for target in TARGETS:
            for threads, got in zip(several, digests[target][i], strict=True):
                if got != wanted:
                    different.append(f"{case}: {target}, {threads} threads: {got[:80]} and not {wanted[:80]}")
    assert not different, f"{len(different)} differ from plain loops:\n" + "\n".join(different[:20])


if __name__ == "__main__":
    main()
