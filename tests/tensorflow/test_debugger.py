# SPDX-License-Identifier: Apache-2.0
"""leadline.lite.experimental.QuantizationDebugger beside TensorFlow's: the same numbers where TensorFlow is right."""

import csv
import io

import numpy as np
import pytest
import tensorflow as tf

import leadline

layers = tf.keras.layers
# Not symmetric: with a zero point of 0 TensorFlow's debugger takes an int8 input for one without parameters.
SAMPLES = [np.random.RandomState(i).uniform(-1, 0.8, (1, 16, 16, 3)).astype(np.float32) for i in range(4)]


def dataset():
    for sample in SAMPLES:
        yield [sample]


def convnet() -> tf.keras.Model:
    image = layers.Input((16, 16, 3), name="image")
    x = layers.Conv2D(8, 3, padding="same", name="stem_conv")(image)
    x = layers.ReLU(6, name="stem_relu")(x)
    x = layers.DepthwiseConv2D(3, padding="same", activation="relu", name="block1_dw")(x)
    y = layers.Conv2D(8, 1, name="block1_pw")(x)
    x = layers.Add(name="block1_add")([x, y])
    x = layers.Conv2D(16, 3, strides=2, activation="relu", name="block2_conv")(x)
    x = layers.GlobalAveragePooling2D(name="pool")(x)
    return tf.keras.Model(image, layers.Softmax(name="probs")(layers.Dense(10, name="logits")(x)))


def dense() -> tf.keras.Model:
    image = layers.Input((16, 16, 3), name="image")
    x = layers.Flatten()(layers.AveragePooling2D(4)(image))
    x = layers.Dense(24, activation="sigmoid", name="hidden")(x)
    return tf.keras.Model(image, layers.Dense(5, name="result")(x))


def converter_of(model) -> tf.lite.TFLiteConverter:
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = dataset
    return converter


@pytest.fixture(scope="module", params=[(convnet, False), (convnet, True), (dense, False)], ids=str)
def pair(request):
    """A debugger of TensorFlow that ran, and one of Leadline with the same debug model that ran."""
    make, fully_quantize = request.param
    tf.keras.utils.set_random_seed(3)
    metrics = {"l1": lambda diffs: np.mean(np.abs(diffs))}
    direct = {"corr": lambda f, q, s, z: float(np.mean(np.abs(f - s * (q.astype(np.int32) - z))))}
    theirs = tf.lite.experimental.QuantizationDebugger(
        converter=converter_of(make()),
        debug_dataset=dataset,
        debug_options=tf.lite.experimental.QuantizationDebugOptions(
            layer_debug_metrics=metrics, fully_quantize=fully_quantize
        ),
    )
    theirs.run()
    ours = leadline.lite.experimental.QuantizationDebugger(
        quant_debug_model_content=theirs.get_debug_quantized_model(),
        debug_dataset=dataset,
        debug_options=leadline.lite.experimental.QuantizationDebugOptions(
            layer_debug_metrics=metrics, layer_direct_compare_metrics=direct
        ),
    )
    ours.run()
    return theirs, ours


def test_statistics_are_tensorflows(pair):
    theirs, ours = pair
    assert list(ours.layer_statistics) == list(theirs.layer_statistics)
    for name, expected in theirs.layer_statistics.items():
        got = ours.layer_statistics[name]
        # A mean may cancel to nothing, and errors of exact layers are rounding noise of the two engines.
        noise = {"mean_error": 1e-8 + 1e-4 * float(expected["stddev"]), "mean_squared_error": 1e-14}
        for metric, value in expected.items():
            assert got[metric] == pytest.approx(value, rel=1e-4, abs=noise.get(metric, 1e-7)), (name, metric)


def test_direct_comparison_sees_the_values_of_the_layer(pair):
    _, ours = pair
    for statistics in ours.layer_statistics.values():
        assert statistics["corr"] == pytest.approx(statistics["l1"], rel=1e-4, abs=1e-7)


def test_csv_has_tensorflows_columns_and_rows(pair):
    theirs, _ = pair
    tables = []
    for debugger in pair:
        file = io.StringIO()
        debugger.layer_statistics_dump(file)
        tables.append(list(csv.DictReader(io.StringIO(file.getvalue()))))
    assert [name for name in tables[1][0] if name != "corr"] == list(tables[0][0])
    assert len(tables[0]) == len(tables[1])
    names = {
        tensor.name for tensor in leadline.Model.from_bytes(theirs.get_nondebug_quantized_model()).subgraph(0).tensors
    }
    for expected, got in zip(*tables, strict=True):
        for column in ("op_name", "tensor_idx", "zero_point"):
            assert got[column] == expected[column]
        assert float(got["scale"]) == pytest.approx(float(expected["scale"]))
        assert any(name.startswith(got["tensor_name"]) for name in names)


def test_names_keep_their_last_digit():
    tf.keras.utils.set_random_seed(3)
    theirs = tf.lite.experimental.QuantizationDebugger(
        converter=converter_of(convnet()),
        debug_dataset=dataset,
        debug_options=tf.lite.experimental.QuantizationDebugOptions(fully_quantize=True),
    )
    ours = leadline.lite.experimental.QuantizationDebugger(
        quant_debug_model_content=theirs.get_debug_quantized_model(), debug_dataset=dataset
    )
    ours.run()
    file = io.StringIO()
    ours.layer_statistics_dump(file)
    last = list(csv.DictReader(io.StringIO(file.getvalue())))[-1]
    output = leadline.Model.from_bytes(theirs.get_nondebug_quantized_model()).subgraph(0)
    assert last["tensor_name"] == output.tensors[output.outputs[0]].name


@pytest.mark.parametrize("mode", ["int8", "int16x8", "dynamic", "float16"])
def test_every_kind_of_quantized_model_is_compared(mode):
    tf.keras.utils.set_random_seed(3)
    model = convnet()
    float_model = tf.lite.TFLiteConverter.from_keras_model(model).convert()
    converter = converter_of(model)
    if mode in ("dynamic", "float16"):
        converter.representative_dataset = None
    if mode == "float16":
        converter.target_spec.supported_types = [tf.float16]
    if mode == "int16x8":
        converter.target_spec.supported_ops = [
            tf.lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
        ]
    result = leadline.debug(float_model, converter.convert(), dataset)
    assert not result.to_dict()["unmatched"]
    named = {layer["layer"] for layer in result.layers}
    assert {"stem_conv", "block1_dw", "block1_pw", "block1_add", "block2_conv", "pool", "logits"} <= named
    assert all(layer["accumulated"] for layer in result.layers)
    assert result.outputs[0]["accumulated"]["cosine"] > 0.99
    if mode != "dynamic":  # which leaves small weights alone
        assert all(layer["own"] for layer in result.layers if layer["op"] == "CONV_2D")


def test_planted_layer_is_the_first_suspect():
    """A channel that nobody reads takes the whole range. The probabilities hardly differ from each other, so that their
    cosine is 0.998 although nothing of the float model's answers is left."""
    tf.keras.utils.set_random_seed(3)
    model = convnet()
    layer, reader = model.get_layer("block1_pw"), model.get_layer("block2_conv")
    kernel, bias = layer.get_weights()
    kernel[..., 5] *= 1000
    layer.set_weights([kernel, bias])
    kernel, bias = reader.get_weights()
    kernel[:, :, 5] = 0
    reader.set_weights([kernel, bias])
    float_model = tf.lite.TFLiteConverter.from_keras_model(model).convert()
    converter = converter_of(model)
    converter._experimental_disable_per_channel = True
    result = leadline.debug(float_model, converter.convert(), dataset)
    assert result.outputs[0]["accumulated"]["cosine"] > 0.99
    suspect = result.suspects[0]
    assert result.layers[suspect["layer"]]["layer"] == "block1_pw"
    assert suspect["kind"] == "weight_outlier"
    assert "channel 5" in suspect["why"]


def test_a_model_that_lost_nothing_has_no_suspects():
    tf.keras.utils.set_random_seed(3)
    model = convnet()
    float_model = tf.lite.TFLiteConverter.from_keras_model(model).convert()
    assert leadline.debug(float_model, converter_of(model).convert(), dataset).suspects == []
    clipped = leadline.quantize(float_model, "int8", dataset, method="percentile", percentile=60)
    assert {suspect["kind"] for suspect in leadline.debug(float_model, clipped, dataset).suspects} >= {"saturation"}
