# SPDX-License-Identifier: Apache-2.0
"""leadline.ModelBuilder: what it writes, Leadline and LiteRT both read."""

import numpy as np
import pytest

import leadline


def run(interpreter_class, content, *values):
    interpreter = interpreter_class(model_content=content)
    interpreter.allocate_tensors()
    for details, value in zip(interpreter.get_input_details(), values, strict=True):
        interpreter.set_tensor(details["index"], value)
    interpreter.invoke()
    return [interpreter.get_tensor(details["index"]) for details in interpreter.get_output_details()]


def while_model() -> bytes:
    """Doubles x until it is 100 or more."""
    builder = leadline.ModelBuilder()
    less, double = builder.subgraph("less"), builder.subgraph("double")
    x = less.input("x", np.float32, [1])
    y = less.tensor("y", np.bool_, [1])
    less.node("LESS", [x, less.constant("limit", np.array([100], np.float32))], [y])
    less.output(y)
    x = double.input("x", np.float32, [1])
    y = double.tensor("y", np.float32, [1])
    double.node("ADD", [x, x], [y])
    double.output(y)
    x = builder.input("x", np.float32, [1])
    y = builder.tensor("y", np.float32, [1])
    builder.node("WHILE", [x], [y], cond_subgraph_index=less.index, body_subgraph_index=double.index)
    builder.output(y)
    builder.signature("grow", builder, {"x": x}, {"y": y})
    return builder.to_tflite()


def test_subgraphs_and_signatures(litert):
    content = while_model()
    value = np.array([3], np.float32)
    for interpreter in (leadline.lite.Interpreter, litert):
        np.testing.assert_array_equal(run(interpreter, content, value)[0], [192])
        assert interpreter(model_content=content).get_signature_list() == {"grow": {"inputs": ["x"], "outputs": ["y"]}}


def test_types_that_numpy_does_not_have(litert):
    builder = leadline.ModelBuilder()
    x = builder.input("x", np.float32, [1, 4])
    weights = np.arange(-8, 4, dtype=np.int8).reshape(3, 4)
    w = builder.constant("w", weights, leadline.DType.INT4, scales=[0.5])
    y = builder.tensor("y", np.float32, [1, 3])
    builder.node("FULLY_CONNECTED", [x, w, None], [y])
    builder.output(y)
    content = builder.to_tflite()
    value = np.array([[1, 2, -1, 0.5]], np.float32)
    ours, theirs = (run(cls, content, value)[0] for cls in (leadline.lite.Interpreter, litert))
    np.testing.assert_allclose(ours, theirs, atol=0.05)
    assert leadline.Model.from_bytes(content).subgraph(0).tensors[w].dtype is leadline.DType.INT4


def test_illegal_models_are_refused():
    builder = leadline.ModelBuilder()
    x = builder.input("x", np.float32, [1])
    with pytest.raises(leadline.InvalidArgumentError, match="has no attribute 'axis'"):
        builder.node("ADD", [x, x], [x], axis=1)
    builder.node("ADD", [x], [builder.tensor("y", np.float32)])
    with pytest.raises(leadline.InvalidModelError, match="ADD"):
        builder.to_tflite()


def test_misspelt_ops_are_refused():
    builder = leadline.ModelBuilder()
    x, y = builder.input("x", np.float32, [1]), builder.tensor("y", np.float32, [1])
    for name, meant in (("ADDD", "'ADD'"), ("Conv2D", "'CONV_2D'"), ("add", "'ADD'"), ("FULY_CONECTED", "'FULLY_CON")):
        with pytest.raises(leadline.InvalidArgumentError, match=f"no op called '{name}': did you mean .*{meant}"):
            builder.node(name, [x, x], [y])
    with pytest.raises(leadline.InvalidArgumentError, match="'FROBNICATE'.*`leadline ops`"):
        builder.node("FROBNICATE", [x], [y])
    builder.node("ADDD", [x, x], [y], custom=True)
    builder.output(y)
    model = leadline.Model.from_bytes(builder.to_tflite())
    assert list(model.missing_ops) == ["ADDD"]


@pytest.mark.parametrize("name", ["MyScale", "TFLite_Something", "FlexErf"])
def test_custom_ops_need_no_further_word(name):
    builder = leadline.ModelBuilder()
    x, y = builder.input("x", np.float32, [1]), builder.tensor("y", np.float32, [1])
    builder.node(name, [x], [y])
    builder.output(y)
    assert leadline.Model.from_bytes(builder.to_tflite()).missing_ops
