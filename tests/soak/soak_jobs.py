# SPDX-License-Identifier: Apache-2.0
"""The jobs of a soak: what a user's day does to one process, over and over.

Each job ends with nothing left of it. Jobs that must fail are among them: an error has to give back as much as a success.
"""

from __future__ import annotations

import gc
import os
import resource
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import leadline
from leadline import lite

MODES = ("float16", "dynamic", "weight_only_int8", "weight_only_int4", "int8", "int16x8")


def resident_bytes() -> int:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


def convnet() -> bytes:
    """CONV_2D, DEPTHWISE_CONV_2D, MEAN, FULLY_CONNECTED and SOFTMAX, with a signature."""
    random = np.random.default_rng(1)
    b = leadline.ModelBuilder()

    def weights(name, *shape):
        return b.constant(name, (random.normal(size=shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32))

    x = b.input("image", np.float32, [1, 16, 16, 8])
    conv = b.tensor("conv", np.float32, [1, 16, 16, 32])
    b.node("CONV_2D", [x, weights("w1", 32, 3, 3, 8), weights("b1", 32)], [conv], padding=0, stride_w=1, stride_h=1,
           fused_activation_function=1)  # fmt: skip
    depthwise = b.tensor("depthwise", np.float32, [1, 16, 16, 32])
    b.node("DEPTHWISE_CONV_2D", [conv, weights("w2", 1, 3, 3, 32), weights("b2", 32)], [depthwise], padding=0,
           stride_w=1, stride_h=1, depth_multiplier=1)  # fmt: skip
    mean = b.tensor("mean", np.float32, [1, 32])
    b.node("MEAN", [depthwise, b.constant("axes", np.array([1, 2], np.int32))], [mean])
    dense = b.tensor("dense", np.float32, [1, 40])
    b.node("FULLY_CONNECTED", [mean, weights("w3", 40, 32), weights("b3", 40)], [dense])
    scores = b.tensor("scores", np.float32, [1, 40])
    b.node("SOFTMAX", [dense], [scores], beta=1.0)
    b.output(scores)
    b.signature("serving_default", b, {"image": x}, {"scores": scores})
    return b.to_tflite()


def where() -> bytes:
    """Its output's shape depends on the data."""
    b = leadline.ModelBuilder()
    x = b.input("x", np.bool_, [64])
    indices = b.tensor("indices", np.int64, [1, 1])
    b.node("WHERE", [x], [indices])
    b.output(indices)
    return b.to_tflite()


class Jobs:
    """`names()` in turn; `run(name)` does one and checks that its budget is empty again."""

    def __init__(self, keras_file: str | None = None, models: Sequence[str] = ()):
        self.model = convnet()
        self.dynamic = where()
        self.samples = [np.random.default_rng(i).normal(size=(1, 16, 16, 8)).astype(np.float32) for i in range(4)]
        self.keras_file = keras_file
        self.models = models
        self.count = 0
        self._jobs: dict[str, Callable[[leadline.Budget], None]] = {
            "run": self._run,
            "run with signature": self._run_signature,
            "run with shapes from data": self._run_dynamic,
            "run another model": self._run_models,
            "be refused": self._be_refused,
            "read damaged files": self._read_damaged,
            "report": self._report,
            "quantize": self._quantize,
            "debug": self._debug,
            "convert": self._convert,
            "guard": self._guard,
            "watch": self._watch,
        }

    def names(self) -> list[str]:
        return [*self._jobs]

    def run(self, name: str) -> None:
        self.count += 1
        budget = leadline.Budget("1GB")
        self._jobs[name](budget)
        gc.collect()
        assert budget.used == 0, f"'{name}' left {budget.used} bytes charged"
        assert not leadline.live_objects(), f"'{name}' left {leadline.live_objects()}"

    def _data(self):
        for sample in self.samples:
            yield [sample]

    def _run(self, budget):
        interpreter = lite.Interpreter(model_content=self.model, num_threads=2, budget=budget)
        interpreter.allocate_tensors()
        for sample in self.samples:
            interpreter.set_tensor(interpreter.get_input_details()[0]["index"], sample)
            interpreter.invoke()
            total = float(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).sum())
            assert abs(total - 1) < 1e-4, total

    def _run_signature(self, budget):
        runner = lite.Interpreter(model_content=self.model, budget=budget).get_signature_runner()
        assert runner(image=self.samples[0])["scores"].shape == (1, 40)

    def _run_dynamic(self, budget):
        interpreter = lite.Interpreter(model_content=self.dynamic, budget=budget)
        interpreter.allocate_tensors()
        for count in (0, 3, 64):
            interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.arange(64) < count)
            interpreter.invoke()
            found = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
            assert len(found) == count

    def _run_models(self, budget):
        if not self.models:
            return
        interpreter = lite.Interpreter(self.models[self.count % len(self.models)], num_threads=2, budget=budget)
        interpreter.allocate_tensors()
        interpreter.invoke()

    def _be_refused(self, budget):
        for attempt in (
            lambda: lite.Interpreter(model_content=self.model, budget=10_000).allocate_tensors(),
            lambda: leadline.quantize(self.model, "int8", [[np.full((1, 16, 16, 8), np.inf, np.float32)]]),
            lambda: lite.Interpreter(model_content=self.model, budget=budget).set_tensor(0, np.zeros(3, np.float32)),
        ):
            try:
                attempt()
            except leadline.Error:
                continue
            except ValueError:  # set_tensor, as tf.lite's
                continue
            raise AssertionError("this should have been refused")

    def _read_damaged(self, budget):
        random = np.random.default_rng(self.count)
        for _ in range(20):
            damaged = bytearray(self.model)
            for at in random.integers(0, len(damaged), 8):
                damaged[at] = random.integers(0, 256)
            try:
                interpreter = lite.Interpreter(model_content=bytes(damaged), budget=budget)
                interpreter.allocate_tensors()
                interpreter.invoke()
            except (leadline.Error, ValueError):
                pass

    def _report(self, budget):
        plan = lite.Interpreter(model_content=self.model, budget=budget).plan()
        assert "SOFTMAX" in plan.to_json() and plan._repr_html_() and str(plan)

    def _quantize(self, budget):
        for mode in MODES:
            data = list(self._data()) if mode in ("int8", "int16x8") else None
            leadline.quantize(self.model, mode, data, budget=budget)

    def _debug(self, budget):
        quantized = leadline.quantize(self.model, "int8", list(self._data()), budget=budget)
        result = leadline.debug(self.model, quantized, list(self._data()), budget=budget)
        assert result.layers

    def _convert(self, budget):
        if self.keras_file is None:
            return
        converter = lite.TFLiteConverter.from_keras_file(self.keras_file)
        converter.optimizations = [lite.Optimize.DEFAULT]
        lite.Interpreter(model_content=converter.convert(), budget=budget).allocate_tensors()

    def _guard(self, _budget):
        assert leadline.guard(sum, range(1000), memory="500MB") == 499500
        try:
            leadline.guard(os._exit, 3)
        except leadline.GuardError:
            pass

    def _watch(self, budget):
        with leadline.watch("100%"):
            self._run(budget)


def make_keras_file(folder: Path) -> str | None:
    """A small .keras file, where Keras is at hand."""
    os.environ.setdefault("KERAS_BACKEND", "numpy")
    try:
        import keras
    except ImportError:
        return None
    model = keras.Sequential([
        keras.Input((16, 16, 3)),
        keras.layers.Conv2D(8, 3, activation="relu"),
        keras.layers.BatchNormalization(),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(10, activation="softmax"),
    ])  # fmt: skip
    path = folder / "model.keras"
    model.save(path)
    return str(path)


def temporary_folder() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory(prefix="leadline-soak-")
