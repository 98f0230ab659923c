# SPDX-License-Identifier: Apache-2.0
"""leadline.calibrate: forms of datasets, what is said about bad ones, bytes, executors, and memory."""

import concurrent.futures
import gc
import multiprocessing
import os
import pickle
import threading
import time
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import sample_models
from test_soak import resident_bytes
from tflite_builder import STRING, ModelBuilder, Scalar

import leadline
from leadline import CalibrationMethod, CalibrationRule
from leadline._leadline import Calibrator

F32 = np.float32
RNG = np.random.default_rng(7)
DENSE = sample_models.dense(inputs=16, outputs=8)


def dense_samples(count=40, seed=1):
    rng = np.random.default_rng(seed)
    return [rng.normal(0, 1 + i % 5, (1, 16)).astype(F32) for i in range(count)]


def by_name(calibration):
    return {tensor.name: tensor for tensor in calibration.tensors()}


def image_model(first="CONV_2D", shape=(1, 8, 8, 3), signature=None):
    builder = ModelBuilder()
    graph = builder.subgraph()
    x = graph.input("image", F32, shape, signature=signature)
    if first == "MUL":
        x = graph.op("MUL", [x, graph.constant("scale", F32(1 / 255))], ("scaled", F32, shape))
    weights = graph.constant("w", np.ones((2, 1, 1, 3), F32))
    bias = graph.constant("b", np.zeros(2, F32))
    options = {1: Scalar("i", 1), 2: Scalar("i", 1), 4: Scalar("i", 1), 5: Scalar("i", 1)}
    graph.output(graph.op("CONV_2D", [x, weights, bias], ("y", F32, [*shape[:3], 2]), options=options))
    return builder.build()


# Forms of datasets


def test_every_form_of_dataset_gives_the_same_calibration():
    content, arrays = sample_models.add(), [RNG.normal(size=(1, 4)).astype(F32) for _ in range(40)]

    class Torch:  # as a tensor of PyTorch that records gradients
        def __init__(self, array):
            self.array = array

        def detach(self):
            return SimpleNamespace(cpu=lambda: self.array)

        def __array__(self, *_, **__):
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.")

    datasets = {
        "function that yields lists": lambda: ([array] for array in arrays),
        "function that returns a list": lambda: [[array] for array in arrays],
        "RepresentativeDataset": leadline.lite.RepresentativeDataset(lambda: ([array] for array in arrays)),
        "generator": ([array] for array in arrays),
        "list of lists": [[array] for array in arrays],
        "list of arrays": arrays,
        "one array": np.concatenate(arrays),
        "tuples of arrays": [(array,) for array in arrays],
        "dicts by signature name": [{"x": array} for array in arrays],
        "signature key and dict": [("add", {"x": array}) for array in arrays],
        "no signature key and dict": [(None, {"x": array}) for array in arrays],
        "float64": [[array.astype(np.float64)] for array in arrays],
        "nested lists": [[array.tolist()] for array in arrays],
        "torch tensors": [[Torch(array)] for array in arrays],
        "not contiguous": [[np.asfortranarray(np.repeat(array, 2, 1))[:, ::2]] for array in arrays],
    }
    results = {name: leadline.calibrate(content, dataset).to_bytes() for name, dataset in datasets.items()}
    assert len(set(results.values())) == 1, {name: hash(value) for name, value in results.items()}


def test_model_may_be_a_path_bytes_or_a_model(tmp_path):
    path = tmp_path / "model.tflite"
    path.write_bytes(DENSE)
    samples = dense_samples()
    results = [leadline.calibrate(m, samples).to_bytes() for m in (path, str(path), DENSE, leadline.Model.load(path))]
    assert len(set(results)) == 1


def test_lists_are_in_the_order_of_inputs_and_dicts_by_name():
    a, b = np.full((2, 3), 2, F32), np.arange(6, dtype=F32).reshape(2, 3)
    content = sample_models.two_inputs()
    for sample in ([a, b], {"b": b, "a": a}, ("both", {"b": b, "a": a})):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", leadline.DatasetWarning)
            tensors = by_name(leadline.calibrate(content, [sample]))
        assert (tensors["a"].min, tensors["a"].max) == (2, 2)
        assert (tensors["b"].min, tensors["b"].max) == (0, 5)
        assert tensors["product"].max == 10


def test_dynamic_dimensions_take_samples_of_any_size():
    samples = [RNG.normal(size=(n, 4)).astype(F32) for n in (1, 3, 3, 2, 1)]
    tensors = by_name(leadline.calibrate(sample_models.add(), samples))
    assert tensors["x"].elements == 40
    assert tensors["x"].max == max(sample.max() for sample in samples)


def test_signatures_go_into_one_calibration():
    content = sample_models.two_signatures()
    rng = np.random.default_rng(1)
    samples = [(key, {"x": rng.normal(size=4).astype(F32)}) for key in ["double", "square"] * 5]
    calibration = leadline.calibrate(content, samples)
    assert calibration.samples == 10
    assert {(t.subgraph, t.name): t.elements for t in calibration.tensors()} == {
        (0, "double_x"): 20, (0, "double_y"): 20, (1, "square_x"): 20, (1, "square_y"): 20,
    }  # fmt: skip
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        assert leadline.calibrate(content, samples, executor=pool).to_bytes() == calibration.to_bytes()
    with pytest.raises(leadline.InvalidArgumentError, match="several signatures"):
        leadline.calibrate(content, [{"x": np.ones(4, F32)}])


def test_string_and_integer_inputs():
    builder = ModelBuilder()
    graph = builder.subgraph()
    words, index = graph.input("words", STRING, [2]), graph.input("index", np.int32, [1])
    x = graph.input("x", F32, [2])
    graph.output(graph.op("GATHER", [words, index], ("w", STRING, [1]), options={0: Scalar("i", 0)}))
    graph.output(graph.op("TANH", [x], ("y", F32, [2])))
    samples = [[np.array(["a", "b"]), np.array([i % 2]), np.array([i, -i], F32)] for i in range(4)]
    assert by_name(leadline.calibrate(builder.build(), samples))["y"].elements == 8


def test_state_begins_anew_unless_it_is_kept():
    samples = [("step", {"x": np.array([i + 1.0, 1.0], F32)}) for i in range(5)]
    content = sample_models.counter()
    assert by_name(leadline.calibrate(content, samples))["new"].max == 5
    assert by_name(leadline.calibrate(content, samples, keep_state=True))["new"].max == 15
    with concurrent.futures.ThreadPoolExecutor(1) as pool, pytest.raises(ValueError, match="keep_state"):
        leadline.calibrate(content, samples, keep_state=True, executor=pool)


def test_progress_is_told():
    told = []
    leadline.calibrate(DENSE, dense_samples(5), progress=lambda done, total: told.append((done, total)))
    assert told == [(i, 5) for i in range(1, 6)]
    told.clear()
    leadline.calibrate(DENSE, iter(dense_samples(3)), progress=lambda done, total: told.append((done, total)))
    assert told == [(i, None) for i in range(1, 4)]


# What is said about bad datasets

GOOD = np.ones((1, 16), F32)
NAN = np.where(np.arange(16) == 3, np.nan, 1).astype(F32)[None]
ERRORS = {
    "empty list": ([], "the representative dataset is empty"),
    "empty generator": (lambda: iter(()), "the representative dataset is empty"),
    "nothing to iterate": (7, "should be a function that yields samples.*got int"),
    "a dict": ({"x": GOOD}, "a dict, which is one sample"),
    "rank": ([[GOOD], [GOOD[0]]], r"sample 1, input 'x': the shape is \[16\], the model takes \[1, 16\].*batch"),
    "shape": ([[GOOD[:, :5]]], r"sample 0, input 'x': the shape is \[1, 5\], the model takes \[1, 16\]"),
    "batch": ([np.repeat(GOOD, 3, 0)], r"sample 0, input 'x': the shape is \[3, 16\].*one by one"),
    "type": ([[np.ones((1, 16), bool)]], "sample 0, input 'x': the type is bool, the model takes float32"),
    "strings": ([[np.full((1, 16), "a")]], "sample 0, input 'x': the type is <U1, the model takes float32"),
    "NaN": ([[GOOD], [GOOD], [NAN]], r"sample 2, input 'x': 1 of 16 values are NaN or infinite, the first at \[0, 3\]"),
    "infinity": ([[GOOD * np.inf]], "sample 0, input 'x': 16 of 16 values are NaN or infinite"),
    "too large": ([[np.full((1, 16), 1e300)]], "sample 0, input 'x': 16 of 16 values are NaN or infinite"),
    "labels": ([[GOOD, np.ones(1)]], "sample 0: 2 arrays for 1 inputs .*'x'.*labels"),
    "name": ([{"y": GOOD}], "sample 0: the model has no input 'y'; the inputs are 'x'"),
    "missing name": ([{}], "sample 0: input 'x' is missing"),
    "signature": ([("other", {"x": GOOD})], "sample 0: the model has no signature 'other'; it has none"),
    "no dict": ([("other", GOOD)], "sample 0: after the signature key 'other' a dict"),
    "ragged": ([[[[1, 2], [3]]]], "sample 0, input 'x': cannot be made an array"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_samples_that_cannot_serve_are_named(name):
    dataset, message = ERRORS[name]
    with pytest.raises(leadline.InvalidArgumentError, match=message):
        leadline.calibrate(DENSE, dataset)
    finding = leadline.lint_dataset(DENSE, dataset)[-1]
    assert finding.severity == "error"


def test_integers_that_do_not_fit_are_refused():
    content = sample_models.strings()
    sample = [np.array(["a", "b", "c"]), np.array([0, 1 << 40])]
    with pytest.raises(leadline.InvalidArgumentError, match="sample 0, input 'indices'.*do not fit"):
        leadline.calibrate(content, [sample])


def test_a_run_that_fails_names_its_sample():
    content = sample_models.strings()
    samples = [[np.array(["a", "b", "c"]), np.array(index)] for index in ([0, 1], [0, 9])]
    with pytest.raises(leadline.InvalidModelError, match="sample 1: GATHER #0") as caught:
        leadline.calibrate(content, samples)
    assert caught.value.code == "invalid_model"


@pytest.mark.parametrize("workers", [0, 2])
def test_values_that_are_not_finite_are_traced_to_sample_and_op(workers):
    builder = leadline.ModelBuilder()
    x, y, z = builder.input("x", F32, [2]), builder.tensor("y", F32, [2]), builder.tensor("z", F32, [2])
    builder.node("LOG", [x], [y])
    builder.node("NEG", [y], [z])
    builder.output(z)
    samples = [[np.array([1 + i, 2], F32)] for i in range(40)]
    samples[21] = [np.array([1, -1], F32)]
    with (
        concurrent.futures.ThreadPoolExecutor(workers or 1) as pool,
        pytest.warns(leadline.DatasetWarning, match="sample 21: 'y', the result of LOG #0, holds values that are NaN"),
    ):
        leadline.calibrate(builder.to_tflite(), samples, executor=pool if workers else None)


def images(low, high, whole=False, dtype=F32, count=40):
    rng = np.random.default_rng(3)
    values = [rng.uniform(low, high, (1, 8, 8, 3)) for _ in range(count)]
    return [[(np.rint(value) if whole else value).astype(dtype)] for value in values]


WARNINGS = {
    "bytes": (image_model(), images(0, 255, dtype=np.uint8), "sample 0, input 'image': uint8 values are converted"),
    "constant": (image_model(), [[np.full((1, 8, 8, 3), 0.5, F32)]] * 40, "every value of every sample is 0.5"),
    "same": (image_model(), images(0, 1)[:1] * 40, "all 40 samples of the dataset are the same"),
    "pixels": (image_model(), images(0, 255, whole=True), "as of raw pixels, but the model begins with CONV_2D"),
    "outlier": (image_model(), [*images(0, 1)[:20], [images(0, 1)[0][0] * 5000]], "sample 20, input 'image': values"),
}


@pytest.mark.parametrize("name", WARNINGS)
def test_doubtful_datasets_warn(name):
    content, dataset, message = WARNINGS[name]
    with pytest.warns(leadline.DatasetWarning, match=message):
        leadline.calibrate(content, dataset)
    assert any(finding.severity == "warning" for finding in leadline.lint_dataset(content, dataset))


def test_input_that_is_scaled_twice_warns():
    with pytest.warns(leadline.DatasetWarning, match="multiplication by about 0.00392, as if it took pixels"):
        leadline.calibrate(image_model("MUL"), images(0, 1))


def test_sound_datasets_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        leadline.calibrate(image_model(), images(-1, 1))
        leadline.calibrate(image_model("MUL"), images(0, 255, whole=True))
        leadline.calibrate(DENSE, dense_samples())
    assert leadline.lint_dataset(image_model(), images(-1, 1)) == []
    notes = leadline.lint_dataset(image_model(), images(-1, 1, count=3))
    assert [note.severity for note in notes] == ["note"]
    assert leadline.lint_dataset(image_model(), iter(images(-1, 1)), limit=40) == []


# Ranges


def test_moving_average_is_the_recurrence():
    rng = np.random.default_rng(2)
    samples = [rng.normal(0, 1 + i / 50, (1, 16)).astype(F32) for i in range(100)]
    calibration = leadline.calibrate(DENSE, samples)
    low, high = float(samples[0].min()), float(samples[0].max())
    for sample in samples[1:]:
        low, high = 0.95 * low + 0.05 * float(sample.min()), 0.95 * high + 0.05 * float(sample.max())
    rule = CalibrationRule(CalibrationMethod.MOVING_AVERAGE, momentum=0.95)
    assert calibration.range(0, 0, rule) == pytest.approx((low, high), rel=1e-6)


def test_ranges_are_those_of_the_values(litert):
    samples = dense_samples()
    interpreter = litert(model_content=DENSE, experimental_preserve_all_tensors=True)
    interpreter.allocate_tensors()
    seen = {}
    for sample in samples:
        interpreter.set_tensor(0, sample)
        interpreter.invoke()
        for tensor in interpreter.get_tensor_details():
            seen.setdefault(tensor["name"], []).append(interpreter.get_tensor(tensor["index"]))
    for tensor in leadline.calibrate(DENSE, samples).tensors():
        values = np.stack(seen[tensor.name])
        assert (tensor.min, tensor.max) == pytest.approx((values.min(), values.max()), rel=1e-5)
        assert tensor.elements == values.size


def test_methods_without_histograms_take_less():
    full, lean = (leadline.calibrate(DENSE, dense_samples(), method) for method in (None, "min_max"))
    assert lean.memory_bytes < full.memory_bytes / 5
    assert not lean.histograms
    assert lean.range(0, 0) == full.range(0, 0)
    with pytest.raises(leadline.InvalidArgumentError, match="needs histograms"):
        lean.range(0, 0, CalibrationRule(CalibrationMethod.KL))
    with pytest.raises(leadline.InvalidArgumentError, match="method is 'best', expected one of: min_max, "):
        leadline.calibrate(DENSE, dense_samples(), "best")


# Bytes


def test_calibrations_travel_as_bytes_and_pickles():
    calibration = leadline.calibrate(DENSE, dense_samples())
    content = calibration.to_bytes()
    for copy in (leadline.Calibration.from_bytes(content), pickle.loads(pickle.dumps(calibration))):
        assert copy.to_bytes() == content
        assert copy.is_of(leadline.Model.from_bytes(DENSE))
    for damaged in (b"", b"LLCALIB2", content[:-1], content + b"\0", content[:50] + b"\1" + content[51:]):
        with pytest.raises(leadline.InvalidArgumentError, match="not a calibration"):
            leadline.Calibration.from_bytes(damaged)
    with pytest.raises(leadline.BudgetError):
        leadline.Calibration.from_bytes(content, leadline.Budget(10_000))


def test_calibrations_of_other_models_do_not_merge():
    calibration = leadline.calibrate(DENSE, dense_samples())
    other = leadline.calibrate(sample_models.add(), [np.arange(4, dtype=F32)[None]] * 2 + [np.ones((1, 4), F32)])
    with pytest.raises(leadline.InvalidArgumentError, match="different models"):
        calibration.merge(other)
    assert not other.is_of(leadline.Model.from_bytes(DENSE))
    assert calibration.samples == 40


# Executors


def counted(samples, taken):
    for sample in samples:
        taken.append(1)
        yield [sample]


@pytest.mark.parametrize("kind", ["threads", "fork", "spawn"])
def test_executors_give_the_same_bytes(kind, tmp_path):
    samples = dense_samples(300)
    expected = leadline.calibrate(DENSE, samples).to_bytes()
    path = tmp_path / "model.tflite"
    path.write_bytes(DENSE)
    if kind == "threads":
        pool = concurrent.futures.ThreadPoolExecutor(3)
    else:
        pool = concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(kind))
    with pool:
        for model in (DENSE, path, leadline.Model.from_bytes(DENSE)):
            told = []
            result = leadline.calibrate(
                model, samples, executor=pool, progress=lambda *step, told=told: told.append(step)
            )
            assert result.to_bytes() == expected
            assert told[-1] == (300, 300)
        dynamic = [RNG.normal(size=(1 + n % 3, 4)).astype(F32) for n in range(50)]
        expected = leadline.calibrate(sample_models.add(), dynamic).to_bytes()
        assert leadline.calibrate(sample_models.add(), dynamic, executor=pool).to_bytes() == expected


def test_a_local_dask_cluster_gives_the_same_bytes():
    distributed = pytest.importorskip("distributed", reason="dask[distributed] is not installed")
    samples = dense_samples(200)
    expected = leadline.calibrate(DENSE, samples).to_bytes()
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        executor = client.get_executor()
        assert leadline.calibrate(DENSE, samples, executor=executor).to_bytes() == expected
        broken = [*samples[:100], np.full((1, 16), np.nan, F32)]
        with pytest.raises(leadline.InvalidArgumentError, match="sample 100, input 'x'"):
            leadline.calibrate(DENSE, broken, executor=executor)
        assert leadline.calibrate(DENSE, samples, executor=executor).to_bytes() == expected, "usable afterwards"


def test_the_generator_is_read_only_as_far_as_needed():
    taken, done = [], []
    gate = threading.Event()

    class Slow(concurrent.futures.ThreadPoolExecutor):
        def submit(self, work, *arguments):
            return super().submit(lambda: (gate.wait(), work(*arguments))[1])

    with Slow(2) as pool:
        worker = threading.Thread(
            target=lambda: done.append(leadline.calibrate(DENSE, counted(dense_samples(1000), taken), executor=pool))
        )
        worker.start()
        for _ in range(100):
            before = len(taken)
            time.sleep(0.05)
            if before and before == len(taken):
                break
        waiting = len(taken)
        gate.set()
        worker.join()
    assert waiting <= 5 * 16, "four chunks on their way, one in the making"
    assert done[0].samples == 1000


def test_a_failing_sample_stops_the_others(monkeypatch):
    from leadline.jobs import distribute

    begun, ended, run_chunk = [], [], distribute._run_chunk

    def watched(*arguments):
        begun.append(1)
        answer = run_chunk(*arguments)
        ended.append(1)
        return answer

    monkeypatch.setattr(distribute, "_run_chunk", watched)
    content = sample_models.strings()
    samples = [[np.array(["a", "b", "c"]), np.array([0, 9 if i == 40 else 1])] for i in range(200)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        with pytest.raises(leadline.Error, match="sample 40: GATHER #0"):
            leadline.calibrate(content, samples, executor=pool)
        assert len(begun) == len(ended)
        pool.submit(int).result()
        assert len(begun) == len(ended) < 200 / 16, "nothing was left in the queue"
        with pytest.raises(leadline.BudgetError):
            leadline.calibrate(sample_models.slow(), [np.ones((384, 384), F32)], executor=pool, budget="3MB")


RUN_CHUNK = None  # what die_at_sample_32() stands in for


def die_at_sample_32(*arguments):
    first = arguments[5]
    if first == 32:
        os._exit(1)
    return RUN_CHUNK(*arguments)


def test_a_worker_that_dies_on_the_way_is_reported(monkeypatch):
    from leadline.jobs import distribute

    monkeypatch.setitem(globals(), "RUN_CHUNK", distribute._run_chunk)
    monkeypatch.setattr(distribute, "_run_chunk", die_at_sample_32)
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
        message = r"worker failed while calibrating samples \d+ to \d+: Broken|takes no more work: .*terminated"
        with pytest.raises(leadline.Error, match=message):
            leadline.calibrate(DENSE, dense_samples(200), executor=pool)
    assert distribute._held is None


def test_workers_that_die_or_stop_are_reported():
    with concurrent.futures.ProcessPoolExecutor(1) as pool:
        pool.submit(os._exit, 1)
        with pytest.raises(leadline.Error, match="worker failed while calibrating samples 0 to 15|takes no more work"):
            leadline.calibrate(DENSE, dense_samples(100), executor=pool)
    pool = concurrent.futures.ThreadPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(leadline.Error, match="takes no more work"):
        leadline.calibrate(DENSE, dense_samples(100), executor=pool)

    class Cancelling(concurrent.futures.Executor):
        def submit(self, work, *arguments):
            future = concurrent.futures.Future()
            future.cancel()
            return future

    with pytest.raises(leadline.Error, match="samples 0 to 15 was cancelled"):
        leadline.calibrate(DENSE, dense_samples(100), executor=Cancelling())
    with pytest.raises(leadline.InvalidArgumentError, match="concurrent.futures.Executor; got int"):
        leadline.calibrate(DENSE, dense_samples(100), executor=2)


def test_nothing_is_left_in_this_process():
    from leadline.jobs import distribute

    budget = leadline.Budget("100MB")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        result = leadline.calibrate(DENSE, dense_samples(100), executor=pool, budget=budget)
    assert distribute._held is None
    gc.collect()
    assert budget.used == result.memory_bytes
    del result
    assert budget.used == 0


# Memory


def test_memory_is_known_before_and_flat_over_a_thousand_samples():
    budget = leadline.Budget("100MB")
    model = leadline.Model.from_bytes(DENSE, budget)
    calibrator = Calibrator(model)
    interpreter = calibrator.interpreter()
    samples = dense_samples(50)
    interpreter.set_tensor(0, samples[0])
    before = budget.used
    used = set()
    for i in range(1000):
        interpreter.set_tensor(0, samples[i % 50])
        calibrator.add_sample()
        used.add(budget.used - before)
        if i == 100:
            resident = resident_bytes()
    assert used == {calibrator.statistics_bytes}
    assert resident_bytes() - resident < 1 << 20
    assert calibrator.calibration().samples == 1000


def test_rounds_do_not_grow():
    budget = leadline.Budget("100MB")
    samples = dense_samples(4)
    for i in range(60):
        leadline.calibrate(DENSE, samples, budget=budget)
        assert budget.used == 0
        if i == 20:
            gc.collect()
            before = resident_bytes()
    gc.collect()
    assert resident_bytes() - before < 1 << 20
