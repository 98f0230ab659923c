# SPDX-License-Identifier: Apache-2.0
"""leadline.debug on attention with masks of huge constants: who is to blame in all blocks at once, and what helps."""

import numpy as np
import pytest

import leadline

RNG = np.random.default_rng(31)
SIZE, WIDTH = 12, 16


def attention(mask: float, blocks: int = 3, gain: float = 1.2) -> bytes:
    """Blocks of masked self-attention, as Keras names them: layer, layer_1, layer_2."""
    rng = np.random.default_rng(2)
    b = leadline.ModelBuilder()
    causal = np.where(np.tril(np.ones((SIZE, SIZE))) > 0, 0, mask).astype(np.float32)[None]
    x = b.input("tokens", np.float32, [1, SIZE, WIDTH])

    def dense(value, name, width=WIDTH):
        weights = rng.normal(0, gain / np.sqrt(WIDTH), (width, WIDTH)).astype(np.float32)
        result = b.tensor(name, np.float32, [1, SIZE, width])
        b.node("FULLY_CONNECTED", [value, b.constant(f"{name}/w", weights), -1], [result], keep_num_dims=True)
        return result

    for i in range(blocks):
        scope = "net/layer" if i == 0 else f"net/layer_{i}"
        q, k, v = (dense(x, f"{scope}/{part}/MatMul") for part in ("query", "key", "value"))
        scores = b.tensor(f"{scope}/attention/scores", np.float32, [1, SIZE, SIZE])
        b.node("BATCH_MATMUL", [q, k], [scores], adj_x=False, adj_y=True)
        masked = b.tensor(f"{scope}/attention/masked", np.float32, [1, SIZE, SIZE])
        b.node("ADD", [scores, b.constant(f"{scope}/mask", causal)], [masked])
        shares = b.tensor(f"{scope}/attention/softmax", np.float32, [1, SIZE, SIZE])
        b.node("SOFTMAX", [masked], [shares], beta=1.0)
        mixed = b.tensor(f"{scope}/attention/mixed", np.float32, [1, SIZE, WIDTH])
        b.node("BATCH_MATMUL", [shares, v], [mixed], adj_x=False, adj_y=False)
        out = b.tensor(f"{scope}/out/add", np.float32, [1, SIZE, WIDTH])
        b.node("ADD", [x, dense(mixed, f"{scope}/out/MatMul")], [out])
        x = out
    b.output(x)
    return b.to_tflite()


def sequences(count: int) -> list:
    return [[RNG.normal(size=(1, SIZE, WIDTH)).astype(np.float32)] for _ in range(count)]


CALIBRATION, DEBUGGED, UNSEEN = sequences(24), sequences(24), sequences(32)


def error(content: bytes, float_model: bytes) -> float:
    results = []
    for model in (content, float_model):
        interpreter = leadline.lite.Interpreter(model_content=model)
        interpreter.allocate_tensors()
        rows = []
        for (sample,) in UNSEEN:
            interpreter.set_tensor(interpreter.get_input_details()[0]["index"], sample)
            interpreter.invoke()
            rows.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
        results.append(np.concatenate(rows).astype(np.float64))
    return float(np.sum((results[0] - results[1]) ** 2) / np.sum(results[1] ** 2))


@pytest.mark.parametrize("mask", [-1e9, -1e4, np.finfo(np.float32).min])
@pytest.mark.parametrize("mode", ["int8", "int16x8"])
def test_masks_of_all_blocks_are_mended_by_the_first_suggestion(mask, mode):
    float_model = attention(mask)
    quantized = leadline.quantize(float_model, mode, CALIBRATION)
    before = error(quantized, float_model)
    result = leadline.debug(float_model, quantized, DEBUGGED, progress=False)
    if before < 0.02:
        assert not result.suspects, "a mask that does no harm is no suspect"
        return
    assert result.suspects and result.suggestions
    mended = leadline.quantize(float_model, mode, DEBUGGED, recipe=result.suggestions[0].recipe)
    after = error(mended, float_model)
    assert 1 - after / before >= 0.9, (result.suggestions[0].what, before, after)
    assert len(mended) < 0.75 * len(float_model)


@pytest.mark.parametrize("mask", [-np.inf, -1e9])
def test_a_mask_that_is_not_rounded_is_no_suspect(mask):
    float_model = attention(mask)
    for mode in ("dynamic", "float16"):
        quantized = leadline.quantize(float_model, mode)
        result = leadline.debug(float_model, quantized, DEBUGGED, progress=False)
        assert not result.suspects, result.suspects[0]["why"]
        assert "No layer loses more" in result.verdict


def test_infinite_masks_are_told_from_lost_numbers():
    """Values that are infinite in the float model too are nothing that quantization did."""
    float_model = attention(-np.inf)
    try:
        quantized = leadline.quantize(float_model, "int8", CALIBRATION)
    except leadline.UnsupportedError as refusal:
        assert "net/layer/mask" in str(refusal) and "not finite" in str(refusal)
        return
    result = leadline.debug(float_model, quantized, DEBUGGED, progress=False)
    assert all(suspect["kind"] != "not_finite" for suspect in result.suspects)
    if error(quantized, float_model) > 0.02:
        mended = leadline.quantize(float_model, "int8", DEBUGGED, recipe=result.suggestions[0].recipe)
        assert 1 - error(mended, float_model) / error(quantized, float_model) >= 0.9
