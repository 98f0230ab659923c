# SPDX-License-Identifier: Apache-2.0
"""compat.v1: sessions, placeholders and related functions."""

from __future__ import annotations

import threading

import numpy as np

from leadline.tf import graph as graphs
from leadline.tf.convert import convert_to_tensor
from leadline.tf.dtypes import as_dtype
from leadline.tf.errors import FailedPreconditionError, InvalidArgumentError
from leadline.tf.graph import Graph, Operation
from leadline.tf.op import Call, row
from leadline.tf.run import check_feed, run
from leadline.tf.shapes import TensorShape
from leadline.tf.tensor import Tensor


def _not_fed(*inputs, name, **attrs):
    raise InvalidArgumentError(
        message=f"You must feed a value for placeholder tensor '{name}' with dtype {attrs['dtype'].name}"
        f" and shape {TensorShape(attrs['dims'])}"
    )


def _infer_placeholder(call: Call):
    return [(call.attrs["dtype"], call.attrs["dims"])]


def _no_value(state, **attrs):
    _not_fed(**attrs)


row("Placeholder", _infer_placeholder, _not_fed, stateful=True, with_state=_no_value, borrowed=True)
row(
    "PlaceholderWithDefault",
    lambda call: [(call.dtypes[0], call.attrs["dims"])],
    lambda x, *, dims: x,
    view=True,
    stateful=True,
)


def placeholder(dtype, shape=None, name=None) -> Tensor:
    """A tensor whose value is fed when the graph runs."""
    if not graphs.building():
        raise RuntimeError("tf.placeholder() is not compatible with eager execution.")
    graph = graphs.current()
    name = name or "Placeholder"
    attrs = {"dtype": as_dtype(dtype), "dims": TensorShape(shape)._dims}
    tensor = graph.add(graphs.op_module.ROWS["Placeholder"], [], attrs | {"name": ""}, name)
    tensor.op.attrs["name"] = tensor.op.name
    return tensor


def placeholder_with_default(input, shape, name=None) -> Tensor:
    from leadline.tf.op import apply

    return apply("PlaceholderWithDefault", [convert_to_tensor(input)], name, dims=TensorShape(shape)._dims)


class _Sessions(threading.local):
    def __init__(self) -> None:
        self.stack: list[Session] = []


_sessions = _Sessions()


def current_session() -> Session | None:
    return _sessions.stack[-1] if _sessions.stack else None


class Session:
    """Runs a graph, or parts of it. Holds the values of the graph's variables.

    run() of an eager tensor returns its value: TensorFlow 2 refuses that, programs of TensorFlow 1 expect it.
    """

    def __init__(self, target: str = "", graph: Graph | None = None, config=None) -> None:
        if graph is not None and not isinstance(graph, Graph):
            raise TypeError(f'Argument `graph` must be a tf.Graph, but got "{type(graph).__name__}"')
        self._graph = graph if graph is not None else graphs.current()
        self._closed = False
        self._variables: dict = {}
        self._contexts: list = []

    @property
    def graph(self) -> Graph:
        return self._graph

    @property
    def graph_def(self):
        raise AttributeError("leadline.tf has no graph_def: graphs of leadline.tf are not written as protocol buffers")

    def run(self, fetches, feed_dict=None, options=None, run_metadata=None):
        """The values of `fetches`: a tensor, an operation (None), a name, or lists, tuples and dicts of them.

        The whole run is planned first. What does not fit the budget is run by blocks of rows, or refused with a
        BudgetError before anything large is allocated.
        """
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")
        feeds = self._feeds(feed_dict or {})
        leaves: list = []
        _flatten(fetches, leaves)
        wanted = [self._element(leaf) for leaf in leaves]
        symbolic = [item for item in wanted if not isinstance(item, np.ndarray)]
        values = run(symbolic, feeds, self) if symbolic else {}
        found = [_fetched(item, values) for item in wanted]
        return _rebuild(fetches, iter(found))

    def partial_run(self, *args, **options):
        raise NotImplementedError("leadline.tf has no partial_run; call run() with what is needed")

    def make_callable(self, fetches, feed_list=None, accept_options=False):
        """A function of the fed values."""
        return lambda *values: self.run(fetches, dict(zip(feed_list or (), values)))

    def _feeds(self, feed_dict: dict) -> dict[Tensor, np.ndarray]:
        feeds = {}
        for key, value in feed_dict.items():
            tensor = (
                self._graph.as_graph_element(key) if isinstance(key, str) else getattr(key, "_as_graph_tensor", key)
            )
            if not isinstance(tensor, Tensor) or tensor._array is not None:
                raise TypeError(f"Cannot interpret feed_dict key as Tensor: {key!r} is not a tensor of this graph.")
            if isinstance(value, Tensor):
                if value._array is None:
                    raise TypeError(
                        "The value of a feed cannot be a tf.Tensor object. Acceptable feed values include Python "
                        "scalars, strings, lists, numpy ndarrays, or TensorHandles."
                    )
                value = value._array
            feeds[tensor] = check_feed(tensor, value)
        return feeds

    def _element(self, item):
        """A tensor or operation of the graph; an eager tensor is its value."""
        if isinstance(item, str):
            try:
                item = self._graph.as_graph_element(item)
            except (KeyError, ValueError) as error:
                raise ValueError(
                    f"Fetch argument {item!r} cannot be interpreted as a Tensor. ({error.args[0]})"
                ) from None
        if hasattr(item, "_as_fetch"):
            item = item._as_fetch(self)  # Variable
        if isinstance(item, Tensor) and item._array is not None:
            return np.asarray(item)
        if isinstance(item, np.ndarray):
            return item
        if not isinstance(item, (Tensor, Operation)):
            raise TypeError(
                f"Fetch argument {item!r} has invalid type {type(item).__name__!r}, must be a string or Tensor."
            )
        graph = item.op.graph if isinstance(item, Tensor) else item.graph
        if graph is not self._graph:
            raise ValueError(
                f"Fetch argument {item!r} cannot be interpreted as a Tensor. (Tensor {item!r} is not an element of "
                "this graph.)"
            )
        return item

    def read(self, variable) -> np.ndarray:
        if variable not in self._variables:
            raise FailedPreconditionError(
                message=f"Could not find variable {variable.op_name}. This could mean that the variable "
                "has not been initialized: run tf.compat.v1.global_variables_initializer() first."
            )
        return self._variables[variable][0]

    def assign(self, variable, array: np.ndarray) -> None:
        from leadline.tf import memory

        charge = memory.Charge(array.nbytes, lambda: f"variable {variable.op_name}")
        self._variables[variable] = (array, charge)

    def close(self) -> None:
        """Releases what the session holds. run() is an error afterwards."""
        self._closed = True
        self._variables.clear()

    def as_default(self):
        """A context in which Tensor.eval() and Operation.run() use this session."""
        return _AsDefault(self)

    def __enter__(self) -> Session:
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")
        context = self._graph.as_default()
        context.__enter__()
        self._contexts.append(context)
        _sessions.stack.append(self)
        return self

    def __exit__(self, *error) -> None:
        _sessions.stack.remove(self)
        self._contexts.pop().__exit__(*error)
        self.close()

    def list_devices(self) -> list:
        from leadline.tf.config import list_logical_devices

        return list_logical_devices()


class InteractiveSession(Session):
    """A session that is the default one until it is closed."""

    def __init__(self, target: str = "", graph: Graph | None = None, config=None) -> None:
        super().__init__(target, graph, config)
        _sessions.stack.append(self)

    def close(self) -> None:
        if self in _sessions.stack:
            _sessions.stack.remove(self)
        super().close()


class _AsDefault:
    def __init__(self, session: Session) -> None:
        self._session = session

    def __enter__(self) -> Session:
        _sessions.stack.append(self._session)
        return self._session

    def __exit__(self, *error) -> None:
        _sessions.stack.remove(self._session)


def _fetched(item, values: dict):
    if isinstance(item, Operation):
        return None
    array = item if isinstance(item, np.ndarray) else values[item]
    return array if array.ndim else array[()]


def _flatten(fetches, leaves: list) -> None:
    if fetches is None:
        raise TypeError('Argument `fetch` = None has invalid type "NoneType". Cannot be None')
    if isinstance(fetches, dict):
        for value in fetches.values():
            _flatten(value, leaves)
    elif isinstance(fetches, (list, tuple)):
        for value in fetches:
            _flatten(value, leaves)
    else:
        leaves.append(fetches)


def _rebuild(fetches, found):
    if isinstance(fetches, dict):
        return type(fetches)((key, _rebuild(value, found)) for key, value in fetches.items())
    if isinstance(fetches, (list, tuple)):
        parts = [_rebuild(value, found) for value in fetches]
        if isinstance(fetches, list):
            return parts
        return type(fetches)(*parts) if hasattr(fetches, "_fields") else tuple(parts)
    return next(found)
