# SPDX-License-Identifier: Apache-2.0
"""Keras models for the tests of conversion: small ones that together use most layers, with random weights."""

from __future__ import annotations

import contextlib

import keras
import numpy as np
from keras import layers


@contextlib.contextmanager
def made_with(package):
    """Meanwhile models are made of the classes of `package`: keras, or tf_keras."""
    global keras, layers
    usual = keras
    keras, layers = package, package.layers
    try:
        yield
    finally:
        keras, layers = usual, usual.layers


def clear() -> None:
    """Names of layers start from the beginning again."""
    if hasattr(keras.utils, "clear_session"):
        keras.utils.clear_session(free_memory=False)
    else:
        keras.backend.clear_session()


def path_of(variable) -> str:
    return getattr(variable, "path", variable.name)


def randomize(model: keras.Model) -> keras.Model:
    """Weights that are all different; statistics of normalizations stay positive."""
    rng = np.random.default_rng(7)
    values = []
    for variable in model.weights:
        positive = "variance" in path_of(variable) or "gamma" in path_of(variable)
        shape = tuple(variable.shape)
        limit = min(0.3, 3 / np.sqrt(np.prod(shape[:-1])))  # long sums must not saturate what follows
        low, high = (0.5, 1.5) if positive else (-limit, limit)
        values.append(rng.uniform(low, high, shape).astype(np.float32))
    model.set_weights(values)
    return model


def convnet() -> keras.Model:
    x = inputs = keras.Input((16, 16, 3), name="image")
    x = layers.Rescaling(1 / 127.5, offset=-1)(x)
    x = layers.Conv2D(8, 3, strides=2, padding="same", use_bias=False)(x)
    x = layers.BatchNormalization()(x)
    x = layers.ReLU(6.0)(x)
    x = layers.ZeroPadding2D(1)(x)
    x = layers.DepthwiseConv2D(3, padding="valid")(x)
    x = layers.BatchNormalization()(x)
    x = layers.Activation("swish")(x)
    x = layers.SeparableConv2D(12, 3, padding="same", activation="relu")(x)
    x = layers.MaxPooling2D(2)(x)
    x = layers.Dropout(0.5)(x)
    x = layers.Conv2DTranspose(6, 3, strides=2, padding="same")(x)
    x = layers.LeakyReLU(0.1)(x)
    x = layers.AveragePooling2D(2, padding="same")(x)
    x = layers.UpSampling2D(2, interpolation="bilinear")(x)
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(inputs, layers.Dense(10, activation="softmax", name="classes")(x), name="convnet")


def two_in_two_out() -> keras.Model:
    a, b = keras.Input((8, 4), name="left"), keras.Input((8, 4), name="right")
    shared = layers.Dense(6, activation="tanh", name="shared")
    x, y = shared(a), shared(b)
    both = layers.Concatenate()([x, y])
    total = layers.Add()([x, y])
    flat = layers.Flatten()(layers.Multiply()([total, layers.Subtract()([x, y])]))
    out1 = layers.Dense(3, name="scores")(flat)
    out2 = layers.GlobalMaxPooling1D(name="largest")(layers.Conv1D(5, 3, padding="causal")(both))
    return keras.Model({"left": a, "right": b}, [out1, out2], name="two")


def transformer(blocks: int = 2) -> keras.Model:
    tokens = keras.Input((12,), dtype="int32", name="tokens")
    x = layers.Embedding(50, 16)(tokens)
    for _ in range(blocks):
        y = layers.MultiHeadAttention(2, 8)(x, x)
        x = layers.LayerNormalization()(layers.Add()([x, y]))
        y = layers.Dense(32, activation="gelu")(x)
        x = layers.LayerNormalization()(layers.Add()([x, layers.Dense(16)(y)]))
    return keras.Model(tokens, layers.Dense(4)(layers.GlobalAveragePooling1D()(x)), name="transformer")


def nested() -> keras.Model:
    block = keras.Sequential([layers.Dense(8, activation="elu"), layers.BatchNormalization()], name="block")
    x = inputs = keras.Input((5,), name="x")
    x = layers.Dense(8)(x)
    x = layers.Add()([x, block(x)])
    return keras.Model(inputs, layers.Dense(2, activation="sigmoid")(x), name="nested")


def recurrent(layer) -> keras.Model:
    return keras.Sequential([keras.Input((6, 5), name="steps"), layer, layers.Dense(3)])


def unet() -> keras.Model:
    x = inputs = keras.Input((16, 16, 3), name="image")
    kept = []
    for filters in (4, 8):
        x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
        kept.append(x)
        x = layers.MaxPooling2D()(x)
    x = layers.Conv2D(16, 3, padding="same", activation="relu")(x)
    for filters in (8, 4):
        x = layers.Conv2DTranspose(filters, 2, strides=2, padding="same")(x)
        x = layers.Conv2D(filters, 3, padding="same", activation="relu")(layers.Concatenate()([x, kept.pop()]))
    return keras.Model(inputs, layers.Conv2D(1, 1, activation="sigmoid")(x), name="unet")


def classifier(size: int, channels: int, filters: int) -> keras.Model:
    """One convolution and one dense layer: the first model of many a notebook."""
    return keras.Sequential([
        keras.Input((size, size, channels), name="image"),
        layers.Conv2D(filters, (3, 3), activation="relu"),
        layers.Flatten(),
        layers.Dense(10, activation="softmax"),
    ])  # fmt: skip


MODELS = {
    "classifier_32": lambda: classifier(32, 3, 32),
    "classifier_28": lambda: classifier(28, 1, 16),
    "classifier_64": lambda: classifier(64, 3, 16),
    "unet": unet,
    "convnet": convnet,
    "two_in_two_out": two_in_two_out,
    "transformer": transformer,
    "transformer_4": lambda: transformer(4),
    "nested": nested,
    "lstm": lambda: recurrent(layers.LSTM(7)),
    "gru": lambda: recurrent(layers.GRU(7, return_sequences=True)),
    "simple_rnn": lambda: recurrent(layers.SimpleRNN(4)),
    "bidirectional": lambda: recurrent(layers.Bidirectional(layers.LSTM(4, return_sequences=True))),
    "bidirectional_gru": lambda: recurrent(layers.Bidirectional(layers.GRU(4))),
    "mobilenet_v2": lambda: keras.applications.MobileNetV2((32, 32, 3), alpha=0.35, weights=None, classes=10),
}


def make(name: str) -> keras.Model:
    clear()
    return randomize(MODELS[name]())


def example(model: keras.Model, batch: int) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    values = []
    for tensor in model.inputs:
        shape = [batch, *(size or 64 for size in tensor.shape[1:])]
        integer = "int" in str(tensor.dtype)
        values.append(rng.integers(0, 50, shape).astype(np.int32) if integer else rng.normal(0, 1, shape).astype("f4"))
    return values


# Those of keras.applications that are quick to make; the others take a few seconds each.
QUICK_APPLICATIONS = ["MobileNet", "MobileNetV3Small", "EfficientNetB0"]
APPLICATIONS = [
    *QUICK_APPLICATIONS, "MobileNetV2", "MobileNetV3Large", "EfficientNetV2B0", "ResNet50", "ResNet50V2", "InceptionV3",
    "InceptionResNetV2", "Xception", "DenseNet121", "NASNetMobile", "VGG16", "ConvNeXtTiny",
]  # fmt: skip


def application(name: str) -> keras.Model:
    """With weights that neither fade nor explode on the way through the network."""
    clear()
    model = getattr(keras.applications, name)(weights=None, classifier_activation=None)
    rng = np.random.default_rng(1)
    values = []
    for variable in model.weights:
        path, shape = path_of(variable), tuple(variable.shape)
        if "kernel" in path and len(shape) > 1:
            fan_in = shape[0] * shape[1] if "depthwise" in path else np.prod(shape[:-1])
            values.append(rng.normal(0, np.sqrt(1.6 / fan_in), shape))
        elif "variance" in path or "gamma" in path:
            values.append(rng.uniform(0.7, 1.3, shape))
        else:
            values.append(rng.uniform(-0.1, 0.1, shape) if shape else np.asarray(variable))
    model.set_weights([np.asarray(value, np.float32) for value in values])
    return model
