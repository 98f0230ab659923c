# SPDX-License-Identifier: Apache-2.0
"""Every recipe that ai-edge-quantizer brings along and that gives it a file LiteRT runs gives one here too: of at most
102 % of its size, and in both engines no further from the float model."""

import json
from pathlib import Path

import numpy as np
import pytest

import leadline
from leadline import lite

aeq = pytest.importorskip("ai_edge_quantizer", reason="ai-edge-quantizer is not installed (requirements-dev.txt)")

SIZE = 0.02
# What LiteRT does not run, or where its results are not those of the weights (convolutions with weights of 2 bits), or
# what is no recipe for a model.
UNUSABLE = ("dynamic_wi2b32_afp32", "dynamic_wi2b64_afp32", "dynamic_wi2c_afp32", "json/dynamic_wi8_afp32_litertlm")
ERROR = 1.01
# Errors of activations outweigh those of weights here: how those fall is chance.
ERRORS = {
    "dynamic_wi8c_hr_afp32": 1.1, "json/dynamic_wi8_afp32_hadamard": 1.1,
    "json/sample_advanced_usage": 1.05,
}  # fmt: skip


def recipes() -> dict[str, list]:
    from ai_edge_quantizer import recipe

    found = {}
    for name, make in vars(recipe).items():
        if name.startswith("_") or isinstance(make, type) or not callable(make):
            continue
        made = make()
        for part, rules in made.items() if isinstance(made, dict) else [("", made)]:
            found[f"{name}/{part}" if part else name] = rules
    for path in sorted((Path(aeq.__file__).parent / "recipes").glob("*_recipe.json")):
        found["json/" + path.stem.removesuffix("_recipe")] = json.loads(path.read_text())
    return {name: rules for name, rules in found.items() if name not in UNUSABLE}


@pytest.fixture(scope="module")
def net() -> tuple[bytes, list[np.ndarray], np.ndarray]:
    """A small convnet, samples to calibrate it on, and others to measure with."""
    random = np.random.default_rng(11)
    b = leadline.ModelBuilder()

    def weights(name, *shape):
        return b.constant(name, (random.normal(size=shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32))

    x = b.input("image", np.float32, [1, 16, 16, 3])
    conv = b.tensor("conv", np.float32, [1, 8, 8, 32])
    b.node("CONV_2D", [x, weights("w1", 32, 3, 3, 3), weights("b1", 32)], [conv], padding=0, stride_w=2, stride_h=2,
           fused_activation_function=1)  # fmt: skip
    depthwise = b.tensor("depthwise", np.float32, [1, 4, 4, 32])
    b.node("DEPTHWISE_CONV_2D", [conv, weights("w2", 1, 3, 3, 32), weights("b2", 32)], [depthwise], padding=0,
           stride_w=2, stride_h=2, depth_multiplier=1)  # fmt: skip
    flat = b.tensor("flat", np.float32, [1, 512])
    b.node("RESHAPE", [depthwise, b.constant("shape", np.array([1, 512], np.int32))], [flat])
    hidden = b.tensor("hidden", np.float32, [1, 128])
    b.node("FULLY_CONNECTED", [flat, weights("w3", 128, 512), weights("b3", 128)], [hidden],
           fused_activation_function=1)  # fmt: skip
    scores = b.tensor("scores", np.float32, [1, 10])
    b.node("FULLY_CONNECTED", [hidden, weights("w4", 10, 128), weights("b4", 10)], [scores])
    b.output(scores)
    b.signature("serving_default", b, {"image": x}, {"scores": scores})
    images = random.uniform(0, 1, (160, 1, 16, 16, 3)).astype(np.float32)
    return b.to_tflite(), list(images[:64]), images[64:]


def outputs(interpreter_class, content: bytes, inputs: np.ndarray) -> np.ndarray:
    """In real numbers, whatever the types of the model's own inputs and outputs are."""
    interpreter = interpreter_class(model_content=content)
    interpreter.allocate_tensors()
    given, taken = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
    results = []
    for value in inputs:
        if given["dtype"] is not np.float32:
            (scale, zero_point), limits = given["quantization"], np.iinfo(given["dtype"])
            value = np.clip(np.round(value / scale) + zero_point, limits.min, limits.max).astype(given["dtype"])
        interpreter.set_tensor(given["index"], value)
        interpreter.invoke()
        result = interpreter.get_tensor(taken["index"])
        if taken["dtype"] is not np.float32:
            scale, zero_point = taken["quantization"]
            result = (result.astype(np.float32) - zero_point) * scale
        results.append(result)
    return np.concatenate(results)


@pytest.fixture(scope="module")
def theirs(net, tmp_path_factory):
    from ai_edge_quantizer import quantizer

    content, samples, _ = net
    path = tmp_path_factory.mktemp("aeq") / "model.tflite"
    path.write_bytes(content)

    def quantized(rules) -> bytes:
        worker = quantizer.Quantizer(str(path), rules)
        calibration = None
        if worker.need_calibration:
            calibration = worker.calibrate({"serving_default": [{"image": sample} for sample in samples]})
        return bytes(worker.quantize(calibration).quantized_model)

    return quantized


@pytest.mark.parametrize("name", list(recipes()))
def test_recipe(net, theirs, litert, name):
    content, samples, inputs = net
    rules = recipes()[name]
    wanted = outputs(litert, content, inputs)

    def lost(interpreter_class, made) -> float:
        return float(np.sqrt(np.mean((outputs(interpreter_class, made, inputs) - wanted) ** 2)) / wanted.std())

    other = theirs(rules)
    own = leadline.quantize(content, "int16x8" if "16" in name else "int8", samples, recipe=rules)
    assert len(own) <= (1 + SIZE) * len(other)
    reached = lost(litert, other)
    for interpreter_class in (litert, lite.Interpreter):
        assert lost(interpreter_class, own) <= ERRORS.get(name, ERROR) * reached + 1e-6
    assert lost(lite.Interpreter, other) == pytest.approx(reached, rel=0.01, abs=1e-5)


def test_algorithms_for_weights(net, theirs, litert):
    """The same rule with each algorithm, for all ops or one."""
    content, samples, inputs = net
    wanted = outputs(litert, content, inputs)
    for algorithm in ("OCTAV", "MSE", "GPTQ", "HADAMARD_ROTATION"):
        weights = {"num_bits": 4, "symmetric": True, "granularity": "CHANNELWISE", "dtype": "INT"}
        rules = [{
            "regex": ".*", "operation": "FULLY_CONNECTED", "algorithm_key": algorithm,
            "op_config": {"weight_tensor_config": weights, "compute_precision": "INTEGER",
                          "explicit_dequantize": False, "skip_checks": False, "min_weight_elements": 0},
        }]  # fmt: skip
        other, own = theirs(rules), leadline.quantize(content, "int8", samples, recipe=rules)
        errors = [float(np.mean((outputs(litert, made, inputs) - wanted) ** 2)) for made in (other, own)]
        assert errors[1] <= 1.02 * errors[0], algorithm
        assert len(own) <= (1 + SIZE) * len(other), algorithm
