# SPDX-License-Identifier: Apache-2.0
"""A table of functions, each of one or a few ops of TensorFlow that its own converter expresses with builtin ops.

Inputs are written as text: a type, a shape ("?" is an unknown size, 3 in a run), and what values are like."""

import zlib

import numpy as np
import tensorflow as tf

F = "float32"
RUN_SIZE = 3


class Input:
    """`values`: "normal", "positive", "unit" (-1 to 1), "mask", or (low, high) for integers."""

    def __init__(self, shape, values="normal", dtype=F):
        self.shape, self.values, self.dtype = shape, values, dtype

    def spec(self, name):
        return tf.TensorSpec(self.shape, self.dtype, name=name)

    def example(self, rng):
        shape = [RUN_SIZE if size is None else size for size in self.shape]
        if isinstance(self.values, np.ndarray):
            return self.values
        if self.values == "mask":
            return rng.random(shape) > 0.5
        if isinstance(self.values, tuple):
            return rng.integers(*self.values, size=shape).astype(self.dtype)
        array = rng.normal(size=shape)
        if self.values == "positive":
            array = np.abs(array) + 0.1
        if self.values == "unit":
            array = np.tanh(array) * 0.98
        return array.astype(self.dtype)


def x(*shape):
    return Input(shape or (None, 4))


def positive(*shape):
    return Input(shape or (None, 4), "positive")


def unit(*shape):
    return Input(shape or (None, 4), "unit")


def mask(*shape):
    return Input(shape or (None, 4), "mask", "bool")


def ints(low, high, *shape, dtype="int32"):
    return Input(shape or (None, 4), (low, high), dtype)


def given(*values, dtype="int32"):
    array = np.array(values, dtype)
    return Input(array.shape, array, dtype)


CASES = {}


def case(name, function, *inputs):
    assert name not in CASES, name
    CASES[name] = (function, inputs)


def unary_cases():
    plain = (
        "abs ceil cos exp floor negative rint round sign sin square tanh sigmoid erf expm1 tan sinh cosh softplus erfc"
    )
    for name in plain.split():
        case(name, getattr(tf.math, name), x())
    for name in "log sqrt rsqrt log1p reciprocal reciprocal_no_nan".split():
        case(name, getattr(tf.math, name), positive())
    for name in "is_nan is_inf is_finite".split():
        case(name, getattr(tf.math, name), x())
    for name in "relu relu6 elu selu softsign softmax log_softmax leaky_relu gelu silu l2_loss crelu".split():
        case(name, getattr(tf.nn, name), x())
    case("gelu_tanh", lambda a: tf.nn.gelu(a, approximate=True), x())
    case("softmax_axis", lambda a: tf.nn.softmax(a, axis=1), x(None, 4, 5))
    case("log_softmax_axis", lambda a: tf.nn.log_softmax(a, axis=1), x(None, 4, 5))
    case("l2_normalize", lambda a: tf.nn.l2_normalize(a, axis=-1), x())
    case("logical_not", tf.logical_not, mask())
    case("zeta_like", lambda a: tf.nn.sigmoid_cross_entropy_with_logits(a * 0.5, a), x())
    case("abs_int", tf.abs, ints(-9, 9))
    case("sign_int", tf.sign, ints(-9, 9))
    case("neg_int", tf.negative, ints(-9, 9))
    case("square_int", tf.square, ints(-9, 9))
    case("hard_swish", lambda a: a * tf.nn.relu6(a + 3.0) / 6.0, x())
    case("asinh_family", lambda a: tf.math.log(a + tf.sqrt(a * a + 1.0)), x())
    case("log_sigmoid", tf.math.log_sigmoid, x())


def binary_cases():
    for name in "add subtract multiply maximum minimum squared_difference".split():
        case(name, getattr(tf.math, name), x(), x(4))
        case(f"{name}_int", getattr(tf.math, name), ints(-9, 9), ints(-9, 9))
    for name in "divide floordiv floormod divide_no_nan truediv".split():
        case(name, getattr(tf.math, name), x(), positive(None, 4))
    case("floordiv_int", tf.math.floordiv, ints(-20, 20), ints(1, 5))
    case("floormod_int", tf.math.floormod, ints(-20, 20), ints(1, 5))
    case("truncatediv_int", tf.truncatediv, ints(-20, 20), ints(1, 5))
    case("truediv_int", tf.math.truediv, ints(-20, 20), ints(1, 5))
    case("truncatemod_int", tf.truncatemod, ints(-20, 20), ints(1, 5))
    case("pow", tf.pow, positive(), x())
    case("pow_int", tf.pow, ints(0, 5), ints(0, 4))
    case("atan2", tf.math.atan2, x(), x())
    for name in "xlogy xdivy xlog1py multiply_no_nan".split():
        case(name, getattr(tf.math, name), x(), positive())
    for name in "equal not_equal less less_equal greater greater_equal".split():
        case(name, getattr(tf.math, name), x(), x())
        case(f"{name}_int", getattr(tf.math, name), ints(0, 3), ints(0, 3))
    for name in "logical_and logical_or logical_xor".split():
        case(name, getattr(tf.math, name), mask(), mask())
    case("equal_bool", tf.equal, mask(), mask())
    case("add_n", lambda a, b, c: tf.add_n([a, b, c]), x(), x(), x())
    case("accumulate_n", lambda a, b: tf.math.accumulate_n([a, b]), x(2, 3), x(2, 3))
    case("lerp", lambda a, b: a + 0.25 * (b - a), x(), x())
    case("bitwise_xor", tf.bitwise.bitwise_xor, ints(0, 99), ints(0, 99))
    case("right_shift", tf.bitwise.right_shift, ints(0, 999), ints(0, 5))
    case("bitwise_and", tf.bitwise.bitwise_and, ints(-(2**31), 2**31 - 1), ints(-(2**31), 2**31 - 1))
    case("bitwise_or", tf.bitwise.bitwise_or, ints(-(2**31), 2**31 - 1), ints(-(2**31), 2**31 - 1))
    case(
        "bitwise_and_small",
        lambda x: tf.cast(tf.cast(x, tf.int8) & tf.constant(-86, tf.int8), tf.int32),
        ints(-128, 127),
    )
    case("bitwise_not_small", lambda x: tf.cast(~tf.cast(x, tf.uint8), tf.int32), ints(0, 255))
    case("left_shift", tf.bitwise.left_shift, ints(-(2**31), 2**31 - 1), ints(0, 31))
    case("sign_of_zero", lambda x: tf.bitwise.bitwise_and(tf.bitcast(-x, tf.int32), -(2**31)) != 0, x(3, 4))
    case("approximate_equal", lambda a, b: tf.math.abs(a - b) < 0.5, x(), x())


def reduction_cases():
    for name in "mean sum max min prod".split():
        function = getattr(tf, f"reduce_{name}")
        case(f"reduce_{name}", lambda a, f=function: f(a, axis=[1, 2]), x(None, 3, 4))
        case(f"reduce_{name}_keep", lambda a, f=function: f(a, axis=-1, keepdims=True), x(None, 3, 4))
        case(f"reduce_{name}_all", lambda a, f=function: f(a), x(2, 3))
        case(f"reduce_{name}_int", lambda a, f=function: f(a, axis=0), ints(1, 4, 3, 4))
    case("reduce_any", lambda a: tf.reduce_any(a, axis=1), mask())
    case("reduce_all", lambda a: tf.reduce_all(a, axis=1), mask())
    case("reduce_logsumexp", lambda a: tf.reduce_logsumexp(a, axis=1), x())
    case("reduce_variance", lambda a: tf.math.reduce_variance(a, axis=1), x())
    case("reduce_std", lambda a: tf.math.reduce_std(a, axis=1), x())
    case("reduce_norm", lambda a: tf.norm(a, axis=1), x())
    case("moments", lambda a: tf.stack(tf.nn.moments(a, axes=[1])), x())
    case("argmax", lambda a: tf.argmax(a, axis=1), x())
    case("argmin_32", lambda a: tf.argmin(a, axis=1, output_type=tf.int32), x())
    case("top_k", lambda a: tf.math.top_k(a, 2)[0], x())
    case("top_k_index", lambda a: tf.math.top_k(a, 2)[1], x())
    case("in_top_k_like", lambda a: tf.reduce_max(tf.math.top_k(a, 3).indices, axis=1), x())
    case("cumsum", lambda a: tf.cumsum(a, axis=1), x())
    case("cumsum_flags", lambda a: tf.cumsum(a, axis=0, exclusive=True, reverse=True), x(3, 4))
    case("cumprod", lambda a: tf.math.cumprod(a, axis=1), x(3, 4))
    case("sort", lambda a: tf.sort(a, axis=-1), x())
    case("sort_descending", lambda a: tf.sort(a, axis=-1, direction="DESCENDING"), x())
    case("argsort", lambda a: tf.argsort(a, axis=-1), x())
    case("reduce_euclidean", lambda a: tf.math.reduce_euclidean_norm(a, axis=1), x())
    case("count_nonzero", lambda a: tf.math.count_nonzero(a, axis=1), ints(0, 2))
    case("zero_fraction", tf.nn.zero_fraction, ints(0, 2, 3, 4))
    case("bincount", lambda a: tf.math.bincount(a, minlength=6, maxlength=6), ints(0, 6, 20))
    case("segment_sum", lambda a: tf.math.segment_sum(a, [0, 0, 1]), x(3, 4))
    for name in "sum max min prod".split():
        function = getattr(tf.math, f"unsorted_segment_{name}")
        case(f"unsorted_segment_{name}", lambda a, f=function: f(a, [1, 0, 1], 2), x(3, 4))
    case("softmax_cross_entropy", lambda a, b: tf.nn.softmax_cross_entropy_with_logits(tf.nn.softmax(b), a), x(), x())
    case(
        "sparse_cross_entropy",
        lambda a, b: tf.nn.sparse_softmax_cross_entropy_with_logits(b, a),
        x(3, 4),
        ints(0, 4, 3),
    )


def matrix_cases():
    case("matmul", tf.matmul, x(None, 4), x(4, 5))
    case("matmul_turned", lambda a, b: tf.matmul(a, b, transpose_a=True, transpose_b=True), x(4, 3), x(5, 4))
    case("batch_matmul", tf.matmul, x(None, 3, 4), x(None, 4, 5))
    case("batch_matmul_turned", lambda a, b: tf.matmul(a, b, transpose_b=True), x(None, 2, 3, 4), x(None, 2, 5, 4))
    case("batch_matmul_turned_left", lambda a, b: tf.matmul(a, b, transpose_a=True), x(2, 4, 3), x(2, 4, 5))
    case("matmul_broadcast", tf.matmul, x(2, 1, 3, 4), x(5, 4, 2))
    case("matmul_constant", lambda a: tf.matmul(a, np.ones((4, 2), np.float32)), x(None, 3, 4))
    case("tensordot", lambda a, b: tf.tensordot(a, b, axes=[[2], [0]]), x(None, 3, 4), x(4, 5))
    case("tensordot_two", lambda a, b: tf.tensordot(a, b, axes=[[1, 2], [0, 1]]), x(2, 3, 4), x(3, 4, 5))
    case("linalg_matvec", tf.linalg.matvec, x(None, 3, 4), x(4))
    equations = {
        "two": ("abc,cd->abd", [(2, 3, 4), (4, 5)]),
        "attention": ("bthd,bshd->bhts", [(2, 3, 2, 4), (2, 5, 2, 4)]),
        "attention_value": ("bhts,bshd->bthd", [(2, 2, 3, 5), (2, 5, 2, 4)]),
        "outer": ("i,j->ij", [(3,), (4,)]),
        "dot": ("i,i->", [(4,), (4,)]),
        "elementwise": ("ij,ij->ij", [(3, 4), (3, 4)]),
        "rows": ("ij,ij->i", [(3, 4), (3, 4)]),
        "turn": ("ij->ji", [(3, 4)]),
        "sum_one": ("ijk->ik", [(2, 3, 4)]),
        "sum_all": ("ij->", [(3, 4)]),
        "dots": ("...ij,...jk->...ik", [(2, 3, 4), (2, 4, 5)]),
        "left_only": ("ijk,kl->jl", [(2, 3, 4), (4, 5)]),
        "join": ("abcd,cde->abe", [(2, 3, 4, 5), (4, 5, 2)]),
        "three": ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
        "dots_unequal": ("...ij,jk->...ik", [(2, 3, 4), (4, 5)]),
        "broadcast_dots": ("...ij,...jk->...ik", [(2, 3, 4), (4, 5)]),
    }
    for name, (equation, shapes) in equations.items():
        case(f"einsum_{name}", lambda *a, e=equation: tf.einsum(e, *a), *[x(*shape) for shape in shapes])
    case("einsum_batch", lambda a, b: tf.einsum("bij,bkj->bik", a, b), x(None, 3, 4), x(None, 5, 4))
    case("diag", tf.linalg.diag, x(3, 4))
    case("set_diag", tf.linalg.set_diag, x(2, 3, 3), x(2, 3))
    case("diag_part", tf.linalg.diag_part, x(2, 3, 3))
    case("band_part", lambda a: tf.linalg.band_part(a, 1, 0), x(2, 4, 4))
    case("band_part_all", lambda a: tf.linalg.band_part(a, -1, 0), x(4, 5))
    case("tensor_diag", tf.linalg.tensor_diag, x(4))
    case("trace", tf.linalg.trace, x(2, 3, 3))
    case("eye", lambda a: a + tf.eye(4), x(4, 4))
    case("eye_dynamic", lambda a: tf.eye(tf.shape(a)[0]), x(None, 4))
    case("matrix_transpose", tf.linalg.matrix_transpose, x(None, 3, 4))
    case("cross", tf.linalg.cross, x(2, 3), x(2, 3))
    case("l2_normalize_matrix", lambda a: tf.linalg.normalize(a, axis=1)[0], x())
    case("tril_mask", lambda a: tf.linalg.band_part(tf.ones([4, 4]), -1, 0) * a, x(None, 4, 4))
    case("global_norm", lambda a, b: tf.linalg.global_norm([a, b]), x(3, 4), x(4))


def conv_cases():
    def kernel(*shape):
        return tf.constant(np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32))

    image = x(None, 8, 8, 3)
    conv = tf.nn.conv2d
    case("conv2d", lambda a: conv(a, kernel(3, 3, 3, 4), 1, "SAME"), image)
    case("conv2d_strides", lambda a: conv(a, kernel(3, 3, 3, 4), [2, 1], "VALID"), image)
    case("conv2d_dilated", lambda a: conv(a, kernel(3, 3, 3, 4), 1, "SAME", dilations=2), image)
    case("conv2d_explicit", lambda a: conv(a, kernel(3, 3, 3, 4), 1, [[0, 0], [1, 2], [0, 1], [0, 0]]), image)
    case("conv2d_groups", lambda a: conv(a, kernel(3, 3, 2, 6), 1, "SAME"), x(None, 8, 8, 4))
    case("conv2d_filter_input", lambda a, b: conv(a, b, 1, "SAME"), image, x(3, 3, 3, 4))
    case("conv1d", lambda a: tf.nn.conv1d(a, kernel(3, 3, 4), 1, "SAME"), x(None, 8, 3))
    case("conv1d_dilated", lambda a: tf.nn.conv1d(a, kernel(3, 3, 4), 1, "SAME", dilations=2), x(None, 8, 3))
    case("atrous", lambda a: tf.nn.atrous_conv2d(a, kernel(3, 3, 3, 4), 2, "SAME"), image)
    case("conv3d", lambda a: tf.nn.conv3d(a, kernel(2, 2, 2, 3, 4), [1, 1, 1, 1, 1], "SAME"), x(None, 4, 4, 4, 3))
    case("depthwise", lambda a: tf.nn.depthwise_conv2d(a, kernel(3, 3, 3, 2), [1, 1, 1, 1], "SAME"), image)
    case("depthwise_stride", lambda a: tf.nn.depthwise_conv2d(a, kernel(3, 3, 3, 1), [1, 2, 2, 1], "VALID"), image)
    case(
        "depthwise_dilated",
        lambda a: tf.nn.depthwise_conv2d(a, kernel(3, 3, 3, 1), [1, 1, 1, 1], "SAME", dilations=[2, 2]),
        image,
    )
    case(
        "separable",
        lambda a: tf.nn.separable_conv2d(a, kernel(3, 3, 3, 2), kernel(1, 1, 6, 4), [1, 1, 1, 1], "SAME"),
        image,
    )
    case("conv2d_transpose", lambda a: tf.nn.conv2d_transpose(a, kernel(3, 3, 4, 3), [2, 16, 16, 4], 2), x(2, 8, 8, 3))
    case(
        "conv2d_transpose_batch",
        lambda a: tf.nn.conv2d_transpose(a, kernel(3, 3, 4, 3), [tf.shape(a)[0], 16, 16, 4], 2),
        image,
    )
    case("conv1d_transpose", lambda a: tf.nn.conv1d_transpose(a, kernel(3, 4, 3), [2, 16, 4], 2), x(2, 8, 3))
    case(
        "conv3d_transpose",
        lambda a: tf.nn.conv3d_transpose(a, kernel(2, 2, 2, 4, 3), [2, 8, 8, 8, 4], 2),
        x(2, 4, 4, 4, 3),
    )
    case("bias_add", lambda a: tf.nn.bias_add(a, [1.0, 2.0, 3.0]), image)
    case(
        "batch_norm",
        lambda a: tf.nn.batch_normalization(a, kernel(3), tf.abs(kernel(3)) + 1.0, kernel(3), kernel(3), 1e-3),
        image,
    )
    case(
        "fused_batch_norm",
        lambda a: tf.compat.v1.nn.fused_batch_norm(
            a, kernel(3), kernel(3), kernel(3), tf.abs(kernel(3)) + 1.0, is_training=False
        )[0],
        image,
    )
    case("lrn", lambda a: tf.nn.local_response_normalization(a, 2, 1.0, 0.5, 0.75), image)
    case("max_pool", lambda a: tf.nn.max_pool2d(a, 2, 2, "SAME"), image)
    case("avg_pool", lambda a: tf.nn.avg_pool2d(a, 3, 2, "VALID"), image)
    case("max_pool1d", lambda a: tf.nn.max_pool1d(a, 2, 2, "SAME"), x(None, 8, 3))
    case("avg_pool1d", lambda a: tf.nn.avg_pool1d(a, 2, 2, "VALID"), x(None, 8, 3))
    case("max_pool3d", lambda a: tf.nn.max_pool3d(a, 2, 2, "VALID"), x(2, 4, 4, 4, 3))
    case("avg_pool3d", lambda a: tf.nn.avg_pool3d(a, 2, 2, "VALID"), x(2, 4, 4, 4, 3))
    case("max_pool_argmax", lambda a: tf.nn.max_pool_with_argmax(a, 2, 2, "VALID")[0], x(1, 8, 8, 3))
    case("dilation2d", lambda a: tf.nn.dilation2d(a, kernel(2, 2, 3), [1] * 4, "SAME", "NHWC", [1] * 4), image)
    case("max_pool_explicit", lambda a: tf.nn.max_pool2d(a, 2, 2, [[0, 0], [1, 1], [1, 1], [0, 0]]), image)


def image_cases():
    image = x(None, 4, 4, 3)
    for method in ["bilinear", "nearest"]:
        case(f"resize_{method}", lambda a, m=method: tf.image.resize(a, [8, 6], method=m), image)
    for method in ["lanczos3", "lanczos5", "gaussian", "mitchellcubic", "bilinear", "bicubic"]:
        for size in ([7, 3], [2, 9]):
            case(
                f"resize_filter_{method}_{size[0]}",
                lambda a, m=method, s=size: tf.image.resize(a, s, method=m, antialias=True),
                x(None, 6, 5, 3),
            )
    case("resize_filter_plain", lambda a: tf.image.resize(a, [3, 9], method="lanczos3"), image)
    case("resize_filter_int", lambda a: tf.image.resize(a, [3, 3], method="gaussian"), ints(0, 255, 1, 4, 4, 3))
    resize = tf.compat.v1.image.resize_bilinear
    case("resize_corners", lambda a: resize(a, [8, 8], align_corners=True), image)
    case("resize_half_pixel", lambda a: resize(a, [8, 8], half_pixel_centers=True), image)
    case("resize_int", lambda a: tf.image.resize(a, [8, 8]), ints(0, 255, 1, 4, 4, 3, dtype="uint8"))
    case("resize_area_like", lambda a: tf.image.resize(a, [2, 2], antialias=False), image)
    case("resize_dynamic", lambda a: tf.image.resize(a, tf.shape(a)[1:3] * 2), x(1, None, None, 3))
    case("flip_left_right", tf.image.flip_left_right, x(4, 4, 3))
    case("flip_up_down", tf.image.flip_up_down, image)
    case("rot90", tf.image.rot90, x(4, 4, 3))
    case("central_crop", lambda a: tf.image.central_crop(a, 0.5), x(1, 8, 8, 3))
    case("crop_to_box", lambda a: tf.image.crop_to_bounding_box(a, 1, 1, 2, 2), image)
    case("pad_to_box", lambda a: tf.image.pad_to_bounding_box(a, 1, 1, 8, 8), image)
    case("resize_with_pad", lambda a: tf.image.resize_with_pad(a, 8, 6), x(1, 4, 4, 3))
    case("resize_with_crop_or_pad", lambda a: tf.image.resize_with_crop_or_pad(a, 6, 2), image)
    case("rgb_to_grayscale", tf.image.rgb_to_grayscale, image)
    case("grayscale_to_rgb", tf.image.grayscale_to_rgb, x(None, 4, 4, 1))
    case("per_image_standardization", tf.image.per_image_standardization, x(2, 4, 4, 3))
    case("adjust_brightness", lambda a: tf.image.adjust_brightness(a, 0.2), image)
    case("adjust_gamma", lambda a: tf.image.adjust_gamma(a, 0.5), positive(None, 4, 4, 3))
    case("rgb_to_yuv", tf.image.rgb_to_yuv, image)
    case("extract_patches", lambda a: tf.image.extract_patches(a, [1, 2, 2, 1], [1, 2, 2, 1], [1] * 4, "VALID"), image)
    case(
        "non_max_suppression",
        lambda a, b: tf.image.non_max_suppression(a, b, 3, 0.5),
        given([0, 0, 1, 1], [0, 0, 1.1, 1], [3, 3, 4, 4], [0, 0.1, 1, 1], dtype="float32"),
        given(0.9, 0.8, 0.7, 0.6, dtype="float32"),
    )
    boxes = given([0, 0, 1, 1], [0, 0, 1.1, 1], [3, 3, 4, 4], [0, 0.1, 1, 1], dtype="float32")
    scores = given(0.9, 0.8, 0.7, 0.6, dtype="float32")
    case(
        "non_max_suppression_padded",
        lambda a, b: tf.raw_ops.NonMaxSuppressionV4(
            boxes=a, scores=b, max_output_size=3, iou_threshold=0.5, score_threshold=0.1, pad_to_max_output_size=True
        )[1],
        boxes,
        scores,
    )
    case(
        "non_max_suppression_soft",
        lambda a, b: tf.raw_ops.NonMaxSuppressionV5(
            boxes=a,
            scores=b,
            max_output_size=3,
            iou_threshold=0.5,
            score_threshold=0.1,
            soft_nms_sigma=0.0,
            pad_to_max_output_size=True,
        )[1],
        boxes,
        scores,
    )
    case("sobel", tf.image.sobel_edges, x(1, 4, 4, 3))
    case("total_variation", tf.image.total_variation, image)
    case("psnr", lambda a, b: tf.image.psnr(a, b, 1.0), x(2, 4, 4, 3), x(2, 4, 4, 3))
    case("depth_to_space", lambda a: tf.nn.depth_to_space(a, 2), x(None, 2, 2, 8))
    case("space_to_depth", lambda a: tf.nn.space_to_depth(a, 2), image)
    case("space_to_batch", lambda a: tf.space_to_batch(a, [2, 2], [[0, 0], [0, 0]]), x(1, 4, 4, 3))
    case("batch_to_space", lambda a: tf.batch_to_space(a, [2, 2], [[0, 0], [0, 0]]), x(4, 2, 2, 3))
    case(
        "there_and_back",
        lambda a: tf.batch_to_space(tf.space_to_batch(a, [2, 2], [[0, 0], [0, 0]]) * 2.0, [2, 2], [[0, 0], [0, 0]]),
        image,
    )


def movement_cases():
    case("reshape", lambda a: tf.reshape(a, [-1, 6]), x(None, 3, 4))
    case("reshape_dynamic", lambda a: tf.reshape(a, [tf.shape(a)[0], 12]), x(None, 3, 4))
    case("squeeze", lambda a: tf.squeeze(a, [1]), x(None, 1, 4))
    case("expand_dims", lambda a: tf.expand_dims(a, -1), x())
    case("transpose", lambda a: tf.transpose(a, [0, 2, 1]), x(None, 3, 4))
    case("transpose_default", tf.transpose, x(3, 4))
    case("concat", lambda a, b: tf.concat([a, b], axis=-1), x(), x())
    case("stack", lambda a, b: tf.stack([a, b], axis=1), x(), x())
    case("unstack", lambda a: tf.unstack(a, axis=1)[2], x())
    case("split", lambda a: tf.split(a, 2, axis=1)[1], x())
    case("split_sizes", lambda a: tf.split(a, [1, 3], axis=1)[1], x())
    case("slice", lambda a: tf.slice(a, [0, 1], [-1, 2]), x())
    case("strided_slice", lambda a: a[:, ::2], x())
    case("strided_slice_new", lambda a: a[:, tf.newaxis, 1:3], x())
    case("strided_slice_back", lambda a: a[::-1, -1], x(3, 4))
    case("strided_slice_ellipsis", lambda a: a[..., 1], x(None, 3, 4))
    case("strided_slice_dynamic", lambda a, n: a[n:], x(4, 3), Input((), np.array(1, np.int32), "int32"))
    case("pad", lambda a: tf.pad(a, [[0, 0], [1, 2]]), x())
    case("pad_value", lambda a: tf.pad(a, [[0, 0], [1, 2]], constant_values=7.0), x())
    case("pad_reflect", lambda a: tf.pad(a, [[0, 0], [1, 2]], mode="REFLECT"), x())
    case("pad_symmetric", lambda a: tf.pad(a, [[0, 0], [1, 2]], mode="SYMMETRIC"), x())
    case("tile", lambda a: tf.tile(a, [1, 2]), x())
    case("repeat", lambda a: tf.repeat(a, 2, axis=1), x())
    case("repeat_each", lambda a: tf.repeat(a, [1, 2, 0], axis=0), x(3, 4))
    case("broadcast_to", lambda a: tf.broadcast_to(a, [3, 4]), x(4))
    case("broadcast_shape", lambda a: tf.broadcast_to(a, tf.shape(a) * 1), x())
    case("reverse", lambda a: tf.reverse(a, [1]), x())
    case("reverse_two", lambda a: tf.reverse(a, [0, 2]), x(2, 3, 4))
    case("reverse_sequence", lambda a, n: tf.reverse_sequence(a, n, 1, 0), x(3, 4), ints(1, 5, 3))
    case("roll", lambda a: tf.roll(a, 1, axis=1), x())
    case("roll_two", lambda a: tf.roll(a, [1, -2], axis=[0, 1]), x(3, 4))
    case("meshgrid", lambda a, b: tf.meshgrid(a, b)[0], x(3), x(4))
    case("sequence_mask", lambda n: tf.sequence_mask(n, 5), ints(0, 5, 3))
    case("sequence_mask_float", lambda n: tf.sequence_mask(n, 5, tf.float32), ints(0, 5, 3))
    case("rank", lambda a: tf.rank(a) + tf.shape(a)[0], x())
    case("size", lambda a: tf.size(a), x())
    case("shape_n", lambda a, b: tf.shape_n([a, b])[1], x(), x(None, 3))
    case("identity_n", lambda a, b: tf.identity_n([a, b])[1], x(), x())
    case("zeros_like", tf.zeros_like, x())
    case("ones_like", tf.ones_like, x())
    case("ones_like_int", tf.ones_like, ints(0, 3))
    case("ones_like_bool", tf.ones_like, mask())
    case("fill", lambda a: tf.fill([tf.shape(a)[0], 2], 3.0), x())
    case("range", lambda a: tf.range(tf.shape(a)[0] * 2), x())
    case("range_float", lambda a: tf.range(0.0, 3.0, 0.5) + a, x(6))
    case("linspace", lambda a: tf.linspace(0.0, 1.0, 4) * a, x())
    case("linspace_dynamic", lambda a, b: tf.linspace(a, b, 5), x(1), x(1))
    case("invert_permutation", tf.math.invert_permutation, given(2, 0, 1, 3))
    case("dynamic_stitch", lambda a, b: tf.dynamic_stitch([[0, 2], [1, 3]], [a, b]), x(2, 3), x(2, 3))
    case("dynamic_partition", lambda a: tf.dynamic_partition(a, [0, 1, 0], 2)[0], x(3, 4))
    case("bitcast", lambda a: tf.bitcast(a, tf.int32), x())
    case("parallel_stack", lambda a, b: tf.stack([a, b, a]), x(3), x(3))
    case("unravel_index", lambda a: tf.unravel_index(a, [3, 4]), ints(0, 12, 5))
    case("moveaxis", lambda a: tf.experimental.numpy.moveaxis(a, 0, 2), x(2, 3, 4))
    case("concat_int", lambda a, b: tf.concat([a, b], 0), ints(0, 5, 3), ints(0, 5, 2))
    case("broadcast_dynamic_shape", lambda a, b: tf.broadcast_dynamic_shape(tf.shape(a), tf.shape(b)), x(), x(4))


def index_cases():
    case("gather", lambda a, i: tf.gather(a, i), x(5, 4), ints(0, 5, 3))
    case("gather_axis", lambda a, i: tf.gather(a, i, axis=1), x(None, 4), ints(0, 4, 3))
    case("gather_batch", lambda a, i: tf.gather(a, i, batch_dims=1), x(3, 4), ints(0, 4, 3, 2))
    case("gather_batch_axis", lambda a, i: tf.gather(a, i, axis=2, batch_dims=1), x(3, 4, 5), ints(0, 5, 3, 2))
    case("gather_nd", tf.gather_nd, x(3, 4), ints(0, 3, 5, 2))
    case("gather_nd_batch", lambda a, i: tf.gather_nd(a, i, batch_dims=1), x(3, 4), ints(0, 4, 3, 2, 1))
    case("embedding_lookup", lambda i: tf.nn.embedding_lookup(np.eye(4, dtype=np.float32), i), ints(0, 4, None, 2))
    case("one_hot", lambda i: tf.one_hot(i, 4), ints(0, 4, None))
    case("one_hot_values", lambda i: tf.one_hot(i, 4, on_value=2.0, off_value=-1.0, axis=0), ints(0, 4, 3))
    case("one_hot_int", lambda i: tf.one_hot(i, 4, dtype=tf.int32), ints(0, 4, 3))
    case("one_hot_bool", lambda i: tf.one_hot(i, 4, on_value=True, off_value=False), ints(0, 4, 3))
    case("scatter_nd", lambda a: tf.scatter_nd([[1], [3]], a, [5, 3]), x(2, 3))
    case("scatter_update", lambda a, b: tf.tensor_scatter_nd_update(a, [[1], [3]], b), x(5, 3), x(2, 3))
    case("scatter_add", lambda a, b: tf.tensor_scatter_nd_add(a, [[1], [3]], b), x(5, 3), x(2, 3))
    case("scatter_sub", lambda a, b: tf.tensor_scatter_nd_sub(a, [[1], [3]], b), x(5, 3), x(2, 3))
    case("scatter_max", lambda a, b: tf.tensor_scatter_nd_max(a, [[1], [3]], b), x(5, 3), x(2, 3))
    case("scatter_update_bool", lambda a: tf.tensor_scatter_nd_update(a, [[1]], [True]), mask(3))
    case("where", tf.where, mask(3, 4))
    case("where_three", tf.where, mask(), x(), x())
    case("where_broadcast", lambda c, a: tf.where(c, a, 0.0), mask(None, 1), x())
    case("select_v1", tf.compat.v1.where, mask(3), x(3, 4), x(3, 4))
    case("boolean_mask", lambda a, m: tf.boolean_mask(a, m), x(3, 4), mask(3))
    case("unique", lambda a: tf.unique(a)[0], given(3, 1, 3, 2, 1))
    case("unique_index", lambda a: tf.unique(a)[1], given(3, 1, 3, 2, 1))
    case("searchsorted", lambda a: tf.searchsorted([0.0, 0.5, 1.0], a), x(4))
    case("bucketize", lambda a: tf.raw_ops.Bucketize(input=a, boundaries=[-1.0, 0.0, 1.0]), x())
    case("sparse_to_dense", lambda a: tf.compat.v1.sparse_to_dense([[0, 1], [2, 2]], [3, 4], a), x(2))
    case("sparse_tensor_to_dense", lambda a: tf.sparse.to_dense(tf.SparseTensor([[0, 1], [2, 2]], a, [3, 4])), x(2))
    case("matrix_lookup", lambda a: tf.nn.embedding_lookup(a, [2, 0]), x(3, 4))
    case("clip", lambda a: tf.clip_by_value(a, -0.5, 0.5), x())
    case("clip_norm", lambda a: tf.clip_by_norm(a, 1.0), x(3, 4))
    case("confusion", lambda a: tf.math.confusion_matrix(a, [0, 1, 2, 1], 3, dtype=tf.float32), ints(0, 3, 4))
    for name in ["int32", "int64", "bool", "uint8", "int8", "float16", "float64", "int16"]:
        case(f"cast_{name}", lambda a, t=name: tf.cast(a, t), positive())
        if name not in ("float16", "float64"):
            case(f"cast_from_{name}", lambda a: tf.cast(a, F), mask() if name == "bool" else ints(0, 2, dtype=name))
    case("saturate_cast", lambda a: tf.saturate_cast(a * 300, tf.uint8), x())
    case("complex_abs", lambda a, b: tf.abs(tf.complex(a, b)), x(3, 4), x(3, 4))
    case("real", lambda a: tf.math.real(tf.signal.rfft2d(a)), x(4, 4))
    case("imag", lambda a: tf.math.imag(tf.signal.rfft2d(a)), x(4, 4))
    case("rfft", lambda a: tf.abs(tf.signal.rfft(a)), x(3, 8))
    case("rfft_length", lambda a: tf.abs(tf.signal.rfft(a, [16])), x(3, 8))
    case("stft", lambda a: tf.abs(tf.signal.stft(a, 8, 4)), x(1, 32))
    case("frame", lambda a: tf.signal.frame(a, 4, 2), x(1, 12))
    case("fake_quant_args", lambda a: tf.quantization.fake_quant_with_min_max_args(a, -3, 3), x())
    case("fake_quant_vars", lambda a: tf.quantization.fake_quant_with_min_max_vars(a, -3.0, 3.0), x())
    case("ensure_shape", lambda a: tf.ensure_shape(a, [None, 4]) + 1.0, x())
    case("check_numerics", lambda a: tf.debugging.check_numerics(a, "no"), x())
    case("assert", checked, x())


def control_cases():
    case("cond", lambda a: tf.cond(tf.reduce_sum(a) > 0, lambda: a * 2.0, lambda: a - 1.0), x())
    case("while", lambda a: tf.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, v * 2.0), [0, a])[1], x())
    case(
        "switch_case",
        lambda i: tf.switch_case(i, [lambda k=k: tf.fill([2], float(k)) for k in range(40)]),
        Input((), np.array(33, np.int32), "int32"),
    )
    case("map_fn", lambda a: tf.map_fn(lambda row: row * 2.0 + tf.reduce_sum(row), a), x(3, 4))
    case("map_fn_batch", lambda a: tf.map_fn(lambda row: row * tf.reduce_sum(row), a), x(None, 4))
    case("vectorized_map", lambda a: tf.vectorized_map(lambda row: row * 2.0, a), x(3, 4))
    case("scan", lambda a: tf.scan(lambda c, row: c * 0.5 + row, a), x(5, 3))
    case("scan_batch", lambda a: tf.scan(lambda c, row: c * 0.5 + row, a), x(None, 3))
    case("foldl", lambda a: tf.foldl(lambda c, row: c * 0.5 + row, a), x(None, 3))
    case("foldr", lambda a: tf.foldr(lambda c, row: c * 0.5 + row, a), x(4, 3))
    case("tensor_array", write_array, x(None, 3))
    case("tensor_array_fixed", read_array, x(4, 3))


def checked(a):
    tf.debugging.assert_equal(tf.shape(a)[1], 4)
    return a * 2.0


def write_array(a):
    array = tf.TensorArray(tf.float32, size=tf.shape(a)[0], element_shape=[3])
    for i in tf.range(tf.shape(a)[0]):
        array = array.write(i, a[i] * tf.cast(i, tf.float32))
    return array.stack()


def read_array(a):
    array = tf.TensorArray(tf.float32, size=4).unstack(a)
    result = tf.zeros([3])
    for i in tf.range(4):
        result = result * 0.5 + array.read(3 - i)
    return result + tf.reduce_sum(array.gather([0, 2]), axis=0)


def fill_table():
    for family in (
        unary_cases,
        binary_cases,
        reduction_cases,
        matrix_cases,
        conv_cases,
        image_cases,
        movement_cases,
        index_cases,
        control_cases,
    ):
        family()


def concrete(name):
    """The function of the case, traced, and its inputs in a run."""
    function, inputs = CASES[name]
    traced = tf.function(
        lambda *given: function(*given), input_signature=[i.spec(f"in{k}") for k, i in enumerate(inputs)]
    )
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    return traced, [i.example(rng) for i in inputs]


fill_table()
