# SPDX-License-Identifier: Apache-2.0
"""CONV_3D and CONV_3D_TRANSPOSE."""

from __future__ import annotations

import numpy as np
from harness import NONE, RELU, RELU6, RELU_N1_TO_1, SAME, VALID, Case, Data, constant, given, result

# Input [N, D, H, W, C], filter [D, H, W], output channels, strides (d, h, w), dilations.
FORMS = [
    ((1, 4, 5, 3, 2), (2, 2, 2), 3, (1, 1, 1), (1, 1, 1)),
    ((2, 3, 4, 5, 1), (1, 3, 2), 2, (1, 2, 2), (1, 1, 1)),
    ((1, 7, 5, 6, 2), (3, 2, 2), 1, (2, 1, 3), (1, 1, 1)),
    ((1, 5, 6, 7, 2), (2, 2, 2), 4, (1, 1, 1), (2, 2, 3)),
    ((1, 1, 1, 1, 5), (1, 1, 1), 7, (1, 1, 1), (1, 1, 1)),
    ((1, 6, 6, 6, 3), (3, 3, 3), 17, (2, 2, 2), (1, 1, 1)),
]


def _options(padding, strides, dilations, activation):
    return dict(
        padding=padding, stride_d=strides[0], stride_h=strides[1], stride_w=strides[2], dilation_d_factor=dilations[0],
        dilation_h_factor=dilations[1], dilation_w_factor=dilations[2], fused_activation_function=activation,
    )  # fmt: skip


def _transposed(shape, kernel, channels, strides, padding):
    if padding == SAME:
        spatial = [size * stride for size, stride in zip(shape[1:4], strides, strict=True)]
    else:
        spatial = [
            size * stride + max(k - stride, 0) for size, stride, k in zip(shape[1:4], strides, kernel, strict=True)
        ]
    return [shape[0], *spatial, channels]


def cases():
    for shape, kernel, channels, strides, dilations in FORMS:
        for padding in (SAME, VALID):
            for activation in (NONE, RELU, RELU6, RELU_N1_TO_1):
                for bias in (False, True):
                    for fixed in (False, True):
                        name = f"{shape} * {kernel} to {channels}, strides {strides} dilations {dilations} "
                        name += f"padding {padding} activation {activation} bias {bias} constant {fixed}"
                        data = Data(name)
                        weights = (constant if fixed else given)(data.floats((*kernel, shape[4], channels)))
                        inputs = [given(data.floats(shape)), weights]
                        inputs += [constant(data.floats((channels,)))] if bias else []
                        options = _options(padding, strides, dilations, activation)
                        yield Case("CONV_3D", name, inputs, [result(np.float32)], **options)
                        if dilations != (1, 1, 1):
                            continue
                        target = np.array(_transposed(shape, kernel, channels, strides, padding), np.int32)
                        weights = (constant if fixed else given)(data.floats((*kernel, channels, shape[4])))
                        inputs = [(constant if fixed else given)(target), weights, given(data.floats(shape))]
                        inputs += [constant(data.floats((channels,)))] if bias else []
                        yield Case("CONV_3D_TRANSPOSE", name, inputs, [result(np.float32)], **options)
