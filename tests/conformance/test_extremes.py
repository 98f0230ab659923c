# SPDX-License-Identifier: Apache-2.0
"""Quantization parameters at the ends of what a file can say, for the quantized cases of every op.

Scales from 1e-38 to 3e38, zero points at both ends of their type, outputs that all saturate or all vanish. A result is
what the float op says about the same numbers, to a step, or an error. LEADLINE_LONG=1 runs all cases.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from harness import Case, Tensor, dequantize, quantize

import leadline
from leadline import lite

ONE_IN = 1 if os.environ.get("LEADLINE_LONG") == "1" else 12
SHOWN_FAILURES = 20


@dataclass(frozen=True)
class Variant:
    """Factors on the scales of a case (biases follow inputs and weights), or one scale for all; new zero points."""

    name: str
    given: float = 1.0
    constant: float = 1.0
    result: float = 1.0
    end: str = ""  # "low" or "high": zero points at this end of their type
    compared: bool = True  # False: floats cannot express the numbers


VARIANTS = (
    Variant("small scales", given=1e-25, result=1e-25),
    Variant("large scales", given=1e25, result=1e25),
    Variant("multiplier of thousands", result=1e-4),
    Variant("multiplier of millionths", result=1e6),
    Variant("everything saturates", given=1e15, result=1e-15),
    Variant("everything vanishes", given=1e-15, result=1e15),
    Variant("small weights", constant=1e-20),
    Variant("large weights", constant=1e20),
    Variant("smallest scales", given=1e-36, constant=1e-36, result=1e-36, compared=False),
    Variant("largest scales", given=1e38, constant=1e38, result=1e38, compared=False),
    Variant("zero points at the low end", end="low"),
    Variant("zero points at the high end", end="high"),
    Variant("low end, multiplier of thousands", result=1e-4, end="low"),
    Variant("high end, multiplier of millionths", result=1e6, end="high"),
)


def is_quantized(t: Tensor | None) -> bool:
    return t is not None and np.size(t.scales) > 0 and not isinstance(t.dtype, leadline.DType)


# Input 1 holds weights, and the scales of a bias are the products of the others'.
WEIGHTED = {"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV"}
# The format requires equal parameters of input and output; integers are moved, averaged or compared as they are.
UNSCALED = {
    "AVERAGE_POOL_2D", "BATCH_TO_SPACE_ND", "BROADCAST_TO", "DEPTH_TO_SPACE", "DYNAMIC_UPDATE_SLICE", "EMBEDDING_LOOKUP",
    "EXPAND_DIMS", "GATHER", "GATHER_ND", "MAXIMUM", "MAX_POOL_2D", "MINIMUM", "MIRROR_PAD", "ONE_HOT", "PACK", "PAD", "RESHAPE", "RESIZE_BILINEAR",
    "RESIZE_NEAREST_NEIGHBOR", "REVERSE_V2", "SELECT", "SELECT_V2", "SLICE", "SPACE_TO_BATCH_ND", "SPACE_TO_DEPTH",
    "SPLIT", "SPLIT_V", "SQUEEZE", "STRIDED_SLICE", "TILE", "TOPK_V2", "TRANSPOSE", "UNIQUE", "UNPACK", "WHERE",
}  # fmt: skip
# Fixed-point cells and tables with steps of their own, and NEG, which TFLite defines on the stored integers: held to
# LiteRT in test_conformance.
OWN_STEPS = {"LSTM", "NEG", "REDUCE_PROD", "SVDF", "UNIDIRECTIONAL_SEQUENCE_LSTM"}
COARSE_IN_16_BITS = {
    "ELU",
    "EXP",
    "GELU",
    "HARD_SWISH",
    "LOG",
    "LOGISTIC",
    "RESIZE_BILINEAR",
    "RSQRT",
    "SOFTMAX",
    "TANH",
}


def is_activation(t: Tensor) -> bool:
    return t.role != "constant" and np.dtype(t.dtype) in (np.int8, np.uint8)


def alter(tensor: Tensor, factor: float, end: str) -> Tensor:
    """The tensor with scales multiplied by `factor` and zero points at one end of their type."""
    if not is_quantized(tensor):
        return tensor
    limits = np.finfo(np.float32)
    scales = np.clip(np.atleast_1d(tensor.scales).astype(np.float64) * factor, limits.tiny, limits.max)
    zero_points = tensor.zero_points
    if end and is_activation(tensor):
        info = np.iinfo(tensor.dtype)
        zero_points = [int(info.min if end == "low" else info.max)] * max(1, np.size(tensor.zero_points))
    return replace(tensor, scales=scales.tolist(), zero_points=zero_points)


def altered(case: Case, variant: Variant) -> Case:
    inputs = []
    for i, tensor in enumerate(case.inputs):
        weights = case.op in WEIGHTED and i == 1
        factor = variant.constant if weights or tensor is None or tensor.role == "constant" else variant.given
        if case.op in WEIGHTED and tensor is not None and np.dtype(tensor.dtype).itemsize >= 4:
            factor = variant.given * variant.constant
        inputs.append(None if tensor is None else alter(tensor, factor, "" if weights else variant.end))
    return with_tensors(case, inputs, [alter(t, variant.result, variant.end) for t in case.outputs])


def comparable(case: Case) -> bool:
    quantized = [t for t in case.inputs if is_quantized(t)]
    if case.op in OWN_STEPS or not quantized:
        return False
    if case.op == "MUL" and np.dtype(quantized[0].dtype) != np.dtype(case.outputs[0].dtype):
        return False  # 15 fractional bits to 7, whatever the scales say
    of_16_bits = np.dtype(quantized[0].dtype) == np.int16
    if case.op in COARSE_IN_16_BITS and of_16_bits:
        return False
    if case.op in WEIGHTED and np.any(np.atleast_1d(case.inputs[1].zero_points)) and case.inputs[1].dtype != np.uint8:
        return False  # the format requires 0; TFLite's convolutions do not look
    if case.op in UNSCALED or (case.op == "CONCATENATION" and of_16_bits):
        parameters = {(*np.atleast_1d(t.scales), *np.atleast_1d(t.zero_points)) for t in [*quantized, *case.outputs]}
        return len(parameters) == 1
    return True


def in_floats(t: Tensor | None) -> Tensor | None:
    """The tensor as float32: the numbers it stands for."""
    if not is_quantized(t):
        return t
    value = t.value
    if value is not None:
        scales, zeros = np.atleast_1d(t.scales), np.atleast_1d(t.zero_points)
        if np.size(scales) > 1:
            along = [1] * np.ndim(value)
            along[t.axis] = -1
            scales, zeros = np.reshape(scales, along), np.reshape(zeros, along) if zeros.size > 1 else zeros
        with np.errstate(over="ignore"):
            value = dequantize(value, scales, zeros).astype(np.float32)
    return replace(t, value=value, dtype=np.float32, scales=(), zero_points=())


def run(case: Case) -> list[np.ndarray]:
    interpreter = lite.Interpreter(model_content=case.model(), num_threads=2, budget="256MB")
    feed = case.feeds()[0]
    for details, value in zip(interpreter.get_input_details(), feed, strict=True):
        interpreter.resize_tensor_input(details["index"], np.shape(value))
    interpreter.allocate_tensors()
    for details, value in zip(interpreter.get_input_details(), feed, strict=True):
        interpreter.set_tensor(details["index"], value)
    interpreter.invoke()
    return [interpreter.get_tensor(details["index"]) for details in interpreter.get_output_details()]


def with_tensors(case: Case, inputs: list[Tensor | None], outputs: list[Tensor]) -> Case:
    copy = Case.__new__(Case)
    copy.__dict__.update(case.__dict__, inputs=inputs, outputs=outputs)
    return copy


def judge(case: Case, variant: Variant) -> str:
    """Empty when the result is what the float op says, or an error."""
    extreme = altered(case, variant)
    try:
        got = run(extreme)
    except leadline.Error:
        return ""
    if not variant.compared or not comparable(extreme):
        return ""
    try:
        want = run(with_tensors(extreme, list(map(in_floats, extreme.inputs)), list(map(in_floats, extreme.outputs))))
    except leadline.Error:
        return ""  # an op of integers only
    for i, (ours, real, tensor) in enumerate(zip(got, want, extreme.outputs, strict=True)):
        if not is_quantized(tensor) or np.size(tensor.scales) != 1 or not np.size(real):
            continue
        scale, zero = float(np.ravel(tensor.scales)[0]), int(np.ravel(tensor.zero_points)[0])
        ours, real = np.atleast_1d(ours), np.atleast_1d(real)
        if not np.isfinite(real).all():  # too large for the float op
            continue
        real = real.astype(np.float64)
        unsure = 1e-6 * np.abs(real).max()  # floats round sums that nearly cancel
        with np.errstate(all="ignore"):
            low, expected, high = (
                quantize(real + error, scale, zero, ours.dtype).astype(np.int64) for error in (-unsure, 0, unsure)
            )
        apart = np.maximum(low - ours, ours - high)
        if apart.max() > steps_allowed(ours.dtype):
            at = np.unravel_index(int(apart.argmax()), apart.shape)
            return f"output {i} at {tuple(map(int, at))} is {ours[at]}, the float op gives {real[at]}: {expected[at]}"
    return ""


def steps_allowed(dtype) -> int:
    return 1 if np.dtype(dtype).itemsize == 1 else 16


def chosen_cases():
    from test_conformance import CASES

    for op in sorted(CASES):
        quantized = [
            c for c in CASES[op]
            if c.build is None and not c.shapes_only and any(map(is_quantized, [*c.inputs, *c.outputs]))
            and not any(t is not None and isinstance(t.dtype, leadline.DType) for t in [*c.inputs, *c.outputs])
        ]  # fmt: skip
        yield from quantized[::ONE_IN]


def main() -> None:
    count = 0
    for case in chosen_cases():
        for variant in VARIANTS:
            print("at", case, "with", variant.name, flush=True)
            why = judge(case, variant)
            count += 1
            if why:
                print("FAILED", case, "with", variant.name, ":", why, flush=True)
    print("all", count, flush=True)


def test_extreme_quantization_gives_what_floats_give_or_an_error():
    child = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=False)
    lines = child.stdout.splitlines()
    assert lines[-1:] and lines[-1].startswith("all"), (
        f"ended with {child.returncode} in {lines[-1:]}: {child.stderr[-2000:]}"
    )
    failures = [line for line in lines if line.startswith("FAILED")]
    assert not failures, "\n".join([f"{len(failures)} failed", *failures[:SHOWN_FAILURES]])


if __name__ == "__main__":
    main()
