# SPDX-License-Identifier: Apache-2.0
"""What the attributes of TFLiteConverter ask for: TensorFlow's rules, without a conversion."""

import enum
import types

import numpy as np
import pytest

import leadline
from leadline import lite
from leadline.lite.converter_quantization import request

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


@pytest.mark.parametrize(
    ("mode", "settings", "options"),
    [
        (None, {}, {"optimizations": []}),
        ("dynamic", {}, {}),
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
    with pytest.raises(ValueError, match=message) as error:
        asked(**options)
    assert isinstance(error.value, leadline.Error)


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
