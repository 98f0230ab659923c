# SPDX-License-Identifier: Apache-2.0
"""leadline.debug on models with planted faults: whom it blames, and that its first suggestion mends them as it is
printed. Gaps are measured here, on samples that neither calibrated nor debugged the model."""

import json
import subprocess

import numpy as np
import pytest
from test_cli import PROGRAM, leadline_json
from test_debugger import Converter as Fake, convnet

import leadline

RNG = np.random.default_rng(11)


def images(count: int, scale: float = 1.0) -> list:
    return [[(scale * RNG.uniform(-1, 1, (1, 8, 8, 3))).astype(np.float32)] for _ in range(count)]


CALIBRATION, DEBUGGED, UNSEEN = images(16), images(16), images(32)


def outputs(content: bytes) -> np.ndarray:
    interpreter = leadline.lite.Interpreter(model_content=content)
    interpreter.allocate_tensors()
    rows = []
    for (sample,) in UNSEEN:
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], sample)
        interpreter.invoke()
        rows.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
    return np.concatenate(rows)


def error(content: bytes, float_model: bytes) -> float:
    """Power of the error over power of the signal."""
    expected = outputs(float_model)
    return float(np.sum((outputs(content) - expected) ** 2) / np.sum(expected**2))


FAULTS = {
    "outlier channel": ({"outlier": 500}, {}, CALIBRATION),
    "huge dead weight": ({"spoiled": 2000}, {}, CALIBRATION),
    "dark calibration": ({}, {}, images(16, 0.05)),
    "clipped calibration": ({}, {"method": "percentile", "percentile": 60.0}, CALIBRATION),
    "huge dead weight in most of the file": ({"large": 500}, {}, CALIBRATION),
    "one scale for all weights": ({"uneven": 300}, {"per_channel": False, "per_channel_dense": False}, CALIBRATION),
}


def planted(fault: str) -> tuple[bytes, bytes]:
    made, settings, calibration = FAULTS[fault]
    special = {"uneven": uneven_dense, "large": large_dense}
    kind = next((kind for kind in special if kind in made), None)
    float_model = special[kind](made[kind]) if kind else convnet(**made)
    return float_model, leadline.quantize(float_model, "int8", calibration, **settings)


def uneven_dense(spread: float) -> bytes:
    """Two dense layers: the first has a row of larger weights than the others, which the second one evens out."""
    rng = np.random.default_rng(3)
    b = leadline.ModelBuilder()
    x = b.input("image", np.float32, [1, 8, 8, 3])
    flat = b.tensor("flat", np.float32, [1, 192])
    b.node("RESHAPE", [x, b.constant("shape", np.array([1, 192], np.int32))], [flat])
    first = rng.normal(0, 0.1, (16, 192)).astype(np.float32)
    first[:1] *= spread
    second = rng.normal(0, 0.3, (5, 16)).astype(np.float32)
    second[:, :1] /= spread
    hidden = b.tensor("net/first/MatMul", np.float32, [1, 16])
    b.node("FULLY_CONNECTED", [flat, b.constant("first", first), -1], [hidden])
    result = b.tensor("net/second/MatMul", np.float32, [1, 5])
    b.node("FULLY_CONNECTED", [hidden, b.constant("second", second), -1], [result])
    b.output(result)
    return b.to_tflite()


def large_dense(spoiled: float) -> bytes:
    """A convolution and two dense layers, of which the first is most of the file; what it reads from channel 2 is always 0,
    and its weights for that set the scale of all others."""
    rng = np.random.default_rng(4)
    b = leadline.ModelBuilder()
    x = b.input("image", np.float32, [1, 8, 8, 3])
    bias = np.zeros(8, np.float32)
    bias[2] = -100
    kernel = b.constant("kernel", rng.normal(0, 0.3, (8, 3, 3, 3)).astype(np.float32))
    conv = b.tensor("net/conv/Conv2D", np.float32, [1, 8, 8, 8])
    options = {"padding": 0, "stride_w": 1, "stride_h": 1, "fused_activation_function": 1}
    b.node("CONV_2D", [x, kernel, b.constant("bias", bias)], [conv], **options)
    flat = b.tensor("net/flat/Reshape", np.float32, [1, 512])
    b.node("RESHAPE", [conv, b.constant("shape", np.array([1, 512], np.int32))], [flat])
    first = rng.normal(0, 0.05, (64, 512)).astype(np.float32)
    first.reshape(64, 64, 8)[..., 2] = spoiled * np.abs(first).max()
    hidden = b.tensor("net/first/MatMul", np.float32, [1, 64])
    b.node("FULLY_CONNECTED", [flat, b.constant("first", first), -1], [hidden], fused_activation_function=1)
    result = b.tensor("net/second/MatMul", np.float32, [1, 5])
    b.node(
        "FULLY_CONNECTED", [hidden, b.constant("second", rng.normal(0, 0.3, (5, 64)).astype(np.float32)), -1], [result]
    )
    b.output(result)
    return b.to_tflite()


@pytest.mark.parametrize("fault", FAULTS)
def test_the_first_suggestion_closes_the_gap_as_it_is_printed(fault):
    float_model, quantized = planted(fault)
    before = error(quantized, float_model)
    result = leadline.debug(float_model, quantized, DEBUGGED, progress=False)
    assert before > 0.02, "the fault does no harm"
    assert result.suspects
    suggestion = result.suggestions[0]
    mended = leadline.quantize(float_model, "int8", DEBUGGED, recipe=suggestion.recipe)
    after = error(mended, float_model)
    assert 1 - after / before >= 0.9, (suggestion.what, before, after)
    assert suggestion.after["cosine"] > suggestion.before["cosine"]
    assert suggestion.after["file_bytes"] == pytest.approx(len(mended), rel=0.01)
    assert suggestion.held_out and suggestion.samples == 8


@pytest.mark.parametrize("mode", ["int8", "int16x8", "dynamic", "float16"])
def test_a_model_that_lost_nothing_has_no_suspects(mode):
    float_model = convnet()
    result = leadline.debug(float_model, leadline.quantize(float_model, mode, CALIBRATION), DEBUGGED, progress=False)
    assert not result.suspects and not result.suggestions and not result.regions
    assert result.verdict.endswith("No layer loses more than rounding must cost.")


@pytest.mark.parametrize("fault", ["dark calibration", "clipped calibration"])
def test_samples_that_help_alone_are_the_advice(fault):
    float_model, quantized = planted(fault)
    result = leadline.debug(float_model, quantized, DEBUGGED, progress=False)
    assert result.suggestions[0].kind == "recalibrate", result.suggestions[0].what


def test_weights_are_told_from_values():
    float_model, quantized = planted("huge dead weight")
    spoiled = leadline.debug(float_model, quantized, DEBUGGED, progress=False).to_dict()
    assert spoiled["weights_error"] > 0.8 * spoiled["error"]
    assert spoiled["values_error"] < 0.1 * spoiled["error"]
    assert spoiled["regions"][0]["weights_effect"] > 0.8 > 0.2 > spoiled["regions"][0]["values_effect"]
    float_model, quantized = planted("dark calibration")
    clipped = leadline.debug(float_model, quantized, DEBUGGED, progress=False).to_dict()
    assert clipped["values_error"] > 0.8 * clipped["error"]
    assert clipped["weights_error"] < 0.1 * clipped["error"]


def test_answers_that_are_as_good_as_equal_are_no_damage():
    """Two of six answers are the same but for the last digits: which is the larger one is nothing that was lost."""
    b = leadline.ModelBuilder()
    x = b.input("x", np.float32, [1, 16])
    weights = np.random.default_rng(5).normal(0, 0.3, (6, 16)).astype(np.float32)
    weights[1] = weights[0] * np.float32(1.0001)
    weights[2:] *= np.float32(0.3)
    result = b.tensor("net/MatMul", np.float32, [1, 6])
    b.node("FULLY_CONNECTED", [x, b.constant("w", weights), -1], [result])
    b.output(result)
    float_model = b.to_tflite()
    samples = [[RNG.normal(size=(1, 16)).astype(np.float32)] for _ in range(64)]
    quantized = leadline.quantize(float_model, "int8", samples)
    result = leadline.debug(float_model, quantized, samples, progress=False)
    assert result.outputs[0]["same_argmax"] < 0.95 and result.outputs[0]["accumulated"]["cosine"] > 0.999
    assert not result.suspects, result.suspects[0]["why"]


def test_effects_are_shares_of_the_error_at_the_outputs():
    float_model, quantized = planted("huge dead weight")
    result = leadline.debug(float_model, quantized, DEBUGGED, progress=False)
    conv2 = next(layer for layer in result.layers if layer["layer"] == "conv2")
    assert conv2["effect"] > 0.9
    assert conv2["float_name"] == "model/conv2/Conv2D"
    assert all(layer["effect"] < 0.1 for layer in result.layers if layer["effect"] is not None and layer is not conv2)
    assert "conv2" in result.suspects[0]["why"]
    # Keeping the layer in float by any of the names for it is what the effect promises.
    kept = leadline.quantize(float_model, "int8", CALIBRATION, denylisted_nodes=[conv2["float_name"]])
    assert 1 - error(kept, float_model) / error(quantized, float_model) == pytest.approx(conv2["effect"], abs=0.05)


def test_a_text_has_80_columns_and_ends_with_the_verdict():
    float_model, quantized = planted("huge dead weight")
    result = leadline.debug(float_model, quantized, DEBUGGED, progress=False)
    text = str(result)
    assert max(len(line) for line in text.splitlines()) <= 80
    verdict = text[text.rindex("\nVerdict: ") :]
    assert " ".join(verdict.split()) == f"Verdict: {result.verdict}"
    node_data = json.loads(result.to_node_data())
    assert {column["name"] for column in node_data} == {"own error", "total error", "effect", "bytes"}


def test_generators_and_refusals(tmp_path):
    float_model, quantized = planted("huge dead weight")
    once = leadline.debug(float_model, quantized, iter(DEBUGGED), progress=False)
    assert once.suggestions, "samples are kept, not read again"
    silent = leadline.debug(float_model, quantized, DEBUGGED, effects=False, progress=False)
    assert not silent.suggestions and not silent.regions and silent.suspects
    assert "not asked for" in silent.to_dict()["notes"][0]
    plan = leadline.debug.plan(float_model, quantized)
    assert [phase.name for phase in plan.phases] == ["load", "compare", "effects", "try"]
    budget = leadline.Budget(plan.peak_bytes)
    leadline.debug(float_model, quantized, DEBUGGED, budget=budget, progress=False)
    assert budget.peak <= plan.peak_bytes


def test_models_that_do_not_belong_together_are_an_error():
    float_model, quantized = planted("huge dead weight")
    with pytest.raises(leadline.InvalidArgumentError, match="wrong order: the float model comes first"):
        leadline.debug(quantized, float_model, DEBUGGED)
    with pytest.raises(leadline.InvalidArgumentError, match="do not belong together"):
        leadline.debug(uneven_dense(1.0), quantized, DEBUGGED)
    other = leadline.quantize(convnet(outlier=50, spoiled=50), "int8", CALIBRATION)
    same_shapes = np.random.default_rng(77)
    b = leadline.ModelBuilder()
    x = b.input("image", np.float32, [1, 8, 8, 3])
    y = b.tensor("model/conv1/Conv2D", np.float32, [1, 8, 8, 8])
    weights = b.constant("w", same_shapes.normal(0, 0.3, (8, 3, 3, 3)).astype(np.float32))
    b.node("CONV_2D", [x, weights, b.constant("b", np.zeros(8, np.float32))], [y], padding=0, stride_w=1, stride_h=1)
    b.output(y)
    with pytest.raises(leadline.InvalidArgumentError, match="do not belong together"):
        leadline.debug(b.to_tflite(), other, DEBUGGED)


def test_rules_that_match_nothing_are_errors_with_near_misses():
    float_model = convnet()
    with pytest.raises(leadline.InvalidArgumentError, match=r"no node matches.*alike: 'model/conv2/Conv2D'"):
        leadline.quantize(float_model, "dynamic", recipe=[{"name": "^model/conv2/Conv2D_int8$", "mode": "float"}])
    with pytest.raises(leadline.InvalidArgumentError, match=r"no node matches.*alike: 'model/conv2/Conv2D'"):
        leadline.quantize(float_model, "dynamic", denylisted_nodes=["model/conv2"])
    with pytest.raises(leadline.InvalidArgumentError, match="op SOFTMAX; the model has CONV_2D, MEAN, FULLY_CONNECTED"):
        leadline.quantize(float_model, "dynamic", denylisted_ops=["SOFTMAX"])
    leadline.quantize(float_model, "dynamic", recipe=[{"op": "SOFTMAX", "mode": "float", "optional": True}])
    with pytest.raises(TypeError, match="denylisted_nodes should be a list"):
        leadline.quantize(float_model, "dynamic", denylisted_nodes="model/conv2/Conv2D")


@pytest.mark.skipif(PROGRAM is None, reason="the leadline program is not built")
def test_the_program_does_what_its_report_suggests(tmp_path):
    float_model, quantized = planted("huge dead weight")
    (tmp_path / "float.tflite").write_bytes(float_model)
    (tmp_path / "int8.tflite").write_bytes(quantized)
    np.savez(tmp_path / "samples.npz", image=np.concatenate([sample for (sample,) in DEBUGGED]))
    paths = [str(tmp_path / "float.tflite"), str(tmp_path / "int8.tflite")]
    data = ["--data", str(tmp_path / "samples.npz")]
    report = str(tmp_path / "report.json")
    done = subprocess.run([PROGRAM, "debug", *paths, *data, "--report", report], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert max(len(line) for line in done.stdout.splitlines()) <= 80 or str(tmp_path) in done.stdout
    said = leadline_json("quantize", paths[0], *data, "--apply", report, "-o", tmp_path / "mended.tflite")
    assert said["result_bytes"] == (tmp_path / "mended.tflite").stat().st_size
    recipe = json.loads((tmp_path / "report.json").read_text())["suggestions"][0]["recipe"]
    assert (tmp_path / "mended.tflite").read_bytes() == leadline.quantize(float_model, "int8", DEBUGGED, recipe=recipe)
    done = subprocess.run(
        [PROGRAM, "quantize", paths[0], "--apply", report, "--suggestion", "99"], capture_output=True, text=True
    )
    assert done.returncode != 0 and "there is no number 99" in done.stderr
    swapped = subprocess.run([PROGRAM, "debug", *reversed(paths), *data], capture_output=True, text=True)
    assert swapped.returncode != 0 and "wrong order" in swapped.stderr


@pytest.mark.skipif(PROGRAM is None, reason="the leadline program is not built")
def test_the_program_keeps_what_it_is_told(tmp_path):
    (tmp_path / "float.tflite").write_bytes(convnet())
    arguments = ("quantize", tmp_path / "float.tflite", "--mode", "dynamic", "--smallest-weight", "1")
    said = leadline_json(*arguments, "--keep-float", "model/conv2/Conv2D", "--keep-float", "FULLY_CONNECTED", "--plan")
    assert [node["mode"] for node in said["nodes"] if node["op"] != "MEAN"] == ["dynamic", "float", "float"]
    done = subprocess.run([PROGRAM, *map(str, arguments), "--keep-float", "conv2"], capture_output=True, text=True)
    assert done.returncode != 0 and "'model/conv2/Conv2D'" in done.stderr


def test_converters_and_debuggers_take_recipes():
    float_model = convnet()
    recipe = [{"name": "conv2", "mode": "float"}]
    options = leadline.lite.experimental.QuantizationDebugOptions(recipe=recipe)
    debugger = leadline.lite.experimental.QuantizationDebugger(
        converter=Fake(float_model), debug_dataset=lambda: iter(DEBUGGED), debug_options=options
    )
    content = debugger.get_nondebug_quantized_model()
    kept = [node.op for node in leadline.Model.from_bytes(content).subgraph(0).nodes]
    assert kept.count("DEQUANTIZE") >= 2
    with pytest.raises(leadline.InvalidArgumentError, match="no node matches"):
        options = leadline.lite.experimental.QuantizationDebugOptions(denylisted_nodes=["conv2"])
        leadline.lite.experimental.QuantizationDebugger(
            converter=Fake(float_model), debug_dataset=lambda: iter(DEBUGGED), debug_options=options
        )
