# SPDX-License-Identifier: Apache-2.0
"""Keras layers of the user's: what Keras computes with them, the converted file computes."""

import gc
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from keras_compare import assert_close, predict, run

import leadline
from leadline import lite

keras = pytest.importorskip("keras", reason="keras is not installed")


@keras.saving.register_keras_serializable("mine")
class Twice(keras.layers.Layer):
    def call(self, x):
        return x * 2


class Shifted(keras.layers.Layer):
    """With weights: a projection and a shift."""

    def build(self, shape):
        self.projection = self.add_weight(shape=(shape[-1], 200), name="projection", initializer="glorot_uniform")
        self.shift = self.add_weight(shape=(200,), name="shift", initializer="uniform", trainable=False)

    def call(self, x):
        return keras.ops.matmul(x, self.projection) + self.shift


class Block(keras.layers.Layer):
    """With layers inside, one of them in a list."""

    def __init__(self, units, **options):
        super().__init__(**options)
        self.units = units
        self.inner = keras.layers.Dense(units, activation="relu")
        self.more = [keras.layers.Dense(3), keras.layers.LayerNormalization()]

    def build(self, shape):
        self.inner.build(shape)
        self.more[0].build((None, self.units))
        self.more[1].build((None, 3))
        self.built = True

    def call(self, x):
        return self.more[1](self.more[0](self.inner(x)))

    def get_config(self):
        return {**super().get_config(), "units": self.units}


class Halves(keras.layers.Layer):
    def call(self, x):
        return x[..., :2], x[..., 2:]


def twice(builder, layer, x):
    assert (layer.name, layer.class_name) == ("twice", "Twice")
    return builder.node("MUL", [x, 2.0])


def shifted(builder, layer, x):
    assert [weight.shape for weight in layer.weights] == [(x.shape[-1], 200), (200,)]
    kernel = builder.constant("projection", layer.weights[0].T)
    return builder.node("FULLY_CONNECTED", [x, kernel, builder.constant("shift", layer.weights[1])])


def block(builder, layer, x):
    y = builder.layer("inner", keras.layers.Dense(layer.config["units"], activation="relu"), x)
    y = builder.layer("more/dense", {"class_name": "Dense", "config": {"units": 3}}, y)
    return builder.layer("more/layer_normalization", keras.layers.LayerNormalization(), y)


def halves(builder, layer, x):
    return builder.node("SPLIT", [np.int32(1), x], outputs=2, dtype=np.float32, num_splits=2)


@pytest.fixture(autouse=True)
def clean():
    yield
    for name in leadline.registered_keras_layers():
        leadline.unregister_keras_layer(name)


def custom_model():
    x = keras.Input((5,), name="x")
    y = Block(6, name="block")(Shifted(name="shifted")(Twice(name="twice")(x)))
    return keras.Model(x, y)


def register_all():
    leadline.register_keras_layer("mine>Twice", twice)
    leadline.register_keras_layer("Shifted", shifted)
    leadline.register_keras_layer("Block", block)


@pytest.mark.parametrize("form", ["live", ".keras", ".h5"])
def test_layers_of_all_kinds_compute_what_keras_does(form, litert, tmp_path):
    register_all()
    model = custom_model()
    if form == "live":
        converter = lite.TFLiteConverter.from_keras_model(model)
    elif form == ".keras":
        model.save(tmp_path / "model.keras")
        converter = lite.TFLiteConverter.from_keras_file(tmp_path / "model.keras")
    else:
        # A legacy file has no attributes, only the names that layers had.
        leadline.register_keras_layer("Block", lambda builder, layer, x: builder.node("TANH", [x]))
        x = keras.Input((5,), name="x")
        model = keras.Model(x, keras.layers.Activation("tanh")(Shifted(name="shifted")(Twice(name="twice")(x))))
        model.save(tmp_path / "model.h5")
        converter = lite.TFLiteConverter.from_keras_file(tmp_path / "model.h5")
    content = converter.convert()
    values = [np.random.default_rng(1).normal(size=(3, 5)).astype(np.float32)]
    wanted = predict(model, values)
    for interpreter in (lite.Interpreter, litert):
        assert_close(run(interpreter, content, model, values), wanted)


def test_several_outputs_and_shared_layers(litert):
    leadline.register_keras_layer("Halves", halves)
    leadline.register_keras_layer("Shifted", shifted)
    x, other = keras.Input((4,), name="x"), keras.Input((4,), name="other")
    shared = Shifted(name="shifted")
    left, right = Halves(name="halves")(x)
    model = keras.Model([x, other], [keras.layers.Add()([left, right]), shared(x), right, shared(other), left])
    content = lite.TFLiteConverter.from_keras_model(model).convert()
    assert len(content) < 2 * 4 * 200 * 4 + 2000, "the weights of a shared layer are there once"
    values = [np.random.default_rng(i).normal(size=(2, 4)).astype(np.float32) for i in (1, 2)]
    for interpreter in (lite.Interpreter, litert):
        assert_close(run(interpreter, content, model, values), predict(model, values))


def test_weights_are_read_when_they_are_needed():
    seen = {}

    @leadline.register_keras_layer("Shifted")
    def convert(builder, layer, x):
        seen["weights"] = layer.weights
        seen["builder"] = builder
        return builder.node("FULLY_CONNECTED", [x, layer.weights["projection"].transpose(1, 0), layer.weights["shift"]])

    assert callable(convert) and leadline.registered_keras_layers() == ["Shifted"]
    model = keras.Sequential([keras.Input((4,)), Shifted(name="shifted")])
    content = lite.TFLiteConverter.from_keras_model(model).convert()
    weight = seen["weights"]["projection"]
    assert (weight.shape, weight.dtype, weight.nbytes) == ((4, 200), np.float32, 3200)
    np.testing.assert_array_equal(np.asarray(weight), keras.ops.convert_to_numpy(model.layers[0].projection))
    np.testing.assert_array_equal(weight.reshape(2, -1).numpy(), np.asarray(weight).reshape(2, -1))
    assert np.asarray(weight.astype(np.float16)).dtype == np.float16
    with pytest.raises(KeyError, match="'shift'"):
        seen["weights"]["bias"]
    with pytest.raises(leadline.InvalidArgumentError, match="permutation"):
        weight.transpose(0, 0)
    with pytest.raises(leadline.InvalidArgumentError, match="while its function is called"):
        seen["builder"].node("TANH", [0])
    values = [np.ones((1, 4), np.float32)]
    assert_close(run(lite.Interpreter, content, model, values), predict(model, values))


@pytest.mark.parametrize("result", [None, [], 3, "x", [None]])
def test_wrong_results_are_refused(result):
    leadline.register_keras_layer("Twice", lambda builder, layer, x: result)
    with pytest.raises(leadline.InvalidArgumentError, match=r"twice \(Twice\).*should return a tensor"):
        lite.TFLiteConverter.from_keras_model(keras.Sequential([keras.Input((4,)), Twice(name="twice")]))


def test_what_functions_raise_is_the_cause():
    model = keras.Sequential([keras.Input((4,)), Twice(name="twice")])

    @leadline.register_keras_layer("Twice")
    def broken(builder, layer, x):
        return builder.node("MUL", [x, {}["none"]])

    with pytest.raises(leadline.Error, match=r"sequential.*twice \(Twice\): KeyError: 'none'") as caught:
        lite.TFLiteConverter.from_keras_model(model)
    assert isinstance(caught.value.__cause__, KeyError)

    leadline.register_keras_layer("Twice", lambda builder, layer, x: builder.node("RESHAPE", [x, np.int32([7, 7])]))
    with pytest.raises(leadline.Error, match=r"twice \(Twice\).*RESHAPE"):
        lite.TFLiteConverter.from_keras_model(model)

    def interrupted(builder, layer, x):
        raise KeyboardInterrupt

    leadline.register_keras_layer("Twice", interrupted)
    with pytest.raises(KeyboardInterrupt):
        lite.TFLiteConverter.from_keras_model(model)

    leadline.register_keras_layer("Twice", twice)
    lite.TFLiteConverter.from_keras_model(model).convert()


def test_bad_nodes_are_refused():
    model = keras.Sequential([keras.Input((4,)), Twice(name="twice")])
    for emit, message in (
        (lambda b, x: b.node("NO_SUCH_OP", [x]), "NO_SUCH_OP"),
        (lambda b, x: b.node("MUL", [x, x], no_such=1), "no_such"),
        (lambda b, x: b.node("CAST", [x]), "CAST"),
        (lambda b, x: b.node("TANH", [object()]), "object"),
        (lambda b, x: b.layer("", {"class_name": "Dense", "config": {}}, x), "attribute"),
        (lambda b, x: b.layer("dense", {"class_name": "Dense", "config": {"units": 3}}, x), "missing"),
    ):
        leadline.register_keras_layer("Twice", lambda builder, layer, x, emit=emit: emit(builder, x))
        with pytest.raises(leadline.Error, match=message):
            lite.TFLiteConverter.from_keras_model(model)


def test_custom_ops_may_be_written():
    leadline.register_keras_layer(
        "Twice", lambda builder, layer, x: builder.node("MyTwice", [x], shape=x.shape, custom_options=b"abc")
    )
    model = keras.Sequential([keras.Input((4,)), Twice(name="twice")])
    nodes = leadline.Model.from_bytes(lite.TFLiteConverter.from_keras_model(model).convert()).subgraph(0).nodes
    assert [node.op for node in nodes] == ["MyTwice"]


def test_names_are_checked_and_layers_can_be_taken_away():
    for name in ("", None, 3):
        with pytest.raises(leadline.InvalidArgumentError):
            leadline.register_keras_layer(name, twice)
    with pytest.raises(leadline.InvalidArgumentError):
        leadline.register_keras_layer("Twice", 3)
    leadline.register_keras_layer("Twice", twice)
    assert leadline.unregister_keras_layer("Twice") and not leadline.unregister_keras_layer("Twice")


def test_files_have_no_code_of_unregistered_layers(tmp_path):
    keras.Sequential([keras.Input((4,)), Twice(name="twice")]).save(tmp_path / "model.keras")
    with pytest.raises(leadline.UnsupportedError, match=r"twice \(.*Twice\).*register_keras_layer"):
        lite.TFLiteConverter.from_keras_file(tmp_path / "model.keras")


def test_python_ends_cleanly_with_layers_registered():
    code = """
        import leadline
        class Loud:
            def __call__(self, builder, layer, x): return x
        leadline.register_keras_layer("Layer", Loud())
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    gc.collect()
