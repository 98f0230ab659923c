# SPDX-License-Identifier: Apache-2.0
"""Graphs: operations in the order they were made, which is an order they can run in."""

from __future__ import annotations

import contextlib
import re
import threading

import numpy as np

from leadline.tf import memory, op as op_module
from leadline.tf.tensor import Tensor

# Results this small are computed while the graph is made, so that shapes that depend on them are known.
_FOLDED_ELEMENTS = 64


class Operation:
    """A node of a graph: the use of an op, where it stands in the user's program, and its outputs."""

    def __init__(self, graph: Graph, row, name: str, inputs, attrs: dict, specs) -> None:
        self.graph = graph
        self.row = row
        self.name = name
        self.inputs = tuple(inputs)
        self.attrs = attrs
        self.control_inputs = list(graph._control_inputs())
        self.device = graph._device
        frame = memory.user_frame()
        self._place = (frame.f_code.co_filename, frame.f_lineno) if frame is not None else None
        self.outputs = [Tensor(dtype, dims, op=self, index=i) for i, (dtype, dims) in enumerate(specs)]
        self.values: list[np.ndarray | None] = [None] * len(self.outputs)  # of outputs that are known now

    @property
    def type(self) -> str:
        return self.row.name

    @property
    def where(self) -> str:
        """The line of the user's program that made it."""
        return memory.describe_frame(*self._place) if self._place else ""

    def get_attr(self, name: str):
        if name not in self.attrs:
            raise ValueError(f"Operation '{self.name}' has no attr named '{name}'.")
        return self.attrs[name]

    def run(self, feed_dict=None, session=None) -> None:
        from leadline.tf.session import current_session

        session = session or current_session()
        if session is None:
            raise ValueError("Cannot execute operation using `run()`: No default session is registered.")
        session.run(self, feed_dict)

    def __repr__(self) -> str:
        return f"<tf.Operation '{self.name}' type={self.type}>"


class Graph:
    """A computation that is planned whole before it runs."""

    def __init__(self) -> None:
        self._operations: list[Operation] = []
        self._by_name: dict[str, Operation] = {}
        self._used_names: dict[str, int] = {}
        self._collections: dict[str, list] = {}
        self._scopes: list[str] = [""]
        self._controls: list[list[Operation]] = []
        self._device = ""
        self._constants: dict[int, Tensor] = {}  # eager tensors that ops of this graph use, by id
        self._finalized = False
        self.seed: int | None = None

    @contextlib.contextmanager
    def as_default(self):
        """Ops made in this context become operations of this graph."""
        _stack().append(self)
        try:
            yield self
        finally:
            _stack().remove(self)

    def add(self, row, inputs, attrs: dict, name: str | None):
        """A new operation. Returns its output, or a tuple of several; itself when it has none."""
        if self._finalized:
            raise RuntimeError("Graph is finalized and cannot be modified.")
        inputs = [self.own(tensor) for tensor in inputs]
        values = [known_value(tensor) for tensor in inputs]
        full_name = self.unique_name(name or row.name)
        call = op_module.Call(row.name, [(t._dtype, t._dims) for t in inputs], values, attrs, full_name, True)
        try:
            specs = row.infer(call)
        except Exception:
            self._used_names.pop(full_name.lower(), None)
            raise
        operation = Operation(self, row, full_name, inputs, attrs, specs)
        found = op_module.fold(row, call.specs, values, attrs, specs, _FOLDED_ELEMENTS)
        if found is not None:
            operation.values = found
        self._operations.append(operation)
        self._by_name[full_name] = operation
        if not operation.outputs:
            return operation
        return operation.outputs[0] if len(operation.outputs) == 1 else tuple(operation.outputs)

    def own(self, tensor: Tensor) -> Tensor:
        """`tensor` as one of this graph: an eager one becomes a constant without being copied."""
        if tensor._array is None:
            if tensor.op.graph is not self:
                return self._capture(tensor)
            return tensor
        constant = self._constants.get(id(tensor))
        if constant is None:
            constant = self.add(
                op_module.ROWS["Const"], [], {"value": tensor._array, "dtype": tensor._dtype, "holder": tensor}, "Const"
            )
            self._constants[id(tensor)] = constant
        return constant

    def _capture(self, tensor: Tensor) -> Tensor:
        raise ValueError(
            f"Tensor '{tensor.name}' is not of the graph that is being made. Tensors of one graph cannot be inputs of "
            "another; fetch the value with Session.run() and feed it."
        )

    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        scope = self._scopes[-1]
        name = name[:-1] if name.endswith("/") else scope + name
        if not re.fullmatch(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*", name):
            raise ValueError(
                f"'{name}' is not a valid scope name. A scope name has to match the following pattern: "
                "^[A-Za-z0-9.][A-Za-z0-9_.\\\\/>-]*$"
            )
        key = name.lower()
        count = self._used_names.get(key, 0)
        if mark_as_used:
            self._used_names[key] = count + 1
        if count == 0:
            return name
        while f"{key}_{count}" in self._used_names:
            count += 1
        if mark_as_used:
            self._used_names[f"{key}_{count}"] = 1
        return f"{name}_{count}"

    @contextlib.contextmanager
    def name_scope(self, name: str | None):
        if not name:
            scope = ""
        elif name.endswith("/"):
            scope = name
        else:
            scope = self.unique_name(name) + "/"
        self._scopes.append(scope)
        try:
            yield scope
        finally:
            self._scopes.pop()

    def get_name_scope(self) -> str:
        return self._scopes[-1].rstrip("/")

    @contextlib.contextmanager
    def control_dependencies(self, inputs):
        ops = [getattr(item, "op", item) for item in inputs or ()]
        self._controls.append([op for op in ops if isinstance(op, Operation)])
        try:
            yield self
        finally:
            self._controls.pop()

    def _control_inputs(self):
        return [op for ops in self._controls for op in ops]

    @contextlib.contextmanager
    def device(self, name):
        from leadline.tf.config import resolve_device

        before, self._device = self._device, resolve_device(name)
        try:
            yield
        finally:
            self._device = before

    def get_operations(self) -> list[Operation]:
        return list(self._operations)

    def get_operation_by_name(self, name: str) -> Operation:
        if name not in self._by_name:
            raise KeyError(f"The name '{name}' refers to an Operation not in the graph.")
        return self._by_name[name]

    def get_tensor_by_name(self, name: str) -> Tensor:
        operation, colon, index = name.rpartition(":")
        if not colon or not index.isdigit():
            raise ValueError(
                f"The name {name!r} looks like an (invalid) Operation name, not a Tensor. Tensor names must "
                'be of the form "<op_name>:<output_index>".'
            )
        if operation not in self._by_name or int(index) >= len(self._by_name[operation].outputs):
            raise KeyError(f"The name {name!r} refers to a Tensor which does not exist.")
        return self._by_name[operation].outputs[int(index)]

    def as_graph_element(self, item, allow_tensor: bool = True, allow_operation: bool = True):
        if isinstance(item, str):
            return self.get_tensor_by_name(item) if ":" in item else self.get_operation_by_name(item)
        return item

    def add_to_collection(self, name: str, value) -> None:
        self._collections.setdefault(name, []).append(value)

    def get_collection(self, name: str, scope: str | None = None) -> list:
        items = self._collections.get(name, [])
        return [item for item in items if not scope or re.match(scope, getattr(item, "name", ""))]

    def get_collection_ref(self, name: str) -> list:
        return self._collections.setdefault(name, [])

    def finalize(self) -> None:
        self._finalized = True

    @property
    def finalized(self) -> bool:
        return self._finalized

    @property
    def building_function(self) -> bool:
        return False


def known_value(tensor: Tensor) -> np.ndarray | None:
    """The value of a tensor where it is known before a run."""
    return tensor._array if tensor._array is not None else tensor.op.values[tensor.value_index]


class _State(threading.local):
    def __init__(self) -> None:
        self.stack: list[Graph | None] = []
        self.eager_scopes: list[str] = [""]


_state = _State()
_eager_disabled = False
_default: Graph | None = None


def _stack() -> list:
    return _state.stack


def building() -> bool:
    """Whether ops become operations of a graph now."""
    return _state.stack[-1] is not None if _state.stack else _eager_disabled


def current() -> Graph:
    """The graph that ops are added to; without one in force the default graph."""
    global _default
    if _state.stack and _state.stack[-1] is not None:
        return _state.stack[-1]
    if _default is None:
        _default = Graph()
    return _default


@contextlib.contextmanager
def eagerly():
    """Ops in this context have values, whatever graph is being made outside."""
    _state.stack.append(None)
    try:
        yield
    finally:
        _state.stack.pop()


def reset_default_graph() -> None:
    global _default
    if any(graph is not None for graph in _state.stack):
        raise AssertionError(
            "Do not use tf.reset_default_graph() to clear nested graphs. If you need a cleared graph, "
            "exit the nesting and create a new graph."
        )
    _default = None


def disable_eager_execution() -> None:
    global _eager_disabled
    _eager_disabled = True


def enable_eager_execution() -> None:
    global _eager_disabled
    _eager_disabled = False


def executing_eagerly() -> bool:
    return not building()


class name_scope:
    """A prefix for the names of what is made in it. Yields the prefix."""

    def __init__(self, name: str | None, default_name: str | None = None, values=None) -> None:
        name = default_name if name is None else name
        if name is not None and not isinstance(name, str):
            raise ValueError("name for name_scope must be a string.")
        self._name = name
        self._context: contextlib.AbstractContextManager[str] | None = None

    @property
    def name(self) -> str | None:
        return self._name

    def __enter__(self) -> str:
        self._context = current().name_scope(self._name) if building() else _eager_scope(self._name)
        return self._context.__enter__()

    def __exit__(self, *error) -> None:
        self._context.__exit__(*error)


@contextlib.contextmanager
def _eager_scope(name: str | None):
    before = _state.eager_scopes[-1]
    scope = "" if not name else name if name.endswith("/") else f"{before}{name}/"
    _state.eager_scopes.append(scope)
    try:
        yield scope
    finally:
        _state.eager_scopes.pop()


def scoped_name(name: str) -> str:
    """A name of something eager, in the scopes that are open."""
    return _state.eager_scopes[-1] + name
