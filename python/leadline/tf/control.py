# SPDX-License-Identifier: Apache-2.0
"""Control flow, printing, assertions and Module. Branches and loops need values: in a graph they are an error, in a
tf.function they make it run eagerly."""

from __future__ import annotations

import builtins
import sys

import numpy as np

from leadline.tf import graph as graphs
from leadline.tf.array import stack
from leadline.tf.convert import constant, convert_to_tensor
from leadline.tf.errors import InvalidArgumentError
from leadline.tf.functions import leaves_of, map_leaves
from leadline.tf.graph import known_value
from leadline.tf.op import apply, row
from leadline.tf.tensor import NeedsValueError, Tensor
from leadline.tf.variables import Variable


def cond(pred, true_fn=None, false_fn=None, name=None):
    """true_fn() or false_fn()."""
    value = known_value(pred) if isinstance(pred, Tensor) else pred
    if value is None:
        raise NeedsValueError(
            f"tf.cond on '{pred.name}' needs its value; leadline.tf has no branches in graphs: use tf.where"
        )
    return true_fn() if bool(np.asarray(value)) else false_fn()


def while_loop(
    cond,
    body,
    loop_vars,
    shape_invariants=None,
    parallel_iterations=10,
    back_prop=True,
    swap_memory=False,
    maximum_iterations=None,
    name=None,
):
    """Repeats body(*loop_vars) while cond(*loop_vars) holds."""
    if graphs.building():
        raise NeedsValueError("leadline.tf has no loops in graphs: tf.while_loop runs eagerly only")
    values = list(loop_vars)
    rounds = 0
    while builtins.bool(cond(*values)) and (maximum_iterations is None or rounds < int(maximum_iterations)):
        result = body(*values)
        values = list(result) if isinstance(result, (list, tuple)) else [result]
        rounds += 1
    return type(loop_vars)(values) if isinstance(loop_vars, list) else tuple(values)


def map_fn(fn, elems, dtype=None, fn_output_signature=None, name=None, **ignored):
    """fn of each part along the first axis, stacked."""
    parts = leaves_of(map_leaves(convert_to_tensor, elems))
    results = [
        fn(map_leaves(lambda leaf, i=i: leaf[i], map_leaves(convert_to_tensor, elems))) for i in range(len(parts[0]))
    ]
    columns = list(zip(*(leaves_of(result) for result in results)))
    stacked = iter([stack(list(column)) for column in columns])
    return map_leaves(lambda _: next(stacked), results[0])


vectorized_map = map_fn


def numpy_function(func, inp, Tout, stateful=True, name=None):
    """A Python function of arrays. Eager only."""
    if graphs.building():
        raise NeedsValueError("leadline.tf runs tf.numpy_function and tf.py_function eagerly only")
    return map_leaves(constant, func(*(np.asarray(convert_to_tensor(item)) for item in inp)))


def py_function(func, inp, Tout, name=None):
    """A Python function of tensors. Eager only."""
    if graphs.building():
        raise NeedsValueError("leadline.tf runs tf.numpy_function and tf.py_function eagerly only")
    return map_leaves(convert_to_tensor, func(*(convert_to_tensor(item) for item in inp)))


def print(*inputs, output_stream=None, sep=" ", end="\n", summarize=3, name=None, **ignored):
    """Writes values to stderr, or to output_stream; in a graph when it runs."""
    tensors = [item for item in inputs if isinstance(item, Tensor)]
    stream = sys.stderr if output_stream is None else output_stream
    if graphs.building():
        words = tuple(None if isinstance(item, Tensor) else str(item) for item in inputs)
        return apply("PrintV2", tensors, name or "PrintV2", words=words, sep=sep, end=end, stream=stream)
    _write([item._array if isinstance(item, Tensor) else item for item in inputs], sep, end, stream)
    return None


def _write(items, sep: str, end: str, stream) -> None:
    file = {"stderr": sys.stderr, "stdout": sys.stdout}.get(stream, stream) if isinstance(stream, str) else stream
    builtins.print(*(_text(item) for item in items), sep=sep, end=end, file=file)


def _text(item) -> str:
    return str(item).replace("\n ", "\n ") if isinstance(item, np.ndarray) else str(item)


def _print_arrays(state, *arrays, words, sep, end, stream):
    values = iter(arrays)
    _write([next(values) if word is None else word for word in words], sep, end, stream)
    return []


row("PrintV2", lambda call: [], lambda *a, **k: (), stateful=True, with_state=_print_arrays, writes=True)


class Module:
    """Something that holds variables and other modules in its attributes."""

    def __init__(self, name: str | None = None) -> None:
        self._name = name or type(self).__name__.lower()

    @property
    def name(self) -> str:
        return self._name

    @property
    def name_scope(self):
        return graphs.name_scope(self._name)

    def _walk(self, kind, seen=None) -> list:
        seen = {id(self)} if seen is None else seen
        found = []
        for key in sorted(vars(self)):
            for leaf in leaves_of(vars(self)[key]):
                if id(leaf) in seen:
                    continue
                seen.add(id(leaf))
                if isinstance(leaf, kind):
                    found.append(leaf)
                if isinstance(leaf, Module):
                    found += leaf._walk(kind, seen)
        return found

    @property
    def variables(self) -> tuple:
        return tuple(self._walk(Variable))

    @property
    def trainable_variables(self) -> tuple:
        return tuple(variable for variable in self.variables if variable.trainable)

    @property
    def non_trainable_variables(self) -> tuple:
        return tuple(variable for variable in self.variables if not variable.trainable)

    @property
    def submodules(self) -> tuple:
        return tuple(self._walk(Module))

    @classmethod
    def with_name_scope(cls, method):
        def scoped(self, *args, **kwargs):
            with self.name_scope:
                return method(self, *args, **kwargs)

        return scoped


def _assertion(name: str, holds, words: str):
    def check(x, y, message=None, summarize=None, name=None):
        a, b = convert_to_tensor(x), convert_to_tensor(y)
        left, right = known_value(a), known_value(b)
        if left is None or right is None:
            return  # checked where values are known
        if not np.all(holds(left, right)):
            raise InvalidArgumentError(
                message=f"{message or ''}\nCondition x {words} y did not hold.\nx = {left}\ny = {right}".strip()
            )
        return

    check.__name__ = name
    return check


assert_equal = _assertion("assert_equal", np.equal, "==")
assert_none_equal = _assertion("assert_none_equal", np.not_equal, "!=")
assert_less = _assertion("assert_less", np.less, "<")
assert_less_equal = _assertion("assert_less_equal", np.less_equal, "<=")
assert_greater = _assertion("assert_greater", np.greater, ">")
assert_greater_equal = _assertion("assert_greater_equal", np.greater_equal, ">=")


def assert_rank(x, rank, message=None, name=None) -> None:
    found = convert_to_tensor(x).ndim
    if found is not None and found != int(rank):
        raise ValueError(f"{message or ''} Tensor must have rank {int(rank)}. Received rank {found}".strip())


def check_numerics(tensor, message, name=None) -> Tensor:
    """The tensor; an error when it has inf or nan."""
    x = convert_to_tensor(tensor)
    value = known_value(x)
    if value is not None and not np.isfinite(value).all():
        kind = "NaN" if np.isnan(value).any() else "Inf"
        raise InvalidArgumentError(message=f"{message} : Tensor had {kind} values")
    return x
