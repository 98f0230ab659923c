# SPDX-License-Identifier: Apache-2.0
"""leadline.tune: what there is to choose from, what is proven on samples that were held out, and limits of time."""

import json
import time

import numpy as np
import pytest
from test_cli import PROGRAM, leadline_json
from test_debugger import convnet

import leadline

RNG = np.random.default_rng(21)


def images(count: int, scale: float = 1.0) -> list:
    return [[(scale * RNG.uniform(-1, 1, (1, 8, 8, 3))).astype(np.float32)] for _ in range(count)]


SAMPLES = images(32)


def outputs(content: bytes, samples: list) -> np.ndarray:
    interpreter = leadline.lite.Interpreter(model_content=content)
    interpreter.allocate_tensors()
    rows = []
    for (sample,) in samples:
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], sample)
        interpreter.invoke()
        rows.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
    return np.concatenate(rows).astype(np.float64)


def cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    lengths = np.sqrt(np.sum(a * a, 1) * np.sum(b * b, 1))
    equal = np.all(a == b, 1)  # also where all are 0
    return np.where(equal, 1.0, np.sum(a * b, 1) / np.maximum(lengths, 1e-30))


@pytest.fixture(scope="module")
def spoiled():
    """A layer that its weights spoil in 8 bits."""
    return convnet(spoiled=500)


@pytest.fixture(scope="module")
def tuned(spoiled):
    return leadline.tune(spoiled, SAMPLES, "cosine", 0.999, num_threads=1, progress=False)


def test_the_front_has_no_trial_that_another_beats(tuned):
    assert tuned.reached
    assert tuned.kept == ["model/conv2/Conv2D"]
    front = tuned.front
    assert len(front) >= 2, "everything quantized, and what was found"
    assert [trial.size for trial in front] == sorted(trial.size for trial in front)
    for trial in front:
        assert trial in tuned.trials
        assert not any(
            other.value > trial.value and other.size < trial.size and other.seconds < trial.seconds
            for other in tuned.trials
        )
    assert {trial.keep for trial in tuned.trials} == {"float", "int16x8"}
    assert all(trial.seconds > 0 for trial in tuned.trials) and tuned.float_seconds > 0
    assert str(tuned).count("\n") >= len(front) + 2


def test_every_point_of_the_front_can_be_made(tuned, spoiled):
    # What was held out took no part in calibration.
    searched = [sample for i, sample in enumerate(SAMPLES) if i % 4 != 3]
    for trial in tuned.front:
        made = leadline.quantize(spoiled, "int8", searched, recipe=trial.recipe)
        assert len(made) == trial.size
        cosine = leadline.debug(spoiled, made, searched, effects=False, progress=False).outputs[0]["accumulated"]
        assert cosine["cosine"] == pytest.approx(trial.value, abs=1e-6)


def test_what_is_proven_is_measured_on_what_was_held_out(tuned, spoiled):
    held_out = SAMPLES[3::4]
    assert tuned.bound.samples == len(held_out) == 8
    each = cosines(outputs(tuned.content, held_out), outputs(spoiled, held_out))
    assert tuned.bound.lowest == pytest.approx(each.min(), abs=1e-6)
    # All eight are at least as good as the worst of them: 0.05 ** (1 / 8).
    assert tuned.bound.share == pytest.approx(0.05 ** (1 / 8))


@pytest.mark.parametrize("seed", range(5))
def test_bounds_hold_for_new_samples(seed):
    rng = np.random.default_rng(100 + seed)

    def draw(count):
        # Sizes differ widely, so that some samples come off badly.
        return [[(rng.lognormal(0, 1) * rng.uniform(-1, 1, (1, 8, 8, 3))).astype(np.float32)] for _ in range(count)]

    float_model = convnet()
    result = leadline.tune(float_model, draw(60), "cosine", 0.9, num_threads=1, progress=False)
    unseen = draw(400)
    each = cosines(outputs(result.content, unseen), outputs(float_model, unseen))
    # 400 samples know the share to some percent.
    assert np.mean(each >= result.bound.lowest - 1e-6) >= result.bound.share - 0.03


def test_samples_unlike_those_searched_with_are_not_reached():
    # Every fourth sample is thirty times as bright: what was calibrated without them clips them.
    mixed = [sample if i % 4 != 3 else [30 * sample[0]] for i, sample in enumerate(images(32))]
    float_model = convnet()
    result = leadline.tune(float_model, mixed, "cosine", 0.99, num_threads=1, progress=False)
    assert result.value >= 0.99
    each = cosines(outputs(result.content, mixed[3::4]), outputs(float_model, mixed[3::4]))
    assert not result.reached or each.min() > 0.95
    if not result.reached:
        assert result.bound.value < 0.99
        assert any("held out" in note for note in result.notes)


def test_samples_to_prove_with_can_be_given(spoiled):
    result = leadline.tune(spoiled, SAMPLES, "cosine", 0.999, held_out=images(20), num_threads=1, progress=False)
    assert result.reached and result.bound.samples == 20
    assert result.content == leadline.quantize(spoiled, "int8", SAMPLES, recipe=result.recipe), "all were used"
    nothing = leadline.tune(spoiled, SAMPLES, "cosine", 0.999, held_out=0, num_threads=1, progress=False)
    assert nothing.bound is None and nothing.reached
    few = leadline.tune(spoiled, SAMPLES[:4], "cosine", 0.999, num_threads=1, progress=False)
    assert few.bound is None and "too few" in few.notes[0]


@pytest.mark.parametrize("metric", ["cosine", "same_top", "kl"])
def test_metrics_without_labels(spoiled, metric):
    target = {"cosine": 0.999, "same_top": 0.9, "kl": 0.999}[metric]
    result = leadline.tune(spoiled, SAMPLES, metric, target, num_threads=1, progress=False)
    assert result.reached, str(result)
    assert 0 < result.value <= 1 and result.bound.value >= target
    if metric == "kl":
        logits = [outputs(content, SAMPLES[3::4]) for content in (spoiled, result.content)]
        p, q = (np.exp(x) / np.exp(x).sum(1, keepdims=True) for x in logits)
        assert result.bound.value == pytest.approx(np.exp(-np.mean(np.sum(p * np.log(p / q), 1))), abs=1e-4)
    if metric == "same_top":
        assert result.bound.share == 0 and result.bound.lowest < result.bound.value


def test_time_is_limited(spoiled):
    start = time.monotonic()
    hard = leadline.tune(spoiled, SAMPLES, "cosine", 1.1, max_seconds=0.001, num_threads=1, progress=False)
    assert time.monotonic() - start < 10
    assert not hard.reached
    assert any("0.001 s was over" in note for note in hard.notes)
    assert hard.content and len(hard.trials) >= 1
    with pytest.raises(leadline.InvalidArgumentError, match="max_seconds is -1"):
        leadline.tune(spoiled, SAMPLES, "cosine", 0.9, max_seconds=-1)


def test_a_float_model_that_is_smaller_is_named():
    # Few weights, and a layer that is kept: conversions are larger than what 8 bits save.
    b = leadline.ModelBuilder()
    x = b.input("x", np.float32, [1, 4])
    y = b.tensor("net/dense", np.float32, [1, 4])
    b.node("FULLY_CONNECTED", [x, b.constant("w", np.eye(4, dtype=np.float32)), -1], [y])
    b.output(y)
    samples = [[RNG.normal(size=(1, 4)).astype(np.float32)] for _ in range(12)]
    result = leadline.tune(b.to_tflite(), samples, "cosine", 0.9, progress=False)
    assert result.float_size == len(b.to_tflite())
    assert (len(result.content) >= result.float_size) == any("not larger" in note for note in result.notes)
    assert len(result.content) >= result.float_size, "the case is one"


@pytest.mark.skipif(PROGRAM is None, reason="the leadline program is not built")
def test_the_program_says_the_same(spoiled, tuned, tmp_path):
    (tmp_path / "model.tflite").write_bytes(spoiled)
    np.savez(tmp_path / "samples.npz", image=np.concatenate([sample for (sample,) in SAMPLES]))
    said = leadline_json(
        "tune", tmp_path / "model.tflite", "--data", tmp_path / "samples.npz", "--target", "0.999",
        "--threads", "1", "--save-recipe", tmp_path / "recipe.json",
    )  # fmt: skip
    assert said["reached"] and said["kept"] == tuned.kept
    assert said["bound"]["lowest"] == pytest.approx(tuned.bound.lowest, abs=1e-6)
    # Times decide which trials of nearly one time are shown; the smallest always is.
    assert said["front"][0]["file_bytes"] == tuned.front[0].size
    assert said["float_bytes"] == len(spoiled) and said["float_seconds"] > 0
    assert json.loads((tmp_path / "recipe.json").read_text())["rules"] == tuned.recipe
