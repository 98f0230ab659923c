# SPDX-License-Identifier: Apache-2.0
"""Keras models to .tflite: what Keras predicts, LiteRT and Leadline compute from the converted file."""

import json
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest
from test_cli import PROGRAM

import leadline
from leadline import lite

keras_models = pytest.importorskip("keras_models", reason="keras is not installed")


def input_names(model) -> list[str]:
    """The names of the input layers: those of the signature."""
    return [tensor._keras_history.operation.name for tensor in model.inputs]


def run(interpreter_class, content: bytes, model, values) -> list[np.ndarray]:
    """By the names of the signature, which are those of Keras; outputs in the model's order."""
    runner = interpreter_class(model_content=content).get_signature_runner("serving_default")
    results = runner(**dict(zip(input_names(model), values, strict=True)))
    return [results[name] for name in model.output_names] if len(results) > 1 else list(results.values())


def predict(model, values) -> list[np.ndarray]:
    result = model(dict(zip(input_names(model), values)) if len(values) > 1 else values[0], training=False)
    return [np.asarray(part) for part in (result if isinstance(result, (list, tuple)) else [result])]


def assert_close(ours, wanted) -> None:
    assert len(ours) == len(wanted)
    for left, right in zip(ours, wanted):
        assert left.shape == right.shape
        span = float(right.max() - right.min()) or 1.0
        np.testing.assert_allclose(left, right, atol=1e-4 * span, rtol=0)


@pytest.mark.parametrize("name", keras_models.MODELS)
def test_model_computes_what_keras_does(name, litert):
    model = keras_models.make(name)
    content = lite.TFLiteConverter.from_keras_model(model).convert()
    for batch in (1, 3):
        values = keras_models.example(model, batch)
        wanted = predict(model, values)
        assert_close(run(lite.Interpreter, content, model, values), wanted)
        assert_close(run(litert, content, model, values), wanted)


@pytest.mark.parametrize("name", keras_models.APPLICATIONS)
def test_application_computes_what_keras_does(name, litert, long_run, tmp_path):
    if name not in keras_models.QUICK_APPLICATIONS and not long_run:
        pytest.skip("LEADLINE_LONG=1 runs it")
    model = keras_models.application(name)
    path = tmp_path / "model.keras"
    model.save(path)
    content = lite.TFLiteConverter.from_keras_file(path).convert()
    shape = [224 if size is None else size for size in model.inputs[0].shape[1:]]
    values = [np.random.default_rng(2).uniform(0, 1, (1, *shape)).astype(np.float32)]
    wanted = predict(model, values)
    for interpreter in (lite.Interpreter, litert):
        runner = interpreter(model_content=content).get_signature_runner("serving_default")
        assert_close(list(runner(**dict(zip(input_names(model), values))).values()), wanted)


@pytest.mark.parametrize("suffix", [".keras", ".h5"])
@pytest.mark.parametrize("name", ["convnet", "nested", "two_in_two_out"])
def test_saved_forms_give_the_same_file(name, suffix, tmp_path):
    model = keras_models.make(name)
    path = tmp_path / f"model{suffix}"
    model.save(path)
    assert lite.TFLiteConverter.from_keras_file(path).convert() == lite.TFLiteConverter.from_keras_model(model).convert()


def test_result_is_small():
    """BatchNormalization, paddings and activations vanish into the convolutions."""
    converter = lite.TFLiteConverter.from_keras_model(keras_models.make("mobilenet_v2"))
    ops = [node.op for node in leadline.Model.from_bytes(converter.convert()).subgraph(0).nodes]
    assert converter.plan().nodes == len(ops)
    assert set(ops) <= {"CONV_2D", "DEPTHWISE_CONV_2D", "ADD", "MEAN", "FULLY_CONNECTED", "SOFTMAX", "PAD"}
    assert ops.count("CONV_2D") + ops.count("DEPTHWISE_CONV_2D") == 52


def test_plan_is_exact_and_budgets_hold(tmp_path):
    model = keras_models.make("mobilenet_v2")
    path = tmp_path / "model.keras"
    model.save(path)
    plan = lite.TFLiteConverter.from_keras_file(path).plan()
    content = lite.TFLiteConverter.from_keras_file(path).convert()
    assert plan.result_bytes == len(content) <= plan.peak_bytes
    with pytest.raises(leadline.BudgetError):
        lite.TFLiteConverter.from_keras_file(path, budget=leadline.Budget(plan.result_bytes // 2)).convert()


def test_unknown_layers_are_named(tmp_path):
    model = keras_models.make("nested")
    path = tmp_path / "model.keras"
    model.save(path)
    with zipfile.ZipFile(path) as archive:
        entries = {entry: archive.read(entry) for entry in archive.namelist()}
    config = json.loads(entries["config.json"])
    config["config"]["layers"][1]["class_name"] = "Wavelet"
    entries["config.json"] = json.dumps(config).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for entry, data in entries.items():
            archive.writestr(entry, data)
    with pytest.raises(leadline.UnsupportedError, match="Wavelet"):
        lite.TFLiteConverter.from_keras_file(path)


def test_damaged_files_are_refused(tmp_path):
    model = keras_models.make("nested")
    for suffix in (".keras", ".h5"):
        path = tmp_path / f"model{suffix}"
        model.save(path)
        whole = path.read_bytes()
        for length in (0, 10, len(whole) // 2, len(whole) - 1):
            path.write_bytes(whole[:length])
            with pytest.raises(leadline.Error):
                lite.TFLiteConverter.from_keras_file(path).convert()


def test_quantization_is_refused_for_now():
    content = keras_models.make("nested")
    for setting, value in (
        ("optimizations", [lite.Optimize.DEFAULT]),
        ("representative_dataset", lambda: [[np.zeros((1, 5), np.float32)]]),
        ("inference_input_type", np.int8),
        ("target_spec", lite.TargetSpec(supported_ops=[lite.OpsSet.TFLITE_BUILTINS_INT8])),
    ):
        converter = lite.TFLiteConverter.from_keras_model(content)
        setattr(converter, setting, value)
        with pytest.raises(leadline.UnsupportedError, match=setting):
            converter.convert()
    with pytest.raises(leadline.InvalidArgumentError, match="Keras model"):
        lite.TFLiteConverter.from_keras_model(object())


def test_many_conversions_leave_memory_flat(tmp_path):
    path = tmp_path / "model.keras"
    keras_models.make("convnet").save(path)
    budget = leadline.Budget(64 << 20)

    def rounds(count: int) -> tuple[int, int]:
        for _ in range(count):
            lite.TFLiteConverter.from_keras_file(path, budget=budget).convert()
        resident = int(Path("/proc/self/statm").read_text().split()[1]) * 4096
        return budget.used, resident

    used, resident = rounds(20)
    used_later, resident_later = rounds(100)
    assert used_later == used == 0
    assert resident_later - resident < 2 << 20


@pytest.mark.skipif(PROGRAM is None, reason="the leadline program is not built")
def test_command_line(tmp_path):
    model = keras_models.make("nested")
    model.save(tmp_path / "model.keras")
    target = tmp_path / "out.tflite"
    command = [PROGRAM, "convert", tmp_path / "model.keras", "-o", target, "--json"]
    answer = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    assert answer["result_bytes"] == target.stat().st_size
    values = keras_models.example(model, 2)
    assert_close(run(lite.Interpreter, target.read_bytes(), model, values), predict(model, values))
    refused = subprocess.run([PROGRAM, "convert", tmp_path / "none.keras"], capture_output=True, text=True)
    assert refused.returncode == 5 and "none.keras" in refused.stderr


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow", reason="TensorFlow is not installed")


@pytest.mark.parametrize("name", ["convnet", "mobilenet_v2", "nested"])
def test_exported_model_computes_what_keras_does(name, litert, tf, tmp_path):
    if keras_models.keras.backend.backend() != "tensorflow":
        pytest.skip("exporting needs KERAS_BACKEND=tensorflow")
    model = keras_models.make(name)
    model.export(tmp_path / "model", verbose=False)
    content = lite.TFLiteConverter.from_saved_model(tmp_path / "model").convert()
    for batch in (1, 3):
        values = keras_models.example(model, batch)
        wanted = predict(model, values)
        for interpreter in (lite.Interpreter, litert):
            runner = interpreter(model_content=content).get_signature_runner("serving_default")
            names = list(runner.get_input_details())
            assert_close(list(runner(**dict(zip(names, values, strict=True))).values()), wanted)


def test_signatures_of_a_saved_model_keep_their_names(litert, tf, tmp_path):
    class Module(tf.Module):
        def __init__(self):
            self.weights = tf.Variable(tf.random.stateless_normal([4, 3], [1, 2]))

        @tf.function(input_signature=[tf.TensorSpec([None, 4], name="rows")])
        def project(self, rows):
            return {"projected": tf.nn.relu(rows @ self.weights)}

        @tf.function(input_signature=[tf.TensorSpec([3], name="start"), tf.TensorSpec([], tf.int32, name="count")])
        def repeat(self, start, count):
            for _ in tf.range(count):
                start = tf.where(tf.reduce_sum(start) > 10.0, start - 1.0, start * 2.0)
            return {"end": start}

    module = Module()
    tf.saved_model.save(module, tmp_path, signatures={"project": module.project, "repeat": module.repeat})
    content = lite.TFLiteConverter.from_saved_model(tmp_path).convert()
    rows = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    start = np.array([1.0, 2.0, 3.0], np.float32)
    for interpreter_class in (lite.Interpreter, litert):
        interpreter = interpreter_class(model_content=content)
        projected = interpreter.get_signature_runner("project")(rows=rows)["projected"]
        assert_close([projected], [module.project(rows)["projected"].numpy()])
        end = interpreter.get_signature_runner("repeat")(start=start, count=np.int32(4))["end"]
        assert_close([end], [module.repeat(start, 4)["end"].numpy()])
    only = lite.TFLiteConverter.from_saved_model(tmp_path, signature_keys=["project"]).convert()
    assert list(lite.Interpreter(model_content=only).get_signature_list()) == ["project"]
    with pytest.raises(leadline.InvalidArgumentError):
        lite.TFLiteConverter.from_saved_model(tmp_path, signature_keys=["other"])


@pytest.mark.skipif(PROGRAM is None, reason="the leadline program is not built")
def test_program_converts_saved_models(tf, tmp_path):
    module = tf.Module()
    module.call = tf.function(lambda x: tf.nn.softmax(x), input_signature=[tf.TensorSpec([2, 3], name="x")])
    tf.saved_model.save(module, tmp_path / "model", signatures=module.call)
    subprocess.run([PROGRAM, "convert", tmp_path / "model"], check=True, capture_output=True)
    assert leadline.Model.from_bytes((tmp_path / "model.tflite").read_bytes()).subgraph(0).nodes[0].op == "SOFTMAX"


def test_unsupported_op_is_named(tf, tmp_path):
    module = tf.Module()
    module.call = tf.function(lambda x: tf.linalg.cholesky(x), input_signature=[tf.TensorSpec([2, 2], name="x")])
    tf.saved_model.save(module, tmp_path, signatures=module.call)
    with pytest.raises(leadline.UnsupportedError, match="Cholesky"):
        lite.TFLiteConverter.from_saved_model(tmp_path)
