# SPDX-License-Identifier: Apache-2.0
"""FULLY_CONNECTED with dense weights."""

from __future__ import annotations

import contraction as forms
import numpy as np
from harness import RELU, RELU6, RELU_N1_TO_1, TANH, Case, Data, constant, given, result
from shaped import both

import leadline

I8_SHIFTED = forms.Form("i8 shifted weights", np.int8, np.int8, np.int32, False, 1, 5, -3)
I8_SHIFTED_FAR = forms.Form("i8 weights shifted far", np.int8, np.int8, np.int32, False, -128, -128, 127)
I16_I4 = forms.Form("i16xi4", np.int16, forms.INT4, np.int64, True)
I16_SYMMETRIC = forms.Form("i16x16", np.int16, np.int16, np.int64)
I2 = forms.Form("i8xi2", np.int8, forms.INT2, np.int32, True, 3, 0, -9)
HYBRID_I2 = forms.Form("hybrid i2 per-channel", np.float32, forms.INT2, np.float32, True)
I4_PER_TENSOR = forms.Form("i8xi4 per-tensor", np.int8, forms.INT4, np.int32, False, 3, 0, -9)

FORMS = [
    forms.F32, forms.I8, forms.I8_PER_TENSOR, forms.U8, forms.I16, forms.I16_PER_TENSOR, forms.I16_BIAS32, forms.I4,
    I4_PER_TENSOR, I8_SHIFTED, I8_SHIFTED_FAR, I16_I4, I2, forms.HYBRID, forms.HYBRID_PER_TENSOR, forms.HYBRID_I4,
    forms.HYBRID_I4_PER_TENSOR, HYBRID_I2, forms.HYBRID_U8, I16_SYMMETRIC,
]  # fmt: skip

# input, weights [units, depth], keep_num_dims
SHAPES = [
    ((1, 8), (4, 8), False),
    ((3, 7), (5, 7), False),
    ((2, 1), (1, 1), False),
    ((1, 1), (6, 1), False),
    ((5, 16), (1, 16), False),
    ((4, 33), (17, 33), False),
    ((2, 128), (40, 128), False),
    ((9,), (4, 9), False),
    ((6,), (4, 3), False),
    ((2, 3, 4), (5, 4), False),
    ((2, 3, 4), (5, 12), False),
    ((2, 3, 4), (5, 4), True),
    ((2, 1, 3, 6), (3, 6), True),
    ((2, 3, 2, 2), (3, 24), False),
    ((1, 2, 2, 3, 4), (2, 4), True),
    ((3, 4), (2, 4), True),
    ((7,), (4, 7), True),
]


def _case(form, shapes, suffix="", *, activation=0, version=0, **options):
    x_shape, w_shape, keep = shapes
    attributes = dict(
        keep_num_dims=keep, fused_activation_function=activation, **form.attributes, **options.pop("attributes", {})
    )
    o = forms.make(form, f"fc {keep} {suffix}", x_shape, w_shape, **options)
    bias = [o.bias] if o.bias is not None else []
    name = f"{form.name} {x_shape} {w_shape}{' keeps rank' if keep else ''}{suffix}"
    inputs = [o.input, o.weights, *bias]
    return Case("FULLY_CONNECTED", name, inputs, [o.output], attributes=attributes, loose=form.hybrid, version=version)


def cases():
    yield from both(_cases())
    yield from _exact_int16()


def _cases():
    for form in FORMS:
        for shapes in SHAPES if form in (forms.F32, forms.I8, forms.U8, forms.I16, forms.HYBRID) else SHAPES[::2]:
            yield _case(form, shapes)
        for shapes in (SHAPES[1], SHAPES[6], SHAPES[11]):
            yield _case(form, shapes, " no bias", bias=False)
        for activation in (RELU, RELU_N1_TO_1, RELU6):
            yield _case(form, SHAPES[5], f" activation {activation}", activation=activation)
        yield _case(form, SHAPES[5], " resized", declared=(1, 33))
        yield _case(form, SHAPES[5], " runtime bias", runtime_bias=True)
        if not isinstance(form.weights, leadline.DType):
            for shapes in (SHAPES[0], SHAPES[5], SHAPES[11]):
                yield _case(form, shapes, " runtime weights", runtime_weights=True)
        if form.hybrid:
            yield _case(form, SHAPES[5], " tanh", activation=TANH)
            for shapes in SHAPES[:8]:
                attributes = {"asymmetric_quantize_inputs": True}
                yield _case(form, shapes, " asymmetric", attributes=attributes)
        else:
            yield _case(form, ((0, 8), (3, 8), False), " empty batch")
    for form in (forms.I8, forms.U8, forms.I16, I8_SHIFTED):
        for scale in (0.001, 0.9):
            yield _case(form, SHAPES[1], f" output scale {scale}", output_scale=scale)
    for shapes in SHAPES:
        yield _case(forms.F16, shapes)
        yield _case(forms.F16, shapes, " no bias", activation=RELU, bias=False)
    yield from _half()
    yield from _absent_bias()
    yield from _int16_results()
    yield from _shuffled()
    yield from _blockwise()


def _half():
    """float16 weights through DEQUANTIZE."""
    for x_shape, w_shape, keep in (SHAPES[1], SHAPES[6], SHAPES[11]):
        data = Data(f"fc f16 {x_shape}")
        w, b = data.floats(w_shape, -1, 1, np.float16), data.floats(w_shape[0], dtype=np.float16)

        def build(x_shape=x_shape, w=w, b=b, keep=keep):
            builder = leadline.ModelBuilder()
            source = builder.input("x", np.float32, x_shape)
            real = []
            for label, half in (("w", w), ("b", b)):
                real.append(builder.tensor(label, np.float32, half.shape))
                builder.node("DEQUANTIZE", [builder.constant(label + "_half", half)], [real[-1]])
            output = builder.tensor("y", np.float32)
            builder.node("FULLY_CONNECTED", [source, *real], [output], keep_num_dims=keep)
            builder.output(output)
            return builder.to_tflite()

        inputs = [given(data.floats(x_shape))]
        yield Case("FULLY_CONNECTED", f"f16 weights {x_shape}", inputs, [result(np.float32)], build=build)


def _absent_bias():
    for form in (forms.F32, forms.I8, forms.HYBRID):
        o = forms.make(form, "absent bias", (3, 6), (4, 6), bias=False)
        inputs = [o.input, o.weights, None]
        yield Case("FULLY_CONNECTED", f"{form.name} absent bias", inputs, [o.output], loose=form.hybrid)


def _shuffled():
    """Weights in blocks of 4x16, less 128, for a kernel that also gives its rearranged input."""
    for rows, units, depth in ((1, 4, 16), (1, 12, 48), (4, 8, 32), (4, 4, 64)):
        for activation in (0, RELU):
            data = Data(f"fc shuffled {rows} {units} {depth} {activation}")
            levels = data.ints(np.uint8, (units, depth))
            blocks = levels.reshape(units // 4, 4, depth // 16, 16).transpose(0, 2, 1, 3) ^ 128
            inputs = [
                given(data.ints(np.uint8, (rows, depth)), 1 / 128, 128),
                constant(blocks.reshape(units, depth), 1 / 128, 128),
                constant(data.ints(np.int32, units, -9000, 9000), 2.0**-14, 0),
            ]
            workspace = result(np.uint8, 1 / 128, 128)
            workspace.shape = (rows, depth)
            name = f"u8 shuffled {rows} {units} {depth} activation {activation}"
            outputs = [result(np.int16, 2.0**-11, 0), workspace]
            yield Case("FULLY_CONNECTED", name, inputs, outputs, weights_format=1, fused_activation_function=activation)


def _blockwise():
    """int4 weights with a float16 scale per block of a row."""
    sizes = ((1, 4, 32, 32), (3, 8, 64, 32), (2, 5, 96, 32), (4, 16, 128, 64), (2, 8, 256, 128))
    for rows, units, depth, block in sizes:
        for with_bias in (False, True):
            data = Data(f"fc blocks {rows} {units} {depth} {block} {with_bias}")
            levels = data.ints(np.int8, (units, depth), -7, 7)
            scales = data.floats((units, depth // block), 0.02, 0.2, np.float16)
            bias = data.floats(units)

            def build(rows=rows, levels=levels, scales=scales, bias=bias, block=block, with_bias=with_bias):
                builder = leadline.ModelBuilder()
                source = builder.input("x", np.float32, (rows, levels.shape[1]))
                weights = builder.constant("w", levels, forms.INT4)
                builder.blockwise(weights, builder.constant("scales", scales), block)
                biases = [builder.constant("b", bias)] if with_bias else []
                output = builder.tensor("y", np.float32, (rows, levels.shape[0]))
                builder.node("FULLY_CONNECTED", [source, weights, *biases], [output], version=12)
                builder.output(output)
                return builder.to_tflite()

            name = f"blocks {rows} {units} {depth} by {block}{' bias' * with_bias}"
            inputs = [given(data.floats((rows, depth)))]
            yield Case("FULLY_CONNECTED", name, inputs, [result(np.float32)], build=build, loose=True)


def _int16_results():
    """uint8 times uint8 to int16."""
    data = Data("fc u8 to i16")
    for x_shape, w_shape in (((1, 8), (4, 8)), ((3, 17), (5, 17))):
        for activation in (0, RELU):
            x = given(data.ints(np.uint8, x_shape), 0.02, 120)
            w = constant(data.ints(np.uint8, w_shape), 0.01, 130)
            b = constant(data.ints(np.int32, w_shape[0], -2000, 2000), 0.0002, 0)
            attributes = dict(fused_activation_function=activation)
            yield Case(
                "FULLY_CONNECTED", f"u8 to i16 {x_shape} {activation}", [x, w, b], [result(np.int16, 0.0005, 0)],
                attributes=attributes,
            )  # fmt: skip


def _exact_int16():
    """With a 64-bit bias TFLite rounds in float64, which is told from its short factors by single steps."""
    for channels in (1, 33):
        data = Data(f"exact {channels}")
        scales = data.floats((33,), 0.003, 0.008) if channels > 1 else np.float32(0.005)
        inputs = [
            given(data.ints(np.int16, (6, 64)), 6.1e-5, 0),
            constant(data.ints(np.int8, (33, 64), -127, 127), scales, np.zeros(np.size(scales))),
            constant(data.ints(np.int64, (33,), -90000, 90000), scales * np.float32(6.1e-5), np.zeros(np.size(scales))),
        ]
        outputs = [result(np.int16, 3.4e-4, 0)]
        attributes = dict(quantized_bias_type=4)
        yield Case("FULLY_CONNECTED", f"i16 exact {channels}", inputs, outputs, attributes=attributes, exact=True)
