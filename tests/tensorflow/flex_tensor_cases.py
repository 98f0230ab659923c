# SPDX-License-Identifier: Apache-2.0
"""Flex ops that place and choose: images, selections, lists, texts, and what needs no other types to be tried."""

import numpy as np
import tensorflow as tf
from flex_cases import RNG, WITH_LOOPS, case, complex_numbers, normal, positive, unit, whole

raw = tf.raw_ops


def image_cases():
    images = RNG.uniform(0, 1, size=(2, 5, 6, 3)).astype("float32")
    for flags in ({}, {"align_corners": True}, {"half_pixel_centers": True}):
        for size in ([9, 4], [3, 3]):
            suffix = "_".join(flags) + f"_{size[0]}"
            case(f"bicubic_{suffix}", lambda a, s=size, f=flags: raw.ResizeBicubic(images=a, size=s, **f), images)
            case(f"bilinear_{suffix}", lambda a, s=size, f=flags: raw.ResizeBilinear(images=a, size=s, **f), images)
            case(
                f"nearest_{suffix}", lambda a, s=size, f=flags: raw.ResizeNearestNeighbor(images=a, size=s, **f), images
            )
    case("bicubic_uint8", lambda a: raw.ResizeBicubic(images=a, size=[9, 4]), whole(0, 255, 1, 5, 6, 3, dtype="uint8"))
    case("area", lambda a: raw.ResizeArea(images=a, size=[2, 4]), images, selected=["ResizeArea"])
    for kernel in ("lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle", "keyscubic", "mitchellcubic"):
        for antialias in (True, False):
            case(
                f"scale_and_translate_{kernel}_{antialias}",
                lambda a, s, k=kernel, f=antialias: raw.ScaleAndTranslate(
                    images=a, size=[9, 4], scale=s, translation=[0.5, -1.25], kernel_type=k, antialias=f
                ),
                images,
                np.array([1.7, 0.6], "float32"),
                selected=["ScaleAndTranslate"],
            )
    case(
        "scale_and_translate_uint8",
        lambda a: raw.ScaleAndTranslate(images=a, size=[3, 9], scale=[0.5, 1.5], translation=[3.0, 0.0]),
        whole(0, 255, 1, 6, 6, 3, dtype="uint8"),
        selected=["ScaleAndTranslate"],
    )
    boxes = np.array([[0.1, 0.2, 0.9, 0.8], [-0.2, 0, 1.2, 1], [0.8, 0.9, 0.1, 0.2]], "float32")
    for method in ("bilinear", "nearest"):
        case(
            f"crop_and_resize_{method}",
            lambda a, b, m=method: tf.image.crop_and_resize(a, b, [0, 1, 1], [4, 3], method=m, extrapolation_value=0.5),
            images,
            boxes,
        )
    case(
        "extract_patches_same",
        lambda a: tf.image.extract_patches(a, [1, 3, 2, 1], [1, 2, 1, 1], [1, 2, 1, 1], "SAME"),
        images,
    )
    case("adjust_contrast", lambda a: tf.image.adjust_contrast(a, 1.7), images)
    case("adjust_hue", lambda a: tf.image.adjust_hue(a, 0.3), images)
    case("adjust_saturation", lambda a: tf.image.adjust_saturation(a, 1.7), images)
    case("rgb_to_hsv", tf.image.rgb_to_hsv, images)
    case("hsv_to_rgb", tf.image.hsv_to_rgb, images)
    transforms = np.array([[0.9, 0.1, 0.4, -0.1, 1.1, -0.3, 0.01, 0.0], [1, 0, 2.5, 0, 1, -1.5, 0, 0]], "float32")
    for mode in ("CONSTANT", "REFLECT", "WRAP", "NEAREST"):
        for method in ("NEAREST", "BILINEAR"):
            case(
                f"projective_{mode}_{method}",
                lambda a, t, m=mode, i=method: raw.ImageProjectiveTransformV3(
                    images=a, transforms=t, output_shape=[5, 6], fill_value=0.25, interpolation=i, fill_mode=m
                ),
                images,
                transforms,
            )
    corners = RNG.uniform(0, 1, size=(8, 2)).astype("float32")
    all_boxes = np.concatenate([corners, corners + 0.3], axis=1).astype("float32")
    scores = RNG.uniform(0, 1, size=8).astype("float32")
    case(
        "nms_v3",
        lambda b, s: raw.NonMaxSuppressionV3(
            boxes=b, scores=s, max_output_size=5, iou_threshold=0.4, score_threshold=0.2
        ),
        all_boxes,
        scores,
    )
    case(
        "nms_v2",
        lambda b, s: raw.NonMaxSuppressionV2(boxes=b, scores=s, max_output_size=5, iou_threshold=0.4),
        all_boxes,
        scores,
    )
    case(
        "combined_nms",
        lambda b, s: tf.image.combined_non_max_suppression(b, s, 3, 6, 0.4, 0.2, clip_boxes=False),
        np.tile(all_boxes[None, :, None, :], [2, 1, 1, 1]),
        RNG.uniform(0, 1, size=(2, 8, 3)).astype("float32"),
    )


def selection_cases():
    for dtype in ("float64", "int64", "complex64", "uint8"):
        values = complex_numbers(3, 4) if dtype == "complex64" else whole(0, 9, 3, 4, dtype=dtype)
        case(f"roll_{dtype}", lambda a: tf.roll(a, [1, -2, 4], axis=[0, 1, 1]), values)
        case(f"pad_{dtype}", lambda a: tf.pad(a, [[1, 0], [0, 2]]), values)
        case(f"tile_{dtype}", lambda a: tf.tile(a, [1, 2]), values)
        case(f"gather_{dtype}", lambda a: tf.gather(a, [1, 0], axis=1), values)
        case(f"concat_{dtype}", lambda a: tf.concat([a, a], 1), values)
        case(f"stack_{dtype}", lambda a: tf.stack([a, a], 1), values)
        case(f"slice_{dtype}", lambda a: a[1:, ::-2], values)
        case(f"transpose_{dtype}", tf.transpose, values)
        case(f"reverse_{dtype}", lambda a: tf.reverse(a, [1]), values)
        case(f"where_{dtype}", lambda a: tf.where(tf.constant([True, False, True, False]), a, tf.zeros_like(a)), values)
        case(f"add_n_{dtype}", lambda a: tf.add_n([a, a, a]), values)
        case(f"scatter_update_{dtype}", lambda a: tf.tensor_scatter_nd_update(a, [[1], [0]], a[:2]), values)
    for op in "Add Sub Max Min".split():
        case(
            f"TensorScatter{op}",
            lambda a, u, o=op: getattr(raw, f"TensorScatter{o}")(tensor=a, indices=[[0, 1], [2, 3], [0, 1]], updates=u),
            normal(3, 4),
            normal(3),
        )
    case("bincount_weights", lambda a, w: raw.Bincount(arr=a, size=6, weights=w), whole(0, 8, 20), positive(20))
    case(
        "dense_bincount",
        lambda a: raw.DenseBincount(input=a, size=5, weights=np.zeros([0], "float32"), binary_output=True),
        whole(0, 8, 3, 6),
    )
    case(
        "dense_bincount_rows",
        lambda a: raw.DenseBincount(input=a, size=5, weights=np.zeros([0], "int64")),
        whole(0, 8, 3, 6, dtype="int64"),
    )
    case("list_diff", lambda a, b: raw.ListDiff(x=a, y=b).out, whole(0, 9, 10), whole(0, 5, 4))
    case("unique", lambda a: tf.unique(a)[0], whole(0, 4, 10))
    case("unique_index", lambda a: tf.unique(a)[1], whole(0, 4, 10, dtype="int64"))
    case("unique_with_counts", lambda a: tf.unique_with_counts(a)[2], whole(0, 4, 10))
    case(
        "upper_bound",
        lambda a, b: raw.UpperBound(sorted_inputs=a, values=b),
        np.sort(normal(2, 6), axis=1),
        normal(2, 3),
    )
    case("in_top_k", lambda a, b: tf.math.in_top_k(b, a, 2), normal(4, 5), whole(0, 5, 4))
    case("dynamic_partition_rows", lambda a: tf.concat(tf.dynamic_partition(a, [1, 0, 1], 2), 0), normal(3, 4))
    case(
        "parallel_stitch",
        lambda a, b: raw.ParallelDynamicStitch(indices=[[0, 2], [1, 3]], data=[a, b]),
        normal(2, 3),
        normal(2, 3),
    )
    case("segment_mean", lambda a: tf.math.segment_mean(a, [0, 0, 2]), normal(3, 4))
    case("segment_max", lambda a: tf.math.segment_max(a, [0, 0, 1]), normal(3, 4))
    case("segment_prod", lambda a: tf.math.segment_prod(a, [0, 0, 1]), normal(3, 4))
    case("segment_min_double", lambda a: tf.math.segment_min(a, [0, 0, 1]), normal(3, 4, dtype="float64"))
    case("unsorted_double", lambda a: tf.math.unsorted_segment_sum(a, [1, 0, 1], 2), normal(3, 4, dtype="float64"))
    case("top_k_double", lambda a: tf.math.top_k(a, 2)[0], normal(3, 6, dtype="float64"))
    case("top_k_double_index", lambda a: tf.math.top_k(a, 2)[1], normal(3, 6, dtype="float64"))
    case("softmax_double", tf.nn.softmax, normal(3, 4, dtype="float64"))
    case("log_softmax_double", tf.nn.log_softmax, normal(3, 4, dtype="float64"))
    case(
        "bucketize_double", lambda a: raw.Bucketize(input=a, boundaries=[-0.5, 0.1, 0.7]), normal(3, 4, dtype="float64")
    )
    case("range_double", lambda a: tf.range(a[0], a[1], a[2]), np.array([0.0, 3.0, 0.5]))
    case("one_hot_double", lambda a: tf.one_hot(a, 4, dtype=tf.float64, axis=0), whole(0, 5, 3))
    case("cast_complex", lambda a: tf.cast(a, tf.complex64), normal(3, 4))
    case("cast_double_int", lambda a: tf.cast(a, tf.int64), normal(3, 4, dtype="float64"))
    case("ctc_greedy", lambda a: raw.CTCGreedyDecoder(inputs=a, sequence_length=[5, 4]).decoded_values, normal(5, 2, 4))
    case("lin_space_double", lambda a: tf.linspace(a, tf.constant(9.0, tf.float64), 5), np.array(1.5))
    case("quantize_vars", lambda a: tf.quantization.fake_quant_with_min_max_vars(a, -1.5, 2.5), normal(3, 4))
    case(
        "quantize_channels",
        lambda a: tf.quantization.fake_quant_with_min_max_vars_per_channel(a, [-1.5, -1, -2], [2.5, 1, 3]),
        normal(4, 3),
    )


def list_cases():
    @tf.function
    def pushed(x):
        items = raw.EmptyTensorList(element_shape=[3], max_num_elements=-1, element_dtype=tf.float32)
        items = raw.TensorListPushBack(input_handle=items, tensor=x[0])
        items = raw.TensorListPushBack(input_handle=items, tensor=x[1] * 2.0)
        items, last = raw.TensorListPopBack(input_handle=items, element_shape=[3], element_dtype=tf.float32)
        items = raw.TensorListPushBack(input_handle=items, tensor=last + 1.0)
        return raw.TensorListStack(input_handle=items, element_shape=[3], element_dtype=tf.float32)

    def gathered(x):
        items = raw.TensorListFromTensor(tensor=x, element_shape=[3])
        items = raw.TensorListSetItem(input_handle=items, index=1, item=x[0] * 5.0)
        items = raw.TensorListResize(input_handle=items, size=5)
        part = raw.TensorListGather(input_handle=items, indices=[4, 1, 0], element_shape=[3], element_dtype=tf.float32)
        length = raw.TensorListLength(input_handle=items)
        shape = raw.TensorListElementShape(input_handle=items, shape_type=tf.int32)
        return part + tf.cast(length + shape[0], tf.float32)

    def scattered(x):
        items = raw.TensorListScatterV2(tensor=x, indices=[2, 0, 3, 2], element_shape=[3], num_elements=5)
        items = raw.TensorListScatterIntoExistingList(input_handle=items, tensor=x[:1] * 7.0, indices=[1])
        item = raw.TensorListGetItem(input_handle=items, index=4, element_shape=[3], element_dtype=tf.float32)
        return item + raw.TensorListStack(input_handle=items, element_shape=[3], element_dtype=tf.float32)

    def split(x):
        items = raw.TensorListSplit(tensor=x, element_shape=[-1, 3], lengths=np.array([1, 3], "int64"))
        joined = raw.TensorListConcatV2(
            input_handle=items, element_shape=[-1, 3], leading_dims=np.zeros([0], "int64"), element_dtype=tf.float32
        )
        return joined.tensor * tf.cast(joined.lengths[1], tf.float32)

    def array_loop(x):
        array = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        for i in tf.range(tf.shape(x)[0]):
            array = array.write(i, x[i] * tf.cast(i, tf.float32))
        return array.stack()

    def growing(x):
        """Elements of different sizes, joined at the end."""
        array = tf.TensorArray(tf.float32, size=3, element_shape=[None, 3], infer_shape=False)
        for i in tf.range(3):
            array = array.write(i, x[: i + 1])
        return array.concat()

    x = normal(4, 3)
    case("list_push_pop", pushed, x)
    case("list_gather", gathered, x)
    case("list_scatter", scattered, x)
    case("list_split_concat", split, x)
    case("tensor_array_loop", array_loop, x)
    case("tensor_array_concat", growing, x)
    WITH_LOOPS.update(["tensor_array_loop", "tensor_array_concat"])


def string_cases():
    words = np.array([b"One two", b"", b"  three,four ", b"f\xc3\xbcnf\x00six"], dtype=object)
    numbers = np.array([b"1.5", b" -2e3", b"7"], dtype=object)
    case("string_join", lambda a: tf.strings.join([a, tf.constant(b"-"), a], separator="|"), words)
    case("string_lower", tf.strings.lower, words)
    case("string_upper", tf.strings.upper, words, selected=["StringUpper"])
    case("string_strip", tf.strings.strip, words)
    case("string_length", tf.strings.length, words)
    case("string_length_characters", lambda a: tf.strings.length(a, unit="UTF8_CHAR"), words)
    case("string_part", lambda a: tf.strings.substr(a, 1, 3), np.array([b"abcdef", b"xy", b"a"], dtype=object))
    case("string_to_number", tf.strings.to_number, numbers)
    case("string_to_double", lambda a: tf.strings.to_number(a, tf.float64), numbers)
    case("string_to_int", lambda a: tf.strings.to_number(a, tf.int64), np.array([b"12", b"-7"], dtype=object))
    long_words = np.array([b"w" * n + b"ord" for n in (0, 1, 3, 6, 12, 20, 40, 62, 130, 1000)], dtype=object)
    case("string_hash", lambda a: tf.strings.to_hash_bucket_fast(a, 2**62), long_words)
    case("string_split_space", lambda a: tuple(raw.StringSplitV2(input=a, sep=b"")), words)
    case("string_split_comma", lambda a: tuple(raw.StringSplitV2(input=a, sep=b",", maxsplit=1)), words)
    case("ragged_texts", lambda a: tf.strings.split(a).to_tensor(b"-"), words)
    lengths, numbers = np.array([3, 0, 2, 1], np.int32), normal(6)
    case("ragged_numbers", lambda v, n: tf.RaggedTensor.from_row_lengths(v, n).to_tensor(-1.0), numbers, lengths)
    case(
        "ragged_in_ragged",
        lambda v: tf.RaggedTensor.from_nested_row_splits(v, [[0, 1, 3], [0, 2, 2, 6]]).to_tensor(shape=[3, None, 3]),
        numbers,
    )
    for dtype in ("float32", "float64", "int32", "int64"):
        case(f"as_string_{dtype}", tf.strings.as_string, whole(-99, 99, 5).astype(dtype))
    case("as_string_bool", tf.strings.as_string, np.array([True, False]))
    case("as_string_precision", lambda a: tf.strings.as_string(a, precision=2, width=9, fill="0"), normal(5))
    case("as_string_scientific", lambda a: tf.strings.as_string(a, scientific=True, precision=3), normal(5))


def more_cases():
    """Ops that need no other types to be tried, each once."""
    image = normal(2, 6, 6, 4)
    volume = normal(1, 4, 4, 4, 2)
    case(
        "conv2d",
        lambda a, w: tf.nn.conv2d(a, w, [1, 2, 1, 1], "SAME", dilations=[1, 1, 2, 1]),
        image,
        normal(3, 2, 2, 6),
    )
    case(
        "conv2d_explicit",
        lambda a, w: tf.nn.conv2d(a, w, 2, [[0, 0], [1, 2], [0, 1], [0, 0]]),
        image,
        normal(3, 2, 4, 5),
    )
    case(
        "conv2d_double",
        lambda a, w: tf.nn.conv2d(a, w, 1, "VALID"),
        image.astype("float64"),
        normal(3, 2, 4, 5, dtype="float64"),
    )
    case("conv3d", lambda a, w: tf.nn.conv3d(a, w, [1, 1, 2, 1, 1], "SAME"), volume, normal(2, 2, 2, 2, 3))
    case("depthwise", lambda a, w: tf.nn.depthwise_conv2d(a, w, [1, 1, 1, 1], "SAME"), image, normal(3, 3, 4, 2))
    case("conv_transpose", lambda a, w: tf.nn.conv2d_transpose(a, w, [2, 12, 12, 3], 2), image, normal(3, 3, 3, 4))
    case("max_pool", lambda a: raw.MaxPool(input=a, ksize=[1, 3, 2, 1], strides=[1, 2, 1, 1], padding="SAME"), image)
    case("avg_pool", lambda a: raw.AvgPool(value=a, ksize=[1, 3, 2, 1], strides=[1, 2, 1, 1], padding="SAME"), image)
    case("max_pool3d", lambda a: tf.nn.max_pool3d(a, 2, 2, "SAME"), volume)
    case("avg_pool3d", lambda a: tf.nn.avg_pool3d(a, 3, 2, "SAME"), volume)
    for batch in (False, True):
        case(
            f"max_pool_argmax_{batch}",
            lambda a, b=batch: tuple(tf.nn.max_pool_with_argmax(a, 2, 2, "SAME", include_batch_in_index=b)),
            image,
        )
    case(
        "dilation2d",
        lambda a, w: tf.nn.dilation2d(a, w, [1, 1, 2, 1], "SAME", "NHWC", [1, 2, 1, 1]),
        image,
        normal(2, 2, 4),
    )
    case("bias_add", tf.nn.bias_add, image, normal(4))
    for op in ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"):
        case(
            op,
            lambda a, s, o, m, v, n=op: getattr(raw, n)(x=a, scale=s, offset=o, mean=m, variance=v, epsilon=0.01, is_training=False).y,
            image, normal(4), normal(4), normal(4), positive(4),
        )  # fmt: skip
    case("lrn", lambda a: tf.nn.local_response_normalization(a, 2, 1.0, 0.5, 0.75), image)
    case("leaky_relu", lambda a: tf.nn.leaky_relu(a, 0.3), normal(3, 4))
    case("abs_and_sign", lambda a: raw.Abs(x=a) + raw.Sign(x=a), whole(-9, 9, 8))
    case(
        "is_nan_or_inf",
        lambda a: tf.logical_or(raw.IsNan(x=a), tf.logical_not(raw.IsInf(x=a))),
        np.array([1.0, np.inf, np.nan], "float32"),
        selected=["IsInf"],
    )
    case(
        "logical_and",
        lambda a, b: tf.logical_and(raw.Greater(x=a, y=b), raw.LessEqual(x=a, y=b * 3)),
        whole(0, 9, 8),
        whole(0, 9, 8),
    )
    case("divisions", lambda a, b: raw.Div(x=a, y=b) + raw.TruncateDiv(x=a, y=b), whole(-9, 9, 8), whole(1, 5, 8))
    case("mod", lambda a, b: raw.Mod(x=a, y=b), whole(-9, 9, 8), whole(1, 5, 8), selected=["Mod"])
    case("next_after", lambda a, b: raw.NextAfter(x1=a, x2=b), normal(4), normal(4), selected=["NextAfter"])
    case("approximate_equal", lambda a, b: raw.ApproximateEqual(x=a, y=b, tolerance=0.5), normal(9), normal(9))
    case("any_all", lambda a: tf.logical_or(tf.reduce_any(a > 1, 1), tf.reduce_all(a > -1, 1)), normal(4, 3))
    case("euclidean_norm", lambda a: tf.math.reduce_euclidean_norm(a, 1), normal(3, 4), selected=["EuclideanNorm"])
    case("arg_min", lambda a: raw.ArgMin(input=a, dimension=0, output_type=tf.int32), normal(3, 4))
    case("shapes", lambda a: (tf.rank(a) + tf.size(a)) * tf.shape(a), normal(2, 3))
    case("squeeze_expand", lambda a: tf.expand_dims(raw.Squeeze(input=a, axis=[1]), 2), normal(3, 1, 4))
    case("reshape", lambda a: tf.reshape(a, [-1, 6]), normal(3, 4))
    case("concat_old", lambda a: raw.Concat(concat_dim=1, values=[a, a]), normal(3, 4))
    case("unstack", lambda a: tuple(tf.unstack(a, axis=1)), normal(3, 4, dtype="float64"))
    case("split", lambda a: tuple(tf.split(a, 2, axis=1)), normal(3, 4, dtype="float64"))
    case("split_v", lambda a: tuple(tf.split(a, [1, 3], axis=1)), normal(3, 4, dtype="float64"))
    case("slice", lambda a: tf.slice(a, [0, 1], [-1, 2]), normal(3, 4, dtype="float64"))
    case(
        "pad_v2",
        lambda a: raw.PadV2(input=a, paddings=[[1, 0], [0, 2]], constant_values=tf.constant(7, tf.float64)),
        normal(3, 4, dtype="float64"),
    )
    case("mirror_pad", lambda a: tf.pad(a, [[1, 0], [0, 2]], mode="SYMMETRIC"), normal(3, 4))
    case("broadcast_to", lambda a: tf.broadcast_to(a, [3, 4]), normal(4, dtype="float64"))
    case("broadcast_args", lambda a, b: tf.broadcast_dynamic_shape(tf.shape(a), tf.shape(b)), normal(3, 1), normal(4))
    case("fill", lambda n: tf.fill(n, tf.constant(2.5, tf.float64)), np.array([2, 3], "int32"))
    case("gather_old", lambda a: raw.Gather(params=a, indices=[2, 0]), normal(3, 4))
    case("gather_nd", lambda a: tf.gather_nd(a, [[0, 1], [2, 3]]), normal(3, 4, dtype="float64"))
    case("scatter_nd", lambda a: tf.scatter_nd([[1], [3]], a, [5, 4]), normal(2, 4))
    case("reverse_sequence", lambda a: tf.reverse_sequence(a, [1, 4, 2], 1, 0), normal(3, 4, dtype="float64"))
    case("where_indices", lambda a: tf.where(a > 0), normal(3, 4))
    case("select_old", lambda a: raw.Select(condition=a > 0, x=a, y=-a), normal(3, 4))
    case("space_to_depth", lambda a: tf.nn.space_to_depth(a, 2), image)
    case("depth_to_space", lambda a: tf.nn.depth_to_space(a, 2), image)
    case("space_to_batch", lambda a: tf.space_to_batch(a, [2, 2], [[0, 0], [2, 0]]), image)
    case("batch_to_space", lambda a: tf.batch_to_space(a, [2, 1], [[1, 0], [0, 0]]), image)
    case("fake_quant_args", lambda a: tf.quantization.fake_quant_with_min_max_args(a, -1, 2), normal(3, 4))
    case(
        "sparse_to_dense",
        lambda a: raw.SparseToDense(
            sparse_indices=[[0, 1], [2, 3]], output_shape=[3, 4], sparse_values=a, default_value=0.5
        ),
        normal(2),
    )
    case("invert_permutation", tf.math.invert_permutation, np.array([2, 0, 3, 1], "int32"))
    case("dynamic_stitch", lambda a: tf.dynamic_stitch([[0, 2], [1]], [a[:2], a[2:]]), normal(3, 4))
    case(
        "lower_bound",
        lambda a, b: raw.LowerBound(sorted_inputs=a, values=b),
        np.sort(normal(2, 6), axis=1),
        normal(2, 3),
        selected=["LowerBound"],
    )
    case("in_top_k_old", lambda a, b: raw.InTopK(predictions=a, targets=b, k=2), normal(4, 5), whole(0, 5, 4))
    case("unique_axis", lambda a: tuple(raw.UniqueV2(x=a, axis=np.array([0], "int64"))), whole(0, 4, 10))
    case(
        "unique_axis_counts", lambda a: tuple(raw.UniqueWithCountsV2(x=a, axis=np.array([0], "int64"))), whole(0, 4, 10)
    )
    case("segment_sum", lambda a: tf.math.segment_sum(a, [0, 0, 2]), normal(3, 4, dtype="float64"))
    for op in ("max", "min", "prod"):
        case(
            f"unsorted_{op}",
            lambda a, o=op: getattr(tf.math, f"unsorted_segment_{o}")(a, [1, -1, 1], 3),
            normal(3, 4, dtype="float64"),
        )
    case(
        "diagonals_old",
        lambda a: raw.MatrixSetDiag(
            input=raw.MatrixDiag(diagonal=a), diagonal=raw.MatrixDiagPart(input=raw.MatrixDiag(diagonal=a)) * 2
        ),
        normal(2, 3),
    )
    for op, first in (("MatrixDiagV2", "diagonal"), ("MatrixDiagPartV2", "input")):
        more = {
            "MatrixDiagV2": {"num_rows": -1, "num_cols": 6, "padding_value": 3.0, "k": [-1, 1]},
            "MatrixDiagPartV2": {"padding_value": 3.0, "k": [-2, 1]},
        }[op]
        case(op, lambda a, o=op, n=first, m=more: getattr(raw, o)(**{n: a}, **m), normal(2, 3, 4))
    case(
        "MatrixSetDiagV2",
        lambda a: raw.MatrixSetDiagV2(input=a, k=[-1, 0], diagonal=a[:, :2, :3] * 2.0),
        normal(2, 3, 4),
    )
    for align in ("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT"):
        case(f"diag_part_{align}", lambda a, g=align: tf.linalg.diag_part(a, k=(-2, 1), align=g), normal(2, 4, 5))
    case("tensor_diag", lambda a: raw.DiagPart(input=raw.Diag(diagonal=a)) + a, normal(2, 3))
    corners = RNG.uniform(0, 1, size=(8, 2)).astype("float32")
    boxes = np.concatenate([corners, corners + 0.3], axis=1).astype("float32")
    scores = RNG.uniform(0, 1, size=8).astype("float32")
    case(
        "nms_v1",
        lambda b, s: raw.NonMaxSuppression(boxes=b, scores=s, max_output_size=5, iou_threshold=0.4),
        boxes,
        scores,
    )
    case(
        "nms_v4_padded",
        lambda b, s: tuple(
            raw.NonMaxSuppressionV4(
                boxes=b,
                scores=s,
                max_output_size=7,
                iou_threshold=0.2,
                score_threshold=0.3,
                pad_to_max_output_size=True,
            )
        ),
        boxes,
        scores,
    )
    for sigma in (0.0, 0.5):
        case(
            f"nms_v5_{sigma}",
            lambda b, s, g=sigma: tuple(raw.NonMaxSuppressionV5(boxes=b, scores=s, max_output_size=7, iou_threshold=0.6, score_threshold=0.1, soft_nms_sigma=g)),
            boxes, scores,
        )  # fmt: skip
    case(
        "identities",
        lambda a: tuple(
            tf.identity_n(
                [
                    raw.StopGradient(input=a),
                    raw.PreventGradient(input=a),
                    raw.CheckNumerics(tensor=a, message=""),
                    raw.DeepCopy(x=a),
                    raw.DebugGradientIdentity(input=a),
                ]
            )
        ),
        normal(3),
    )
    case("bitcast", lambda a: tf.bitcast(a, tf.int64), normal(3, dtype="float64"))
    case(
        "cross_entropy",
        lambda a, b: tuple(raw.SoftmaxCrossEntropyWithLogits(features=a, labels=b)),
        normal(3, 4),
        unit(3, 4),
    )
    case(
        "sparse_cross_entropy",
        lambda a: tuple(raw.SparseSoftmaxCrossEntropyWithLogits(features=a, labels=[2, 0, 3])),
        normal(3, 4),
    )
    case("ensure_shape", lambda a: tf.ensure_shape(a, [None, 4]), normal(3, 4))
    case("default_input", lambda a: raw.PlaceholderWithDefault(input=a, shape=[3]), normal(3))
    case("like", lambda a: tf.zeros_like(a) + tf.ones_like(a), normal(3, dtype="float64"))
    case("shuffle_keeps_all", lambda a: tf.sort(raw.RandomShuffle(value=a, seed=3, seed2=4)), whole(0, 99, 12))
    case(
        "projective_v2",
        lambda a, t: raw.ImageProjectiveTransformV2(
            images=a, transforms=t, output_shape=[6, 6], interpolation="BILINEAR"
        ),
        image,
        np.array([[0.9, 0.1, 0.4, -0.1, 1.1, -0.3, 0.01, 0.0]], "float32"),
    )

    def list_ends(x):
        items = raw.TensorListScatter(tensor=x, indices=[1, 0, 3, 2], element_shape=[3])
        return raw.TensorListConcat(input_handle=items, element_dtype=tf.float32, element_shape=[3]).tensor

    case("list_scatter_old", list_ends, normal(4, 3))
    seed = np.array([3, 5], "int32")
    case(
        "StatelessRandomUniformInt",
        lambda s: raw.StatelessRandomUniformInt(shape=[9], seed=s, minval=-3, maxval=40),
        seed,
    )
    case(
        "StatelessRandomUniformFullInt",
        lambda s: raw.StatelessRandomUniformFullInt(shape=[9], seed=s, dtype=tf.uint64),
        seed,
    )
    case("key_counter_alg", lambda s: tuple(raw.StatelessRandomGetKeyCounterAlg(seed=s)), seed)


for group in (image_cases, selection_cases, list_cases, string_cases, more_cases):
    group()
