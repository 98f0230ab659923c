# SPDX-License-Identifier: Apache-2.0
"""Allocating, resizing, setting tensors and running (section 1b of the museum)."""

from __future__ import annotations

import os
import warnings

import numpy as np
from exhibit import Exhibit, op, view
from exhibits.checks import THREADS, growth_in_child, quietly, refusal, resized_relu, run, threads_and_forks
from exhibits.loading import portable_kernels
from exhibits.models import chain, matmul, relu, stored_rows, strings_of
from exhibits.operands import absent, floats, ints
from harness import SAME, VALID, Case, constant, given, result

import leadline

F32, I32 = np.float32, np.int32
HUGE = 2**31 - 1
X = np.array([[1, -2, 3, -4]], F32)


def _dense_int8(factor: float):
    """FULLY_CONNECTED whose sums are multiplied with `factor`."""
    x = np.array([[1, -2, 3, 4]], np.int8)
    weights = np.array([[1, 1, -1, 1], [2, 0, 1, -1]], np.int8)
    wanted = np.clip(x.astype(int) @ weights.T * factor, -128, 127).astype(np.int8)
    return op("FULLY_CONNECTED", [given(x, 4.0, 0), constant(weights, 2.0, 0), None],
              [result(np.int8, 8.0 / factor, 0)],
              expect=[wanted], called=f"multiplier {factor:g}")  # fmt: skip


def _subtract() -> bytes:
    return Case("SUB", "", [given(np.zeros((1, 16, 16, 1), F32))] * 2, [result(F32, shape=(1, 16, 16, 1))]).model()


def _subtraction() -> str:
    """The reporter's data, whole numbers from -128 to 127: the same image twice, and an image and its mirror."""
    image = np.arange(-128, 128, dtype=F32).reshape(1, 16, 16, 1)
    mirror = np.ascontiguousarray(image[:, ::-1])
    same = quietly(leadline.quantize, _subtract(), "int8", lambda: iter([[image, image]] * 4))
    assert not run(same, image, image)[0].any()
    other = quietly(leadline.quantize, _subtract(), "int8", lambda: iter([[image, mirror], [mirror, image]] * 4))
    got, wanted = run(other, image, mirror)[0], image - mirror
    assert np.abs(got - wanted).max() <= 2 * np.ptp(wanted) / 255
    return "right result: quantized and run, within 2 steps; a difference that was always 0 stays 0"


_SUBTRACT_IN_TENSORFLOW = """
import numpy as np, tensorflow as tf
a, b = tf.keras.Input((16, 16, 1), batch_size=1), tf.keras.Input((16, 16, 1), batch_size=1)
model = tf.keras.Model([a, b], tf.keras.layers.Subtract()([a, b]))
converter = tf.lite.TFLiteConverter.from_keras_model(model)
converter.optimizations = [tf.lite.Optimize.DEFAULT]
image = np.arange(-128, 128, dtype=np.float32).reshape(1, 16, 16, 1)
converter.representative_dataset = lambda: iter([[image, image]] * 4)
converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
converter.inference_input_type = converter.inference_output_type = tf.int8
interpreter = tf.lite.Interpreter(model_content=converter.convert())
interpreter.allocate_tensors()
interpreter.invoke()
print("result: converted and run")
"""


def _set_tensor() -> str:
    interpreter = leadline.lite.Interpreter(model_content=relu())
    first = refusal(lambda: interpreter.set_tensor(0, X), "allocate", kind=ValueError)
    interpreter.allocate_tensors()
    refusal(lambda: interpreter.set_tensor(1, X), kind=ValueError)
    refusal(lambda: interpreter.set_tensor(0, X[:, :2]), "dimension", kind=ValueError)
    interpreter.resize_tensor_input(0, [2, 4])
    refusal(lambda: interpreter.set_tensor(0, np.zeros((2, 4), F32)), "allocate", kind=ValueError)
    refusal(interpreter.invoke, "allocate")
    return first


_SET_TENSOR = """
import sys
import numpy as np
from ai_edge_litert.interpreter import Interpreter
said = []
def attempt(work):
    try:
        work()
        said.append("accepted")
    except Exception as error:
        said.append(f"{type(error).__name__}: {error}")
interpreter = Interpreter(sys.argv[1])
x = np.zeros((1, 4), np.float32)
attempt(lambda: interpreter.set_tensor(0, x))
interpreter.allocate_tensors()
interpreter.resize_tensor_input(0, [2, 4])
attempt(lambda: interpreter.set_tensor(0, np.zeros((2, 4), np.float32)))
print("result:", "; ".join(said))
"""


def _flex_conv() -> bytes:
    builder = leadline.ModelBuilder()
    x = builder.input("x", F32, [1, 2, 4, 4])
    y = builder.tensor("y", F32, [1, 1, 3, 3])
    builder.node("FlexConv2D", [x, builder.constant("w", np.ones((2, 2, 2, 1), F32))], [y], custom_options=b"\0")
    builder.output(y)
    return builder.to_tflite()


def _scalar_outputs() -> bytes:
    """A filter over 640 x 480 and its mean; the file says that every result has shape []."""
    builder = leadline.ModelBuilder()
    x = builder.input("x", F32, [1, 640, 480, 1])
    edges = builder.tensor("edges", F32, [])
    weights = builder.constant("w", np.array([1, 0, -1, 2, 0, -2, 1, 0, -1], F32).reshape(1, 3, 3, 1))
    builder.node(
        "CONV_2D", [x, weights, builder.constant("b", np.zeros(1, F32))], [edges], padding=VALID, stride_w=1, stride_h=1
    )
    mean = builder.tensor("mean", F32, [])
    builder.node("MEAN", [edges, builder.constant("axes", ints(0, 1, 2, 3))], [mean])
    builder.output(edges, mean)
    return builder.to_tflite()


def _scalar_view():
    x = np.tile(np.arange(480, dtype=F32) % 7, (640, 1))[None, ..., None]
    windows = np.lib.stride_tricks.sliding_window_view(x[0, ..., 0], (3, 3))
    edges = (windows * np.array([[1, 0, -1], [2, 0, -2], [1, 0, -1]], F32)).sum((2, 3)).astype(F32)
    return view("declared as []", _scalar_outputs, [x], outputs=[edges[None, ..., None], np.array(edges.mean(), F32)],
                tolerance=1e-3)  # fmt: skip


def _wide_depthwise():
    rng = np.random.default_rng(8)
    x = rng.integers(-128, 128, (1, 5, 5, 2688), np.int8)
    weights = rng.integers(-127, 128, (1, 3, 3, 2688), np.int8)
    padded = np.pad(x[0].astype(int), ((1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (0, 1))
    sums = np.einsum("yxchw,hwc->yxc", windows, weights[0].astype(int))
    wanted = np.clip(np.rint(sums / 1024), -128, 127).astype(np.int8)[None]
    scales = np.full(2688, 2.0**-10)
    bias = constant(np.zeros(2688, I32), scales, np.zeros(2688))
    return op(
        "DEPTHWISE_CONV_2D", [given(x, 1.0, 0), constant(weights, scales, np.zeros(2688), axis=3), bias],
        [result(np.int8, 1.0, 0)], expect=[wanted], tolerance=1, padding=SAME, stride_w=1, stride_h=1,
        depth_multiplier=1,
        called="2688 channels",
    )  # fmt: skip


def _conv(image, weights, refuses, called, **attributes):
    options = dict(padding=VALID, stride_w=1, stride_h=1) | attributes
    bias = constant(np.zeros(weights.shape[0], F32))
    return op(
        "CONV_2D", [given(image), constant(weights), bias], [result(F32)], refuses=refuses, called=called, **options
    )


def _missing_operands():
    """The ops of the reports, each with one operand that is not there."""
    x = given(floats(2, 2))
    stored, sparsity = stored_rows(np.array([[0, 5], [7, 0]], F32))
    nodes = {
        "DENSIFY": ([constant(stored, sparsity=sparsity, shape=(2, 2))], 1, {}),
        "EXP": ([x], 1, {}),
        "MAXIMUM": ([x, given(floats(2, 2))], 1, {}),
        "ONE_HOT": ([given(ints(0, 1)), constant(np.int32(3)), constant(F32(1)), constant(F32(0))], 1, {"axis": -1}),
        "PAD": ([x, constant(np.zeros((2, 2), I32))], 1, {}),
        "SPLIT_V": ([x, constant(ints(1, 1)), constant(np.int32(0))], 2, {"num_splits": 2}),
    }  # fmt: skip
    for name, (inputs, outputs, attributes) in nodes.items():
        results = [result(F32)] * outputs
        for index in range(len(inputs)):
            yield op(name, inputs, results, edit=absent(inputs=index), refuses=(name, f"input {index}"),
                     called=f"{name} input {index}", **attributes)  # fmt: skip
        yield op(name, inputs, results, edit=absent(outputs=0), refuses=(name, "output"), called=f"{name} output",
                 **attributes)  # fmt: skip


def _variable(declared) -> bytes:
    """Writes x to a variable and reads it into a tensor that the file says is larger."""
    builder = leadline.ModelBuilder()
    x = builder.input("x", F32, [1])
    handle = builder.tensor("handle", leadline.DType.RESOURCE, [1])
    builder.node("VAR_HANDLE", [], [handle], shared_name="v")
    builder.node("ASSIGN_VARIABLE", [handle, x], [])
    y = builder.tensor("y", F32, declared)
    builder.node("READ_VARIABLE", [handle], [y])
    builder.output(y)
    return builder.to_tflite()


def _sparse_lookup(places, shape, refuses, called):
    return op(
        "EMBEDDING_LOOKUP_SPARSE",
        [given(ints(0)), given(ints(*places)), given(ints(*shape)), given(floats(1)), given(floats(2, 3))],
        [result(F32)], refuses=refuses, combiner=0, called=called,
    )  # fmt: skip


def _pack(axis):
    return op("PACK", [given(floats(2, 2))] * 2, [result(F32)], refuses=("PACK", "axis", str(axis)), values_count=2,
              axis=axis, called=f"axis {axis}")  # fmt: skip


def _too_big() -> str:
    refusal(lambda: resized_relu([1 << 20, 1 << 20]), "input 'x'", "does not fit into memory")
    return refusal(lambda: resized_relu([1 << 10, 1 << 20]), "budget", "8 GiB", kind=leadline.BudgetError)


_TOO_BIG = """
import resource, sys
from ai_edge_litert.interpreter import Interpreter
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
interpreter = Interpreter(sys.argv[1])
interpreter.resize_tensor_input(0, [1 << 20, 1 << 20])
interpreter.allocate_tensors()
print("result: allocated")
"""

_LOOP = """
import os, sys
import numpy as np
if sys.argv[2] == "litert":
    from ai_edge_litert.interpreter import Interpreter
else:
    from leadline.lite import Interpreter

def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE")

interpreter = Interpreter(sys.argv[1], num_threads=1)
interpreter.allocate_tensors()
x = np.zeros(interpreter.get_input_details()[0]["shape"], np.float32)
for i in range(30_000):
    if i == 1000:
        before = resident()
    interpreter.set_tensor(0, x)
    interpreter.invoke()
    interpreter.get_tensor(1)
print("result: grew by", resident() - before, "bytes in 29,000 runs")
"""


def _loop() -> str:
    said = growth_in_child(_LOOP, relu((1, 1000)), "leadline")
    assert int(said.split()[2]) < 1 << 20, said
    return "right result: resident memory is flat over 30,000 runs"


def _delegates() -> str:
    said = refusal(lambda: leadline.lite.load_delegate("libedgetpu.so.1"), "delegate", "CPU", kind=ValueError)
    refusal(lambda: leadline.lite.Interpreter(model_content=relu(), experimental_delegates=[object()]), "delegate")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        interpreter = leadline.lite.Interpreter(model_content=relu(), device="/GPU:0", on_missing="fallback")
    assert interpreter.device == "/CPU:0" and "/CPU:0" in str(told[0].message)
    return said


def _missing_device() -> str:
    said = refusal(lambda: leadline.lite.Interpreter(model_content=relu(), device="/GPU:77"), "/GPU:77", "/CPU:0")
    refusal(lambda: leadline.lite.load_delegate("/no/such/libgpu.so"), "libgpu.so")
    return said.split(" (")[0]  # what the machine's CPU is called is another matter


_NO_DELEGATE = """
from ai_edge_litert.interpreter import load_delegate
try:
    load_delegate("/no/such/libgpu.so")
except Exception as error:
    print("result:", type(error).__name__ + ":", error)
"""


def _thread_counts() -> str:
    def make(count):
        return leadline.lite.Interpreter(model_content=relu(), num_threads=count)

    said = refusal(lambda: make(0), "num_threads", "0")
    for count in (-2, "4", 1.5):
        refusal(lambda count=count: make(count), "num_threads")
    for count in (None, -1, 1, 3, 1 << 30):
        interpreter = make(count)
        interpreter.allocate_tensors()
        interpreter.set_tensor(0, X)
        interpreter.invoke()
        assert len(os.listdir("/proc/self/task")) < 1000
    return said


_THREAD_COUNTS = """
import sys
from ai_edge_litert.interpreter import Interpreter
said = []
for count in (0, -2, 1 << 30):
    try:
        interpreter = Interpreter(sys.argv[1], num_threads=count)
        interpreter.allocate_tensors()
        interpreter.invoke()
        said.append(f"{count}: runs")
    except Exception as error:
        said.append(f"{count}: {type(error).__name__}: {error}")
print("result:", "; ".join(said))
"""


def _notebook() -> str:
    """A chain of layers in a process that may take 4 MB."""
    interpreter = leadline.lite.Interpreter(model_content=chain(8, 1 << 20), budget="4MB")
    needed = interpreter.plan().peak_bytes
    said = refusal(interpreter.allocate_tensors, "budget", "4 MB", kind=leadline.BudgetError)
    assert needed > 4 << 20
    return said


def _without_scales() -> bytes:
    """An int8 model whose converter lost the scales of one weight."""
    weights = constant(np.ones((1, 2, 2, 1), np.int8))
    return Case("CONV_2D", "", [given(np.zeros((1, 4, 4, 1), np.int8), 0.5, 0), weights, constant(np.zeros(1, I32))],
                [result(np.int8, 0.5, 0)], padding=VALID, stride_w=1, stride_h=1).model()  # fmt: skip


def _smaller_buffer() -> str:
    interpreter = leadline.lite.Interpreter(model_content=relu())
    assert [d["shape"].tolist() for d in interpreter.get_input_details()] == [[1, 4]]
    said = refusal(lambda: interpreter.bind_tensor(1, np.zeros((1, 2), F32)), "shape", "[1, 4]")
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, X)
    interpreter.invoke()
    assert interpreter.get_tensor(1).tolist() == [[1, 0, 3, 0]]
    return said


def _six_dimensions():
    a, b = floats(2, 1, 3, 1, 2, 1), floats(1, 2, 1, 3, 1, 2)
    return op("ADD", [given(a), given(b)], [result(F32)], expect=[a + b], called="rank 6, both broadcast")


EXHIBITS = [
    Exhibit("I01", "int8 sums are multiplied with a number of 1 or more", "tf#62618, CVE-2022-29212").shows(
        _dense_int8(2.0), _dense_int8(16.0), _dense_int8(0.5)
    ),
    Exhibit("I02", "Subtract, quantized with arange(-128, 128)", "tf#61828", ours=_subtraction,
            theirs=_SUBTRACT_IN_TENSORFLOW, peer="tensorflow"),
    Exhibit("I03", "set_tensor without memory, or with memory of another shape", "tf#38993, tf#35675", ours=_set_tensor,
            theirs=_SET_TENSOR).shows(view("as it is", relu, [X], outputs=[np.maximum(X, 0)])),
    Exhibit("I04", "an input is resized to what a RESHAPE cannot take", "tf#46729").shows(
        op("RESHAPE", [given(floats(1, 9), declared=(1, 8)), constant(ints(2, 4))], [result(F32)],
           refuses=("RESHAPE", "[1, 9]", "[2, 4]")),
    ),
    Exhibit("I05", "ADD broadcasts more than 4 dimensions", "tf#43271").shows(_six_dimensions()),
    Exhibit("I06", "a Flex op in a runtime without TensorFlow", "tf#42923").shows(
        view("FlexConv2D", _flex_conv, refuses=("FlexConv2D", "TensorFlow")),
    ),
    Exhibit("I07", "a model of 640 x 480 whose file says [] for its outputs", "tf#35987, tf#32725, tf#25231").shows(
        _scalar_view()
    ),
    Exhibit("I08", "int8 depthwise convolution of 2688 channels", "tf#51516, tensorflow/model-optimization#788").shows(
        _wide_depthwise()
    ),
    Exhibit("I09", "CONV_2D with stride 0", "tf#61902").shows(
        _conv(floats(1, 4, 4, 1), floats(1, 2, 2, 1), ("CONV_2D", "stride"), "stride 0", stride_w=0, stride_h=0),
        _conv(floats(1, 4, 4, 1), floats(1, 2, 2, 1), ("CONV_2D", "dilation"), "dilation 0", dilation_w_factor=0),
        _conv(floats(1, 4, 4, 1), floats(1, 2, 2, 1), ("CONV_2D", "stride"), "stride -1", stride_w=-1),
    ),
    Exhibit("I10", "BATCH_MATMUL of shape 4x0x0x0", "tf#61901").shows(
        op("BATCH_MATMUL", [given(np.zeros((4, 0, 0, 0), F32))] * 2, [result(F32)],
           expect=[np.zeros((4, 0, 0, 0), F32)]),
        op("BATCH_MATMUL", [given(np.zeros((2, 3, 0), F32)), given(np.zeros((2, 0, 4), F32))], [result(F32)],
           expect=[np.zeros((2, 3, 4), F32)], called="3x0 by 0x4"),
    ),
    Exhibit("I11", "CONV_2D whose groups come out as 0", "tf#60622, CVE-2023-27579").shows(
        _conv(floats(1, 4, 4, 2), np.zeros((2, 2, 2, 0), F32), ("CONV_2D", "filter", "empty"), "filter of 0 channels"),
        _conv(floats(1, 4, 4, 2), floats(2, 2, 2, 4), ("CONV_2D", "channels"), "filter of more channels"),
        _conv(floats(1, 4, 4, 3), floats(2, 2, 2, 2), ("CONV_2D", "channels"), "channels that do not divide"),
    ),
    Exhibit("I12", "an operand that is not optional is missing",
            "tf#62161, tf#62163, tf#62165, tf#62166, tf#62167, tf#62169, google-ai-edge/LiteRT#111, #112, #114, #116",
            ).shows(*_missing_operands()),
    Exhibit("I13", "a variable of 4 bytes is read into a larger tensor", "public PoC").shows(
        view("1000000 elements", lambda: _variable([1_000_000]), [floats(1)], outputs=[floats(1)]),
        view("2^29 elements", lambda: _variable([1 << 29]), [floats(1)], outputs=[floats(1)]),
    ),
    Exhibit("I14", "FILL with a crafted string tensor", "public PoC").shows(
        *(view(name, lambda data=data: strings_of(data), refuses=("string",)) for name, data in {
            "count 2^31 - 1": ints(HUGE, 12).tobytes(),
            "negative count": ints(-1, 12).tobytes(),
            "offset past the end": ints(1, 12, 1 << 20).tobytes(),
            "offsets that fall": ints(1, 12, 4).tobytes(),
            "3 bytes": b"\1\0\0",
        }.items()),
        view("a sound one", lambda: strings_of(ints(1, 12, 14).tobytes() + b"ok"),
             outputs=[np.array([b"ok", b"ok", b"ok"], object)]),
    ),
    Exhibit("I15", "EMBEDDING_LOOKUP_SPARSE at coordinate 100000000", "public PoC").shows(
        _sparse_lookup([[100_000_000, 0]], (1, 1), ("EMBEDDING_LOOKUP_SPARSE", "outside the dense shape"), "row"),
        _sparse_lookup([[-1, 0]], (1, 1), ("EMBEDDING_LOOKUP_SPARSE", "outside the dense shape"), "negative"),
    ),
    Exhibit("I16", "SCATTER_ND indices whose offset overflows", "Chromium 481776048").shows(
        *(op("SCATTER_ND", [given(ints([a, b])), given(floats(1)), constant(ints(4, 4))], [result(F32)],
             refuses=("SCATTER_ND", str(a)), called=f"({a}, {b}) of 4x4")
          for a, b in ((1 << 30, 0), ((1 << 30) + 1, 3), (-(1 << 30), 0))),
    ),
    Exhibit("I17", "PACK along an axis that is not there", "public PoC, tflite-micro").shows(
        _pack(4), _pack(-4), _pack(HUGE)
    ),
    Exhibit("I18", "an input too big for the machine", "am15h/tflite_flutter_plugin#74", ours=_too_big,
            theirs=_TOO_BIG).shows(
        view("as it is", relu, [X], outputs=[np.maximum(X, 0)])
    ),
    Exhibit("I19", "memory of a loop of runs", "lt#518", ours=_loop, theirs=_LOOP).shows(
        view("as it is", lambda: relu((1, 1000)), [np.ones((1, 1000), F32)], outputs=[np.ones((1, 1000), F32)])
    ),
    Exhibit("I20", "a delegate that takes the process with it", "tf#58267, tflite-support#919", ours=_delegates,
            unseen="not run: there is no delegate to load here"),
    Exhibit("I21", "a device or its library is not there", "tf#27983, tf#62853", ours=_missing_device,
            theirs=_NO_DELEGATE),
    Exhibit("I22", "the CPU cannot be identified", "tf#75815", ours=portable_kernels,
            unseen="not run: needs such a CPU"),
    Exhibit("I23", "thread counts of 0, -2, 2^30", "tf#42487, tf#57101, tf#40722", ours=_thread_counts,
            theirs=_THREAD_COUNTS).shows(view("as it is", relu, [X], outputs=[np.maximum(X, 0)])),
    Exhibit("I24", "one interpreter in several threads, and after a fork", "tf#49266, tf#54282, tf#26365",
            ours=lambda: threads_and_forks("leadline"),
            theirs=THREADS, model=matmul),
    Exhibit("I25", "a notebook whose machine is too small", "tensil-ai/tensil#89", ours=_notebook,
            unseen="not run: LiteRT has no budget; the memory of the machine is its limit"),
    Exhibit("I26", "an int8 model that no longer fits together", "tflite-support#842, edgetpu#612").shows(
        view("weights without scales", _without_scales, refuses=("CONV_2D", "input1", "scale")),
    ),
    Exhibit("I27", "details of inputs, Flex ops, and a buffer smaller than its tensor", "tf#19505, tf#41046, tf#62240",
            ours=_smaller_buffer).shows(view("FlexConv2D", _flex_conv, refuses=("FlexConv2D", "TensorFlow"))),
]  # fmt: skip
