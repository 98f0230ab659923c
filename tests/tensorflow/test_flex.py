# SPDX-License-Identifier: Apache-2.0
"""Models with Flex ops, made by TensorFlow's converter: Leadline computes what TensorFlow does, within its plan.

With SELECT_TF_OPS alone every op becomes a Flex op, so that the functions of single_ops.py are cases too. LEADLINE_LONG=1
tries all of those, otherwise every fourth."""

import functools
import os
import re

import flex_cases
import flex_number_cases  # noqa: F401 (fills the table)
import flex_tensor_cases  # noqa: F401 (fills the table)
import numpy as np
import pytest
import single_ops
import tensorflow as tf

import leadline
from leadline import lite

# Of which no function here leaves a Flex op: older names of ops that are tried under others, and ops that TensorFlow's
# converter computes itself where shapes are known (single_ops.py has some with shapes that are not).
UNTRIED = {
    "FlexAdd", "FlexBatchCholesky", "FlexBatchMatMul", "FlexBatchMatMulV3", "FlexBatchMatrixBandPart",
    "FlexBatchMatrixDeterminant", "FlexBatchMatrixDiag", "FlexBatchMatrixDiagPart", "FlexBatchMatrixInverse",
    "FlexBatchMatrixSetDiag", "FlexBatchMatrixTriangularSolve", "FlexBroadcastArgs", "FlexConcat", "FlexEnsureShape",
    "FlexFusedBatchNorm", "FlexGather", "FlexLinSpace", "FlexMatrixDiag", "FlexMatrixSetDiag", "FlexMatrixSetDiagV2",
    "FlexNonMaxSuppressionV3", "FlexOnesLike", "FlexRank", "FlexShape", "FlexShapeN", "FlexSize", "FlexStatelessRandomGetAlg",
    "FlexTensorListElementShape", "FlexTopK", "FlexZerosLike",
}  # fmt: skip
# Functions of single_ops.py that are not cases here: their ops are on no list of the converter (flex_cases.py names those
# that Leadline computes), TensorFlow fails itself, or (conv3d_transpose) Leadline does not compute them.
NOT_FLEX = {
    "conv3d_transpose", "cross", "erfc", "expm1", "gelu", "global_norm", "is_inf", "l2_loss", "log1p", "reduce_euclidean", "rint",
    "searchsorted", "switch_case", "tensor_array_fixed", "truncatemod_int", "unravel_index", "zeta_like",
}  # fmt: skip
# Loops are builtin ops at all times.
LOOPS = {"foldl", "foldr", "map_fn", "map_fn_batch", "scan", "scan_batch", "tensor_array", "while"}
NOT_FLEX |= {name for name in single_ops.CASES if name.startswith("resize_filter")}  # ScaleAndTranslate
SINGLE = [name for name in single_ops.CASES if name not in NOT_FLEX][:: 1 if os.environ.get("LEADLINE_LONG") else 4]


def flex_ops(model):
    return {name.decode() for name in re.findall(rb"Flex[A-Z]\w+", model)}


def convert(function, specs, selected=(), builtins=False):
    traced = function if hasattr(function, "get_concrete_function") else tf.function(function)
    converter = tf.lite.TFLiteConverter.from_concrete_functions([traced.get_concrete_function(*specs)])
    flex = [tf.lite.OpsSet.SELECT_TF_OPS]
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS, *flex] if builtins else flex
    converter.target_spec.experimental_select_user_tf_ops = list(selected)
    converter._experimental_lower_tensor_list_ops = False
    return converter.convert()


@functools.cache
def flex_case(name):
    """The model of a case of flex_cases.py."""
    function, arrays = flex_cases.CASES[name]
    builtins = name in flex_cases.WITH_LOOPS
    return convert(function, specs_of(arrays), flex_cases.SELECTED.get(name, ()), builtins)


def specs_of(arrays):
    types = [tf.string if array.dtype == object else array.dtype for array in arrays]
    return [tf.TensorSpec(array.shape, types[i], name=f"a{i}") for i, array in enumerate(arrays)]


def run(model, arrays):
    """Outputs of the model; inputs are called a0, a1, ... A plan is an upper bound of what is counted."""
    interpreter = lite.Interpreter(model_content=model)
    places = {
        re.sub(r"^serving_default_", "", details["name"]).split(":")[0]: details["index"]
        for details in interpreter.get_input_details()
    }
    feeds = {places[f"a{i}"]: array for i, array in enumerate(arrays) if f"a{i}" in places}
    for index, array in feeds.items():
        interpreter.resize_tensor_input(index, array.shape)
    interpreter.allocate_tensors()
    for _ in range(2 if not interpreter.get_input_details() else 1):
        for index, array in feeds.items():
            interpreter.set_tensor(index, array)
        interpreter.invoke()
    assert interpreter.counted_peak_bytes() <= interpreter.plan().peak_bytes
    return [interpreter.get_tensor(details["index"]) for details in interpreter.get_output_details()]


def same(got, want, tolerance=None):
    if got.shape != want.shape or got.dtype.kind != want.dtype.kind:
        return False
    if want.dtype.kind in "fc":
        usual = {2: 2e-2, 4: 2e-5}.get(want.dtype.itemsize, 2e-5 if want.dtype == np.complex64 else 1e-6)
        tolerance = usual if tolerance is None else tolerance
        largest = np.max(np.abs(np.where(np.isfinite(want), want, 0)), initial=1.0)
        return np.allclose(got, want, rtol=tolerance, atol=tolerance * largest, equal_nan=True)
    return np.array_equal(got, want)


def check(model, arrays, want, tolerance=None):
    """Every wanted tensor is one of the outputs: converters may reorder them."""
    outputs = run(model, arrays)
    assert len(outputs) == len(want)
    for tensor in want:
        found = [i for i, output in enumerate(outputs) if same(output, tensor, tolerance)]
        assert found, f"no output equals {tensor}; they are {outputs}"
        outputs.pop(found[0])


def eager(function, arrays):
    return [tensor.numpy() for tensor in tf.nest.flatten(function(*[tf.constant(array) for array in arrays]))]


@pytest.mark.parametrize("name", flex_cases.CASES)
def test_flex_op(name):
    function, arrays = flex_cases.CASES[name]
    want = eager(function, arrays)
    check(flex_case(name), arrays, want)


@pytest.mark.parametrize("name", SINGLE)
def test_single_op_as_flex(name):
    function, inputs = single_ops.CASES[name]
    rng = np.random.default_rng(3)
    arrays = [given.example(rng) for given in inputs]
    want = eager(function, arrays)
    specs = [given.spec(f"a{i}") for i, given in enumerate(inputs)]
    check(convert(function, specs, builtins=name in LOOPS), arrays, want)


class Recurrent:
    """Layers whose loops keep their results in lists of tensors, with batches of any size."""

    x = np.random.default_rng(1).normal(size=(3, 7, 5)).astype(np.float32)
    layers = {
        "lstm": lambda: tf.keras.layers.LSTM(6, return_sequences=True),
        "lstm_last": lambda: tf.keras.layers.LSTM(6),
        "gru": lambda: tf.keras.layers.GRU(6, return_sequences=True),
        "simple_backwards": lambda: tf.keras.layers.SimpleRNN(6, go_backwards=True, return_sequences=True),
        "bidirectional": lambda: tf.keras.layers.Bidirectional(tf.keras.layers.LSTM(4, return_sequences=True)),
    }


@pytest.mark.parametrize("name", Recurrent.layers)
@pytest.mark.parametrize("length", [7, None])
def test_recurrent_layers_with_lists(name, length):
    tf.keras.utils.set_random_seed(3)
    layer = Recurrent.layers[name]()
    layer.build((None, 7, 5))
    model = convert(lambda a: layer(a), [tf.TensorSpec([None, length, 5], tf.float32, name="a0")], builtins=True)
    assert b"FlexTensorList" in model
    check(model, [Recurrent.x], [layer(Recurrent.x).numpy()])


def test_spectrogram_model():
    """Waveform to mel spectrogram to classes, as keyword spotters begin."""
    mel = tf.signal.linear_to_mel_weight_matrix(20, 65, 8000, 80.0, 3800.0)
    dense = tf.constant(np.random.default_rng(2).normal(size=(20, 4)).astype(np.float32))

    def model(a):
        spectrum = tf.abs(tf.signal.stft(a, 128, 64))
        features = tf.math.log(tf.matmul(spectrum, mel) + 1e-3)
        cepstrum = tf.signal.mfccs_from_log_mel_spectrograms(features)[..., :10]
        return tf.nn.softmax(tf.reduce_mean(tf.matmul(features, dense), axis=1)), cepstrum

    wave = np.sin(np.arange(2000) * 0.3).astype(np.float32)[None]
    check(
        convert(model, [tf.TensorSpec([1, None], tf.float32, name="a0")], builtins=True),
        [wave],
        eager(model, [wave]),
        1e-3,
    )


def test_image_augmentation_model():
    """Seeded random pictures: crops, colours, a turn, another size."""

    def model(a, seed):
        picture = tf.image.convert_image_dtype(a, tf.float32)
        picture = tf.image.stateless_random_flip_left_right(picture, seed)
        picture = tf.image.stateless_random_hue(picture, 0.2, seed)
        picture = tf.image.stateless_random_saturation(picture, 0.5, 1.5, seed)
        picture = tf.image.stateless_random_contrast(picture, 0.5, 1.5, seed)
        picture = tf.image.stateless_random_crop(picture, [16, 16, 3], seed)
        return tf.image.resize(picture, [24, 24], method="bicubic")

    rng = np.random.default_rng(4)
    arrays = [rng.integers(0, 255, size=(20, 20, 3)).astype(np.uint8), np.array([5, 9], np.int32)]
    check(convert(model, specs_of(arrays), builtins=True), arrays, eager(model, arrays))


def test_random_ops_continue_from_run_to_run():
    model = convert(
        lambda a: tf.raw_ops.RandomUniform(shape=a, dtype=tf.float32, seed=3, seed2=4),
        [tf.TensorSpec([1], tf.int32, name="a0")],
    )
    interpreter = lite.Interpreter(model_content=model)
    interpreter.allocate_tensors()
    draws = []
    for _ in range(2):
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.array([6], np.int32))
        interpreter.invoke()
        draws.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
    assert not np.array_equal(*draws) and np.all(np.concatenate(draws) < 1)


def test_flex_nodes_survive_a_round_trip():
    """A model that is read and written has its Flex nodes as they were; quantizing the rest keeps them too."""
    weights = tf.constant(np.random.default_rng(5).normal(size=(8, 8)).astype(np.float32))

    def model(a):
        return tf.math.erf(tf.nn.relu(tf.matmul(a, weights)))

    arrays = [np.random.default_rng(6).normal(size=(4, 8)).astype(np.float32)]
    content = convert(model, specs_of(arrays), builtins=True)
    assert b"FlexErf" in content
    want = eager(model, arrays)
    quantized = leadline.quantize(content, "int8", [[arrays[0]]] * 4)
    assert b"FlexErf" in bytes(quantized)
    got = run(bytes(quantized), arrays)[0]
    np.testing.assert_allclose(got, want[0], atol=0.05)


def test_unknown_flex_ops_are_named():
    model = convert(lambda a: tf.io.decode_jpeg(a), [tf.TensorSpec([], tf.string, name="a0")])
    with pytest.raises(leadline.UnsupportedError, match="TensorFlow's op DecodeJpeg.*first at FlexDecodeJpeg #0"):
        lite.Interpreter(model_content=model).allocate_tensors()


def test_details_name_the_flex_op():
    model = convert(lambda a: tf.roll(a, 1, 0), [tf.TensorSpec([4], tf.float32, name="a0")])
    interpreter = lite.Interpreter(model_content=model)
    interpreter.allocate_tensors()
    assert "FlexRoll" in [op["op_name"] for op in interpreter._get_ops_details()]
    assert "FlexRoll" in interpreter.plan().to_text()


def test_every_flex_op_has_a_case():
    known = {op.name for op in leadline.known_ops() if op.name.startswith("Flex")}
    tried = set().union(*[flex_ops(flex_case(name)) for name in flex_cases.CASES])
    assert known - tried == UNTRIED
