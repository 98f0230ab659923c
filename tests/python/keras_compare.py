# SPDX-License-Identifier: Apache-2.0
"""What a Keras model predicts, and what a converted file of it computes."""

import numpy as np


def input_names(model) -> list[str]:
    """The names of the input layers: those of the signature."""
    histories = [tensor._keras_history for tensor in model.inputs]  # tf_keras says layer, not operation
    return [(getattr(history, "operation", None) or history.layer).name for history in histories]


def output_names(model) -> list[str]:
    """Those of the signature: of several outputs of one layer, the first has its name, the others have numbers."""
    result: list[str] = []
    for name in model.output_names:
        unique, number = name, 0
        while unique in result or (number and unique in model.output_names):
            number += 1
            unique = f"{name}_{number}"
        result.append(unique)
    return result


def run(interpreter_class, content: bytes, model, values) -> list[np.ndarray]:
    """By the names of the signature, which are those of Keras; outputs in the model's order."""
    runner = interpreter_class(model_content=content).get_signature_runner("serving_default")
    results = runner(**dict(zip(input_names(model), values, strict=True)))
    return [results[name] for name in output_names(model)] if len(results) > 1 else list(results.values())


def predict(model, values) -> list[np.ndarray]:
    result = model(dict(zip(input_names(model), values, strict=True)) if len(values) > 1 else values[0], training=False)
    return [np.asarray(part) for part in (result if isinstance(result, (list, tuple)) else [result])]


def assert_close(ours, wanted) -> None:
    assert len(ours) == len(wanted)
    for left, right in zip(ours, wanted, strict=True):
        assert left.shape == right.shape
        span = float(right.max() - right.min()) or 1.0
        np.testing.assert_allclose(left, right, atol=1e-4 * span, rtol=0)
