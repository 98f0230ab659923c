# SPDX-License-Identifier: Apache-2.0
"""Loading a file (section 1a of the museum)."""

from __future__ import annotations

import importlib.util

import numpy as np
from exhibit import Exhibit, view
from exhibits.checks import in_child, run
from exhibits.models import compressed, relu, stored_rows, vision_block
from harness import Case, constant, given, result
from surgery import Node, edited, locate, patched

import leadline

F32 = np.float32
X = np.array([[1, -2, 3, -4]], F32)
HUGE = 2**31 - 1


def _large() -> bytes:
    """y = x + 1 MB of weights."""
    weights = np.zeros((1, 1 << 18), F32)
    return Case("ADD", "", [given(np.zeros((1, 1), F32)), constant(weights)], [result(F32)]).model()


def _truncated() -> bytes:
    return _large()[:400_000]


def _edited(change) -> bytes:
    return edited(relu(), change)


def _metadata(name: str, buffer: int):
    return lambda: _edited(lambda m: setattr(m, "metadata", [Node("Metadata", name=name, buffer=buffer)]))


def _constant(change):
    """x + weights, with `change` applied to the buffer of the weights."""

    def edit(model) -> None:
        tensor = next(t for t in model.subgraphs[0].tensors if t.name == "input1")
        change(model, tensor, model.buffers[tensor.buffer])

    return lambda: edited(Case("ADD", "", [given(X), constant(X)], [result(F32)]).model(), edit)


def _outside(offset: int, size: int):
    """An edit: the contents are said to be elsewhere in the file."""

    def change(_, tensor, buffer) -> None:
        buffer.data, buffer.offset, buffer.size = None, offset, size

    return _constant(change)


def _large_options(offset: int, size: int) -> bytes:
    builder = leadline.ModelBuilder()
    x = builder.input("x", F32, [4])
    y = builder.tensor("y", F32, [4])
    builder.node("Mystery", [x], [y], custom_options=b"\1\2\3\4")
    builder.output(y)

    def edit(model) -> None:
        node = model.subgraphs[0].operators[0]
        node.custom_options = None
        node.large_custom_options_offset, node.large_custom_options_size = offset, size

    return edited(builder.to_tflite(), edit)


def _blockwise(change) -> bytes:
    """A blockwise quantized FULLY_CONNECTED, with `change` applied to the quantization of its weights."""
    builder = leadline.ModelBuilder()
    x = builder.input("x", F32, [1, 32])
    weights = builder.constant("weights", np.ones((2, 32), np.int8), leadline.DType.INT4)
    builder.blockwise(weights, builder.constant("scales", np.ones((2, 1), np.float16)), 32)
    y = builder.tensor("y", F32, [1, 2])
    builder.node("FULLY_CONNECTED", [x, weights, None], [y])
    builder.output(y)

    def edit(model) -> None:
        change(next(t for t in model.subgraphs[0].tensors if t.name == "weights").quantization)

    return edited(builder.to_tflite(), edit)


def _scale_tensor(index: int):
    from tflite_builder import Scalar

    return lambda: _blockwise(lambda q: q.details.update({0: Scalar("i", index)}))


def _signature(change) -> bytes:
    builder = leadline.ModelBuilder()
    x = builder.input("x", F32, [1, 4])
    y = builder.tensor("y", F32, [1, 4])
    builder.node("RELU", [x], [y])
    builder.output(y)
    builder.signature("serve", builder, {"x": x}, {"y": y})
    return edited(builder.to_tflite(), lambda model: change(model.signature_defs[0]))


def _wild_tensors() -> bytes:
    content = relu()
    return patched(content, locate(content, "subgraphs", 0, "tensors"), "I", 0x7FFFFFF0)


# For both: a file is changed at every byte in turn. LiteRT is tried in a fork for each.
_EVERY_PLACE = """
import os, sys
content = open(sys.argv[1], "rb").read()
litert = sys.argv[2] == "litert"
if litert:
    from ai_edge_litert.interpreter import Interpreter
else:
    from leadline.lite import Interpreter
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)

def attempt(at):
    try:
        interpreter = Interpreter(model_content=CHANGED, num_threads=1)
        interpreter.allocate_tensors()
        interpreter.invoke()
        return 0
    except (ValueError, RuntimeError, MemoryError):
        return 1

counts = {"runs": 0, "errors": 0, "deaths": 0}
for at in range(len(content)):
    if not litert:
        code = attempt(at)
    else:
        child = os.fork()
        if child == 0:
            os._exit(attempt(at))
        status = os.waitpid(child, 0)[1]
        code = 2 if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    counts[("runs", "errors", "deaths")[code]] += 1
runs, errors, deaths = counts.values()
print(f"result: of {len(content)} files {runs} run, {errors} are refused, {deaths} end the process")
"""


_EVERY_BYTE = _EVERY_PLACE.replace("CHANGED", 'content[:at] + b"\\x83" + content[at + 1:]')
EVERY_LENGTH = _EVERY_PLACE.replace("CHANGED", "content[:at]")


def every_place(program: str) -> str:
    said = in_child(program, relu(), "leadline")
    assert " 0 end the process" in said
    return f"right result: {said}"


_DETAILS = """
import sys
from ai_edge_litert.interpreter import Interpreter
interpreter = Interpreter(sys.argv[1])
print("result:", len(interpreter.get_tensor_details()), "tensors described")
"""


def _sparse() -> bytes:
    stored, sparsity = stored_rows(np.array([[0, 5, 0, 0], [7, 0, 0, 9]], F32))
    return compressed(stored, sparsity, (2, 4))


def _sparse_details() -> str:
    interpreter = leadline.lite.Interpreter(model_content=_sparse())
    details = [interpreter._get_tensor_details(i, 0) for i in range(4)]
    sparse = next(d for d in details if d["name"] == "sparse")
    assert sparse["sparsity_parameters"], sparse
    x = np.zeros((2, 4), F32)
    assert run(_sparse(), x)[0].tolist() == [[0, 5, 0, 0], [7, 0, 0, 9]]
    return "right result: all 4 tensors described, the sparse one with its sparsity"


_ISA = """
import sys
import numpy as np
from leadline import lite
interpreter = lite.Interpreter(sys.argv[1])
interpreter.allocate_tensors()
interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.array([[1, -2, 3, -4]], np.float32))
interpreter.invoke()
assert interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).tolist() == [[1, 0, 3, 0]]
print("result: right")
"""


def portable_kernels() -> str:
    for isa in ("scalar", "sse4", "no such set"):
        in_child(_ISA, relu(), environment={"LEADLINE_ISA": isa})
    return "right result: import and run with LEADLINE_ISA=scalar and =sse4; vectors are chosen at run time"


_TOGETHER = """
import sys
import numpy as np

def litert():
    from ai_edge_litert.interpreter import Interpreter
    return Interpreter

def tensorflow():
    import tensorflow
    return tensorflow.lite.Interpreter

def leadline():
    from leadline.lite import Interpreter
    return Interpreter

makers = [globals()[name]() for name in sys.argv[2:]]
for make in makers * 2:
    interpreter = make(sys.argv[1])
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.array([[1, -2, 3, -4]], np.float32))
    interpreter.invoke()
    assert interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).tolist() == [[1, 0, 3, 0]]
print("result: right")
"""


def both_orders(other: str) -> None:
    """Leadline and another runtime in one process, whichever is imported first."""
    for order in (("leadline", other), (other, "leadline")):
        in_child(_TOGETHER, relu(), *order)


def _together() -> str:
    tried = [name for name, module in (("litert", "ai_edge_litert"), ("tensorflow", "tensorflow"))
             if importlib.util.find_spec(module)]  # fmt: skip
    for other in tried:
        both_orders(other)
    return "right result: runs beside LiteRT and TensorFlow in one process, in either order of imports"


_COMPILED = """
import sys
from ai_edge_litert.compiled_model import CompiledModel
CompiledModel.from_file(sys.argv[1])
print("result: CompiledModel.from_file accepts it")
"""


def _flex() -> bytes:
    builder = leadline.ModelBuilder()
    x = builder.input("x", F32, [4])
    y = builder.tensor("y", F32, [4])
    builder.node("RELU", [x], [y], version=2)
    builder.output(y)
    return builder.to_tflite()


def _new_op(code: int) -> bytes:
    def edit(model) -> None:
        model.operator_codes[0].builtin_code = code
        model.operator_codes[0].deprecated_builtin_code = 127

    return _edited(edit)


def _block_of_vision():
    content, wanted, image = vision_block()
    return view("a block of a vision transformer", lambda: content, [image], outputs=[wanted], tolerance=1e-4)


def _nchw() -> bytes:
    """What a chain of ONNX and TensorFlow leaves: NCHW outside, NHWC inside."""
    builder = leadline.ModelBuilder()
    x = builder.input("x", F32, [1, 2, 3, 3])
    inside = builder.tensor("inside", F32, [1, 3, 3, 2])
    builder.node("TRANSPOSE", [x, builder.constant("to", np.array([0, 2, 3, 1], np.int32))], [inside])
    filtered = builder.tensor("filtered", F32, [1, 2, 2, 1])
    builder.node("CONV_2D", [inside, builder.constant("ones", np.ones((1, 2, 2, 2), F32)),
                             builder.constant("zero", np.zeros(1, F32))], [filtered], padding=1, stride_w=1,
                             stride_h=1)  # fmt: skip
    y = builder.tensor("y", F32, [1, 1, 2, 2])
    builder.node("TRANSPOSE", [filtered, builder.constant("back", np.array([0, 3, 1, 2], np.int32))], [y])
    builder.output(y)
    return builder.to_tflite()


def _nchw_view():
    x = np.arange(18, dtype=F32).reshape(1, 2, 3, 3)
    windows = np.lib.stride_tricks.sliding_window_view(x, (2, 2), (2, 3))
    return view("NCHW", _nchw, [x], outputs=[windows.sum((1, 4, 5))[:, None].astype(F32)])


EXHIBITS = [
    Exhibit("L01", "a model cut to a part of its size", "google-ai-edge/LiteRT#10080", theirs=_COMPILED).shows(
        view("from a file", _truncated, refuses=("truncated", "400000"), from_file=True),
        view("from bytes", _truncated, refuses=("truncated",)),
        view("the first 7 bytes", lambda: _large()[:7], refuses=("truncated", "7 bytes")),
    ),
    Exhibit("L02", "one dimension of a tensor is 2147483647", "tf#111458").shows(
        view("of 1", lambda: relu([HUGE]), refuses=("budget", "GiB")),
        view("of 4", lambda: _edited(lambda m: setattr(m.subgraphs[0].tensors[0], "shape", [HUGE] * 4)),
             refuses=("2147483647",)),
    ),
    Exhibit("L03", "Metadata.buffer out of range", "public PoC, ReadAllMetadata").shows(
        view("buffer 10^6", _metadata("notes", 1_000_000), refuses=("metadata", "buffer 1000000")),
    ),
    Exhibit("L04", "min_runtime_version with a huge Metadata.buffer", "public PoC, GetMinimumRuntime").shows(
        view("buffer 2^32 - 1", _metadata("min_runtime_version", 2**32 - 1), refuses=("metadata", "buffer 4294967295")),
        view("an empty buffer", _metadata("min_runtime_version", 0), [X], outputs=[np.maximum(X, 0)]),
    ),
    Exhibit("L05", "Buffer.offset + Buffer.size wraps around", "public PoC, interpreter_builder.cc").shows(
        view("2^64 - 4 + 16", _outside(2**64 - 4, 16), [X], refuses=("buffer 1", "18446744073709551612")),
        view("past the end", _outside(1 << 20, 16), [X], refuses=("buffer 1", "1048576")),
    ),
    Exhibit("L06", "large_custom_options_offset + size wraps around", "public PoC, interpreter_builder.cc").shows(
        view("2^64 - 8 + 16", lambda: _large_options(2**64 - 8, 16), refuses=("Mystery", "options",
                                                                              "18446744073709551608")),
    ),
    Exhibit("L07", "blockwise quantization without its table", "public PoC, ai-edge-litert 2.1.6").shows(
        view("FULLY_CONNECTED", lambda: _blockwise(lambda q: setattr(q, "details", None)),
             refuses=("weights", "block")),
    ),
    Exhibit("L08", "a scale tensor, a signature's subgraph or an offset out of range", "public PoC").shows(
        view("scale tensor", _scale_tensor(99), refuses=("weights", "99")),
        view("negative scale tensor", _scale_tensor(-7), refuses=("weights", "-7")),
        view("signature's subgraph", lambda: _signature(lambda s: setattr(s, "subgraph_index", 5)),
             refuses=("serve", "5")),
        view("signature's tensor", lambda: _signature(lambda s: setattr(s.inputs[0], "tensor_index", 2**32 - 1)),
             refuses=("serve", "4294967295")),
        view("offset", _outside(2**63, 2**63), refuses=("buffer 1", "9223372036854775808")),
    ),
    Exhibit("L09", "each byte of a valid file becomes 0x83", "public PoC, byte 118",
            ours=lambda: every_place(_EVERY_BYTE),
            theirs=_EVERY_BYTE).shows(
        view("as it is", relu, [X], outputs=[np.maximum(X, 0)]),
    ),
    Exhibit("L10", "SubGraph.tensors points nowhere", "public PoC").shows(
        view("offset 0x7FFFFFF0", _wild_tensors, refuses=("the file is",)),
    ),
    Exhibit("L11", "a signature without a key; a model newer than the runtime", "tf#59604").shows(
        view("no key", lambda: _signature(lambda s: setattr(s, "signature_key", None)),
             refuses=("signature", "no key")),
        view("an op of tomorrow", lambda: _new_op(240), refuses=("op code 240",)),
        view("a version of tomorrow", lambda: _edited(lambda m: setattr(m.operator_codes[0], "version", 99)),
             refuses=("RELU", "version 99")),
    ),
    Exhibit("L12", "Tensor.buffer out of range", "public PoC, OpenCV's importer").shows(
        *(view(f"buffer {n}", _constant(lambda m, t, b, n=n: setattr(t, "buffer", n)), [X],
               refuses=("input1", f"buffer {n}"))
          for n in (0x7FFFFFFF, 100)),
    ),
    Exhibit("L13", "details of a sparse tensor", "tf#56283", ours=_sparse_details, theirs=_DETAILS).shows(
        view("its values", _sparse, [np.zeros((2, 4), F32)], outputs=[np.array([[0, 5, 0, 0], [7, 0, 0, 9]], F32)]),
    ),
    Exhibit("L14", "a vision transformer that ends the notebook", "tf#55819").shows(_block_of_vision()),
    Exhibit("L15", "a model that came from ONNX through a frozen graph", "PINTO_model_zoo#173").shows(_nchw_view()),
    Exhibit("L16", "a CPU without AVX", "VibeNVR#369, feranick/TFlite-builds#6, wyoming-openwakeword#9, tf#34393",
            ours=portable_kernels, unseen="not run: needs such a CPU"),
    Exhibit("L17", "two runtimes in one process", "lt#978, conda-forge/tensorflow-feedstock#449", ours=_together,
            theirs=_TOGETHER, peer="tensorflow", arguments=("tensorflow", "litert")).shows(
        view("alone", relu, [X], outputs=[np.maximum(X, 0)]),
    ),
]  # fmt: skip
