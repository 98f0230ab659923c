# SPDX-License-Identifier: Apache-2.0
"""What was reported of tflite-micro (section 1d of the museum)."""

from __future__ import annotations

import numpy as np
from exhibit import Exhibit, op, view
from exhibits.checks import in_child
from exhibits.models import relu
from exhibits.operands import floats
from harness import SAME, VALID, Case, constant, given, result
from surgery import Node, edited, locate, patched

import leadline

F32 = np.float32
X = np.array([[1, -2, 3, -4]], F32)


def _three_layers() -> bytes:
    """CONV_2D, AVERAGE_POOL_2D, FULLY_CONNECTED."""
    builder = leadline.ModelBuilder()
    x = builder.input("x", F32, [1, 8, 8, 2])
    a, b, c = (
        builder.tensor(name, F32, shape) for name, shape in (("a", [1, 8, 8, 4]), ("b", [1, 1, 1, 4]), ("c", [1, 3]))
    )
    builder.node("CONV_2D", [x, builder.constant("w", np.ones((4, 3, 3, 2), F32)),
                             builder.constant("b", np.zeros(4, F32))], [a], padding=SAME, stride_w=1,
                 stride_h=1)  # fmt: skip
    builder.node("AVERAGE_POOL_2D", [a], [b], padding=VALID, stride_w=8, stride_h=8, filter_width=8, filter_height=8)
    builder.node("FULLY_CONNECTED", [b, builder.constant("v", np.ones((3, 4), F32)), None], [c])
    builder.output(c)
    return builder.to_tflite()


# Every budget from nothing to more than enough: refused, or run, and never anything in between.
_BUDGETS = """
import sys
import numpy as np
import leadline
content = open(sys.argv[1], "rb").read()
peak = leadline.lite.Interpreter(model_content=content, num_threads=1).plan().peak_bytes
step = int(sys.argv[2])
smallest, refused = None, 0
for limit in [*range(0, peak + 2 * step, step), peak - 1, peak]:
    budget = leadline.Budget(limit)
    try:
        interpreter = leadline.lite.Interpreter(model_content=content, num_threads=1, budget=budget)
        interpreter.allocate_tensors()
        interpreter.invoke()
        smallest = min(limit, smallest or limit)
    except leadline.BudgetError:
        refused += 1
        interpreter = None
    del interpreter
    assert budget.used == 0, limit
assert smallest == peak, (smallest, peak)
print("result:", refused, "budgets refused with BudgetError; the smallest that runs is the plan's,", peak, "bytes")
"""


def _every_budget(step: int) -> str:
    return "right result: " + in_child(_BUDGETS, _three_layers(), str(step))


def _needed_before() -> str:
    interpreter = leadline.lite.Interpreter(model_content=_three_layers(), num_threads=1)
    needed = interpreter.plan().peak_bytes
    assert interpreter.budget.used < needed, "nothing large is taken for the plan"
    interpreter.allocate_tensors()
    interpreter.invoke()
    assert interpreter.counted_peak_bytes() == needed
    return f"right result: plan().peak_bytes says {needed} bytes before anything is allocated, and as many are counted"


def _classes():
    """uint8 CONV_2D with 1001 outputs, the node that smashed the stack."""
    rng = np.random.default_rng(28)
    x = rng.integers(0, 256, (1, 1, 1, 256), np.uint8)
    weights = rng.integers(0, 256, (1001, 1, 1, 256), np.uint8)
    sums = (weights[:, 0, 0].astype(int) - 128) @ (x[0, 0, 0].astype(int) - 128)
    wanted = np.clip(np.rint(sums / 4096) + 128, 0, 255).astype(np.uint8).reshape(1, 1, 1, 1001)
    bias = constant(np.zeros(1001, np.int32), 2.0**-12, 0)
    return op("CONV_2D", [given(x, 1.0, 128), constant(weights, 2.0**-12, 128), bias], [result(np.uint8, 1.0, 128)],
              expect=[wanted], tolerance=1, padding=VALID, stride_w=1, stride_h=1, called="1001 channels")  # fmt: skip


def _speech() -> bytes:
    """1x49x40x1 to 1x4 in uint8: the speech model of the report."""
    builder = leadline.ModelBuilder()
    x = builder.input("x", np.uint8, [1, 49, 40, 1], scales=[0.1], zero_points=[0])
    w = builder.constant("w", np.full((1, 10, 8, 8), 129, np.uint8), scales=[0.5], zero_points=[128])
    a = builder.tensor("a", np.uint8, [1, 25, 20, 8], scales=[0.1], zero_points=[0])
    bias = builder.constant("bias", np.zeros(8, np.int32), scales=[0.05], zero_points=[0])
    builder.node("DEPTHWISE_CONV_2D", [x, w, bias], [a], padding=SAME, stride_w=2, stride_h=2, depth_multiplier=8,
                 fused_activation_function=1)  # fmt: skip
    v = builder.constant("v", np.full((4, 4000), 128, np.uint8), scales=[0.5], zero_points=[128])
    b = builder.tensor("b", np.uint8, [1, 4], scales=[0.1], zero_points=[0])
    builder.node("FULLY_CONNECTED", [a, v, None], [b])
    y = builder.tensor("y", np.uint8, [1, 4], scales=[1 / 256], zero_points=[0])
    builder.node("SOFTMAX", [b], [y], beta=1.0)
    builder.output(y)
    return builder.to_tflite()


def _speech_view():
    """All weights of the second layer are zero: four equal scores."""
    return view("1x49x40x1", _speech, [np.full((1, 49, 40, 1), 7, np.uint8)], outputs=[np.full((1, 4), 64, np.uint8)])


def _compressed(data: bytes, size: int | None = None):
    """A model with tflite-micro's metadata about compressed constants; `size` cuts the constant."""

    def edit(model) -> None:
        model.buffers.append(Node("Buffer", data=list(data)))
        model.metadata = [Node("Metadata", name="COMPRESSION_METADATA", buffer=len(model.buffers) - 1)]
        if size is not None:
            buffer = next(b for b in model.buffers if b.data)
            buffer.data = buffer.data[:size]

    content = Case("ADD", "", [given(X), constant(X)], [result(F32)]).model()
    return lambda: edited(content, edit)


def _decode() -> bytes:
    builder = leadline.ModelBuilder()
    x = builder.input("x", F32, [4])
    packed = builder.constant("packed", np.zeros(4, np.uint8))
    state = builder.constant("state", np.full(16, 255, np.uint8))
    values, y = builder.tensor("values", F32, [4]), builder.tensor("y", F32, [4])
    builder.node("TFLM_DECODE", [packed, state], [values], custom=True)
    builder.node("ADD", [x, values], [y])
    builder.output(y)
    return builder.to_tflite()


def _shared_shape() -> bytes:
    """The shape of the output is the shape vector of the input: one vector, two owners."""
    content = relu()
    source, target = (locate(content, "subgraphs", 0, "tensors", i, "shape") for i in (0, 1))
    low, high = sorted((source, target))
    # An offset can only point forward: the field that comes first takes the vector of the other.
    vector = high + int.from_bytes(content[high : high + 4], "little")
    return patched(content, low, "I", vector - low)


def _handle(shared_name: bool) -> bytes:
    """A variable whose handle has no container, or no name at all."""
    builder = leadline.ModelBuilder()
    x = builder.input("x", F32, [2])
    handle = builder.tensor("handle", leadline.DType.RESOURCE, [1])
    builder.node("VAR_HANDLE", [], [handle], container="c", shared_name="v")
    builder.node("ASSIGN_VARIABLE", [handle, x], [])
    y = builder.tensor("y", F32, [2])
    builder.node("READ_VARIABLE", [handle], [y])
    builder.output(y)

    def edit(model) -> None:
        options = model.subgraphs[0].operators[0].builtin_options
        options.container = None
        if not shared_name:
            options.shared_name = None

    return edited(builder.to_tflite(), edit)


def _variable_of_any_size() -> bytes:
    builder = leadline.ModelBuilder()
    x = builder.input("x", F32, [4], signature=[-1])
    handle = builder.tensor("handle", leadline.DType.RESOURCE, [1])
    builder.node("VAR_HANDLE", [], [handle], shared_name="v")
    builder.node("ASSIGN_VARIABLE", [handle, x], [])
    y = builder.tensor("y", F32, [4])
    builder.node("READ_VARIABLE", [handle], [y])
    builder.output(y)
    return builder.to_tflite()


def _sticky_view():
    """Large, small, large again: what is read is what was written last, and not a byte more."""
    feeds = [[floats(1000)], [floats(2)], [floats(300)]]
    return view("1000, 2, 300", _variable_of_any_size, feeds, outputs=feeds)


_ARENA = "LiteRT has no arena of a given size"

EXHIBITS = [
    Exhibit("M01", "an arena that is too small", "tf#36533", ours=lambda: _every_budget(4096), unseen=_ARENA),
    Exhibit("M02", "arena sizes at which an allocation is forgotten", "tflite-micro#2037",
            ours=lambda: _every_budget(61),
            unseen=_ARENA),
    Exhibit("M03", "stack smashing in CONV_2D with 1001 channels", "tf#37910").shows(_classes()),
    Exhibit("M04", "the constructor dies on a speech model in uint8", "tf#27156").shows(_speech_view()),
    Exhibit("M05", "how many bytes are needed, before they are taken", "tflite-micro#2686", ours=_needed_before,
            unseen=_ARENA),
    Exhibit("M06", "compressed constants larger than their tensor", "public PoC decompress-memory-overflow").shows(
        view("4 bytes for 16", _compressed(b"\x18\0\0\0" + b"\xff" * 60, 4), [X],
             refuses=("input1", "needs 16 bytes", "has 4")),
    ),
    Exhibit("M07", "compression metadata without tables", "public PoC compression-lut-null-tensors").shows(
        view("empty", _compressed(b"\0"), [X], outputs=[X + X]),
        view("nonsense", _compressed(b"\xff" * 64), [X], outputs=[X + X]),
    ),
    Exhibit("M08", "compression with a wrong number of channels", "public PoC decompress-binquant-channels").shows(
        view("15 bytes for 16", _compressed(b"\xff" * 64, 15), [X], refuses=("input1", "needs 16 bytes", "has 15")),
    ),
    Exhibit("M09", "a decoder whose state lies about its channels", "public PoC decode-state-prune-channel").shows(
        view("TFLM_DECODE", _decode, refuses=("TFLM_DECODE", "register")),
    ),
    Exhibit("M10", "two tensors share one shape vector", "public PoC fb-vector-shape-alias").shows(
        view("as it is", _shared_shape, [X], outputs=[np.maximum(X, 0)]),
        view("resized", _shared_shape, [np.tile(X, (3, 1))], outputs=[np.maximum(np.tile(X, (3, 1)), 0)]),
    ),
    Exhibit("M11", "VAR_HANDLE without a container", "public PoC var-handle-null-container").shows(
        view("no container", lambda: _handle(True), [floats(2)], outputs=[floats(2)]),
        view("no name either", lambda: _handle(False), [floats(2)], outputs=[floats(2)]),
    ),
    Exhibit("M12", "a variable keeps the size of its largest value", "public PoC resource-variable-sticky-bytes").shows(
        _sticky_view()
    ),
]  # fmt: skip
