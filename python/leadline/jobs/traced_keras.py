# SPDX-License-Identifier: Apache-2.0
"""Keras models followed through the code of their own layers, on any backend of Keras 3.

Keras calls layers with symbolic tensors to find out shapes. Here the layers and models that are not Keras's own are
called so, too, and all that their code asks of keras.ops and of Keras's layers is written down, in order. Unknown sizes
have two values while that happens, so that what depends on them is seen; what a layer computes with them in Python is
part of the record (traced_sizes.py).
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import math
import threading
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from leadline.jobs.traced_sizes import Traced, other_value, plain_value, traced

#: Sizes of batches, sequences and images to trace with, two at a time; the first that a model takes are used. Those
#: that nothing divides show what a model does with the rest.
SIZES = (
    ((3, 24, 96), (5, 37, 131)),
    ((3, 24, 96), (5, 40, 160)),
    ((3, 4, 64), (5, 6, 128)),
    ((2, 448, 448), (3, 672, 672)),
)
_lock = threading.RLock()


@dataclass
class Step:
    """One call of an operation or layer; `operation` is a name for those that only a trace has."""

    operation: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    outputs: list[Any]


@dataclass
class Recording:
    """What a model computes: steps in an order in which they can be taken."""

    inputs: list[tuple[str, Any, tuple[int | None, ...]]]  # name, tensor, shape
    outputs: list[tuple[str, Any]] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)


class Trace:
    """Changes Keras while a model is called, in this thread alone."""

    def __init__(self) -> None:
        self.twins: dict[int, Any] = {}  # the tensor that a tensor would be with the other sizes
        self.recording = Recording([])
        self.thread = threading.get_ident()
        self.inside = 0  # Keras itself is asking for shapes

    def tensor(self, shape: Any, other: Any, dtype: str, name: str | None = None) -> Any:
        import keras

        made = keras.KerasTensor(tuple(shape), dtype, name=name)
        self.twins[id(made)] = keras.KerasTensor(tuple(other), dtype)
        return made

    def twin(self, value: Any) -> Any:
        """Arguments as they are with the other sizes."""
        return _mapped(value, lambda leaf: self.twins.get(id(leaf), other_value(leaf)))

    def record(self, operation: Any, args: tuple[Any, ...], kwargs: dict[str, Any], outputs: Any, others: Any) -> Any:
        from keras import tree

        made = tree.flatten(outputs)
        for output, other in zip(made, tree.flatten(others), strict=True):
            self.twins.setdefault(id(output), other)
        self.recording.steps.append(Step(operation, args, kwargs, made))
        return outputs

    def shape_of(self, tensor: Any) -> tuple[Any, ...]:
        """The sizes of a tensor, traced where they are not known."""
        twin = self.twins.get(id(tensor))
        if twin is None or self.inside or len(twin._shape) != len(tensor._shape):
            return tuple(tensor._shape)
        sizes = zip(tensor._shape, twin._shape, strict=True)
        return tuple(
            size if size == other else traced(size, other, ("SizeOfAxis", tensor, axis))
            for axis, (size, other) in enumerate(sizes)
        )

    def call(self, operation: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What Keras does to find out shapes, and a record of it."""
        import keras

        if _has_own_code(operation):
            return operation.call(*args, **kwargs)
        if type(operation).__name__ == "GetItem" and len(args) == 2:
            x, key = args
            if isinstance(key, keras.KerasTensor):  # which Keras has no shapes for
                return keras.ops.take(x, key, axis=0)
            args = (x, key if isinstance(key, (tuple, list)) else (key,))
        if isinstance(operation, keras.layers.Resizing) and _any_traced([operation.height, operation.width]):
            size, kind = (operation.height, operation.width), operation.interpolation
            return keras.ops.image.resize(args[0], size, interpolation=kind, data_format=operation.data_format)
        other = operation
        if not isinstance(operation, keras.layers.Layer) and _any_traced(list(vars(operation).values())):
            other = copy.copy(operation)
            for key, value in vars(operation).items():
                other.__dict__[key] = self.twin(value)
        self.inside += 1
        try:
            outputs = operation.compute_output_spec(*_mapped(args, plain_value), **_mapped(kwargs, plain_value))
            others = other.compute_output_spec(*self.twin(args), **self.twin(kwargs))
        finally:
            self.inside -= 1
        return self.record(operation, args, kwargs, outputs, others)

    # Functions of keras.ops that take sizes and no tensors.

    def arange(self, start: Any, stop: Any = None, step: Any = None, dtype: Any = None) -> Any:
        first, last = (0, start) if stop is None else (start, stop)
        by = 1 if step is None else step
        count = math.ceil((last - first) / by)
        other = math.ceil((other_value(last) - other_value(first)) / other_value(by))
        made = self.tensor((max(count, 0),), (max(other, 0),), str(dtype or "int32"))
        return self._own("CountedRange", (first, last, by), {"dtype": made.dtype}, made)

    def full(self, shape: Any, fill_value: Any, dtype: Any = None) -> Any:
        shape = tuple(shape) if isinstance(shape, (list, tuple)) else (shape,)
        made = self.tensor([int(size) for size in shape], self.twin(shape), str(dtype or "float32"))
        return self._own("Filled", (), {"shape": list(shape), "fill_value": fill_value, "dtype": made.dtype}, made)

    def lifted(self, number: Any) -> Any:
        """A traced number as a tensor."""
        dtype = "int32" if isinstance(number, int) else "float32"
        made = self.tensor((), (), dtype)
        return self._own("Number", (number,), {}, made)

    def captured(self, array: Any) -> Any:
        """A variable or array of the backend as a tensor of the trace."""
        made = self.tensor(array.shape, array.shape, _dtype_name(array))
        return self._own("Captured", (array,), {}, made)

    def symbolic(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Arguments without tensors of the trace, for an operation that is to become part of it."""
        import keras

        arrays = [isinstance(value, keras.Variable) or keras.src.backend.is_tensor(value) for value in args]
        if any(arrays):
            return tuple(self.captured(v) if array else v for v, array in zip(args, arrays, strict=True))
        return tuple(self.lifted(value) if isinstance(value, Traced) else value for value in args)

    def _own(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], made: Any) -> Any:
        return self.record(name, args, kwargs, made, self.twins[id(made)])


def _dtype_name(array: Any) -> str:
    return str(getattr(array.dtype, "name", array.dtype)).removeprefix("torch.")


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """Arguments with each of their parts changed."""
    if isinstance(value, (list, tuple)):
        return type(value)(_mapped(item, change) for item in value)
    if isinstance(value, dict):
        return {key: _mapped(item, change) for key, item in value.items()}
    if isinstance(value, slice):
        return slice(*(_mapped(end, change) for end in (value.start, value.stop, value.step)))
    return change(value)


def _any_traced(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_any_traced, value))
    if isinstance(value, slice):
        return _any_traced((value.start, value.stop, value.step))
    return isinstance(value, Traced)


def _has_own_code(operation: Any) -> bool:
    """Whether it is a model, a function of the user's, or of a class that is not Keras's."""
    import keras

    code = isinstance(operation, (keras.Model, keras.layers.Lambda))
    return code or not type(operation).__module__.startswith("keras.src.")


def has_own_code(model: Any) -> bool:
    """Whether a layer in the model is not Keras's own, so that following it may help."""
    import keras

    plain = (keras.Model, keras.Sequential, keras.src.models.Functional)
    return any(_has_own_code(layer) and type(layer) not in plain for layer in model._flatten_layers())


@contextlib.contextmanager
def _changed(trace: Trace) -> Iterator[None]:
    """Keras with the trace in it."""
    import keras
    from keras.src.backend.common.keras_tensor import any_symbolic_tensors
    from keras.src.layers import layer as layer_module
    from keras.src.ops import numpy as numpy_module, operation as operation_module

    undo: list[Callable[[], None]] = []

    def change(place: Any, name: str, make: Callable[[Any], Any]) -> None:
        missing = object()
        old = vars(place).get(name, missing)
        if old is missing:
            undo.append(lambda: delattr(place, name))
        else:
            undo.append(lambda: setattr(place, name, old))
        setattr(place, name, make(getattr(place, name, None)))

    def here(changed: Callable[..., Any], old: Any) -> Callable[..., Any]:
        """`changed` in the thread of the trace, what was there in others."""
        return lambda *args, **kwargs: (changed if threading.get_ident() == trace.thread else old)(*args, **kwargs)

    def symbolic_call(old: Any) -> Any:
        return here(lambda self, *args, **kwargs: trace.call(self, args, kwargs), old)

    def variable_method(name: str, swapped: bool) -> Callable[[Any], Any]:
        def make(old: Any) -> Any:
            def method(self: Any, operand: Any) -> Any:
                if not isinstance(operand, keras.KerasTensor):
                    return old(self, operand)
                return getattr(keras.ops, name)(*((operand, self) if swapped else (self, operand)))

            return method

        return make

    def with_sizes(changed: Callable[..., Any]) -> Callable[[Any], Any]:
        def make(old: Any) -> Any:
            def function(*args: Any, **kwargs: Any) -> Any:
                traced_ones = _any_traced([*args, *kwargs.values()])
                return changed(*args, **kwargs) if traced_ones else old(*args, **kwargs)

            return here(function, old)

        return make

    def with_tensors(old: Any) -> Any:
        def function(*args: Any, **kwargs: Any) -> Any:
            if not any_symbolic_tensors(args, kwargs) and _any_traced([*args, *kwargs.values()]):
                args = trace.symbolic(args)
            return old(*args, **kwargs)

        return here(function, old)

    def variable_item(old: Any) -> Any:
        return here(lambda self, key: trace.captured(self)[key] if _any_traced(key) else old(self, key), old)

    shape = keras.KerasTensor.shape
    try:
        change(keras.KerasTensor, "shape", lambda old: property(here(trace.shape_of, shape.fget)))
        change(keras.KerasTensor, "__array_ufunc__", lambda old: None)  # arrays leave arithmetic to the tensor
        change(operation_module.Operation, "symbolic_call", symbolic_call)
        change(layer_module.Layer, "symbolic_call", symbolic_call)
        change(layer_module, "Node", lambda old: here(lambda **node: None, old))  # layers stay as they were
        for method, (name, swapped) in _VARIABLE_METHODS.items():
            change(keras.src.backend.Variable, method, variable_method(name, swapped))
        change(keras.src.backend.Variable, "__getitem__", variable_item)
        creators = _creators(trace)
        public = {name for name, member in vars(keras.ops).items() if isinstance(member, types.FunctionType)}
        for module in (keras.ops, keras.src.ops, numpy_module):
            for name in sorted(public - {"shape", "is_tensor", "dtype"}):
                if name in vars(module):
                    change(module, name, with_sizes(creators[name]) if name in creators else with_tensors)
        yield
    finally:
        for back in reversed(undo):
            back()


_VARIABLE_METHODS = {
    f"__{prefix}{key}__": (name, prefix == "r")
    for key, name in (
        ("add", "add"),
        ("sub", "subtract"),
        ("mul", "multiply"),
        ("truediv", "true_divide"),
        ("floordiv", "floor_divide"),
        ("mod", "mod"),
        ("pow", "power"),
        ("matmul", "matmul"),
    )
    for prefix in ("", "r")
} | {
    "__lt__": ("less", False),
    "__le__": ("less_equal", False),
    "__gt__": ("greater", False),
    "__ge__": ("greater_equal", False),
}


def _creators(trace: Trace) -> dict[str, Callable[..., Any]]:
    import keras

    def tri(N: Any, M: Any = None, k: int = 0, dtype: Any = None) -> Any:
        rows, columns = trace.arange(N), trace.arange(N if M is None else M)
        return keras.ops.cast(keras.ops.expand_dims(rows, 1) + k >= columns, str(dtype or "float32"))

    def eye(N: Any, M: Any = None, k: int = 0, dtype: Any = None) -> Any:
        rows, columns = trace.arange(N), trace.arange(N if M is None else M)
        return keras.ops.cast(keras.ops.equal(keras.ops.expand_dims(rows, 1) + k, columns), str(dtype or "float32"))

    return {
        "arange": trace.arange,
        "full": trace.full,
        "zeros": lambda shape, dtype=None: trace.full(shape, 0, dtype),
        "empty": lambda shape, dtype=None: trace.full(shape, 0, dtype),
        "ones": lambda shape, dtype=None: trace.full(shape, 1, dtype),
        "tri": tri,
        "eye": eye,
        "identity": lambda n, dtype=None: eye(n, dtype=dtype),
    }


def record(model: Any, sizes: tuple[tuple[int, int, int], tuple[int, int, int]]) -> Recording:
    """Calls the model with tensors of these sizes where its own are unknown."""
    from keras import tree

    def filled(shape: tuple[int | None, ...], which: tuple[int, int, int]) -> list[int]:
        batch, length, image = which
        other = image if len(shape) > 3 else length
        return [size if size is not None else other if axis else batch for axis, size in enumerate(shape)]

    with _lock:
        trace = Trace()
        arguments = _signature(model)
        specs = tree.flatten(arguments)
        names = _names(model, arguments)
        tensors = []
        for name, spec in zip(names, specs, strict=True):
            tensor = trace.tensor(filled(spec.shape, sizes[0]), filled(spec.shape, sizes[1]), spec.dtype, name)
            trace.recording.inputs.append((name, tensor, tuple(spec.shape)))
            tensors.append(tensor)
        with _changed(trace):
            outputs = model(*tree.pack_sequence_as(arguments, tensors))
        flat = tree.flatten(outputs)
        given = getattr(model, "output_names", None) or []
        if isinstance(outputs, dict):
            given = sorted(outputs)
        if len(given) != len(flat):
            given = [f"output_{i}" for i in range(len(flat))]
        trace.recording.outputs = list(zip(given, flat, strict=True))
        trace.recording.twins = trace.twins  # type: ignore[attr-defined]  # keeps them alive: they are known by id
        return trace.recording


def _signature(model: Any) -> list[Any]:
    """What the model is called with: shapes and types in the structure of its arguments."""
    from keras.src.export.export_utils import get_input_signature

    return list(get_input_signature(model))


def _names(model: Any, arguments: list[Any]) -> list[str]:
    """A name for each tensor among the arguments: its own, its key, or the argument's."""
    import inspect

    from keras import tree

    if getattr(model, "inputs", None) and all(hasattr(tensor, "_keras_history") for tensor in model.inputs):
        return [str(tensor._keras_history.operation.name) for tensor in model.inputs]
    parameters = [p for p in inspect.signature(model.call).parameters if p not in ("training", "mask")]
    names: list[str] = []
    for position, argument in enumerate(arguments):
        for path, spec in tree.flatten_with_path(argument):
            own = getattr(spec, "name", None)
            last = path[-1] if path else parameters[position] if position < len(parameters) else f"input_{position}"
            names.append(str(own or (last if isinstance(last, str) else f"input_{last}")))
    counts = itertools.count(1)
    seen: set[str] = set()
    for i, name in enumerate(names):
        while names[i] in seen:
            names[i] = f"{name}_{next(counts)}"
        seen.add(names[i])
    return names
