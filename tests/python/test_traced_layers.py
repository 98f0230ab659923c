# SPDX-License-Identifier: Apache-2.0
"""Layers and models of the user's that nobody registered: their code is called, and what it asks of Keras converts."""

import json
import math
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from keras_compare import assert_close, predict, run

import leadline
from leadline import lite

keras = pytest.importorskip("keras", reason="keras is not installed")
ops = keras.ops


def numbers(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


class Scaled(keras.layers.Layer):
    """Variables on either side of an operator, an array of numpy's, and layers inside."""

    def __init__(self, units, **options):
        super().__init__(**options)
        self.inner = keras.layers.Dense(units, activation="tanh")
        self.norm = keras.layers.LayerNormalization()

    def build(self, shape):
        self.inner.build(shape)
        self.norm.build((*shape[:-1], self.inner.units))
        self.gamma = self.add_weight(shape=(self.inner.units,), initializer="random_normal", name="gamma")
        self.offsets = np.linspace(-1, 1, self.inner.units).astype(np.float32)

    def call(self, x):
        y = self.gamma * self.norm(self.inner(x)) + self.offsets
        return ops.softplus(y) / (1.0 + ops.mean(x, axis=-1, keepdims=True) ** 2)


class Attention(keras.layers.Layer):
    """Sizes in every place: positions, reshapes, a causal mask, a scale, a part of the result."""

    def __init__(self, heads=2, rows=128, **options):
        super().__init__(**options)
        self.heads, self.rows = heads, rows
        self.project = keras.layers.Dense(8)

    def build(self, shape):
        self.project.build(shape)
        self.positions = self.add_weight(shape=(self.rows, 8), initializer="random_normal", name="positions")

    def call(self, x):
        batch, length = ops.shape(x)[0], x.shape[1]
        y = self.project(x) + self.positions[:length]
        y = ops.transpose(ops.reshape(y, (batch, length, self.heads, -1)), (0, 2, 1, 3))
        scores = ops.matmul(y, ops.transpose(y, (0, 1, 3, 2))) / ops.sqrt(ops.cast(length, "float32"))
        order = ops.arange(length)
        scores = ops.where(order[:, None] >= order[None, :], scores, -1e9)
        y = ops.reshape(ops.transpose(ops.matmul(ops.softmax(scores), y), (0, 2, 1, 3)), (batch, length, 8))
        return y[:, : length - 1] * ops.ones((batch, 1, 1)) + ops.tile(y[:, :1], (1, length - 1, 1))


def functional(layer, shape):
    x = keras.Input(shape, name="x")
    return keras.Model(x, keras.layers.Dense(3)(layer(x)))


def content_of(model):
    return lite.TFLiteConverter.from_keras_model(model).convert()


@pytest.mark.parametrize("form", ["functional", "sequential"])
def test_graphs_with_unregistered_layers(form, litert):
    if form == "functional":
        model = functional(Scaled(6), (5,))
    else:
        model = keras.Sequential([keras.Input((5,), name="x"), Scaled(6), Scaled(4), keras.layers.Dense(3)])
    content = content_of(model)
    values = [numbers(3, 5)]
    for interpreter in (lite.Interpreter, litert):
        assert_close(run(interpreter, content, model, values), predict(model, values))


def test_unknown_sizes_stay_unknown(litert):
    model = functional(Attention(), (None, 4))
    content = content_of(model)
    for batch, length in ((1, 2), (2, 5), (3, 33), (1, 127)):
        values = [numbers(batch, length, 4)]
        for interpreter in (lite.Interpreter, litert):
            assert_close(run(interpreter, content, model, values), predict(model, values))


class Pair(keras.Model):
    def __init__(self):
        super().__init__()
        self.shared, self.block = keras.layers.Dense(4), Scaled(4)

    def call(self, inputs, training=False):
        left, right = self.shared(inputs["left"]), self.shared(inputs["right"])
        return {"sum": self.block(left) + right, "product": left * ops.flip(right, axis=-1)}


def test_subclassed_models_with_dicts(litert):
    model, left, right = Pair(), numbers(2, 3), numbers(2, 3) + 1
    wanted = model({"left": left, "right": right})
    content = content_of(model)
    for interpreter in (lite.Interpreter, litert):
        runner = interpreter(model_content=content).get_signature_runner()
        results = runner(left=left, right=right)
        assert sorted(results) == ["product", "sum"]
        assert_close([results["product"], results["sum"]], [np.asarray(wanted["product"]), np.asarray(wanted["sum"])])


class Pooled(keras.layers.Layer):
    """Windows over images of any size, padded to whole ones."""

    def call(self, x):
        batch, height, width, channels = ops.shape(x)
        down, right = (4 - height % 4) % 4, (4 - width % 4) % 4
        ones = ops.zeros((batch, down, width, channels))
        x = ops.concatenate([x, ones], axis=1)
        x = ops.concatenate([x, ops.zeros((batch, height + down, right, channels))], axis=2)
        rows, columns = (height + down) // 4, (width + right) // 4
        x = ops.reshape(x, (batch, rows, 4, columns, 4, channels))
        return ops.max(x, axis=(2, 4)) / (rows * columns)


def test_windows_over_images_of_any_size():
    x = keras.Input((None, None, 2), name="x")
    model = keras.Model(x, Pooled()(x))
    content = content_of(model)
    for height, width in ((4, 8), (5, 3), (9, 14)):
        values = [numbers(2, height, width, 2)]
        assert_close(run(lite.Interpreter, content, model, values), predict(model, values))


def test_the_model_stays_as_it_was():
    layer = Scaled(6)
    model = functional(layer, (5,))
    before = len(layer._inbound_nodes), len(layer.inner._inbound_nodes), model.to_json()
    names = vars(keras.ops), dict(vars(keras.KerasTensor))
    content_of(model)
    assert (len(layer._inbound_nodes), len(layer.inner._inbound_nodes), model.to_json()) == before
    assert (vars(keras.ops), dict(vars(keras.KerasTensor))) == names
    assert isinstance(ops.arange(3), np.ndarray)


class Halves(keras.layers.Layer):
    """Python's own arithmetic on a size."""

    def call(self, x):
        length = x.shape[1]
        middle = math.ceil(length / 2)
        first, last = x[:, :middle], x[:, -(length // 2) :]
        return ops.concatenate([last, first], axis=1) * (length**0.5) - math.floor(length * 0.3) % 3


def test_arithmetic_on_sizes():
    x = keras.Input((None, 3), name="x")
    model = keras.Model(x, Halves()(x))
    content = content_of(model)
    for length in (2, 3, 8, 31):
        values = [numbers(2, length, 3)]
        assert_close(run(lite.Interpreter, content, model, values), predict(model, values))


class Concrete(keras.layers.Layer):
    """Asks for values, which there are none of before a run."""

    def call(self, x):
        return ops.convert_to_tensor(np.sin(np.asarray(x)))


class Lost(keras.layers.Layer):
    """Computes with a size in a way that leaves no trace."""

    def call(self, x):
        return x * float(np.prod(np.asarray(x.shape[1:])))


@pytest.mark.parametrize(
    ("layer", "words"), [(Concrete, "cannot be followed"), (Lost, "in a way that cannot be followed")]
)
def test_what_cannot_be_followed_says_what_to_do(layer, words):
    x = keras.Input((None, 3))
    model = keras.Model(x, keras.layers.Activation("tanh")(layer(name="own")(x)))
    with pytest.raises(leadline.UnsupportedError, match=rf"own \({layer.__name__}\)(.|\n)*{words}(.|\n)*keras.ops"):
        content_of(model)


PROGRAM = """
    import numpy as np, keras
    from leadline import lite
    ops = keras.ops

    class Own(keras.layers.Layer):
        def build(self, shape):
            self.kernel = self.add_weight(shape=(shape[-1], 4), initializer="random_normal")
        def call(self, x):
            length = x.shape[1]
            y = ops.einsum("btc,cd->btd", x, self.kernel) + ops.reshape(ops.arange(length, dtype="float32"), (1, -1, 1))
            return ops.reshape(y, (x.shape[0], length * 2, 2)) @ ops.eye(2)

    class Net(keras.Model):
        def __init__(self):
            super().__init__()
            self.own, self.conv = Own(), keras.layers.Conv1D(3, 2, padding="same")
        def call(self, x):
            return self.conv(self.own(x))

    x = keras.Input((None, 3))
    for model in (Net(), keras.Model(x, keras.layers.Dense(2)(Own()(x)))):
        values = np.random.default_rng(1).normal(size=(2, 5, 3)).astype("float32")
        wanted = ops.convert_to_numpy(model(values))
        content = lite.TFLiteConverter.from_keras_model(model).convert()
        runner = lite.Interpreter(model_content=content).get_signature_runner()
        (name,) = runner.get_input_details()
        (result,) = runner(**{name: values}).values()
        np.testing.assert_allclose(result, wanted, atol=1e-5)
    print(keras.backend.backend())
"""


def test_on_jax():
    pytest.importorskip("jax", reason="jax is not installed")
    environment = {**os.environ, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"}
    code = textwrap.dedent(PROGRAM)
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout.split()) == (0, ["jax"]), done.stderr


def test_registered_functions_come_first():
    leadline.register_keras_layer("Scaled", lambda builder, layer, x: builder.node("TANH", [x]))
    try:
        model = keras.Sequential([keras.Input((5,)), Scaled(6)])
        nodes = leadline.Model.from_bytes(content_of(model)).subgraph(0).nodes
        assert [node.op for node in nodes] == ["TANH"]
    finally:
        leadline.unregister_keras_layer("Scaled")


def test_traced_configurations_are_json():
    from leadline.jobs.traced_config import traced_model

    text, weights = traced_model(functional(Scaled(6), (5,)))
    layers = json.loads(text)["config"]["layers"]
    assert {"InputLayer", "Dense", "LayerNormalization", "CapturedVariable"} <= {
        layer["class_name"] for layer in layers
    }
    assert all(path.startswith("layers/") for path in weights)
