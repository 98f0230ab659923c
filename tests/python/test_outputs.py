# SPDX-License-Identifier: Apache-2.0
"""Models with many outputs: of shared layers, one tensor twice, inputs, constants. By place and by name."""

import numpy as np
import pytest
from keras_compare import input_names, output_names, predict

import leadline
from leadline import lite

keras = pytest.importorskip("keras", reason="keras is not installed")


class Halves(keras.layers.Layer):
    def call(self, x):
        return x[..., :2], x[..., 2:]


class Same(keras.layers.Layer):
    def call(self, x):
        return x, x * 2, x


def halves(builder, layer, x):
    return builder.node("SPLIT", [np.int32(1), x], outputs=2, dtype=np.float32, num_splits=2)


def same(builder, layer, x):
    return [x, builder.node("MUL", [x, 2.0]), x]


@pytest.fixture(autouse=True)
def registered():
    leadline.register_keras_layer("Halves", halves)
    leadline.register_keras_layer("Same", same)
    yield
    leadline.unregister_keras_layer("Halves")
    leadline.unregister_keras_layer("Same")


def shared_layers(x, other):
    dense, custom = keras.layers.Dense(4, name="dense"), Halves(name="halves")
    a, b = custom(x)
    c, d = custom(other)
    return [dense(other), d, a, dense(x), c, b, dense(dense(x))]


def names_that_meet(x, other):
    dense = keras.layers.Dense(3, name="dense")
    return [dense(x), dense(other), keras.layers.Dense(2, name="dense_1")(x), keras.layers.Dense(2, name="dense_2")(x)]


def one_tensor_twice(x, other):
    y = keras.layers.Dense(3, name="y")(x)
    return [y, keras.layers.ReLU(name="z")(other), y, y]


def inputs_are_outputs(x, other):
    return [other, keras.layers.Dense(3)(x), x, other]


def aliases(x, other):
    a, b, c = Same(name="same")(x)
    return [c, keras.layers.Dropout(0.5)(other), a, b, keras.layers.Activation("linear")(b)]


def constants(x, other):
    zero, one = keras.ops.zeros_like(x), keras.ops.ones_like(other)
    return [one, keras.ops.add(x, other), zero, one]


def only_constants(x, other):
    return [keras.ops.ones_like(x)]


def nothing_else(x, other):
    return [x]


CASES = [shared_layers, names_that_meet, one_tensor_twice, inputs_are_outputs, aliases, constants, only_constants,
         nothing_else]  # fmt: skip


@pytest.mark.parametrize("batch", [None, 2], ids=["any", "fixed"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_every_output_is_at_its_place_and_has_its_name(case, batch, litert):
    x, other = (keras.Input(batch_shape=(batch, 4), name=name) for name in ("x", "other"))
    model = keras.Model([x, other], case(x, other))
    content = lite.TFLiteConverter.from_keras_model(model).convert()
    values = [np.random.default_rng(i).normal(size=(2, 4)).astype(np.float32) for i in (1, 2)]
    wanted = predict(model, values)
    for kind in (lite.Interpreter, litert):
        interpreter = kind(model_content=content)
        named = interpreter.get_signature_runner()(**dict(zip(input_names(model), values, strict=True)))
        assert len(named) == len(wanted)
        for name, value in zip(output_names(model), wanted, strict=True):
            np.testing.assert_allclose(named[name], value, atol=1e-5)
        interpreter = kind(model_content=content)
        for detail in interpreter.get_input_details():
            interpreter.resize_tensor_input(detail["index"], (2, 4))
        interpreter.allocate_tensors()
        for detail, value in zip(interpreter.get_input_details(), values, strict=True):
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
        for detail, value in zip(interpreter.get_output_details(), wanted, strict=True):
            np.testing.assert_allclose(interpreter.get_tensor(detail["index"]), value, atol=1e-5)
