# SPDX-License-Identifier: Apache-2.0
"""tf.function: Python code traced into a graph once for each signature, then planned and run whole.

Code that needs the value of a tensor while it is traced (`if x > 0:`, `int(x)`, `for row in x` of unknown length)
cannot be traced; it runs eagerly instead, at each call, with the same results.
"""

from __future__ import annotations

import functools
import weakref

import numpy as np

from leadline.tf import graph as graphs
from leadline.tf.convert import convert_to_tensor
from leadline.tf.dtypes import as_dtype
from leadline.tf.graph import Graph
from leadline.tf.run import EagerState, run
from leadline.tf.shapes import TensorShape, compatible
from leadline.tf.tensor import NeedsValueError, Tensor, wrap

run_eagerly = False


class TensorSpec:
    """The type and shape of a tensor to come."""

    def __init__(self, shape, dtype="float32", name=None) -> None:
        self.shape = TensorShape(shape)
        self.dtype = as_dtype(dtype)
        self.name = name

    @classmethod
    def from_tensor(cls, tensor, name=None) -> TensorSpec:
        return cls(tensor.shape, tensor.dtype, name)

    from_spec = from_tensor

    def is_compatible_with(self, other) -> bool:
        return self.dtype == other.dtype and self.shape.is_compatible_with(other.shape)

    def __eq__(self, other) -> bool:
        return isinstance(other, TensorSpec) and (self.shape, self.dtype) == (other.shape, other.dtype)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self.shape}, dtype={self.dtype!r}, name={self.name!r})"


class FuncGraph(Graph):
    """The graph of a traced function. Eager tensors from outside become constants, variables are read when it runs."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.inputs: list[Tensor] = []
        self.outputs: list = []

    @property
    def building_function(self) -> bool:
        return True


class ConcreteFunction:
    """One trace of a function."""

    def __init__(self, python_function, name: str, args, kwargs) -> None:
        from leadline.tf.session import placeholder

        self.graph = FuncGraph(name)
        self.name = name
        self._signature = (args, kwargs)
        with self.graph.as_default():
            self._inputs: list[Tensor] = []
            traced_args, traced_kwargs = map_leaves(
                lambda leaf: self._placeholder(placeholder, leaf) if isinstance(leaf, TensorSpec) else leaf,
                (args, kwargs),
            )
            result = python_function(*traced_args, **traced_kwargs)
            self._result = map_leaves(self._output, result)
        self.graph.inputs = self._inputs
        self.graph.outputs = [leaf for leaf in leaves_of(self._result) if isinstance(leaf, Tensor)]

    def _placeholder(self, placeholder, spec: TensorSpec) -> Tensor:
        tensor = placeholder(spec.dtype, spec.shape, spec.name or f"arg{len(self._inputs)}")
        self._inputs.append(tensor)
        return tensor

    def _output(self, leaf):
        if leaf is None or leaf is self:
            return leaf
        tensor = convert_to_tensor(leaf)
        return self.graph.own(tensor)

    @property
    def inputs(self) -> list[Tensor]:
        return self._inputs

    @property
    def outputs(self) -> list[Tensor]:
        return self.graph.outputs

    @property
    def structured_input_signature(self):
        return self._signature

    @property
    def structured_outputs(self):
        return self._result

    @property
    def variables(self) -> list:
        found = [op.attrs["variable"] for op in self.graph.get_operations() if "variable" in op.attrs]
        return list(dict.fromkeys(found))

    def __call__(self, *args, **kwargs):
        tensors = [leaf for leaf in leaves_of((args, kwargs)) if _is_value(leaf)]
        if len(tensors) != len(self._inputs):
            raise TypeError(f"{self.name} takes {len(self._inputs)} tensors, {len(tensors)} were given")
        feeds = {}
        for tensor, value in zip(self._inputs, tensors):
            value = convert_to_tensor(value, dtype=tensor.dtype)
            if not compatible(tensor._dims, value._dims):
                raise ValueError(
                    f"{self.name}: the argument '{tensor.op.name}' has the shape {value.shape}, expected {tensor.shape}"
                )
            feeds[tensor] = value._array
        effects = [op for op in self.graph.get_operations() if op.row.writes]
        values = run(self.graph.outputs, feeds, EagerState(), effects)
        wrapped = {tensor: wrap(array, tensor.dtype) for tensor, array in values.items()}
        return map_leaves(lambda leaf: wrapped.get(leaf, leaf) if isinstance(leaf, Tensor) else leaf, self._result)


class Function:
    """What tf.function makes of a Python function."""

    def __init__(
        self, python_function, input_signature=None, autograph=True, reduce_retracing=False, **ignored
    ) -> None:
        self.python_function = python_function
        self.input_signature = input_signature
        self.__name__ = getattr(python_function, "__name__", type(python_function).__name__)
        self._traces: dict = {}  # ConcreteFunction, or None where the code has to run eagerly
        self._bound: dict = {}  # of methods: a function for each object, dropped with it
        functools.update_wrapper(self, python_function)

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        known = self._bound.get(id(instance))
        if known is None or known[0]() is not instance:
            key = id(instance)
            me = weakref.ref(instance, lambda _: self._bound.pop(key, None))

            @functools.wraps(self.python_function)
            def method(*args, **kwargs):
                return self.python_function(me(), *args, **kwargs)

            known = self._bound[key] = (me, Function(method, self.input_signature))
        return _Bound(known[1], instance)

    def __call__(self, *args, **kwargs):
        if run_eagerly or graphs.building():
            return self.python_function(*args, **kwargs)
        args, kwargs = map_leaves(
            lambda leaf: convert_to_tensor(leaf) if isinstance(leaf, np.ndarray) else leaf, (args, kwargs)
        )
        if self.input_signature is not None:
            args = self._with_signature(args)
        concrete = self._trace(args, kwargs)
        return self.python_function(*args, **kwargs) if concrete is None else concrete(*args, **kwargs)

    def _with_signature(self, args):
        if len(args) > len(self.input_signature):
            raise TypeError(f"{self.__name__} takes {len(self.input_signature)} arguments, {len(args)} were given")
        converted = []
        for spec, value in zip(self.input_signature, args):
            tensor = convert_to_tensor(value, dtype_hint=spec.dtype)
            if tensor.dtype != spec.dtype or not spec.shape.is_compatible_with(tensor.shape):
                raise TypeError(
                    f"Binding inputs to tf.function failed: got {TensorSpec.from_tensor(tensor)}, expected {spec}"
                )
            converted.append(tensor)
        return tuple(converted)

    def _trace(self, args, kwargs) -> ConcreteFunction | None:
        specs = self.input_signature if self.input_signature is not None else None
        described = map_leaves(_describe, (args, kwargs))
        if specs is not None:
            described = (tuple(specs), described[1])
        key = _key(described)
        if key not in self._traces:
            try:
                self._traces[key] = ConcreteFunction(self.python_function, self.__name__, *described)
            except NeedsValueError:
                self._traces[key] = None
        return self._traces[key]

    def get_concrete_function(self, *args, **kwargs) -> ConcreteFunction:
        """The trace for these arguments, which may be TensorSpecs."""
        if not args and not kwargs and self.input_signature is not None:
            args = tuple(self.input_signature)
        concrete = self._trace(args, kwargs)
        if concrete is None:
            raise NeedsValueError(
                f"{self.__name__} cannot be traced: it needs the value of a tensor while it is traced"
            )
        return concrete

    def experimental_get_tracing_count(self) -> int:
        return len(self._traces)


class _Bound:
    """A method that is a Function; keeps its object alive."""

    def __init__(self, function: Function, instance) -> None:
        self._function = function
        self.__self__ = instance

    def __call__(self, *args, **kwargs):
        return self._function(*args, **kwargs)

    def __getattr__(self, name: str):
        return getattr(self._function, name)


def function(func=None, input_signature=None, autograph=True, jit_compile=None, reduce_retracing=False, **ignored):
    """Makes a function whose code is traced into a graph; also a decorator, with or without arguments."""
    make = functools.partial(Function, input_signature=input_signature)
    return make if func is None else make(func)


def _is_value(leaf) -> bool:
    return isinstance(leaf, (Tensor, np.ndarray))


def _describe(leaf):
    return TensorSpec(leaf.shape, leaf.dtype) if isinstance(leaf, Tensor) else leaf


def _key(structure):
    """Something hashable that is equal for arguments that give the same trace."""
    if isinstance(structure, dict):
        return ("dict", tuple(sorted((key, _key(value)) for key, value in structure.items())))
    if isinstance(structure, (list, tuple)):
        return (type(structure).__name__, tuple(_key(value) for value in structure))
    try:
        hash(structure)
    except TypeError:
        return _Same(structure)
    return (type(structure), structure)


class _Same:
    """Equal for one and the same object, which it keeps."""

    def __init__(self, item) -> None:
        self._item = item

    def __eq__(self, other) -> bool:
        return isinstance(other, _Same) and self._item is other._item

    def __hash__(self) -> int:
        return id(self._item)


def leaves_of(structure) -> list:
    found: list = []
    map_leaves(found.append, structure)
    return found


def map_leaves(function, structure):
    """The structure of lists, tuples and dicts with each leaf replaced."""
    if isinstance(structure, dict):
        return type(structure)((key, map_leaves(function, value)) for key, value in structure.items())
    if isinstance(structure, list):
        return [map_leaves(function, value) for value in structure]
    if isinstance(structure, tuple):
        parts = [map_leaves(function, value) for value in structure]
        return type(structure)(*parts) if hasattr(structure, "_fields") else tuple(parts)
    return function(structure)
