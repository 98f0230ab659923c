# SPDX-License-Identifier: Apache-2.0
"""The table of ops and how one is used. A row serves eager and graph mode alike: what its results look like, how numpy
computes them, and how Leadline's engine does."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from leadline.tf import errors, memory, shapes
from leadline.tf.dtypes import DType
from leadline.tf.shapes import Dims
from leadline.tf.tensor import Tensor, dtype_mismatch, symbolic_error, wrap

Spec = tuple[DType, Dims]
log_placement = False
_SMALL, _LARGE = 1 << 16, 1 << 22  # bytes


class Call:
    """One use of an op, as `infer` sees it."""

    __slots__ = ("attrs", "dims", "dtypes", "name", "op", "specs", "symbolic", "values")

    def __init__(
        self, op: str, specs: Sequence[Spec], values: Sequence, attrs: dict, name: str, symbolic: bool
    ) -> None:
        self.op = op
        self.specs = specs
        self.dtypes = [spec[0] for spec in specs]
        self.dims = [spec[1] for spec in specs]
        self.values = values  # arrays; None where the value is not known yet
        self.attrs = attrs
        self.name = name
        self.symbolic = symbolic

    def refuse(self, message: str, kind: type = errors.InvalidArgumentError):
        """Raises with the op and its inputs in TensorFlow's manner."""
        if self.symbolic:
            inputs = ", ".join(shapes.text(dims) for dims in self.dims)
            message = f"{message} for '{{{{node {self.name}}}}} = {self.op}' with input shapes: {inputs}."
        else:
            message = f"{message} [Op:{self.op}] name: {self.name}"
        raise kind(message=message)

    def refuse_if(self, bad: bool, message: str) -> None:
        if bad:
            self.refuse(message)

    def same_dtypes(self, start: int = 0) -> DType:
        """The type that all inputs must have."""
        first = self.dtypes[start]
        for i, dtype in enumerate(self.dtypes[start + 1 :], start + 1):
            if dtype is not first:
                raise dtype_mismatch(self.op, i, first, dtype, self.name)
        return first

    def ints(self, index: int) -> tuple[int, ...] | None:
        """The numbers of an input such as a shape, or None while they are not known."""
        value = self.values[index]
        return None if value is None else tuple(int(size) for size in np.ravel(value))


class Row(NamedTuple):
    """Everything the rest asks about an op."""

    name: str  # TensorFlow's
    infer: Callable[[Call], list[Spec]]
    compute: Callable[..., Any]  # numpy arrays and attributes -> an array, or a tuple of them
    engine: Callable | None = None  # see engine.py; None: numpy computes it
    heavy: bool = False  # worth the engine when it comes alone
    prepare: Callable | None = None  # arrays and attributes -> those for the engine, or None: see engine.run_one
    view: bool = False  # the result shares the memory of the first input
    borrowed: bool = False  # the result is memory that is not the run's
    ufunc: np.ufunc | None = None  # computes it too, and may overwrite an input
    scratch: float | Callable[..., int] = 0  # what numpy takes beside the results: see scratch_bytes()
    rows: Callable | None = None  # how it is done by parts of the first axis; see tiles.py
    reads_shapes_only: bool = False  # the result depends on the input's shape, not on its data
    stateful: bool = False  # its result is not only a function of its inputs
    with_state: Callable | None = None  # computes it with the variables of a run, in place of `compute`
    writes: bool = False  # it changes variables, or prints


ROWS: dict[str, Row] = {}


def row(name: str, infer: Callable, compute: Callable, **options) -> Row:
    """Adds a row to the table."""
    assert name not in ROWS, name
    ROWS[name] = Row(name, infer, compute, **options)
    return ROWS[name]


def bytes_of(specs: Sequence[Spec]) -> int:
    """What results of these types and shapes take; unknown ones count as nothing."""
    return sum((shapes.element_count(dims) or 0) * dtype.size for dtype, dims in specs)


def apply(op: str, inputs: Sequence[Tensor], name: str | None = None, **attrs):
    """Uses an op: a value in eager mode, a node in a graph. One tensor, or a tuple of them."""
    from leadline.tf import graph

    if graph.building():
        return graph.current().add(ROWS[op], inputs, attrs, name)
    for tensor in inputs:
        if tensor._array is None:
            raise symbolic_error(tensor)
    results = run_eagerly(ROWS[op], inputs, attrs, name or "")
    return results[0] if len(results) == 1 else tuple(results)


def run_eagerly(row: Row, inputs: Sequence[Tensor], attrs: dict, name: str) -> list[Tensor]:
    if log_placement:
        print(f"Executing op {row.name} in device /job:localhost/replica:0/task:0/device:CPU:0", file=sys.stderr)
    arrays = [tensor._array for tensor in inputs]
    call = Call(row.name, [(t._dtype, t._dims) for t in inputs], arrays, attrs, name, False)
    specs = row.infer(call)
    if row.view:
        return [_view(inputs[0], array, specs[0][0]) for array in _several(row.compute(*arrays, **attrs))]
    charge = memory.Charge(bytes_of(specs), lambda: f"{row.name} with a result of shape {shapes.text(specs[0][1])}")
    scratch = memory.Charge(scratch_bytes(row, call.specs, specs, attrs), lambda: f"the workspace of {row.name}")
    results = compute(row, arrays, attrs, specs)
    del scratch
    made = []
    for (dtype, _), array in zip(specs, results):
        made.append(wrap(array, dtype, charge if len(specs) == 1 and charge.bytes >= array.nbytes else None))
    return made


def _view(source: Tensor, array: np.ndarray, dtype: DType) -> Tensor:
    charge = source._charge
    if charge is not None and charge.bytes > _LARGE and array.nbytes <= _SMALL:
        return wrap(array.copy(), dtype)  # a few elements should not keep a large tensor
    return Tensor(dtype, array.shape, array, charge)


def compute(row: Row, arrays: Sequence[np.ndarray], attrs: dict, specs: Sequence[Spec], alone: bool = True) -> list:
    """The results of one op as arrays of the types that `specs` promise."""
    if alone and row.heavy and row.engine is not None:
        from leadline.tf import engine

        computed = engine.run_one(row, arrays, attrs, specs)
        if computed is not None:
            return computed
    with np.errstate(all="ignore"):  # TensorFlow returns inf and nan without a warning
        results = _several(row.compute(*arrays, **attrs))
    results = [conform(array, dtype) for array, (dtype, _) in zip(results, specs)]
    return results if row.view else [_own(result, arrays) for result in results]


def _own(result: np.ndarray, arrays: Sequence[np.ndarray]) -> np.ndarray:
    """A result in memory of its own: some functions of numpy give a view, or their input, where that is enough."""
    shared = any(
        result is array or (result.base is not None and np.may_share_memory(result, array)) for array in arrays
    )
    return result.copy() if shared else result


def scratch_bytes(row: Row, ins: Sequence[Spec], outs: Sequence[Spec], attrs: dict) -> int:
    """What numpy takes beside the results while it computes an op: this many times the largest operand or all results,
    or what a function says."""
    if callable(row.scratch):
        return row.scratch(ins, outs, attrs) if all(shapes.is_known(dims) for _, dims in (*ins, *outs)) else 0
    return int(row.scratch * max([bytes_of(outs), *(bytes_of([spec]) for spec in ins)]))


def fold(row: Row, ins: Sequence[Spec], values: Sequence, attrs: dict, outs: Sequence[Spec], most: int) -> list | None:
    """Results of at most `most` elements each that can be known before a run, or None: of constants, or of shapes."""
    sizes = [shapes.element_count(dims) for _, dims in outs]
    if row.stateful or not outs or any(size is None or size > most for size in sizes):
        return None
    if row.reads_shapes_only:
        if not shapes.is_known(ins[0][1]):
            return None
        values = [np.broadcast_to(np.zeros(()), ins[0][1])]
    elif any(value is None or value.size > most for value in values):
        return None
    try:
        return compute(row, values, attrs, outs, alone=False)
    except errors.OpError:
        return None  # raised when the graph runs, as in TensorFlow


def conform(array, dtype: DType) -> np.ndarray:
    array = np.asarray(array)
    return array if array.dtype == dtype.numpy else array.astype(dtype.numpy)


def _several(results) -> Sequence:
    return results if isinstance(results, (tuple, list)) else (results,)
