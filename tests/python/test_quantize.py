# SPDX-License-Identifier: Apache-2.0
"""leadline.quantize: every mode loads and runs in LiteRT and in Leadline, recipes and options do what they say."""

import json

import numpy as np
import pytest
from test_cli import PROGRAM, USAGE, leadline as run_program, leadline_json

import leadline
from leadline import lite

WEIGHT_MODES = ("float16", "dynamic", "weight_only_int8", "weight_only_int4")
INTEGER_MODES = ("int8", "int16x8")


@pytest.fixture(scope="module")
def model() -> bytes:
    """CONV_2D, DEPTHWISE_CONV_2D, MEAN and FULLY_CONNECTED with weights of more than 1024 elements, and SOFTMAX."""
    random = np.random.default_rng(1)
    b = leadline.ModelBuilder()

    def weights(name, *shape):
        return b.constant(name, (random.normal(size=shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32))

    x = b.input("image", np.float32, [1, 12, 12, 8])
    conv = b.tensor("block1/conv", np.float32, [1, 12, 12, 32])
    b.node("CONV_2D", [x, weights("w1", 32, 3, 3, 8), weights("b1", 32)], [conv], padding=0, stride_w=1, stride_h=1,
           fused_activation_function=1)  # fmt: skip
    depthwise = b.tensor("block2/depthwise", np.float32, [1, 12, 12, 32])
    b.node("DEPTHWISE_CONV_2D", [conv, weights("w2", 1, 6, 6, 32), weights("b2", 32)], [depthwise], padding=0,
           stride_w=1, stride_h=1, depth_multiplier=1)  # fmt: skip
    mean = b.tensor("mean", np.float32, [1, 32])
    b.node("MEAN", [depthwise, b.constant("axes", np.array([1, 2], np.int32))], [mean])
    dense = b.tensor("head/dense", np.float32, [1, 40])
    b.node("FULLY_CONNECTED", [mean, weights("w3", 40, 32), weights("b3", 40)], [dense])
    scores = b.tensor("scores", np.float32, [1, 40])
    b.node("SOFTMAX", [dense], [scores], beta=1.0)
    b.output(scores)
    b.signature("serving_default", b, {"image": x}, {"scores": scores})
    return b.to_tflite()


@pytest.fixture(scope="module")
def samples() -> list[np.ndarray]:
    random = np.random.default_rng(2)
    return [random.normal(size=(1, 12, 12, 8)).astype(np.float32) for _ in range(8)]


def outputs(interpreter_class, content: bytes, samples) -> np.ndarray:
    interpreter = interpreter_class(model_content=content)
    interpreter.allocate_tensors()
    given, taken = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
    results = []
    for sample in samples:
        value = sample
        if given["dtype"] is not np.float32:
            scale, zero_point = given["quantization"]
            limits = np.iinfo(given["dtype"])
            value = np.clip(np.round(sample / scale) + zero_point, limits.min, limits.max).astype(given["dtype"])
        interpreter.set_tensor(given["index"], value)
        interpreter.invoke()
        result = interpreter.get_tensor(taken["index"])
        if taken["dtype"] is not np.float32:
            scale, zero_point = taken["quantization"]
            result = (result.astype(np.float32) - zero_point) * scale
        results.append(result)
    return np.concatenate(results)


def quantized(model: bytes, mode: str, samples, **options) -> bytes:
    dataset = [[sample] for sample in samples] if mode in INTEGER_MODES else None
    return leadline.quantize(model, mode, dataset, **options)


@pytest.mark.parametrize("mode", WEIGHT_MODES + INTEGER_MODES)
def test_results_run_in_both_and_stay_near_the_float_model(model, samples, mode, litert):
    wanted = outputs(lite.Interpreter, model, samples)
    content = quantized(model, mode, samples)
    ours = outputs(lite.Interpreter, content, samples)
    theirs = outputs(litert, content, samples)
    np.testing.assert_allclose(ours, theirs, atol=1e-3 if mode == "dynamic" else 1e-5)
    tolerance = {"float16": 1e-4, "int16x8": 2e-3, "weight_only_int4": 0.02}.get(mode, 5e-3)
    np.testing.assert_allclose(ours, wanted, atol=tolerance)
    assert len(content) < len(model) * {"float16": 0.65, "weight_only_int4": 0.35}.get(mode, 0.5)


def test_same_arguments_give_the_same_bytes(model, samples):
    for mode in ("dynamic", "int8"):
        assert quantized(model, mode, samples) == quantized(model, mode, samples)


def test_models_come_as_path_bytes_or_model(model, tmp_path):
    path = tmp_path / "model.tflite"
    path.write_bytes(model)
    wanted = leadline.quantize(model, "dynamic")
    for form in (path, str(path), bytearray(model), leadline.Model.load(path)):
        assert leadline.quantize(form, "dynamic") == wanted
    with pytest.raises(leadline.InvalidArgumentError, match="should be the path"):
        leadline.quantize(3, "dynamic")


def types_of(content: bytes) -> dict[str, str]:
    return {t.name: t.dtype.name for t in leadline.Model.from_bytes(content).subgraph(0).tensors}


def test_weights_are_quantized_per_channel_unless_told_otherwise(model):
    def scales(**options):
        tensors = leadline.Model.from_bytes(leadline.quantize(model, "dynamic", **options)).subgraph(0).tensors
        return {t.name: len(t.scales) for t in tensors if t.name.startswith("w")}

    assert scales() == {"w1": 32, "w2": 32, "w3": 40}
    assert scales(per_channel=False) == {"w1": 1, "w2": 1, "w3": 1}
    assert scales(per_channel_dense=False) == {"w1": 32, "w2": 32, "w3": 1}
    assert scales(min_weight_elements=1300) == {"w1": 32, "w2": 0, "w3": 0}


@pytest.mark.parametrize("dtype", [np.int8, "uint8", leadline.DType.INT8, np.dtype("int8")])
def test_inputs_and_outputs_can_be_integers(model, samples, dtype, litert):
    content = quantized(model, "int8", samples, input_type=dtype, output_type=dtype)
    expected = np.uint8 if dtype == "uint8" else np.int8
    interpreter = litert(model_content=content)
    assert interpreter.get_input_details()[0]["dtype"] is expected
    assert interpreter.get_output_details()[0]["dtype"] is expected
    np.testing.assert_allclose(
        outputs(litert, content, samples), outputs(lite.Interpreter, content, samples), atol=1e-6
    )


def test_recipes_leave_nodes_float_by_op_name_and_number(model, samples, tmp_path):
    rules = [{"op": "SOFTMAX", "mode": "float"}, {"name": "^block2/", "mode": "float"}, {"node": 0, "mode": "dynamic"}]
    path = tmp_path / "recipe.json"
    path.write_text(json.dumps({"rules": rules}))
    wanted = quantized(model, "int8", samples, recipe=rules)
    for form in (path, str(path), json.dumps(rules), {"rules": rules}):
        assert quantized(model, "int8", samples, recipe=form) == wanted
    types = types_of(wanted)
    assert types["scores"] == "FLOAT32"
    assert types["block1/conv"] == types["block2/depthwise"] == types["w2"] == "FLOAT32"
    assert types["w1"] == types["w3"] == types["mean"] == "INT8"


def test_recipes_of_ai_edge_quantizer_leave_the_rest_float(model, litert, samples):
    recipe = [{
        "regex": "head/.*", "operation": "FULLY_CONNECTED", "algorithm_key": "min_max_uniform_quantize",
        "op_config": {
            "weight_tensor_config": {"num_bits": 8, "symmetric": True, "granularity": "CHANNELWISE", "dtype": "INT"},
            "compute_precision": "INTEGER", "explicit_dequantize": False,
        },
    }]  # fmt: skip
    content = leadline.quantize(model, recipe=recipe)  # no activations: no samples needed
    types = types_of(content)
    assert (types["w1"], types["w2"], types["w3"]) == ("FLOAT32", "FLOAT32", "INT8")
    np.testing.assert_allclose(
        outputs(litert, content, samples), outputs(lite.Interpreter, content, samples), atol=1e-3
    )


def test_bad_arguments_are_named(model, samples, tmp_path):
    cases = [
        ({"mode": "int9"}, "'int9'"),
        ({"mode": "int8"}, "representative_dataset"),
        ({"mode": "dynamic", "method": "median"}, "median"),
        ({"mode": "dynamic", "input_type": np.int32}, "int32"),
        ({"mode": "dynamic", "input_type": np.int8}, "input_type"),
        ({"mode": "dynamic", "recipe": [{"mode": "int8", "name": "a("}]}, "rule 0"),
        ({"mode": "dynamic", "recipe": [{"mode": "int8", "nodes": 3}]}, "'nodes'"),
        ({"mode": "dynamic", "recipe": "[1,"}, "line 1"),
        ({"mode": "dynamic", "recipe": tmp_path / "none.json"}, "none.json"),
        ({"mode": "dynamic", "recipe": [{"mode": np.int8}]}, "recipe"),
    ]
    for arguments, message in cases:
        with pytest.raises(leadline.Error, match=message):
            leadline.quantize(model, **arguments)
    with pytest.raises(leadline.UnsupportedError, match="quantized already"):
        leadline.quantize(leadline.quantize(model, "dynamic"), "dynamic")


def test_strict_integers_list_the_nodes_without_a_form(samples):
    b = leadline.ModelBuilder()
    x = b.input("x", np.float32, [1, 4])
    y, z = b.tensor("wave", np.float32, [1, 4]), b.tensor("z", np.float32, [1, 4])
    b.node("COS", [x], [y])
    b.node("RELU", [y], [z])
    b.output(z)
    content = b.to_tflite()
    dataset = [[np.full((1, 4), i, np.float32)] for i in range(4)]
    with pytest.raises(leadline.UnsupportedError, match="COS #0 'wave'"):
        leadline.quantize(content, "int8", dataset, allow_float=False)
    assert leadline.quantize(content, "int8", dataset)


def test_bias_correction_and_equalization_take_any_dataset(model, samples):
    wanted = outputs(lite.Interpreter, model, samples)
    plain = quantized(model, "int8", samples)
    for options in ({"bias_correction": True}, {"equalize": True}, {"bias_correction": True, "equalize": True}):
        content = leadline.quantize(model, "int8", iter([[sample] for sample in samples]), **options)
        np.testing.assert_allclose(outputs(lite.Interpreter, content, samples), wanted, atol=5e-3)
        if "bias_correction" in options:
            assert content != plain


def test_misspelled_arguments_are_refused_first(model, samples):
    with pytest.raises(TypeError, match="unexpected keyword argument 'per_chanel'"):
        leadline.quantize(model, "dynamic", per_chanel=False)
    with pytest.raises(TypeError, match="unexpected keyword argument 'calibration_data'"):
        leadline.quantize(model, "int8", calibration_data=samples)


def test_weights_of_conv_3d_can_be_widened(litert):
    random = np.random.default_rng(3)
    b = leadline.ModelBuilder()
    x = b.input("x", np.float32, [1, 4, 6, 6, 4])
    y = b.tensor("y", np.float32, [1, 4, 6, 6, 16])
    w = b.constant("w", random.normal(size=(3, 3, 3, 4, 16)).astype(np.float32))
    b.node("CONV_3D", [x, w], [y], padding=0, stride_d=1, stride_w=1, stride_h=1, dilation_d_factor=1,
           dilation_w_factor=1, dilation_h_factor=1)  # fmt: skip
    b.output(y)
    content = leadline.quantize(b.to_tflite(), "weight_only_int8")
    assert types_of(content)["w"] == "INT8"
    sample = [random.normal(size=(1, 4, 6, 6, 4)).astype(np.float32)]
    wanted = outputs(litert, b.to_tflite(), sample)
    for interpreter in (litert, lite.Interpreter):
        np.testing.assert_allclose(outputs(interpreter, content, sample), wanted, atol=0.5)


def test_budget_and_memory_come_back(model, samples):
    budget = leadline.Budget(64 << 20)
    dataset = [[sample] for sample in samples]
    leadline.quantize(model, "int8", dataset, budget=budget)
    used = budget.used
    for _ in range(20):
        leadline.quantize(model, "int8", dataset, budget=budget)
    assert budget.used == used
    with pytest.raises(leadline.BudgetError):
        leadline.quantize(model, "int8", dataset, budget=10_000)


# The program ------------------------------------------------------------------------------------


@pytest.mark.skipif(PROGRAM is None, reason="the leadline program is not built")
def test_program_quantizes_with_samples_from_files(model, samples, tmp_path):
    path, stacked = tmp_path / "model.tflite", np.concatenate(samples)
    path.write_bytes(model)
    np.savez(tmp_path / "named.npz", image=stacked, labels=np.arange(8))
    np.savez_compressed(tmp_path / "unnamed.npz", data=stacked, labels=np.arange(8))
    np.save(tmp_path / "stacked.npy", stacked)
    (tmp_path / "folder").mkdir()
    for i, sample in enumerate(samples):
        np.save(tmp_path / "folder" / f"{i}.npy", sample)
    wanted = quantized(model, "int8", samples, input_type="int8")
    for data in ("named.npz", "unnamed.npz", "stacked.npy", "folder"):
        report = leadline_json("quantize", path, "-o", tmp_path / "out.tflite", "--mode", "int8", "--data",
                               tmp_path / data, "--input-type", "int8")  # fmt: skip
        assert (tmp_path / "out.tflite").read_bytes() == wanted
        assert report["samples"] == 8
        assert report["result_bytes"] == len(wanted) <= report["plan"]["result_bytes"]
        assert [phase["name"] for phase in report["plan"]["phases"]] == ["load", "calibrate", "quantize"]
        assert report["plan"]["phases"][1]["categories"]["statistics"] > 0
        assert {node["mode"] for node in report["nodes"]} == {"int8"}


@pytest.mark.skipif(PROGRAM is None, reason="the leadline program is not built")
def test_program_plans_and_complains(model, samples, tmp_path):
    path = tmp_path / "model.tflite"
    path.write_bytes(model)
    text = run_program("quantize", path, "--mode", "dynamic").stdout
    assert (tmp_path / "model.dynamic.tflite").read_bytes() == leadline.quantize(model, "dynamic")
    assert text.index("quantize takes at most") < text.index("Nodes") < text.index("Wrote")
    assert "has no weights" in text
    (tmp_path / "model.dynamic.tflite").unlink()
    run_program("quantize", path, "--mode", "dynamic", "--plan")
    assert not (tmp_path / "model.dynamic.tflite").exists()
    assert "--data" in run_program("quantize", path, expect=USAGE).stderr
    np.save(tmp_path / "wrong.npy", np.zeros((8, 3, 3, 8), np.float32))
    assert (
        "takes [1, 12, 12, 8]" in run_program("quantize", path, "--data", tmp_path / "wrong.npy", expect=USAGE).stderr
    )
    bad = np.concatenate(samples)
    bad[3, 0, 0, 0] = np.nan
    np.save(tmp_path / "bad.npy", bad)
    assert "sample 3" in run_program("quantize", path, "--data", tmp_path / "bad.npy", expect=USAGE).stderr
