# SPDX-License-Identifier: Apache-2.0
"""Keras layers of your own: say what they compute in ops of the .tflite format, and models that have them convert.

    @leadline.register_keras_layer("Scale")
    def scale(builder, layer, x):
        return builder.node("MUL", [x, builder.constant("gamma", layer.weights[0])])

    content = leadline.lite.TFLiteConverter.from_keras_model(model).convert()

Registrations apply to the whole process and to conversions that begin afterwards. They come before Leadline's own
layers. What the function raises ends the conversion as a leadline.Error that names the layer and its place in the
model; the exception is its __cause__.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import numpy as np

from leadline import _leadline
from leadline._leadline import DType, InvalidArgumentError
from leadline._native import tensors
from leadline._native.tensors import Array
from leadline.model_builder import dtype_of

__all__ = [
    "KerasLayer",
    "KerasLayerBuilder",
    "KerasTensor",
    "KerasWeight",
    "register_keras_layer",
    "registered_keras_layers",
    "unregister_keras_layer",
]


class KerasTensor:
    """A tensor of the model that is being converted.

    Attributes:
      index: its number.
      name: as it will be called in the file.
      dtype: a numpy dtype.
      shape: a tuple; None where a size is not known before a run.
    """

    __slots__ = ("_call", "dtype", "index", "name", "shape")

    def __init__(self, call: _leadline.KerasLayerCall, index: int) -> None:
        self._call = call
        self.index = index
        self.name, dtype, self.shape = call.tensor(index)
        self.dtype = np.dtype(tensors.numpy_type(dtype))

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __repr__(self) -> str:
        sizes = ", ".join("?" if size is None else str(size) for size in self.shape)
        return f"<leadline.KerasTensor '{self.name}': {self.dtype}[{sizes}]>"


class KerasWeight:
    """A variable of a layer. Its values are read when numpy asks for them (np.asarray(weight)), not before; passed to
    KerasLayerBuilder.constant() they go from the model's file to the converted one.

    Attributes:
      name: as the layer called it; empty in .keras files, which do not record it.
      shape, dtype, nbytes: as of an array.
    """

    __slots__ = ("_native", "dtype", "name", "shape")

    def __init__(self, native: _leadline.KerasWeight) -> None:
        self._native = native
        self.name = native.name
        self.shape = native.shape
        self.dtype = np.dtype(tensors.numpy_type(native.dtype))

    @property
    def nbytes(self) -> int:
        return self._native.nbytes

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def T(self) -> KerasWeight:  # numpy's name
        return self.transpose()

    def transpose(self, *axes: int | Sequence[int]) -> KerasWeight:
        """As numpy's; nothing is read."""
        order = [axis + self.ndim if axis < 0 else axis for axis in _flat(axes)] or list(reversed(range(self.ndim)))
        return KerasWeight(self._native.transposed(order))

    def reshape(self, *shape: int | Sequence[int]) -> KerasWeight:
        """As numpy's; nothing is read."""
        sizes = _flat(shape)
        if sizes.count(-1) == 1:
            others = math.prod(size for size in sizes if size != -1)
            sizes[sizes.index(-1)] = math.prod(self.shape) // others if others else 0
        return KerasWeight(self._native.reshaped(sizes))

    def astype(self, dtype: Any) -> KerasWeight:
        """As numpy's; nothing is read."""
        return KerasWeight(self._native.converted(dtype_of(dtype)))

    def numpy(self) -> Array:
        """The values."""
        return np.frombuffer(self._native.read(), self.dtype).reshape(self.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        del copy
        values = self.numpy()
        return values if dtype is None else values.astype(dtype, copy=False)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a weight without dimensions has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<leadline.KerasWeight '{self.name}': {self.dtype}{list(self.shape)}>"


class _Weights(Sequence[KerasWeight]):
    """Weights by number and, where the file has names, by name."""

    def __init__(self, natives: Sequence[_leadline.KerasWeight]) -> None:
        self._weights = [KerasWeight(native) for native in natives]

    def __len__(self) -> int:
        return len(self._weights)

    def __iter__(self) -> Iterator[KerasWeight]:
        return iter(self._weights)

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return self._weights[key]
        for weight in self._weights:
            if weight.name == key:
                return weight
        names = ", ".join(repr(weight.name) for weight in self._weights if weight.name)
        raise KeyError(f"no weight is called {key!r}; " + (f"there are {names}" if names else "the file has no names"))

    def __repr__(self) -> str:
        return repr(self._weights)


class KerasLayer:
    """One call of a layer in the model.

    Attributes:
      name, class_name: as Keras has them.
      path: in the weights of the file, "layers/my_layer".
      config: a dict, what get_config() returned.
      weights: the layer's own variables in the order in which it made them, trainable ones first; also by name where
        the file has names.
      mask: the mask [batch, time] that comes with the first input, a KerasTensor or None. It is not passed on.
    """

    def __init__(self, call: _leadline.KerasLayerCall) -> None:
        self._call = call
        self.name = call.name
        self.class_name = call.class_name
        self.path = call.path
        import json  # takes time, and only conversions need it

        self.config: dict[str, Any] = json.loads(call.config)
        self.weights = _Weights(call.weights(""))
        self.mask = None if call.mask < 0 else KerasTensor(call, call.mask)

    def weights_of(self, part: str) -> Sequence[KerasWeight]:
        """The variables of a layer inside this one, by the attribute that holds it ("dense", "blocks/dense_1")."""
        return _Weights(self._call.weights(part))

    def __repr__(self) -> str:
        return f"<leadline.KerasLayer '{self.name}' ({self.class_name})>"


class KerasLayerBuilder:
    """Writes what a layer computes into the model that is being converted. Valid while its function is called."""

    def __init__(self, call: _leadline.KerasLayerCall) -> None:
        self._call = call

    def constant(self, name: str, value: Any, dtype: Any = None) -> KerasTensor:
        """A tensor with the contents of the array `value`. Those of a KerasWeight are not read yet."""
        if isinstance(value, KerasWeight):
            weight = value if dtype is None else value.astype(dtype)
            return KerasTensor(self._call, self._call.add_weight(name, weight._native))
        array = np.asarray(value)
        if dtype is None and array.dtype == np.float64 and not isinstance(value, (np.ndarray, np.generic)):
            array = array.astype(np.float32)  # numbers of Python's have no type; Keras computes in float32
        elif dtype is None and array.dtype == np.int64 and not isinstance(value, (np.ndarray, np.generic)):
            array = array.astype(np.int32)
        kind = dtype_of(array.dtype if dtype is None else dtype)
        spec = tensors.TensorSpec(0, name, kind, np.dtype(tensors.numpy_type(kind)), array.shape, False)
        if dtype is not None and kind is not DType.STRING:
            array = array.astype(spec.dtype)
        data = tensors.to_bytes(array, spec).reshape(-1).view(np.uint8)
        return KerasTensor(self._call, self._call.add_constant(name, kind, list(array.shape), data))

    def node(
        self,
        op: str,
        inputs: Sequence[Any],
        outputs: int = 1,
        *,
        name: str = "",
        dtype: Any = None,
        shape: Any = None,
        custom_options: bytes = b"",
        version: int = 0,
        **attributes: Any,
    ) -> Any:
        """A node, and the tensor it computes (a list of them for `outputs` other than 1). Shapes are inferred. The same
        as ModelBuilder.node(), but that tensors are not numbers.

        `op` is the name of the format ("CONV_2D") or of a custom op, which needs `shape` (None for unknown sizes).
        `inputs` are tensors, arrays and numbers; None is an absent input. `dtype` is that of the result where it is not
        that of the first input (a list for several outputs). `attributes` have the names of the format (stride_w=2);
        those not given keep the format's defaults.
        """
        first = next((tensor for tensor in inputs if isinstance(tensor, KerasTensor)), None)
        numbers = [self._number(tensor, first) for tensor in inputs]
        dtypes = [] if dtype is None else list(dtype) if isinstance(dtype, (list, tuple)) else [dtype] * outputs
        shapes = [] if shape is None else [shape] if outputs == 1 and not _is_nested(shape) else list(shape)
        made = self._call.add_node(
            op,
            numbers,
            name,
            outputs,
            [dtype_of(kind) for kind in dtypes],
            [[-1 if size is None else int(size) for size in sizes] for sizes in shapes],
            {key: _attribute(value) for key, value in attributes.items()},
            custom_options,
            version,
        )
        tensors = [KerasTensor(self._call, index) for index in made]
        return tensors[0] if outputs == 1 else tensors

    def layer(self, part: str, layer: Any, *inputs: KerasTensor) -> Any:
        """What a layer inside this one makes of `inputs`: a tensor, or a list of them.

        `part` is the attribute that holds it ("dense", "blocks/dense_1"), where its weights are. `layer` is a Keras
        layer, or a dict of its class_name and config ({"class_name": "Dense", "config": {"units": 4}}).
        """
        import json

        if not isinstance(layer, dict):
            if not hasattr(layer, "get_config"):
                raise InvalidArgumentError(f"expected a Keras layer or a dict that describes one, got {layer!r}")
            layer = {"class_name": type(layer).__name__, "config": layer.get_config()}
        config = {"name": part.rsplit("/", 1)[-1], **layer.get("config", {})}
        description = json.dumps({"module": "keras.layers", **layer, "config": config}, default=_json_value)
        made = self._call.add_layer(part, description, [self._number(tensor, None) for tensor in inputs])
        tensors = [KerasTensor(self._call, index) for index in made]
        return tensors[0] if len(tensors) == 1 else tensors

    def _number(self, tensor: Any, like: KerasTensor | None) -> int:
        if tensor is None:
            return -1
        if isinstance(tensor, KerasTensor):
            return self._own(tensor)
        if isinstance(tensor, (int, float)) and like is not None:
            return self.constant("Const", tensor, like.dtype).index
        if isinstance(tensor, (KerasWeight, np.ndarray, np.generic, int, float, list, tuple)):
            return self.constant("Const", tensor).index
        raise InvalidArgumentError(f"expected a tensor, an array or a number, got {type(tensor).__name__}")

    def _own(self, tensor: KerasTensor) -> int:
        if tensor._call is not self._call:
            raise InvalidArgumentError(f"{tensor!r} is a tensor of another call of a layer")
        return tensor.index


def _flat(numbers: Sequence[int | Sequence[int]]) -> list[int]:
    """Numbers that were given one by one, or as one tuple or list."""
    if len(numbers) == 1 and isinstance(numbers[0], (tuple, list)):
        numbers = numbers[0]
    return [operator.index(cast("int", number)) for number in numbers]


def _is_nested(shape: Any) -> bool:
    return bool(shape) and isinstance(shape[0], (list, tuple))


def _attribute(value: Any) -> Any:
    if isinstance(value, DType):
        return int(value.value)
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    if isinstance(value, tuple):
        return list(value)
    return value


def _json_value(value: Any) -> Any:
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    if hasattr(value, "get_config"):
        return {"class_name": type(value).__name__, "config": value.get_config()}
    return getattr(value, "__name__", str(value))


def _numbers(builder: KerasLayerBuilder, result: Any, function: Callable[..., Any]) -> list[int]:
    tensors = list(result) if isinstance(result, (list, tuple)) else [result]
    if not tensors or not all(isinstance(tensor, KerasTensor) for tensor in tensors):
        got = ", ".join(type(tensor).__name__ for tensor in tensors) or "nothing"
        what = getattr(function, "__name__", "the function")
        raise InvalidArgumentError(f"{what}() should return a tensor of the builder's, or several; it returned {got}")
    return [builder._own(tensor) for tensor in tensors]


def register_keras_layer(name: str, function: Callable[..., Any] | None = None) -> Any:
    """Registers (or replaces) what Keras layers of a class compute, for conversions that begin from now on.

    Args:
      name: the name of the class ("MyLayer"), or the one it is registered with in Keras ("package>MyLayer").
      function: function(builder, layer, *inputs) gets a KerasLayerBuilder, a KerasLayer and a KerasTensor for each
        tensor the layer is called with; it returns a KerasTensor, or a list of them. Without it this is a decorator
        for one.

    Returns `function`, or the decorator.
    """
    if not isinstance(name, str) or not name:
        raise InvalidArgumentError(f"the name of a layer should be a text that is not empty; got {name!r}")
    if function is None:
        return lambda decorated: register_keras_layer(name, decorated)
    if not callable(function):
        raise InvalidArgumentError(f"expected a function(builder, layer, *inputs), got {type(function).__name__}")

    def call(native: _leadline.KerasLayerCall) -> list[int]:
        builder = KerasLayerBuilder(native)
        inputs = [KerasTensor(native, index) for index in native.inputs]
        return _numbers(builder, function(builder, KerasLayer(native), *inputs), function)

    _leadline.register_keras_layer(name, call)
    return function


def unregister_keras_layer(name: str) -> bool:
    """Takes a registered layer away again; False when there was none of this name."""
    return _leadline.unregister_keras_layer(name)


def registered_keras_layers() -> list[str]:
    """Names of the registered layers, sorted."""
    return _leadline.registered_keras_layers()
