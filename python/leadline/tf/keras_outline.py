# SPDX-License-Identifier: Apache-2.0
"""Keras models that nothing has looked into yet. A Sequential of common layers is kept as an outline: what its classes
were called with. Converting needs no more than that. Anything else (an attribute, a call, a look at its class) makes
the real Keras object, with the same names and the same weights, and from then on the outline is that object.

Importing Keras and a backend takes seconds and hundreds of megabytes; programs that only convert are spared both.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import numpy as np

from leadline._leadline import DType, KerasWeight

_ACTIVATIONS = {
    None,
    "linear",
    "relu",
    "relu6",
    "softmax",
    "sigmoid",
    "tanh",
    "elu",
    "selu",
    "gelu",
    "softplus",
    "softsign",
    "silu",
    "swish",
}
_POLICY = {"module": "keras", "class_name": "DTypePolicy", "config": {"name": "float32"}, "registered_name": None}


class _Unclear(Exception):
    """Arguments that only Keras itself can judge."""


def _require(ok: bool) -> None:
    if not ok:
        raise _Unclear


def _pair(value) -> list[int]:
    pair = [value, value] if type(value) is int else list(value) if isinstance(value, (tuple, list)) else []
    _require(len(pair) == 2 and all(type(n) is int and n > 0 for n in pair))
    return pair


def _positive(value) -> int:
    _require(type(value) is int and value > 0)
    return value


def _padding(value) -> str:
    _require(value in ("valid", "same"))
    return value


def _activation(value):
    _require(isinstance(value, (str, type(None))) and value in _ACTIVATIONS)
    return value or "linear"


def _flag(value) -> bool:
    _require(type(value) is bool)
    return value


def _number(value) -> float:
    _require(type(value) in (int, float) and 0 <= value < 1)
    return value


def _places(size, kernel: int, stride: int, padding: str):
    if size is None:
        return None
    count = -(-size // stride) if padding == "same" else -(-(size - kernel + 1) // stride)
    _require(count > 0)
    return count


def _glorot(shape, fan_in: int, fan_out: int):
    from leadline.tf.random import generators  # numpy's own stream is the program's: Keras does not take from it either

    limit = (6 / (fan_in + fan_out)) ** 0.5
    return generators.get(None).uniform(-limit, limit, shape).astype(np.float32)


def _windows(config: dict, shape, kernel, channels):
    _require(len(shape) == 4)
    (sh, sw), padding = config["strides"], config["padding"]
    return (shape[0], _places(shape[1], kernel[0], sh, padding), _places(shape[2], kernel[1], sw, padding), channels)


def _conv_shape(config, shape):
    return _windows(config, shape, config["kernel_size"], config["filters"])


def _conv_weights(config, shape):
    (kh, kw), c, k = config["kernel_size"], shape[3], config["filters"]
    _require(type(c) is int)
    kernel = _glorot((kh, kw, c, k), kh * kw * c, kh * kw * k)
    return [("kernel", kernel), *([("bias", np.zeros(k, np.float32))] if config["use_bias"] else [])]


def _dense_weights(config, shape):
    size, units = shape[-1], config["units"]
    _require(type(size) is int)
    return [
        ("kernel", _glorot((size, units), size, units)),
        *([("bias", np.zeros(units, np.float32))] if config["use_bias"] else []),
    ]


def _flat(config, shape):
    sizes = shape[1:]
    _require(None not in sizes)
    return (shape[0], int(np.prod(sizes)))


def _same(config, shape):
    return shape


def _none(config, shape):
    return []


def _pool_shape(config, shape):
    return _windows(config, shape, config["pool_size"], shape[-1])


def _global_shape(config, shape):
    _require(len(shape) == 4)
    return (shape[0], shape[3])


_WINDOW = {"strides": ((1, 1), _pair), "padding": ("valid", _padding)}
_CALL = {"activation": (None, _activation), "use_bias": (True, _flag)}
_POOL = (
    {"pool_size": ((2, 2), _pair), "strides": (None, lambda value: value), "padding": ("valid", _padding)},
    _pool_shape, _none,
)  # fmt: skip
# class -> (arguments in order: default and check; shape of the result; weights)
_LAYERS: dict[str, Any] = {
    "Conv2D": (
        {"filters": (None, _positive), "kernel_size": (None, _pair), **_WINDOW, **_CALL},
        _conv_shape, _conv_weights,
    ),
    "Dense": (
        {"units": (None, _positive), **_CALL},
        lambda config, shape: (*shape[:-1], config["units"]), _dense_weights,
    ),
    "Flatten": ({}, _flat, _none),
    "Dropout": ({"rate": (None, _number)}, _same, _none),
    "Activation": ({"activation": (None, _activation)}, _same, _none),
    "ReLU": ({}, _same, _none),
    "MaxPooling2D": _POOL,
    "AveragePooling2D": _POOL,
    "GlobalAveragePooling2D": ({}, _global_shape, _none),
}  # fmt: skip
# Arguments that more positions follow in Keras; outlines take them by name only.
_POSITIONAL = {"Conv2D": 4}
_SHORT = {"MaxPool2D": "MaxPooling2D", "AvgPool2D": "AveragePooling2D", "GlobalAvgPool2D": "GlobalAveragePooling2D"}
LAYER_NAMES = (*_LAYERS, *_SHORT, "InputLayer")
_counts: dict[str, int] = {}


def _snake(name: str) -> str:
    """Keras's names of layers: MaxPooling2D is max_pooling2d."""
    text = re.sub(r"\W+", "", name)
    text = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", text)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", text).lower()


def _unique(name: str) -> str:
    count = _counts.get(name, 0)
    _counts[name] = count + 1
    return f"{name}_{count}" if count else name


def _dims(value) -> tuple:
    _require(isinstance(value, (tuple, list)) and all(n is None or (type(n) is int and n > 0) for n in value))
    return tuple(value)


class Outline:
    """An object of Keras that is not made yet."""

    def __init__(self, class_name: str, args: tuple, kwargs: dict) -> None:
        state = self.__dict__
        state["_args"], state["_kwargs"], state["_class_name"] = args, dict(kwargs), class_name
        state["_object"] = None
        self._read()

    def _real(self):
        """The real object; the outline stands for it from now on."""
        state = self.__dict__
        if state["_object"] is None:
            from leadline.tf.keras import load

            state["_object"] = self._make(load())
        return state["_object"]

    def _make(self, keras):
        kwargs = {**self._kwargs, "name": self._name}
        return getattr(keras.layers, self._class_name)(*self._args, **kwargs)

    @property  # type: ignore[misc]  # it can be set in object
    def __class__(self):
        # Code that compares with a class of Keras has imported it; other code gets the true class.
        return type(self._real()) if "keras" in sys.modules else type(self)

    def __getattr__(self, name: str):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return getattr(self._real(), name)

    def __setattr__(self, name: str, value) -> None:
        setattr(self._real(), name, value)

    def __call__(self, *args, **kwargs):
        return self._real()(*args, **kwargs)

    def __repr__(self) -> str:
        return repr(self._real()) if self._object is not None else f"<{self._class_name} name={self._name}>"


class LayerOutline(Outline):
    def _read(self) -> None:
        """Raises _Unclear for arguments that an outline cannot stand for."""
        state, kwargs, args = self.__dict__, dict(self._kwargs), list(self._args)
        shape = kwargs.pop("input_shape", None)
        state["_input"] = None if shape is None else (None, *_dims(shape))
        name = kwargs.pop("name", None)
        _require(name is None or isinstance(name, str))
        if self._class_name == "InputLayer":
            raise _Unclear
        known = _LAYERS[self._class_name][0]
        _require(len(args) <= _POSITIONAL.get(self._class_name, len(known)))
        given = dict(zip(known, args))
        _require(not set(given) & set(kwargs) and set(kwargs) <= set(known))
        given.update(kwargs)
        config = {key: check(given.get(key, default)) for key, (default, check) in known.items()}
        if "pool_size" in config:
            config["strides"] = config["pool_size"] if config["strides"] is None else _pair(config["strides"])
        state["_config"] = config
        state["_name"] = name or _unique(_snake(self._class_name))

    def _describe(self) -> dict:
        extra: dict[str, Any] = (
            {"data_format": "channels_last"}
            if self._class_name not in ("Dense", "Dropout", "Activation", "ReLU")
            else {}
        )
        if self._class_name == "Conv2D":
            extra |= {"dilation_rate": [1, 1], "groups": 1}
        if self._class_name == "GlobalAveragePooling2D":
            extra["keepdims"] = False
        if self._class_name == "ReLU":
            extra |= {"max_value": None, "negative_slope": 0.0, "threshold": 0.0}
        config = {"name": self._name, "trainable": True, "dtype": _POLICY, **self._config, **extra}
        return {"module": "keras.layers", "class_name": self._class_name, "config": config, "registered_name": None}


class SequentialOutline(Outline):
    def _read(self) -> None:
        kwargs = dict(self._kwargs)
        layers = kwargs.pop("layers", self._args[0] if self._args else None)
        name = kwargs.pop("name", self._args[1] if len(self._args) > 1 else None)
        _require(not kwargs and len(self._args) <= 2 and (name is None or isinstance(name, str)))
        layers = list(layers or [])
        _require(all(type(layer) is LayerOutline and layer._object is None for layer in layers))
        state = self.__dict__
        state["_layers"], state["_weights"] = layers, None
        state["_name"] = name or _unique("sequential")

    def add(self, layer, rebuild=True) -> None:
        if self._object is None and type(layer) is LayerOutline and layer._object is None:
            self._layers.append(layer)
            self.__dict__["_weights"] = None
        else:
            self._real().add(layer._real() if isinstance(layer, Outline) else layer, rebuild)

    def _make(self, keras):
        model = keras.Sequential([layer._real() for layer in self._layers], name=self._name)
        if self._weights is not None:
            model.set_weights([array for arrays in self._weights for _, array in arrays])
        return model

    def leadline_description(self):
        """The configuration that Keras would write, and the weights by path; None when Keras has to be asked."""
        if self._object is not None or not self._layers or self._layers[0]._input is None:
            return None
        try:
            weights = self._initial_weights()
        except _Unclear:
            return None
        shape = self._layers[0]._input
        first = {"batch_shape": shape, "dtype": "float32", "sparse": False, "ragged": False, "name": "input_layer"}
        layers = [{"module": "keras.layers", "class_name": "InputLayer", "config": first, "registered_name": None}]
        layers += [layer._describe() for layer in self._layers]
        config = {"name": self._name, "trainable": True, "dtype": _POLICY, "layers": layers, "build_input_shape": shape}
        text = json.dumps({"module": "keras", "class_name": "Sequential", "config": config, "registered_name": None})
        return text, self._by_path(weights)

    def _initial_weights(self) -> list:
        if self._weights is None:
            shape, weights = self._layers[0]._input, []
            for layer in self._layers:
                _, shape_of, weights_of = _LAYERS[layer._class_name]
                after = shape_of(layer._config, shape)
                weights.append(weights_of(layer._config, shape))
                shape = after
            self.__dict__["_weights"] = weights
        return self._weights

    def _by_path(self, weights: list) -> dict[str, list[KerasWeight]]:
        result: dict[str, list[KerasWeight]] = {}
        counts: dict[str, int] = {}
        for layer, arrays in zip(self._layers, weights):
            base = _snake(layer._class_name)
            number = counts[base] = counts.get(base, -1) + 1
            path = f"layers/{base}_{number}" if number else f"layers/{base}"
            result[path] = [
                KerasWeight(name, DType.FLOAT32, list(array.shape), _reader(array)) for name, array in arrays
            ]
        return result


def _reader(array: np.ndarray):
    def read(memory: memoryview) -> None:
        np.frombuffer(memory, np.uint8)[...] = array.reshape(-1).view(np.uint8)

    return read


class ClassOutline:
    """A class of Keras whose objects may stay outlines."""

    def __init__(self, path: str, kind: type) -> None:
        self._path = path  # below keras
        self._kind = kind

    def _real_class(self):
        from leadline.tf.keras import load

        found = load()
        for part in self._path.split("."):
            found = getattr(found, part)
        return found

    def __call__(self, *args, **kwargs):
        if "keras" not in sys.modules:
            name = self._path.rsplit(".", 1)[-1]
            try:
                return self._kind(_SHORT.get(name, name), args, kwargs)
            except _Unclear:
                pass
        return self._real_class()(*_reals(args), **{key: _reals(value) for key, value in kwargs.items()})

    def __getattr__(self, name: str):
        if name.startswith("_") and name not in ("__name__", "__doc__", "__module__"):
            raise AttributeError(name)
        return getattr(self._real_class(), name)

    def __mro_entries__(self, bases):
        return (self._real_class(),)

    def __instancecheck__(self, instance) -> bool:
        return isinstance(instance, self._real_class())

    def __subclasscheck__(self, subclass) -> bool:
        return issubclass(subclass, self._real_class())

    def __repr__(self) -> str:
        return f"<class 'keras.{self._path}'>"


def _reals(value):
    """Outlines inside arguments as the objects they stand for."""
    if type(value) in (LayerOutline, SequentialOutline):
        return value._real()
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(_reals(item) for item in value)
    return value
