# SPDX-License-Identifier: Apache-2.0
"""Published advisories about TensorFlow Lite (section 1e of the museum): one exhibit for each CVE."""

from __future__ import annotations

import numpy as np
from exhibit import Exhibit, op, view
from exhibits import advisories_2021
from exhibits.checks import converted_transpose_conv
from exhibits.loading import EVERY_LENGTH, every_place
from exhibits.models import compressed, relu, stored_rows
from exhibits.operands import F32, HUGE, I32, absent, conv, floats, gather_nd, ints, with_shape, without_data
from harness import VALID, Case, constant, given, result
from surgery import edited


def _reshape_to(shape) -> bytes:
    return Case("RESHAPE", "", [given(floats(1)), constant(np.array(shape, I32))], [result(F32)]).model()


def _sparse(change) -> bytes:
    """x + a sparse matrix, with `change` applied to the dimensions of its sparsity."""
    stored, sparsity = stored_rows(np.array([[0, 5, 0, 0], [7, 0, 0, 9]], F32))
    content = compressed(stored, sparsity, (2, 4))

    def edit(model) -> None:
        tensor = next(t for t in model.subgraphs[0].tensors if t.sparsity is not None)
        change(tensor.sparsity.dim_metadata)

    return edited(content, edit)


TRANSPOSE_CONV_IN_TENSORFLOW = """
import numpy as np
import tensorflow as tf

weights = np.arange(1, 37, dtype=np.float32).reshape(3, 3, 2, 2) / 36

@tf.function(input_signature=[tf.TensorSpec([1, 4, 4, 2], tf.float32)])
def grow(x):
    return tf.nn.conv2d_transpose(x, weights, [1, 8, 8, 2], 2)

converter = tf.lite.TFLiteConverter.from_concrete_functions([grow.get_concrete_function()])
converter.optimizations = [tf.lite.Optimize.DEFAULT]
rng = np.random.default_rng(1)
converter.representative_dataset = lambda: ([rng.normal(size=(1, 4, 4, 2)).astype(np.float32)] for _ in range(8))
converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
print(f"result: {len(converter.convert())} bytes")
"""


def _2018():
    yield Exhibit("TFSA-2018-003", "a file that ends at any byte", "TFSA-2018-003, TOCO's flatbuffers",
                  ours=lambda: every_place(EVERY_LENGTH), theirs=EVERY_LENGTH, model=relu)  # fmt: skip


def _2020():
    axis = ("axis", "-3", "rank 2")
    yield Exhibit("CVE-2020-15207", "negative axis below -rank", "CVE-2020-15207, any op with an axis").shows(
        op("SUM", [given(floats(2, 3)), constant(ints(-3))], [result(F32)], refuses=axis),
        op("SUM", [given(floats(2, 3)), given(ints(-3))], [result(F32)], refuses=axis, called="SUM, axis at run time"),
        op("CONCATENATION", [given(floats(2, 3))] * 2, [result(F32)], refuses=axis, axis=-3),
        op("GATHER", [given(floats(2, 3)), constant(ints(0))], [result(F32)], refuses=axis, axis=-3),
    )
    yield Exhibit("CVE-2020-15208", "dimensions that must be equal differ", "CVE-2020-15208, MatchingDim").shows(
        op(
            "FULLY_CONNECTED",
            [given(floats(1, 4)), constant(floats(2, 3))],
            [result(F32)],
            refuses=("FULLY_CONNECTED", "4", "3"),
        ),
        op(
            "BATCH_MATMUL",
            [given(floats(2, 3)), given(floats(4, 2))],
            [result(F32)],
            refuses=("BATCH_MATMUL", "3", "4"),
        ),
        conv("DEPTHWISE_CONV_2D", floats(1, 3, 3, 2), floats(1, 2, 2, 3), refuses=("DEPTHWISE_CONV_2D", "channels")),
    )
    yield Exhibit("CVE-2020-15209", "an operand whose buffer is the empty one", "CVE-2020-15209").shows(
        op(
            "ADD",
            [given(floats(4)), constant(floats(4))],
            [result(F32)],
            edit=without_data("input1"),
            refuses=("input1", "not computed before it is used"),
        ),
    )
    yield Exhibit("CVE-2020-15210", "a tensor that is input and output of one node", "CVE-2020-15210").shows(
        op(
            "ADD",
            [given(floats(4)), given(floats(4))],
            [result(F32)],
            refuses=("input0",),
            edit=lambda m: setattr(m.subgraphs[0].operators[0], "outputs", [1]),
        ),
        op(
            "RELU",
            [given(floats(4))],
            [result(F32)],
            refuses=("output0",),
            called="RELU on what it writes",
            edit=lambda m: setattr(m.subgraphs[0].operators[0], "inputs", [0]),
        ),
    )
    yield Exhibit("CVE-2020-15211", "-1 where an operand is not optional", "CVE-2020-15211").shows(
        op(
            "MUL",
            [given(floats(4)), given(floats(4))],
            [result(F32)],
            edit=absent(inputs=1),
            refuses=("MUL", "input 1"),
            called="input",
        ),
        op(
            "MUL",
            [given(floats(4)), given(floats(4))],
            [result(F32)],
            edit=absent(outputs=0),
            refuses=("MUL", "output"),
            called="output",
        ),
    )

    def segments(ids, refuses):
        return op("SEGMENT_SUM", [given(floats(3, 2)), given(ints(*ids))], [result(F32)], refuses=refuses)

    yield Exhibit("CVE-2020-15212", "SEGMENT_SUM with a negative id", "CVE-2020-15212").shows(
        segments((-1, 0, 1), ("SEGMENT_SUM", "-1"))
    )
    yield Exhibit("CVE-2020-15213", "SEGMENT_SUM with a huge last id", "CVE-2020-15213").shows(
        segments((0, 1, HUGE - 1), ("SEGMENT_SUM", "2147483646"))
    )
    yield Exhibit("CVE-2020-15214", "SEGMENT_SUM with unsorted ids", "CVE-2020-15214").shows(
        segments((0, 1, 0), ("SEGMENT_SUM", "0 follows 1"))
    )


def _2022():
    yield Exhibit("CVE-2022-21741", "DEPTHWISE_CONV_2D with divisors of 0", "CVE-2022-21741").shows(
        *(
            conv(
                "DEPTHWISE_CONV_2D",
                floats(1, 4, 4, 1),
                floats(1, 2, 2, 1),
                refuses=("DEPTHWISE_CONV_2D", word),
                called=name,
                **{name: 0},
            )
            for name, word in (("stride_w", "stride"), ("dilation_w_factor", "dilation"))
        ),
        conv(
            "DEPTHWISE_CONV_2D",
            floats(1, 2, 2, 1),
            np.ones((1, 2, 2, 1), F32),
            expect=[np.full((1, 1, 1, 1), 10, F32)],
            depth_multiplier=0,
            called="depth_multiplier, which the shapes imply too",
        ),
    )
    yield Exhibit("CVE-2022-23557", "a bias of size 0", "CVE-2022-23557, BiasAndClamp").shows(
        conv("CONV_2D", floats(1, 4, 4, 1), floats(2, 2, 2, 1), bias=np.zeros(0, F32), refuses=("CONV_2D", "bias")),
        op(
            "FULLY_CONNECTED",
            [given(floats(2, 3)), constant(floats(2, 3)), given(np.zeros(0, F32))],
            [result(F32)],
            refuses=("FULLY_CONNECTED", "bias"),
        ),
    )
    yield Exhibit("CVE-2022-23558", "a shape whose product overflows", "CVE-2022-23558, TfLiteIntArray").shows(
        view("3 dimensions", lambda: with_shape([HUGE, HUGE, HUGE]), [floats(2)], refuses=("2147483647",)),
        view("a reshape", lambda: _reshape_to([65536, 65536, 65536, 65536]), [floats(1)], refuses=("RESHAPE",)),
    )
    yield Exhibit("CVE-2022-23559", "EMBEDDING_LOOKUP_SPARSE whose size overflows", "CVE-2022-23559").shows(
        op(
            "EMBEDDING_LOOKUP_SPARSE",
            [
                given(ints(0)),
                given(ints([0, 0, 0])),
                given(ints(65536, 65536, 2)),
                given(floats(1)),
                given(floats(2, 3)),
            ],
            [result(F32)],
            refuses=("EMBEDDING_LOOKUP_SPARSE", "48 GiB", "budget"),
            combiner=0,
        )
    )
    for number, _words, change in (
        ("23560", ("column", "index"), lambda d: d[1].array_indices.values.__setitem__(0, 1_000_000)),
        ("23561", ("segment",), lambda d: d[1].array_segments.values.__setitem__(1, HUGE)),
    ):
        yield Exhibit(f"CVE-2022-{number}", "sparse weights with wrong metadata", f"CVE-2022-{number}").shows(
            view("DENSIFY", lambda change=change: _sparse(change), [floats(2, 4)], refuses=("sparse",)),
            view("negative", lambda: _sparse(lambda d: d[1].array_indices.values.__setitem__(0, -1)), [floats(2, 4)],
                 refuses=("sparse",)),
            view("a dense size of 2^31 - 1", lambda: _sparse(lambda d: setattr(d[0], "dense_size", HUGE)),
                 [floats(2, 4)],
                 refuses=("sparse",)),
        )  # fmt: skip
    values = np.array([[-128, -3, 4, 127]], np.int8)
    yield Exhibit("CVE-2022-29212", "a scale above 1", "CVE-2022-29212").shows(
        op(
            "LESS",
            [given(values, 2.0, 0), given(values[:, ::-1].copy(), 2.0, 0)],
            [result(np.bool_)],
            expect=[values < values[:, ::-1]],
        ),
        op(
            "MUL",
            [given(values, 4.0, 0), given(values, 4.0, 0)],
            [result(np.int8, 1.0, 0)],
            expect=[np.clip(16 * values.astype(int) ** 2, -128, 127).astype(np.int8)],
        ),
    )
    yield Exhibit("CVE-2022-35937", "GATHER_ND with an index past the end", "CVE-2022-35937").shows(
        gather_nd(ints([0, 2]), ("GATHER_ND", "2")), gather_nd(ints([HUGE, HUGE]), ("GATHER_ND",), called="huge")
    )
    yield Exhibit("CVE-2022-35938", "GATHER_ND with constants past the end", "CVE-2022-35938").shows(
        op("GATHER_ND", [constant(floats(2, 2)), constant(ints([5, 0]))], [result(F32)], refuses=("GATHER_ND", "5")),
        op(
            "GATHER_ND",
            [given(floats(2, 2)), given(np.array([[2**40, 0]], np.int64))],
            [result(F32)],
            refuses=("GATHER_ND",),
            called="int64",
        ),
    )
    yield Exhibit("CVE-2022-35939", "SCATTER_ND outside its output", "CVE-2022-35939").shows(
        *(
            op(
                "SCATTER_ND",
                [given(ints([at])), given(floats(1)), constant(ints(4))],
                [result(F32)],
                refuses=("SCATTER_ND", str(at)),
                called=f"index {at}",
            )
            for at in (4, -1, HUGE)
        )
    )
    yield Exhibit(
        "CVE-2022-36027",
        "TRANSPOSE_CONV with per-channel weights",
        "CVE-2022-36027, K08",
        ours=converted_transpose_conv,
        theirs=TRANSPOSE_CONV_IN_TENSORFLOW,
        peer="tensorflow",
    )
    yield Exhibit("CVE-2022-41894", "CONV_3D_TRANSPOSE into a smaller output", "CVE-2022-41894").shows(
        op(
            "CONV_3D_TRANSPOSE",
            [constant(ints(1, 2, 2, 2, 1)), constant(floats(2, 2, 2, 1, 1)), given(floats(1, 4, 4, 4, 1))],
            [result(F32)],
            refuses=("CONV_3D_TRANSPOSE",),
            padding=VALID,
            stride_d=1,
            stride_w=1,
            stride_h=1,
        ),
        op(
            "CONV_3D_TRANSPOSE",
            [constant(ints(1, 3, 3, 3, 1)), constant(floats(2, 2, 2, 1, 2)), given(floats(1, 2, 2, 2, 1))],
            [result(F32)],
            refuses=("CONV_3D_TRANSPOSE", "channel"),
            padding=VALID,
            stride_d=1,
            stride_w=1,
            stride_h=1,
            called="channels",
        ),
    )


def _2023():
    yield Exhibit("CVE-2023-27579", "CONV_2D whose filter has less than 1 input channel", "CVE-2023-27579").shows(
        conv("CONV_2D", floats(1, 4, 4, 2), np.zeros((2, 2, 2, 0), F32), refuses=("CONV_2D", "filter", "empty"))
    )


EXHIBITS = [*_2018(), *_2020(), *advisories_2021.EXHIBITS, *_2022(), *_2023()]
