# SPDX-License-Identifier: Apache-2.0
"""Each function of single_ops.py, converted from SavedModels that have several as signatures: LiteRT and Leadline
compute from the converted file what TensorFlow does. LEADLINE_LONG=1 tries all of them, otherwise every fourth: to
trace and save them takes TensorFlow minutes."""

import os

import numpy as np
import pytest
import single_ops
import tensorflow as tf

import leadline
from leadline import lite

# What neither TensorFlow's converter nor Leadline expresses with builtin ops.
REFUSED = {
    "avg_pool3d": "AvgPool3D",
    "bincount": "DenseBincount",
    "cross": "Cross",
    "cumprod": "Cumprod",
    "dilation2d": "Dilation2D",
    "dynamic_partition": "DynamicPartition",
    "extract_patches": "ExtractImagePatches",
    "max_pool3d": "MaxPool3D",
    "max_pool_argmax": "MaxPoolWithArgmax",
    "max_pool_explicit": "pads explicitly",
    "reduce_euclidean": "EuclideanNorm",
    "scatter_max": "TensorScatterMax",
    "searchsorted": "LowerBound",
    "tensor_diag": "Diag",
    "truediv_int": "float64",
    "truncatemod_int": "TruncateMod",
    "unravel_index": "UnravelIndex",
}


NAMES = list(single_ops.CASES)[:: 1 if os.environ.get("LEADLINE_LONG") else 4]
GROUP = 16  # functions in one SavedModel: saving takes time for each model, reading for each function


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Returns for the name of a case the directory it is saved in, its inputs and its wanted output."""
    names = NAMES
    made = {}

    def save_group(first):
        module = tf.Module()
        functions = {}
        path = tmp_path_factory.mktemp("single_ops")
        for name in names[first : first + GROUP]:
            function, examples = single_ops.concrete(name)
            setattr(module, name, function)
            functions[name] = function.get_concrete_function()
            made[name] = (path, examples, functions[name](*[tf.constant(e) for e in examples]).numpy())
        tf.saved_model.save(module, str(path), signatures=functions)

    def find(name):
        if name not in made:
            save_group(names.index(name) // GROUP * GROUP)
        return made[name]

    return find


@pytest.mark.parametrize("name", [n for n in NAMES if n not in REFUSED])
def test_function_computes_what_tensorflow_does(name, saved, litert):
    path, examples, expected = saved(name)
    content = lite.TFLiteConverter.from_saved_model(path, signature_keys=[name]).convert()
    for interpreter in (lite.Interpreter, litert):
        runner = interpreter(model_content=content).get_signature_runner(name)
        values = next(iter(runner(**{f"in{i}": e for i, e in enumerate(examples)}).values()))
        assert values.shape == expected.shape
        assert values.dtype == expected.dtype
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(values, expected, rtol=2e-4, atol=2e-5)
        else:
            np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize("name", [n for n in NAMES if n in REFUSED])
def test_function_without_builtin_ops_is_refused_by_name(name, saved):
    with pytest.raises(leadline.UnsupportedError, match=REFUSED[name]):
        lite.TFLiteConverter.from_saved_model(saved(name)[0], signature_keys=[name]).convert()
