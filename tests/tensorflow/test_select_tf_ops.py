# SPDX-License-Identifier: Apache-2.0
"""SELECT_TF_OPS: ops without a conversion stay TensorFlow's own in the file, which Leadline runs without TensorFlow."""

import subprocess

import keras
import numpy as np
import pytest
import tensorflow as tf
from ai_edge_litert import schema_py_generated as schema
from keras import layers
from test_cli import PROGRAM

import leadline
from leadline import lite

LONGS = [tf.TensorSpec([None], tf.int64, "a"), tf.TensorSpec([None], tf.int64, "b")]
TEXTS = np.array([[b"The cat, barked"], [b"zebra on MAT"], [b""]], object)


def with_tensorflow_ops(converter, owner=lite):
    converter.target_spec.supported_ops = [owner.OpsSet.TFLITE_BUILTINS, owner.OpsSet.SELECT_TF_OPS]
    return converter.convert()


def custom_codes(content: bytes) -> list[str]:
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(content, 0))
    return sorted(code.customCode.decode() for code in model.operatorCodes if code.customCode)


def output_of(content: bytes, *inputs) -> np.ndarray:
    runner = lite.Interpreter(model_content=content).get_signature_runner()
    return next(iter(runner(**dict(zip(sorted(runner.get_input_details()), inputs, strict=True))).values()))


def saved(function, signature, folder):
    module = tf.Module()
    module.function = tf.function(function, input_signature=signature)
    tf.saved_model.save(module, str(folder), {"serving_default": module.function})
    return module.function


def texts_to_numbers(**options):
    vectors = layers.TextVectorization(output_sequence_length=6, **options)
    vectors.adapt(["the cat sat on the mat", "a dog, barked!"])
    given = keras.Input((1,), dtype="string")
    return keras.Model(given, layers.GlobalAveragePooling1D()(layers.Embedding(20, 4)(vectors(given))))


def hashes():
    given = keras.Input((1,), dtype="int32")
    return keras.Model(given, layers.Hashing(7)(given))


def several_unknown_words():
    given = keras.Input((1,), dtype="string")
    lookup = layers.StringLookup(vocabulary=["a", "zebra on MAT"], output_mode="multi_hot", num_oov_indices=2)
    return keras.Model(given, lookup(given))


MODELS = {
    "TextVectorization": (lambda: texts_to_numbers(standardize="lower"), TEXTS),
    "TextVectorization as it is": (lambda: texts_to_numbers(standardize=None), TEXTS),
    "Hashing": (hashes, np.array([[36], [7], [-1]], np.int32)),
    "StringLookup": (several_unknown_words, TEXTS),
}


@pytest.mark.filterwarnings("ignore:not every layer")
@pytest.mark.parametrize("name", MODELS)
def test_layers_of_texts_run_as_in_keras(name):
    make, data = MODELS[name]
    model = make()
    content = with_tensorflow_ops(lite.TFLiteConverter.from_keras_model(model))
    assert custom_codes(content) and all(code.startswith("Flex") for code in custom_codes(content))
    for rows in (data, data[:1]):
        np.testing.assert_allclose(output_of(content, rows), model(tf.constant(rows)), atol=1e-6)


def test_an_op_stays_only_where_that_is_allowed(tmp_path):
    function = saved(
        lambda a: tf.linalg.inv(a @ a + tf.eye(3)), [tf.TensorSpec([None, 3, 3], tf.float32, "a")], tmp_path
    )
    converter = lite.TFLiteConverter.from_saved_model(tmp_path)
    with pytest.raises(leadline.UnsupportedError, match=r"\(MatrixInverse\).*SELECT_TF_OPS"):
        converter.convert()
    content = with_tensorflow_ops(converter)
    theirs = with_tensorflow_ops(tf.lite.TFLiteConverter.from_saved_model(str(tmp_path)), tf.lite)
    assert custom_codes(content) == custom_codes(theirs) == ["FlexMatrixInverse"]
    given = np.random.default_rng(0).normal(size=(2, 3, 3)).astype(np.float32)
    for file in (content, theirs):
        np.testing.assert_allclose(output_of(file, given), function(given), rtol=1e-3)
    leadline.convert(tmp_path, tmp_path / "job.tflite", select_tf_ops=True)
    assert custom_codes((tmp_path / "job.tflite").read_bytes()) == ["FlexMatrixInverse"]


@pytest.mark.skipif(PROGRAM is None, reason="the leadline program is not built")
def test_tensorflow_ops_from_the_command_line(tmp_path):
    saved(lambda a: tf.linalg.inv(a), [tf.TensorSpec([3, 3], tf.float32, "a")], tmp_path / "model")
    command = [PROGRAM, "convert", str(tmp_path / "model"), "-o", str(tmp_path / "m.tflite"), "--select-tf-ops"]
    subprocess.run(command, check=True, capture_output=True)
    assert custom_codes((tmp_path / "m.tflite").read_bytes()) == ["FlexMatrixInverse"]


@pytest.mark.parametrize("op", ["FloorDiv", "Pow"])
def test_int64_arithmetic_is_what_tensorflow_writes(op, tmp_path):
    """LiteRT has no such kernels: TensorFlow refuses, or leaves its own op. Leadline runs both forms."""
    function = saved(lambda a, b: getattr(tf.raw_ops, op)(x=a, y=b), LONGS, tmp_path)
    given = np.array([7, -7, 1 << 30], np.int64), np.array([2, 2, 2], np.int64)
    plain = lite.TFLiteConverter.from_saved_model(tmp_path).convert()
    content = with_tensorflow_ops(lite.TFLiteConverter.from_saved_model(tmp_path))
    theirs = with_tensorflow_ops(tf.lite.TFLiteConverter.from_saved_model(str(tmp_path)), tf.lite)
    assert custom_codes(plain) == [] and custom_codes(content) == custom_codes(theirs) == [f"Flex{op}"]
    for file in (plain, content, theirs):
        np.testing.assert_array_equal(output_of(file, *given), function(*given))


def test_int64_division_towards_zero(tmp_path):
    function = saved(tf.truncatediv, LONGS, tmp_path)
    given = np.array([7, -7, 7, -7, 6, -6, 0, -(1 << 40)], np.int64), np.array([2, 2, -2, -2, -3, 3, -5, 3], np.int64)
    content = lite.TFLiteConverter.from_saved_model(tmp_path).convert()
    np.testing.assert_array_equal(output_of(content, *given), function(*given))


def test_products_over_several_unknown_axes(tmp_path, litert):
    signature = [tf.TensorSpec([None] * 4, tf.float32, "a"), tf.TensorSpec([None] * 3, tf.float32, "b")]
    function = saved(lambda a, b: tf.einsum("abcd,bce->ade", a, b), signature, tmp_path)
    content = lite.TFLiteConverter.from_saved_model(tmp_path).convert()
    numbers = np.random.default_rng(0)
    for sizes in ((2, 3, 4, 5, 6), (1, 1, 7, 2, 3), (3, 5, 1, 1, 1)):
        a, b, c, d, e = sizes
        given = [numbers.normal(size=shape).astype(np.float32) for shape in ((a, b, c, d), (b, c, e))]
        runner = litert(model_content=content).get_signature_runner()
        for got in (output_of(content, *given), next(iter(runner(a=given[0], b=given[1]).values()))):
            np.testing.assert_allclose(got, function(*given), atol=1e-5)


def test_texts_change_their_shape(tmp_path):
    function = saved(
        lambda a: tf.expand_dims(tf.reshape(tf.squeeze(a, 1), [-1, 2]), 1),
        [tf.TensorSpec([None, 1], tf.string, "a")],
        tmp_path,
    )
    content = lite.TFLiteConverter.from_saved_model(tmp_path).convert()
    for count in (2, 6):
        given = np.array([[f"text {i}".encode()] for i in range(count)], object)
        np.testing.assert_array_equal(output_of(content, given), function(given).numpy())


TYPES_WITHOUT_A_CONVERSION = {
    "float64": (
        lambda x: tf.image.central_crop(x, 0.5),
        tf.TensorSpec([None, None, None, 3], tf.float32, "x"),
        [np.random.default_rng(0).normal(size=(1, size, size + 4, 3)).astype(np.float32) for size in (16, 20)],
    ),
    "strings": (
        lambda x: tf.strings.split(x).to_tensor(b"-"),
        tf.TensorSpec([None], tf.string, "x"),
        [np.array([b"a b c", b"", b"de f"], object), np.array([b"one"], object)],
    ),
}


@pytest.mark.parametrize("name", TYPES_WITHOUT_A_CONVERSION)
def test_ops_stay_where_their_conversion_does_not_take_the_type(name, tmp_path):
    """As TensorFlow does: the same op of other types is a builtin one."""
    compute, spec, data = TYPES_WITHOUT_A_CONVERSION[name]
    function = saved(compute, [spec], tmp_path)
    content = with_tensorflow_ops(lite.TFLiteConverter.from_saved_model(tmp_path))
    for given in data:
        np.testing.assert_array_equal(output_of(content, given), function(tf.constant(given)).numpy())
