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


@pytest.mark.parametrize("name", ["MyScale", "TFLite_Something", "FlexDecodeJpeg"])
def test_custom_ops_need_no_further_word(name):
    builder = leadline.ModelBuilder()
    x, y = builder.input("x", np.float32, [1]), builder.tensor("y", np.float32, [1])
    builder.node(name, [x], [y])
    builder.output(y)
    assert leadline.Model.from_bytes(builder.to_tflite()).missing_ops


def test_a_node_makes_its_tensors_and_infers_their_shapes():
    builder = leadline.ModelBuilder()
    x = builder.input("x", np.float32, [1, 6, 6, 3])
    y = builder.node(
        "CONV_2D", [x, np.ones((4, 3, 3, 3), np.float32), np.zeros(4, np.float32)], name="conv", stride_w=1, stride_h=1
    )
    flat = builder.node("RESHAPE", [y, np.array([1, -1], np.int32)])
    above = builder.node("GREATER", [flat, np.array(1, np.float32)], name="above")
    low, high = builder.node("SPLIT", [np.array(1, np.int32), flat], 2, name="part", dtype=np.float32, num_splits=2)
    builder.output(above, low, high)
    interpreter = leadline.lite.Interpreter(model_content=builder.to_tflite())
    details = {detail["name"]: detail for detail in interpreter.get_tensor_details()}
    assert details["conv"]["shape"].tolist() == [1, 6, 6, 4]
    assert details["RESHAPE"]["shape"].tolist() == [1, 144]
    assert details["above"]["dtype"] is np.bool_
    assert [details[f"part:{i}"]["shape"].tolist() for i in (0, 1)] == [[1, 72], [1, 72]]
    interpreter.allocate_tensors()
    interpreter.set_tensor(x, np.ones((1, 6, 6, 3), np.float32))
    interpreter.invoke()
    assert interpreter.get_tensor(low).max() == 27


def test_a_node_that_cannot_be_made_leaves_nothing_behind():
    builder = leadline.ModelBuilder()
    x = builder.input("x", np.float32, [2, 3])
    sizes = builder.input("sizes", np.int32, [2])
    with pytest.raises(leadline.Error):
        builder.node("ADD", [x, np.ones(2, np.float32)])
    with pytest.raises(leadline.InvalidArgumentError, match="depend on data"):
        builder.node("RESHAPE", [x, sizes])
    with pytest.raises(leadline.InvalidArgumentError, match="cannot infer"):
        builder.node("MyOp", [x])
    with pytest.raises(leadline.InvalidArgumentError, match="no attribute 'name'"):
        builder.node("TANH", [x], [x], name="y")
    with pytest.raises(leadline.InvalidArgumentError, match="none of the"):
        builder.node("TANH", [99])
    made = builder.node("RESHAPE", [x, sizes], shape=[3, 2])
    custom = builder.node("MyOp", [made], shape=(6,), dtype=np.int32)
    builder.output(custom)
    names = [d["name"] for d in leadline.lite.Interpreter(model_content=builder.to_tflite()).get_tensor_details()]
    assert names == ["x", "sizes", "ADD/constant", "RESHAPE", "MyOp"]


def test_both_builders_have_one_form_of_node():
    import inspect

    from leadline.keras_layers import KerasLayerBuilder

    own = inspect.signature(leadline.ModelBuilder.node).parameters
    layer = inspect.signature(KerasLayerBuilder.node).parameters
    assert [name for name in own if name in layer] == list(layer)
    assert {name: own[name].kind for name in layer} == {name: layer[name].kind for name in layer}
    assert {name: own[name].default for name in layer} == {name: layer[name].default for name in layer}
