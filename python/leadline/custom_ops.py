# SPDX-License-Identifier: Apache-2.0
"""Ops of your own: give a custom op of a model an implementation in Python.

    @leadline.register_op("Scale", infer=lambda op, inputs: inputs[0].shape)
    def scale(op, inputs, outputs):
        np.multiply(inputs[0], op.attributes["factor"], out=outputs[0])

or, with state, as a class:

    @leadline.register_op("Total")
    class Total(leadline.CustomOp):
        total = 0.0

        def infer(self, inputs):
            return inputs[0].shape

        def run(self, inputs, outputs):
            self.total += inputs[0].sum()
            outputs[0][...] = self.total

Registrations apply to the whole process. An interpreter looks its custom ops up once, when it first plans
(allocate_tensors(), plan(), resize_tensor_input()), and keeps what it found; registering a name again or unregistering
it concerns interpreters that plan afterwards. A registered op comes before Leadline's own custom op of that name;
builtin ops cannot be replaced.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from leadline import _leadline
from leadline._leadline import DType, InvalidArgumentError
from leadline._native import tensors
from leadline._native.tensors import Array

__all__ = ["CustomOp", "Operand", "register_op", "registered_ops", "unregister_op"]

# What infer comes to: shapes of the outputs, bytes that are known already, scratch bytes, bytes to keep.
_Answer: TypeAlias = "tuple[list[tuple[int, ...]], list[int], int, int]"


class Operand:
    """An input or output of a node before it runs.

    Attributes:
      name: the tensor's name.
      shape: a tuple; of an output as the file has it.
      dtype: a numpy dtype (bytes for strings).
      scales, zero_points: lists, empty where the tensor is not quantized.
      quantized_dimension: the one that several scales belong to.
      quantization: (scale, zero point) where there is one of each, else (0.0, 0).
      data: the contents where they are known (constants; everything while infer is called during a run), else None.
        Valid during the call only.
    """

    __slots__ = ("data", "dtype", "name", "quantized_dimension", "scales", "shape", "spec", "zero_points")

    def __init__(self, native: _leadline.Operand):
        info = native.info
        self.spec = tensors.TensorSpec.of(info)
        self.name = info.name
        self.shape = info.shape
        self.dtype = self.spec.dtype
        self.scales = info.scales
        self.zero_points = info.zero_points
        self.quantized_dimension = info.quantized_dimension
        self.data = None if native.memory is None else tensors.to_numpy(native.memory, self.spec)

    @property
    def quantization(self) -> tuple[float, int]:
        if len(self.scales) != 1:
            return 0.0, 0
        return self.scales[0], self.zero_points[0] if self.zero_points else 0

    def __repr__(self) -> str:
        return f"<leadline.Operand '{self.name}': {self.dtype}{list(self.shape)}>"


class CustomOp:
    """One node of a registered op. An object is made for each node when an interpreter plans, and again when it plans
    for other input shapes; attributes of the object are the place for state between runs.

    A subclass defines `run`, and as a rule `infer`. What these raise comes out of the interpreter's call unchanged,
    with a note that names the node; the interpreter can be used again. They run under Python's lock, on the thread that
    called the interpreter, and must not call that interpreter.

    Attributes:
      op: the custom name.
      index: index of the node.
      name: of its first output.
      version: of the op.
      options: the node's custom options, bytes.
      outputs: an Operand for each output, once infer is called.
      scratch, kept: arrays of uint8 during run: the workspace, and the memory kept between runs.
    """

    def __init__(self) -> None:
        """For what a node needs once; op, index, name, version and options are set already."""

    op: str
    index: int
    name: str
    version: int
    options: bytes
    outputs: tuple[Operand, ...]
    scratch: Array
    kept: Array
    _input_specs: list[tensors.TensorSpec | None]
    _early: list[Array] | None

    # Not in __init__, which is the user's and need not call this one.
    def __new__(cls, op: str = "", index: int = 0, name: str = "", version: int = 1, options: bytes = b"") -> CustomOp:
        self = super().__new__(cls)
        self.op, self.index, self.name, self.version, self.options = op, index, name, version, options
        self.outputs, self._input_specs, self._early = (), [], None
        self.scratch = self.kept = np.empty(0, np.uint8)
        return self

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: op {self.op!r}, node {self.index} {self.name!r}>"

    @property
    def attributes(self) -> Any:
        """The options as the FlexBuffers document they are by convention: a dict; {} when they are none."""
        decoded = _leadline.decode_options(self.options)
        return {} if decoded is None else decoded

    infer: Callable[..., Any] | None = None
    """infer(self, inputs) checks the inputs (Operands; None: absent) and returns the shape of each output: a list of
    shapes, or one shape where there is one output. A shape may be a pair (shape, dtype): the dtype must then be the
    model's. None: the shapes depend on data that is not there yet (some Operand.data is None); infer is called again
    during the run.

    Without infer, and for string outputs, run is called as soon as the inputs have data, with outputs=None, and the
    arrays it returns give the shapes; the plan is not complete before the run then.
    """

    def run(self, inputs: Sequence[Array | None], outputs: Sequence[Array | None] | None) -> Any:
        """Computes the outputs. The arrays are views of the planned memory, inputs read-only, and valid during the call
        only: keeping one is an error. Either writes to `outputs` and returns None, or returns the array (or a list of
        arrays), which are copied. Types without a numpy view (strings, less than 8 bits) are None in `outputs`."""
        raise NotImplementedError(f"{type(self).__name__} has no run()")

    def scratch_bytes(self, inputs: Sequence[Operand | None]) -> int:
        """Bytes of workspace for a run; called after infer."""
        del inputs
        return 0

    def persistent_bytes(self, inputs: Sequence[Operand | None]) -> int:
        """Bytes of memory to keep between runs, zero at first, counted by the plan; called after infer."""
        del inputs
        return 0

    def reset(self) -> None:
        """reset_all_variables(): back to the state before the first run. `kept` is cleared by itself."""

    # What the engine calls -----------------------------------------------------------------------

    def _infer(self, inputs: list[Any], outputs: list[Any]) -> _Answer | None:
        described = [None if native is None else Operand(native) for native in inputs]
        self._input_specs = [None if operand is None else operand.spec for operand in described]
        self.outputs = tuple(Operand(native) for native in outputs)
        self._early = None
        try:
            if self.infer is None or self._has_strings():
                return self._run_early(described)
            answer = self.infer(described)
            if answer is None:
                if all(operand is None or operand.data is not None for operand in described):
                    raise InvalidArgumentError("infer returned None, though the data of all inputs is known")
                return None
            shapes = self._shapes(answer)
            return shapes, [0] * len(shapes), *self._footprint(described)
        finally:
            for operand in described:
                if operand is not None:
                    operand.data = None

    def _has_strings(self) -> bool:
        """The sizes of such outputs are those of what run returns, as without infer."""
        return any(output.spec.type is DType.STRING for output in self.outputs)

    def _run_early(self, inputs: list[Operand | None]) -> _Answer | None:
        if any(operand is not None and operand.data is None for operand in inputs):
            return None
        scratch, kept = self._footprint(inputs)
        if kept or scratch:
            raise InvalidArgumentError("scratch and kept memory need an infer that returns the shapes of the outputs")
        results = self._arrays(self.run([None if operand is None else operand.data for operand in inputs], None))
        early = []
        for output, result in zip(self.outputs, results, strict=True):
            output.spec.shape = np.shape(result)
            # A copy: the result may be a view of an input, which is valid during this call only.
            early.append(_to_bytes(result, output).copy())
        self._early = early
        return [output.spec.shape for output in self.outputs], [data.nbytes for data in early], 0, 0

    def _footprint(self, inputs: list[Operand | None]) -> tuple[int, int]:
        sizes = operator.index(self.scratch_bytes(inputs)), operator.index(self.persistent_bytes(inputs))
        if min(sizes) < 0:
            raise InvalidArgumentError(
                f"scratch_bytes is {sizes[0]} and persistent_bytes {sizes[1]}, expected at least 0"
            )
        return sizes

    def _shapes(self, answer: Any) -> list[tuple[int, ...]]:
        one = len(self.outputs) == 1
        answers = [answer] if one and (_is_shape(answer) or _is_pair(answer)) else list(answer)
        if len(answers) != len(self.outputs):
            raise InvalidArgumentError(
                f"infer returned {len(answers)} shapes, the node has {len(self.outputs)} outputs"
            )
        shapes = []
        for i, (given, output) in enumerate(zip(answers, self.outputs, strict=True)):
            if _is_pair(given):
                given, dtype = given
                if np.dtype(dtype) != output.dtype:
                    raise InvalidArgumentError(
                        f"infer returned dtype {np.dtype(dtype)} for output {i} '{output.name}', "
                        f"the model has {output.dtype}"
                    )
            if not _is_shape(given) or any(operator.index(size) < 0 for size in given):
                raise InvalidArgumentError(f"infer returned {given!r} for output {i} '{output.name}', expected a shape")
            output.spec.shape = tuple(operator.index(size) for size in given)
            shapes.append(output.spec.shape)
        return shapes

    def _arrays(self, results: Any) -> list[Any]:
        """What run returned, one array for each output."""
        if isinstance(results, (list, tuple)) and not (len(self.outputs) == 1 and len(results) != 1):
            arrays = list(results)
        else:
            arrays = [] if results is None else [results]
        if len(arrays) != len(self.outputs):
            raise InvalidArgumentError(f"run returned {len(arrays)} arrays, the node has {len(self.outputs)} outputs")
        return arrays

    def _run(self, inputs: list[Any], outputs: list[Any], scratch: Any, kept: Any) -> None:
        early, self._early = self._early, None
        if early is None:
            if self.infer is None or self._has_strings():
                # All inputs are constants, and the results that planning got were used by an earlier run.
                results = self._arrays(self.run(self._views(inputs), None))
                early = [_to_bytes(result, output) for result, output in zip(results, self.outputs, strict=True)]
            else:
                early = self._run_in_place(inputs, outputs, scratch, kept)
        for data, memory in zip(early, outputs, strict=False):  # none, where run wrote to the outputs
            if data.nbytes != memory.nbytes:
                raise InvalidArgumentError(f"run returned {data.nbytes} bytes where {memory.nbytes} were planned")
            tensors.as_array(memory, memory.nbytes, np.uint8)[...] = data.reshape(-1).view(np.uint8)

    def _views(self, inputs: list[Any]) -> list[Array | None]:
        known = zip(inputs, self._input_specs, strict=True)
        return [None if m is None or spec is None else tensors.to_numpy(m, spec) for m, spec in known]

    def _run_in_place(self, inputs: list[Any], outputs: list[Any], scratch: Any, kept: Any) -> list[Array]:
        self.scratch = tensors.as_array(scratch, scratch.nbytes, np.uint8)
        self.kept = tensors.as_array(kept, kept.nbytes, np.uint8)
        views = [
            tensors.to_numpy(m, o.spec) if o.spec.plain else None for m, o in zip(outputs, self.outputs, strict=True)
        ]
        try:
            results = self.run(self._views(inputs), views)
            if results is None:
                if any(view is None for view in views):
                    raise InvalidArgumentError("run returned None, but there are outputs that have no numpy view")
                return []
            return [
                _to_bytes(result, output) for result, output in zip(self._arrays(results), self.outputs, strict=True)
            ]
        finally:
            self.scratch = self.kept = np.empty(0, np.uint8)
            for view in views:  # one that a traceback keeps must not write to memory that is used again
                if view is not None:
                    view.flags.writeable = False


def _is_shape(value: Any) -> bool:
    return isinstance(value, (tuple, list, np.ndarray)) and all(isinstance(size, (int, np.integer)) for size in value)


def _is_pair(value: Any) -> bool:
    """(shape, dtype)"""
    return isinstance(value, (tuple, list)) and len(value) == 2 and _is_shape(value[0]) and not _is_shape(value[1])


def _to_bytes(result: Any, output: Operand) -> Array:
    array = np.asarray(result)
    expected = output.spec
    if expected.type is not DType.STRING and array.dtype != expected.dtype:
        raise InvalidArgumentError(
            f"run returned dtype {array.dtype} for output '{output.name}', the model has {expected.dtype}"
        )
    if array.shape != tuple(expected.shape):
        raise InvalidArgumentError(
            f"run returned shape {list(array.shape)} for output '{output.name}', planned is {list(expected.shape)}"
        )
    return tensors.to_bytes(array, expected)


def _number_or_function(value: int | Callable[..., Any], what: str) -> Callable[..., Any]:
    if callable(value):
        return value
    size = operator.index(value)
    if size < 0:
        raise InvalidArgumentError(f"{what} should be a number of bytes or a function; got {size}")
    return lambda self, inputs: size


def register_op(
    name: str,
    run: Callable[..., Any] | type[CustomOp] | None = None,
    *,
    infer: Callable[..., Any] | None = None,
    scratch: int | Callable[..., int] = 0,
    kept: int | Callable[..., int] = 0,
) -> Any:
    """Registers (or replaces) the implementation of custom op `name`, for interpreters that plan from now on.

    Args:
      name: the custom name in the model, also that of a Flex op ("FlexErf").
      run: run(op, inputs, outputs), or a subclass of CustomOp. Without it register_op() is a decorator for one.
      infer: infer(op, inputs), see CustomOp.infer. `op` is the CustomOp of the node; attributes set on it are kept.
      scratch, kept: bytes, or functions (op, inputs) that give them; see CustomOp.scratch_bytes and persistent_bytes.

    Returns `run`, or the decorator.
    """
    if not isinstance(name, str) or not name:
        raise InvalidArgumentError(f"the name of an op should be a text that is not empty; got {name!r}")
    if run is None:
        return lambda decorated: register_op(name, decorated, infer=infer, scratch=scratch, kept=kept)
    if isinstance(run, type):
        if not issubclass(run, CustomOp):
            raise InvalidArgumentError(f"{run.__name__} should be a subclass of leadline.CustomOp, or a function")
        if infer is not None or scratch or kept:
            raise InvalidArgumentError(f"infer, scratch and kept are methods of the class {run.__name__}")
        cls = run
    elif callable(run):
        members: dict[str, Callable[..., Any]] = {"run": lambda self, inputs, outputs: run(self, inputs, outputs)}
        if infer is not None:
            members["infer"] = lambda self, inputs: infer(self, inputs)
        scratch_of, kept_of = _number_or_function(scratch, "scratch"), _number_or_function(kept, "kept")
        members["scratch_bytes"] = lambda self, inputs: scratch_of(self, inputs)
        members["persistent_bytes"] = lambda self, inputs: kept_of(self, inputs)
        cls = type(name, (CustomOp,), members)
    else:
        raise InvalidArgumentError(f"run should be a function or a subclass of CustomOp; got {type(run).__name__}")

    def make(op: str, index: int, node_name: str, version: int, options: bytes) -> CustomOp:
        self: CustomOp = cls.__new__(cls, op, index, node_name, version, options)
        cls.__init__(self)
        return self

    _leadline.register_op(name, make)
    return run


def unregister_op(name: str) -> bool:
    """Takes a registered op away again; False when there was none of this name. Interpreters that planned with it keep
    it."""
    return _leadline.unregister_op(name)


def registered_ops() -> list[str]:
    """Names of the registered ops, sorted."""
    return _leadline.registered_ops()
