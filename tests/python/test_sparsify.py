# SPDX-License-Identifier: Apache-2.0
"""Weights with many zeros, stored without them: smaller files with the same results, here and in LiteRT."""

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRtInterpreter

import leadline
from leadline import lite


def dense_model(weights: np.ndarray) -> bytes:
    b = leadline.ModelBuilder()
    x = b.input("x", np.float32, [2, weights.shape[1]])
    y = b.tensor("y", np.float32, [2, weights.shape[0]])
    b.node("FULLY_CONNECTED", [x, b.constant("weights", weights), -1], [y])
    b.output(y)
    return b.to_tflite()


def zeros_in(kind: str, rows: int, columns: int) -> np.ndarray:
    random = np.random.default_rng(rows + columns)
    weights = random.normal(size=(rows, columns)).astype(np.float32)
    if kind == "blocks":
        keep = random.random((rows, columns // 16)) < 0.2
        return weights * np.repeat(keep, 16, axis=1)
    return weights * (random.random((rows, columns)) < {"elements": 0.1, "few": 0.9}[kind])


def run(interpreter, content, x):
    made = interpreter(model_content=content)
    made.allocate_tensors()
    made.set_tensor(made.get_input_details()[0]["index"], x)
    made.invoke()
    return made.get_tensor(made.get_output_details()[0]["index"])


@pytest.mark.parametrize("kind", ["blocks", "elements", "few"])
@pytest.mark.parametrize("mode", ["float", "int8"])
def test_sparse_weights_give_the_same_results(kind, mode):
    content = dense_model(zeros_in(kind, 24, 64))
    samples = np.random.default_rng(0).normal(size=(6, 2, 64)).astype(np.float32)
    dataset = None if mode == "float" else [[sample] for sample in samples]
    dense = content if mode == "float" else leadline.quantize(content, mode, dataset)
    sparse = leadline.quantize(content, mode, dataset, sparsify=True)
    expected_sparse = {"blocks": True, "few": False, "elements": mode == "float"}[kind]
    assert (len(sparse) < len(dense)) == expected_sparse
    graph = leadline.Model.from_bytes(sparse).subgraph(0)
    assert any(tensor.sparse for tensor in graph.tensors) == expected_sparse
    for sample in samples:
        for interpreter in (lite.Interpreter, LiteRtInterpreter):
            np.testing.assert_allclose(
                run(interpreter, sparse, sample), run(lite.Interpreter, dense, sample), atol=1e-5
            )


def test_what_others_read_stays_dense():
    weights = zeros_in("blocks", 32, 32)
    b = leadline.ModelBuilder()
    x = b.input("x", np.float32, [2, 32])
    shared = b.constant("weights", weights)
    y, z = b.tensor("y", np.float32, [2, 32]), b.tensor("z", np.float32, [32, 32])
    b.node("FULLY_CONNECTED", [x, shared, -1], [y])
    b.node("ADD", [shared, shared], [z])
    b.output(y)
    b.output(z)
    sparse = leadline.quantize(b.to_tflite(), "float", sparsify=True)
    assert not any(tensor.sparse for tensor in leadline.Model.from_bytes(sparse).subgraph(0).tensors)
