# SPDX-License-Identifier: Apache-2.0
"""leadline.quantize(rounding=): errors become smaller, results do not depend on who runs the samples, and memory is
known before."""

import concurrent.futures

import numpy as np
import pytest
from test_cli import leadline as run_program
from test_quantize import model, outputs, samples  # noqa: F401 (fixtures)

import leadline
from leadline import lite

MODES = ("weight_only_int4", "dynamic_int4", "dynamic_int2", "weight_only_int8", "dynamic", "int8", "int16x8")


@pytest.fixture(scope="module")
def related() -> tuple[bytes, list[np.ndarray], np.ndarray]:
    """A net on values that go up and down together, as those of pictures do; samples, and others to measure with."""
    random = np.random.default_rng(5)
    mix = random.normal(size=(8, 6 * 6 * 4)) / 3

    def draw(count):
        values = np.abs(random.normal(size=(count, 8))) @ mix + 0.1 * random.normal(size=(count, 6 * 6 * 4))
        return values.reshape(-1, 1, 6, 6, 4).astype(np.float32)

    b = leadline.ModelBuilder()

    def weights(name, *shape):
        return b.constant(name, (random.normal(size=shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32))

    x = b.input("image", np.float32, [1, 6, 6, 4])
    conv = b.tensor("conv", np.float32, [1, 6, 6, 32])
    b.node("CONV_2D", [x, weights("w1", 32, 3, 3, 4), weights("b1", 32)], [conv], padding=0, stride_w=1, stride_h=1,
           fused_activation_function=1)  # fmt: skip
    depthwise = b.tensor("depthwise", np.float32, [1, 4, 4, 32])
    b.node("DEPTHWISE_CONV_2D", [conv, weights("w2", 1, 3, 3, 32), weights("b2", 32)], [depthwise], padding=1,
           stride_w=1, stride_h=1, depth_multiplier=1)  # fmt: skip
    flat = b.tensor("flat", np.float32, [1, 512])
    b.node("RESHAPE", [depthwise, b.constant("shape", np.array([1, 512], np.int32))], [flat])
    hidden = b.tensor("hidden", np.float32, [1, 64])
    b.node("FULLY_CONNECTED", [flat, weights("w3", 64, 512), weights("b3", 64)], [hidden], fused_activation_function=1)
    scores = b.tensor("scores", np.float32, [1, 20])
    b.node("FULLY_CONNECTED", [hidden, weights("w4", 20, 64), weights("b4", 20)], [scores])
    b.output(scores)
    b.signature("serving_default", b, {"image": x}, {"scores": scores})
    return b.to_tflite(), list(draw(64)), draw(40)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("engine", ["LiteRT", "Leadline"])
def test_fitted_weights_lose_less(related, litert, mode, engine):
    content, known, others = related
    interpreter = lite.Interpreter if engine == "Leadline" else litert
    wanted = outputs(interpreter, content, others)

    def lost(**settings):
        made = leadline.quantize(content, mode, known, min_weight_elements=0, **settings)
        return float(np.sqrt(np.mean((outputs(interpreter, made, others) - wanted) ** 2)) / wanted.std())

    nearest, comq = lost(), lost(rounding="comq")
    # With integer activations there are other errors, too; int16 ones are exact.
    assert comq < nearest * (0.95 if mode == "int8" else 0.75), (nearest, comq)
    assert lost(rounding="mse") < nearest * 1.1


def test_executors_and_earlier_calibrations_give_the_same_bytes(related):
    content, known, _ = related
    wanted = leadline.quantize(content, "weight_only_int4", known, rounding="comq")
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        assert leadline.quantize(content, "weight_only_int4", known, rounding="comq", executor=pool) == wanted
    calibration = leadline.calibrate(content, known, gram_matrices=True)
    assert calibration.gram_matrices
    again = leadline.Calibration.from_bytes(calibration.to_bytes())
    assert leadline.quantize(content, "weight_only_int4", calibration=again, rounding="comq") == wanted
    in_recipe = {"rounding": "comq", "mode": "weight_only_int4", "rules": []}
    assert leadline.quantize(content, "int8", known, recipe=in_recipe) == wanted
    one_layer = [{"op": "FULLY_CONNECTED", "mode": "weight_only_int4", "rounding": "comq"}]
    assert leadline.quantize(content, "weight_only_int4", known, recipe=one_layer) not in (
        wanted, leadline.quantize(content, "weight_only_int4"))  # fmt: skip


def test_what_is_missing_is_said(related):
    content, known, _ = related
    with pytest.raises(leadline.InvalidArgumentError, match="rounding 'comq' needs representative_dataset"):
        leadline.quantize(content, "dynamic", rounding="comq")
    with pytest.raises(leadline.InvalidArgumentError, match="gram_matrices"):
        leadline.quantize(content, "dynamic", calibration=leadline.calibrate(content, known), rounding="comq")
    with pytest.raises(leadline.InvalidArgumentError, match=r"rounding is 'gptq', expected one of: nearest, mse, comq"):
        leadline.quantize(content, "dynamic", rounding="gptq")
    with pytest.raises(leadline.InvalidArgumentError, match="rule 0: 'rounding'"):
        leadline.quantize(content, "dynamic", recipe=[{"mode": "dynamic", "rounding": "best"}])


def test_memory_is_planned(related):
    content, known, _ = related
    plan = leadline.quantize.plan(content, "weight_only_int4", known, rounding="comq")
    plain = leadline.quantize.plan(content, "weight_only_int4", known)
    assert plan.peak_bytes - plain.peak_bytes > 24 * (512 * 513 // 2)  # the largest matrix, in both of its forms
    phases = {phase.name: phase for phase in plan.phases}
    assert "calibrate" in phases and "calibrate" not in {phase.name for phase in plain.phases}
    with pytest.raises(leadline.BudgetError):
        leadline.quantize(content, "weight_only_int4", known, rounding="comq", budget=plan.peak_bytes - 1)
    assert leadline.quantize(content, "weight_only_int4", known, rounding="comq", budget=plan.peak_bytes)


def test_from_the_command_line(related, tmp_path):
    content, known, _ = related
    (tmp_path / "model.tflite").write_bytes(content)
    np.savez(tmp_path / "samples.npz", image=np.stack(known))
    made = tmp_path / "made.tflite"
    run_program("quantize", tmp_path / "model.tflite", "-o", made, "--mode", "weight_only_int4", "--rounding", "comq",
                "--data", tmp_path / "samples.npz")  # fmt: skip
    assert made.read_bytes() == leadline.quantize(content, "weight_only_int4", known, rounding="comq")
