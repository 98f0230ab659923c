# SPDX-License-Identifier: Apache-2.0
"""A recording of a Keras model as the configuration of a Functional one, which the converter reads."""

from __future__ import annotations

import functools
import json
import math
import re
import zlib
from typing import Any

import numpy as np

from leadline._leadline import InvalidArgumentError, KerasWeight, UnsupportedError
from leadline.jobs.live_keras import array_weight, weights_below
from leadline.jobs.traced_keras import SIZES, Recording, Step, record
from leadline.jobs.traced_sizes import Traced

_HELP = (
    "write it with keras.ops and layers of Keras, register what it computes (leadline.register_keras_layer), or use "
    "Keras's TensorFlow backend, where the model is converted as a SavedModel"
)


def traced_model(model: Any) -> tuple[str, dict[str, list[KerasWeight]]]:
    """The configuration of a Functional model that computes what `model` does, and its weights by path.

    Raises UnsupportedError where the code of a layer cannot be followed.
    """
    failure: Exception | None = None
    for sizes in SIZES:
        try:
            first, second = record(model, sizes), record(model, (sizes[1], sizes[0]))
        except (InvalidArgumentError, UnsupportedError):
            raise
        except Exception as error:
            failure = failure or error
            continue
        config, again = _Writer(first), _Writer(second)
        text = config.text()
        if text != again.text():
            place = next((a["name"] for a, b in zip(config.layers, again.layers, strict=False) if a != b), "its end")
            raise UnsupportedError(
                f"the code of '{model.name}' computes with an unknown size in a way that cannot be followed (seen at "
                f"'{place}'): {_HELP}; or give its inputs fixed sizes"
            )
        return text, config.weights
    assert failure is not None
    raise UnsupportedError(
        f"the code of '{model.name}' cannot be followed ({_first_words(failure)}): {_HELP}"
    ) from failure.with_traceback(None)


def _first_words(failure: Exception) -> str:
    """What Keras says of an error in a layer, in one line and without colours."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(failure)).split("Arguments received")[0]
    return f"{type(failure).__name__}: {' '.join(text.split())}"[:400]


class _Writer:
    """Writes steps as layers of a configuration."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.layers: list[dict[str, Any]] = []
        self.weights: dict[str, list[KerasWeight]] = {}
        self.references: dict[int, Any] = {}  # of tensors
        self.captured: dict[int, Any] = {}  # variables and arrays, by identity
        self.kept: list[Any] = []  # what is known by its identity lives as long as this
        self.shared: dict[int, dict[str, Any]] = {}  # layers that are called more than once
        self.numbers: dict[Any, Any] = {}  # traced numbers by how they were computed
        self.words: dict[str, int] = {}

    def text(self) -> str:
        """The configuration as JSON."""
        inputs = [self._input(name, tensor, shape) for name, tensor, shape in self.recording.inputs]
        for step in self.recording.steps:
            self._step(step)
        outputs = []
        for name, tensor in self.recording.outputs:
            reference = self._value(tensor)
            unique = name
            while any(layer["name"] == unique for layer in self.layers):
                unique += "_"
            self._add("Identity", "keras.ops", {}, unique, [reference], {})
            outputs.append([unique, 0, 0])
        model = {"name": "model", "layers": self.layers, "input_layers": inputs, "output_layers": outputs}
        return json.dumps({"module": "keras", "class_name": "Functional", "config": model, "registered_name": None})

    def _add(self, kind: str, module: str, config: Any, name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        layer = {
            "module": module,
            "class_name": kind,
            "config": config,
            "registered_name": None,
            "name": name,
            "inbound_nodes": [{"args": args, "kwargs": kwargs}],
        }
        self.layers.append(layer)
        return layer

    def _operation(self, kind: str, args: list[Any], kwargs: dict[str, Any] | None = None, config: Any = None) -> Any:
        """Adds an operation; returns the reference of its first result."""
        name = f"{kind}/{len(self.layers)}"
        self._add(kind, "keras.ops", config or {}, name, args, kwargs or {})
        return _reference(name, 0, 0)

    def _input(self, name: str, tensor: Any, shape: tuple[int | None, ...]) -> list[Any]:
        config = {"batch_shape": list(shape), "dtype": tensor.dtype, "name": name}
        self._add("InputLayer", "keras.layers", config, name, [], {})["inbound_nodes"] = []
        self.words["input_layer"] = self.words.get("input_layer", 0) + 1
        self.references[id(tensor)] = _reference(name, 0, 0)
        return [name, 0, 0]

    def _step(self, step: Step) -> None:
        import keras

        if isinstance(step.operation, keras.layers.Layer):
            self._layer(step)
        elif isinstance(step.operation, str):
            self.references[id(step.outputs[0])] = self._own(step)
        elif type(step.operation).__name__ == "GetItem":
            self.references[id(step.outputs[0])] = self._item(*step.args, **step.kwargs)
        elif type(step.operation).__name__ == "Slice":
            self.references[id(step.outputs[0])] = self._slice(step)
        else:
            self._keras_operation(step)

    def _keras_operation(self, step: Step) -> None:
        operation = step.operation
        try:
            given = operation.get_config()
        except NotImplementedError:  # with arguments that Keras cannot save
            given = {k: v for k, v in vars(operation).items() if not k.startswith("_")}
        given.pop("name", None)
        named = {key: value for key, value in given.items() if _needs_tensors(value)}
        config = {key: self._plain(value) for key, value in given.items() if key not in named}
        args = [self._value(value) for value in step.args]
        kwargs = {key: self._value(value) for key, value in {**named, **step.kwargs}.items()}
        name = f"{type(operation).__name__}/{len(self.layers)}"
        self._add(type(operation).__name__, "keras.ops", config, name, args, kwargs)
        for number, output in enumerate(step.outputs):
            self.references[id(output)] = _reference(name, 0, number)

    def _layer(self, step: Step) -> None:
        from keras.saving import serialize_keras_object
        from keras.src.utils.naming import to_snake_case

        operation = step.operation
        args = [self._value(value) for value in step.args]
        kwargs = {key: self._value(value) for key, value in step.kwargs.items() if key != "training"}
        layer = self.shared.get(id(operation))
        if layer is None:
            description = serialize_keras_object(operation)
            kind = description["class_name"]
            name = f"{operation.name}/{len(self.layers)}"
            layer = self._add(kind, description["module"], description["config"], name, [], {})
            layer["inbound_nodes"] = []
            self.shared[id(operation)] = layer
            word = to_snake_case("GroupedQueryAttention" if kind == "GroupQueryAttention" else kind)
            self.weights.update(weights_below(operation, self._place(word)))
        layer["inbound_nodes"].append({"args": args, "kwargs": kwargs})
        for number, output in enumerate(step.outputs):
            self.references[id(output)] = _reference(layer["name"], len(layer["inbound_nodes"]) - 1, number)

    def _place(self, word: str) -> str:
        """The path of the next layer of its class, as Keras numbers them in files."""
        count = self.words.get(word, 0)
        self.words[word] = count + 1
        return f"layers/{word}_{count}" if count else f"layers/{word}"

    def _own(self, step: Step) -> Any:
        if step.operation in ("Number", "Captured"):
            return self._value(step.args[0])
        args = [self._value(value) for value in step.args]
        kwargs = {key: self._value(value) for key, value in step.kwargs.items()}
        return self._operation(step.operation, args, kwargs)

    def _item(self, x: Any, key: Any) -> Any:
        """x[key]: what is traced is cut out axis by axis, the rest is an operation of Keras's."""
        import keras

        items = list(key)
        made = self._value(x)
        taken = sum(item is not None and item is not Ellipsis for item in items)
        axis = 0
        for place, item in enumerate(items):
            if item is Ellipsis:
                axis += len(x._shape) - taken
            elif item is not None:
                if isinstance(item, slice) and _needs_tensors([item.start, item.stop]):
                    made = self._cut(made, axis, item.start, item.stop)
                    items[place] = slice(None, None, item.step)
                elif isinstance(item, (Traced, keras.KerasTensor)):
                    made = self._operation(
                        "Take", [made, self._operation("Reshape", [self._value(item), [1]])], {"axis": axis}
                    )
                    items[place] = 0
                axis += 1
        return self._operation("GetItem", [made, [self._plain(item) for item in items]])

    def _slice(self, step: Step) -> Any:
        """keras.ops.slice, whose beginnings and sizes may be traced or tensors."""
        x, starts = step.args[0], step.args[1] if len(step.args) > 1 else step.kwargs["start_indices"]
        shape = step.operation.shape
        made = self._value(x)
        if not isinstance(starts, (list, tuple)):
            starts = [self._operation("GetItem", [self._value(starts), [axis]]) for axis in range(len(shape))]
        for axis, (start, size) in enumerate(zip(starts, shape, strict=True)):
            begin = self._value(start)
            if begin == 0 and _same(size, x, axis):
                continue
            end = self._operation("Add", [begin, self._value(size)]) if begin != 0 else self._value(size)
            if isinstance(start, int) and isinstance(size, int) and not _needs_tensors([start, size]):
                end = start + size
            made = self._operation("SliceAxis", [made], {"axis": axis, "start": begin, "stop": end})
        return self._operation("Identity", [made])

    def _cut(self, x: Any, axis: int, start: Any, stop: Any) -> Any:
        kwargs = {"axis": axis, "start": self._value(start), "stop": self._value(stop)}
        return self._operation("SliceAxis", [x], kwargs)

    def _plain(self, value: Any) -> Any:
        """A constant setting."""
        if isinstance(value, slice):
            config = {"start": value.start, "stop": value.stop, "step": value.step}
            return {"class_name": "__slice__", "config": config}
        if value is Ellipsis:
            return {"class_name": "__ellipsis__", "config": {}}
        if isinstance(value, (list, tuple)):
            return [self._plain(item) for item in value]
        if isinstance(value, dict):
            return {str(key): self._plain(item) for key, item in value.items()}
        if isinstance(value, np.generic):
            return value.item()
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        return str(getattr(value, "name", None) or getattr(value, "__name__", None) or value)

    def _value(self, value: Any) -> Any:
        """An argument: a tensor, something that becomes one, or a constant."""
        import keras

        if isinstance(value, dict) and value.get("class_name") == "__keras_tensor__":
            return value  # written before
        if isinstance(value, keras.KerasTensor):
            if id(value) not in self.references:
                raise UnsupportedError(f"a layer keeps the tensor '{value.name}' of an earlier call: {_HELP}")
            return self.references[id(value)]
        if isinstance(value, Traced):
            return self._number(value)
        if isinstance(value, (list, tuple)):
            return [self._value(item) for item in value]
        if isinstance(value, dict):
            return {key: self._value(item) for key, item in value.items()}
        if isinstance(value, float) and not math.isfinite(value):
            return self._captured(np.float32(value))
        if _is_array(value):
            return self._captured(value)
        return self._plain(value)

    def _number(self, number: Any) -> Any:
        """A traced number, computed from the sizes of tensors."""
        name, *operands = number.origin
        values = [self._value(operand) for operand in operands]
        key = json.dumps([name, values])
        if key not in self.numbers:
            self.numbers[key] = self._operation(name, values)
        return self.numbers[key]

    def _captured(self, value: Any) -> Any:
        """A variable or an array as a layer without inputs."""
        if id(value) not in self.captured:
            self.kept.append(value)
            name = f"constant/{len(self.layers)}"
            config = {"name": name, "trainable": False, "shape": list(value.shape), "contents": _contents(value)}
            self._add("CapturedVariable", "leadline", config, name, [], {})
            self.weights[self._place("captured_variable")] = [array_weight(value)]
            self.captured[id(value)] = _reference(name, 0, 0)
        return self.captured[id(value)]


def _same(size: Any, x: Any, axis: int) -> bool:
    """Whether a size is that of the tensor's axis, whatever it is in a run."""
    if isinstance(size, Traced):
        return size.origin[0] == "SizeOfAxis" and size.origin[1] is x and size.origin[2] == axis
    return bool(size == x._shape[axis])


def _needs_tensors(value: Any) -> bool:
    import keras

    if isinstance(value, (list, tuple)):
        return any(map(_needs_tensors, value))
    return isinstance(value, (Traced, keras.KerasTensor)) or _is_array(value)


@functools.cache
def _array_types() -> tuple[type, ...]:
    import keras

    return (np.ndarray, keras.Variable, type(keras.ops.convert_to_tensor(0.0)))


def _is_array(value: Any) -> bool:
    import keras

    if isinstance(value, _array_types()):
        return True
    return not isinstance(value, (int, float, str, np.generic)) and keras.ops.is_tensor(value)


def _contents(value: Any) -> int:
    """A number that distinguishes the arrays that a layer computes from the sizes it sees; variables are themselves."""
    import keras

    return 0 if isinstance(value, keras.Variable) else zlib.crc32(keras.ops.convert_to_numpy(value).tobytes())


def _reference(name: str, node: int, output: int) -> dict[str, Any]:
    return {"class_name": "__keras_tensor__", "config": {"keras_history": [name, node, output]}}
