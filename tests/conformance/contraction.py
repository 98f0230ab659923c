# SPDX-License-Identifier: Apache-2.0
"""Operands of the ops that multiply activations with weights, in every number format they have."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from harness import Data, Tensor, constant, dequantize, given, quantize, result

import leadline


@dataclass(frozen=True)
class Form:
    """A number format. `weights` is a numpy type or a leadline.DType of fewer bits."""

    name: str
    activations: type = np.float32
    weights: object = np.float32
    bias: type = np.float32
    per_channel: bool = False
    zero_point: int = 0  # of the input
    weight_zero_point: int = 0
    output_zero_point: int = 0

    @property
    def hybrid(self) -> bool:
        return self.activations is np.float32 and self.weights not in (np.float16, np.float32)

    @property
    def attributes(self) -> dict:
        """What LiteRT needs to be told to read the bias of an int16 op as what it is."""
        if self.activations is not np.int16:
            return {}
        usual = np.int32 if self.weights is np.int16 else np.int64
        types = {np.int32: leadline.DType.INT32, np.int64: leadline.DType.INT64}
        return {} if self.bias is usual else {"quantized_bias_type": types[self.bias].value}

    @property
    def quantized(self) -> bool:
        return self.activations not in (np.float16, np.float32)


INT4, INT2 = leadline.DType.INT4, leadline.DType.INT2

F32 = Form("f32")
F16 = Form("f16", np.float16, np.float16, np.float16)
I8 = Form("i8 per-channel", np.int8, np.int8, np.int32, True, -5, 0, 7)
I8_PER_TENSOR = Form("i8 per-tensor", np.int8, np.int8, np.int32, False, 127, 0, -128)
U8 = Form("u8", np.uint8, np.uint8, np.int32, False, 127, 119, 3)
I16 = Form("i16x8", np.int16, np.int8, np.int64, True)
I16_PER_TENSOR = Form("i16x8 per-tensor", np.int16, np.int8, np.int64)
I16_BIAS32 = Form("i16x8 bias32", np.int16, np.int8, np.int32, True)
I4 = Form("i8xi4", np.int8, INT4, np.int32, True, 3, 0, -9)
HYBRID = Form("hybrid i8 per-channel", np.float32, np.int8, np.float32, True)
HYBRID_PER_TENSOR = Form("hybrid i8 per-tensor", np.float32, np.int8)
HYBRID_U8 = Form("hybrid u8", np.float32, np.uint8)  # of old files: the bytes are int8
HYBRID_I4 = Form("hybrid i4 per-channel", np.float32, INT4, np.float32, True)
HYBRID_I4_PER_TENSOR = Form("hybrid i4 per-tensor", np.float32, INT4)


@dataclass
class Operands:
    """`bias` is None when the node has none."""

    input: Tensor
    weights: Tensor
    bias: Tensor | None
    output: Tensor


def weight_range(kind) -> tuple[int, int]:
    if kind is INT4:
        return -7, 7
    if kind is INT2:
        return -1, 1
    info = np.iinfo(kind)
    return (0, 255) if info.min == 0 else (-info.max, info.max)


def make(
    form: Form, seed: str, input_shape, weight_shape, *, channel_axis=0, channels=None, terms=None, bias=True,
    runtime_weights=False, runtime_bias=False, declared=None, output_scale=None,
) -> Operands:  # fmt: skip
    """Random operands. `terms`: how many products one output sums, for a scale that uses the output's range."""
    data = Data(f"{form.name} {seed} {input_shape} {weight_shape}")
    count = weight_shape[channel_axis] if channels is None else channels
    weight_role = given if runtime_weights else constant
    bias_role = given if runtime_bias else constant
    if not form.quantized and not form.hybrid:
        return Operands(
            given(data.floats(input_shape, dtype=form.activations), declared=declared),
            weight_role(data.floats(weight_shape, -1, 1, form.weights)),
            bias_role(data.floats(count, dtype=form.bias)) if bias else None,
            result(form.activations),
        )
    low, high = weight_range(form.weights)
    packed = isinstance(form.weights, leadline.DType)
    if form.hybrid and form.weights is np.uint8:
        levels = data.ints(np.int8, weight_shape, -127, 127).view(np.uint8)
    else:
        levels = data.ints(np.int8 if packed else form.weights, weight_shape, low, high)
    scales = data.rng.uniform(0.5, 1.5, count if form.per_channel else 1) / high
    zeros = np.full(scales.shape, form.weight_zero_point, np.int64)
    weights = weight_role(levels, scales, zeros, dtype=form.weights if packed else None, axis=channel_axis)
    if form.hybrid:
        return Operands(
            given(data.floats(input_shape), declared=declared),
            weights,
            bias_role(data.floats(count)) if bias else None,
            result(np.float32),
        )
    info = np.iinfo(form.activations)
    input_scale = 3.0 / info.max
    x = given(data.ints(form.activations, input_shape), input_scale, form.zero_point, declared=declared)
    terms = int(np.prod(weight_shape)) // max(count, 1) if terms is None else terms
    if output_scale is None:
        output_scale = 2.5 * np.sqrt(max(terms, 1)) / info.max
    bias_levels = data.rng.uniform(-1, 1, count) / (input_scale * scales)
    b = bias_role(bias_levels.astype(form.bias), input_scale * scales, np.zeros_like(zeros)) if bias else None
    return Operands(x, weights, b, result(form.activations, output_scale, form.output_zero_point))


def conv_reference(o: Operands, *, depthwise: bool):
    """What a VALID convolution of stride 1 without bias or activation computes, in real numbers."""

    def real(tensor: Tensor, value) -> np.ndarray:
        if np.size(tensor.scales) == 0:
            return value.astype(np.float64)
        return dequantize(value, np.asarray(tensor.scales), np.asarray(tensor.zero_points))

    def compute(x):
        weights = o.weights.value
        if depthwise:
            w = real(o.weights, weights)[0]
        else:
            w = np.moveaxis(real(o.weights, np.moveaxis(weights, 0, -1)), -1, 0)
        windows = np.lib.stride_tricks.sliding_window_view(real(o.input, x), weights.shape[1:3], axis=(1, 2))
        if depthwise:
            w = w.reshape(*w.shape[:2], x.shape[3], -1)
            y = np.einsum("nyxcij,ijcm->nyxcm", windows, w).reshape(*windows.shape[:3], -1)
        else:
            y = np.einsum("nyxcij,oijc->nyxo", windows, w)
        if np.size(o.output.scales) == 0:
            return [y.astype(np.float32)]
        return [quantize(y, o.output.scales, o.output.zero_points, o.output.dtype)]

    return compute
