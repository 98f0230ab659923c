# SPDX-License-Identifier: Apache-2.0
"""Converting, calibrating, quantizing and debugging (section 1c of the museum)."""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from pathlib import Path

import numpy as np
from exhibit import Exhibit, view
from exhibits import advisories, advisories_2021
from exhibits.checks import converted_transpose_conv, growth_in_child, l2_over_no_axes, quietly, refusal, run
from exhibits.models import matmul, relu, stored_behind, transpose_conv

import leadline
from leadline import _leadline

F32 = np.float32
GOOD = np.array([[1, 2, 3, 4]], F32)


def _tf(name: str) -> str:
    """The start of most programs for TensorFlow: `model` quantized to int8 with `samples`."""
    return f"""
import numpy as np, tensorflow as tf
rng = np.random.default_rng(1)
{name}
converter = tf.lite.TFLiteConverter.from_keras_model(model)
converter.optimizations = [tf.lite.Optimize.DEFAULT]
converter.representative_dataset = lambda: ([sample] for sample in samples)
converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
print(f"result: converted, {{len(converter.convert())}} bytes")
"""


def _infinite_sample() -> str:
    sample = np.array([[-np.inf, 7.5, -2, 9.9, 0]], F32)
    content = relu((1, 5))
    return refusal(lambda: leadline.quantize(content, "int8", lambda: [[sample]]), "sample 0", "'x'", "infinite")


_INFINITE_SAMPLE = """
import numpy as np, tensorflow as tf

@tf.function(input_signature=[tf.TensorSpec([1, 5], tf.float32)])
def f(x):
    return tf.nn.relu(x)

converter = tf.lite.TFLiteConverter.from_concrete_functions([f.get_concrete_function()])
converter.optimizations = [tf.lite.Optimize.DEFAULT]
converter.representative_dataset = lambda: [[np.array([[-np.inf, 7.5, -2, 9.9, 0]], np.float32)]]
converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
print(f"result: converted, {len(converter.convert())} bytes")
"""


def keras_of_seed():
    import keras

    keras.utils.set_random_seed(2)
    return keras


def _converted(model, x, *, int8=None, tolerance=1e-5) -> str:
    """Converts a Keras model and compares with what Keras computes; `int8` are samples to quantize with."""
    converter = leadline.lite.TFLiteConverter.from_keras_model(model)
    if int8 is not None:
        converter.optimizations = [leadline.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: ([sample] for sample in int8)
        converter.target_spec.supported_ops = {leadline.lite.OpsSet.TFLITE_BUILTINS_INT8}
    wanted = np.asarray(model(x))
    got = run(quietly(converter.convert), x)[0]
    error = np.abs(got - wanted).max() / max(float(np.ptp(wanted)), 1e-6)
    assert error < tolerance, error
    return f"right result: {'int8' if int8 is not None else 'float'}, within {tolerance:.0%} of Keras's range"


def _mnist() -> str:
    keras = keras_of_seed()
    layers = keras.layers
    model = keras.Sequential([
        keras.Input((28, 28)), layers.Flatten(), layers.Dense(32, "relu"), layers.Dropout(0.2), layers.Dense(10),
    ])  # fmt: skip
    _converted(model, np.random.default_rng(1).random((1, 28, 28), F32))
    return "right result: the model of Keras 3 is converted, without TensorFlow"


_MNIST = """
import tensorflow as tf
layers = tf.keras.layers
model = tf.keras.Sequential([
    layers.Input((28, 28)), layers.Flatten(), layers.Dense(32, "relu"), layers.Dropout(0.2), layers.Dense(10)])
print(f"result: converted, {len(tf.lite.TFLiteConverter.from_keras_model(model).convert())} bytes")
"""


def _samples(shape, count) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    return [rng.random((1, *shape), F32) for _ in range(count)]


def _autoencoder() -> str:
    keras = keras_of_seed()
    layers = keras.layers
    image = keras.Input((8, 8, 1))
    code = layers.Conv2D(4, 3, 2, "same", activation="relu")(image)
    model = keras.Model(image, layers.Conv2DTranspose(1, 3, 2, "same", activation="sigmoid")(code))
    samples = _samples((8, 8, 1), 40)
    return _converted(model, samples[0], int8=samples, tolerance=0.1)


def _residual() -> str:
    keras = keras_of_seed()
    layers = keras.layers
    image = keras.Input((32, 32, 3))
    x = layers.BatchNormalization()(layers.Conv2D(8, 3, 2, "same", use_bias=False)(image))
    x = layers.ReLU()(x)
    y = layers.BatchNormalization()(layers.Conv2D(8, 3, 1, "same", use_bias=False)(x))
    x = layers.ReLU()(layers.Add()([x, y]))
    model = keras.Model(image, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))
    samples = _samples((32, 32, 3), 100)
    return _converted(model, samples[0], int8=samples, tolerance=0.1)


def _encoder() -> str:
    """What Whisper is made of: strided 1-D convolution, GELU, attention with normalization."""
    keras = keras_of_seed()
    layers = keras.layers
    sound = keras.Input((32, 8))
    x = layers.Conv1D(16, 3, 2, "same", activation="gelu")(sound)
    y = layers.LayerNormalization()(x)
    x = layers.Add()([x, layers.MultiHeadAttention(2, 8)(y, y)])
    model = keras.Model(sound, layers.Dense(8)(layers.LayerNormalization()(x)))
    samples = _samples((32, 8), 40)
    return _converted(model, samples[0], int8=samples, tolerance=0.1)


_ENCODER = _tf("""
layers = tf.keras.layers
sound = layers.Input((32, 8), batch_size=1)
x = layers.Conv1D(16, 3, 2, "same", activation="gelu")(sound)
y = layers.LayerNormalization()(x)
x = layers.Add()([x, layers.MultiHeadAttention(2, 8)(y, y)])
model = tf.keras.Model(sound, layers.Dense(8)(layers.LayerNormalization()(x)))
samples = [rng.random((1, 32, 8), np.float32) for _ in range(40)]
""")
_AUTOENCODER = _tf("""
layers = tf.keras.layers
image = layers.Input((8, 8, 1), batch_size=1)
code = layers.Conv2D(4, 3, 2, "same", activation="relu")(image)
model = tf.keras.Model(image, layers.Conv2DTranspose(1, 3, 2, "same", activation="sigmoid")(code))
samples = [rng.random((1, 8, 8, 1), np.float32) for _ in range(40)]
""")
_RESIDUAL = _tf("""
layers = tf.keras.layers
image = layers.Input((32, 32, 3), batch_size=1)
x = layers.BatchNormalization()(layers.Conv2D(8, 3, 2, "same", use_bias=False)(image))
x = layers.ReLU()(x)
y = layers.BatchNormalization()(layers.Conv2D(8, 3, 1, "same", use_bias=False)(x))
x = layers.ReLU()(layers.Add()([x, y]))
model = tf.keras.Model(image, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))
samples = [rng.random((1, 32, 32, 3), np.float32) for _ in range(100)]
""")


def _bad_datasets() -> str:
    content = relu((1, 4))

    def quantize(samples):
        return lambda: quietly(leadline.quantize, content, "int8", lambda: iter(samples))

    said = refusal(quantize([[GOOD[0]]]), "sample 0", "'x'", "[4]", "[1, 4]", kind=ValueError)
    refusal(quantize([]), "empty", "no sample", kind=ValueError)
    refusal(quantize([[GOOD], [GOOD, GOOD]]), "sample 1", "2 arrays for 1 inputs", kind=ValueError)
    _quantized_detector()
    return said


def _detector() -> bytes:
    """Offsets and scores of 8 boxes, and TFLite_Detection_PostProcess."""
    from cases.detection_postprocess import OP, options, scene

    offsets, scores, anchors = scene(8, 3, "museum")
    builder = leadline.ModelBuilder()
    boxes, classes = builder.input("boxes", F32, offsets.shape), builder.input("classes", F32, scores.shape)
    sure = builder.tensor("sure", F32, scores.shape)
    builder.node("LOGISTIC", [classes], [sure])
    outputs = [builder.tensor(f"found{i}", F32) for i in range(4)]
    builder.node(OP, [boxes, sure, builder.constant("anchors", anchors)], outputs, custom_options=options())
    builder.output(*outputs)
    return builder.to_tflite()


def _quantized_detector() -> None:
    from cases.detection_postprocess import scene

    offsets, scores, _ = scene(8, 3, "museum")
    content = quietly(leadline.quantize, _detector(), "int8", lambda: iter([[offsets, scores]] * 4))
    wanted, got = run(_detector(), offsets, scores), run(content, offsets, scores)
    assert wanted[3] == got[3] and np.abs(wanted[0] - got[0]).max() < 0.1


_BAD_DATASETS = """
import numpy as np, tensorflow as tf
model = tf.keras.Sequential([tf.keras.layers.Input((4,), batch_size=1), tf.keras.layers.ReLU()])
said = []
for name, samples in (("wrong rank", [[np.zeros(4, np.float32)]]), ("no samples", [])):
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: iter(samples)
    try:
        said.append(f"{name}: converted, {len(converter.convert())} bytes")
    except Exception as error:
        said.append(f"{name}: {type(error).__name__}: {error}")
print("result:", "; ".join(said))
"""


def _from_jax() -> str:
    converter = leadline.lite.TFLiteConverter
    return refusal(lambda: converter.experimental_from_jax([abs], [[("x", GOOD)]]), "JAX", "SavedModel")


_FROM_JAX = """
import tensorflow as tf
try:
    tf.lite.TFLiteConverter.experimental_from_jax([lambda x: x], [[("x", tf.zeros([1, 4]))]]).convert()
    print("result: converted")
except Exception as error:
    print("result:", type(error).__name__ + ":", error)
"""

# Rounds of a conversion, a calibration or a debugger; the first ones bring the code itself into memory.
GROWTH = """
import gc, os, sys, warnings
import numpy as np
warnings.simplefilter("ignore")

def resident():
    gc.collect()
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE")

def grow(work, rounds, first):
    for i in range(rounds):
        if i == first:
            before = resident()
        work()
    print(f"result: grew by {(resident() - before) / 1e6:.1f} MB in {rounds - first} rounds")
"""
_CONVERSIONS = (
    GROWTH
    + """
import leadline
from leadline import tf, lite

weights = np.random.default_rng(1).random((512, 512), np.float32)

@tf.function(input_signature=[tf.TensorSpec([1, 512], tf.float32)])
def f(x):
    return tf.matmul(x, weights)

grow(lambda: lite.TFLiteConverter.from_concrete_functions([f.get_concrete_function()]).convert(), 60, 20)
"""
)
_CONVERSIONS_IN_TENSORFLOW = (
    GROWTH
    + """
import tensorflow as tf
model = tf.keras.Sequential([tf.keras.layers.Input((512,)), tf.keras.layers.Dense(512), tf.keras.layers.Dense(512)])
grow(lambda: tf.lite.TFLiteConverter.from_keras_model(model).convert(), 20, 5)
"""
)
_CALIBRATIONS = (
    GROWTH
    + """
import leadline
content = open(sys.argv[1], "rb").read()
samples = [[np.random.default_rng(i).random((64, 64), np.float32)] for i in range(20)]
budget = leadline.Budget("100MB")

def work():
    leadline.calibrate(content, lambda: iter(samples), budget=budget)
    assert budget.used == 0

grow(work, 60, 20)
"""
)
_CALIBRATIONS_IN_TENSORFLOW = (
    GROWTH
    + """
import tensorflow as tf
from tensorflow.lite.python.optimize import calibrator
content = open(sys.argv[1], "rb").read()
samples = [[np.random.default_rng(i).random((64, 64), np.float32)] for i in range(20)]
grow(lambda: calibrator.Calibrator(content).calibrate(lambda: iter(samples)), 60, 20)
"""
)


def flat(program: str, model: bytes = b"", megabytes: float = 2.0) -> str:
    """Runs rounds in a child, whose memory must not grow."""
    said = growth_in_child(program, model)
    assert float(said.split()[2]) < megabytes, said
    return f"right result: memory is flat: {said}"


def _dense(units: int, layers: int = 1, layer: str = "Dense", version: str = "3.5.0") -> str:
    """The configuration of a Keras model of such layers."""
    settings = dict(trainable=True, dtype="float32", units=units, activation="linear", use_bias=False)
    entries = [{"class_name": "InputLayer", "config": {"batch_shape": [1, units], "dtype": "float32", "name": "in"}}]
    entries += [{"class_name": layer, "config": {"name": f"dense{i}", **settings}} for i in range(layers)]
    config = {"name": "s", "layers": entries}
    return json.dumps({"class_name": "Sequential", "keras_version": version, "config": config})


def _large_converter(units: int, layers: int, budget: str):
    """A conversion of layers of units x units weights that need not be in memory."""
    kernel = _leadline.KerasWeight("kernel", leadline.DType.FLOAT32, [units, units], lambda memory: None)
    return _leadline.Converter.from_keras_config(
        _dense(units, layers), lambda path: [kernel] if "dense" in path else [], leadline.Budget(budget)
    )


def _too_large() -> str:
    converter = _large_converter(60_000, 1, "1GB")
    assert converter.plan().result_bytes > 60_000**2 * 4
    said = refusal(converter.convert, "convert needs 43.2 GB", "the budget is 1 GB", kind=leadline.BudgetError)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tflite"
        refusal(
            lambda: converter.convert_to(path),
            "convert needs 43.2 GB",
            "the budget is 1 GB",
            kind=leadline.BudgetError,
        )
        assert not path.exists()
    return said


def _past_2_gib() -> str:
    """The size is known before; constants behind the flatbuffer are read. LEADLINE_LONG=1 writes such a file."""
    plan = _large_converter(10_000, 6, "1GB").plan()
    assert plan.result_bytes > 1 << 31
    if os.environ.get("LEADLINE_LONG") == "1":
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.tflite"
            _large_converter(10_000, 6, "4GB").convert_to(path)
            assert path.stat().st_size > 1 << 31
            assert len(leadline.Model.load(path).subgraph(0).nodes) == 6
    return f"right result: planned at {leadline.format_bytes(plan.result_bytes)}; constants are placed by Buffer.offset"


def _cancel() -> str:
    told = []

    def progress(done, total):
        told.append((done, total))
        return False

    said = refusal(lambda: _large_converter(2000, 1, "1GB").convert(progress))
    assert told
    samples = ([np.zeros((64, 64), F32)] for _ in iter(int, 1))  # without end
    refusal(lambda: leadline.calibrate(matmul(), samples, progress=lambda done, _: done < 5))
    return said


def _no_integers() -> str:
    """COS has no int8 form."""
    builder = leadline.ModelBuilder()
    x = builder.input("x", F32, [1, 4])
    y = builder.tensor("y", F32, [1, 4])
    builder.node("COS", [x], [y])
    builder.output(y)
    return refusal(
        lambda: quietly(leadline.quantize, builder.to_tflite(), "int8", lambda: iter([[GOOD]] * 4), allow_float=False),
        "COS",
    )


def _nan_inside() -> str:
    builder = leadline.ModelBuilder()
    x, y, z = builder.input("x", F32, [1, 4]), builder.tensor("y", F32, [1, 4]), builder.tensor("z", F32, [1, 4])
    builder.node("LOG", [x], [y])
    builder.node("RELU", [y], [z])
    builder.output(z)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        leadline.quantize(builder.to_tflite(), "int8", lambda: iter([[GOOD], [-GOOD], [GOOD]]))
    said = [str(warning.message) for warning in told if "NaN" in str(warning.message)]
    assert said and "sample 1" in said[0] and "'y'" in said[0] and "LOG #0" in said[0], told
    return f"result without them, and a DatasetWarning: {said[0]}"


def _debugger() -> str:
    """The code of the official tutorial."""
    samples = [np.random.default_rng(i).normal(size=(1, 4, 4, 2)).astype(F32) for i in range(8)]
    debugger = leadline.lite.experimental.QuantizationDebugger
    with tempfile.TemporaryDirectory() as folder:

        class Converter:
            optimizations = [leadline.lite.Optimize.DEFAULT]
            representative_dataset = staticmethod(lambda: ([sample] for sample in samples))
            target_spec = leadline.lite.TargetSpec()
            inference_input_type = inference_output_type = None

            def convert(self):  # the debugger asks for the float model
                return transpose_conv()

        made = quietly(debugger, converter=Converter(), debug_dataset=Converter.representative_dataset)
        quietly(made.run)
        path = Path(folder) / "debugger.csv"
        with path.open("w") as file:
            made.layer_statistics_dump(file)
        assert path.read_text().startswith("op_name,tensor_idx,num_elements")
    return refusal(
        lambda: debugger(quant_debug_model_content=transpose_conv(), debug_dataset=lambda: iter([])),
        "debug mode", "Give the debugger the converter", kind=ValueError,
    )  # fmt: skip


_DEBUGGER = """
import numpy as np, tensorflow as tf
model = tf.keras.Sequential([tf.keras.layers.Input((8, 8, 3), batch_size=1), tf.keras.layers.Conv2D(4, 3)])
converter = tf.lite.TFLiteConverter.from_keras_model(model)
converter.optimizations = [tf.lite.Optimize.DEFAULT]
samples = [np.random.default_rng(i).random((1, 8, 8, 3), np.float32) for i in range(8)]
converter.representative_dataset = lambda: ([sample] for sample in samples)
said = []
try:
    make = tf.lite.experimental.QuantizationDebugger
    debugger = make(converter=converter, debug_dataset=converter.representative_dataset)
    debugger.run()
    said.append(f"tutorial: {len(debugger.layer_statistics)} layers")
except Exception as error:
    said.append(f"tutorial: {type(error).__name__}: {error}")
try:
    tf.lite.experimental.QuantizationDebugger(
        quant_debug_model_content=converter.convert(), debug_dataset=converter.representative_dataset).run()
    said.append("a model that is not in debug mode: accepted")
except Exception as error:
    said.append(f"a model that is not in debug mode: {type(error).__name__}: {error}")
print("result:", "; ".join(said))
"""


def _percentile() -> str:
    """The memory of a calibration does not depend on the number of samples."""
    peaks = set()
    for count in (10, 300):
        budget = leadline.Budget("100MB")
        samples = ([np.random.default_rng(i).random((64, 64), F32)] for i in range(count))
        calibration = quietly(leadline.calibrate, matmul(), samples, "percentile", budget=budget)
        peaks.add(budget.peak)
        del calibration
        assert budget.used == 0
    assert len(peaks) == 1, peaks
    return f"right result: {leadline.format_bytes(peaks.pop())} for 10 samples and for 300"


def _versions() -> str:
    """A configuration of Keras 2, a layer of Keras 3 that cannot be read, and files that are neither."""
    weight = _leadline.KerasWeight(
        "kernel", leadline.DType.FLOAT32, [4, 4], lambda memory: np.frombuffer(memory, F32).__setitem__(..., 1)
    )
    old = _leadline.Converter.from_keras_config(
        _dense(4, version="2.15.0"), lambda path: [weight] if "dense" in path else []
    )
    assert run(old.convert(), GOOD)[0].tolist() == [[10, 10, 10, 10]]
    said = refusal(
        lambda: _leadline.Converter.from_keras_config(_dense(4, layer="TFSMLayer"), lambda path: []),
        "TFSMLayer",
        "SavedModel",
    )
    with tempfile.TemporaryDirectory() as folder:
        for name, content, words in (
            ("model.keras", b"garbage", "not an HDF5 file"),
            ("zip.keras", b"PK\3\4" + bytes(60), "zip archive"),
            ("model.h5", b"\x89HDF\r\n\x1a\n" + bytes(100), "damaged"),
        ):
            path = Path(folder) / name
            path.write_bytes(content)
            refusal(lambda path=path: leadline.lite.TFLiteConverter.from_keras_file(path), name, words)
    return said


_NO_INTEGERS = _tf("""
model = tf.keras.Sequential([tf.keras.layers.Input((4,), batch_size=1), tf.keras.layers.Lambda(tf.cos)])
samples = [rng.random((1, 4), np.float32) for _ in range(8)]
""")
_NAN_INSIDE = _tf("""
model = tf.keras.Sequential(
    [tf.keras.layers.Input((4,), batch_size=1), tf.keras.layers.Lambda(tf.math.log), tf.keras.layers.ReLU()])
samples = [np.ones((1, 4), np.float32), -np.ones((1, 4), np.float32)]
""")
_VERSIONS = """
import tempfile, pathlib, tensorflow as tf
path = pathlib.Path(tempfile.mkdtemp()) / "model.keras"
path.write_bytes(b"garbage")
try:
    tf.keras.models.load_model(path)
    print("result: loaded")
except Exception as error:
    print("result:", type(error).__name__ + ":", error)
"""
_NOT_SEEN = "not run: it would need the memory of a large machine"
_TF = "tensorflow"

EXHIBITS = [
    Exhibit("K01", "a representative sample with -inf", "tf#120295, tf#118185", ours=_infinite_sample,
            theirs=_INFINITE_SAMPLE, peer=_TF),
    Exhibit("K02", "a Sequential model of Keras 3",
            "tf#64273, tf#63987, tf#64515, tf#65012, tf#62610, tf#73517, tf#83754",
            ours=_mnist, theirs=_MNIST, peer=_TF, needs=("keras",)),
    Exhibit("K03", "int8 conversion of an autoencoder", "tf#29715", ours=_autoencoder, theirs=_AUTOENCODER, peer=_TF,
            needs=("keras", "jax")),
    Exhibit("K04", "int8 conversion of a residual network with 100 random samples", "lt#150", ours=_residual,
            theirs=_RESIDUAL, peer=_TF, needs=("keras", "jax")),
    Exhibit("K05", "int8 conversion of an audio encoder with attention", "tf#62701, google-ai-edge/LiteRT#89, tf#61695",
            ours=_encoder, theirs=_ENCODER, peer=_TF, needs=("keras", "jax")),
    Exhibit("K06", "datasets with a wrong rank or no samples; a model with detection postprocessing",
            "tf#44056, tf#29829, tf#42535, tf#64296, hunglc007/tensorflow-yolov4-tflite#53", ours=_bad_datasets,
            theirs=_BAD_DATASETS, peer=_TF, needs=("flatbuffers",)),
    Exhibit("K07", "experimental_from_jax", "tf#58125", ours=_from_jax, theirs=_FROM_JAX, peer=_TF),
    Exhibit("K08", "TRANSPOSE_CONV with per-channel weights", "CVE-2022-36027", ours=converted_transpose_conv,
            theirs=advisories.TRANSPOSE_CONV_IN_TENSORFLOW, peer=_TF),
    Exhibit("K09", "L2 normalization over no axes", "CVE-2021-37689", ours=l2_over_no_axes,
            theirs=advisories_2021.L2_IN_TENSORFLOW, peer=_TF),
    Exhibit("K10", "memory of a loop of conversions", "tf#122598", ours=lambda: flat(_CONVERSIONS),
            theirs=_CONVERSIONS_IN_TENSORFLOW, peer=_TF),
    Exhibit("K11", "memory of a loop of calibrations", "tf#31217", ours=lambda: flat(_CALIBRATIONS, matmul()),
            theirs=_CALIBRATIONS_IN_TENSORFLOW, peer=_TF).shows(
        view("the model", matmul, [np.ones((64, 64), F32)], outputs=[np.full((64, 64), 64, F32)])
    ),
    Exhibit("K12", "a model larger than the machine", "lt#300, tf#63025", ours=_too_large, unseen=_NOT_SEEN),
    Exhibit("K13", "a model beyond 2 GiB", "tf#59023, tf#47326, tf#62850, lt#269, tf#21924", ours=_past_2_gib).shows(
        view("constants behind the flatbuffer", stored_behind, [GOOD], outputs=[GOOD + 5]),
    ),
    Exhibit("K14", "a conversion without end, or without a word", "lt#1003, tf#42857", ours=_cancel,
            unseen="not run: the converter takes no callback that could stop it"),
    Exhibit("K15", "the converter aborts on what it has no form for",
            "tf#38073, tf#43661, tf#40233, tf#30490, tf#21300, hunglc007/tensorflow-yolov4-tflite#106, #148, #152",
            ours=_no_integers, theirs=_NO_INTEGERS, peer=_TF),
    Exhibit("K16", "NaN inside the model while it is calibrated", "tf#44114", ours=_nan_inside, theirs=_NAN_INSIDE,
            peer=_TF),
    Exhibit("K17", "a debugger that needs its model in debug mode", "tf#86949", ours=_debugger, theirs=_DEBUGGER,
            peer=_TF),
    Exhibit("K18", "percentile calibration that keeps all activations",
            "microsoft/onnxruntime#10503, #12652, RyzenAI-SW#128", ours=_percentile,
            unseen="not run: TensorFlow has no percentile method"),
    Exhibit("K19", "files of Keras 2 and 3", "keras-team/keras#19108, tf#62989, tf#76675", ours=_versions,
            theirs=_VERSIONS,
            peer=_TF),
]  # fmt: skip
