# SPDX-License-Identifier: Apache-2.0
"""Keras models for the tests of conversion: small ones that together use most layers, with random weights."""

from __future__ import annotations

import keras
import numpy as np
from keras import layers


def randomize(model: keras.Model) -> keras.Model:
    """Weights that are all different; statistics of normalizations stay positive."""
    rng = np.random.default_rng(7)
    values = []
    for variable in model.weights:
        positive = "variance" in variable.path or "gamma" in variable.path
        low, high = (0.5, 1.5) if positive else (-0.3, 0.3)
        values.append(rng.uniform(low, high, variable.shape).astype(np.float32))
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
    x = layers.LeakyReLU(negative_slope=0.1)(x)
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


def transformer() -> keras.Model:
    tokens = keras.Input((12,), dtype="int32", name="tokens")
    x = layers.Embedding(50, 16)(tokens)
    for _ in range(2):
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


MODELS = {
    "unet": unet,
    "convnet": convnet,
    "two_in_two_out": two_in_two_out,
    "transformer": transformer,
    "nested": nested,
    "lstm": lambda: recurrent(layers.LSTM(7)),
    "gru": lambda: recurrent(layers.GRU(7, return_sequences=True)),
    "simple_rnn": lambda: recurrent(layers.SimpleRNN(4)),
    "bidirectional": lambda: recurrent(layers.Bidirectional(layers.LSTM(4, return_sequences=True))),
    "mobilenet_v2": lambda: keras.applications.MobileNetV2((32, 32, 3), alpha=0.35, weights=None, classes=10),
}


def make(name: str) -> keras.Model:
    keras.utils.clear_session(free_memory=False)
    return randomize(MODELS[name]())


def example(model: keras.Model, batch: int) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    values = []
    for tensor in model.inputs:
        shape = [batch, *tensor.shape[1:]]
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
    keras.utils.clear_session(free_memory=False)
    model = getattr(keras.applications, name)(weights=None, classifier_activation=None)
    rng = np.random.default_rng(1)
    values = []
    for variable in model.weights:
        shape = variable.shape
        if "kernel" in variable.path and len(shape) > 1:
            fan_in = shape[0] * shape[1] if "depthwise" in variable.path else np.prod(shape[:-1])
            values.append(rng.normal(0, np.sqrt(1.6 / fan_in), shape))
        elif "variance" in variable.path or "gamma" in variable.path:
            values.append(rng.uniform(0.7, 1.3, shape))
        else:
            values.append(rng.uniform(-0.1, 0.1, shape) if shape else np.asarray(variable))
    model.set_weights([np.asarray(value, np.float32) for value in values])
    return model
