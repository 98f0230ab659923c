# SPDX-License-Identifier: Apache-2.0
"""Small files that ask for hours of work inside of little memory: what runs them must be able to stop.

Each is one node on inputs of a few megabytes. The fuzzer runs them, and mutants of them, with a deadline.
"""

import numpy as np

import leadline

F32, I8, I16, I32, I64 = np.float32, np.int8, np.int16, np.int32, np.int64
ONE_SCALE = dict(scales=[0.1], zero_points=[0])
WINDOW = dict(padding=0, stride_w=1, stride_h=1)
DILATION = dict(dilation_w_factor=1, dilation_h_factor=1)
CUBE = dict(WINDOW, **DILATION, stride_d=1, dilation_d_factor=1)


def _model(op, inputs, outputs, **attributes) -> bytes:
    """Inputs are arrays (constants) or (type, shape); outputs (type, shape). 8 and 16-bit integers are quantized."""
    builder = leadline.ModelBuilder()

    def quantization(dtype):
        return ONE_SCALE if np.dtype(dtype) in (I8, np.uint8, I16) else {}

    numbers = []
    for i, operand in enumerate(inputs):
        if isinstance(operand, np.ndarray):
            numbers.append(builder.constant(f"c{i}", operand))
        else:
            numbers.append(builder.input(f"x{i}", *operand, **quantization(operand[0])))
    results = [builder.tensor(f"y{i}", *o, **quantization(o[0])) for i, o in enumerate(outputs)]
    builder.node(op, numbers, results, **attributes)
    builder.output(*results)
    return builder.to_tflite()


def _scalar(value, dtype=I32):
    return np.array(value, dtype)


def _windows():
    side = 1200
    image = (1, side, side, 1)
    for op in ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"):
        for dtype in (F32,) if op == "L2_POOL_2D" else (F32, I8, np.uint8, I16):
            yield op, [(dtype, image)], [(dtype, image)], dict(WINDOW, filter_width=side, filter_height=side)
    for dtype, weights in ((F32, F32), (I8, I8), (I16, I8)):
        pair = [(dtype, image), (weights, image)]
        yield "CONV_2D", pair, [(dtype, image)], dict(WINDOW, **DILATION)
        yield "DEPTHWISE_CONV_2D", pair, [(dtype, image)], dict(WINDOW, **DILATION, depth_multiplier=1)
    shape = np.array(image, I32)
    yield "TRANSPOSE_CONV", [shape, (F32, image), (F32, image)], [(F32, image)], WINDOW
    cube, filters = (1, 100, 100, 100, 1), (100, 100, 100, 1, 1)
    yield "CONV_3D", [(F32, cube), (F32, filters)], [(F32, cube)], CUBE
    yield "CONV_3D_TRANSPOSE", [np.array(cube, I32), (F32, filters), (F32, cube)], [(F32, cube)], CUBE


def _products():
    side = 2000
    for dtype in (F32, I8, I16):
        for adj_x in (False, True):
            yield "BATCH_MATMUL", [(dtype, (side, side))] * 2, [(dtype, (side, side))], dict(adj_x=adj_x)
    yield "FULLY_CONNECTED", [(I16, (2 * side, side)), (I8, (2 * side, side))], [(I16, (2 * side, 2 * side))], {}


def _searches():
    many = 300_000
    boxes = [(F32, (many, 4)), (F32, (many,)), _scalar(many), _scalar(1, F32), _scalar(-1, F32)]
    yield "NON_MAX_SUPPRESSION_V4", boxes, [(I32, (many,)), (I32, ())], {}
    norm = (1, 1, 10, many)
    yield "LOCAL_RESPONSE_NORMALIZATION", [(F32, norm)], [(F32, norm)], dict(radius=many, bias=1.0, alpha=1.0, beta=0.5)
    million = 1_000_000
    yield "MULTINOMIAL", [(F32, (1, million)), _scalar(million)], [(I64, (1, million))], dict(seed=1, seed2=1)
    yield "UNIQUE", [(I32, (4 * million,))], [(I32, (1,)), (I32, (4 * million,))], dict(idx_out_type=2)
    yield "TOPK_V2", [(F32, (1, 4 * million)), _scalar(million)], [(F32, (1, million)), (I32, (1, million))], {}
    yield "SEGMENT_SUM", [(F32, (million, 1)), (I32, (million,))], [(F32, (1, 1))], {}
    spread = [(F32, (1000,)), np.array([10_000], I32), _scalar(0, F32)]
    yield "DILATE", spread, [(F32, (9_990_001,))], {}
    yield "RFFT2D", [(F32, (1, 2048, 1024)), np.array([2048, 1024], I32)], [(np.complex64, (1, 2048, 513))], {}
    yield "POW", [(I32, (million,)), (I32, (1,))], [(I32, (million,))], {}
    yield "TILE", [(F32, (2, 2)), (I32, (2,))], [(F32, (2, 2))], {}


def models():
    """(name, content)"""
    for part in (_windows(), _products(), _searches()):
        for number, (op, inputs, outputs, attributes) in enumerate(part):
            yield f"heavy {op} {number}", _model(op, inputs, outputs, **attributes)
