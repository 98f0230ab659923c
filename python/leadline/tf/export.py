# SPDX-License-Identifier: Apache-2.0
"""Traced functions as .tflite models: what TFLiteConverter.from_concrete_functions does with those of leadline.tf."""

from __future__ import annotations

import os
from types import SimpleNamespace

import numpy as np

from leadline._leadline import InvalidArgumentError, Model, UnsupportedError
from leadline._native.files import write_file
from leadline.tf import memory, shapes
from leadline.tf.engine import Stretch
from leadline.tf.functions import ConcreteFunction
from leadline.tf.plan import Plan, Step, needed
from leadline.tf.tensor import Tensor


class _Model(Stretch):
    """A model with constants. What only moves a constant is done here and now, so that weights stay weights."""

    def __init__(self) -> None:
        super().__init__()
        self.constants: dict[int, np.ndarray] = {}

    def constant(self, value, dtype=None) -> int:
        number = super().constant(value, dtype)
        self.constants[number] = np.asarray(value, dtype)
        return number

    def node(self, op: str, inputs, *specs, **attributes) -> list[int]:
        first = self.constants.get(inputs[0])
        if first is not None and op == "RESHAPE":
            return [self.constant(first.reshape(specs[0][1]))]
        if first is not None and op == "TRANSPOSE":
            return [self.constant(np.ascontiguousarray(first.transpose(self.constants[inputs[1]])))]
        weights = self.constants.get(inputs[1]) if op == "BATCH_MATMUL" else None
        if weights is not None and weights.ndim == 2 and not attributes["adj_x"]:
            turned = weights if attributes["adj_y"] else np.ascontiguousarray(weights.T)
            keep = len(specs[0][1]) > 2
            return super().node("FULLY_CONNECTED", [inputs[0], self.constant(turned), None], *specs, keep_num_dims=keep)
        return super().node(op, inputs, *specs, **attributes)

    def signature(self, key: str, inputs: dict[str, int], outputs: dict[str, int]) -> None:
        self._builder.signature(key, self._builder, inputs, outputs)


class FunctionConverter:
    """One function on its way to a file: the interface of leadline's own Converter."""

    def __init__(self, function: ConcreteFunction) -> None:
        for tensor in function.inputs:
            if not shapes.is_known(tensor._dims):
                raise UnsupportedError(
                    f"{function.name}: the argument '{tensor.op.name}' has the shape {tensor.shape}; a function is "
                    "converted for known sizes: get_concrete_function(tf.TensorSpec([1, 28, 28, 1]))"
                )
        self._function = function
        self._content: bytes | None = None

    def plan(self) -> SimpleNamespace:
        size = len(self.convert())
        return SimpleNamespace(result_bytes=size, peak_bytes=3 * size, file_peak_bytes=3 * size)

    def convert(self, progress=None) -> bytes:
        if self._content is None:
            self._content = self._write()
        return self._content

    def convert_to_model(self, progress=None, budget=None) -> Model:
        return Model.from_bytes(self.convert(), budget)

    def convert_to(self, path: str | os.PathLike, progress=None) -> None:
        write_file(path, self.convert())

    def _write(self) -> bytes:
        function = self._function
        # Arguments have shapes and no memory.
        blank = {t: np.broadcast_to(np.zeros((), t.dtype.numpy), t._dims) for t in function.inputs}
        plan = Plan(needed(function.outputs, blank), function.outputs, blank, fed_values=False)
        held = sum(_held(step).nbytes for step in plan.steps if _is_constant(step))
        charge = memory.Charge(3 * held, "a model, its constants and its file")
        model = _Model()
        numbers: dict[Tensor, int] = {t: model.input(plan.specs[t]) for t in function.inputs}
        for step in plan.steps:
            self._add(model, step, plan, numbers)
        outputs = [numbers[t] for t in function.outputs]
        ins = {t.op.name: numbers[t] for t in function.inputs}
        model.signature("serving_default", ins, {f"output_{i}": number for i, number in enumerate(outputs)})
        content = model.model(outputs)
        del charge
        return content

    @staticmethod
    def _add(model: _Model, step: Step, plan: Plan, numbers: dict[Tensor, int]) -> None:
        op = step.op
        if _is_constant(step):
            numbers[op.outputs[0]] = model.constant(_held(step))
            return
        if all(t in plan.values for t in op.outputs) and op.outputs:
            for tensor in op.outputs:
                numbers[tensor] = model.constant(plan.values[tensor])
            return
        if op.type in ("Identity", "StopGradient", "EnsureShape"):
            numbers[op.outputs[0]] = numbers[op.inputs[0]]
            return
        engine = op.row.engine
        results = engine(model, [numbers[t] for t in op.inputs], op.attrs, step.ins, step.outs) if engine else None
        if results is None:
            raise UnsupportedError(
                f"{op.name} ({op.type}) of {step.ins[0][0].name if step.ins else 'no'} inputs has no form in the "
                f".tflite format that leadline.tf writes; made in {op.where}"
            )
        numbers.update(zip(op.outputs, results))


def _is_constant(step: Step) -> bool:
    return step.op.type in ("Const", "ReadVariableOp")


def _held(step: Step) -> np.ndarray:
    return step.op.attrs["value"] if step.op.type == "Const" else step.op.attrs["variable"]._read()


def converter_of(functions: list[ConcreteFunction]) -> FunctionConverter:
    if len(functions) != 1:
        raise UnsupportedError("leadline.tf converts one function at a time")
    if not functions[0].outputs:
        raise InvalidArgumentError(f"{functions[0].name} has no outputs")
    return FunctionConverter(functions[0])
