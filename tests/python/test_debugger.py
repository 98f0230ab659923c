# SPDX-License-Identifier: Apache-2.0
"""leadline.debug, QuantizationDebugger and tune: what TensorFlow's debugger gets wrong, and what exceeds it."""

import csv
import io
import json

import numpy as np
import pytest

import leadline

Options = leadline.lite.experimental.QuantizationDebugOptions
Debugger = leadline.lite.experimental.QuantizationDebugger
RNG = np.random.default_rng(4)
SAMPLES = [RNG.uniform(-1, 1, (1, 8, 8, 3)).astype(np.float32) for _ in range(6)]


def dataset():
    for sample in SAMPLES:
        yield [sample]


def convnet(outlier: float = 1.0, spoiled: float = 1.0, sizes: tuple[int, int, int] = (1, 8, 8)) -> bytes:
    """conv1 -> conv2 -> dense. With an outlier, channel 3 of conv2 has weights this many times as large, and nothing reads it. Spoiled, conv2
    has such weights for an input that is always 0: they set the scale of all others, and do nothing else."""
    rng = np.random.default_rng(1)
    b = leadline.ModelBuilder()
    batch, *area = sizes

    def shaped(*dims):  # -1: any size
        return {"shape": [abs(size) for size in dims], "signature": list(dims) if -1 in dims else ()}

    x = b.input("image", np.float32, **shaped(batch, *area, 3))

    def conv(source, name, inputs, outputs, outlier=1.0, spoiled=1.0):
        weights = rng.normal(0, 0.3, (outputs, 3, 3, inputs)).astype(np.float32)
        weights[3] *= outlier
        weights[..., 2] *= spoiled
        bias = np.zeros(outputs, np.float32)
        bias[2] = -100 if name == "conv1" else 0
        operands = [source, b.constant(f"{name}/kernel", weights), b.constant(f"{name}/bias", bias)]
        result = b.tensor(f"model/{name}/Conv2D", np.float32, **shaped(batch, *area, outputs))
        b.node("CONV_2D", operands, [result], padding=0, stride_w=1, stride_h=1, fused_activation_function=1)
        return result

    x = conv(x, "conv1", 3, 8)
    x = conv(x, "conv2", 8, 8, outlier, spoiled)
    pooled = b.tensor("model/pool/Mean", np.float32, **shaped(batch, 8))
    b.node("MEAN", [x, b.constant("axes", np.array([1, 2], np.int32))], [pooled])
    weights = rng.normal(0, 0.5, (5, 8)).astype(np.float32)
    if outlier != 1.0:
        weights[:, 3] = 0  # it is not needed: only the range it takes does harm
    result = b.tensor("model/dense/MatMul", np.float32, **shaped(batch, 5))
    b.node("FULLY_CONNECTED", [pooled, b.constant("dense/kernel", weights), -1], [result])
    b.output(result)
    return b.to_tflite()


class Converter:
    """The attributes of a converter, and its float model."""

    def __init__(self, content):
        self.optimizations = [leadline.lite.Optimize.DEFAULT]
        self.representative_dataset = dataset
        self.target_spec = leadline.lite.TargetSpec()
        self.inference_input_type = self.inference_output_type = None
        self._content = content

    def convert(self):
        assert not self.optimizations, "only the float model is converted"
        return self._content


def run(**arguments) -> Debugger:
    debugger = Debugger(converter=Converter(convnet()), debug_dataset=dataset, **arguments)
    debugger.run()
    return debugger


def rows(debugger) -> list[dict]:
    file = io.StringIO()
    debugger.layer_statistics_dump(file)
    return list(csv.DictReader(io.StringIO(file.getvalue())))


def test_statistics_of_a_converter():
    debugger = run()
    assert [row["op_name"] for row in rows(debugger)] == ["CONV_2D", "CONV_2D", "MEAN", "FULLY_CONNECTED"]
    assert list(rows(debugger)[0]) == [
        "op_name", "tensor_idx", "num_elements", "stddev", "mean_error", "max_abs_error", "mean_squared_error", "scale",
        "zero_point", "tensor_name",
    ]  # fmt: skip
    for row in rows(debugger):
        assert 0 < float(row["stddev"]) < 2 * float(row["scale"])


def test_debug_model_is_one_for_tensorflow_too():
    debugger = run()
    again = Debugger(quant_debug_model_content=debugger.get_debug_quantized_model(), debug_dataset=dataset)
    again.run()
    assert again.layer_statistics == debugger.layer_statistics
    names = [node.op for node in leadline.Model.from_bytes(debugger.get_nondebug_quantized_model()).subgraph(0).nodes]
    assert "NumericVerify" not in names


def test_values_are_read_while_they_are_there():
    """TensorFlow reads the differences after the run, when the arena may have reused their memory."""
    seen = {}
    options = Options(
        layer_debug_metrics={"first": lambda diffs: float(diffs.flat[0])},
        layer_direct_compare_metrics={
            "direct": lambda f, q, s, z: float(np.float32(s) * (int(q.flat[0]) - z) - f.flat[0])
        },
    )
    debugger = run(debug_options=options)
    for name, row in debugger.layer_statistics.items():
        seen[name] = row
        assert row["first"] == pytest.approx(row["direct"], abs=1e-5)
    assert len(seen) == 4


def statistics_of(content, samples, **options):
    debugger = Debugger(
        quant_debug_model_content=content,
        debug_dataset=lambda: ([sample] for sample in samples),
        debug_options=Options(**options),
    )
    debugger.run()
    return debugger, next(iter(debugger.layer_statistics.values()))


def test_nan_is_left_out_as_tensorflow_does_it_but_counted_and_warned_of():
    content = run().get_debug_quantized_model()
    clean = statistics_of(content, SAMPLES[:1])[1]
    with pytest.warns(RuntimeWarning, match="NaN or infinite"):
        debugger, first = statistics_of(content, [SAMPLES[0], np.full_like(SAMPLES[0], np.nan)])
    assert first == clean
    assert next(iter(debugger.not_finite.values())) > 0
    with pytest.warns(RuntimeWarning, match="NaN or infinite"):
        first = statistics_of(content, [np.full_like(SAMPLES[0], np.nan)])[1]
    assert np.isnan(first["stddev"]) and np.isnan(first["max_abs_error"])


def test_a_metric_that_is_nan_for_a_sample_of_zeros_is_the_mean_of_the_others():
    def ratio(diffs):
        return float(np.abs(diffs).max()) if np.abs(diffs).max() > 0 else float("nan")

    content = run().get_debug_quantized_model()
    metrics = {"layer_debug_metrics": {"ratio": ratio}}
    with_zeros = statistics_of(content, [np.zeros_like(SAMPLES[0]), *SAMPLES[:2]], **metrics)[1]
    assert with_zeros["ratio"] == pytest.approx(statistics_of(content, SAMPLES[:2], **metrics)[1]["ratio"])


def test_a_debug_model_numbers_and_names_its_tensors_as_tensorflows():
    """Inputs, constants, then results in the order of the nodes, each float node before the quantized one."""
    interpreter = leadline.lite.Interpreter(model_content=run().get_debug_quantized_model())
    interpreter.allocate_tensors()
    ops = interpreter._get_ops_details()
    assert interpreter.get_input_details()[0]["index"] == 0
    outputs = [index for op in ops for index in op["outputs"]]
    assert outputs == list(range(outputs[0], outputs[0] + len(outputs)))
    for op in (op for op in ops if op["op_name"] == "NumericVerify"):
        quantized, expected = op["inputs"]
        assert expected < quantized < op["outputs"][0]
        details = interpreter.get_tensor_details()
        name = details[quantized]["name"]
        assert details[op["outputs"][0]]["name"] == f"NumericVerify/{name}:{quantized}"
    # A model that compares can be read in the middle, before and after.
    interpreter.set_tensor(0, SAMPLES[0])
    interpreter.invoke()
    verify = next(op for op in ops if op["op_name"] == "NumericVerify")
    quantized, expected = (interpreter.get_tensor(index) for index in verify["inputs"])
    scale, zero_point = interpreter.get_tensor_details()[verify["inputs"][0]]["quantization"]
    difference = (quantized.astype(np.float32) - zero_point) * np.float32(scale) - expected
    np.testing.assert_allclose(interpreter.get_tensor(verify["outputs"][0]), difference, atol=1e-6)


def test_names_of_layers_are_those_that_denylists_take():
    debugger = run()
    file = io.StringIO()
    debugger.layer_statistics_dump(file)
    for row in csv.DictReader(file.getvalue().splitlines()):
        kept = Options(denylisted_nodes=[row["tensor_name"]])
        rows = run(debug_options=kept).layer_statistics
        assert len(rows) < len(debugger.layer_statistics), row["tensor_name"]


@pytest.mark.parametrize("fully_quantize", [False, True])
def test_a_model_that_is_kept_in_float_is_not_in_debug_mode(fully_quantize):
    ops = ["CONV_2D", "MEAN", "FULLY_CONNECTED"]
    with pytest.raises(ValueError, match="Please check if the quantized model is in debug mode"):
        run(debug_options=Options(denylisted_ops=ops, fully_quantize=fully_quantize))


def test_parameters_of_details():
    find = leadline.lite.debugger._get_quant_params
    assert find({"quantization_parameters": {}}) is None
    assert find({"quantization_parameters": {"scales": [1.0], "zero_points": []}}) is None
    assert find({"quantization_parameters": {"scales": np.array([0.5, 1.0]), "zero_points": [42, 7]}}) == (0.5, 42)


def test_integer_inputs_are_clipped():
    """TensorFlow's conversion to int8 wraps around."""
    debugger = run(debug_options=Options(fully_quantize=True))
    outputs = []
    for factor in (1, 100):
        options = Options(fully_quantize=True, model_debug_metrics={"output": lambda f, q: outputs.append(q[0]) or 0.0})
        part = Debugger(
            converter=Converter(convnet()),
            debug_dataset=lambda factor=factor: [[np.sign(SAMPLES[0]) * factor]],
            debug_options=options,
        )
        part.run()
    np.testing.assert_array_equal(*outputs)
    assert debugger.layer_statistics


def test_model_statistics_need_one_pass_over_the_data():
    passes = []

    def counted():
        passes.append(1)
        yield from dataset()

    options = Options(model_debug_metrics={"distance": lambda f, q: float(np.abs(f[0] - q[0]).max())})
    debugger = Debugger(converter=Converter(convnet()), debug_dataset=counted, debug_options=options)
    debugger.run()
    assert len(passes) == 1
    assert 0 < debugger.model_statistics["distance"] < 0.5


def test_converter_stays_as_it_was():
    converter = Converter(convnet())
    before = dict(vars(converter)), dict(vars(converter.target_spec))
    debugger = Debugger(converter=converter, debug_dataset=dataset)
    debugger.run()
    assert (dict(vars(converter)), dict(vars(converter.target_spec))) == before


def test_a_converter_that_only_calibrates_is_debugged_as_one_that_quantizes():
    converter = Converter(convnet())
    converter._experimental_calibrate_only = True
    debugger = Debugger(converter=converter, debug_dataset=dataset)
    debugger.run()
    assert debugger.layer_statistics


def test_denied_nodes_and_ops_stay_float():
    debugger = run(debug_options=Options(denylisted_ops=["MEAN"], denylisted_nodes=["model/conv2/Conv2D"]))
    assert [row["op_name"] for row in rows(debugger)] == ["CONV_2D", "FULLY_CONNECTED"]
    debugger.options = Options()
    debugger.run()
    assert len(rows(debugger)) == 4


def test_names_are_whole():
    names = {row["tensor_name"] for row in rows(run())}
    assert {"model/conv1/Conv2D", "model/conv2/Conv2D"} <= names


def test_metrics_with_one_name_are_refused():
    with pytest.raises(ValueError, match="duplicate"):
        Options(layer_debug_metrics={"a": np.mean}, model_debug_metrics={"a": np.mean})


def test_models_without_numeric_verify_are_refused():
    with pytest.raises(ValueError, match="debug mode"):
        Debugger(quant_debug_model_content=convnet(), debug_dataset=dataset)


# {tolerance: 5.0, log_if_failed: false} as TensorFlow's debug models have it.
VERIFY_OPTIONS = b"tolerance\0log_if_failed\0\x02\x0f\x1a\0\x03\0\0\0\x01\0\0\0\x02\0\0\0\0\0\0\0\0\0\xa0@j\x0e\n&\x01"


def test_every_subgraph_and_every_scale_counts():
    """TensorFlow looks at subgraph 0 and at the first scale."""
    b = leadline.ModelBuilder()
    scales = [0.5, 0.01]
    condition = b.input("condition", np.bool_, [])
    operands = [
        b.input("levels", np.int8, [1, 3, 2], scales=scales, zero_points=[0, 0], axis=2),
        b.input("reference", np.float32, [1, 3, 2]),
    ]
    result = b.tensor("result", np.float32, [1, 3, 2])
    branches = {}
    for name in ("then", "else"):
        branch = branches[name] = b.subgraph(name)
        levels = branch.input("levels", np.int8, [1, 3, 2], scales=scales, zero_points=[0, 0], axis=2)
        reference = branch.input("reference", np.float32, [1, 3, 2])
        difference = branch.tensor(f"NumericVerify/{name}:0", np.float32, [1, 3, 2])
        branch.node("NumericVerify", [levels, reference], [difference], custom_options=VERIFY_OPTIONS)
        branch.output(difference)
    indices = {f"{name}_subgraph_index": branch.index for name, branch in branches.items()}
    b.node("IF", [condition, *operands], [result], **indices)
    b.output(result)
    levels = np.array([[[3, 100], [-4, 50], [7, -20]]], np.int8)
    reference = np.zeros((1, 3, 2), np.float32)
    debugger = Debugger(
        quant_debug_model_content=b.to_tflite(), debug_dataset=lambda: [[np.array(True), levels, reference]]
    )
    debugger.run()
    assert list(debugger.layer_statistics) == ["NumericVerify/then:0"]
    expected = levels * np.array(scales)
    statistics = debugger.layer_statistics["NumericVerify/then:0"]
    assert statistics["mean_squared_error"] == pytest.approx(np.mean(expected**2))
    assert statistics["max_abs_error"] == pytest.approx(3.5)
    assert rows(debugger)[0]["scale"].count(",") == 1


@pytest.mark.parametrize("mode", ["int8", "int16x8", "dynamic", "float16", "weight_only_int8", "weight_only_int4"])
def test_every_mode_is_compared(mode):
    settings = {"min_weight_elements": 16}
    quantized = leadline.quantize(convnet(), mode, dataset, **settings)
    result = leadline.debug(convnet(), quantized, dataset)
    assert not result.to_dict()["unmatched"]
    convs = [layer for layer in result.layers if layer["op"] == "CONV_2D"]
    assert [layer["layer"] for layer in convs] == ["conv1", "conv2"]
    for layer in convs:
        assert layer["own"]["snr_db"] > 10
        assert layer["accumulated"]["snr_db"] > 10
        assert layer["weights"][0]["rmse"] > 0


def test_result_is_data():
    float_model = convnet()
    result = leadline.debug(float_model, leadline.quantize(float_model, "int8", dataset), dataset)
    assert json.loads(result.to_json())["layers"] == result.layers
    assert len(list(csv.DictReader(io.StringIO(result.to_csv())))) == len(result.layers)
    assert "conv1" in result._repr_html_()
    assert "conv1" in str(result)
    assert result.samples == len(SAMPLES)


def test_result_is_saved_as_the_name_says(tmp_path):
    float_model, quantized = tmp_path / "a <model>.tflite", tmp_path / "quantized.tflite"
    float_model.write_bytes(convnet())
    quantized.write_bytes(leadline.quantize(float_model, "int8", dataset))
    result = leadline.debug(float_model, str(quantized), dataset)
    for suffix in (".html", ".json", ".csv", ".txt"):
        result.save(tmp_path / f"report{suffix}")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page == result.to_html()
    assert "<h1>quantized.tflite</h1>" in page and "a &lt;model&gt;.tflite" in page
    assert "counted: " in page
    assert (tmp_path / "report.csv").read_text(encoding="utf-8") == result.to_csv()
    with pytest.raises(leadline.InvalidArgumentError, match=r"report\.pdf.*\.html"):
        result.save(tmp_path / "report.pdf")


def test_planted_layer_is_the_first_suspect():
    float_model = convnet(outlier=500)
    result = leadline.debug(float_model, leadline.quantize(float_model, "int8", dataset), dataset)
    suspect = result.suspects[0]
    assert result.layers[suspect["layer"]]["layer"] == "conv2"
    assert suspect["kind"] == "weight_outlier"
    assert "channel 3" in suspect["why"]


def test_weights_that_spoil_the_scale_of_others_are_named():
    float_model = convnet(spoiled=500)
    suspect = leadline.debug(float_model, leadline.quantize(float_model, "int8", dataset), dataset).suspects[0]
    assert suspect["kind"] == "weight_peak"
    assert "conv2" in suspect["why"]


def closeness_to(float_model):
    """A metric: the negative error of a model's outputs, in standard deviations of the float model's."""

    def outputs(content):
        interpreter = leadline.lite.Interpreter(model_content=content)
        interpreter.allocate_tensors()
        result = []
        for sample in SAMPLES:
            interpreter.set_tensor(interpreter.get_input_details()[0]["index"], sample)
            interpreter.invoke()
            result.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
        return np.concatenate(result)

    expected = outputs(float_model)
    return lambda content: -float(np.sqrt(np.mean((outputs(content) - expected) ** 2)) / np.std(expected))


def test_tune_keeps_the_planted_layer_alone(tmp_path):
    float_model = convnet(spoiled=500)
    closeness = closeness_to(float_model)
    target = closeness(leadline.quantize(float_model, "int8", dataset)) / 10
    result = leadline.tune(float_model, dataset, closeness, target, recipe=tmp_path / "recipe.json")
    assert result.reached
    assert result.kept == result.causes == ["model/conv2/Conv2D"]
    assert len(result.trials) == 2  # nothing kept, and the worst layer
    again = leadline.quantize(float_model, "int8", dataset, recipe=tmp_path / "recipe.json")
    assert again == result.content


@pytest.mark.parametrize("keep", ["float", "int16x8"])
def test_tune_names_the_planted_layer_and_keeps_what_its_range_reaches(keep):
    float_model = convnet(outlier=500)
    closeness = closeness_to(float_model)
    target = closeness(leadline.quantize(float_model, "int8", dataset)) / 10
    result = leadline.tune(float_model, dataset, closeness, target, keep=keep)
    assert result.reached
    assert result.causes == ["model/conv2/Conv2D"]
    # Every node that would round the other channels to the outlier's steps, and no more.
    assert result.kept == ["model/conv2/Conv2D", "model/pool/Mean", "model/dense/MatMul"]


def test_equalized_models_are_compared_with_equalized_layers():
    float_model = convnet()
    quantized = leadline.quantize(float_model, "int8", dataset, equalize=True)

    def conv1(**settings):
        result = leadline.debug(float_model, quantized, dataset, **settings)
        return next(layer["own"]["rmse_over_scale"] for layer in result.layers if layer["layer"] == "conv1")

    assert conv1() > 2  # scaled channels look wrong
    assert conv1(equalized=True) < 0.5


def test_progress_is_told_and_can_stop():
    float_model = convnet()
    quantized = leadline.quantize(float_model, "int8", dataset)
    debugger = Debugger(converter=Converter(float_model), debug_dataset=dataset)
    for work in (
        lambda told: leadline.debug(float_model, quantized, dataset, progress=told),
        lambda told: leadline.calibrate(float_model, dataset, progress=told),
        lambda told: leadline.quantize(float_model, "int8", dataset, progress=told),
        lambda told: debugger.run(progress=told),
    ):
        calls = []
        work(lambda done, total, calls=calls: calls.append(done))
        assert calls == list(range(1, len(SAMPLES) + 1))
        with pytest.raises(leadline.Error, match="stopped before it was finished") as stopped:
            work(lambda done, total: done < 2)
        assert stopped.value.code == "cancelled"
