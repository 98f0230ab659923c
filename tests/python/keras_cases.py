# SPDX-License-Identifier: Apache-2.0
"""Small Keras models, each around one thing: how they are made, given values, and compared."""

from __future__ import annotations

import json
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import keras
import numpy as np
from keras_compare import input_names

import leadline
from leadline import lite


@dataclass(frozen=True)
class Spec:
    """An input without its batch, and the range of its random values."""

    shape: tuple
    dtype: str = "float32"
    low: float = -2.0
    high: float = 2.0

    def values(self, batch: int, rng: np.random.Generator) -> np.ndarray:
        shape = (batch, *(7 if size is None else size for size in self.shape))
        if self.dtype == "float32":
            return rng.uniform(self.low, self.high, shape).astype(np.float32)
        if self.dtype == "bool":
            return rng.uniform(0, 1, shape) < 0.6
        return rng.integers(int(max(self.low, 0)), int(self.high), shape).astype(self.dtype)


def ints(*shape, high: int = 9, dtype: str = "int32") -> Spec:
    return Spec(shape, dtype, 0, high)


def bools(*shape) -> Spec:
    return Spec(shape, "bool")


@dataclass(frozen=True)
class Case:
    id: str
    function: Callable  # of the inputs, returns the outputs
    inputs: list = field(default_factory=list)
    tolerance: float = 1e-4
    randomize: bool = True

    def model(self) -> keras.Model:
        keras.utils.clear_session(free_memory=False)
        specs = [spec if isinstance(spec, Spec) else Spec(tuple(spec)) for spec in self.inputs]
        tensors = [keras.Input(s.shape, dtype=s.dtype, name=f"in{i}") for i, s in enumerate(specs)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = keras.Model(tensors, self.function(*tensors))
        rng = np.random.default_rng(7)
        for variable in model.variables if self.randomize else ():
            if "seed" in variable.path or not str(variable.dtype).startswith(("float", "bfloat")):
                continue
            positive = "variance" in variable.path or "gamma" in variable.path
            low, high = (0.5, 1.5) if positive else (-0.5, 0.5)
            variable.assign(rng.uniform(low, high, variable.shape).astype(np.float32))
        return model

    def values(self, batch: int) -> list[np.ndarray]:
        rng = np.random.default_rng(batch)
        specs = [spec if isinstance(spec, Spec) else Spec(tuple(spec)) for spec in self.inputs]
        return [spec.values(batch, rng) for spec in specs]


def run(interpreter_class, content: bytes, model, values) -> list[np.ndarray]:
    """Outputs in the model's order; a name that comes again has a number in the signature."""
    runner = interpreter_class(model_content=content).get_signature_runner("serving_default")
    results = runner(**dict(zip(input_names(model), values, strict=True)))
    seen: dict[str, int] = {}
    ordered = []
    for name in model.output_names:
        count = seen[name] = seen.get(name, -1) + 1
        ordered.append(results[name if count == 0 else f"{name}_{count}"])
    return ordered


def assert_same(ours, wanted, tolerance: float) -> None:
    assert len(ours) == len(wanted)
    for left, right in zip(ours, wanted, strict=True):
        assert left.shape == right.shape
        right = np.asarray(right, np.float64 if np.asarray(right).dtype.kind not in "iub" else None)
        if right.dtype.kind in "iub":
            np.testing.assert_array_equal(left, right)
            continue
        finite = right[np.isfinite(right)]
        span = float(finite.max() - finite.min()) if finite.size else 1.0
        np.testing.assert_allclose(left, right, atol=tolerance * (span or 1.0), rtol=0)


def predict_nested(model, values):
    return model(dict(zip(input_names(model), values, strict=True)) if len(values) > 1 else values[0], training=False)


def check(case: Case, litert) -> None:
    """Keras, Leadline and LiteRT agree, with a batch of 1 and one of 3 from the same file."""
    model = case.model()
    content = lite.TFLiteConverter.from_keras_model(model).convert()
    for batch in (1, 3):
        values = case.values(batch)
        with np.errstate(all="ignore"):
            wanted = [np.asarray(part) for part in keras.tree.flatten(predict_nested(model, values))]
        assert_same(run(lite.Interpreter, content, model, values), wanted, case.tolerance)
        assert_same(run(litert, content, model, values), wanted, case.tolerance)


def refusal(case: Case) -> str:
    """What the conversion says when it refuses."""
    try:
        lite.TFLiteConverter.from_keras_model(case.model()).convert()
    except leadline.UnsupportedError as error:
        return str(error)
    raise AssertionError(f"{case.id} was converted")


def with_class(model: keras.Model, folder: Path, old: str, new: str) -> Path:
    """The saved model, with one class called by another name."""
    path = folder / "model.keras"
    model.save(path)
    with zipfile.ZipFile(path) as archive:
        entries = {entry: archive.read(entry) for entry in archive.namelist()}
    config = json.loads(entries["config.json"])
    for layer in config["config"]["layers"]:
        layer["class_name"] = new if layer["class_name"] == old else layer["class_name"]
    entries["config.json"] = json.dumps(config).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for entry, data in entries.items():
            archive.writestr(entry, data)
    return path
