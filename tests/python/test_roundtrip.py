# SPDX-License-Identifier: Apache-2.0
"""Every real model is read and written back; LiteRT loads the result and computes the same from it, to the bit."""

import numpy as np
import pytest
import sample_models
from model_list import LITERT_DOES_NOT_RUN, NO_SHARED, REFUSED, real_models, runnable_models
from oracle import Oracle

import leadline

MODELS = [model for model in runnable_models() if model.name not in LITERT_DOES_NOT_RUN]
# Cannot be run by LiteRT, but loaded.
OTHERS = [
    model
    for model in real_models()
    if model.name in {*LITERT_DOES_NOT_RUN, *REFUSED} - {"litert_blockwise_quantized", "tflm_person_detect_int8"}
]
SLOW_IN_LITERT = {"tfl_conv3d_huge_im2col"}
SAMPLES = ["add", "counter", "dense", "quantized", "two_inputs", "two_signatures", "where"]


@pytest.fixture(scope="module")
def oracle():
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    with Oracle() as running:
        yield running


def assert_same(oracle: Oracle, original: bytes, name: str) -> None:
    _, expected = oracle.run(original, seed=name)
    written = leadline.Model.from_bytes(original).to_tflite()
    _, outputs = oracle.run(written, seed=name)
    for got, wanted in zip(outputs, expected, strict=True):
        np.testing.assert_array_equal(got, wanted, strict=True)


@pytest.mark.skipif(not MODELS, reason=NO_SHARED)
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_rewritten_model_computes_the_same(model, oracle, long_run):
    if model.name in SLOW_IN_LITERT and not long_run:
        pytest.skip("LiteRT takes more than a minute for it: LEADLINE_LONG=1 runs it")
    assert_same(oracle, model.path.read_bytes(), model.name)


@pytest.mark.parametrize("name", SAMPLES)
def test_rewritten_sample_computes_the_same(name, oracle):
    assert_same(oracle, getattr(sample_models, name)(), name)


@pytest.mark.skipif(not OTHERS, reason=NO_SHARED)
@pytest.mark.parametrize("model", OTHERS, ids=lambda model: model.name)
def test_what_litert_does_not_run_is_rewritten_too(model):
    once = leadline.Model.load(model.path).to_tflite()
    assert leadline.Model.from_bytes(once).to_tflite() == once
    assert str(leadline.Model.from_bytes(once)) == str(leadline.Model.load(model.path))


@pytest.mark.parametrize("name", [*SAMPLES, "strings", "custom"])
def test_rewriting_twice_changes_nothing_more(name):
    once = leadline.Model.from_bytes(getattr(sample_models, name)()).to_tflite()
    assert leadline.Model.from_bytes(once).to_tflite() == once


def test_rewritten_model_keeps_signatures_and_names():
    original = leadline.Model.from_bytes(sample_models.two_signatures())
    rewritten = leadline.Model.from_bytes(original.to_tflite())
    assert str(rewritten) == str(original)
    for before, after in zip(original.signatures, rewritten.signatures, strict=True):
        assert (before.key, before.subgraph) == (after.key, after.subgraph)
        assert (before.inputs, before.outputs) == (after.inputs, after.outputs)
