# SPDX-License-Identifier: Apache-2.0
"""Side by side with ai_edge_litert: the same dicts, results, and kinds of errors for the same calls."""

import re

import numpy as np
import pytest
import sample_models
from model_list import NO_SHARED, REFUSED, real_models, seeded_inputs

import leadline
from leadline import lite

F32 = np.float32
MODELS = real_models()
# Of the first LiteRT reads memory that was never written; the second it refuses too.
NOT_LOADED = ("litert_blockwise_quantized", "tflm_person_detect_int8")
SAMPLES = ["add", "chain", "counter", "dense", "quantized", "strings", "two_inputs", "two_signatures", "where"]


@pytest.fixture(scope="module")
def litert_module():
    return pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed")


@pytest.fixture
def pair(litert_module):
    """Makes both interpreters. LiteRT's default delegate is off: it adds tensors and nodes of its own."""

    def make(content: bytes, **options):
        theirs = litert_module.Interpreter(
            model_content=content,
            experimental_op_resolver_type=litert_module.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
            **options,
        )
        return lite.Interpreter(model_content=content, **options), theirs

    return make


def assert_same(ours, theirs, where: str = "") -> None:
    """Equal values of equal types, all the way down."""
    assert type(ours) is type(theirs), where
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs), where
        for key in theirs:
            assert_same(ours[key], theirs[key], f"{where}.{key}")
    elif isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs), where
        for i, (left, right) in enumerate(zip(ours, theirs, strict=True)):
            assert_same(left, right, f"{where}[{i}]")
    elif isinstance(theirs, np.ndarray):
        np.testing.assert_array_equal(ours, theirs, err_msg=where, strict=True)
    else:
        assert ours == theirs, where


def assert_same_descriptions(ours, theirs) -> None:
    assert_same(ours.get_input_details(), theirs.get_input_details(), "inputs")
    assert_same(ours.get_output_details(), theirs.get_output_details(), "outputs")
    assert_same(ours.get_signature_list(), theirs.get_signature_list(), "signatures")
    assert_same(ours._get_full_signature_list(), theirs._get_full_signature_list(), "full signatures")
    assert_same(ours._get_ops_details(), theirs._get_ops_details(), "ops")
    assert ours.num_subgraphs() == theirs.num_subgraphs()
    for subgraph in range(theirs.num_subgraphs()):
        # Kernels of LiteRT append temporary tensors of theirs.
        mine = ours.get_tensor_details(subgraph)
        assert_same(mine, theirs.get_tensor_details(subgraph)[: len(mine)], f"tensors of {subgraph}")
    for key in theirs.get_signature_list():
        runner, other = ours.get_signature_runner(key), theirs.get_signature_runner(key)
        assert_same(runner.get_input_details(), other.get_input_details(), f"inputs of {key}")
        assert_same(runner.get_output_details(), other.get_output_details(), f"outputs of {key}")


@pytest.mark.parametrize("name", SAMPLES)
def test_sample_is_described_the_same(name, pair):
    ours, theirs = pair(getattr(sample_models, name)())
    assert_same_descriptions(ours, theirs)
    ours.allocate_tensors()
    theirs.allocate_tensors()
    assert_same(ours.get_input_details(), theirs.get_input_details())


@pytest.mark.skipif(not MODELS, reason=NO_SHARED)
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_real_model_is_described_the_same(model, pair):
    if model.name in NOT_LOADED:
        with pytest.raises(leadline.InvalidModelError, match=re.escape(REFUSED[model.name])):
            lite.Interpreter(model.path)
        return
    assert_same_descriptions(*pair(model.path.read_bytes()))


def run(interpreter, inputs):
    interpreter.allocate_tensors()
    for details, value in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(details["index"], value)
    interpreter.invoke()
    return [interpreter.get_tensor(details["index"]) for details in interpreter.get_output_details()]


@pytest.mark.parametrize("name", ["add", "quantized", "strings", "two_inputs", "two_signatures", "where"])
def test_sample_computes_the_same(name, pair):
    ours, theirs = pair(getattr(sample_models, name)())
    inputs = seeded_inputs(name, theirs.get_input_details())
    assert_same(run(ours, inputs), run(theirs, inputs))
    assert_same(ours.get_output_details(), theirs.get_output_details())
    assert_same(ours.get_tensor(0), theirs.get_tensor(0))


def test_scalars_come_back_as_numpy_scalars(pair):
    ours, theirs = pair(sample_models.add(shape=(), signature=()))
    for interpreter in (ours, theirs):
        interpreter.allocate_tensors()
        interpreter.set_tensor(0, np.float32(3))
    assert_same(ours.get_tensor(0), theirs.get_tensor(0))


def test_signatures_compute_the_same(pair):
    ours, theirs = pair(sample_models.counter())
    for _ in range(2):
        x = {"x": np.array([1, 2], F32)}
        assert_same(ours.get_signature_runner("step")(**x), theirs.get_signature_runner("step")(**x))
    factor = {"factor": np.array([3, 5], F32)}
    assert_same(ours.get_signature_runner("read")(**factor), theirs.get_signature_runner("read")(**factor))


def test_resized_signature_computes_the_same(pair):
    ours, theirs = pair(sample_models.two_inputs())
    values = {name: np.arange(10, dtype=F32).reshape(2, 5) for name in "ab"}
    assert_same(ours.get_signature_runner()(**values), theirs.get_signature_runner()(**values))


CALLS = {
    "get before allocate": lambda i: i.get_tensor(0),
    "view before allocate": lambda i: i.tensor(0)(),
    "set before allocate": lambda i: i.set_tensor(0, np.zeros((1, 4), F32)),
    "invoke before allocate": lambda i: i.invoke(),
    "invoke after resize": lambda i: (i.allocate_tensors(), i.resize_tensor_input(0, [2, 4]), i.invoke()),
    "get bad index": lambda i: (i.allocate_tensors(), i.get_tensor(99)),
    "get text index": lambda i: (i.allocate_tensors(), i.get_tensor("x")),
    "get bad subgraph": lambda i: i.get_tensor(0, 5),
    "set bad index": lambda i: i.set_tensor(-1, np.zeros(1, F32)),
    "set wrong type": lambda i: (i.allocate_tensors(), i.set_tensor(0, np.zeros((1, 4)))),
    "set wrong rank": lambda i: (i.allocate_tensors(), i.set_tensor(0, np.zeros(4, F32))),
    "set wrong shape": lambda i: (i.allocate_tensors(), i.set_tensor(0, np.zeros((2, 4), F32))),
    "set text": lambda i: (i.allocate_tensors(), i.set_tensor(0, "text")),
    "resize bad index": lambda i: i.resize_tensor_input(99, [1]),
    "resize negative": lambda i: i.resize_tensor_input(0, [-3, 4]),
    "resize strict": lambda i: i.resize_tensor_input(0, [1, 5], strict=True),
    "resize 2-D": lambda i: i.resize_tensor_input(0, [[1, 4]]),
    "resize text": lambda i: i.resize_tensor_input(0, "abc"),
    "shapes that do not fit": lambda i: (i.resize_tensor_input(0, [1, 3]), i.allocate_tensors()),
    "bad signature": lambda i: i.get_signature_runner("none"),
    "runner without input": lambda i: i.get_signature_runner()(),
    "runner with wrong name": lambda i: i.get_signature_runner()(y=np.zeros((1, 4), F32)),
    "runner with wrong type": lambda i: i.get_signature_runner()(x=np.zeros((1, 4))),
    "bad node": lambda i: i._get_op_details(4),
    "bad tensor": lambda i: i._get_tensor_details(4, 0),
    "details of bad subgraph": lambda i: i.get_tensor_details(subgraph_index=1),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_error_is_of_the_same_kind(call, pair):
    ours, theirs = pair(sample_models.add())
    with pytest.raises((ValueError, RuntimeError, TypeError)) as wanted:
        call(theirs)
    with pytest.raises(wanted.type):
        call(ours)


ARGUMENTS = {
    "nothing": {},
    "both": {"model_path": "a", "model_content": b"b"},
    "missing file": {"model_path": "/no/such/file"},
    "folder": {"model_path": "/"},
    "short": {"model_content": b"short"},
    "no model": {"model_content": b"wrong_identifier"},
    "truncated": {"model_content": sample_models.add()[:300]},
    "no threads": {"model_content": sample_models.add(), "num_threads": 0},
    "threads as text": {"model_content": sample_models.add(), "num_threads": "2"},
    "bad resolver": {"model_content": sample_models.add(), "experimental_op_resolver_type": "test"},
}


@pytest.mark.parametrize("arguments", ARGUMENTS.values(), ids=ARGUMENTS.keys())
def test_constructor_error_is_of_the_same_kind(arguments, litert_module):
    with pytest.raises((ValueError, RuntimeError, TypeError)) as wanted:
        litert_module.Interpreter(**arguments)
    with pytest.raises(wanted.type):
        lite.Interpreter(**arguments)


def test_unknown_op_fails_at_the_same_point(pair):
    ours, theirs = pair(sample_models.custom())
    with pytest.raises(RuntimeError):
        theirs.allocate_tensors()
    with pytest.raises(RuntimeError):
        ours.allocate_tensors()


def test_litert_resolver_types_are_accepted(litert_module):
    for kind in litert_module.OpResolverType:
        lite.Interpreter(model_content=sample_models.add(), experimental_op_resolver_type=kind)


def test_every_public_name_of_litert_exists(litert_module):
    theirs = {name for name in vars(litert_module.Interpreter) if not name.startswith("_")}
    assert theirs - {"experimental_compress_quantization_zero_points"} <= set(dir(lite.Interpreter))
    assert [kind.name for kind in lite.OpResolverType] == [kind.name for kind in litert_module.OpResolverType]
