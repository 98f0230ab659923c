# SPDX-License-Identifier: Apache-2.0
"""Conformance cases: small models, usually of one node, whose outputs LiteRT and Leadline must agree on.

    yield Case("ADD", "f32 row", [given(a), constant(b)], [result(np.float32)], fused_activation_function=1)

A family of ops has a module in cases/ with a function cases() that yields them. The models are written by
leadline.ModelBuilder, so every file also passed Leadline's writer.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

import leadline

SAME, VALID = 0, 1
NONE, RELU, RELU_N1_TO_1, RELU6, TANH, SIGN_BIT = range(6)

# What LiteRT does to empty outputs that its planner does not place: those found at run time or from constants alone.
EMPTY_DYNAMIC = "get_tensor raises 'Invalid tensor size' for empty tensors outside the arena"


@dataclass
class Tensor:
    """An operand of a case. `value` is what it holds; None for results and state."""

    value: np.ndarray | None
    dtype: object  # numpy type or leadline.DType
    role: str  # "given" (set for every run), "constant", "result", "state"
    scales: Sequence[float] | float = ()
    zero_points: Sequence[int] | int = ()
    axis: int = 0
    declared: Sequence[int] | None = None  # shape in the file when it differs from the value's: it is resized
    sparsity: object = None
    shape: Sequence[int] = ()  # of results and state in the file, and of a sparse constant


def given(value, scales=(), zero_points=(), *, dtype=None, declared=None, axis=0) -> Tensor:
    """An input that is set at run time."""
    value = np.asarray(value)
    return Tensor(value, value.dtype if dtype is None else dtype, "given", scales, zero_points, axis, declared)


def constant(value, scales=(), zero_points=(), *, dtype=None, axis=0, sparsity=None, shape=()) -> Tensor:
    """An operand whose contents are in the file."""
    value = np.asarray(value)
    kind = value.dtype if dtype is None else dtype
    return Tensor(value, kind, "constant", scales, zero_points, axis, None, sparsity, shape)


def result(dtype, scales=(), zero_points=(), *, axis=0, shape=()) -> Tensor:
    """An output; its shape is for the op to find, unless the op reads it from the file."""
    return Tensor(None, dtype, "result", scales, zero_points, axis, shape=shape)


def state(shape, dtype=np.float32, scales=(), zero_points=()) -> Tensor:
    """A variable tensor: kept between runs, zero at first."""
    return Tensor(None, dtype, "state", scales, zero_points, shape=shape)


def both_ways(tensor: Tensor) -> list[Tensor]:
    """The same operand as an input and as a constant."""
    return [tensor, Tensor(**{**vars(tensor), "role": "constant" if tensor.role == "given" else "given"})]


@dataclass
class Case:
    """One node with its operands, or any model that `build` makes.

    LiteRT's answer is the measure. Where LiteRT does not give a right one, `litert` says how ("dies": takes its process
    down, "refuses": raises, "wrong"), `because` says what is seen, and `reference` computes the answer with numpy.
    """

    op: str
    name: str
    inputs: list[Tensor | None] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)
    runs: list[list[np.ndarray]] | None = None  # more runs after the first: the values of the given inputs in order
    intermediates: list[Tensor] = field(default_factory=list)
    custom_options: bytes = b""
    version: int = 0
    build: Callable[[], bytes] | None = None
    loose: bool = False  # hybrid arithmetic: about 1 %
    exact: bool = False  # not even one quantized step apart
    shapes_only: bool = False  # random results
    litert: str = "right"
    because: str = ""
    reference: Callable[..., list[np.ndarray]] | None = None
    attributes: dict = field(default_factory=dict)

    def __init__(self, op, name, inputs=(), outputs=(), **options):
        known = self.__dataclass_fields__
        self.op, self.name, self.inputs, self.outputs = op, name, list(inputs), list(outputs)
        self.runs, self.intermediates = None, []
        self.attributes = dict(options.pop("attributes", {}))
        for key, value in options.items():
            if key in known:
                setattr(self, key, value)
            else:
                self.attributes[key] = value
        if self.litert != "right" and not (self.because and self.reference):
            raise ValueError(f"{self}: what LiteRT does and a reference are both needed")

    def __str__(self) -> str:
        return f"{self.op}: {self.name}"

    def model(self) -> bytes:
        """The .tflite file."""
        if self.build is not None:
            return self.build()
        builder = leadline.ModelBuilder()
        outputs = [_add(builder, f"output{i}", tensor) for i, tensor in enumerate(self.outputs)]
        inputs = [None if t is None else _add(builder, f"input{i}", t) for i, t in enumerate(self.inputs)]
        intermediates = [_add(builder, f"intermediate{i}", tensor) for i, tensor in enumerate(self.intermediates)]
        options = dict(custom_options=self.custom_options, intermediates=intermediates, version=self.version)
        builder.node(self.op, inputs, outputs, **options, **self.attributes)
        builder.output(*outputs)
        return builder.to_tflite()

    def feeds(self) -> list[list[np.ndarray]]:
        """The values of the inputs, run by run."""
        first = [t.value for t in self.inputs if t is not None and t.role == "given"]
        return [first, *(self.runs or [])]


def _add(builder: leadline.ModelBuilder, name: str, t: Tensor) -> int:
    quantization = dict(scales=t.scales, zero_points=t.zero_points, axis=t.axis)
    if t.role == "constant":
        shape = t.shape if t.sparsity is not None else None
        return builder.constant(name, t.value, t.dtype, **quantization, sparsity=t.sparsity, shape=shape)
    if t.role == "given":
        shape = t.value.shape if t.declared is None else t.declared
        return builder.input(name, t.dtype, shape, **quantization)
    return builder.tensor(name, t.dtype, t.shape, variable=t.role == "state", **quantization)


class Data:
    """Random values that depend on nothing but a text, so that a case is the same alone and among others."""

    def __init__(self, seed: str):
        self.rng = np.random.default_rng(zlib.crc32(seed.encode()))

    def floats(self, shape, low=-3.0, high=3.0, dtype=np.float32) -> np.ndarray:
        return self.rng.uniform(low, high, shape).astype(dtype)

    def ints(self, dtype, shape, low=None, high=None) -> np.ndarray:
        """Between low and high, both included; by default all the type has, its extremes among them."""
        info = np.iinfo(dtype)
        values = self.rng.integers(
            info.min if low is None else low, info.max if high is None else high, shape, dtype, endpoint=True
        )
        if values.size > 2 and low is None and high is None:
            values.flat[0], values.flat[-1] = info.min, info.max
        return values

    def bools(self, shape) -> np.ndarray:
        return self.rng.integers(0, 2, shape).astype(bool)

    def any(self, dtype, shape) -> np.ndarray:
        """Values of moderate size of any type."""
        kind = np.dtype(dtype)
        if kind.kind == "b":
            return self.bools(shape)
        if kind.kind == "c":
            return (self.floats(shape) + 1j * self.floats(shape)).astype(kind)
        if kind.kind in "SO":
            words = [b"", b"a", b"lead", b"line", b"\xff\x00z", b"deep water"]
            count = int(np.prod(shape))
            strings = np.empty(count, object)
            strings[:] = [words[i] for i in self.rng.integers(0, len(words), count)]
            return strings.reshape(shape)
        if kind.kind in "iu":
            low = 0 if kind.kind == "u" else -100
            return self.ints(kind, shape, low, 100)
        return self.floats(shape, dtype=kind)

    def special_floats(self, shape, dtype=np.float32) -> np.ndarray:
        """Among ordinary values: NaN, infinities, zeros of both signs, the smallest and the largest."""
        info = np.finfo(dtype)
        values = self.floats(shape, dtype=dtype)
        odd = [np.nan, np.inf, -np.inf, 0.0, -0.0, info.tiny, info.max, info.min, info.smallest_subnormal]
        for i in range(min(len(odd), values.size // 2)):
            values.flat[2 * i] = odd[i]
        return values


def quantize(values, scale: float, zero_point: int, dtype) -> np.ndarray:
    """Rounds half away from zero and saturates, as the format defines quantization."""
    info = np.iinfo(dtype)
    scaled = np.asarray(values, np.float64) / scale
    rounded = np.copysign(np.floor(np.abs(scaled) + 0.5), scaled) + zero_point
    return np.clip(rounded, info.min, info.max).astype(dtype)


def dequantize(values, scale: float, zero_point: int) -> np.ndarray:
    return (np.asarray(values, np.float64) - zero_point) * scale
