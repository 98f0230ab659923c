# SPDX-License-Identifier: Apache-2.0
"""The advisories about TensorFlow Lite that were published in 2021: one exhibit for each CVE."""

from __future__ import annotations

import numpy as np
from exhibit import Exhibit, op, view
from exhibits.checks import l2_over_no_axes
from exhibits.operands import F32, HUGE, I32, absent, conv, floats, gather_nd, ints, pool, with_shape, without_data
from harness import SAME, VALID, Case, constant, given, result, state
from surgery import edited

import leadline


def _svdf(number, title, words, *, edit=None, rank=1):
    operands = [
        given(floats(1, 3)), constant(floats(4, 3)), constant(floats(4, 5)), None, state((1, 20)),
    ]  # fmt: skip
    return Exhibit(number, title, number).shows(
        op("SVDF", operands, [result(F32)], refuses=words, edit=edit, rank=rank)
    )


def _one_subgraph_twice() -> bytes:
    """WHILE with not(x) as condition and as body: legal, and it ends."""
    builder = leadline.ModelBuilder()
    both = builder.subgraph("both")
    x, y = both.input("x", np.bool_, [1]), both.tensor("y", np.bool_, [1])
    both.node("LOGICAL_NOT", [x], [y])
    both.output(y)
    x, y = builder.input("x", np.bool_, [1]), builder.tensor("y", np.bool_, [1])
    builder.node("WHILE", [x], [y], cond_subgraph_index=both.index, body_subgraph_index=both.index)
    builder.output(y)
    return builder.to_tflite()


def _recursion() -> bytes:
    """The same, but what the node calls has that node too."""

    def change(model) -> None:
        model.subgraphs[1].operators = model.subgraphs[0].operators

    return edited(_one_subgraph_twice(), change)


def _concatenation(shape) -> bytes:
    builder = leadline.ModelBuilder()
    parts = [builder.input(f"part{i}", np.int8, shape) for i in range(3)]
    whole = builder.tensor("whole", np.int8, shape)
    builder.node("CONCATENATION", parts, [whole], axis=0)
    builder.output(whole)
    return builder.to_tflite()


def _shape_of_many_dimensions() -> bytes:
    """The shape vector claims 2^29 elements, which the file does not have."""
    from surgery import locate, patched

    content = Case("RELU", "", [given(floats(2))], [result(F32)]).model()
    place = locate(content, "subgraphs", 0, "tensors", 1, "shape")
    start = place + int.from_bytes(content[place : place + 4], "little")
    return patched(content, start, "I", 1 << 29)


def _state_is_no_variable(model) -> None:
    """The state becomes a tensor that nothing writes."""
    for tensor in model.subgraphs[0].tensors:
        tensor.is_variable = False


L2_IN_TENSORFLOW = """
import tensorflow as tf

@tf.function(input_signature=[tf.TensorSpec([2, 3], tf.float32)])
def normalize(x):
    return x * tf.math.rsqrt(tf.reduce_sum(tf.square(x), axis=tf.constant([], tf.int32), keepdims=True))

content = tf.lite.TFLiteConverter.from_concrete_functions([normalize.get_concrete_function()]).convert()
print(f"result: {len(content)} bytes")
"""


def _2021_spring():
    image = floats(1, 4, 4, 1)
    yield Exhibit("CVE-2021-29585", "padding is computed with stride 0", "CVE-2021-29585, ComputeOutSize").shows(
        *(
            conv(
                "CONV_2D",
                image,
                floats(1, 2, 2, 1),
                refuses=("CONV_2D", "stride"),
                padding=padding,
                stride_w=0,
                called=name,
            )
            for padding, name in ((SAME, "SAME"), (VALID, "VALID"))
        )
    )
    yield Exhibit("CVE-2021-29586", "pooling with stride 0", "CVE-2021-29586").shows(
        *(
            pool(kind, (kind, "stride"), stride_h=0, stride_w=0)
            for kind in ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D")
        )
    )
    yield Exhibit("CVE-2021-29587", "SPACE_TO_DEPTH with block size 0", "CVE-2021-29587").shows(
        op("SPACE_TO_DEPTH", [given(image)], [result(F32)], refuses=("SPACE_TO_DEPTH", "block"), block_size=0)
    )
    yield Exhibit("CVE-2021-29588", "TRANSPOSE_CONV with stride 0", "CVE-2021-29588").shows(
        op(
            "TRANSPOSE_CONV",
            [constant(ints(1, 8, 8, 1)), constant(floats(1, 2, 2, 1)), given(image)],
            [result(F32)],
            refuses=("TRANSPOSE_CONV", "stride"),
            padding=SAME,
            stride_w=0,
            stride_h=0,
        )
    )
    yield Exhibit("CVE-2021-29589", "GATHER_ND from empty params", "CVE-2021-29589").shows(
        gather_nd(ints([0, 0]), ("GATHER_ND", "outside"), np.zeros((0, 2), F32))
    )
    empty = np.zeros((0, 4), F32)
    yield Exhibit("CVE-2021-29590", "MINIMUM and MAXIMUM with one empty input", "CVE-2021-29590").shows(
        op("MINIMUM", [given(empty), given(floats(1, 4))], [result(F32)], expect=[empty]),
        op(
            "MAXIMUM",
            [given(np.zeros((0,), F32)), given(floats(3, 4))],
            [result(F32)],
            refuses=("MAXIMUM", "broadcast"),
        ),
    )
    yield Exhibit("CVE-2021-29591", "WHILE whose body and condition are the same subgraph", "CVE-2021-29591").shows(
        view("not(x) is both", _one_subgraph_twice, [np.array([False])], outputs=[np.array([True])]),
        view("a subgraph calls itself", _recursion, [np.array([False])], refuses=("subgraph", "calls itself")),
    )
    yield Exhibit("CVE-2021-29592", "RESHAPE whose shape tensor has no data", "CVE-2021-29592").shows(
        op(
            "RESHAPE",
            [given(floats(4)), constant(ints(2, 2))],
            [result(F32)],
            edit=without_data("input1"),
            refuses=("input1", "not computed before it is used"),
        )
    )
    for name, number in (("BATCH_TO_SPACE_ND", "29593"), ("SPACE_TO_BATCH_ND", "29597")):
        margins = constant(np.zeros((2, 2), I32))
        yield Exhibit(f"CVE-2021-{number}", f"{name} with a block size of 0", f"CVE-2021-{number}").shows(
            op(
                name, [given(floats(4, 2, 2, 1)), constant(ints(0, 2)), margins], [result(F32)], refuses=(name, "block")
            ),
            op(
                name,
                [given(floats(4, 2, 2, 1)), given(ints(2, 0)), margins],
                [result(F32)],
                refuses=(name, "block"),
                called="block at run time",
            ),
        )
    yield Exhibit("CVE-2021-29594", "CONV_2D with dimensions of 0", "CVE-2021-29594").shows(
        conv(
            "CONV_2D", floats(1, 4, 4, 0), floats(1, 2, 2, 0), refuses=("CONV_2D", "filter", "empty"), called="channels"
        ),
        conv("CONV_2D", image, floats(1, 0, 0, 1), refuses=("CONV_2D", "filter"), called="filter size"),
        conv("CONV_2D", floats(0, 4, 4, 1), floats(3, 2, 2, 1), expect=[np.zeros((0, 3, 3, 3), F32)], called="batch"),
    )
    yield Exhibit("CVE-2021-29595", "DEPTH_TO_SPACE with block size 0", "CVE-2021-29595").shows(
        op(
            "DEPTH_TO_SPACE",
            [given(floats(1, 2, 2, 4))],
            [result(F32)],
            refuses=("DEPTH_TO_SPACE", "block"),
            block_size=0,
        )
    )
    yield Exhibit("CVE-2021-29596", "EMBEDDING_LOOKUP in a table without rows", "CVE-2021-29596").shows(
        op(
            "EMBEDDING_LOOKUP",
            [given(ints(0)), given(np.zeros((0, 3), F32))],
            [result(F32)],
            refuses=("EMBEDDING_LOOKUP", "outside"),
        )
    )
    yield _svdf("CVE-2021-29598", "SVDF with rank 0", ("SVDF", "rank"), rank=0)
    yield Exhibit("CVE-2021-29599", "SPLIT into 0 parts", "CVE-2021-29599").shows(
        op("SPLIT", [constant(np.int32(0)), given(floats(4))], [result(F32)], refuses=("SPLIT",), num_splits=0)
    )
    yield Exhibit("CVE-2021-29600", "ONE_HOT of indices with a dimension of 0", "CVE-2021-29600").shows(
        op(
            "ONE_HOT",
            [given(np.zeros((2, 0), I32)), constant(np.int32(3)), constant(F32(1)), constant(F32(0))],
            [result(F32)],
            expect=[np.zeros((2, 0, 3), F32)],
            axis=-1,
        )
    )
    yield Exhibit("CVE-2021-29601", "CONCATENATION whose size overflows", "CVE-2021-29601").shows(
        view("3 x (2^31 - 1) rows", lambda: _concatenation((HUGE, 1)), refuses=("budget", "GiB")),
    )
    yield Exhibit("CVE-2021-29602", "DEPTHWISE_CONV_2D without input channels", "CVE-2021-29602").shows(
        conv(
            "DEPTHWISE_CONV_2D",
            floats(1, 4, 4, 0),
            floats(1, 2, 2, 0),
            refuses=("DEPTHWISE_CONV_2D", "filter", "empty"),
        )
    )
    yield Exhibit("CVE-2021-29603", "ARG_MIN and ARG_MAX with an axis outside the rank", "CVE-2021-29603").shows(
        *(
            op(
                kind,
                [given(floats(2, 3)), constant(np.int32(axis))],
                [result(I32)],
                refuses=(kind, "axis"),
                output_type=2,
                called=f"{kind} {axis}",
            )
            for kind in ("ARG_MIN", "ARG_MAX")
            for axis in (2, 1000, -3)
        )
    )
    yield Exhibit("CVE-2021-29604", "HASHTABLE_LOOKUP with no values", "CVE-2021-29604").shows(
        op(
            "HASHTABLE_LOOKUP",
            [given(ints(5)), given(np.zeros(0, I32)), given(np.zeros((0, 2), F32))],
            [result(F32), result(np.uint8)],
            expect=[np.zeros((1, 2), F32), np.zeros(1, np.uint8)],
        ),
        op(
            "HASHTABLE_LOOKUP",
            [given(ints(5)), given(ints(5)), given(np.zeros((0, 2), F32))],
            [result(F32), result(np.uint8)],
            refuses=("HASHTABLE_LOOKUP",),
            called="one key, no values",
        ),
    )
    yield Exhibit(
        "CVE-2021-29605", "more dimensions than memory for their sizes", "CVE-2021-29605, TfLiteIntArray"
    ).shows(
        view("a shape of 2^29 dimensions", _shape_of_many_dimensions, refuses=("damaged",)),
        view("a shape of 40 dimensions", lambda: with_shape([1] * 40), refuses=("rank 40", "up to 8")),
    )
    yield Exhibit("CVE-2021-29606", "SPLIT_V with an axis outside the rank", "CVE-2021-29606").shows(
        *(
            op(
                "SPLIT_V",
                [given(floats(4, 2)), constant(ints(2, 2)), constant(np.int32(axis))],
                [result(F32)] * 2,
                refuses=("SPLIT_V", "axis"),
                num_splits=2,
                called=f"axis {axis}",
            )
            for axis in (2, -3, HUGE)
        )
    )


def _2021_summer():
    yield Exhibit("CVE-2021-37680", "FULLY_CONNECTED with filters of no inputs", "CVE-2021-37680").shows(
        op(
            "FULLY_CONNECTED",
            [given(floats(2, 3)), given(np.zeros((2, 0), F32))],
            [result(F32)],
            refuses=("FULLY_CONNECTED",),
        ),
        op(
            "FULLY_CONNECTED",
            [given(np.zeros((2, 0), F32)), given(np.zeros((3, 0), F32))],
            [result(F32)],
            expect=[np.zeros((2, 3), F32)],
            called="no inputs at all",
        ),
    )
    yield _svdf(
        "CVE-2021-37681",
        "SVDF whose state is not a variable",
        ("SVDF", "not computed before it is used"),
        edit=_state_is_no_variable,
    )
    yield Exhibit("CVE-2021-37682", "quantized ops on tensors without quantization", "CVE-2021-37682").shows(
        op(
            "CONV_2D",
            [given(np.zeros((1, 4, 4, 1), np.int8)), constant(np.ones((1, 2, 2, 1), np.int8))],
            [result(np.int8)],
            refuses=("CONV_2D", "scale"),
            padding=VALID,
            stride_w=1,
            stride_h=1,
        ),
        op("SOFTMAX", [given(np.zeros((1, 4), np.int8))], [result(np.int8)], refuses=("SOFTMAX", "scale"), beta=1.0),
        op("LOGISTIC", [given(np.zeros((1, 4), np.uint8))], [result(np.uint8)], refuses=("LOGISTIC", "scale")),
        op("ADD", [given(np.zeros(4, np.int8))] * 2, [result(np.int8)], refuses=("ADD", "scale")),
    )
    yield Exhibit("CVE-2021-37683", "DIV of integers by 0", "CVE-2021-37683").shows(
        op("DIV", [given(ints(1, 2)), given(ints(1, 0))], [result(I32)], refuses=("DIV", "0")),
        op("DIV", [given(ints(1, 2)), constant(ints(1, 0))], [result(I32)], refuses=("DIV", "0"), called="constant"),
        op("FLOOR_MOD", [given(ints(1, 2)), given(ints(1, 0))], [result(I32)], refuses=("FLOOR_MOD", "0")),
        op(
            "DIV",
            [given(floats(2)), given(np.zeros(2, F32))],
            [result(F32)],
            expect=[np.full(2, np.inf, F32)],
            called="floats",
        ),
    )
    yield Exhibit("CVE-2021-37684", "pooling with divisors of 0", "CVE-2021-37684").shows(
        *(
            pool(kind, (kind,), filter_width=0, filter_height=0, called=f"{kind}, filter of 0")
            for kind in ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D")
        ),
        pool("AVERAGE_POOL_2D", ("AVERAGE_POOL_2D", "stride"), "stride_w of 0", stride_w=0),
    )
    yield Exhibit("CVE-2021-37685", "EXPAND_DIMS with axis -100000", "CVE-2021-37685").shows(
        *(
            op(
                "EXPAND_DIMS",
                [given(floats(2, 2)), constant(np.int32(axis))],
                [result(F32)],
                refuses=("EXPAND_DIMS", "axis", str(axis)),
                called=f"axis {axis}",
            )
            for axis in (-100000, 4, HUGE, -HUGE - 1)
        )
    )
    yield Exhibit("CVE-2021-37686", "STRIDED_SLICE with an ellipsis after an added axis", "CVE-2021-37686").shows(
        op(
            "STRIDED_SLICE",
            [given(floats(2, 3)), constant(ints(0, 0, 0)), constant(ints(0, 0, 1)), constant(ints(1, 1, 1))],
            [result(F32)],
            expect=[floats(2, 3)[None, ..., 0]],
            new_axis_mask=1,
            ellipsis_mask=2,
            shrink_axis_mask=4,
        ),
        op(
            "STRIDED_SLICE",
            [given(floats(2, 3)), constant(ints(0, 0)), constant(ints(0, 0)), constant(ints(1, 1))],
            [result(F32)],
            refuses=("STRIDED_SLICE", "ellips"),
            ellipsis_mask=3,
            called="two ellipses",
        ),
        op(
            "STRIDED_SLICE",
            [given(floats(2, 3)), constant(ints(0, 0)), constant(ints(2, 3)), constant(ints(1, 0))],
            [result(F32)],
            refuses=("STRIDED_SLICE", "stride"),
            called="stride 0",
        ),
    )
    yield Exhibit("CVE-2021-37687", "GATHER_ND with negative indices", "CVE-2021-37687").shows(
        gather_nd(ints([-1, 0]), ("GATHER_ND", "-1")),
        op("GATHER", [given(floats(4)), given(ints(-2))], [result(F32)], refuses=("GATHER", "-2"), axis=0),
    )
    yield Exhibit("CVE-2021-37688", "optimized kernels with a null operand", "CVE-2021-37688").shows(
        op(
            "CONV_2D",
            [given(floats(1, 4, 4, 1)), constant(floats(1, 2, 2, 1)), constant(floats(1))],
            [result(F32)],
            edit=absent(inputs=1),
            refuses=("CONV_2D", "input 1"),
            padding=VALID,
            stride_w=1,
            stride_h=1,
        ),
        op(
            "FULLY_CONNECTED",
            [given(floats(2, 3)), constant(floats(2, 3)), None],
            [result(F32)],
            edit=absent(inputs=1),
            refuses=("FULLY_CONNECTED", "input 1"),
        ),
    )
    yield Exhibit(
        "CVE-2021-37689",
        "L2 normalization over no axes",
        "CVE-2021-37689, K09",
        ours=l2_over_no_axes,
        theirs=L2_IN_TENSORFLOW,
        peer="tensorflow",
    ).shows(
        op("L2_NORMALIZATION", [given(np.zeros((2, 0), F32))], [result(F32)], expect=[np.zeros((2, 0), F32)]),
    )
    yield Exhibit("CVE-2021-37691", "LSH_PROJECTION of an input without rows", "CVE-2021-37691").shows(
        op(
            "LSH_PROJECTION",
            [constant(floats(2, 2)), given(np.zeros((0, 2), I32))],
            [result(I32)],
            refuses=("LSH_PROJECTION",),
            type=2,
        ),
        op(
            "LSH_PROJECTION",
            [constant(np.zeros((0, 2), F32)), given(ints([1, 2]))],
            [result(I32)],
            expect=[np.zeros(0, I32)],
            type=1,
            called="no seeds",
        ),
    )


EXHIBITS = [*_2021_spring(), *_2021_summer()]
