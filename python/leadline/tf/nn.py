# SPDX-License-Identifier: Apache-2.0
"""tf.nn: layers as functions."""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from leadline.tf import convolution, dtypes  # noqa: F401 it fills the table
from leadline.tf.arithmetic import (  # what is imported as itself, tf.nn has too
    abs as abs_,
    add,
    cast,
    exp,
    greater_equal,
    in_top_k as in_top_k,
    l2_normalize as l2_normalize,
    log1p,
    maximum,
    multiply,
    negative,
    reduce_mean,
    reduce_sum,
    rsqrt,
    sigmoid,
    softplus as softplus,
    softsign as softsign,
    square,
    squared_difference,
    subtract,
    tanh as tanh,
    top_k as top_k,
)
from leadline.tf.array import expand_dims, gather, moveaxis, shape, squeeze, zeros_like
from leadline.tf.convert import convert_all, convert_to_tensor
from leadline.tf.op import apply
from leadline.tf.tensor import Tensor

TopKV2 = namedtuple("TopKV2", ["values", "indices"])
Unique = namedtuple("Unique", ["y", "idx"])
UniqueWithCounts = namedtuple("UniqueWithCounts", ["y", "idx", "count"])


def _activation(op: str):
    def function(features, name=None) -> Tensor:
        return apply(op, [convert_to_tensor(features)], name or op)

    function.__name__ = op.lower()
    return function


relu, relu6, elu, selu = _activation("Relu"), _activation("Relu6"), _activation("Elu"), _activation("Selu")


def leaky_relu(features, alpha=0.2, name=None) -> Tensor:
    return apply("LeakyRelu", [_floating(features)], name or "LeakyRelu", alpha=float(alpha))


def gelu(features, approximate=False, name=None) -> Tensor:
    return apply("Gelu", [_floating(features)], name or "Gelu", approximate=bool(approximate))


def silu(features, beta=1.0) -> Tensor:
    x = convert_to_tensor(features)
    return multiply(x, sigmoid(multiply(x, beta)))


swish = silu


def _floating(value) -> Tensor:
    x = convert_to_tensor(value)
    return cast(x, dtypes.float32) if x.dtype.is_integer else x


def _along(op: str, logits, axis, name) -> Tensor:
    x = convert_to_tensor(logits)
    axis = -1 if axis is None else int(axis)
    if x.ndim is None and axis != -1:
        raise NotImplementedError(f"tf.nn.{op.lower()} along axis {axis} of a tensor of unknown rank is not supported")
    if axis == -1 or axis == x.ndim - 1:
        return apply(op, [x], name or op)
    return moveaxis(apply(op, [moveaxis(x, axis, -1)], name or op), -1, axis)


def softmax(logits, axis=None, name=None) -> Tensor:
    """exp(x) divided by its sum along the axis."""
    return _along("Softmax", logits, axis, name)


def log_softmax(logits, axis=None, name=None) -> Tensor:
    return _along("LogSoftmax", logits, axis, name)


def _pair(value, what: str, data_format: str = "NHWC") -> tuple[int, int]:
    """Height and width out of one number, two, or four as TensorFlow writes them."""
    if data_format not in ("NHWC", None):
        raise NotImplementedError(f"data_format {data_format!r} is not supported on CPUs: use 'NHWC'")
    numbers = [int(n) for n in np.ravel(value)]
    if len(numbers) == 4:
        if numbers[0] != 1 or numbers[3] != 1:
            raise ValueError(f"{what} in the batch and depth dimensions are not supported: {value}")
        return numbers[1], numbers[2]
    if len(numbers) not in (1, 2):
        raise ValueError(f"{what} should be of length 1, 2 or 4 but was {len(numbers)}.")
    return (numbers[0], numbers[-1])


def _padding(padding):
    if isinstance(padding, str):
        if padding.upper() not in ("SAME", "VALID"):
            raise ValueError(
                f'Value for attr \'padding\' of "{padding}" is not in the list of allowed values: "SAME", "VALID"'
            )
        return padding.upper()
    pads = [tuple(int(n) for n in pair) for pair in padding]
    return (pads[1], pads[2]) if len(pads) == 4 else tuple(pads)


def conv2d(input, filters, strides, padding, data_format="NHWC", dilations=None, name=None) -> Tensor:
    """A convolution of images [n, h, w, c] with filters [h, w, c, k]."""
    x, f = convert_all([input, filters])
    attrs = {"strides": _pair(strides, "strides", data_format), "padding": _padding(padding)}
    return apply("Conv2D", [x, f], name or "Conv2D", dilations=_pair(dilations or 1, "dilations"), **attrs)


def depthwise_conv2d(input, filter, strides, padding, data_format="NHWC", dilations=None, name=None) -> Tensor:
    """Each channel with filters of its own: [h, w, c, filters for each channel]."""
    x, f = convert_all([input, filter])
    attrs = {"strides": _pair(strides, "strides", data_format), "padding": _padding(padding)}
    return apply(
        "DepthwiseConv2dNative", [x, f], name or "depthwise", dilations=_pair(dilations or 1, "dilations"), **attrs
    )


def _pool(op: str, input, ksize, strides, padding, data_format, name) -> Tensor:
    attrs = {
        "ksize": _pair(ksize, "ksize", data_format),
        "strides": _pair(strides, "strides"),
        "padding": _padding(padding),
    }
    return apply(op, [convert_to_tensor(input)], name or op, **attrs)


def max_pool2d(input, ksize, strides, padding, data_format="NHWC", name=None) -> Tensor:
    """The largest element of each window."""
    return _pool("MaxPool", input, ksize, strides, padding, data_format, name)


def avg_pool2d(input, ksize, strides, padding, data_format="NHWC", name=None) -> Tensor:
    """The mean of each window, without the padding."""
    return _pool("AvgPool", input, ksize, strides, padding, data_format, name)


max_pool, avg_pool = max_pool2d, avg_pool2d


def bias_add(value, bias, data_format=None, name=None) -> Tensor:
    """A number for each channel added."""
    return apply("BiasAdd", convert_all([value, bias]), name or "BiasAdd")


def dropout(x, rate, noise_shape=None, seed=None, name=None) -> Tensor:
    """Elements set to zero at random, the others made larger by as much."""
    from leadline.tf.array import where
    from leadline.tf.random import uniform

    x = convert_to_tensor(x)
    if not 0 <= float(rate) < 1:
        raise ValueError(f"`rate` must be a scalar tensor or a float in the range [0, 1). Received: rate={rate}")
    if float(rate) == 0:
        return x
    kept = greater_equal(
        uniform(shape(x) if noise_shape is None else noise_shape, dtype=x.dtype, seed=seed), float(rate)
    )
    return where(kept, multiply(x, 1 / (1 - float(rate))), zeros_like(x), name)


def moments(x, axes, shift=None, keepdims=False, name=None):
    """The mean and the variance over the axes."""
    x = convert_to_tensor(x)
    mean = reduce_mean(x, axes, True)
    variance = reduce_mean(squared_difference(x, mean), axes, keepdims)
    return (mean if keepdims else reduce_mean(x, axes)), variance


def batch_normalization(x, mean, variance, offset, scale, variance_epsilon, name=None) -> Tensor:
    factor = rsqrt(add(variance, variance_epsilon))
    if scale is not None:
        factor = multiply(factor, scale)
    shifted = multiply(subtract(x, mean), factor)
    return shifted if offset is None else add(shifted, offset)


def l2_loss(t, name=None) -> Tensor:
    return multiply(reduce_sum(square(t)), 0.5, name)


def softmax_cross_entropy_with_logits(labels, logits, axis=-1, name=None) -> Tensor:
    labels, logits = convert_all([labels, logits])
    return negative(reduce_sum(multiply(labels, log_softmax(logits, axis)), axis), name)


def sparse_softmax_cross_entropy_with_logits(labels, logits, name=None) -> Tensor:
    labels = convert_to_tensor(labels)
    if labels.ndim is None:
        raise NotImplementedError("labels of unknown rank are not supported by leadline.tf")
    chosen = gather(log_softmax(logits), expand_dims(labels, -1), axis=labels.ndim, batch_dims=labels.ndim)
    return negative(squeeze(chosen, -1), name)


def sigmoid_cross_entropy_with_logits(labels=None, logits=None, name=None) -> Tensor:
    x, z = convert_all([logits, labels])
    return add(subtract(maximum(x, cast(0, x.dtype)), multiply(x, z)), log1p(exp(negative(abs_(x)))), name)


def embedding_lookup(params, ids, max_norm=None, name=None) -> Tensor:
    return gather(params, ids, name=name)


def zero_fraction(value, name=None) -> Tensor:
    from leadline.tf.arithmetic import equal

    x = convert_to_tensor(value)
    return reduce_mean(cast(equal(x, cast(0, x.dtype)), dtypes.float32), name=name)


def conv1d(input, filters, stride=1, padding="VALID", data_format="NWC", dilations=None, name=None) -> Tensor:
    """A convolution of sequences [n, w, c] with filters [w, c, k]."""
    x, f = convert_all([input, filters])
    strides = [1, int(np.ravel(stride)[0])]
    step = [1, int(np.ravel(dilations or 1)[0])]
    return squeeze(conv2d(expand_dims(x, 1), expand_dims(f, 0), strides, padding, dilations=step), 1, name)
