# SPDX-License-Identifier: Apache-2.0
"""A suite over the models of keras-hub's own export tests: tiny ones with random weights, all of its architectures.

keras-hub's tests only supply the model and its data; its way of exporting is for another backend. Each model has three
tests. `live` converts the model in memory and `export` lets Keras write the file; both run at the sizes of the test
and at others that the model takes. `litert` runs the file of `export` in LiteRT. All compare with Keras. A size that
Keras exports as unknown has to be unknown in the file: a file that lost it is refused, not run at fewer sizes.
"""

from __future__ import annotations

import ast
import functools
import importlib
import os
import sys
import tempfile
import unittest
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

_FOLDER = Path(os.environ["PEERS_FOLDER"])
_TOLERANCE = 1e-3
sys.path.insert(0, str(_FOLDER))  # before a keras-hub that is installed

Array = np.ndarray[Any, Any]


class _Origin(NamedTuple):
    """A test of keras-hub's."""

    module: str
    case: str
    method: str

    @property
    def name(self) -> str:
        return self.case.removesuffix("Test") + self.method.removeprefix("test_litert_export")


class _Model(NamedTuple):
    model: Any
    data: Any


class _File(NamedTuple):
    content: bytes
    specs: Any  # of its inputs, as Keras exports them: None is a size that the file has to leave open


def _origins() -> Iterator[_Origin]:
    for path in sorted(_FOLDER.glob("keras_hub/**/*_test.py")):
        module = ".".join(path.relative_to(_FOLDER).with_suffix("").parts)
        for node in ast.parse(path.read_text()).body:
            for item in node.body if isinstance(node, ast.ClassDef) else []:
                if isinstance(item, ast.FunctionDef) and item.name.startswith("test_litert_export"):
                    assert isinstance(node, ast.ClassDef)
                    yield _Origin(module, node.name, item.name)


def _model_of(origin: _Origin) -> _Model:
    """What the test of keras-hub would export. Raises what keeps it from that; skips if it skips itself."""
    import keras

    module = importlib.import_module(origin.module)
    assert str(module.__file__).startswith(str(_FOLDER)), f"{module.__file__} is not of the clone"
    taken: list[_Model] = []

    def take(
        _: Any, cls: Any = None, init_kwargs: Any = None, input_data: Any = None, model: Any = None, **__: Any
    ) -> None:
        keras.utils.set_random_seed(1)
        taken.append(_Model(cls(**init_kwargs) if model is None else model, input_data))

    kind = getattr(module, origin.case)
    case = type(origin.case, (kind,), {"run_litert_export_test": take})(origin.method)
    result = unittest.TestResult()
    case.run(result)
    for problem in result.errors + result.failures:
        raise RuntimeError(f"keras-hub's own test cannot make its model: {problem[1][-1500:]}")
    if not taken:
        raise unittest.SkipTest(f"keras-hub skips it: {result.skipped}")
    return taken[-1]


def _arrays(data: Any) -> Any:
    import keras

    return keras.tree.map_structure(lambda value: np.asarray(keras.ops.convert_to_numpy(value)), data)


def _mapped_with_path(function: Callable[[tuple[Any, ...], Array], Any], data: Any) -> Any:
    import keras

    made = [function(path, value) for path, value in keras.tree.flatten_with_path(data)]
    return keras.tree.pack_sequence_as(data, made)


def _other_sizes(model: Any, data: Any) -> Iterator[tuple[str, Any]]:
    """The data with other sizes where the model has unknown ones. It may still refuse them."""
    import keras

    def unknown(spec: Any, axis: int) -> bool:
        return axis < len(spec.shape) and spec.shape[axis] is None

    def along(axis: int, ranks: tuple[int, ...], change: Callable[[Array, int], Array]) -> Any:
        def changed(spec: Any, value: Array) -> Array:
            return change(value, axis) if unknown(spec, axis) and value.ndim in ranks else value

        return keras.tree.map_structure(changed, specs, data)

    def longer(value: Array, axis: int) -> Array:
        return np.concatenate([value, np.take(value, range(1), axis)], axis)

    def shorter(value: Array, axis: int) -> Array:
        return np.take(value, range(max(1, value.shape[axis] - 1)), axis)

    def larger(value: Array, axis: int) -> Array:
        return np.concatenate([value, np.take(value, range(min(32, value.shape[axis])), axis)], axis)

    specs = model.input if hasattr(model, "input") else None
    try:
        keras.tree.assert_same_structure(specs, data)
    except (TypeError, ValueError):
        return
    kinds = {
        "a larger batch": along(0, tuple(range(8)), longer),
        "a longer sequence": along(1, (2, 3), longer),
        "a shorter sequence": along(1, (2, 3), shorter),
        "a higher image": along(1, (4,), larger),
        "a wider image": along(2, (4,), larger),
    }
    for what, other in kinds.items():
        pairs = zip(keras.tree.flatten(data), keras.tree.flatten(other), strict=True)
        if any(a.shape != b.shape for a, b in pairs):
            yield what, other


def _called(model: Any, data: Any) -> Any:
    """As in a file, not in training: without the argument, a layer such as Resizing puts those after it in training."""
    return _arrays(model(data, training=False))


def _expected(model: Any, data: Any) -> Iterator[tuple[str, Any, Any]]:
    """What, the data, and what Keras makes of it."""
    data = _arrays(data)
    yield "the sizes of the test", data, _called(model, data)
    for what, other in _other_sizes(model, data):
        try:
            result = _called(model, other)
        except Exception:
            continue
        yield what, other, result


def _rounding(model: Any, data: Any) -> float:
    """How far Keras's own result moves when its weights are rounded differently: some models amplify that."""
    import keras

    weights = [variable for variable in model.weights if keras.backend.is_float_dtype(variable.dtype)]
    kept = [keras.ops.convert_to_numpy(variable) for variable in weights]
    before = _called(model, data)
    signs = np.random.default_rng(0)
    try:
        for variable, value in zip(weights, kept, strict=True):
            variable.assign(value * (1 + 2.0**-22 * signs.choice([-1, 1], value.shape)).astype(value.dtype))
        moved = keras.tree.flatten(_called(model, data))
        return _difference(before, {f"{index:05}": value for index, value in enumerate(moved)})
    finally:
        for variable, value in zip(weights, kept, strict=True):
            variable.assign(value)


def _by_name(details: dict[str, Any], items: Any) -> dict[str, Any]:
    """What belongs to each input of the signature: its data or its spec."""
    import keras

    if not isinstance(items, dict):
        return dict(zip(sorted(details), keras.tree.flatten(items), strict=True))
    left = dict(items)
    named = {}
    for name in details:
        close = [key for key in left if name.endswith(key) or key.endswith(name)]
        named[name] = left.pop(name if name in left else max(close, key=len))
    return named


def _feed(runner: Any, data: Any) -> dict[str, Array] | None:
    """The data by the names of the signature; nothing when the file has other sizes than these."""
    details = runner.get_input_details()
    fed = _by_name(details, data)
    for name, value in fed.items():
        sizes = zip(value.shape, details[name]["shape_signature"], strict=True)
        if any(known not in (-1, size) for size, known in sizes):
            return None
    return {name: value.astype(details[name]["dtype"]) for name, value in fed.items()}


def _assert_sizes_left_open(runner: Any, specs: Any) -> None:
    """The data at other sizes would be skipped for a file that has fixed sizes where Keras has none."""
    details = runner.get_input_details()
    for name, spec in _by_name(details, specs).items():
        made = [int(size) for size in details[name]["shape_signature"]]
        wanted = [-1 if size is None else size for size in spec.shape]
        assert made == wanted, f"input {name} has sizes {made}, Keras exports {wanted}"


def _runner(interpreter: Any) -> Any:
    keys = list(interpreter.get_signature_list())
    return interpreter.get_signature_runner("serving_default" if "serving_default" in keys else keys[0])


def _difference(expected: Any, got: dict[str, Array]) -> float:
    """The largest, relative to what is larger than 1. Raises where shapes or infinite values are not the same."""
    import keras

    if isinstance(expected, dict) and set(expected) <= set(got):
        pairs = [(value, got[name]) for name, value in expected.items()]
    else:  # other names: in order, of those with the same shape
        left = [got[name] for name in sorted(got)]
        pairs = []
        for value in keras.tree.flatten(expected):
            alike = [i for i, other in enumerate(left) if other.shape == value.shape]
            assert alike, f"no output has shape {value.shape}, there are {[other.shape for other in left]}"
            pairs.append((value, left.pop(alike[0])))
    worst = 0.0
    for value, other in pairs:
        assert value.shape == other.shape, f"an output has shape {other.shape}, expected {value.shape}"
        wanted, made = value.astype(np.float64), other.astype(np.float64)
        finite = np.isfinite(wanted)
        np.testing.assert_array_equal(made[~finite], wanted[~finite])
        errors = np.abs(made - wanted)[finite] / np.maximum(1.0, np.abs(wanted))[finite]
        assert not np.isnan(errors).any(), "NaN where Keras has numbers"
        worst = max(worst, float(errors.max(initial=0.0)))
    return worst


@functools.lru_cache(maxsize=1)
def _shared_model(origin: _Origin) -> _Model:
    """The tests of one model follow each other."""
    import keras

    keras.backend.clear_session()
    return _model_of(origin)


def _exported_specs(model: Any) -> Any:
    """Of the inputs, as Keras exports them; in the structure of the data."""
    from keras.src.export.export_utils import get_input_signature

    specs = get_input_signature(model)
    return specs[0] if isinstance(specs, list | tuple) and len(specs) == 1 else specs


def _live(origin: _Origin) -> _File:
    import tensorflow as tf

    model = _shared_model(origin).model
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return _File(tf.lite.TFLiteConverter.from_keras_model(model).convert(), _exported_specs(model))


@functools.lru_cache(maxsize=1)
def _export(origin: _Origin) -> _File:
    import tensorflow as tf

    model, data = _shared_model(origin)

    def sized(path: tuple[Any, ...], value: Array) -> Any:
        return tf.TensorSpec((None, *value.shape[1:]), value.dtype, name=str(path[-1]) if path else None)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tflite"
        specs = _exported_specs(model)
        try:
            model.export(path, format="litert", verbose=False)
        except tf.errors.OperatorNotAllowedInGraphError:
            # Keras's own call needs to know the size of images in graphs of TensorFlow.
            specs = _mapped_with_path(sized, _arrays(data))
            model.export(path, format="litert", verbose=False, input_signature=[specs])
        return _File(path.read_bytes(), specs)


def _test(origin: _Origin, convert: Callable[[_Origin], _File], in_litert: bool) -> Callable[[unittest.TestCase], None]:
    def test(_: unittest.TestCase) -> None:
        import tensorflow as tf
        from redirect import litert_interpreter

        model, data = _shared_model(origin)
        content, specs = convert(origin)
        if kept := os.environ.get("PEERS_KEEP_MODELS"):
            (Path(kept) / f"{origin.name}.{convert.__name__.lstrip('_')}.tflite").write_bytes(content)
        runner = _runner((litert_interpreter() if in_litert else tf.lite.Interpreter)(model_content=content))
        if not in_litert:
            assert b"Flex" not in content, "the model needs TensorFlow's own ops"
        _assert_sizes_left_open(runner, specs)
        for number, (what, given, expected) in enumerate(_expected(model, data)):
            fed = _feed(runner, given)
            if fed is None:
                assert number > 0, "the file does not take the sizes of the test"
                continue
            try:
                worst = _difference(expected, runner(**fed))
            except Exception as error:
                raise RuntimeError(f"with {what}: {type(error).__name__}: {error}") from error
            allowed = _TOLERANCE
            if worst > _TOLERANCE:
                allowed = max(allowed, 10 * _rounding(model, given))
            assert worst <= allowed, f"with {what}: {worst} from Keras, at most {allowed} was allowed"

    return test


class KerasHub(unittest.TestCase):
    pass


for _origin in _origins():
    setattr(KerasHub, f"test_{_origin.name}_live", _test(_origin, _live, in_litert=False))
    setattr(KerasHub, f"test_{_origin.name}_export", _test(_origin, _export, in_litert=False))
    setattr(KerasHub, f"test_{_origin.name}_litert", _test(_origin, _export, in_litert=True))
