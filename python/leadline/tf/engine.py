# SPDX-License-Identifier: Apache-2.0
"""Operations run by Leadline's engine: a stretch of them becomes a model without large constants, whose inputs and
outputs are the arrays of tensors, used in place.

A row's `engine` is a function of (Stretch, its inputs as numbers, attributes, specs of inputs, specs of outputs). It
returns the indices of its outputs, or None for what the engine has no kernel for, before it adds anything.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Sequence

import numpy as np

from leadline import lite
from leadline._leadline import BudgetError, Model
from leadline.model_builder import ModelBuilder
from leadline.tf import memory

# An op alone is worth the engine's call when it has at least this many elements to read and write.
_WORTH_ELEMENTS = 1 << 14
_MOST_RANK = 6
threads = 0  # for one run; 0: as many as there are CPUs
_kept: OrderedDict[tuple, lite.Interpreter] = OrderedDict()
_KEPT_INTERPRETERS = 16
_KEPT_BYTES = 2 << 20  # of each, inputs and outputs included


class Stretch:
    """A model being built, for operations that run together."""

    def __init__(self) -> None:
        self._builder = ModelBuilder()
        self._count = 0

    def input(self, spec) -> int:
        return self._builder.input(self._name("in"), spec[0].numpy, spec[1])

    def constant(self, value, dtype=None) -> int:
        """A small one, such as axes; large ones are inputs."""
        return self._builder.constant(self._name("c"), np.asarray(value, dtype))

    def node(self, op: str, inputs: Sequence[int], *specs, **attributes) -> list[int]:
        outputs = [self._builder.tensor(self._name("t"), dtype.numpy, dims) for dtype, dims in specs]
        self._builder.node(op, inputs, outputs, **attributes)
        return outputs

    def model(self, outputs: Sequence[int]) -> bytes:
        self._builder.output(*outputs)
        return self._builder.to_tflite()

    def _name(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"


def direct(op: str, types: Sequence[str] = ("float32", "int32"), **attributes) -> Callable:
    """A lowering to one op with the same inputs."""

    def lower(stretch: Stretch, inputs, attrs, ins, outs):
        if any(dtype.name not in types for dtype, _ in ins) or not fits(ins, outs):
            return None
        return stretch.node(op, inputs, *outs, **attributes)

    return lower


def fits(ins, outs) -> bool:
    """What the engine's kernels are sure to take: known shapes without zeros, of moderate rank."""
    return all(dims is not None and len(dims) <= _MOST_RANK and all(size for size in dims) for _, dims in (*ins, *outs))


def numpy_scratch(factor: int):
    """Workspace that only numpy takes: the engine, which has float32, plans for itself."""

    def rule(ins, outs, attrs) -> int:
        if ins[0][0].name == "float32":
            return 0
        return factor * ins[0][0].size * max(math.prod(dims) for _, dims in (*ins, *outs))

    return rule


def run_one(row, arrays: Sequence[np.ndarray], attrs: dict, specs) -> list[np.ndarray] | None:
    """The results of one op, or None when numpy should compute them."""
    if sum(array.size for array in arrays) < _WORTH_ELEMENTS:
        return None
    from leadline.tf.dtypes import as_dtype

    prepared = row.prepare(arrays, attrs) if row.prepare else (arrays, attrs)
    if prepared is None:
        return None
    arrays, attrs = prepared
    ins = [(as_dtype(array.dtype), array.shape) for array in arrays]
    key = (row.name, tuple((d.name, s) for d, s in ins), tuple(d.name for d, _ in specs), _hashable(attrs))

    def build() -> bytes | None:
        stretch = Stretch()
        same: dict[tuple, int] = {}
        numbers = []
        for array, spec in zip(arrays, ins):
            place = identity(array)
            if place not in same:
                same[place] = stretch.input(spec)
            numbers.append(same[place])
        outputs = row.engine(stretch, numbers, attrs, ins, specs)
        return None if outputs is None else stretch.model(outputs)

    unique = {identity(array): array for array in arrays}
    order = tuple(list(unique).index(identity(array)) for array in arrays)
    try:
        return run((key, order), build, list(unique.values()))
    except BudgetError:
        return None  # numpy may do with less: it has no workspace of its own


def identity(array: np.ndarray) -> tuple:
    """Equal for arrays that are the same memory seen in the same way."""
    return array.__array_interface__["data"][0], array.shape, array.strides, array.dtype.str


def _hashable(attrs: dict) -> tuple:
    return tuple(sorted((key, repr(value)) for key, value in attrs.items()))


def run(key, build: Callable[[], bytes | None], arrays: Sequence[np.ndarray]) -> list[np.ndarray] | None:
    """Runs the model that `build` returns, made once per key. None when there is none."""
    interpreter = _kept.pop(key, None)
    if interpreter is None:
        content = build()
        if content is None:
            return None
        budget = memory.run_budget()
        model = Model.from_bytes(content, budget)
        interpreter = lite.Interpreter(model=model, num_threads=threads or -1, budget=budget)
    results = _invoke(interpreter, arrays)
    if sum(array.nbytes for array in (*arrays, *results)) <= _KEPT_BYTES:
        _kept[key] = interpreter
        if len(_kept) > _KEPT_INTERPRETERS:
            _kept.popitem(last=False)
    return results


def _invoke(interpreter: lite.Interpreter, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    inputs = [detail["index"] for detail in interpreter.get_input_details()]
    outputs = interpreter.get_output_details()
    copies = sum(array.nbytes for array in arrays if not array.flags.c_contiguous)
    charge = memory.Charge(copies, "copies of operands that are not contiguous")
    contiguous = [array if array.flags.c_contiguous else array.copy() for array in arrays]
    results = [np.empty(detail["shape"], detail["dtype"]) for detail in outputs]
    bound = [*zip(inputs, contiguous), *((detail["index"], array) for detail, array in zip(outputs, results))]
    for index, array in bound:
        interpreter.bind_tensor(index, array)
    interpreter.allocate_tensors()
    interpreter.invoke()
    for index, _ in bound:
        interpreter.bind_tensor(index, None)  # an interpreter that is kept keeps no tensor
    del charge
    return results


def clear() -> None:
    """Forgets the interpreters that are kept for the next run."""
    _kept.clear()
