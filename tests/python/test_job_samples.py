# SPDX-License-Identifier: Apache-2.0
"""Every job takes the same data sets: lists, functions, loaders of PyTorch and TensorFlow, files, folders, pictures."""

import json

import numpy as np
import pytest
import test_cli
from test_cli import leadline_json
from test_sample_files import conv_model, png

import leadline

F32 = np.float32
MODEL = conv_model()
PIXELS = np.random.default_rng(2).integers(0, 256, (40, 8, 8, 3), dtype=np.uint8)
VALUES = (PIXELS.astype(F32) - F32(127.5)) * F32(1 / 127.5)
PICTURES = {"mean": 127.5, "scale": 1 / 127.5}
QUANTIZED = leadline.quantize(MODEL, "int8", VALUES)


class Torch:
    """A tensor that numpy cannot read before it is detached."""

    def __init__(self, array):
        self.array, self.shape = array, array.shape

    def detach(self):
        return self

    def cpu(self):
        return self.array


class Loader:
    """As PyTorch's DataLoader: batches of samples and labels."""

    def __init__(self, batch_size=16):
        self.dataset, self.batch_size = VALUES, batch_size

    def __iter__(self):
        for i in range(0, len(VALUES), self.batch_size):
            batch = VALUES[i : i + self.batch_size]
            yield [Torch(batch), Torch(np.zeros(len(batch), np.int64))]


class TensorFlow:
    """As tf.data.Dataset: elements of samples and labels, in batches or one by one."""

    element_spec = None

    def __init__(self, elements):
        self.elements = elements

    def __iter__(self):
        return iter(self.elements)

    def __len__(self):
        return len(self.elements)


def calibrated(dataset, **pictures):
    return leadline.calibrate(MODEL, dataset, **pictures).to_bytes()


def quantized(dataset, **pictures):
    return leadline.quantize(MODEL, "int8", dataset, bias_correction=True, **pictures)


def debugged(dataset, **pictures):
    result = leadline.debug(MODEL, QUANTIZED, dataset, **pictures).to_dict()
    return json.dumps({name: result[name] for name in ("samples", "layers", "outputs", "suspects")})


def tuned(dataset, **pictures):
    result = leadline.tune(MODEL, dataset, "cosine", 1.0, **pictures)
    return result.content, result.kept, result.value, [(trial.kept, trial.value) for trial in result.trials]


def evaluated(dataset, **pictures):
    result = leadline.evaluate(MODEL, dataset, metric="agreement", reference=QUANTIZED, **pictures)
    return result.value, result.samples


def linted(dataset, **pictures):
    return leadline.lint_dataset(MODEL, dataset, **pictures)


JOBS = [calibrated, quantized, debugged, tuned, evaluated, linted]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("samples")
    np.save(folder / "all.npy", VALUES)
    np.savez(folder / "all.npz", image=VALUES)
    for name in ("arrays", "pictures"):
        (folder / name).mkdir()
    for number, (values, pixels) in enumerate(zip(VALUES, PIXELS, strict=True)):
        np.save(folder / "arrays" / f"{number:02}.npy", values[None])
        (folder / "pictures" / f"{number:02}.png").write_bytes(png(pixels))
    return folder


@pytest.mark.parametrize("job", JOBS)
def test_every_form_gives_the_same_result(job, folder):
    expected = job([[values[None]] for values in VALUES])
    labelled = [(values[None], 3) for values in VALUES]
    forms = {
        "array": VALUES,
        "function": lambda: ([values[None]] for values in VALUES),
        "tuples with a label": labelled,
        "list of inputs and a label": [([values], 3) for values, _ in labelled],
        "loader": Loader(),
        "tf.data, batched": TensorFlow([(VALUES[:24], np.zeros(24)), (VALUES[24:], np.zeros(16))]),
        "tf.data, without labels": TensorFlow([VALUES[:24], VALUES[24:]]),
        "tf.data, not batched": TensorFlow([(values, 3) for values in VALUES]),
        "tf.data, by name": TensorFlow([({"image": values}, 3) for values in VALUES]),
        ".npy": folder / "all.npy",
        ".npz": str(folder / "all.npz"),
        "folder": folder / "arrays",
    }
    for name, dataset in forms.items():
        assert job(dataset) == expected, name
    if leadline._leadline.reads_pictures():
        assert job(folder / "pictures", **PICTURES) == expected
    with pytest.raises(TypeError, match="unexpected keyword argument 'means'"):
        job(VALUES, means=3)


def classifier(spoiled=False):
    """The second layer loses all but one class where its weights have one scale."""
    rng = np.random.default_rng(4)
    weights = rng.normal(size=(4, 16)).astype(F32)
    if spoiled:
        weights[:, 3] *= 1e4
    builder = leadline.ModelBuilder()
    x, y = builder.input("x", F32, [1, 16]), builder.tensor("scores", F32, [1, 4])
    builder.node("FULLY_CONNECTED", [x, builder.constant("w", weights), -1], [y])
    builder.output(y)
    return builder.to_tflite(), weights


def test_tune_measures_accuracy(tmp_path):
    content, weights = classifier(spoiled=True)
    data = np.random.default_rng(5).normal(size=(64, 16)).astype(F32)
    data[:, 3] *= F32(1e-4)
    labels = (data @ weights.T).argmax(1)
    settings = {"mode": "dynamic", "per_channel_dense": False, "min_weight_elements": 1, "held_out": 0}
    result = leadline.tune(content, data, "accuracy", 1.0, labels=labels, **settings)
    assert result.kept == ["scores"]
    assert result.value == leadline.evaluate(result.content, data, labels).value == 1
    before = leadline.quantize(content, "dynamic", per_channel_dense=False, min_weight_elements=1)
    assert result.trials[0].value == leadline.evaluate(before, data, labels).value < 1
    with pytest.raises(leadline.InvalidArgumentError, match="sample 0: the sample has no label"):
        leadline.tune(content, data, "accuracy", 1.0, **settings)
    plan = leadline.tune.plan(content, data, "accuracy", **settings)
    budget = leadline.Budget(plan.peak_bytes)
    leadline.tune(content, data, "accuracy", 1.0, labels=labels, budget=budget, **settings)
    assert budget.peak <= plan.peak_bytes
    if test_cli.PROGRAM is not None:
        (tmp_path / "model.tflite").write_bytes(content)
        np.savez(tmp_path / "data.npz", x=data, labels=labels)
        options = ["--metric", "accuracy", "--target", 1, "--mode", "dynamic", "--per-tensor", "--data"]
        said = leadline_json("tune", tmp_path / "model.tflite", *options, tmp_path / "data.npz", "--labels", "labels")
        assert said["reached"]
        assert said["metric"] == "accuracy"


def test_generators_are_read_once():
    def once():
        return ([values[None]] for values in VALUES)

    assert calibrated(once()) == calibrated(VALUES)
    assert quantized(once()) == quantized(VALUES)  # kept, since biases are corrected in a second round
    assert evaluated(once()) == evaluated(VALUES)
    with pytest.raises(leadline.InvalidArgumentError, match="tune reads samples more than once"):
        tuned(once())


def test_what_the_user_raises_comes_out():
    def failing():
        yield VALUES[:1]
        raise LookupError("no more")

    for job in (calibrated, quantized, debugged, tuned, evaluated):
        with pytest.raises(LookupError, match="no more"):
            job(failing)


@pytest.mark.skipif(test_cli.PROGRAM is None, reason="the leadline program is not built")
@pytest.mark.parametrize("job", ["quantize", "debug", "tune"])
def test_plans_count_what_files_take(job, folder):
    (folder / "model.tflite").write_bytes(MODEL)
    (folder / "int8.tflite").write_bytes(QUANTIZED)
    models = [folder / "model.tflite"] + ([folder / "int8.tflite"] if job == "debug" else [])
    names = {"quantize": "representative_dataset"}
    threads = {} if job == "quantize" else {"num_threads": 1}
    function = getattr(leadline, job)
    plan = function.plan(*models, **{names.get(job, "dataset"): folder / "all.npy"}, **threads)
    assert plan.peak_bytes > function.plan(*models, **threads).peak_bytes
    said = leadline_json(job, *models, "--data", folder / "all.npy", "--threads", 1, "--plan")
    assert said.get("plan", said) == json.loads(plan.to_json())
