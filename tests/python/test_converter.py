# SPDX-License-Identifier: Apache-2.0
"""Keras models to .tflite: what Keras predicts, LiteRT and Leadline compute from the converted file."""

import json
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest
from keras_compare import assert_close, input_names, predict, run
from test_cli import PROGRAM

import leadline
from leadline import lite

keras_models = pytest.importorskip("keras_models", reason="keras is not installed")


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
        assert_close(list(runner(**dict(zip(input_names(model), values, strict=True))).values()), wanted)


@pytest.mark.parametrize("suffix", [".keras", ".h5"])
@pytest.mark.parametrize("name", ["convnet", "nested", "two_in_two_out"])
def test_saved_forms_give_the_same_file(name, suffix, tmp_path):
    model = keras_models.make(name)
    path = tmp_path / f"model{suffix}"
    model.save(path)
    assert (
        lite.TFLiteConverter.from_keras_file(path).convert() == lite.TFLiteConverter.from_keras_model(model).convert()
    )


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


def test_files_are_streamed(tmp_path):
    model = keras_models.make("mobilenet_v2")
    path, target = tmp_path / "model.keras", tmp_path / "model.tflite"
    model.save(path)
    converter = lite.TFLiteConverter.from_keras_file(path)
    plan = converter.plan()
    assert plan.file_peak_bytes < plan.result_bytes < plan.peak_bytes
    budget = leadline.Budget((plan.file_peak_bytes + plan.result_bytes) // 2)
    limited = lite.TFLiteConverter.from_keras_file(path, budget=budget)
    limited.convert_to(target)
    assert target.read_bytes() == converter.convert()
    for _ in range(2):
        with pytest.raises(leadline.BudgetError, match=r"convert needs (?s:.*)\bread\b(?s:.*)\bconvert\b") as refused:
            limited.convert()
        assert refused.value.needed == plan.peak_bytes
        limited.optimizations = [lite.Optimize.DEFAULT]  # which makes a model in memory first


def test_progress_is_told_and_may_stop(tmp_path):
    converter = lite.TFLiteConverter.from_keras_model(keras_models.make("convnet"))
    calls = []
    content = converter.convert(progress=lambda done, total: calls.append((done, total)))
    assert calls[0] == (0, len(content)) and calls[-1] == (len(content), len(content))
    target = tmp_path / "model.tflite"
    with pytest.raises(leadline.Error, match="stopped") as caught:
        converter.convert_to(target, progress=lambda done, total: False)
    assert caught.value.code == "cancelled"

    def interrupt(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        converter.convert_to(target, progress=interrupt)
    assert list(tmp_path.iterdir()) == []


def test_progress_bar_appears_when_it_takes_long(capsys):
    from leadline.jobs.progress import ProgressBar, progress_of

    with ProgressBar("Converting") as quick:
        quick(1, 2)
    assert capsys.readouterr().err == ""
    with ProgressBar("Converting", patience=0) as slow:
        slow(1, 2)
    assert "\rConverting [###############               ]  50%  0:00" in capsys.readouterr().err
    with progress_of(None, "Converting") as unseen, progress_of(False, "Converting") as silent:
        assert unseen is None and silent is None
    with progress_of(True, "Converting") as shown:
        assert isinstance(shown, ProgressBar)


def test_settings_with_typos_are_refused():
    converter = lite.TFLiteConverter.from_keras_model(keras_models.make("nested"))
    with pytest.raises(AttributeError, match="did you mean 'optimizations'"):
        converter.optimisations = []
    with pytest.raises(AttributeError, match="did you mean 'supported_ops'"):
        converter.target_spec.suported_ops = []
    for name in (
        "experimental_new_converter",
        "experimental_enable_resource_variables",
        "_experimental_lower_tensor_list_ops",
    ):
        setattr(converter, name, True)
    converter.target_spec.supported_ops = [lite.OpsSet.TFLITE_BUILTINS, lite.OpsSet.SELECT_TF_OPS]
    converter.inference_input_type = np.float32
    converter.allow_custom_ops = converter.exclude_conversion_metadata = True
    assert converter.convert()


def test_subclassed_models_are_traced_while_they_live(tmp_path):
    """A file has the weights of a subclassed model, but not its code."""
    import keras

    class Subclassed(keras.Model):
        def __init__(self, **options):
            super().__init__(**options)
            self.dense = keras.layers.Dense(2)

        def call(self, x):
            return self.dense(x)

    model = Subclassed()
    with pytest.raises(leadline.UnsupportedError, match="built"):
        lite.TFLiteConverter.from_keras_model(model)
    model(np.zeros((1, 3), np.float32))
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    interpreter = lite.Interpreter(model_content=lite.TFLiteConverter.from_keras_model(model).convert())
    (result,) = interpreter.get_signature_runner()(**{interpreter.get_input_details()[0]["name"]: x}).values()
    np.testing.assert_allclose(result, model(x), atol=1e-6)
    model.save(tmp_path / "model.keras")
    with pytest.raises(leadline.UnsupportedError, match="Subclassed.*SavedModel"):
        lite.TFLiteConverter.from_keras_file(tmp_path / "model.keras")


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


def test_conversion_quantizes_twice_the_same_and_changes_no_attribute():
    model = keras_models.make("convnet")
    values = keras_models.example(model, 1)
    converter = lite.TFLiteConverter.from_keras_model(model)
    float_model = converter.convert()
    converter.optimizations = [lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: iter([values])
    converter.target_spec.supported_types = [np.int8]
    converter.inference_input_type = np.int8
    before = {**vars(converter), "target_spec": {**vars(converter.target_spec)}}
    content = converter.convert()
    assert converter.convert() == content
    assert {**vars(converter), "target_spec": vars(converter.target_spec)} == before
    assert len(content) < len(float_model)
    assert lite.Interpreter(model_content=content).get_input_details()[0]["dtype"] is np.int8


def test_what_is_no_keras_model_is_refused():
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
    target.unlink()
    planned = subprocess.run([*command[:-1], "--plan"], capture_output=True, check=True, text=True)
    assert "convert takes at most" in planned.stdout and planned.stderr == "" and not target.exists()
    refused = subprocess.run([PROGRAM, "convert", tmp_path / "none.keras"], capture_output=True, text=True)
    assert refused.returncode == 5 and "none.keras" in refused.stderr
