# SPDX-License-Identifier: Apache-2.0
"""Tensors whose types numpy does not have: as LiteRT shows them, and packed and unpacked without loss."""

import numpy as np
import pytest
import sample_models

import leadline
from leadline import lite
from leadline._leadline import DType
from leadline._native import tensors

ODD = list(sample_models.ODD_CONSTANTS)


def spec(dtype: DType, shape: tuple[int, ...]) -> tensors.TensorSpec:
    return tensors.TensorSpec(7, "odd", dtype, np.dtype(tensors.numpy_type(dtype)), shape, plain=False)


@pytest.fixture(scope="module")
def interpreter():
    made = lite.Interpreter(model_content=sample_models.odd_constants())
    made.allocate_tensors()
    return made


def constant(interpreter, name: str) -> np.ndarray:
    return interpreter.get_tensor(1 + ODD.index(name))


def test_packed_integers_take_a_byte_each(interpreter):
    assert constant(interpreter, "int4").tolist() == [[-8, 1, -1], [7, 2, -2]]
    assert constant(interpreter, "int4").dtype == np.int8
    assert constant(interpreter, "uint4").tolist() == [[0, 15], [3, 7]]
    assert constant(interpreter, "uint4").dtype == np.uint8


def test_bfloat16_is_that_of_ml_dtypes(interpreter):
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    value = constant(interpreter, "bfloat16")
    assert value.dtype == ml_dtypes.bfloat16
    assert value.astype(np.float32).tolist() == [1.0, -2.5, 0.15625]
    raw = tensors.to_bytes(value, spec(DType.BFLOAT16, (3,)))
    assert raw.tobytes() == sample_models.ODD_CONSTANTS["bfloat16"][2]


@pytest.mark.parametrize("name", [name for name in ODD if name != "bfloat16"])
def test_constants_are_those_of_litert(name, litert, interpreter):
    theirs = litert(model_content=sample_models.odd_constants())
    theirs.allocate_tensors()
    details = interpreter.get_tensor_details()[1 + ODD.index(name)]
    assert details["dtype"] is theirs.get_tensor_details()[1 + ODD.index(name)]["dtype"]
    np.testing.assert_array_equal(constant(interpreter, name), theirs.get_tensor(1 + ODD.index(name)), strict=True)


@pytest.mark.parametrize(("dtype", "low", "high"), [(DType.INT4, -8, 7), (DType.UINT4, 0, 15), (DType.INT2, -2, 1)])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 16, 17])
def test_packing_loses_nothing(dtype, low, high, count):
    numpy_type = tensors.numpy_type(dtype)
    values = np.random.default_rng(count).integers(low, high + 1, count).astype(numpy_type)
    packed = tensors.to_bytes(values, spec(dtype, (count,)))
    assert packed.size == -(-count * (2 if dtype is DType.INT2 else 4) // 8)
    np.testing.assert_array_equal(tensors._unpack(packed, dtype, (count,)), values, strict=True)


@pytest.mark.parametrize(("dtype", "value"), [(DType.INT4, 8), (DType.INT4, -9), (DType.UINT4, 16), (DType.INT2, 2)])
def test_values_that_do_not_fit_are_refused(dtype, value):
    with pytest.raises(leadline.InvalidArgumentError, match="must be between"):
        tensors.to_bytes(np.array([value], tensors.numpy_type(dtype)), spec(dtype, (1,)))


@pytest.mark.parametrize("dtype", [DType.FLOAT8E4M3FN, DType.FLOAT8E5M2])
@pytest.mark.parametrize("numpy_type", [np.int8, np.uint8])
def test_small_floats_are_raw_bits(dtype, numpy_type):
    values = np.array([1, 2, 127], numpy_type)
    assert tensors.to_bytes(values, spec(dtype, (3,))).tobytes() == b"\x01\x02\x7f"


@pytest.mark.parametrize("dtype", [DType.RESOURCE, DType.VARIANT])
def test_resources_cannot_be_set(dtype):
    with pytest.raises(leadline.InvalidArgumentError, match="expected type"):
        tensors.to_bytes(np.array([None]), spec(dtype, (1,)))


def test_damaged_string_buffers_read_as_empty():
    for raw in (b"", b"\2\0", b"\2\0\0\0", b"\xff\xff\xff\xff", b"\3\0\0\0" + bytes(64)):
        assert tensors.read_strings(np.frombuffer(raw, np.uint8), (2,)).tolist() == [b"", b""]


@pytest.mark.parametrize(
    "value", [b"abcd" + bytes(16), np.array(b"abcd" + bytes(16)), np.array(b"abcd" + bytes(16), np.object_)], ids=str
)
def test_strings_without_dimensions_keep_their_zeros(value):
    builder = leadline.ModelBuilder()
    x = builder.input("x", np.bytes_, [])
    y = builder.tensor("y", np.bytes_, [1])
    builder.node("RESHAPE", [x, builder.constant("shape", np.array([1], np.int32))], [y])
    builder.output(y)
    interpreter = leadline.lite.Interpreter(model_content=builder.to_tflite())
    interpreter.allocate_tensors()
    interpreter.set_tensor(x, value)
    assert interpreter.get_tensor(x).item() == b"abcd" + bytes(16)
    interpreter.invoke()
    assert interpreter.get_tensor(y).tolist() == [b"abcd" + bytes(16)]


def test_lists_of_strings_keep_their_zeros():
    interpreter = leadline.lite.Interpreter(model_content=sample_models.strings())
    interpreter.allocate_tensors()
    words = [b"\0a\0", b"", b"b\0\0"]
    interpreter.set_tensor(0, words)
    interpreter.set_tensor(1, np.array([2, 0], np.int32))
    interpreter.invoke()
    assert interpreter.get_tensor(0).tolist() == words
    assert interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).tolist() == [words[2], words[0]]
