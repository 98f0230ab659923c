# SPDX-License-Identifier: Apache-2.0
"""Names, errors and odd files of LiteRT's interpreter that scripts rely on."""

import weakref

import numpy as np
import pytest
import sample_models

import leadline
from leadline import lite
from leadline.lite import Interpreter


def ready(content, **options):
    interpreter = Interpreter(model_content=content, **options)
    interpreter.allocate_tensors()
    return interpreter


@pytest.mark.parametrize("content", [b"short", b"wrong_identifier", sample_models.add()[:200]])
def test_bytes_that_are_no_model_are_refused_in_litert_s_words(content):
    with pytest.raises(ValueError, match="The model is not a valid Flatbuffer buffer"):
        Interpreter(model_content=content)


@pytest.mark.parametrize("path", ["no_such_file", "."])
def test_a_file_that_cannot_be_opened_is_refused_in_litert_s_words(path):
    with pytest.raises(ValueError, match=f"Could not open '{path}'"):
        Interpreter(model_path=path)


def test_views_are_known_while_somebody_holds_them():
    interpreter = ready(sample_models.add())
    index = interpreter.get_input_details()[0]["index"]
    get = interpreter.tensor(index)
    assert interpreter._safe_to_run()
    view = get()
    part = view[..., :1]
    del view
    assert not interpreter._safe_to_run()
    interpreter.invoke()  # LiteRT would refuse
    del part
    assert interpreter._safe_to_run()
    for _ in range(1000):
        get()
    assert len(interpreter._main._views) <= 64
    gone = weakref.ref(interpreter)
    del interpreter
    assert gone() is None, "the function holds the memory, not the interpreter"
    assert get().size


@pytest.mark.parametrize("use", ["load_delegate", "Delegate"])
def test_a_delegate_is_an_error_of_both_kinds_that_programs_expect(use):
    for kind in (ValueError, OSError, leadline.UnsupportedError):
        with pytest.raises(kind, match="Failed to load delegate from libedgetpu.so.1"):
            getattr(lite, use)("libedgetpu.so.1", {"device": "usb"})
    with pytest.raises(ValueError, match="does not take delegates"):
        Interpreter(model_content=sample_models.add(), experimental_delegates=[object()])


def test_registerers_of_litert_s_are_refused_with_what_to_do():
    content = sample_models.add()
    plain = lite.InterpreterWithCustomOps(model_content=content, num_threads=1)
    assert isinstance(plain, Interpreter) and plain._safe_to_run()
    for names, words in {
        "BogusRegisterer": "Looking up symbol 'BogusRegisterer' failed",
        "no_such_library.Registerer": "Loading library 'no_such_library.so' failed with error 'no_such_library.so: ",
        "malloc": "register_op",
    }.items():
        with pytest.raises(ValueError, match=words):
            lite.InterpreterWithCustomOps(custom_op_registerers=[names], model_content=content)
    with pytest.raises(NotImplementedError, match="register_op"):
        lite.InterpreterWithCustomOps(custom_op_registerers=[print], model_content=content)


def test_what_scripts_reach_through_to():
    interpreter = ready(sample_models.add())
    native = interpreter._interpreter
    assert native.InputIndices().tolist() == [d["index"] for d in interpreter.get_input_details()]
    assert native.NumNodes() == len(interpreter._get_ops_details())
    assert native.NodeName(0) == "ADD" and native.NumSubgraphs() == 1
    index = int(native.InputIndices()[0])
    details = interpreter.get_tensor_details()[index]
    assert native.TensorName(index) == details["name"] and native.TensorType(index) is details["dtype"]
    value = np.ones(native.TensorSize(index), np.float32)
    native.SetTensor(index, value)
    native.Invoke()
    np.testing.assert_array_equal(native.GetTensor(index), value)
    np.testing.assert_array_equal(native.tensor(native, index), value)
    assert interpreter._delegates == []
    with pytest.raises(NotImplementedError, match="tflite::Interpreter"):
        interpreter._native_handle()


def test_zero_points_that_are_all_equal_can_be_one():
    builder = leadline.ModelBuilder()
    x = builder.input("x", np.float32, [2, 3])
    weights = builder.constant("w", np.ones((4, 3), np.int8), scales=[0.1, 0.2, 0.3, 0.4], zero_points=[0] * 4)
    y = builder.tensor("y", np.float32, [2, 4])
    builder.node("FULLY_CONNECTED", [x, weights, None], [y])
    builder.output(y)
    content = builder.to_tflite()
    for compress, count in ((False, 4), (True, 1)):
        interpreter = Interpreter(model_content=content, experimental_compress_quantization_zero_points=compress)
        assert interpreter.experimental_compress_quantization_zero_points is compress
        found = interpreter.get_tensor_details()[1]["quantization_parameters"]
        assert (len(found["scales"]), len(found["zero_points"])) == (4, count)


def test_metrics_are_told_and_do_nothing(monkeypatch):
    told = []
    monkeypatch.setattr(
        lite.metrics.TFLiteMetrics, "increase_counter_interpreter_creation", lambda self: told.append(self)
    )
    Interpreter(model_content=sample_models.add())
    assert len(told) == 1


def test_names_of_tf_lite_and_litert_are_there():
    for name in ("Interpreter", "InterpreterWithCustomOps", "OpResolverType", "SignatureRunner", "Delegate"):
        assert getattr(lite, name) is getattr(lite.interpreter, name)
    assert lite.experimental.load_delegate is lite.load_delegate
    assert lite.experimental.OpResolverType is lite.OpResolverType


def between_adds(dtype, middle) -> bytes:
    """ADD, ADD of quantized integers with a tensor between them that the file declares as `middle`."""
    builder = leadline.ModelBuilder()
    zero = 128 if dtype is np.uint8 else 0
    x = builder.input("x", dtype, [4], scales=[0.5], zero_points=[zero])
    between = builder.tensor("between", middle, [4], scales=[1.0], zero_points=[zero])
    y = builder.tensor("y", dtype, [4], scales=[2.0], zero_points=[zero])
    attributes = {"pot_scale_int16": False}
    builder.node("ADD", [x, x], [between], **attributes)
    builder.node("ADD", [between, x], [y], **attributes)
    builder.output(y)
    return builder.to_tflite()


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_a_tensor_that_is_declared_float_between_integers_is_integers(dtype):
    oracle = pytest.importorskip("ai_edge_litert.interpreter")
    content = between_adds(dtype, np.float32)
    values = np.array([3, 60, 90, 120], dtype)
    results = []
    for kind in (Interpreter, oracle.Interpreter):
        interpreter = kind(model_content=content)
        interpreter.allocate_tensors()
        interpreter.set_tensor(0, values)
        interpreter.invoke()
        results.append(interpreter.get_tensor(2))
    assert results[0].dtype == results[1].dtype == dtype
    # A step apart where LiteRT's own kernel rounds a tie otherwise than XNNPACK, which does not take such nodes.
    np.testing.assert_allclose(*(result.astype(int) for result in results), atol=1)


def test_a_scale_of_zero_is_none():
    """As converters write it on tensors that nothing reads as quantized."""
    oracle = pytest.importorskip("ai_edge_litert.interpreter")
    marker = np.float32(0.123456)
    builder = leadline.ModelBuilder()
    x = builder.input("x", np.int32, [4], scales=[marker])
    y = builder.tensor("y", np.int32, [4], scales=[marker])
    builder.node("ADD", [x, x], [y])
    builder.output(y)
    content = builder.to_tflite()
    assert content.count(marker.tobytes()) == 2
    content = content.replace(marker.tobytes(), np.float32(0).tobytes())
    for kind in (Interpreter, oracle.Interpreter):
        interpreter = kind(model_content=content)
        interpreter.allocate_tensors()
        interpreter.set_tensor(0, np.array([1, 2, 3, 4], np.int32))
        interpreter.invoke()
        assert interpreter.get_tensor(1).tolist() == [2, 4, 6, 8]
        assert interpreter.get_output_details()[0]["quantization"] == (0.0, 0)


def test_atan2_pairs_elements_as_litert_does():
    oracle = pytest.importorskip("ai_edge_litert.interpreter")
    builder = leadline.ModelBuilder()
    y = builder.input("y", np.float32, [1, 3])
    x = builder.input("x", np.float32, [2, 3])
    angle = builder.tensor("angle", np.float32, [1, 3])
    builder.node("ATAN2", [y, x], [angle])
    builder.output(angle)
    results = []
    for kind in (Interpreter, oracle.Interpreter):
        interpreter = kind(model_content=builder.to_tflite())
        interpreter.allocate_tensors()
        interpreter.set_tensor(0, np.array([[1, -2, 3]], np.float32))
        interpreter.set_tensor(1, np.array([[-1, 2, 0.5], [7, 8, 9]], np.float32))
        interpreter.invoke()
        results.append(interpreter.get_tensor(2))
    np.testing.assert_array_equal(*results)
