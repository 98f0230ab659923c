# SPDX-License-Identifier: Apache-2.0
"""What was seen with TensorFlow 2.21 and ai-edge-litert 2.3.0 when Leadline began."""

from __future__ import annotations

import numpy as np
from exhibit import Exhibit, View, op, view
from exhibits.checks import in_child, quietly, run
from exhibits.converting import GROWTH, flat, keras_of_seed
from exhibits.models import relu, transpose_conv, vision_block
from exhibits.operands import floats
from harness import SAME, Case, constant, given, result, state
from mutants import mutant
from surgery import edited
from visitor import Visitor

import leadline

F32 = np.float32


def _mobilenet() -> bytes:
    """Three layers of an int8 MobileNetV1: a convolution, a depthwise one and a pointwise one, then the classifier."""
    rng = np.random.default_rng(1)
    builder = leadline.ModelBuilder()

    def weights(name, *shape):
        return builder.constant(name, rng.normal(0, 0.3, shape).astype(F32))

    x = builder.input("image", F32, [1, 16, 16, 3])
    sizes = {"a": [1, 8, 8, 8], "b": [1, 8, 8, 8], "c": [1, 8, 8, 16], "d": [1, 16], "e": [1, 10], "f": [1, 10]}
    a, b, c, d, e, f = (builder.tensor(name, F32, shape) for name, shape in sizes.items())
    strided = dict(padding=SAME, fused_activation_function=3)
    builder.node("CONV_2D", [x, weights("w1", 8, 3, 3, 3), weights("b1", 8)], [a], stride_w=2, stride_h=2, **strided)
    builder.node("DEPTHWISE_CONV_2D", [a, weights("w2", 1, 3, 3, 8), weights("b2", 8)], [b], stride_w=1, stride_h=1,
                 depth_multiplier=1, **strided)  # fmt: skip
    builder.node("CONV_2D", [b, weights("w3", 16, 1, 1, 8), weights("b3", 16)], [c], stride_w=1, stride_h=1, **strided)
    builder.node("MEAN", [c, builder.constant("axes", np.array([1, 2], np.int32))], [d])
    builder.node("FULLY_CONNECTED", [d, weights("w4", 10, 16), weights("b4", 10)], [e])
    builder.node("SOFTMAX", [e], [f], beta=1.0)
    builder.output(f)
    return builder.to_tflite()


def _images(count: int) -> list[np.ndarray]:
    return [np.random.default_rng(i).uniform(-1, 1, (1, 16, 16, 3)).astype(F32) for i in range(count)]


def quantized_mobilenet() -> bytes:
    return quietly(leadline.quantize, _mobilenet(), "int8", lambda: ([image] for image in _images(40)))


def _small_scores() -> bytes:
    """SOFTMAX with a tiny input scale, as an untrained int8 MobileNet ends: LiteRT aborts on both. That this node is the
    cause in the whole model is likely, not proven."""
    scores = given(np.ones((1, 10), np.int8), 1e-9, 0)
    return Case("SOFTMAX", "", [scores], [result(np.int8, 1 / 256, -128)], version=2, beta=1.0).model()


def _reference_kernels() -> str:
    image = _images(1)[0]
    content = quantized_mobilenet()
    wanted = run(_mobilenet(), image)[0]
    for kind in leadline.lite.OpResolverType:
        got = run(content, image, experimental_op_resolver_type=kind)[0]
        assert np.abs(got - wanted).max() < 0.03, kind
        got = run(_small_scores(), np.arange(10, dtype=np.int8)[None], experimental_op_resolver_type=kind)[0]
        assert np.abs(got - (256 / 10 - 128)).max() <= 1, kind
    return "right result: with every OpResolverType"


_REFERENCE_KERNELS = """
import sys
import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType
interpreter = Interpreter(sys.argv[1], experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
interpreter.allocate_tensors()
interpreter.invoke()
print("result: runs")
"""

MUTANTS = 300


def _bases() -> list[bytes]:
    return [vision_block()[0], quantized_mobilenet(), transpose_conv(), relu()]


def mutant_views() -> list[View]:
    bases = _bases()
    return [view(f"mutant {i}", mutant(bases[i % len(bases)], i), refuses="-", budget=16 << 20) for i in range(MUTANTS)]


def _mutants() -> str:
    counts = {"result": 0, "error": 0}
    with Visitor("leadline.lite") as visitor:
        for shown in mutant_views():
            outcome = visitor.look(shown)
            assert outcome.kind in counts and not outcome.left_bytes, f"{shown.name}: {outcome.kind}: {outcome.text}"
            counts[outcome.kind] += 1
    assert min(counts.values()) > MUTANTS // 20, counts
    return f"right result: of {MUTANTS} mutants {counts['result']} run, {counts['error']} are refused"


_DEBUG_ROUNDS = (
    GROWTH
    + """
import leadline
from leadline.lite import experimental
content = open(sys.argv[1], "rb").read()
images = [np.random.default_rng(i).uniform(-1, 1, (1, 16, 16, 3)).astype(np.float32) for i in range(4)]
quantized = leadline.quantize(content, "int8", lambda: ([image] for image in images))
budget = leadline.Budget("100MB")

def work():
    leadline.debug(content, quantized, lambda: ([image] for image in images), budget=budget)
    assert budget.used == 0, budget.used

grow(work, 60, 20)
"""
)
_DEBUG_ROUNDS_IN_TENSORFLOW = (
    GROWTH
    + """
import tensorflow as tf
layers = tf.keras.layers
model = tf.keras.Sequential([
    layers.Input((16, 16, 3), batch_size=1), layers.Conv2D(8, 3, 2, "same", activation="relu6"),
    layers.DepthwiseConv2D(3, padding="same", activation="relu6"), layers.GlobalAveragePooling2D(), layers.Dense(10)])
images = [np.random.default_rng(i).uniform(-1, 1, (1, 16, 16, 3)).astype(np.float32) for i in range(4)]

def work():
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: ([image] for image in images)
    make = tf.lite.experimental.QuantizationDebugger
    debugger = make(converter=converter, debug_dataset=converter.representative_dataset)
    debugger.run()

grow(work, 12, 4)
"""
)


def _gru() -> str:
    keras = keras_of_seed()
    model = keras.Sequential([keras.Input((5, 3)), keras.layers.GRU(4)])
    x = np.random.default_rng(1).normal(size=(2, 5, 3)).astype(F32)
    converter = leadline.lite.TFLiteConverter.from_keras_model(model)
    np.testing.assert_allclose(run(converter.convert(), x)[0], np.asarray(model(x)), atol=1e-5)
    return "right result: converted, equal to Keras's"


_GRU = """
import tensorflow as tf
model = tf.keras.Sequential([tf.keras.layers.Input((5, 3)), tf.keras.layers.GRU(4)])
print(f"result: converted, {len(tf.lite.TFLiteConverter.from_keras_model(model).convert())} bytes")
"""


def _svdf(kind: type) -> View:
    """SVDF over 6 runs. All scales are powers of 2, so that numpy can say what comes out. A state of int8 is a form of
    tflite-micro's."""
    rng = np.random.default_rng(5)
    inputs, units, memory = 16, 8, 6
    feature = rng.integers(0, 20, (units, inputs), np.int8)
    time = rng.integers(0, 100, (units, memory), kind)
    bias = rng.integers(0, 1000, units, np.int32)
    operands = [
        given(np.zeros((1, inputs), np.int8), 2.0**-5, 0), constant(feature, 2.0**-7, 0), constant(time, 2.0**-10, 0),
        constant(bias, 2.0**-22, 0), state((1, memory * units), kind, 2.0**-12, 0),
    ]  # fmt: skip
    case = Case("SVDF", "", operands, [result(np.int8, 2.0**-8, 0)], rank=1, fused_activation_function=1)
    past = np.zeros((units, memory))
    feeds, outputs = [], []
    for _ in range(6):
        x = rng.integers(0, 20, (1, inputs), np.int8)
        past = np.roll(past, -1, 1)
        past[:, -1] = np.clip(feature.astype(int) @ x[0].astype(int), -32768, 32767)
        y = ((past * time).sum(1) + bias) / 2**14
        feeds.append([x])
        outputs.append([np.clip(np.rint(y), 0, 127).astype(np.int8)[None]])
    if kind is np.int8:
        return view("state of int8", case.model, feeds, refuses=("SVDF", "int8", "expected int16"))
    return view("state of int16", case.model, feeds, outputs=outputs, tolerance=1)


def _blockwise() -> View:
    rng = np.random.default_rng(6)
    levels = rng.integers(-7, 8, (4, 64), np.int8)
    scales = (2.0 ** rng.integers(-4, 2, (4, 2))).astype(np.float16)
    x = rng.integers(-3, 4, (1, 64)).astype(F32)

    def model() -> bytes:
        builder = leadline.ModelBuilder()
        given_x = builder.input("x", F32, [1, 64])
        weights = builder.constant("weights", levels, leadline.DType.INT4)
        builder.blockwise(weights, builder.constant("scales", scales), 32)
        y = builder.tensor("y", F32, [1, 4])
        builder.node("FULLY_CONNECTED", [given_x, weights, None], [y])
        builder.output(y)
        return builder.to_tflite()

    wanted = x @ (levels * np.repeat(scales.astype(F32), 32, 1)).T
    return view("blocks of 32", model, [x], outputs=[wanted.astype(F32)], tolerance=0.02 * float(np.abs(wanted).max()))


def _blockwise_without_data() -> bytes:
    """ADD of a tensor that has blocks, but neither data nor a node that writes it."""
    builder = leadline.ModelBuilder()
    x = builder.input("x", np.int8, [64])
    weights = builder.constant("weights", np.ones(64, np.int8))
    builder.blockwise(weights, builder.constant("scales", np.ones(2, F32)), 32)
    y = builder.tensor("y", np.int8, [64])
    builder.node("ADD", [x, weights], [y])
    builder.output(y)

    def edit(model) -> None:
        next(t for t in model.subgraphs[0].tensors if t.name == "weights").buffer = 0

    return edited(builder.to_tflite(), edit)


def _broadcasts():
    """The ops that end TensorFlow's own interpreter."""
    whole = [np.arange(1, 9, dtype=np.int32).reshape(shape) for shape in ((1, 2, 1, 2, 1, 2), (2, 1, 2, 1, 2, 1))]
    real = [floats(2, 1, 1, 3, 2), floats(1, 4, 1, 1, 2) / 2]
    for name, values, compute in (
        ("MAXIMUM", whole, np.maximum), ("FLOOR_MOD", whole, np.mod), ("POW", real, np.power),
        ("FLOOR_DIV", real, np.floor_divide), ("FLOOR_MOD", real, np.mod),
    ):  # fmt: skip
        wanted = compute(*values)
        yield op(name, [given(value) for value in values], [result(wanted.dtype)], expect=[wanted],
                 called=f"{name} {wanted.dtype}",
                 tolerance=1e-5 * float(np.abs(wanted).max()))  # fmt: skip


_BROADCASTS = """
import sys
import tensorflow as tf
interpreter = tf.lite.Interpreter(sys.argv[1])
interpreter.allocate_tensors()
interpreter.invoke()
print("result: runs")
"""

_ENDLESS = """
import signal, sys, time
import numpy as np
if sys.argv[2] == "litert":
    from ai_edge_litert.interpreter import Interpreter
else:
    from leadline.lite import Interpreter

class Enough(Exception):
    pass

def stop(*_):
    raise Enough

interpreter = Interpreter(sys.argv[1])
interpreter.allocate_tensors()
interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.array([True]))
signal.signal(signal.SIGALRM, stop)
signal.setitimer(signal.ITIMER_REAL, 0.3)
start = time.time()
try:
    interpreter.invoke()
    print("result: ended by itself")
except Enough:
    assert time.time() - start < 30
    print("result: the caller's signal ends the run")
"""


def _endless() -> bytes:
    """WHILE x: x = x."""
    builder = leadline.ModelBuilder()
    condition, body = builder.subgraph("condition"), builder.subgraph("body")
    for graph in (condition, body):
        x, y = graph.input("x", np.bool_, [1]), graph.tensor("y", np.bool_, [1])
        graph.node("LOGICAL_AND", [x, x], [y])
        graph.output(y)
    x, y = builder.input("x", np.bool_, [1]), builder.tensor("y", np.bool_, [1])
    builder.node("WHILE", [x], [y], cond_subgraph_index=condition.index, body_subgraph_index=body.index)
    builder.output(y)
    return builder.to_tflite()


def _stopped() -> str:
    return "right result: " + in_child(_ENDLESS, _endless(), "leadline")


EXHIBITS = [
    Exhibit("S01", "SOFTMAX of nearly equal int8 scores with OpResolverType.BUILTIN_REF", "ai-edge-litert 2.3.0", ours=_reference_kernels,
            theirs=_REFERENCE_KERNELS, model=_small_scores),
    Exhibit("S02", f"{MUTANTS} models changed through the schema", "ai-edge-litert 2.3.0", ours=_mutants),
    Exhibit("S03", "memory of rounds of the quantization debugger", "TensorFlow 2.21",
            ours=lambda: flat(_DEBUG_ROUNDS, _mobilenet()), theirs=_DEBUG_ROUNDS_IN_TENSORFLOW, peer="tensorflow"),
    Exhibit("S04", "conversion of a GRU", "TensorFlow 2.21", ours=_gru, theirs=_GRU, peer="tensorflow",
            needs=("keras",)),
    Exhibit("S05", "int8 SVDF", "ai-edge-litert 2.3.0").shows(_svdf(np.int8), _svdf(np.int16)),
    Exhibit("S06", "FULLY_CONNECTED with blockwise weights", "ai-edge-litert 2.3.0").shows(
        _blockwise(), view("without data", _blockwise_without_data, refuses=("weights",
                                                                             "not computed before it is used"))
    ),
    Exhibit("S07", "elementwise ops that broadcast 5 and 6 dimensions", "TensorFlow 2.21", theirs=_BROADCASTS,
            peer="tensorflow").shows(*_broadcasts()),
    Exhibit("S08", "WHILE without end", "ai-edge-litert 2.3.0", ours=_stopped, theirs=_ENDLESS, model=_endless),
]  # fmt: skip
