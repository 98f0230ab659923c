# SPDX-License-Identifier: Apache-2.0
"""Small Keras models whose ops reach every family of quantization rules, each with samples to calibrate it on."""

import numpy as np


def _convnet(keras):
    return keras.Sequential([
        keras.Input((16, 16, 3), batch_size=1),
        keras.layers.Conv2D(8, 3, activation="relu", padding="same"),
        keras.layers.MaxPooling2D(),
        keras.layers.Conv2D(12, 3, strides=2, activation="relu6"),
        keras.layers.AveragePooling2D(3),
        keras.layers.Flatten(),
        keras.layers.Dense(10, activation="softmax"),
    ])  # fmt: skip


def _depthwise(keras):
    x = inputs = keras.Input((16, 16, 4), batch_size=1)
    for channels in (8, 8, 16):
        x = keras.layers.DepthwiseConv2D(3, padding="same")(x)
        x = keras.layers.BatchNormalization(beta_initializer="random_normal", gamma_initializer="random_uniform")(x)
        x = keras.layers.ReLU(6.0)(x)
        y = keras.layers.Conv2D(channels, 1)(x)
        x = keras.layers.Add()([x, y]) if x.shape[-1] == channels else y
    x = keras.layers.GlobalAveragePooling2D()(x)
    return keras.Model(inputs, keras.layers.Dense(5)(x))


def _dense(keras):
    return keras.Sequential([
        keras.Input((20,), batch_size=1),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(16, use_bias=False),
        keras.layers.LeakyReLU(negative_slope=0.2),
        keras.layers.Dense(4, activation="tanh"),
    ])  # fmt: skip


def _branches(keras):
    inputs = keras.Input((8, 8, 4), batch_size=1)
    a = keras.layers.Conv2D(6, 3, padding="same", activation="relu")(inputs)
    b = keras.layers.Conv2D(6, 1)(inputs)
    c = keras.layers.Multiply()([a, b])
    d = keras.layers.Subtract()([a, b])
    e = keras.layers.Concatenate()([c, d, inputs])
    f = keras.layers.Conv2D(6, 1, activation="sigmoid")(e)
    g = keras.layers.Concatenate()([keras.layers.MaxPooling2D()(f), keras.layers.AveragePooling2D(2)(b)])
    h = keras.layers.ZeroPadding2D(1)(g)
    i = keras.layers.UpSampling2D(2, interpolation="bilinear")(h)
    j = keras.layers.Reshape((-1,))(i)
    return keras.Model(inputs, [keras.layers.Dense(3)(j), keras.layers.Maximum()([a, b])])


def _activations(keras):
    inputs = keras.Input((24,), batch_size=1)
    x = keras.layers.Dense(24)(inputs)
    a = keras.layers.Activation("sigmoid")(x)
    b = keras.layers.Activation("tanh")(x)
    c = keras.layers.Activation("softmax")(x)
    d = keras.layers.Activation("hard_silu")(x)
    e = keras.layers.Activation("gelu")(x)
    f = keras.layers.Activation("swish")(x)
    return keras.Model(inputs, keras.layers.Add()([a, b, c, d, e, f]))


def _constants(keras):
    rng = np.random.default_rng(3)
    inputs = keras.Input((6, 5), batch_size=1)
    ops = keras.ops
    x = inputs + rng.standard_normal((1, 6, 5)).astype(np.float32)
    x = x * rng.standard_normal((5,)).astype(np.float32)
    y = ops.maximum(x, 0.25)
    y = ops.transpose(y, (0, 2, 1))
    z = ops.split(y, 2, axis=2)
    w = ops.concatenate([z[0], z[1] * 0.5], axis=1)
    v = ops.mean(w, axis=1)
    s = ops.sum(w, axis=1)
    q = ops.stack([v, s], axis=1)
    return keras.Model(inputs, [ops.pad(q, ((0, 0), (1, 1), (0, 0))), ops.sqrt(ops.abs(q) + 0.5)])


def _transformer(keras):
    inputs = keras.Input((8, 16), batch_size=1)
    x = keras.layers.LayerNormalization()(inputs)
    x = keras.layers.MultiHeadAttention(2, 8)(x, x)
    x = keras.layers.Add()([inputs, x])
    y = keras.layers.LayerNormalization()(x)
    y = keras.layers.Dense(32, activation="relu")(y)
    y = keras.layers.Dense(16)(y)
    return keras.Model(inputs, keras.layers.Add()([x, y]))


def _lstm(keras):
    return keras.Sequential([
        keras.Input((6, 5), batch_size=1),
        keras.layers.LSTM(7),
        keras.layers.Dense(3),
    ])  # fmt: skip


def _transposed(keras):
    return keras.Sequential([
        keras.Input((6, 6, 3), batch_size=1),
        keras.layers.Conv2DTranspose(5, 3, strides=2, padding="same", activation="relu"),
        keras.layers.Conv2DTranspose(2, 2, strides=2, use_bias=False),
    ])  # fmt: skip


MODELS = {
    "convnet": _convnet,
    "depthwise": _depthwise,
    "dense": _dense,
    "branches": _branches,
    "activations": _activations,
    "constants": _constants,
    "transformer": _transformer,
    "transposed": _transposed,
    "lstm": _lstm,
}


def build(name):
    import keras

    keras.utils.set_random_seed(7)
    model = MODELS[name](keras)
    rng = np.random.default_rng(11)
    for weight in model.trainable_weights:  # no zeros in biases
        weight.assign(weight.numpy() + 0.1 * rng.standard_normal(weight.shape).astype(np.float32))
    return model


def samples(model, count=20):
    rng = np.random.default_rng(5)
    shape = model.inputs[0].shape
    return [rng.normal(0.1, 1.0, shape).astype(np.float32) for _ in range(count)]


def convert(model, mode, data, **options):
    """TFLiteConverter's file: float, int8 or int16x8."""
    import tensorflow as tf

    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    if mode != "float":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: ([sample] for sample in data)
    if mode == "int8":
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8, tf.lite.OpsSet.TFLITE_BUILTINS]
    if mode == "int16x8":
        converter.target_spec.supported_ops = [
            tf.lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8,
            tf.lite.OpsSet.TFLITE_BUILTINS,
        ]
    for name, value in options.items():
        setattr(converter, name, value)
    return converter.convert()
