# SPDX-License-Identifier: Apache-2.0
"""Models and functions as they live in a program: concrete functions, subclassed models, tf_keras, custom classes."""

import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from keras_compare import assert_close, predict

import leadline
from leadline import lite


def results(interpreter, content: bytes, values: list[np.ndarray], key="serving_default") -> list[np.ndarray]:
    """Inputs and outputs in the order of their names; of a model without a signature in its own."""
    made = interpreter(model_content=content)
    if not made.get_signature_list():
        return plain_results(made, values)
    runner = made.get_signature_runner(key)
    named = runner(**dict(zip(sorted(runner.get_input_details()), values, strict=True)))
    return [named[name] for name in sorted(named)]


def plain_results(interpreter, values: list[np.ndarray]) -> list[np.ndarray]:
    for detail, value in zip(interpreter.get_input_details(), values, strict=True):
        interpreter.resize_tensor_input(detail["index"], value.shape)
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), values, strict=True):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


class Module(tf.Module):
    def __init__(self):
        self.weights = tf.Variable(tf.random.stateless_normal([4, 3], [1, 2]))

    @tf.function(input_signature=[tf.TensorSpec([None, 4], name="x")])
    def project(self, x):
        return tf.nn.relu(x @ self.weights)

    @tf.function(input_signature=[tf.TensorSpec([2, 3], name="a"), tf.TensorSpec([2, 3], name="b")])
    def mix(self, a, b):
        return {"less": a - b, "more": a + tf.reduce_sum(self.weights) * b}


@pytest.mark.parametrize("held", [False, True], ids=["alone", "with_its_module"])
def test_one_concrete_function(held, litert):
    module = Module()
    functions = [module.project.get_concrete_function()]
    converter = lite.TFLiteConverter.from_concrete_functions(functions, module if held else None)
    content = converter.convert()
    x = numbers(5, 4)
    for interpreter in (lite.Interpreter, litert):
        assert_close(results(interpreter, content, [x]), [module.project(x).numpy()])


@pytest.mark.parametrize("held", [False, True], ids=["alone", "with_its_module"])
def test_several_concrete_functions_are_signatures_with_their_names(held, litert):
    module = Module()
    functions = [module.project.get_concrete_function(), module.mix.get_concrete_function()]
    content = lite.TFLiteConverter.from_concrete_functions(functions, module if held else None).convert()
    x, a, b = numbers(5, 4), numbers(2, 3), numbers(2, 3) + 1
    assert sorted(lite.Interpreter(model_content=content).get_signature_list()) == ["mix", "project"]
    mixed = module.mix(a, b)
    for interpreter in (lite.Interpreter, litert):
        assert_close(results(interpreter, content, [x], "project"), [module.project(x).numpy()])
        assert_close(results(interpreter, content, [a, b], "mix"), [mixed["less"].numpy(), mixed["more"].numpy()])


def test_concrete_functions_with_any_trackable(tmp_path):
    """TensorFlow's converter freezes the variables it finds and does not ask who holds them."""
    module, x = Module(), numbers(5, 4)
    function = module.project.get_concrete_function()
    wanted = [module.project(x).numpy()]
    tf.saved_model.save(module, str(tmp_path / "saved"), signatures={"project": function})
    loaded = tf.saved_model.load(str(tmp_path / "saved"))
    cases = [
        (function, module.project),
        (function, tf.Module()),
        (loaded.signatures["project"], loaded),
        (loaded.signatures["project"], loaded.signatures),
        (loaded.signatures["project"], None),
        (loaded.project.get_concrete_function(tf.TensorSpec([None, 4])), loaded.project),
    ]
    for function, trackable in cases:
        content = lite.TFLiteConverter.from_concrete_functions([function], trackable).convert()
        assert_close(results(lite.Interpreter, content, [x]), wanted)


def test_wrong_functions_are_refused():
    for wrong in ([], [Module().project], [lambda x: x], 3, [None]):
        with pytest.raises(leadline.InvalidArgumentError, match="concrete_function"):
            lite.TFLiteConverter.from_concrete_functions(wrong)


class Residual(keras.Model):
    def __init__(self):
        super().__init__()
        self.first, self.second = keras.layers.Dense(8, activation="relu"), keras.layers.Dense(4)

    def call(self, x):
        return x + self.second(self.first(x))


class OldResidual(tf_keras.Model):
    def __init__(self):
        super().__init__()
        self.first, self.second = tf_keras.layers.Dense(8, activation="relu"), tf_keras.layers.Dense(4)

    def call(self, x):
        return x + self.second(self.first(x))


@pytest.mark.parametrize("model_class", [Residual, OldResidual])
def test_subclassed_models_go_through_an_export(model_class, litert):
    model, x = model_class(), numbers(3, 4)
    wanted = [np.asarray(model(x))]
    with pytest.warns(UserWarning, match="subclassed model"):
        content = lite.TFLiteConverter.from_keras_model(model).convert()
    for interpreter in (lite.Interpreter, litert):
        assert_close(results(interpreter, content, [x]), wanted)


def test_live_models_of_tf_keras(litert):
    layers = tf_keras.layers
    x, y = tf_keras.Input((8, 8, 3), name="x"), tf_keras.Input((5,), name="y")
    image = layers.GlobalAveragePooling2D()(layers.BatchNormalization()(layers.Conv2D(4, 3, strides=2)(x)))
    both = layers.Concatenate()([image, layers.Dense(6, activation="tanh")(y)])
    functional = tf_keras.Model([x, y], [layers.Dense(2, name="a")(both), layers.Dense(3, name="b")(both)])
    sequential = tf_keras.Sequential([tf_keras.Input((6, 4)), layers.LSTM(5), layers.Dense(2)])
    for model, values in ((functional, [numbers(2, 8, 8, 3), numbers(2, 5)]), (sequential, [numbers(2, 6, 4)])):
        content = lite.TFLiteConverter.from_keras_model(model).convert()
        for interpreter in (lite.Interpreter, litert):
            assert_close(results(interpreter, content, values), predict(model, values))


def scaled_layer(base):
    """A layer class of the user's that nobody registered."""

    class Unregistered(base):
        def build(self, shape):
            self.gamma = self.add_weight(shape=(shape[-1],), initializer="random_normal", name="gamma")

        def call(self, x):
            return tf.nn.softplus(x) * self.gamma + tf.reduce_mean(x, axis=1, keepdims=True)

    return Unregistered


@pytest.mark.parametrize("family", [keras, tf_keras])
@pytest.mark.parametrize("functional", [False, True], ids=["sequential", "functional"])
def test_layers_of_unknown_classes_go_through_an_export(family, functional, litert):
    layer, dense = scaled_layer(family.layers.Layer)(), family.layers.Dense(3)
    if functional:
        inputs = family.Input((None, 4))
        model = family.Model(inputs, dense(layer(inputs)))
    else:
        model = family.Sequential([family.Input((None, 4)), layer, dense])
    with pytest.warns(UserWarning, match="class not known"):
        content = lite.TFLiteConverter.from_keras_model(model).convert()
    for shape in ((2, 5, 4), (1, 3, 4)):
        x = numbers(*shape)
        assert_close(results(lite.Interpreter, content, [x]), [np.asarray(model(x))])


@pytest.fixture
def register():
    """Registers functions for custom layers until the test ends."""
    names = []

    def add(name, function):
        leadline.register_keras_layer(name, function)
        names.append(name)

    yield add
    for name in names:
        leadline.unregister_keras_layer(name)


@keras.saving.register_keras_serializable("tests")
class Block(keras.layers.Layer):
    """With layers inside."""

    def __init__(self, **options):
        super().__init__(**options)
        self.inner = keras.layers.Dense(6, activation="relu", name="inner")
        self.outer = keras.layers.Dense(3, name="outer")

    def build(self, shape):
        self.inner.build(shape)
        self.outer.build((None, 6))
        self.built = True

    def call(self, x):
        return self.outer(self.inner(x))

    def get_config(self):  # without it an .h5 would not know the layer's name
        return super().get_config()


def block(builder, layer, x):
    """By the order of variables, which is all that an .h5 has."""
    first, second = layer.weights[0:2], layer.weights[2:4]
    y = builder.node("FULLY_CONNECTED", [x, first[0].T, first[1]])
    return builder.node("FULLY_CONNECTED", [builder.node("RELU", [y]), second[0].T, second[1]])


def test_custom_layers_with_layers_inside_from_h5(register, litert, tmp_path):
    register("tests>Block", block)
    model = keras.Sequential([keras.Input((4,)), Block(name="block"), keras.layers.Dense(2)])
    model.save(tmp_path / "model.h5")
    content = lite.TFLiteConverter.from_keras_file(tmp_path / "model.h5").convert()
    x = numbers(3, 4)
    for interpreter in (lite.Interpreter, litert):
        assert_close(results(interpreter, content, [x]), predict(model, [x]))


def foreign_class(package, registered):
    class Dense(package.layers.Layer):
        """Called like a layer of Keras, and not one."""

        def __init__(self, units=4, **options):
            super().__init__(**options)
            self.units = units

        def call(self, x):
            return -x

        def get_config(self):
            return {**super().get_config(), "units": self.units}

    return package.saving.register_keras_serializable("tests")(Dense) if registered else Dense


@pytest.mark.parametrize("form", ["live", ".keras", ".h5"])
@pytest.mark.parametrize("package", [keras, tf_keras], ids=["keras", "tf_keras"])
def test_classes_called_like_those_of_keras_are_not_taken_for_them(form, package, register, litert, tmp_path):
    dense = foreign_class(package, registered=True)
    model = package.Sequential([package.Input((4,)), package.layers.Activation("tanh"), dense(name="own")])

    def converter():
        if form == "live":
            return lite.TFLiteConverter.from_keras_model(model)
        model.save(tmp_path / f"model{form}")
        return lite.TFLiteConverter.from_keras_file(tmp_path / f"model{form}")

    x = numbers(3, 4)
    if form == "live":  # its code is there to be traced
        with pytest.warns(UserWarning, match=r"own \(.*Dense\).*register_keras_layer"):
            assert_close(results(litert, converter().convert(), [x]), predict(model, [x]))
    else:
        with pytest.raises(leadline.UnsupportedError, match=r"own \(.*Dense\).*register_keras_layer"):
            converter()
    register("tests>Dense", lambda builder, layer, x: builder.node("NEG", [x]))
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="not every layer")
        assert_close(results(litert, converter().convert(), [x]), predict(model, [x]))


def test_classes_that_are_not_registered_are_told_by_their_module():
    model = keras.Sequential([keras.Input((4,)), foreign_class(keras, registered=False)(name="own")])
    with pytest.warns(UserWarning, match=r"own \(Dense\)"):
        lite.TFLiteConverter.from_keras_model(model)
    inside = keras.layers.TimeDistributed(foreign_class(keras, registered=False)(name="own"))
    unbuilt = keras.Sequential([keras.Input((3, 4)), inside])  # Keras cannot export it, either
    with pytest.raises(leadline.UnsupportedError, match=r"own \(Dense\)"):
        lite.TFLiteConverter.from_keras_model(unbuilt)


def test_a_function_that_is_not_lowered_to_a_saved_model_keeps_its_names():
    """As TensorFlow names them, and without a signature."""

    @tf.function(
        input_signature=[tf.TensorSpec([2, 3], tf.float32, name="a"), tf.TensorSpec([3], tf.float32, name="b")]
    )
    def function(a, b):
        return {"sum": a + b, "difference": a - b}

    concrete = function.get_concrete_function()
    values = {"a": np.ones((2, 3), np.float32), "b": np.array([1, 2, 3], np.float32)}
    found = []
    for package in (leadline.lite, tf.lite):
        converter = package.TFLiteConverter.from_concrete_functions([concrete], tf.Module())
        converter.experimental_lower_to_saved_model = False
        interpreter = leadline.lite.Interpreter(model_content=converter.convert())
        assert interpreter.get_signature_list() == {}
        interpreter.allocate_tensors()
        for details in interpreter.get_input_details():
            interpreter.set_tensor(details["index"], values[details["name"]])
        interpreter.invoke()
        found.append({d["name"]: interpreter.get_tensor(d["index"]).tolist() for d in interpreter.get_output_details()})
    assert found[0] == found[1]


def test_layers_after_a_resizing_are_not_in_training():
    """Resizing is in training unless its caller says otherwise, and Keras hands that on to the layers that follow."""

    class Resized(keras.Model):
        def __init__(self):
            super().__init__()
            self.resizing = keras.layers.Resizing(4, 4)
            self.norm = keras.layers.BatchNormalization()

        def call(self, x):
            return self.norm(self.resizing(x))

    model = Resized()
    x = np.random.default_rng(5).normal(3.0, 2.0, (2, 8, 8, 3)).astype(np.float32)
    wanted = keras.ops.convert_to_numpy(model(x, training=False))
    with pytest.warns(UserWarning, match="subclassed"):
        content = lite.TFLiteConverter.from_keras_model(model).convert()
    runner = lite.Interpreter(model_content=content).get_signature_runner()
    (name,) = runner.get_input_details()
    (result,) = runner(**{name: x}).values()
    np.testing.assert_allclose(result, wanted, atol=1e-5)
