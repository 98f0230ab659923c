# SPDX-License-Identifier: Apache-2.0
"""TRANSPOSE_CONV."""

from __future__ import annotations

import contraction as forms
import numpy as np
from harness import RELU, RELU6, RELU_N1_TO_1, SAME, VALID, Case, Data, both_ways, constant, given, result
from shaped import both

FORMS = [
    forms.F32, forms.I8, forms.I8_PER_TENSOR, forms.U8, forms.I16, forms.I16_PER_TENSOR, forms.I16_BIAS32,
    forms.HYBRID,
]  # fmt: skip

# name, output, filter, (stride h, w), padding
GEOMETRIES = [
    ("plain", (1, 5, 6, 4), (4, 3, 3, 2), (1, 1), SAME),
    ("valid", (1, 7, 6, 4), (4, 3, 3, 2), (1, 1), VALID),
    ("strided", (1, 8, 8, 3), (3, 3, 3, 5), (2, 2), SAME),
    ("strided odd", (2, 7, 9, 3), (3, 3, 3, 5), (2, 2), SAME),
    ("strided valid", (2, 9, 11, 3), (3, 3, 3, 4), (2, 2), VALID),
    ("strided valid with a rest", (1, 8, 8, 3), (3, 3, 3, 4), (2, 2), VALID),
    ("uneven strides", (1, 9, 8, 2), (2, 3, 2, 3), (3, 2), SAME),
    ("stride beyond the filter", (1, 9, 9, 2), (2, 2, 2, 3), (3, 3), VALID),
    ("1x1", (1, 4, 3, 5), (5, 1, 1, 6), (1, 1), SAME),
    ("1x1 strided", (1, 5, 5, 2), (2, 1, 1, 3), (2, 2), SAME),
    ("even filter", (1, 8, 10, 2), (2, 4, 4, 3), (2, 2), SAME),
    ("even filter valid", (1, 8, 10, 2), (2, 2, 2, 3), (2, 2), VALID),
    ("one channel", (1, 6, 6, 1), (1, 3, 3, 1), (2, 2), SAME),
    ("one pixel", (1, 3, 3, 2), (2, 3, 3, 4), (1, 1), VALID),
    ("many channels", (1, 4, 4, 33), (33, 3, 3, 35), (2, 2), SAME),
    ("row filter", (1, 1, 12, 3), (3, 1, 4, 2), (1, 2), SAME),
]


def _input_shape(output, w_shape, stride, padding):
    sizes = []
    for size, window, step in zip(output[1:3], w_shape[1:3], stride, strict=True):
        sizes.append(-(-size // step) if padding == SAME else (size - window) // step + 1)
    return (output[0], *sizes, w_shape[3])


def _case(form, geometry, suffix="", *, activation=0, runtime_shape=False, **options):
    name, output, w_shape, stride, padding = geometry
    case_options = {key: options.pop(key) for key in ("version",) if key in options}
    o = forms.make(form, name + suffix, _input_shape(output, w_shape, stride, padding), w_shape, **options)
    bias = [o.bias] if o.bias is not None else []
    shape = (given if runtime_shape else constant)(np.array(output, np.int32))
    attributes = dict(
        stride_h=stride[0], stride_w=stride[1], padding=padding, fused_activation_function=activation, **form.attributes
    )
    inputs = [shape, o.weights, o.input, *bias]
    return Case(
        "TRANSPOSE_CONV", f"{form.name} {name}{suffix}", inputs, [o.output], attributes=attributes, loose=form.hybrid,
        **case_options,
    )  # fmt: skip


def cases():
    yield from both(_cases())


def _cases():
    for form in FORMS:
        for geometry in GEOMETRIES:
            yield _case(form, geometry)
        for geometry in (GEOMETRIES[0], GEOMETRIES[4], GEOMETRIES[8], GEOMETRIES[10]):
            yield _case(form, geometry, " no bias", bias=False)
        for geometry in (GEOMETRIES[0], GEOMETRIES[3], GEOMETRIES[5]):
            yield _case(form, geometry, " runtime shape", runtime_shape=True)
        for activation in (RELU, RELU_N1_TO_1, RELU6):
            yield _case(form, GEOMETRIES[2], f" activation {activation}", activation=activation)
        yield _case(form, GEOMETRIES[2], " runtime filter", runtime_weights=True)
        yield _case(form, GEOMETRIES[2], " runtime bias", runtime_bias=True)
        runtime = dict(runtime_weights=True, runtime_bias=True, runtime_shape=True)
        yield _case(form, GEOMETRIES[2], " runtime everything", **runtime)
        yield _case(form, GEOMETRIES[2], " resized", declared=(1, 2, 2, 5), runtime_shape=True)
    for form in (forms.I8, forms.U8, forms.I16):
        for scale in (0.001, 0.9):
            yield _case(form, GEOMETRIES[0], f" output scale {scale}", output_scale=scale)
    yield from _shifted_weights()
    data = Data("transpose conv run by run")
    shapes = [(1, 4, 4, 2), (1, 7, 5, 2), (2, 3, 3, 2)]
    w = constant(data.floats((2, 3, 3, 3)))
    feeds = [[np.array(s, np.int32), data.floats(_input_shape(s, w.value.shape, (2, 2), SAME))] for s in shapes]
    inputs = [given(feeds[0][0]), w, given(feeds[0][1])]
    attributes = dict(stride_h=2, stride_w=2, padding=SAME)
    name = "f32 other shapes run by run"
    yield Case("TRANSPOSE_CONV", name, inputs, [result(np.float32)], runs=feeds[1:], attributes=attributes)


def _shifted_weights():
    """Signed weights with a zero point: TFLite reads it as 0."""
    for kind, input_scale, output_scale in ((np.int8, 0.05, 0.5), (np.int16, 0.001, 0.01)):
        for weights in both_ways(constant(Data("").ints(np.int8, (3, 3, 3, 4)), 0.03, 7)):
            name = f"{np.dtype(kind)} filter with a zero point {weights.role}"
            x = given(Data(name).ints(kind, (1, 5, 5, 4), -100, 100), input_scale, 0)
            inputs = [constant(np.array([1, 5, 5, 3], np.int32)), weights, x]
            attributes = dict(stride_h=1, stride_w=1, padding=SAME)
            yield Case("TRANSPOSE_CONV", name, inputs, [result(kind, output_scale, 0)], attributes=attributes)
