# SPDX-License-Identifier: Apache-2.0
"""Every operation of keras.ops that a functional model can hold; test_keras_ops.py runs them."""

import numpy as np
from keras import ops
from keras_cases import Case, Spec, bools, ints

CASES: list[Case] = []
POSITIVE = Spec((4, 6), "float32", 0.1, 3.0)
UNIT = Spec((4, 6), "float32", -0.9, 0.9)
ABOVE_ONE = Spec((4, 6), "float32", 1.1, 4.0)


def add(name: str, function, *inputs) -> None:
    CASES.append(Case(name, function, list(inputs)))


def each(names: str, *inputs, **arguments) -> None:
    for name in names.split():
        add(f"{name}", lambda *x, name=name: getattr(ops, name)(*x, **arguments), *inputs)


each(
    "abs absolute fabs negative floor ceil sign square exp sin cos tan sinh cosh tanh arctan arcsinh expm1 exp2 trunc sinc",
    (4, 6),
)
each(
    "deg2rad rad2deg isnan isinf isfinite isposinf isneginf signbit cbrt erf erfc nan_to_num stop_gradient copy", (4, 6)
)
each("conj conjugate real ravel flip fliplr flipud zeros_like ones_like round", (4, 6))
each("log log10 log1p log2 sqrt rsqrt reciprocal", POSITIVE)
each("arcsin arccos arctanh", UNIT)
each("arccosh", ABOVE_ONE)
each(
    "relu relu6 sigmoid sparse_sigmoid softplus softsign soft_shrink sparse_plus silu squareplus log_sigmoid leaky_relu hard_sigmoid hard_silu",
    (4, 6),
)
each("elu selu gelu celu glu tanh_shrink hard_tanh hard_shrink softmax log_softmax sparsemax", (4, 6))
add("threshold", lambda x: ops.threshold(x, 0.5, -1.0), (4, 6))
add("softmax-axis", lambda x: ops.softmax(x, axis=1), (4, 6))
add("round-decimals", lambda x: ops.round(x, 2), (4, 6))
each(
    "add subtract multiply maximum minimum fmax fmin less less_equal greater greater_equal equal not_equal arctan2 hypot logaddexp logaddexp2 isclose",
    (4, 6),
    (4, 6),
)
each("divide true_divide power fmod mod floor_divide divide_no_nan", POSITIVE, POSITIVE)
each("heaviside", (4, 6), (1, 6))
each("ldexp", (4, 6), ints(1, 6))
each("logical_and logical_or logical_xor", bools(4, 6), bools(4, 6))
each("logical_not any all", bools(4, 6))
each("equal not_equal less", ints(4, 6), ints(4, 6))
add("add-broadcast", lambda a, b: a + b * 2.0 - 1.0, (4, 6), (1, 6))
add("constants", lambda x: (1.0 - x) / 2.0 + np.arange(6, dtype="float32"), (4, 6))
add("add-int_float", lambda a, b: ops.add(a, b), ints(4, 6), (4, 6))
each(
    "mean sum prod max min amax amin var std ptp logsumexp count_nonzero average nansum nanmean nanmax nanmin nanprod",
    (4, 6),
    axis=-1,
)
for name in ("mean", "sum", "max", "var", "logsumexp"):
    add(f"{name}-keepdims", lambda x, name=name: getattr(ops, name)(x, axis=(1, 2), keepdims=True), (4, 6))
add("moments", lambda x: ops.moments(x, axes=[1]), (4, 6))
add("max-initial", lambda x: ops.max(x, axis=1, initial=0.5), (4, 6))
add("norm", lambda x: ops.norm(x), (4, 6))
add("clip-infinite", lambda x: ops.clip(x, -np.inf, 0.5), (4, 6))
add("average-weights", lambda x: ops.average(x, axis=1, weights=np.arange(1.0, 5.0, dtype="float32")), (4, 6))
add("normalize", lambda x: ops.normalize(x), (4, 6))
each("argmax argmin sort argsort cumsum", (4, 6), axis=-1)
add("argmax-keepdims", lambda x: ops.argmax(x, axis=1, keepdims=True), (4, 6))
add("sort-axis", lambda x: ops.sort(x, axis=1), (4, 6))
add("top_k", lambda x: ops.top_k(x, 3), (4, 6))
add("digitize", lambda x: ops.digitize(x, np.array([-1.0, 0.0, 1.0])), (4, 6))
add("one_hot", lambda x: ops.one_hot(x, 9), ints(4))
add("one_hot-axis", lambda x: ops.one_hot(x, 9, axis=1), ints(4))
add("multi_hot", lambda x: ops.multi_hot(x, 9), ints(4))
add(
    "segment_sum",
    lambda x: ops.segment_sum(
        ops.reshape(x, (-1, 6)), ops.reshape(ops.cast(x[..., 0] * 0 + 1, "int32"), (-1,)), num_segments=3
    ),
    (4, 6),
)
add(
    "segment_max",
    lambda x: ops.segment_max(
        ops.reshape(x, (-1, 6)), ops.reshape(ops.cast(x[..., 0] * 0, "int32"), (-1,)), num_segments=1
    ),
    (4, 6),
)
add("matmul", lambda a, b: ops.matmul(a, b), (4, 6), (6, 5))
add("matmul-constant", lambda a: ops.matmul(a, np.ones((6, 2), "float32")), (4, 6))
add("matmul-vector", lambda a: ops.matmul(a, np.ones((6,), "float32")), (4, 6))
add("dot", lambda a: ops.dot(a, np.ones((6, 2), "float32")), (4, 6))
add("inner", lambda a: ops.inner(a, np.ones((3, 6), "float32")), (4, 6))
add("outer", lambda a: ops.outer(a, np.arange(3, dtype="float32")), (4,))
add("vdot", lambda a: ops.vdot(a, a), (4, 6))
add("tensordot", lambda a: ops.tensordot(a, np.ones((4, 6, 3), "float32"), axes=2), (4, 6))
add("tensordot-axes", lambda a: ops.tensordot(a, np.ones((4, 3), "float32"), axes=[[1], [0]]), (4, 6))
add("einsum", lambda a, b: ops.einsum("bij,bkj->bik", a, b), (4, 6), (5, 6))
add("einsum-heads", lambda a, b: ops.einsum("bqhd,bkhd->bhqk", a, b), (4, 2, 3), (5, 2, 3))
add("einsum-one", lambda a: ops.einsum("bij->bj", a), (4, 6))
add("einsum-outer", lambda a, b: ops.einsum("bi,bj->bij", a, b), (4,), (6,))
add(
    "layer_normalization",
    lambda x: ops.layer_normalization(x, gamma=np.arange(6, dtype="float32"), beta=np.ones(6, "float32")),
    (4, 6),
)
add("rms_normalization", lambda x: ops.rms_normalization(x, scale=np.arange(6, dtype="float32")), (4, 6))
add("clip", lambda x: ops.clip(x, -1.0, 0.5), (4, 6))
add("cast", lambda x: ops.cast(x, "int32"), (4, 6))
add("saturate_cast", lambda x: ops.saturate_cast(x, "int32"), (4, 6))
add("where", lambda x, y: ops.where(x > 0, x, y), (4, 6), (4, 6))
add("where-number", lambda x: ops.where(x > 0, x, 0.0), (4, 6))
add("full_like", lambda x: ops.full_like(x, 3.0), (4, 6))
add("concatenate", lambda x, y: ops.concatenate([x, y], axis=1), (4, 6), (3, 6))
add("stack", lambda x, y: ops.stack([x, y], axis=-1), (4, 6), (4, 6))
add("unstack", lambda x: ops.unstack(x, axis=1), (4, 6))
add("hstack", lambda x, y: ops.hstack([x, y]), (4, 6), (3, 6))
add("dstack", lambda x, y: ops.dstack([x, y]), (4, 6), (4, 5))
add("vstack", lambda x, y: ops.vstack([x, y]), (4, 6), (4, 6))
add("append", lambda x, y: ops.append(x, y, axis=1), (4, 6), (3, 6))
add("split", lambda x: ops.split(x, 3, axis=-1), (4, 6))
add("split-at", lambda x: ops.split(x, [1, 4], axis=-1), (4, 6))
add("array_split", lambda x: ops.array_split(x, 4, axis=-1), (4, 6))
add("hsplit", lambda x: ops.hsplit(x, 2), (4, 6))
add("dsplit", lambda x: ops.dsplit(x, 3), (4, 6))
add("reshape", lambda x: ops.reshape(x, (-1, 3, 8)), (4, 6))
add("reshape-shape", lambda x: ops.reshape(x, (-1, ops.shape(x)[1] * ops.shape(x)[2])), (4, 6))
add("transpose", lambda x: ops.transpose(x, (0, 2, 1)), (4, 6))
add("swapaxes", lambda x: ops.swapaxes(x, 1, 2), (4, 6))
add("moveaxis", lambda x: ops.moveaxis(x, 1, -1), (4, 6, 2))
add("rot90", lambda x: ops.rot90(x, k=1, axes=(1, 2)), (4, 6))
add("rot90-3", lambda x: ops.rot90(x, k=3, axes=(1, 2)), (4, 6))
add("expand_dims", lambda x: ops.expand_dims(x, (1, -1)), (4, 6))
add("squeeze", lambda x: ops.squeeze(x, axis=1), (1, 6))
add("repeat", lambda x: ops.repeat(x, 2, axis=1), (4, 6))
add("tile", lambda x: ops.tile(x, (1, 2, 3)), (4, 6))
add("roll", lambda x: ops.roll(x, 2, axis=1), (4, 6))
add("roll-any-length", lambda x: ops.roll(x, -2, axis=1), (None, 6))
add("take", lambda x: ops.take(x, [2, 0, -1], axis=1), (4, 6))
add("take-tensor", lambda x, i: ops.take(x, i[0], axis=1), (9, 6), ints(4))
add("take_along_axis", lambda x, i: ops.take_along_axis(x, i, axis=2), (4, 9), ints(4, 3))
add("pad", lambda x: ops.pad(x, [[0, 0], [1, 2], [0, 1]]), (4, 6))
add("pad-value", lambda x: ops.pad(x, [[0, 0], [1, 2], [0, 1]], constant_values=2.0), (4, 6))
add("pad-reflect", lambda x: ops.pad(x, [[0, 0], [1, 2], [0, 1]], mode="reflect"), (4, 6))
each("tril triu", (4, 6))
add("tril-any-size", lambda x: ops.tril(x, k=1), (None, None))
add("triu-any-size", lambda x: ops.triu(x), (None, 6))
add("diagonal", lambda x: ops.diagonal(x, axis1=1, axis2=2), (4, 6))
add("trace", lambda x: ops.trace(x, axis1=1, axis2=2), (4, 6))
add("diff", lambda x: ops.diff(x), (4, 6))
add("depth_to_space", lambda x: ops.depth_to_space(x, 2), (4, 6, 8))
add("space_to_depth", lambda x: ops.space_to_depth(x, 2), (4, 6, 2))
add("max_pool", lambda x: ops.max_pool(x, (2, 2), (2, 2)), (4, 6, 2))
add("average_pool", lambda x: ops.average_pool(x, (2, 2), (2, 2), padding="same"), (5, 6, 2))
add("adaptive_max_pool", lambda x: ops.adaptive_max_pool(x, (2, 4)), (5, 6, 2))
add("adaptive_average_pool", lambda x: ops.adaptive_average_pool(x, (2, 4)), (5, 6, 2))
add("rgb_to_grayscale", lambda x: ops.image.rgb_to_grayscale(x), (5, 6, 3))
add("resize", lambda x: ops.image.resize(x, (8, 7)), (5, 6, 3))
add("slice", lambda x: ops.slice(x, (0, 1, 2), (1, 2, 3)), (4, 6))
add("get_item", lambda x: x[:, 1:3, ::2], (4, 6))
add("get_item-new", lambda x: x[:, None, ..., -1], (4, 6))
add("get_item-reverse", lambda x: x[:, ::-1], (4, 6))
KERNEL = np.random.default_rng(5).normal(size=(3, 3, 4, 5)).astype("float32")
add("conv", lambda x: ops.conv(x, KERNEL, strides=2, padding="same"), (8, 9, 4))
add("conv-dilated", lambda x: ops.conv(x, KERNEL, dilation_rate=2), (8, 9, 4))
add("conv-1d", lambda x: ops.conv(x, KERNEL[0]), (8, 4))
add("conv-3d", lambda x: ops.conv(x, KERNEL[None]), (4, 6, 6, 4))
add("conv-kernel", lambda x, k: ops.conv(x, ops.reshape(k[0], (3, 3, 2, 2)), padding="same"), (6, 6, 2), (9, 4))
add("depthwise_conv", lambda x: ops.depthwise_conv(x, KERNEL, padding="same"), (8, 9, 4))
add("depthwise_conv-1d", lambda x: ops.depthwise_conv(x, KERNEL[0], strides=2), (8, 4))
add("separable_conv", lambda x: ops.separable_conv(x, KERNEL, np.ones((1, 1, 20, 3), "float32")), (8, 9, 4))
add("separable_conv-1d", lambda x: ops.separable_conv(x, KERNEL[0], np.ones((1, 20, 3), "float32")), (8, 4))
add("extract_patches", lambda x: ops.image.extract_patches(x, (3, 2)), (9, 8, 3))
add("extract_patches-strides", lambda x: ops.image.extract_patches(x, 3, strides=2, padding="same"), (9, 8, 2))
MEAN, VARIANCE = np.arange(6, dtype="float32") / 3, np.arange(1, 7, dtype="float32")
add("batch_normalization", lambda x: ops.batch_normalization(x, MEAN, VARIANCE, -1), (4, 6))
add(
    "batch_normalization-all",
    lambda x: ops.batch_normalization(x, MEAN, VARIANCE, 1, offset=VARIANCE, scale=MEAN),
    (6, 4),
)
HEADS = [(5, 2, 4), (6, 2, 4), (6, 2, 4)]
add("dot_product_attention", lambda q, k, v: ops.dot_product_attention(q, k, v), *HEADS)
add(
    "dot_product_attention-bias",
    lambda q, k, v, b: ops.dot_product_attention(q, k, v, bias=b, scale=0.3),
    *HEADS,
    (2, 5, 6),
)
add("dot_product_attention-mask", lambda q, k, v, m: ops.dot_product_attention(q, k, v, mask=m > 0), *HEADS, (2, 5, 6))
add("dot_product_attention-causal", lambda q, k, v: ops.dot_product_attention(q, k, v, is_causal=True), *HEADS)
add("cumprod", lambda x: ops.cumprod(x, axis=1), POSITIVE)
add("select", lambda x, y: ops.select([x > 0.5, x < -0.5], [x, y], default=3.0), (4, 6), (4, 6))
add("pad_images", lambda x: ops.image.pad_images(x, 1, 2, target_height=12, target_width=13), (8, 9, 2))
add("pad_images-all", lambda x: ops.image.pad_images(x, 1, 2, 3, 0), (8, 9, 2))
add("crop_images", lambda x: ops.image.crop_images(x, 1, 2, target_height=4, target_width=5), (8, 9, 2))
add("crop_images-all", lambda x: ops.image.crop_images(x, 1, 2, 3, 0), (8, 9, 2))
add("rgb_to_hsv", lambda x: ops.image.rgb_to_hsv(x), Spec((5, 6, 3), "float32", 0.0, 1.0))
each("bitwise_xor bitwise_and bitwise_or", ints(4, 6), ints(4, 6))
each("bitwise_right_shift right_shift bitwise_left_shift left_shift", ints(4, 6), ints(4, 6))
each("bitwise_not bitwise_invert", ints(4, 6))
