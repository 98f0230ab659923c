# SPDX-License-Identifier: Apache-2.0
"""What the attributes of TFLiteConverter ask for: TensorFlow's rules, without a conversion."""

import enum
import types

import numpy as np
import pytest

import leadline
from leadline import lite
from leadline.lite.converter_quantization import Request, fulfil, request

INT16X8 = lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
DEFAULT = [lite.Optimize.DEFAULT]


def samples():
    yield [np.zeros((1, 5), np.float32)]


def asked(optimizations=DEFAULT, dataset=None, ops=None, kinds=None, **attributes):
    converter = types.SimpleNamespace(
        optimizations=optimizations,
        representative_dataset=dataset,
        target_spec=lite.TargetSpec(ops, kinds),
        inference_input_type=None,
        inference_output_type=None,
    )
    vars(converter).update(attributes)
    before = {**vars(converter), "target_spec": dict(vars(converter.target_spec))}
    result = request(converter)
    assert {**vars(converter), "target_spec": vars(converter.target_spec)} == before
    return result


class Half:
    """A type as TensorFlow has them."""

    name = "float16"
    size = 2


def plain_model() -> bytes:
    builder = leadline.ModelBuilder()
    builder.output(builder.node("TANH", [builder.input("x", np.float32, [1, 8])], name="y"))
    return builder.to_tflite()


@pytest.mark.parametrize(
    ("mode", "settings", "options"),
    [
        (None, {}, {"optimizations": []}),
        ("dynamic", {"min_weight_elements": 1024}, {}),
        ("dynamic", {}, {"optimizations": {lite.Optimize.OPTIMIZE_FOR_SIZE}}),
        ("int8", {"allow_float": True}, {"dataset": samples}),
        ("int8", {"allow_float": True}, {"dataset": lite.RepresentativeDataset(samples)}),
        ("int8", {"allow_float": False}, {"dataset": samples, "ops": [lite.OpsSet.TFLITE_BUILTINS_INT8]}),
        ("int8", {"allow_float": False}, {"dataset": samples, "kinds": [np.int8]}),
        ("int8", {"allow_float": True},
         {"dataset": samples, "ops": [lite.OpsSet.TFLITE_BUILTINS, lite.OpsSet.TFLITE_BUILTINS_INT8]}),
        ("int16x8", {"allow_float": False}, {"dataset": samples, "ops": [INT16X8]}),
        ("int16x8", {"allow_float": True}, {"dataset": samples, "ops": [INT16X8, lite.OpsSet.TFLITE_BUILTINS]}),
        ("float16", {}, {"kinds": [np.float16]}),
        ("float16", {}, {"kinds": [Half()]}),
        ("float16", {}, {"kinds": [leadline.DType.FLOAT16], "dataset": samples}),
        ("int8", {"input_type": "uint8", "output_type": "int8"},
         {"dataset": samples, "inference_input_type": np.uint8, "inference_output_type": leadline.DType.INT8}),
        ("dynamic", {"per_channel": False}, {"_experimental_disable_per_channel": True}),
        ("dynamic", {"per_channel": True, "per_channel_dense": False},
         {"_experimental_disable_per_channel_quantization_for_dense_layers": True}),
    ],
)  # fmt: skip
def test_attributes_mean_what_they_mean_in_tensorflow(mode, settings, options):
    result = asked(**options)
    assert (result.mode if result else None) == mode
    if result:
        assert {name: result.settings[name] for name in settings} == settings


@pytest.mark.parametrize(
    ("message", "options"),
    [
        ("`representative_dataset` must be specified", {"ops": [lite.OpsSet.TFLITE_BUILTINS_INT8]}),
        ("`representative_dataset` must be specified", {"ops": [INT16X8]}),
        ("uninitizalized", {"ops": [lite.OpsSet.TFLITE_BUILTINS_INT8], "kinds": [np.float16], "dataset": samples}),
        ("choose one", {"ops": [lite.OpsSet.TFLITE_BUILTINS_INT8, INT16X8], "dataset": samples}),
        ("must be tf.float32", {"inference_input_type": np.int8}),
        ("must be tf.float32", {"optimizations": [], "inference_output_type": np.int8}),
        ("must be in", {"dataset": samples, "inference_input_type": np.int32}),
        ("must be in", {"dataset": samples, "ops": [INT16X8], "inference_input_type": np.int8}),
        ("bfloat16", {"kinds": ["bfloat16"]}),
        ("_experimental_calibrate_only", {"_experimental_calibrate_only": True}),
        ("int32", {"dataset": samples, "_experimental_full_integer_quantization_bias_type": np.int64}),
    ],
)
def test_contradictions_are_value_errors(message, options):
    model = leadline.Model.from_bytes(plain_model())
    with pytest.raises(ValueError, match=message) as error:
        fulfil(asked(**options), model)  # some are none for models that were trained for quantization
    assert isinstance(error.value, leadline.Error)


def test_calibrating_alone_is_asked_for_where_there_are_samples():
    assert asked(dataset=samples, _experimental_calibrate_only=True).settings["ranges_only"]
    assert "ranges_only" not in asked(dataset=samples).settings


def test_a_calibrated_file_quantizes_as_its_calibration_does():
    builder = leadline.ModelBuilder()
    x = builder.input("x", np.float32, [1, 8])
    weights = np.random.default_rng(0).normal(0, 1, (4, 8)).astype(np.float32)
    hidden = builder.node("FULLY_CONNECTED", [x, weights, np.zeros(4, np.float32)], name="hidden")
    builder.output(builder.node("TANH", [hidden], name="y"))
    model = leadline.Model.from_bytes(builder.to_tflite())
    data = [[np.random.default_rng(i).normal(0, 1, (1, 8)).astype(np.float32)] for i in range(4)]
    calibration = leadline.calibrate(model, data)
    calibrated = fulfil(Request("int8", lambda: iter(data), {"ranges_only": True, "budget": None}), model)
    quantize = lite.convert.mlir_quantize

    def described(content):
        details = lite.Interpreter(model_content=content).get_tensor_details()
        return [
            (d["name"], d["dtype"], d["quantization"], d["quantization_parameters"]["scales"].tolist()) for d in details
        ]

    for ends, fully in ({}, False), ({"input_type": "int8", "output_type": "int8"}, True):
        direct = leadline.quantize(model, "int8", calibration=calibration, quantized_name="tfl.quantize", **ends)
        assert described(quantize(calibrated, fully_quantize=fully)) == described(direct)
    names = [
        d["name"]
        for d in lite.Interpreter(model_content=quantize(calibrated, enable_numeric_verify=True)).get_tensor_details()
    ]
    assert sum(name.startswith("NumericVerify/") for name in names) == 2
    kept = quantize(calibrated, fully_quantize=True, denylisted_ops=["FULLY_CONNECTED"], denylisted_nodes=["y"])
    assert {d["dtype"] for d in lite.Interpreter(model_content=kept).get_tensor_details()} == {np.float32}
    with pytest.raises(ValueError, match="it was not calibrated"):
        quantize(builder.to_tflite())
    with pytest.raises(ValueError, match="int8 or int16"):
        quantize(calibrated, inference_type=np.float32)


def test_a_model_that_stays_float_against_expectation_is_warned_about():
    for options in ({"dataset": samples}, {"kinds": [np.float16]}):
        with pytest.warns(UserWarning, match="optimizations is empty"):
            assert asked(optimizations=[], **options) is None


def test_members_of_tensorflows_own_enums_are_understood():
    class OpsSet(enum.Enum):
        TFLITE_BUILTINS_INT8 = "TFLITE_BUILTINS_INT8"

    class Optimize(enum.Enum):
        DEFAULT = "DEFAULT"

    result = asked(optimizations=[Optimize.DEFAULT], dataset=samples, ops=[OpsSet.TFLITE_BUILTINS_INT8])
    assert (result.mode, result.settings["allow_float"]) == ("int8", False)
