# SPDX-License-Identifier: Apache-2.0
"""leadline.evaluate: forms of data, metrics, threads and executors that change nothing, memory, and real accuracy."""

import concurrent.futures
import json
import multiprocessing
import time
import warnings

import numpy as np
import pytest
import sample_models
import test_cli

import leadline
from leadline._native import tensors as _native_tensors

F32 = np.float32
DENSE = sample_models.dense(inputs=16, outputs=8)


def dense_data(count=200, seed=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(count, 16)).astype(F32), rng.integers(0, 8, count)


def expected_answers(samples):
    interpreter = leadline.lite.Interpreter(model_content=DENSE)
    interpreter.allocate_tensors()
    outputs = []
    for sample in samples:
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], sample[None])
        interpreter.invoke()
        outputs.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"])[0])
    return np.array(outputs)


class Loader:
    """As PyTorch's DataLoader."""

    def __init__(self, samples, labels, batch_size):
        self.dataset = list(zip(samples, labels, strict=True))
        self.samples, self.labels, self.batch_size = samples, labels, batch_size

    def __iter__(self):
        for i in range(0, len(self.samples), self.batch_size):
            yield [self.samples[i : i + self.batch_size], self.labels[i : i + self.batch_size]]


def test_every_form_of_data_gives_the_same_result(tmp_path):
    samples, labels = dense_data()
    np.savez(tmp_path / "data.npz", x=samples, labels=labels)
    np.save(tmp_path / "labels.npy", labels)
    right = int((expected_answers(samples).argmax(1) == labels).sum())
    forms = {
        "array and array": (samples, labels),
        "list and list": ([[sample[None]] for sample in samples], labels.tolist()),
        "pairs": ([(sample[None], label) for sample, label in zip(samples, labels, strict=True)], None),
        "function": (lambda: ((sample[None], label) for sample, label in zip(samples, labels, strict=True)), None),
        "generator": (iter([sample[None] for sample in samples]), iter(labels)),
        "dicts": ([{"x": sample[None]} for sample in samples], labels),
        "loader": (Loader(samples, labels, 32), None),
        "file, array by name": (tmp_path / "data.npz", "labels"),
        "file and file": (str(tmp_path / "data.npz"), tmp_path / "labels.npy"),
        "one-hot": (samples, np.eye(8, dtype=F32)[labels]),
    }
    for name, (dataset, given) in forms.items():
        result = leadline.evaluate(DENSE, dataset, given)
        assert (result.correct, result.answers, result.value) == (right, 200, right / 200), name
    assert result.classes == 8
    table = np.array(result.confusion).reshape(8, 8)
    assert table.sum() == 200 and table.trace() == right


def test_metrics():
    samples, labels = dense_data(50)
    outputs = expected_answers(samples)
    wanted = outputs + np.random.default_rng(1).normal(size=outputs.shape).astype(F32)
    error = (outputs.astype(np.float64) - wanted) ** 2
    assert leadline.evaluate(DENSE, samples, wanted, metric="mse").value == pytest.approx(error.mean(), rel=1e-12)
    mae = leadline.evaluate(DENSE, samples, wanted, metric="mae", per_sample=True)
    assert mae.per_sample == pytest.approx(np.abs(outputs - wanted.astype(np.float64)).mean(1), rel=1e-6)
    assert leadline.evaluate(DENSE, samples, metric="cosine", reference=DENSE).value == pytest.approx(1)
    assert leadline.evaluate(DENSE, samples, metric="agreement", reference=DENSE).value == 1
    rank = (outputs > outputs[np.arange(50), labels][:, None]).sum(1)
    assert leadline.evaluate(DENSE, samples, labels, top_k=3).correct == (rank < 3).sum()
    seen = []
    result = leadline.evaluate(
        DENSE, samples, labels, metric=lambda outs, targets: seen.append(targets) or outs[0].max()
    )
    assert result.value == pytest.approx(outputs.max(1).astype(np.float64).mean(), rel=1e-12)
    assert sorted(int(target[0]) for target in seen) == sorted(labels.tolist())
    with pytest.raises(leadline.InvalidArgumentError, match="unknown metric 'f1'; expected one of: accuracy, mse"):
        leadline.evaluate(DENSE, samples, labels, metric="f1")
    with pytest.raises(ZeroDivisionError):
        leadline.evaluate(DENSE, samples, labels, metric=lambda *_: 1 / 0)


def test_the_table_of_answers_is_kept_for_the_classes_asked_for(tmp_path):
    samples, labels = dense_data()
    path = tmp_path / "model.tflite"
    path.write_bytes(DENSE)
    peak = {n: leadline.evaluate.plan(path, num_threads=1, max_confusion_classes=n).peak_bytes for n in (0, 7, 8)}
    assert peak[8] - peak[7] == 16 * 8 * 8 and peak[7] == peak[0]
    result = leadline.evaluate(path, samples, labels, max_confusion_classes=7)
    assert result.confusion == [] and result.value == leadline.evaluate(path, samples, labels).value
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        assert leadline.evaluate(path, samples, labels, max_confusion_classes=7, executor=pool).confusion == []
    with pytest.raises(leadline.InvalidArgumentError, match=r"max_confusion_classes is -1, expected 0 \(no table\) to"):
        leadline.evaluate(path, samples, labels, max_confusion_classes=-1)


def span(outputs, targets):
    return float(np.ptp(outputs[0]) * (1 + targets[0]))


@pytest.mark.parametrize("kind", ["threads", "fork", "spawn", "dask"])
def test_executors_and_threads_change_nothing(kind, tmp_path):
    samples, labels = dense_data(100)
    path = tmp_path / "model.tflite"
    path.write_bytes(DENSE)

    def results(**where):
        made = [
            leadline.evaluate(path, samples, labels, per_sample=True, **where),
            leadline.evaluate(DENSE, samples, metric="mse", reference=sample_models.dense(16, 8), **where),
            leadline.evaluate(DENSE, samples, labels, metric=span, per_sample=True, **where),
        ]
        return [(r.value, r.correct, r.samples, r.confusion, r.per_sample) for r in made]

    expected = results(num_threads=1)
    assert results(num_threads=3) == expected
    if kind == "dask":
        distributed = pytest.importorskip("distributed", reason="dask[distributed] is not installed")
        options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
        with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
            assert results(executor=client.get_executor()) == expected
        return
    if kind == "threads":
        pool = concurrent.futures.ThreadPoolExecutor(3)
    else:
        pool = concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(kind))
    with pool:
        assert results(executor=pool) == expected
        told = []
        leadline.evaluate(DENSE, samples, labels, executor=pool, progress=lambda *step: told.append(step))
        assert told[-1] == (100, 100)
        bad = labels.copy()
        bad[40] = 99
        with pytest.raises(leadline.InvalidArgumentError, match="sample 40: the label is 99, the model has 8 classes"):
            leadline.evaluate(DENSE, samples, bad, executor=pool)


def test_a_budget_below_the_plan_is_refused_before_the_first_sample():
    samples, labels = dense_data(10)
    plan = leadline.evaluate.plan(DENSE, num_threads=2)
    assert [phase.name for phase in plan.phases] == ["load", "evaluate"]
    assert plan.peak_bytes == max(phase.peak_bytes for phase in plan.phases)
    taken = []

    def counted():
        for sample in samples:
            taken.append(1)
            yield sample[None]

    for threads in (1, 2):
        peak = leadline.evaluate.plan(DENSE, num_threads=threads).peak_bytes
        with pytest.raises(leadline.BudgetError, match="evaluate needs"):
            leadline.evaluate(DENSE, counted(), labels, num_threads=threads, budget=peak - 1)
        assert not taken
        result = leadline.evaluate(DENSE, samples, labels, num_threads=threads, budget=peak)
        assert result.counted_peak_bytes <= peak
    with concurrent.futures.ThreadPoolExecutor(1) as pool, pytest.raises(leadline.BudgetError):
        leadline.evaluate(DENSE, counted(), labels, executor=pool, budget=1000)
    assert not taken


def test_what_is_wrong_is_said():
    samples, labels = dense_data(10)
    with pytest.raises(leadline.InvalidArgumentError, match="there are 3 labels, and more samples than that"):
        leadline.evaluate(DENSE, samples, labels[:3])
    with pytest.raises(leadline.InvalidArgumentError, match="sample 0: the sample has no label"):
        leadline.evaluate(DENSE, samples)
    with pytest.raises(leadline.InvalidArgumentError, match=r"sample 0, input 'x': the shape is \[1, 5\]"):
        leadline.evaluate(DENSE, samples[:, :5], labels)
    with pytest.raises(leadline.InvalidArgumentError, match="folders of pictures: give a path"):
        leadline.evaluate(DENSE, samples, labels, mean=3)
    with pytest.raises(leadline.Error) as caught:
        leadline.evaluate(DENSE, samples, labels, progress=lambda done, total: False)
    assert caught.value.code == "cancelled"
    with pytest.raises(leadline.TimeLimitError):
        leadline.evaluate(DENSE, np.repeat(samples, 5000, 0), np.repeat(labels, 5000), timeout=0.05)


@pytest.mark.skipif(test_cli.PROGRAM is None, reason="the leadline program is not built")
def test_the_program_says_the_same(tmp_path):
    samples, labels = dense_data()
    model = tmp_path / "model.tflite"
    model.write_bytes(DENSE)
    data = tmp_path / "data.npz"
    np.savez(data, x=samples, labels=labels)
    expected = leadline.evaluate(DENSE, samples, labels)
    told = test_cli.leadline_json("evaluate", model, "--data", data, "--labels", "labels", "--threads", 2)
    assert (told["value"], told["correct"]) == (expected.value, expected.correct)
    planned = test_cli.leadline_json("evaluate", model, "--data", data, "--labels", "labels", "--threads", 2, "--plan")
    assert planned == json.loads(leadline.evaluate.plan(model, data, "labels", num_threads=2).to_json())
    assert told["counted_peak_bytes"] <= planned["peak_bytes"]
    without = [model, "--data", data, "--labels", "labels", "--threads", 2, "--max-confusion-classes", 0]
    assert "confusion" in told and "confusion" not in test_cli.leadline_json("evaluate", *without)
    assert planned["peak_bytes"] - test_cli.leadline_json("evaluate", *without, "--plan")["peak_bytes"] == 16 * 8 * 8
    options = ["--data", data, "--labels", "labels", "--memory", planned["peak_bytes"] - 1, "--threads", 2]
    refused = test_cli.leadline("evaluate", model, *options, expect=test_cli.OVER_BUDGET)
    assert "evaluate needs" in refused.stderr


@pytest.mark.parametrize(
    ("name", "right"),
    [("mlperf_kws_dscnn_int8", 902), ("mlperf_kws_dscnn_dynrange", 900), ("derived_kws_float_tf221", 913)],
)
def test_keyword_spotting_is_as_accurate_as_with_litert(name, right, shared):
    """The 1,000 samples of MLPerf Tiny; LiteRT 2.3.0 answers this many of them correctly."""
    data, model = shared / "data" / "kws01.npz", shared / "models" / f"{name}.tflite"
    if not data.exists() or not model.exists():
        pytest.skip("the real data is not here")
    if name.endswith("int8"):
        result = leadline.evaluate(model, data, "labels")
    else:
        quantized = leadline.lite.Interpreter(str(shared / "models" / "mlperf_kws_dscnn_int8.tflite"))
        scale, zero_point = quantized.get_input_details()[0]["quantization"]
        with np.load(data) as arrays:
            features = (arrays["features_int8"].astype(F32) - zero_point) * scale
            result = leadline.evaluate(model, features, arrays["labels"])
    assert result.samples == 1000
    assert abs(result.correct - right) <= (0 if name.endswith("int8") else 1)


def random_sample(model, rng):
    graph = model.subgraph(0)
    sample = []
    for index in graph.inputs:
        tensor = graph.tensors[index]
        dtype = np.dtype(_native_tensors.numpy_type(tensor.dtype))
        if dtype.kind not in "fiu":
            return None
        values = rng.uniform(0, 1, tensor.shape)
        sample.append(values.astype(dtype) if dtype.kind == "f" else np.zeros(tensor.shape, dtype))
    return sample


def slow_metric(*_):
    time.sleep(0.02)  # long enough for every thread to have a sample
    return 0.0


@pytest.mark.parametrize("threads", [1, 3])
def test_counted_memory_never_exceeds_the_plan(threads, shared):
    rng = np.random.default_rng(1)
    measured = 0
    for path in sorted((shared / "models").glob("*.tflite")):
        if path.stat().st_size > 1_000_000:
            continue
        try:
            model = leadline.Model.load(path, leadline.Budget("500MB"))
            plan = leadline.evaluate.plan(model, num_threads=threads)
        except leadline.Error:  # ops that do not run
            continue
        sample = random_sample(model, rng)
        if sample is None or not plan.complete or plan.peak_bytes > 200_000_000:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", leadline.DatasetWarning)
            try:
                result = leadline.evaluate(model, [sample] * 4, metric=slow_metric, num_threads=threads)
            except leadline.InvalidModelError:  # zeros that an op cannot take
                continue
        assert result.counted_peak_bytes <= plan.peak_bytes, path.name
        measured += 1
    assert measured >= 40
