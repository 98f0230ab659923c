# SPDX-License-Identifier: Apache-2.0
"""What quantizing is measured on: float models with samples to calibrate them on, and TensorFlow's own results.

    python quantize_subjects.py FOLDER

writes them into a folder, for programs that have no TensorFlow: <name>.npz (samples, inputs, labels), and
<name>_<mode>.tflite with the modes float, int8, int16x8, dynamic and float16.
"""

import contextlib
import gzip
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

MODES = ("int8", "int16x8", "dynamic", "float16")
FASHION = Path("/usr/share/datasets/fashion-mnist")
SHARED = Path(os.environ.get("LEADLINE_SHARED", Path(__file__).parents[3] / "shared"))
CALIBRATED = ("int8", "int16x8")


def dataset(samples):
    return lambda: ([sample[None]] for sample in samples)


def outputs(interpreter_class, content: bytes, inputs: np.ndarray) -> np.ndarray:
    """What the model computes, sample by sample: hybrid kernels quantize a batch by its widest sample."""
    interpreter = interpreter_class(model_content=content, num_threads=1)
    interpreter.allocate_tensors()
    given, taken = interpreter.get_input_details()[0]["index"], interpreter.get_output_details()[0]["index"]
    results = []
    for sample in inputs:
        interpreter.set_tensor(given, sample[None])
        interpreter.invoke()
        results.append(interpreter.get_tensor(taken)[0])
    return np.array(results)


def accuracy(results: np.ndarray, labels: np.ndarray) -> float:
    """In percent."""
    return float(100 * np.mean(results.argmax(axis=-1) == labels))


def noise(wanted: np.ndarray, got: np.ndarray) -> float:
    """Error of logits over their spread; a common shift means nothing to softmax."""
    wanted, got = (values - values.mean(axis=-1, keepdims=True) for values in (wanted, got))
    return float(np.sqrt(np.mean((got - wanted) ** 2)) / wanted.std())


@dataclass
class Subject:
    name: str
    samples: np.ndarray  # to calibrate on
    inputs: np.ndarray  # to measure with
    labels: np.ndarray | None  # of inputs; None: random weights, which are right about nothing
    content: bytes  # the float model
    by_tensorflow: Callable[[str], bytes]  # by mode
    model: object = None  # the Keras model, where there is one


def _from_saved_model(folder, mode, samples):
    import tensorflow as tf

    converter = tf.lite.TFLiteConverter.from_saved_model(folder)
    if mode != "float":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if mode in CALIBRATED:
        converter.representative_dataset = dataset(samples)
    if mode == "int16x8":
        converter.target_spec.supported_ops = [
            tf.lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
        ]
    if mode == "float16":
        converter.target_spec.supported_types = [tf.float16]
    return converter.convert()


def _subject(name, model, samples, inputs, labels, folder):
    saved = str(Path(folder) / name)
    with contextlib.redirect_stdout(None):
        model.export(saved, verbose=False)
    quantized = cache(lambda mode: _from_saved_model(saved, mode, samples))
    return Subject(name, samples, inputs, labels, quantized("float"), quantized, model)


# Keyword spotting -------------------------------------------------------------------------------


def _integers_from_float_file(content: bytes, mode: str, samples) -> bytes:
    """What TensorFlow's converter does with a float .tflite on its way to full integers."""
    import tensorflow as tf
    from tensorflow.lite.python import convert
    from tensorflow.lite.python.optimize import calibrator as calibrators

    calibrator = calibrators.Calibrator(calibrators.add_intermediate_tensors(content))
    if mode == "int8":
        calibrated = calibrator.calibrate(dataset(samples))
        return convert.mlir_quantize(calibrated, False, input_data_type=tf.float32, output_data_type=tf.float32)
    return calibrator.calibrate_and_quantize(dataset(samples), tf.float32, tf.float32, False, tf.int16, tf.int64)


def keywords(folder=None) -> Subject | None:
    """1,000 spoken words and a network that knows them; None: the folder of real models and data is not there."""
    if not (SHARED / "data" / "kws01.npz").exists():
        return None
    from ai_edge_litert.interpreter import Interpreter

    models = SHARED / "models"
    data = np.load(SHARED / "data" / "kws01.npz")
    quantized = Interpreter(str(models / "mlperf_kws_dscnn_int8.tflite"))
    scale, zero_point = quantized.get_input_details()[0]["quantization"]
    features = ((data["features_int8"].astype(np.float32) - zero_point) * scale).astype(np.float32)
    content = (models / "derived_kws_float_tf221.tflite").read_bytes()

    @cache
    def by_tensorflow(mode):
        if mode in CALIBRATED:
            return _integers_from_float_file(content, mode, features[::10])
        name = {"dynamic": "dynrange", "float16": "f16"}[mode]
        return (models / f"derived_kws_{name}_tf221.tflite").read_bytes()

    return Subject("kws01", features[::10], features, data["labels"], content, by_tensorflow)


# Fashion-MNIST ----------------------------------------------------------------------------------


def _read_idx(name: str) -> np.ndarray:
    with gzip.open(FASHION / f"{name}.gz") as file:
        content = file.read()
    shape = np.frombuffer(content, ">i4", content[3], 4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * content[3]).reshape(shape)


def fashion_model():
    """A small convnet that has seen 30,000 images once, and those images."""
    import keras

    keras.utils.set_random_seed(5)
    layers = keras.layers

    def normalization():
        return layers.BatchNormalization(momentum=0.9)  # soon at home with the few steps there are

    model = keras.Sequential([
        keras.Input((28, 28, 1), batch_size=None),
        layers.Conv2D(16, 3, strides=2, padding="same", use_bias=False), normalization(), layers.ReLU(),
        layers.DepthwiseConv2D(3, padding="same", use_bias=False), normalization(), layers.ReLU(6.0),
        layers.Conv2D(48, 1, activation="relu"), layers.MaxPooling2D(),
        layers.SeparableConv2D(64, 3, activation="relu"), layers.AveragePooling2D(2), layers.Flatten(),
        layers.Dense(64, activation="relu"), layers.Dense(10, activation="softmax"),
    ])  # fmt: skip
    images = _read_idx("train-images-idx3-ubyte")[:30000, ..., None].astype(np.float32) / 255
    model.compile(keras.optimizers.Adam(3e-3), "sparse_categorical_crossentropy")
    model.fit(images, _read_idx("train-labels-idx1-ubyte")[:30000], batch_size=64, epochs=1, verbose=0)
    return model, images


def fashion(folder) -> Subject | None:
    """None: Debian's package dataset-fashion-mnist is not installed."""
    if not FASHION.is_dir():
        return None
    model, images = fashion_model()
    test = _read_idx("t10k-images-idx3-ubyte")[:5000, ..., None].astype(np.float32) / 255
    return _subject("fashion", model, images[:100], test, _read_idx("t10k-labels-idx1-ubyte")[:5000], folder)


def transformer_model():
    """Reads a picture as 28 words, in two blocks of attention; and the pictures it has seen, once."""
    import keras

    keras.utils.set_random_seed(12)
    layers = keras.layers
    width = 48
    x = given = keras.Input((28, 28))
    x = layers.Dense(width)(x)
    x = layers.Add()([x, layers.Embedding(28, width)(np.arange(28))[None]])
    for _ in range(2):
        h = layers.LayerNormalization()(x)
        x = layers.Add()([x, layers.MultiHeadAttention(4, width // 4)(h, h)])
        h = layers.Dense(2 * width, activation="gelu")(layers.LayerNormalization()(x))
        x = layers.Add()([x, layers.Dense(width)(h)])
    x = layers.GlobalAveragePooling1D()(layers.LayerNormalization()(x))
    model = keras.Model(given, layers.Dense(10)(x))
    images = _read_idx("train-images-idx3-ubyte").astype(np.float32) / 255
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(2e-3), loss)
    model.fit(images, _read_idx("train-labels-idx1-ubyte"), batch_size=64, epochs=1, verbose=0)
    return model, images


def transformer(folder) -> Subject | None:
    """None: Debian's package dataset-fashion-mnist is not installed."""
    if not FASHION.is_dir():
        return None
    model, images = transformer_model()
    test = _read_idx("t10k-images-idx3-ubyte").astype(np.float32) / 255
    return _subject("transformer", model, images[:100], test, _read_idx("t10k-labels-idx1-ubyte"), folder)


# MobileNetV2 ------------------------------------------------------------------------------------


def mobilenet_model(samples, **options):
    """Random weights. Each normalization knows the statistics of what it reads, or all values would fade to zero; and
    logits come out, as none of a thousand nearly equal probabilities is a level of int8."""
    import keras

    keras.utils.set_random_seed(6)
    model = keras.applications.MobileNetV2(samples.shape[1:], weights=None, classifier_activation=None, **options)
    for layer in model.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.momentum = 0.0
    model(samples, training=True)
    return model


def mobilenet(folder, **options) -> Subject:
    inputs = np.random.default_rng(7).uniform(-1, 1, (24, 96, 96, 3)).astype(np.float32)
    model = mobilenet_model(inputs, **options)
    return _subject("mobilenet_v2", model, inputs[:8], inputs, None, folder)


def main() -> None:
    target = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        for make in (keywords, fashion, mobilenet):
            subject = make(folder)
            if subject is None:
                continue
            labels = {} if subject.labels is None else {"labels": subject.labels}
            np.savez(target / f"{subject.name}.npz", samples=subject.samples, inputs=subject.inputs, **labels)
            (target / f"{subject.name}_float.tflite").write_bytes(subject.content)
            for mode in MODES:
                (target / f"{subject.name}_{mode}.tflite").write_bytes(subject.by_tensorflow(mode))


if __name__ == "__main__":
    main()
