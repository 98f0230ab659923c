# SPDX-License-Identifier: Apache-2.0
"""Every class of keras.layers is converted, or refused with a reason."""

import inspect

import pytest

keras = pytest.importorskip("keras", reason="keras is not installed")

import keras_layer_cases  # noqa: E402
from keras import layers  # noqa: E402
from keras_cases import Case, check, refusal, with_class  # noqa: E402

import leadline  # noqa: E402

# Classes that cannot be converted, and what the error says about them.
REFUSED = {
    "ContrastLimitedAdaptiveHistogramEqualization": "histograms",
    "FlaxLayer": "another library",
    "HashedCrossing": "before the model is called",
    "Hashing": "before the model is called",
    "IntegerLookup": "before the model is called",
    "JaxLayer": "another library",
    "Lambda": "keras.ops",
    "Layer": "computes nothing",
    "StringLookup": "before the model is called",
    "TFSMLayer": "another library",
    "TextVectorization": "before the model is called",
    "TorchModuleWrapper": "another library",
    "Wrapper": "computes nothing",
}
# No layers, or layers that functional models cannot hold: Equalization gives its own input, and boxes are not tensors.
NO_LAYERS = {"InputLayer", "InputSpec", "Equalization", "MaxNumBoundingBoxes", "Pipeline"}


@pytest.mark.parametrize("case", keras_layer_cases.CASES, ids=lambda case: case.id)
def test_layer_computes_what_keras_does(case, litert):
    check(case, litert)


def test_every_class_is_in_the_table_or_refused():
    named = {case.id.split("-")[0] for case in keras_layer_cases.CASES} | set(REFUSED) | NO_LAYERS
    known = {getattr(layers, name) for name in named}
    classes = {name: value for name, value in vars(layers).items() if inspect.isclass(value)}
    assert [name for name, value in classes.items() if value not in known] == []


@pytest.mark.parametrize("name", REFUSED)
def test_refused_class_says_why(name, tmp_path):
    model = Case("dense", lambda x: layers.Dense(3, name="the_layer")(x), [(4,)]).model()
    with pytest.raises(leadline.UnsupportedError) as caught:
        leadline.lite.TFLiteConverter.from_keras_file(with_class(model, tmp_path, "Dense", name)).convert()
    assert f"the_layer ({name})" in str(caught.value) and REFUSED[name] in str(caught.value)


@pytest.mark.parametrize(("function", "words"), [
    (lambda x: layers.LSTM(3, stateful=True)(x), "stateful=False"),
    (lambda x: layers.Resizing(4, 4, antialias=True)(layers.Reshape((5, 4, 1))(x)), "antialias=False"),
    (lambda x: layers.UpSampling2D(2, interpolation="bicubic")(layers.Reshape((5, 4, 1))(x)), "nearest and bilinear"),
])  # fmt: skip
def test_refused_setting_says_what_to_do(function, words):
    if words == "stateful=False":
        keras.utils.clear_session(free_memory=False)
        x = keras.Input(batch_shape=(2, 5, 4))
        model = keras.Model(x, function(x))
        with pytest.raises(leadline.UnsupportedError, match=words):
            leadline.lite.TFLiteConverter.from_keras_model(model).convert()
    else:
        assert words in refusal(Case("refused", function, [(5, 4)]))
