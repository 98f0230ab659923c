# SPDX-License-Identifier: Apache-2.0
"""Rows of convolutions, pools and softmax. Images are NHWC, the layout of TensorFlow on CPUs."""

from __future__ import annotations

import numpy as np

from leadline.tf import dtypes, shapes, tiles
from leadline.tf.elementwise import _KINDS, check_types
from leadline.tf.engine import direct, fits, numpy_scratch
from leadline.tf.op import Call, row

# Enumerators of the .tflite format.
_PADDING = {"SAME": 0, "VALID": 1}


def window(size, kernel: int, stride: int, padding, dilation: int = 1):
    """Places of a window, and the padding before and after."""
    if size is None:
        return None, 0, 0
    reach = (kernel - 1) * dilation + 1
    if padding == "SAME":
        count = -(-size // stride)
        total = max(0, (count - 1) * stride + reach - size)
        return count, total // 2, total - total // 2
    before, after = (0, 0) if padding == "VALID" else padding
    return max(0, -(-(size + before + after - reach + 1) // stride)), before, after


def _paddings(attrs):
    """The padding of height and width: 'SAME', 'VALID', or numbers before and after."""
    padding = attrs["padding"]
    return (padding, padding) if isinstance(padding, str) else padding


def _places(call: Call, dims, kernel):
    sh, sw = call.attrs["strides"]
    dh, dw = call.attrs.get("dilations", (1, 1))
    ph, pw = _paddings(call.attrs)
    h, w = window(dims[1], kernel[0], sh, ph, dh)[0], window(dims[2], kernel[1], sw, pw, dw)[0]
    return h, w


def _infer_conv(call: Call):
    dtype = call.same_dtypes()
    check_types(call, (*_KINDS["float"], "int32"))
    x, f = call.dims
    if x is None or f is None:
        return [(dtype, (None,) * 4)]
    call.refuse_if(len(x) != 4, f"convolution input must be 4-dimensional: {shapes.text(x)}")
    call.refuse_if(len(f) != 4, f"filter must be 4-dimensional: {shapes.text(f)}")
    depth, per_group = x[3], f[2]
    bad = None not in (depth, per_group) and (per_group == 0 or depth % per_group or f[3] % (depth // per_group))
    call.refuse_if(bool(bad), f"input depth must be evenly divisible by filter depth: {depth} vs {per_group}")
    return [(dtype, (x[0], *_places(call, x, f[:2]), f[3]))]


def _patches(x, kernel, attrs, fill=0):
    """All windows: [n, h, w, kernel height, kernel width, channels], a view of the padded images."""
    (sh, sw), (dh, dw) = attrs["strides"], attrs.get("dilations", (1, 1))
    ph, pw = _paddings(attrs)
    _, top, bottom = window(x.shape[1], kernel[0], sh, ph, dh)
    _, left, right = window(x.shape[2], kernel[1], sw, pw, dw)
    if top or bottom or left or right:
        x = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=fill)
    reach = (kernel[0] - 1) * dh + 1, (kernel[1] - 1) * dw + 1
    if x.shape[1] < reach[0] or x.shape[2] < reach[1]:
        return np.zeros((x.shape[0], 0, 0, *kernel, x.shape[3]), x.dtype)
    views = np.lib.stride_tricks.sliding_window_view(x, reach, (1, 2))[:, ::sh, ::sw, :, ::dh, ::dw]
    return views.transpose(0, 1, 2, 4, 5, 3)


def _conv(x, f, **attrs):
    patches = _patches(x, f.shape[:2], attrs)
    groups = x.shape[3] // f.shape[2]
    if groups == 1:
        return np.tensordot(patches, f, 3)
    parts = zip(np.split(patches, groups, 5), np.split(f, groups, 3))
    return np.concatenate([np.tensordot(a, b, 3) for a, b in parts], 3)


def _patch_bytes(ins, outs, attrs) -> int:
    """numpy writes all windows out, one beside the other."""
    (dtype, x), (_, f) = ins
    if dtype is dtypes.float32 and not _explicit(attrs):
        return 0  # the engine does not
    n, h, w, _ = outs[0][1]
    return n * h * w * f[0] * f[1] * x[3] * dtype.size


def _explicit(attrs) -> bool:
    return not isinstance(attrs["padding"], str)


def _engine_conv(stretch, inputs, attrs, ins, outs):
    if any(dtype is not dtypes.float32 for dtype, _ in ins) or not fits(ins, outs) or _explicit(attrs):
        return None
    (sh, sw), (dh, dw) = attrs["strides"], attrs["dilations"]
    f = ins[1][1]
    order = stretch.constant([3, 0, 1, 2], np.int32)
    turned = stretch.node("TRANSPOSE", [inputs[1], order], (ins[1][0], (f[3], f[0], f[1], f[2])))
    bias = stretch.constant(np.zeros(f[3], np.float32))
    return stretch.node(
        "CONV_2D",
        [inputs[0], turned[0], bias],
        *outs,
        padding=_PADDING[attrs["padding"]],
        stride_h=sh,
        stride_w=sw,
        dilation_h_factor=dh,
        dilation_w_factor=dw,
    )


_PATCHES = {"heavy": True, "rows": tiles.first, "scratch": _patch_bytes}
row("Conv2D", _infer_conv, _conv, engine=_engine_conv, **_PATCHES)


def _infer_depthwise(call: Call):
    dtype = call.same_dtypes()
    x, f = call.dims
    call.refuse_if(len(x) != 4 or len(f) != 4, "input and filter must be 4-dimensional")
    call.refuse_if(x[3] != f[2], f"input and filter must have the same depth: {f[2]} vs {x[3]}")
    return [(dtype, (x[0], *_places(call, x, f[:2]), f[2] * f[3]))]


def _depthwise(x, f, **attrs):
    patches = _patches(x, f.shape[:2], attrs)
    result = np.einsum("nhwabc,abcm->nhwcm", patches, f)
    return result.reshape(*result.shape[:3], -1)


def _engine_depthwise(stretch, inputs, attrs, ins, outs):
    if any(dtype is not dtypes.float32 for dtype, _ in ins) or not fits(ins, outs) or _explicit(attrs):
        return None
    (sh, sw), (dh, dw) = attrs["strides"], attrs["dilations"]
    kh, kw, c, m = ins[1][1]
    size = stretch.constant([1, kh, kw, c * m], np.int32)
    flat = stretch.node("RESHAPE", [inputs[1], size], (ins[1][0], (1, kh, kw, c * m)))
    bias = stretch.constant(np.zeros(c * m, np.float32))
    return stretch.node(
        "DEPTHWISE_CONV_2D",
        [inputs[0], flat[0], bias],
        *outs,
        padding=_PADDING[attrs["padding"]],
        stride_h=sh,
        stride_w=sw,
        dilation_h_factor=dh,
        dilation_w_factor=dw,
        depth_multiplier=m,
    )


row("DepthwiseConv2dNative", _infer_depthwise, _depthwise, engine=_engine_depthwise, **_PATCHES)


def _infer_pool(call: Call):
    x = call.dims[0]
    if x is None:
        return [(call.dtypes[0], (None,) * 4)]
    call.refuse_if(len(x) != 4, f"tensor_in must be 4-dimensional, got {shapes.text(x)}")
    return [(call.dtypes[0], (x[0], *_places(call, x, call.attrs["ksize"]), x[3]))]


def _max_pool(x, *, ksize, **attrs):
    least = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    return _patches(x, ksize, attrs, least).max((3, 4))


def _avg_pool(x, *, ksize, **attrs):
    total = _patches(x, ksize, attrs).sum((3, 4), dtype=np.float32 if x.dtype.itemsize == 2 else x.dtype)
    ones = np.ones((1, *x.shape[1:3], 1), np.float32)
    return total / _patches(ones, ksize, attrs).sum((3, 4)).astype(total.dtype)


def _engine_pool(op: str):
    def lower(stretch, inputs, attrs, ins, outs):
        if ins[0][0] is not dtypes.float32 or not fits(ins, outs) or _explicit(attrs):
            return None
        (kh, kw), (sh, sw) = attrs["ksize"], attrs["strides"]
        return stretch.node(
            op,
            inputs,
            *outs,
            padding=_PADDING[attrs["padding"]],
            stride_h=sh,
            stride_w=sw,
            filter_height=kh,
            filter_width=kw,
        )

    return lower


row("MaxPool", _infer_pool, _max_pool, engine=_engine_pool("MAX_POOL_2D"), heavy=True, rows=tiles.first)
row("AvgPool", _infer_pool, _avg_pool, engine=_engine_pool("AVERAGE_POOL_2D"), heavy=True, rows=tiles.first)


def _infer_bias(call: Call):
    dtype = call.same_dtypes()
    x, bias = call.dims
    if x is not None and bias is not None:
        call.refuse_if(len(x) < 2, f"Input tensor must be at least 2D: {shapes.text(x)}")
        call.refuse_if(len(bias) != 1, f"Biases must be 1D: {shapes.text(bias)}")
        call.refuse_if(
            None not in (x[-1], bias[0]) and x[-1] != bias[0],
            "Must provide as many biases as the last dimension of the input tensor: "
            f"{shapes.text(bias)} vs. {shapes.text(x)}",
        )
    return [(dtype, x)]


row("BiasAdd", _infer_bias, np.add, engine=direct("ADD", ("float32",)), rows=tiles.first, ufunc=np.add)


def _softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _log_softmax(x):
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def _infer_softmax(call: Call):
    check_types(call, _KINDS["float"])
    call.refuse_if(call.dims[0] == (), "logits must have >= 1 dimension, got 0")
    return [(call.dtypes[0], call.dims[0])]


row(
    "Softmax",
    _infer_softmax,
    _softmax,
    engine=direct("SOFTMAX", ("float32",), beta=1.0),
    heavy=True,
    rows=tiles.not_last_axis,
    scratch=numpy_scratch(2),
)
row(
    "LogSoftmax",
    _infer_softmax,
    _log_softmax,
    engine=direct("LOG_SOFTMAX", ("float32",)),
    heavy=True,
    rows=tiles.not_last_axis,
    scratch=numpy_scratch(2),
)
