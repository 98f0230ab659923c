# SPDX-License-Identifier: Apache-2.0
"""DEPTHWISE_CONV_2D."""

from __future__ import annotations

import contraction as forms
import numpy as np
from harness import RELU, RELU6, RELU_N1_TO_1, SAME, VALID, Case, Data, constant, given, result
from shaped import both, shaped

import leadline

from .conv import _attributes, _half_weights

FORMS = [
    forms.F32, forms.I8, forms.I8_PER_TENSOR, forms.U8, forms.I16, forms.I16_PER_TENSOR, forms.I4, forms.HYBRID,
]  # fmt: skip

# name, input, filter height and width, multiplier, (stride h, w), (dilation h, w), padding
GEOMETRIES = [
    ("plain", (1, 6, 7, 3), (3, 3), 1, (1, 1), (1, 1), SAME),
    ("valid", (1, 6, 7, 3), (3, 3), 1, (1, 1), (1, 1), VALID),
    ("multiplier 2", (1, 5, 6, 3), (3, 3), 2, (1, 1), (1, 1), SAME),
    ("multiplier 3 valid", (2, 5, 6, 5), (2, 3), 3, (1, 1), (1, 1), VALID),
    ("multiplier 8 of one channel", (1, 5, 6, 1), (3, 3), 8, (1, 1), (1, 1), SAME),
    ("multiplier 3 of one channel", (1, 5, 6, 1), (3, 3), 3, (2, 2), (1, 1), SAME),
    ("multiplier 16 of two", (1, 4, 4, 2), (3, 3), 16, (1, 1), (1, 1), SAME),
    ("strided", (1, 9, 8, 8), (3, 3), 1, (2, 2), (1, 1), SAME),
    ("strided valid", (2, 9, 8, 8), (3, 3), 1, (2, 2), (1, 1), VALID),
    ("strided multiplier", (2, 9, 8, 4), (3, 3), 2, (2, 2), (1, 1), SAME),
    ("1x1", (1, 3, 5, 7), (1, 1), 1, (1, 1), (1, 1), SAME),
    ("1x1 multiplier", (1, 3, 5, 7), (1, 1), 3, (1, 1), (1, 1), SAME),
    ("1x1 strided", (1, 5, 5, 4), (1, 1), 1, (2, 2), (1, 1), VALID),
    ("5x5", (1, 9, 9, 16), (5, 5), 1, (1, 1), (1, 1), SAME),
    ("5x5 strided", (1, 9, 10, 9), (5, 5), 1, (2, 2), (1, 1), SAME),
    ("dilated", (1, 10, 9, 4), (3, 3), 1, (1, 1), (2, 2), SAME),
    ("dilated valid", (1, 10, 9, 4), (3, 2), 1, (1, 1), (3, 2), VALID),
    ("dilated multiplier", (2, 10, 9, 3), (3, 2), 2, (1, 1), (1, 3), SAME),
    ("dilated and strided", (1, 12, 11, 3), (3, 3), 1, (2, 2), (2, 2), SAME),
    ("filter of the input's size", (2, 4, 5, 3), (4, 5), 1, (1, 1), (1, 1), VALID),
    ("filter larger than the input", (1, 2, 3, 2), (5, 6), 1, (1, 1), (1, 1), SAME),
    ("one pixel", (1, 1, 1, 5), (3, 3), 1, (1, 1), (1, 1), SAME),
    ("row filter", (1, 1, 16, 3), (1, 5), 1, (1, 1), (1, 1), SAME),
    ("column filter", (1, 16, 1, 3), (5, 1), 1, (1, 1), (1, 1), SAME),
    ("many channels", (1, 5, 5, 67), (3, 3), 1, (1, 1), (1, 1), SAME),
    ("multiplier 4 of eight", (1, 5, 5, 8), (3, 3), 4, (1, 1), (1, 1), SAME),
]

UNEVEN = ("uneven strides", (1, 9, 8, 4), (3, 2), 1, (2, 3), (1, 1), SAME)


def _case(form, geometry, suffix="", *, attributes=None, **options):
    name, x_shape, (height, width), multiplier, stride, dilation, padding = geometry
    channels = x_shape[3] * multiplier
    o = forms.make(form, name + suffix, x_shape, (1, height, width, channels), channel_axis=3, **options)
    bias = [o.bias] if o.bias is not None else []
    attributes = _attributes(stride, dilation, padding, depth_multiplier=multiplier, **(attributes or {}))
    inputs = [o.input, o.weights, *bias]
    name = f"{form.name} {name}{suffix}"
    return Case("DEPTHWISE_CONV_2D", name, inputs, [o.output], attributes=attributes, loose=form.hybrid)


def cases():
    yield from both(_cases())
    yield from _shifted_weights()
    yield from (shaped(case) or case for case in _special())


def _cases():
    for form in FORMS:
        for geometry in (*GEOMETRIES, UNEVEN):
            yield _case(form, geometry)
        for activation in (RELU, RELU_N1_TO_1, RELU6):
            for geometry in (GEOMETRIES[7], GEOMETRIES[2]):
                attributes = {"fused_activation_function": activation}
                yield _case(form, geometry, f" activation {activation}", attributes=attributes)
        yield _case(form, GEOMETRIES[8], " resized", declared=(1, 4, 4, 8))
        yield _case(form, GEOMETRIES[1], " runtime bias", runtime_bias=True)
        if not form.hybrid:
            yield _case(form, ("empty batch", (0, 4, 4, 2), (3, 3), 1, (1, 1), (1, 1), SAME))
        if not isinstance(form.weights, leadline.DType):
            for geometry in (GEOMETRIES[0], GEOMETRIES[2], GEOMETRIES[4], GEOMETRIES[9], GEOMETRIES[16]):
                yield _case(form, geometry, " runtime filter", runtime_weights=True)
    for form in (forms.I8, forms.U8, forms.I16):
        for scale in (0.001, 0.9):
            yield _case(form, GEOMETRIES[0], f" output scale {scale}", output_scale=scale)
    for geometry in GEOMETRIES:
        yield _case(forms.F16, geometry)
    for geometry in (GEOMETRIES[0], GEOMETRIES[3], GEOMETRIES[7]):
        name, x, (height, width), multiplier, stride, dilation, padding = geometry
        attributes = _attributes(stride, dilation, padding, depth_multiplier=multiplier)
        yield _half_weights(name, x, (1, height, width, x[3] * multiplier), op="DEPTHWISE_CONV_2D", **attributes)


def _without_bias(form):
    _, x_shape, window, _, stride, dilation, padding = GEOMETRIES[1]
    o = forms.make(form, "no bias", x_shape, (1, *window, 6), channel_axis=3, bias=False)
    known = {}
    if form.activations is not np.int16:
        known = dict(
            litert="dies",
            because="segmentation fault: the kernel asks an absent bias for its shape",
            reference=forms.conv_reference(o, depthwise=True),
        )
    attributes = _attributes(stride, dilation, padding, depth_multiplier=2)
    inputs = [o.input, o.weights]
    return Case("DEPTHWISE_CONV_2D", f"{form.name} no bias", inputs, [o.output], attributes=attributes, **known)


def _special():
    for form in (forms.F32, forms.I8, forms.U8, forms.I16):
        yield _without_bias(form)
    data = Data("depthwise special")
    plain = _attributes((1, 1), (1, 1), SAME, depth_multiplier=1)
    w, b = constant(data.floats((1, 2, 2, 2))), constant(data.floats(2))
    x = data.floats((1, 5, 4, 2))
    x[0, 1, 1, 0], x[0, 3, 2, 1] = np.nan, np.inf
    yield Case("DEPTHWISE_CONV_2D", "f32 NaN and infinity", [given(x), w, b], [result(np.float32)], attributes=plain)
    more = [[data.floats((1, 5, 4, 2))], [data.floats((2, 3, 7, 2))], [data.floats((1, 1, 1, 2))]]
    inputs = [given(data.floats((1, 5, 4, 2))), w, b]
    name = "f32 other sizes run by run"
    yield Case("DEPTHWISE_CONV_2D", name, inputs, [result(np.float32)], runs=more, attributes=plain)


def _shifted_weights():
    """Signed weights with a zero point: TFLite reads it as 0."""
    for kind, input_scale, output_scale, bias in ((np.int8, 0.05, 0.5, np.int32), (np.int16, 0.001, 0.01, np.int64)):
        name = f"{np.dtype(kind)} filter with a zero point"
        data = Data(name)
        inputs = [
            given(data.ints(kind, (1, 5, 5, 4), -100, 100), input_scale, 0),
            given(data.ints(np.int8, (1, 3, 3, 4)), 0.03, 7),
            constant(np.zeros(4, bias), input_scale * 0.03, 0),
        ]
        attributes = dict(stride_h=1, stride_w=1, padding=SAME, depth_multiplier=1)
        yield Case("DEPTHWISE_CONV_2D", name, inputs, [result(kind, output_scale, 0)], attributes=attributes)
