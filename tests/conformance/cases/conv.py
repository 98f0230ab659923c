# SPDX-License-Identifier: Apache-2.0
"""CONV_2D."""

from __future__ import annotations

import contraction as forms
import numpy as np
from harness import NONE, RELU, RELU6, RELU_N1_TO_1, SAME, VALID, Case, Data, constant, given, result
from shaped import both, shaped

import leadline

FORMS = [
    forms.F32, forms.I8, forms.I8_PER_TENSOR, forms.U8, forms.I16, forms.I16_PER_TENSOR, forms.I16_BIAS32, forms.I4,
    forms.HYBRID, forms.HYBRID_PER_TENSOR, forms.HYBRID_U8, forms.HYBRID_I4, forms.HYBRID_I4_PER_TENSOR,
]  # fmt: skip

# name, input, filter, (stride h, w), (dilation h, w), padding
GEOMETRIES = [
    ("plain", (1, 6, 7, 3), (4, 3, 3, 3), (1, 1), (1, 1), SAME),
    ("valid", (1, 6, 7, 3), (4, 3, 3, 3), (1, 1), (1, 1), VALID),
    ("1x1", (1, 5, 4, 8), (16, 1, 1, 8), (1, 1), (1, 1), SAME),
    ("1x1 batch", (3, 2, 3, 5), (7, 1, 1, 5), (1, 1), (1, 1), VALID),
    ("1x1 strided", (2, 5, 5, 4), (3, 1, 1, 4), (2, 2), (1, 1), SAME),
    ("strided", (2, 9, 8, 4), (5, 3, 2, 4), (2, 3), (1, 1), SAME),
    ("strided valid", (2, 9, 8, 4), (5, 3, 2, 4), (3, 2), (1, 1), VALID),
    ("stride beyond the filter", (1, 11, 10, 2), (3, 2, 2, 2), (4, 3), (1, 1), VALID),
    ("dilated", (1, 9, 10, 2), (3, 3, 2, 2), (1, 1), (2, 3), SAME),
    ("dilated valid", (2, 9, 10, 2), (3, 3, 2, 2), (1, 1), (3, 2), VALID),
    ("dilated and strided", (1, 12, 11, 3), (2, 3, 3, 3), (2, 2), (2, 2), SAME),
    ("filter of the input's size", (2, 4, 5, 3), (6, 4, 5, 3), (1, 1), (1, 1), VALID),
    ("filter larger than the input", (1, 2, 3, 2), (3, 5, 6, 2), (1, 1), (1, 1), SAME),
    ("one pixel", (1, 1, 1, 3), (2, 3, 3, 3), (1, 1), (1, 1), SAME),
    ("one channel", (1, 7, 6, 1), (9, 3, 3, 1), (1, 1), (1, 1), SAME),
    ("one filter", (1, 7, 6, 5), (1, 3, 3, 5), (2, 2), (1, 1), SAME),
    ("even filter", (1, 7, 6, 2), (3, 4, 2, 2), (1, 1), (1, 1), SAME),
    ("row filter", (1, 1, 16, 3), (5, 1, 5, 3), (1, 2), (1, 1), SAME),
    ("column filter", (1, 16, 1, 3), (5, 5, 1, 3), (2, 1), (1, 1), SAME),
    ("many channels", (1, 4, 4, 37), (33, 3, 3, 37), (1, 1), (1, 1), SAME),
]  # fmt: skip

GROUPED = [
    ("2 groups", (1, 5, 6, 4), (6, 3, 3, 2), (1, 1), (1, 1), SAME),
    ("3 groups", (2, 5, 5, 6), (9, 3, 2, 2), (2, 2), (1, 1), VALID),
    ("4 groups 1x1", (1, 4, 3, 8), (4, 1, 1, 2), (1, 1), (1, 1), SAME),
    ("depthwise by groups", (1, 6, 5, 3), (6, 3, 3, 1), (1, 1), (1, 1), SAME),
    ("2 groups dilated", (1, 9, 9, 4), (4, 3, 3, 2), (1, 1), (2, 2), VALID),
]


def _attributes(stride, dilation, padding, **more):
    return dict(
        stride_h=stride[0], stride_w=stride[1], dilation_h_factor=dilation[0], dilation_w_factor=dilation[1],
        padding=padding, **more,
    )  # fmt: skip


def _case(form, geometry, suffix="", *, attributes=None, **options):
    name, x_shape, w_shape, stride, dilation, padding = geometry
    case_options = {key: options.pop(key) for key in ("loose", "litert", "because", "reference") if key in options}
    o = forms.make(form, name + suffix, x_shape, w_shape, **options)
    bias = [o.bias] if o.bias is not None else []
    case_options.setdefault("loose", form.hybrid)
    attributes = _attributes(stride, dilation, padding, **(form.attributes | (attributes or {})))
    return Case(
        "CONV_2D", f"{form.name} {name}{suffix}", [o.input, o.weights, *bias], [o.output], attributes=attributes,
        **case_options,
    )  # fmt: skip


def _half_weights(name, x_shape, w_shape, op="CONV_2D", **attributes):
    """float16 filter and bias through DEQUANTIZE, as the converter stores them."""
    data = Data(f"f16 {op} {name}")
    x = data.floats(x_shape)
    w = data.floats(w_shape, -1, 1, np.float16)
    b = data.floats(w_shape[0] if op == "CONV_2D" else w_shape[3], dtype=np.float16)

    def build():
        builder = leadline.ModelBuilder()
        source = builder.input("x", np.float32, x_shape)
        real = []
        for label, half in (("w", w), ("b", b)):
            real.append(builder.tensor(label, np.float32, half.shape))
            builder.node("DEQUANTIZE", [builder.constant(label + "_half", half)], [real[-1]])
        output = builder.tensor("y", np.float32)
        builder.node(op, [source, *real], [output], **attributes)
        builder.output(output)
        return builder.to_tflite()

    return Case(op, f"f16 weights {name}", [given(x)], [result(np.float32)], build=build)


def cases():
    yield from both(_cases())
    # Without shapes, infinity is the largest number.
    yield from (shaped(case) or case for case in _special())


def _cases():
    for form in FORMS:
        for geometry in GEOMETRIES:
            yield _case(form, geometry)
        for geometry in GROUPED:
            if not form.hybrid or form.per_channel:
                yield _case(form, geometry)
        for activation in (RELU, RELU_N1_TO_1, RELU6):
            attributes = {"fused_activation_function": activation}
            yield _case(form, GEOMETRIES[5], f" activation {activation}", attributes=attributes)
        # The file says one image of another size; the caller resizes.
        yield _case(form, GEOMETRIES[5], " resized", declared=(1, 4, 4, 4))
        yield _case(form, GEOMETRIES[1], " runtime bias", runtime_bias=True)
        yield _case(form, ("empty batch", (0, 4, 4, 2), (3, 3, 3, 2), (1, 1), (1, 1), SAME))
        if not isinstance(form.weights, leadline.DType):
            for geometry in (GEOMETRIES[0], GEOMETRIES[2], GEOMETRIES[5], GEOMETRIES[9]):
                yield _case(form, geometry, " runtime filter", runtime_weights=True)
    for form in (forms.I8, forms.U8, forms.I16):
        for scale in (0.001, 0.9):
            yield _case(form, GEOMETRIES[0], f" output scale {scale}", output_scale=scale)
    for geometry in (*GEOMETRIES, *GROUPED):
        yield _case(forms.F16, geometry)
    yield _case(forms.F16, GEOMETRIES[5], " resized", declared=(1, 4, 4, 4))
    attributes = {"quantized_bias_type": leadline.DType.INT64.value}
    yield _case(forms.I16, GEOMETRIES[0], " quantized_bias_type", attributes=attributes)
    for name, x, w, stride, dilation, padding in (GEOMETRIES[0], GEOMETRIES[2], GEOMETRIES[6], GEOMETRIES[8]):
        yield _half_weights(name, x, w, **_attributes(stride, dilation, padding))


def _without_bias(form):
    _, x_shape, w_shape, stride, dilation, padding = GEOMETRIES[1]
    o = forms.make(form, "no bias", x_shape, w_shape, bias=False)
    return Case(
        "CONV_2D", f"{form.name} no bias", [o.input, o.weights], [o.output],
        attributes=_attributes(stride, dilation, padding, **form.attributes),
        litert="refuses", because="conv.cc: has_bias was not true", reference=forms.conv_reference(o, depthwise=False),
    )  # fmt: skip


def _special():
    for form in (forms.F32, forms.I8, forms.U8, forms.I16, forms.I16_BIAS32):
        yield _without_bias(form)
    data = Data("conv special")
    plain = _attributes((1, 1), (1, 1), SAME)
    w = constant(data.floats((3, 2, 2, 2)))
    b = constant(data.floats(3))
    x = data.floats((1, 5, 4, 2))
    x[0, 1, 1, 0], x[0, 3, 2, 1] = np.nan, np.inf
    yield Case("CONV_2D", "f32 NaN and infinity", [given(x), w, b], [result(np.float32)], attributes=plain)
    for activation in (NONE, RELU6):
        more = [[data.floats((1, 5, 4, 2))], [data.floats((2, 3, 7, 2))], [data.floats((1, 1, 1, 2))]]
        attributes = plain | {"fused_activation_function": activation}
        inputs = [given(data.floats((1, 5, 4, 2))), w, b]
        name = f"f32 other sizes run by run {activation}"
        yield Case("CONV_2D", name, inputs, [result(np.float32)], runs=more, attributes=attributes)
