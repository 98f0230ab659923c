# SPDX-License-Identifier: Apache-2.0
"""Full-integer files beside those of TensorFlow's converter, made from the same float model and the same samples."""

from collections import Counter

import numpy as np
import pytest
import quantize_models
from ai_edge_litert import schema_py_generated as schema

import leadline

OPS = {value: name for name, value in vars(schema.BuiltinOperator).items() if isinstance(value, int)}
TYPES = {value: name for name, value in vars(schema.TensorType).items() if isinstance(value, int)}
CONVERSIONS = {"QUANTIZE", "DEQUANTIZE"}


class File:
    """What a file says: for each node its op, and type, scale and zero point of what it makes and of its constants."""

    def __init__(self, content):
        self.content = content
        model = schema.ModelT.InitFromObj(schema.Model.GetRootAsModel(content, 0))
        graph = model.subgraphs[0]
        self.results, self.constants, self.histogram = [], [], Counter()
        for node in graph.operators:
            code = model.operatorCodes[node.opcodeIndex]
            op = OPS[max(code.builtinCode, code.deprecatedBuiltinCode)]
            self.histogram[op] += 1
            for index in node.outputs:
                self.results.append((op, *self.parameters(graph.tensors[index])))
            for operand, index in enumerate(node.inputs):
                data = None if index < 0 else model.buffers[graph.tensors[index].buffer].data
                if data is not None and len(data):
                    self.constants.append((op, operand, *self.parameters(graph.tensors[index])))
        self.results.sort()
        self.constants.sort()

    @staticmethod
    def parameters(tensor):
        quantization = tensor.quantization
        if quantization is None or quantization.scale is None:
            return TYPES[tensor.type], (), ()
        return TYPES[tensor.type], tuple(quantization.scale.tolist()), tuple(quantization.zeroPoint.tolist())


def same(mine, other):
    """Entries of the same op and type with the same zero points and (nearly) the same scales."""
    return mine[:-2] == other[:-2] and mine[-1] == other[-1] and np.allclose(mine[-2], other[-2], rtol=1e-5, atol=0)


def assert_equal_parameters(ours, theirs, overwritten=0.0):
    """Lists of (op, ..., type, scales, zero points).

    TensorFlow's calibration reads some results after a later node has overwritten them in place, and gives them that
    node's range: this share of entries may have no partner here.
    """
    assert sorted(entry[:-2] for entry in ours) == sorted(entry[:-2] for entry in theirs)
    left = list(theirs)
    for mine in ours:
        partner = next((i for i, other in enumerate(left) if same(mine, other)), None)
        if partner is not None:
            left.pop(partner)
    assert len(left) <= len(theirs) * overwritten, left


def run(interpreter_class, content, sample):
    interpreter = interpreter_class(model_content=content)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], sample)
    interpreter.invoke()
    return {d["name"]: interpreter.get_tensor(d["index"]).copy() for d in interpreter.get_output_details()}


@pytest.fixture(scope="module")
def case():
    """(model, samples, float file) by name; made once."""
    made = {}

    def get(name):
        if name not in made:
            model = quantize_models.build(name)
            data = quantize_models.samples(model)
            made[name] = model, data, quantize_models.convert(model, "float", data)
        return made[name]

    return get


def quantize(content, data, mode, **options):
    options = {"min_weight_elements": 1024} | options  # as TensorFlow
    return leadline.quantize(content, mode=mode, representative_dataset=[[sample] for sample in data], **options)


def assert_good_outputs(litert, float_content, ours, theirs, data):
    """Equal in both engines, and no further from the float model than TensorFlow's file."""
    errors = {"ours": 0.0, "theirs": 0.0}
    for sample in data:
        exact = run(litert, float_content, sample)
        mine, other = run(litert, ours, sample), run(litert, theirs, sample)
        here = run(leadline.lite.Interpreter, ours, sample)
        for name, expected in exact.items():
            span = float(np.ptp(expected)) or 1.0
            np.testing.assert_allclose(
                here[name], mine[name], atol=span * 0.02
            )  # LiteRT's own kernels differ by a step
            errors["ours"] += float(np.mean((mine[name] - expected) ** 2))
            errors["theirs"] += float(np.mean((other[name] - expected) ** 2))
    assert errors["ours"] <= errors["theirs"] * 1.25 + 1e-9, errors  # chance: a rounding here or there


@pytest.mark.parametrize("name", [name for name in quantize_models.MODELS if name != "lstm"])
def test_int8_files_have_the_structure_and_scales_of_tensorflow(case, litert, name):
    model, data, float_content = case(name)
    theirs = quantize_models.convert(model, "int8", data)
    ours = quantize(float_content, data, "int8")
    mine, other = File(ours), File(theirs)
    assert mine.histogram == other.histogram
    assert_equal_parameters(mine.results, other.results, overwritten=0.25)
    assert_equal_parameters(mine.constants, other.constants)
    assert len(ours) <= len(theirs) * 1.02
    assert_good_outputs(litert, float_content, ours, theirs, data)


@pytest.mark.parametrize("name", [name for name in quantize_models.MODELS if name != "lstm"])
def test_int16_files_are_at_least_as_good_as_those_of_tensorflow(case, litert, name):
    model, data, float_content = case(name)
    theirs = quantize_models.convert(model, "int16x8", data)
    ours = quantize(float_content, data, "int16x8")
    mine, other = File(ours), File(theirs)
    # Leadline leaves fewer nodes in float, and sums whose scale must be that of their input.
    assert mine.histogram - Counter(dict.fromkeys(CONVERSIONS, 1000)) == other.histogram - Counter(
        dict.fromkeys(CONVERSIONS, 1000)
    )
    assert len(ours) <= len(theirs) * 1.02 + 256
    if name == "transformer":  # TensorFlow's file has int16 SQUARED_DIFFERENCE, which LiteRT has not
        return
    assert_good_outputs(litert, float_content, ours, theirs, data)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_integer_inputs_and_outputs_are_those_of_tensorflow(case, dtype):
    import tensorflow as tf

    model, data, float_content = case("convnet")
    types = {"inference_input_type": getattr(tf, dtype), "inference_output_type": getattr(tf, dtype)}
    theirs = File(quantize_models.convert(model, "int8", data, **types))
    ours = File(quantize(float_content, data, "int8", input_type=dtype, output_type=dtype))
    assert ours.histogram == theirs.histogram
    assert_equal_parameters(ours.results, theirs.results)
