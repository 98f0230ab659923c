# SPDX-License-Identifier: Apache-2.0
"""Variables: values that change. Eager ones hold their value; those of a graph have one in each session."""

from __future__ import annotations

import contextlib

import numpy as np

from leadline.tf import graph as graphs, memory
from leadline.tf.convert import convert_to_tensor
from leadline.tf.dtypes import DType, as_dtype
from leadline.tf.graph import Graph
from leadline.tf.op import Call, apply, row
from leadline.tf.operators import Operators
from leadline.tf.shapes import TensorShape, compatible
from leadline.tf.tensor import Reference, Tensor, shown

GLOBAL_VARIABLES, TRAINABLE_VARIABLES, LOCAL_VARIABLES = "variables", "trainable_variables", "local_variables"


def _infer_read(call: Call):
    variable = call.attrs["variable"]
    return [(variable.dtype, variable._dims)]


def _no_numpy(*arrays, **attrs):
    raise AssertionError("variables are read and written by their state")


def _assign_with(function):
    def assign(state, array, *, variable):
        if function is not None:
            array = function(state.read(variable), array)
        state.assign(variable, np.array(array, dtype=variable.dtype.numpy))
        return [array]

    return assign


row(
    "ReadVariableOp",
    _infer_read,
    _no_numpy,
    stateful=True,
    with_state=lambda state, *, variable: [state.read(variable)],
    borrowed=True,
)
for _name, _function in (
    ("AssignVariableOp", None),
    ("AssignAddVariableOp", np.add),
    ("AssignSubVariableOp", np.subtract),
):
    row(_name, _infer_read, _no_numpy, stateful=True, with_state=_assign_with(_function), writes=True)
row("NoOp", lambda call: [], _no_numpy, stateful=True, with_state=lambda state: [])


class Variable(Operators):
    """A tensor that can be assigned to.

    >>> v = tf.Variable([1.0, 2.0])
    >>> v.assign_add([1.0, 1.0])
    """

    __array_priority__ = 100

    def __init__(
        self,
        initial_value=None,
        trainable=None,
        validate_shape=True,
        caching_device=None,
        name=None,
        variable_def=None,
        dtype=None,
        import_scope=None,
        constraint=None,
        synchronization=None,
        aggregation=None,
        shape=None,
        collections=None,
        **ignored,
    ) -> None:
        if initial_value is None:
            raise ValueError("initial_value must be specified.")
        dtype = None if dtype is None else as_dtype(dtype)
        self._trainable = True if trainable is None else bool(trainable)
        self._constraint = constraint
        self._graph: Graph | None = graphs.current() if graphs.building() and not _tracing() else None
        self._array: np.ndarray | None = None
        self._charge: memory.Charge | None = None
        base = name or "Variable"
        if self._graph is not None:
            with contextlib.ExitStack() as stack:
                self.op_name = self._graph.unique_name(base)
                stack.enter_context(self._graph.name_scope(self.op_name + "/"))
                value = initial_value() if callable(initial_value) else initial_value
                self._initial = convert_to_tensor(value, dtype=dtype, name="initial_value")
                self._set_spec(self._initial, shape)
                self._initializer = self._assign_op("AssignVariableOp", self._initial, "Assign").op
            self._collect(collections)
        else:
            with graphs.eagerly():
                self.op_name = graphs.scoped_name(base)
                value = initial_value() if callable(initial_value) else initial_value
                tensor = convert_to_tensor(value, dtype=dtype)
                self._set_spec(tensor, shape)
                self._adopt(tensor)

    def _set_spec(self, tensor: Tensor, shape) -> None:
        self._dtype: DType = tensor.dtype
        self._dims = tensor._dims if shape is None else TensorShape(shape)._dims

    def _adopt(self, tensor: Tensor) -> None:
        """Takes a tensor's memory without a copy: assigning replaces it, so that the tensor never changes."""
        self._array, self._charge = tensor._array, tensor._charge

    def _collect(self, collections) -> None:
        for key in collections or [GLOBAL_VARIABLES]:
            self._graph.add_to_collection(key, self)
        if self._trainable and not collections:
            self._graph.add_to_collection(TRAINABLE_VARIABLES, self)

    # How runs see it.
    def _read(self) -> np.ndarray:
        return self._array

    def _write(self, array: np.ndarray) -> None:
        self._charge = memory.Charge(array.nbytes, lambda: f"variable {self.op_name}")
        self._array = array

    def _as_tensor(self) -> Tensor:
        if graphs.building():
            return apply("ReadVariableOp", [], "ReadVariableOp", variable=self)
        if self._graph is not None:
            raise RuntimeError(f"variable '{self.op_name}' belongs to a graph: get its value with Session.run()")
        return Tensor(self._dtype, self._array.shape, self._array, self._charge)

    def _as_fetch(self, session):
        if self._graph is None:
            return self._array
        return session.read(self)

    @property
    def dtype(self) -> DType:
        return self._dtype

    @property
    def shape(self) -> TensorShape:
        return TensorShape(self._dims)

    @property
    def ndim(self) -> int | None:
        return self.shape.rank

    @property
    def name(self) -> str:
        return f"{self.op_name}:0"

    @property
    def device(self) -> str:
        return "/job:localhost/replica:0/task:0/device:CPU:0"

    @property
    def trainable(self) -> bool:
        return self._trainable

    @property
    def constraint(self):
        return self._constraint

    @property
    def graph(self) -> Graph:
        self._only_in_graphs("graph")
        return self._graph

    @property
    def initializer(self):
        self._only_in_graphs("initializer")
        return self._initializer

    @property
    def op(self):
        self._only_in_graphs("op")
        return self._initializer

    @property
    def initial_value(self) -> Tensor:
        self._only_in_graphs("initial_value")
        return self._initial

    def _only_in_graphs(self, what: str) -> None:
        if self._graph is None:
            raise RuntimeError(f"`{what}` is not available for variables in eager mode.")

    def get_shape(self) -> TensorShape:
        return self.shape

    def value(self) -> Tensor:
        return self._as_tensor()

    read_value = value

    def initialized_value(self) -> Tensor:
        return self._as_tensor()

    def numpy(self):
        if self._array is None:
            raise NotImplementedError("numpy() is only available when eager execution is enabled.")
        return self._as_tensor().numpy()

    def eval(self, session=None):
        from leadline.tf.session import current_session

        session = session or current_session()
        if session is None:
            raise ValueError("Cannot evaluate variable using `eval()`: No default session is registered.")
        return session.run(self)

    def assign(self, value, use_locking=False, name=None, read_value=True):
        """Assigns a new value of the same type and shape."""
        return self._update("AssignVariableOp", value, lambda old, new: new, name)

    def assign_add(self, delta, use_locking=False, name=None, read_value=True):
        return self._update("AssignAddVariableOp", delta, np.add, name)

    def assign_sub(self, delta, use_locking=False, name=None, read_value=True):
        return self._update("AssignSubVariableOp", delta, np.subtract, name)

    def load(self, value, session=None) -> None:
        from leadline.tf.session import current_session

        (session or current_session()).assign(self, np.array(value, self._dtype.numpy))

    def _update(self, op: str, value, function, name):
        value = convert_to_tensor(value, dtype=self._dtype)
        if not compatible(self._dims, value._dims) and not (op != "AssignVariableOp" and value._dims == ()):
            raise ValueError(
                f"Cannot assign value to variable '{self.name}': Shape mismatch.The variable shape {self.shape}, "
                f"and the assigned value shape {value.shape} are incompatible."
            )
        if graphs.building():
            return self._assign_op(op, value, name or op)
        if op == "AssignVariableOp":
            self._adopt(value)
        else:
            self._write(np.asarray(function(self._array, value._array)))
        return self

    def _assign_op(self, op: str, value: Tensor, name: str) -> Tensor:
        return apply(op, [value], name, variable=self)

    def __getattr__(self, name: str):
        raise AttributeError(f"'Variable' object has no attribute '{name}'")

    def __array__(self, dtype=None, copy=None):
        return self._as_tensor().__array__(dtype, copy)

    def _operand(self) -> Tensor:
        return self._as_tensor()

    def __len__(self) -> int:
        return len(self._as_tensor())

    def __iter__(self):
        return iter(self._as_tensor())

    def __bool__(self) -> bool:
        return bool(self._as_tensor())

    def __int__(self) -> int:
        return int(self._as_tensor())

    def __float__(self) -> float:
        return float(self._as_tensor())

    def __hash__(self) -> int:
        return id(self)

    def ref(self) -> Reference:
        return Reference(self)

    def __repr__(self) -> str:
        head = f"<tf.Variable '{self.name}' shape={self.shape} dtype={self._dtype.name}"
        if self._array is None:
            return head + ">"
        return f"{head}, numpy={shown(self._array)}>"


def _tracing() -> bool:
    return graphs.current().building_function


def group(*inputs, name=None):
    """An operation that runs all of the inputs."""
    if not graphs.building():
        return None
    graph = graphs.current()
    with graph.control_dependencies([getattr(item, "op", item) for item in inputs]):
        return graph.add(graphs.op_module.ROWS["NoOp"], [], {}, name or "group_deps")


def no_op(name=None):
    return group(name=name or "NoOp")


def variables_initializer(var_list, name="init"):
    return group(*(variable.initializer for variable in var_list), name=name)


def global_variables(scope=None) -> list[Variable]:
    return graphs.current().get_collection(GLOBAL_VARIABLES, scope)


def trainable_variables(scope=None) -> list[Variable]:
    return graphs.current().get_collection(TRAINABLE_VARIABLES, scope)


def local_variables(scope=None) -> list[Variable]:
    return graphs.current().get_collection(LOCAL_VARIABLES, scope)


def global_variables_initializer():
    """An operation that sets all variables of the graph to their first values."""
    return variables_initializer(global_variables())


def local_variables_initializer():
    return variables_initializer(local_variables())


class _Scope:
    def __init__(self, name: str, reuse, initializer) -> None:
        self.name, self.reuse, self.initializer = name, reuse, initializer


AUTO_REUSE = "auto_reuse"
_scopes: list[_Scope] = [_Scope("", False, None)]
_eager_store: dict[str, Variable] = {}


@contextlib.contextmanager
def variable_scope(name_or_scope, default_name=None, values=None, initializer=None, reuse=None, **ignored):
    """A prefix for variables that get_variable() makes, and whether it may give existing ones."""
    outer = _scopes[-1]
    if isinstance(name_or_scope, _Scope):
        full = name_or_scope.name
        short = full
    else:
        short = name_or_scope if name_or_scope is not None else default_name
        full = f"{outer.name}/{short}" if outer.name and short else short or outer.name
    scope = _Scope(full, outer.reuse if reuse is None else reuse, initializer or outer.initializer)
    _scopes.append(scope)
    try:
        with graphs.name_scope(short.rsplit("/", 1)[-1] if short else None):
            yield scope
    finally:
        _scopes.pop()


def get_variable_scope() -> _Scope:
    return _scopes[-1]


def get_variable(
    name, shape=None, dtype=None, initializer=None, regularizer=None, trainable=True, collections=None, **ignored
) -> Variable:
    """The variable of this name in the open variable_scope: a new one, or with reuse the one that exists."""
    scope = _scopes[-1]
    full = f"{scope.name}/{name}" if scope.name else name
    store = _store()
    if full in store:
        if not scope.reuse:
            raise ValueError(
                f"Variable {full} already exists, disallowed. Did you mean to set reuse=True or reuse=tf.AUTO_REUSE "
                "in VarScope?"
            )
        return store[full]
    if scope.reuse and scope.reuse != AUTO_REUSE:
        raise ValueError(
            f"Variable {full} does not exist, or was not created with tf.get_variable(). Did you mean to set "
            "reuse=tf.AUTO_REUSE in VarScope?"
        )
    initial = _initial_value(initializer or scope.initializer, shape, as_dtype(dtype or "float32"))
    scope_name = graphs.current()._scopes if graphs.building() else None
    if scope_name is not None:
        scope_name.append("")
    try:
        variable = Variable(initial, trainable=trainable, name=full, collections=collections)
    finally:
        if scope_name is not None:
            scope_name.pop()
    store[full] = variable
    return variable


def _store() -> dict[str, Variable]:
    if not graphs.building():
        return _eager_store
    return graphs.current().__dict__.setdefault("_variable_store", {})


def _initial_value(initializer, shape, dtype: DType):
    """Without an initializer: uniform numbers by Glorot's rule, as TensorFlow has it; zeros for integers."""
    from leadline.tf import array, random

    if initializer is None:
        if shape is None:
            raise ValueError("The shape must be given when there is no initializer that has one.")
        dims = TensorShape(shape).as_list()
        if not dtype.is_floating:
            return lambda: array.zeros(dims, dtype)
        fan_in, fan_out = (dims[-2] if len(dims) > 1 else (dims or [1])[0]), (dims or [1])[-1]
        limit = float(np.sqrt(6 / max(fan_in + fan_out, 1)))
        return lambda: random.uniform(dims, -limit, limit, dtype)
    if callable(initializer):
        return lambda: initializer(TensorShape(shape).as_list(), dtype)
    return convert_to_tensor(initializer, dtype_hint=dtype)
