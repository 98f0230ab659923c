# SPDX-License-Identifier: Apache-2.0
"""Each op with an integer form: quantized models of one node run in LiteRT and here, near the float result."""

import numpy as np
import pytest

import leadline

rng = np.random.default_rng(17)


class X:
    """A float input that samples are given for."""

    def __init__(self, *shape, low=-1.0, high=1.5):
        self.shape, self.low, self.high = shape, low, high

    def sample(self):
        return rng.uniform(self.low, self.high, self.shape).astype(np.float32)


def f32(*shape):
    return rng.uniform(-1.0, 1.0, shape).astype(np.float32)


def i32(*values):
    return np.array(values, np.int32)


CONV = dict(padding=0, stride_w=1, stride_h=1, dilation_w_factor=1, dilation_h_factor=1)
POOL = dict(padding=1, stride_w=2, stride_h=2, filter_width=2, filter_height=2)
BOOLS = np.array([[True, False, True], [False, True, False]])
FIXED = {"LOGISTIC", "TANH", "SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION"}

# op, operands (X: input, arrays: constants, None: absent), attributes, forms, types of the results (None: float)
CASES = [
    ("CONV_2D", [X(1, 5, 5, 3), f32(4, 3, 3, 3), f32(4)], CONV, "8 16"),
    ("DEPTHWISE_CONV_2D", [X(1, 5, 5, 3), f32(1, 3, 3, 6), f32(6)], dict(CONV, depth_multiplier=2), "8 16"),
    ("TRANSPOSE_CONV", [i32(1, 8, 8, 2), f32(2, 2, 2, 3), X(1, 4, 4, 3), f32(2)],
     dict(padding=0, stride_w=2, stride_h=2), "8 16"),
    ("FULLY_CONNECTED", [X(2, 7), f32(5, 7), f32(5)], {}, "8 16"),
    ("FULLY_CONNECTED", [X(2, 7), f32(5, 7), None], {}, "8 16"),
    ("FULLY_CONNECTED", [X(2, 7), X(5, 7), None], {}, "8 16"),
    ("BATCH_MATMUL", [X(2, 3, 4), X(2, 4, 5)], {}, "8 16"),
    ("BATCH_MATMUL", [X(2, 3, 4), f32(2, 4, 5)], {}, "8 16"),
    ("ADD", [X(2, 3), X(2, 3)], {}, "8 16"),
    ("ADD", [X(2, 3), f32(3)], {}, "8 16"),
    ("SUB", [X(2, 3), X(2, 3)], {}, "8 16"),
    ("MUL", [X(2, 3), X(2, 3)], {}, "8 16"),
    ("DIV", [X(2, 3), X(2, 3, low=0.5)], {}, "8"),
    ("SQUARED_DIFFERENCE", [X(2, 3), X(2, 3)], {}, "8"),
    ("MAXIMUM", [X(2, 3), X(2, 3)], {}, "8 16"),
    ("MINIMUM", [X(2, 3), f32(3)], {}, "8 16"),
    ("RELU", [X(2, 3)], {}, "8 16"),
    ("RELU6", [X(2, 3, high=8.0)], {}, "8 16"),
    ("RELU_N1_TO_1", [X(2, 3)], {}, "8"),
    ("RELU_0_TO_1", [X(2, 3)], {}, "8"),
    ("LEAKY_RELU", [X(2, 3)], dict(alpha=0.2), "8 16"),
    ("ELU", [X(2, 3)], {}, "8"),
    ("GELU", [X(2, 3)], {}, "8 16"),
    ("HARD_SWISH", [X(2, 3, low=-3.0)], {}, "8"),
    ("LOGISTIC", [X(2, 3)], {}, "8 16"),
    ("TANH", [X(2, 3)], {}, "8 16"),
    ("PRELU", [X(1, 2, 2, 3), f32(1, 1, 3)], {}, "8"),
    ("SOFTMAX", [X(2, 3)], dict(beta=1.0), "8 16"),
    ("LOG_SOFTMAX", [X(2, 3)], {}, "8"),
    ("L2_NORMALIZATION", [X(2, 3)], {}, "8"),
    ("ABS", [X(2, 3)], {}, "8 16"),
    ("EXP", [X(2, 3)], {}, "8 16"),
    ("LOG", [X(2, 3, low=0.5)], {}, "8 16"),
    ("SQRT", [X(2, 3, low=0.0)], {}, "8 16"),
    ("RSQRT", [X(2, 3, low=0.5)], {}, "8 16"),
    ("EQUAL", [X(2, 3), X(2, 3)], {}, "8", [np.bool_]),
    ("LESS", [X(2, 3), X(2, 3)], {}, "8", [np.bool_]),
    ("GREATER_EQUAL", [X(2, 3), X(2, 3)], {}, "8", [np.bool_]),
    ("SELECT", [BOOLS, X(2, 3), X(2, 3)], {}, "8 16"),
    ("SELECT_V2", [BOOLS, X(2, 3), f32(3)], {}, "8 16"),
    ("ARG_MAX", [X(2, 3), i32(1)], dict(output_type=2), "8", [np.int32]),
    ("TOPK_V2", [X(2, 5), np.int32(2)], {}, "8 16", [None, np.int32]),
    ("AVERAGE_POOL_2D", [X(1, 4, 4, 3)], POOL, "8 16"),
    ("MAX_POOL_2D", [X(1, 4, 4, 3)], POOL, "8 16"),
    ("MEAN", [X(2, 3, 4), i32(1)], dict(keep_dims=False), "8 16"),
    ("SUM", [X(2, 3, 4), i32(1)], dict(keep_dims=False), "8"),
    ("REDUCE_MAX", [X(2, 3, 4), i32(1)], dict(keep_dims=False), "8 16"),
    ("REDUCE_MIN", [X(2, 3, 4), i32(1)], dict(keep_dims=False), "8 16"),
    ("REDUCE_PROD", [X(2, 3, 4), i32(1)], dict(keep_dims=False), "8 16"),
    ("CONCATENATION", [X(2, 3), X(2, 2, high=3.0)], dict(axis=1), "8 16"),
    ("PACK", [X(2, 3), X(2, 3)], dict(values_count=2, axis=0), "8 16"),
    ("UNPACK", [X(2, 3)], dict(num=2, axis=0), "8 16", [None, None]),
    ("SPLIT", [np.int32(1), X(2, 4)], dict(num_splits=2), "8 16", [None, None]),
    ("SPLIT_V", [X(2, 4), i32(1, 3), np.int32(1)], dict(num_splits=2), "8 16", [None, None]),
    ("RESHAPE", [X(2, 3), i32(3, 2)], {}, "8 16"),
    ("SQUEEZE", [X(1, 3)], dict(squeeze_dims=[0]), "8 16"),
    ("EXPAND_DIMS", [X(2, 3), np.int32(0)], {}, "8 16"),
    ("TRANSPOSE", [X(2, 3), i32(1, 0)], {}, "8 16"),
    ("TILE", [X(2, 3), i32(2, 1)], {}, "8 16"),
    ("BROADCAST_TO", [X(1, 3), i32(2, 3)], {}, "8 16"),
    ("FILL", [i32(2, 3), X()], {}, "8 16"),
    ("GATHER", [X(4, 3), i32(2, 0)], dict(axis=0), "8 16"),
    ("GATHER_ND", [X(4, 3), np.array([[2], [0]], np.int32)], {}, "8 16"),
    ("SCATTER_ND", [np.array([[2], [0]], np.int32), X(2, 3), i32(4, 3)], {}, ""),  # fills with level 0
    ("SLICE", [X(3, 4), i32(1, 0), i32(2, 3)], {}, "8 16"),
    ("STRIDED_SLICE", [X(3, 4), i32(0, 1), i32(3, 4), i32(2, 1)], {}, "8 16"),
    ("DYNAMIC_UPDATE_SLICE", [X(3, 4), X(1, 2), i32(1, 1)], {}, "8"),
    ("PAD", [X(2, 3), np.array([[1, 0], [0, 2]], np.int32)], {}, "8 16"),
    ("PADV2", [X(2, 3), np.array([[1, 0], [0, 2]], np.int32), np.float32(0.5)], {}, "8 16"),
    ("MIRROR_PAD", [X(3, 3), np.array([[1, 0], [0, 2]], np.int32)], dict(mode=0), "8 16"),
    ("REVERSE_V2", [X(2, 3), i32(1)], {}, "8 16"),
    ("RESIZE_BILINEAR", [X(1, 3, 3, 2), i32(6, 6)], {}, "8 16"),
    ("RESIZE_NEAREST_NEIGHBOR", [X(1, 3, 3, 2), i32(6, 6)], {}, "8 16"),
    ("SPACE_TO_BATCH_ND", [X(1, 4, 4, 2), i32(2, 2), np.zeros((2, 2), np.int32)], {}, "8 16"),
    ("BATCH_TO_SPACE_ND", [X(4, 2, 2, 2), i32(2, 2), np.zeros((2, 2), np.int32)], {}, "8 16"),
    ("SPACE_TO_DEPTH", [X(1, 4, 4, 2)], dict(block_size=2), "8"),
    ("DEPTH_TO_SPACE", [X(1, 2, 2, 8)], dict(block_size=2), "8"),
]  # fmt: skip


def build(op, operands, attributes, results):
    builder = leadline.ModelBuilder()
    inputs = []
    for i, operand in enumerate(operands):
        if isinstance(operand, X):
            inputs.append(builder.input(f"x{i}", np.float32, operand.shape))
        else:
            inputs.append(None if operand is None else builder.constant(f"c{i}", operand))
    outputs = [builder.tensor(f"y{i}", np.float32 if t is None else t) for i, t in enumerate(results)]
    builder.node(op, inputs, outputs, **attributes)
    builder.output(*outputs)
    return builder.to_tflite()


def run(interpreter_class, content, feeds):
    interpreter = interpreter_class(model_content=content)
    interpreter.allocate_tensors()
    for detail in interpreter.get_input_details():
        interpreter.set_tensor(detail["index"], feeds[detail["name"]])
    interpreter.invoke()
    outputs = interpreter.get_output_details()
    return {d["name"]: interpreter.get_tensor(d["index"]).copy() for d in outputs}


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("case", CASES, ids=[f"{i}-{case[0]}" for i, case in enumerate(CASES)])
def test_rule_is_true(case, bits):
    litert = pytest.importorskip("ai_edge_litert.interpreter").Interpreter
    op, operands, attributes, forms, *rest = case
    results = rest[0] if rest else [None]
    content = build(op, operands, attributes, results)
    samples = [{f"x{i}": x.sample() for i, x in enumerate(operands) if isinstance(x, X)} for _ in range(8)]
    mode = {8: "int8", 16: "int16x8"}[bits]
    if str(bits) not in forms.split():
        with pytest.raises(leadline.UnsupportedError, match=op):
            leadline.quantize(content, mode, samples, allow_float=False)
        return
    quantized = leadline.quantize(content, mode, samples, allow_float=False)
    for sample in samples[:3]:
        exact = run(litert, content, sample)
        there, here = run(litert, quantized, sample), run(leadline.lite.Interpreter, quantized, sample)
        for name, expected in exact.items():
            assert there[name].shape == expected.shape
            if expected.dtype != np.float32:
                continue
            span = max(float(np.abs(expected).max()), 1.0)
            np.testing.assert_allclose(there[name], expected, atol=span * (0.06 if bits == 8 else 0.02))
            np.testing.assert_allclose(here[name], there[name], atol=span * (0.02 if bits == 8 else 0.001))
