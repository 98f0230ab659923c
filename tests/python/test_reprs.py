# SPDX-License-Identifier: Apache-2.0
"""What the interactive prompt shows of an object: what it is about, not where it lies in memory."""

import re

import numpy as np
import pytest
import sample_models

import leadline
from leadline import lite

SAMPLES = [[np.full((1, 1024), value, np.float32)] for value in (0.5, 1.0)]


@pytest.fixture(scope="module")
def model() -> leadline.Model:
    return leadline.Model.from_bytes(sample_models.chain(), "10MB")


@pytest.fixture(scope="module")
def interpreter(model) -> lite.Interpreter:
    made = lite.Interpreter(model=model)
    made.allocate_tensors()
    made.enable_profile()
    made.invoke()
    return made


def test_interpreter(model):
    made = lite.Interpreter(model=model)
    assert repr(made) == "<leadline.lite.Interpreter: x float32[1, 1024] -> t3 float32[1, 1024], not allocated>"
    made.allocate_tensors()
    assert repr(made).endswith(", allocated>")
    resizable = lite.Interpreter(model_content=sample_models.add())
    resizable.resize_tensor_input(0, [3, 4])
    resizable.allocate_tensors()
    assert "x float32[3, 4] -> y float32[3, 4]" in repr(resizable)
    runner = resizable.get_signature_runner()
    assert repr(runner) == "<leadline.lite.SignatureRunner add: x -> sum>"


def test_interpreter_with_many_inputs():
    builder = leadline.ModelBuilder()
    inputs = [builder.input(f"x{i}", np.float32, []) for i in range(5)]
    total = builder.tensor("sum", np.float32, [])
    builder.node("ADD_N", inputs, [total])
    builder.output(total)
    assert repr(builder) == "<leadline.ModelBuilder 0: inputs [0, 1, 2, 3, 4], outputs [5]>"
    made = lite.Interpreter(model_content=builder.to_tflite())
    assert "x0 float32[], x1 float32[], x2 float32[], 2 more -> sum float32[]" in repr(made)


def test_profile(interpreter):
    profile = interpreter.profile()
    assert re.fullmatch(r"<leadline.lite.Profile: 4 nodes, [\d.]+ ms, most of it in TANH \(100%\)>", repr(profile)), (
        repr(profile)
    )
    assert re.fullmatch(
        r"<leadline.NodeProfile: subgraph=0, node=0, op='TANH', name='t0', runs=1, total_ms=\S+, fastest_ms=\S+>",
        repr(profile[0]),
    ), repr(profile[0])


def test_memory(interpreter, model):
    plan = interpreter.plan()
    assert repr(plan).startswith("<leadline.Plan: peak ") and "4 steps" in repr(plan)
    assert repr(plan.phases[0]).startswith("<leadline.PlannedPhase: name='load', categories={'model file': ")
    assert "op='TANH', name='t0', inputs=[0], outputs=[1]" in repr(plan.steps[0])
    assert "shape=(1, 1024), bytes=4096, storage='input'" in repr(plan.tensors[0])
    assert re.fullmatch(r"<leadline.Budget: .* used of 10 MB>", repr(model.budget))
    assert "machine_available=" in repr(leadline.read_memory_limits())


def test_models(model):
    assert repr(model) == "<leadline.Model: 716 B, 1 subgraphs>"
    assert repr(model.subgraph(0)) == (
        "<leadline.SubgraphInfo: name='subgraph_0', inputs=[0], outputs=[4], tensors=[5 items], nodes=[4 items]>"
    )
    assert "op='TANH'" in repr(model.subgraph(0).nodes[0])


def test_calibration(model):
    calibration = leadline.calibrate(model, SAMPLES, progress=False)
    assert re.fullmatch(r"<leadline.Calibration: 2 samples, histograms, [\d.]+ KiB>", repr(calibration))
    plain = leadline.calibrate(model, SAMPLES, "min-max", progress=False)
    assert "no histograms" in repr(plain)
    assert "name='x', elements=2048, not_finite=0, min=0.5, max=1.0" in repr(calibration.tensors()[0])
    assert repr(leadline.CalibrationRule(percentile=99.5)) == (
        "<leadline.CalibrationRule: method=CalibrationMethod.MIN_MAX, percentile=99.5, momentum=0.9>"
    )


def test_conversion(tmp_path):
    keras = pytest.importorskip("keras", reason="keras is not installed")
    converter = lite.TFLiteConverter.from_keras_model(keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)]))
    converter.optimizations = [lite.Optimize.DEFAULT]
    assert repr(converter).startswith("<leadline.lite.TFLiteConverter: optimizations=[<Optimize.DEFAULT")
    assert "target_spec=<leadline.lite.TargetSpec: supported_ops={<OpsSet.TFLITE_BUILTINS" in repr(converter)
    assert re.search(r"result_bytes=\d+, peak_bytes=\d+, file_peak_bytes=\d+, nodes=1", repr(converter.plan()))
    options = lite.experimental.QuantizationDebugOptions(denylisted_ops=["CONV_2D"])
    assert repr(options) == "<leadline.lite.experimental.QuantizationDebugOptions: denylisted_ops=['CONV_2D']>"
    converter.representative_dataset = lambda: iter([[np.ones((1, 4), np.float32)]])
    debugger = lite.experimental.QuantizationDebugger(
        converter=converter, debug_dataset=converter.representative_dataset
    )
    assert re.fullmatch(r"<leadline.lite.experimental.QuantizationDebugger: \d layers, not run>", repr(debugger))
    debugger.run()
    assert "statistics of 1" in repr(debugger)


def test_no_object_shows_its_address(interpreter, model):
    """Whatever else a user may hold."""
    native = leadline._leadline
    with leadline.watch(recorder=False) as watch:
        held = [
            watch,
            watch.report(),
            leadline.Laps(),
            leadline.laps([]),
            leadline.laps(range(2), report=False).report(),
            leadline.live_objects(),
            leadline.largest_objects(),
            leadline.devices(),
            leadline.time_limit(2.5),
            leadline.known_ops()[0],
            leadline.list_passes()[0],
            lite.TargetSpec(),
            native.QuantizerOptions(),
            native.RecipeRule(),
            model.subgraph(0).tensors[0],
            interpreter._main.native.tensor(0),
        ]
    for thing in held:
        assert not re.search(r"\bat 0x[0-9a-f]+", repr(thing)), repr(thing)
    assert repr(leadline.time_limit(2.5)) == "<leadline.time_limit: 2.5 s>"
