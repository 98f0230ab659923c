# SPDX-License-Identifier: Apache-2.0
"""tf.lite's TFLiteConverter and the classes that describe its target, over Leadline's converter."""

from __future__ import annotations

import difflib
import enum
import os
import re
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from leadline._leadline import (
    Budget,
    ConversionPlan,
    Converter,
    Error,
    InvalidArgumentError,
    UnsupportedError,
    remember_object,
)
from leadline._native.arguments import as_budget
from leadline._native.files import write_file
from leadline.jobs.live_keras import weights_by_path
from leadline.jobs.progress import progress_of, with_timeout
from leadline.lite import converter_quantization

if TYPE_CHECKING:
    from leadline.tf.export import FunctionConverter


@enum.unique
class Optimize(enum.Enum):
    """What tf.lite calls optimizations: all of them quantize."""

    __module__ = "leadline.lite"  # where users find it

    DEFAULT = "DEFAULT"
    OPTIMIZE_FOR_SIZE = "OPTIMIZE_FOR_SIZE"
    OPTIMIZE_FOR_LATENCY = "OPTIMIZE_FOR_LATENCY"
    EXPERIMENTAL_SPARSITY = "EXPERIMENTAL_SPARSITY"


@enum.unique
class OpsSet(enum.Enum):
    """Sets of ops that a converted model may use."""

    __module__ = "leadline.lite"  # where users find it

    TFLITE_BUILTINS = "TFLITE_BUILTINS"
    SELECT_TF_OPS = "SELECT_TF_OPS"
    TFLITE_BUILTINS_INT8 = "TFLITE_BUILTINS_INT8"
    EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8 = (
        "EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8"
    )
    EXPERIMENTAL_STABLEHLO_OPS = "EXPERIMENTAL_STABLEHLO_OPS"


class RepresentativeDataset:
    """Samples of what a model will see; `input_gen` yields them one by one."""

    __module__ = "leadline.lite"  # where users find it

    def __init__(self, input_gen: Callable[[], Iterable[Any]]) -> None:
        self.input_gen = input_gen

    def __repr__(self) -> str:
        return f"<leadline.lite.RepresentativeDataset of {self.input_gen!r}>"


class _Settings:
    """An object whose attributes are all known: a slip of the pen is an error, not a setting without effect."""

    _ignored: frozenset[str] = frozenset()  # attributes of tf.lite's that mean nothing here

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_") and name not in self._ignored and name not in self.__dict__ and self._complete():
            known = [key for key in self.__dict__ if not key.startswith("_")]
            close = difflib.get_close_matches(name, [*known, *self._ignored], 1)
            hint = f"did you mean '{close[0]}'?" if close else f"it has {', '.join(known)}"
            raise AttributeError(f"{type(self).__name__} has no attribute '{name}'; {hint}")
        super().__setattr__(name, value)

    def _complete(self) -> bool:
        return "_made" in self.__dict__

    def __repr__(self) -> str:
        known = {name: value for name, value in self.__dict__.items() if name[0] != "_" and name not in self._ignored}
        return f"<leadline.lite.{type(self).__name__}: {', '.join(f'{n}={v!r}' for n, v in known.items())}>"


class TargetSpec(_Settings):
    """What the device of a converted model can do."""

    __module__ = "leadline.lite"  # where users find it

    _ignored = frozenset({"experimental_select_user_tf_ops", "experimental_supported_backends"})

    def __init__(
        self,
        supported_ops: Iterable[OpsSet] | None = None,
        supported_types: Iterable[Any] | None = None,
        experimental_select_user_tf_ops: Iterable[str] | None = None,
        experimental_supported_backends: Iterable[str] | None = None,
    ) -> None:
        self.supported_ops = {OpsSet.TFLITE_BUILTINS} if supported_ops is None else set(supported_ops)
        self.supported_types = set() if supported_types is None else set(supported_types)
        self.experimental_select_user_tf_ops = set(experimental_select_user_tf_ops or ())
        self.experimental_supported_backends = set(experimental_supported_backends or ())
        self._made = True


class TFLiteConverter(_Settings):
    """Converts Keras models and SavedModels to .tflite, without TensorFlow.

    >>> converter = leadline.lite.TFLiteConverter.from_keras_model(model)
    >>> content = converter.convert()

    `optimizations`, `representative_dataset`, `target_spec` and the inference types ask for quantization as in
    TensorFlow; convert() changes none of them. Attributes of tf.lite's that choose between its own converters
    (experimental_new_converter and the like) are accepted and mean nothing here. With allow_custom_ops, ops of a
    SavedModel that Leadline has no conversion for become custom ops of the same name; without, convert() names the
    first of them in an error. Leadline writes no conversion metadata, so
    exclude_conversion_metadata has nothing to leave out.
    """

    __module__ = "leadline.lite"  # where users find it

    _ignored = frozenset(
        {
            "experimental_new_converter",
            "experimental_new_quantizer",
            "experimental_enable_resource_variables",
            "experimental_lower_to_saved_model",
            "experimental_new_dynamic_range_quantizer",
            "experimental_preserve_assert_op",
            "experimental_default_to_single_batch_in_tensor_list_ops",
            "experimental_use_stablehlo_quantizer",
            "experimental_use_buffer_offset",
            "unfold_batchmatmul",
            "unfold_large_splat_constant",
            "allow_all_select_tf_ops",
            "saved_model_dir",
        }
    )

    def __init__(
        self, converter: Converter | FunctionConverter, folder: tempfile.TemporaryDirectory[str] | None = None
    ) -> None:
        self._converter = converter
        self._folder = folder  # what the weights are read from, as long as this converter exists
        self._refusal: UnsupportedError | None = None  # of an op that may become a custom op
        self.optimizations: list[Optimize] = []
        self.representative_dataset: RepresentativeDataset | Callable[[], Iterable[Any]] | None = None
        self.target_spec = TargetSpec()
        self.inference_input_type: Any = None
        self.inference_output_type: Any = None
        self.allow_custom_ops = False
        self.exclude_conversion_metadata = False
        converter_quantization.add_attributes(self)
        self._made = True
        remember_object(self)

    @classmethod
    def from_keras_model(cls, model: Any, *, budget: Budget | int | str | None = None) -> TFLiteConverter:
        """A live model of Keras 3 (any backend) or tf_keras. `budget` as in Interpreter.

        Weights of Keras 3 are read from the model itself, those of tf_keras through a temporary file. A subclassed
        model has no graph to read, and a layer of a class of your own only its code; with TensorFlow such models are
        exported to a temporary SavedModel and converted from there.
        """
        budget = as_budget(budget)
        outline = getattr(type(model), "leadline_description", None)  # of leadline.tf, where Keras was not needed yet
        if outline is not None:
            if (described := outline(model)) is not None:
                config, weights = described
                return cls(Converter.from_keras_config(config, lambda path: weights.get(path, []), budget))
            model = model._real()
        if not hasattr(model, "save") or not hasattr(model, "get_config"):
            raise InvalidArgumentError(f"expected a Keras model, got {type(model).__name__}")
        if not _has_graph(model):
            return cls._from_subclassed(model, budget)
        try:
            return cls._from_layers(model, budget)
        except UnsupportedError as error:
            if not _runs_on_tensorflow(model):
                raise
            refusal = error.with_traceback(None)  # which would hold what failed
        try:
            made = cls._from_export(model, budget)
        except Exception as failure:
            raise refusal from failure.with_traceback(None)  # first what the model itself was refused for
        warnings.warn(
            f"not every layer could be converted by itself ({refusal}): the model is exported to a temporary "
            "SavedModel and converted from that",
            stacklevel=2,
        )
        return made

    @classmethod
    def _from_layers(cls, model: Any, budget: Budget | None) -> TFLiteConverter:
        """A Functional or Sequential model, layer by layer."""
        if _is_keras_3(model):
            try:
                weights, config = weights_by_path(model), model.to_json()
            except Error:
                raise
            except Exception:  # another version of Keras 3: its files are all that can be relied on
                pass
            else:
                return cls(Converter.from_keras_config(config, lambda path: weights.get(path, []), budget))
        folder = tempfile.TemporaryDirectory(prefix="leadline-")
        path = Path(folder.name) / ("model.keras" if _is_keras_3(model) else "model.h5")
        model.save(path)
        return cls(Converter.from_keras(path, budget), folder)

    @classmethod
    def _from_subclassed(cls, model: Any, budget: Budget | None) -> TFLiteConverter:
        name = type(model).__name__
        if not _runs_on_tensorflow(model):
            raise UnsupportedError(
                f"the model is of class '{name}', whose code Leadline cannot read; write it as a Functional or "
                "Sequential model, or use Keras's TensorFlow backend, through which it is converted as a SavedModel"
            )
        warnings.warn(
            f"{name} is a subclassed model, which has no graph of layers: it is exported to a temporary SavedModel and "
            "converted from that",
            stacklevel=3,
        )
        return cls._from_export(model, budget)

    @classmethod
    def _from_export(cls, model: Any, budget: Budget | None) -> TFLiteConverter:
        """What TensorFlow traces when the model is saved."""
        folder = tempfile.TemporaryDirectory(prefix="leadline-")
        path = Path(folder.name) / "model"
        try:
            if _is_keras_3(model):
                model.export(path, verbose=False)
            else:
                model.save(path, save_format="tf")
            return cls._from_folder(path, ["serving_default"], [], budget, folder)
        except BaseException:
            folder.cleanup()
            raise

    @classmethod
    def _from_folder(
        cls,
        path: str | os.PathLike[str],
        keys: list[str],
        tags: list[str],
        budget: Budget | None,
        folder: tempfile.TemporaryDirectory[str] | None = None,
    ) -> TFLiteConverter:
        """allow_custom_ops is set later, so an op without a conversion is not an error before convert()."""
        try:
            return cls(Converter.from_saved_model(path, keys, tags, budget), folder)
        except UnsupportedError as error:
            refusal = error.with_traceback(None)  # which would hold what failed
        made = cls(Converter.from_saved_model(path, keys, tags, budget, True), folder)
        made._refusal = refusal
        return made

    def _ready(self) -> Converter | FunctionConverter:
        if self._refusal is not None and not self.allow_custom_ops:
            raise self._refusal
        return self._converter

    @classmethod
    def from_keras_file(
        cls, path: str | os.PathLike[str], *, budget: Budget | int | str | None = None
    ) -> TFLiteConverter:
        """A saved model: .keras, or a whole-model .h5."""
        return cls(Converter.from_keras(path, as_budget(budget)))

    @classmethod
    def from_saved_model(
        cls,
        saved_model_dir: str | os.PathLike[str],
        signature_keys: Iterable[str] | None = None,
        tags: Iterable[str] | None = None,
        *,
        budget: Budget | int | str | None = None,
    ) -> TFLiteConverter:
        """A SavedModel directory. Without signature_keys: all signatures, of a Keras export serving_default."""
        keys = [signature_keys] if isinstance(signature_keys, str) else list(signature_keys or [])
        chosen = [tags] if isinstance(tags, str) else sorted(tags or [])
        return cls._from_folder(saved_model_dir, keys, chosen, as_budget(budget))

    @classmethod
    def from_concrete_functions(
        cls, funcs: Any, trackable_obj: Any = None, *, budget: Budget | int | str | None = None
    ) -> TFLiteConverter:
        """Functions of TensorFlow's (tf.function's get_concrete_function()), through a temporary SavedModel, or one of
        leadline.tf's.

        One becomes the signature serving_default, several become signatures with their names. `trackable_obj` holds
        their variables and tables; it may be left out or be anything else, as long as the functions need no tables.
        """
        functions: list[Any] = list(funcs) if isinstance(funcs, (list, tuple)) else [funcs]
        if not functions:
            raise InvalidArgumentError("from_concrete_functions() needs at least one function")
        for function in functions:
            if not hasattr(function, "structured_input_signature"):
                raise InvalidArgumentError(
                    f"expected concrete functions (function.get_concrete_function(...)), got {type(function).__name__}"
                )
        own = sys.modules.get("leadline.tf.functions")  # not imported: then none of them is of leadline.tf
        if own is not None and all(isinstance(function, own.ConcreteFunction) for function in functions):
            from leadline.tf.export import converter_of

            return cls(converter_of(functions))
        import tensorflow as tf  # concrete functions exist, so it is loaded already

        names = ["serving_default"] if len(functions) == 1 else _function_names(functions)
        folder = tempfile.TemporaryDirectory(prefix="leadline-")
        path = Path(folder.name) / "model"
        _save_functions(tf, trackable_obj, path, dict(zip(names, functions, strict=True)))
        return cls._from_folder(path, names, [], as_budget(budget), folder)

    @classmethod
    def experimental_from_jax(cls, serving_funcs: Any, inputs: Any) -> TFLiteConverter:
        """Not possible: raises UnsupportedError, which says what is."""
        del serving_funcs, inputs
        raise UnsupportedError(
            "functions of JAX are not converted directly: export them as a SavedModel (jax.experimental."
            "jax2tf.convert, then tf.saved_model.save) and use from_saved_model()"
        )

    def plan(self) -> ConversionPlan:
        """What the conversion makes and needs, before weights are read."""
        return cast("ConversionPlan", self._ready().plan())

    @with_timeout
    def convert(
        self, *, progress: bool | Callable[[int, int], object] | None = None, timeout: float | None = None
    ) -> bytes:
        """The .tflite file. Raises BudgetError before anything is taken when it does not fit.

        No optimizations: a float model. Optimize.DEFAULT: dynamic range; with representative_dataset int8, where ops
        without an int8 form stay float unless supported_ops is {TFLITE_BUILTINS_INT8}: then they are an error that
        lists them; with supported_types [float16] float16 weights.

        When it takes more than a second, a bar shows how far it is: with `progress` None where a person can see it,
        with True always, with False never. A function is called with the bytes done and those of the file, and stops
        the conversion when it returns False. After `timeout` seconds it ends with TimeLimitError.
        """
        del timeout  # kept by with_timeout
        asked = converter_quantization.request(self)
        with progress_of(progress, "Converting") as report:
            if asked is None:
                return self._ready().convert(report)
            model = self._ready().convert_to_model(report)
        # A function was told about bytes; samples are another count.
        return converter_quantization.fulfil(asked, model, False if callable(progress) else progress)

    @with_timeout
    def convert_to(
        self,
        path: str | os.PathLike[str],
        *,
        progress: bool | Callable[[int, int], object] | None = None,
        timeout: float | None = None,
    ) -> None:
        """The same into a file, which appears whole or not at all.

        A float model is never held in memory: plan().file_peak_bytes.
        """
        del timeout  # kept by with_timeout
        if converter_quantization.request(self) is not None:
            write_file(path, self.convert(progress=progress))
            return
        with progress_of(progress, "Converting") as report:
            self._ready().convert_to(path, report)


def _save_functions(tf: Any, trackable: Any, path: Path, functions: dict[str, Any]) -> None:
    """Saves them with `trackable` where TensorFlow can: it takes no tf.function, and of a loaded SavedModel nothing
    that was not traced. Else with the variables they refer to, which is all that most need.
    """
    if trackable is not None:
        try:
            tf.saved_model.save(trackable, str(path), signatures=functions)
        except Exception:
            shutil.rmtree(path, ignore_errors=True)
        else:
            return
    holder = tf.Module()
    holder.variables_of_functions = [variable for function in functions.values() for variable in function.variables]
    tf.saved_model.save(holder, str(path), signatures=functions)


def _function_names(functions: Sequence[Any]) -> list[str]:
    """The names that users gave them: "__inference_add_12" was add."""
    names: list[str] = []
    for function in functions:
        given = function.name.decode() if isinstance(function.name, bytes) else str(function.name)
        name = unique = re.sub(r"^__inference_|_\d+$", "", given)
        count = 0
        while unique in names:
            count += 1
            unique = f"{name}_{count}"
        names.append(unique)
    return names


def _is_keras_3(model: Any) -> bool:
    """Whether it is a model of Keras 3, and not of tf_keras or an older Keras."""
    keras = sys.modules.get("keras")  # loaded, if this is a model of Keras 3
    return keras is not None and keras.__version__.startswith("3.") and isinstance(model, keras.Model)


def _has_graph(model: Any) -> bool:
    """Whether the model's configuration says what it computes: Functional and Sequential ones."""
    try:
        return "layers" in model.get_config()
    except NotImplementedError:
        return False


def _runs_on_tensorflow(model: Any) -> bool:
    if not _is_keras_3(model):
        return True
    import keras

    return bool(keras.backend.backend() == "tensorflow")
