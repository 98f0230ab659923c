# SPDX-License-Identifier: Apache-2.0
"""tf.lite's TFLiteConverter and the classes that describe its target, over Leadline's converter."""

from __future__ import annotations

import difflib
import enum
import functools
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from leadline._leadline import (
    Budget,
    ConversionPlan,
    Converter,
    Error,
    InvalidArgumentError,
    ModelSource,
    UnsupportedError,
    remember_object,
)
from leadline._native.arguments import as_budget
from leadline._native.files import write_file
from leadline.jobs.live_keras import weights_by_path
from leadline.jobs.progress import progress_of, with_timeout
from leadline.lite import concrete_functions, converter_quantization, debug_info, switches

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
    (experimental_new_converter and the like) are accepted and mean nothing here. Ops of a SavedModel that Leadline has
    no conversion for stay TensorFlow's own with OpsSet.SELECT_TF_OPS in target_spec.supported_ops, and become custom
    ops of the same name with allow_custom_ops; without, convert() names the first of them in an error. The file says
    how it was made, as TensorFlow's do, unless exclude_conversion_metadata is set. Switches that ask for what Leadline
    does not do are named in a warning (leadline.lite.switches).
    """

    __module__ = "leadline.lite"  # where users find it

    _ignored = frozenset({*switches.NOTHING_TO_DO, *switches.NOT_DONE})

    def __init__(
        self,
        funcs: Any,
        trackable_obj: Any = None,
        *,
        folder: tempfile.TemporaryDirectory[str] | None = None,
        refusal: UnsupportedError | None = None,
    ) -> None:
        """Concrete functions, as from_concrete_functions() takes them."""
        self._converter: Converter | FunctionConverter
        self._folder = folder  # what the weights are read from, as long as this converter exists
        self._refusal = refusal  # of an op that may become a custom op, or stay TensorFlow's own
        self._with_tensorflow_ops: Callable[[bool], Converter] | None = None  # reads the model again, with such ops
        self._plain: Callable[[], TFLiteConverter] | None = None  # the same without a signature
        self._find_debug_info: Callable[[], Any] = lambda: None
        if hasattr(funcs, "convert_to_model"):
            self._converter = funcs
        else:
            made = self._from_functions(funcs, trackable_obj, None)
            self._converter, self._folder, self._refusal = made._converter, made._folder, made._refusal
            self._plain, self._find_debug_info = made._plain, made._find_debug_info
            self._with_tensorflow_ops = made._with_tensorflow_ops
        self.optimizations: list[Optimize] = []
        self.representative_dataset: RepresentativeDataset | Callable[[], Iterable[Any]] | None = None
        self.target_spec = TargetSpec()
        self.inference_input_type: Any = None
        self.inference_output_type: Any = None
        self.allow_custom_ops = False
        self.exclude_conversion_metadata = False
        self.canonicalizing_inf_as_min_max_float = False
        self.experimental_lower_to_saved_model = True
        self._experimental_unfold_large_splat_constant = False
        switches.add_attributes(self)
        converter_quantization.add_attributes(self)
        self._made = True
        remember_object(self)

    @classmethod
    def from_keras_model(cls, model: Any, *, budget: Budget | int | str | None = None) -> TFLiteConverter:
        """A live model of Keras 3 (any backend) or tf_keras. `budget` as in Interpreter.

        Weights of Keras 3 are read from the model itself, those of tf_keras through a temporary file. A subclassed
        model has no graph to read, and a layer of a class of your own only its code. With TensorFlow such models are
        exported to a temporary SavedModel and converted from there; with other backends their code is called with
        symbolic tensors, and what it asks of keras.ops and of Keras's layers is converted.
        """
        budget = as_budget(budget)
        outline = getattr(type(model), "leadline_description", None)  # of leadline.tf, where Keras was not needed yet
        if outline is not None:
            if (described := outline(model)) is not None:
                config, weights = described
                return cls(_of_config(config, weights, budget))
            model = model._real()
        if not hasattr(model, "save") or not hasattr(model, "get_config"):
            raise InvalidArgumentError(f"expected a Keras model, got {type(model).__name__}")
        if not _has_graph(model):
            return cls._from_subclassed(model, budget)
        try:
            return cls._from_layers(model, budget)
        except UnsupportedError as error:
            refusal = error.with_traceback(None)  # which would hold what failed
        if not _runs_on_tensorflow(model):
            return cls._from_code(model, budget, refusal)
        try:
            made = cls._from_export(model, budget)
        except Exception as failure:
            if not _is_keras_3(model):
                raise refusal from failure.with_traceback(None)  # first what the model itself was refused for
            return cls._from_code(model, budget, refusal)
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
                return cls(_of_config(config, weights, budget))
        folder = tempfile.TemporaryDirectory(prefix="leadline-")
        path = Path(folder.name) / ("model.keras" if _is_keras_3(model) else "model.h5")
        model.save(path)
        return cls(Converter.from_keras(path, budget, tensorflow_version=_tensorflow_version()), folder=folder)

    @classmethod
    def _from_code(cls, model: Any, budget: Budget | None, refusal: UnsupportedError | None = None) -> TFLiteConverter:
        """What the model's layers ask of Keras when they are called; `refusal` is why they could not be read."""
        from leadline.jobs.traced_config import traced_model
        from leadline.jobs.traced_keras import has_own_code

        if refusal is not None and not has_own_code(model):
            raise refusal
        try:
            config, weights = traced_model(model)
            return cls(Converter.from_keras_config(config, lambda path: weights.get(path, []), budget))
        except UnsupportedError as error:
            if refusal is None:
                raise
            failure = error.with_traceback(None)
        raise UnsupportedError(f"{refusal}. Calling its code did not help either: {failure}") from failure

    @classmethod
    def _from_subclassed(cls, model: Any, budget: Budget | None) -> TFLiteConverter:
        name = type(model).__name__
        if not _runs_on_tensorflow(model):
            return cls._from_code(model, budget)
        warnings.warn(
            f"{name} is a subclassed model, which has no graph of layers: it is exported to a temporary SavedModel and "
            "converted from that",
            stacklevel=3,
        )
        try:
            return cls._from_export(model, budget)
        except Exception as failure:
            if not _is_keras_3(model):
                raise
            try:  # code that TensorFlow cannot follow, but Keras can
                return cls._from_code(model, budget)
            except Exception:
                raise failure from None

    @classmethod
    def _from_export(cls, model: Any, budget: Budget | None) -> TFLiteConverter:
        """What TensorFlow traces when the model is saved."""
        folder = tempfile.TemporaryDirectory(prefix="leadline-")
        path = Path(folder.name) / "model"
        try:
            if _is_keras_3(model):
                _export_for_inference(model, path)
            else:
                model.save(path, save_format="tf")
            return cls._from_folder(path, ["serving_default"], [], budget, folder, source=ModelSource.KERAS_MODEL)
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
        **details: Any,
    ) -> TFLiteConverter:
        """allow_custom_ops and SELECT_TF_OPS are set later, so an op without a conversion is not an error before
        convert()."""

        def read(allow_custom_ops: bool = False, select_tf_ops: bool = False) -> Converter:
            return Converter.from_saved_model(path, keys, tags, budget, allow_custom_ops, select_tf_ops, **details)

        try:
            return cls(read(), folder=folder)
        except UnsupportedError as error:
            refusal = error.with_traceback(None)  # which would hold what failed
        try:
            made = cls(read(allow_custom_ops=True), folder=folder, refusal=refusal)
        except UnsupportedError:  # it has other troubles, too
            made = cls(_Refused(refusal), folder=folder, refusal=refusal)
        made._with_tensorflow_ops = lambda allow_custom_ops: read(allow_custom_ops, select_tf_ops=True)
        return made

    def _leave_signatures_out(self) -> None:
        if isinstance(self._converter, Converter):
            self._converter = self._converter.without_signatures()
        again = self._with_tensorflow_ops
        if again is not None:
            self._with_tensorflow_ops = lambda allow_custom_ops: again(allow_custom_ops).without_signatures()

    def _ready(self) -> Converter | FunctionConverter:
        if not self.experimental_lower_to_saved_model and self._plain is not None:
            made = self._plain()
            self._refusal, self._plain = made._refusal, None
            self._converter, self._with_tensorflow_ops = made._converter, made._with_tensorflow_ops
            self._leave_signatures_out()
        ready = self._converter
        ops = {getattr(value, "name", str(value)) for value in self.target_spec.supported_ops}
        if "SELECT_TF_OPS" in ops and self._with_tensorflow_ops is not None:
            ready = self._with_tensorflow_ops(bool(self.allow_custom_ops))
        elif self._refusal is not None and not self.allow_custom_ops:
            raise self._refusal
        if not isinstance(ready, Converter):
            return ready
        if "SELECT_TF_OPS" in ops:
            ready = ready.with_select_tf_ops()
        if self._experimental_unfold_large_splat_constant:
            ready = ready.with_unfolded_constants()
        if self.canonicalizing_inf_as_min_max_float:
            ready = ready.with_finite_constants()
        if self.exclude_conversion_metadata:
            return ready.without_record()
        return ready.with_record(bool(self.allow_custom_ops), "SELECT_TF_OPS" in ops)

    @classmethod
    def from_keras_file(
        cls, path: str | os.PathLike[str], *, budget: Budget | int | str | None = None
    ) -> TFLiteConverter:
        """A saved model: .keras, or a whole-model .h5."""
        return cls(Converter.from_keras(path, as_budget(budget), tensorflow_version=_tensorflow_version()))

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
        made = cls._from_folder(saved_model_dir, keys, chosen, as_budget(budget))
        made._find_debug_info = lambda: debug_info.of_saved_model(saved_model_dir)
        return made

    @classmethod
    def from_concrete_functions(
        cls, funcs: Any, trackable_obj: Any = None, *, budget: Budget | int | str | None = None
    ) -> TFLiteConverter:
        """Functions of TensorFlow's (tf.function's get_concrete_function()), through a temporary SavedModel, or one of
        leadline.tf's.

        One becomes the signature serving_default, several become signatures with their names. `trackable_obj` holds
        their variables and tables; it may be left out or be anything else, as long as the functions need no tables.
        Without it, or where TensorFlow cannot save them with it, a single function becomes a model without a signature
        whose inputs are the function's arguments, in their order and with their names, as in TensorFlow.
        """
        return cls._from_functions(funcs, trackable_obj, as_budget(budget))

    @classmethod
    def _from_functions(cls, funcs: Any, trackable_obj: Any, budget: Budget | None) -> TFLiteConverter:
        functions: list[Any] = list(funcs) if isinstance(funcs, (list, tuple)) else [funcs]
        concrete_functions.check(functions)
        own = sys.modules.get("leadline.tf.functions")  # not imported: then none of them is of leadline.tf
        if own is not None and all(isinstance(function, own.ConcreteFunction) for function in functions):
            from leadline.tf.export import converter_of

            return cls(converter_of(functions))
        import tensorflow as tf  # concrete functions exist, so it is loaded already

        folder = tempfile.TemporaryDirectory(prefix="leadline-")
        path = Path(folder.name) / "model"
        saved = concrete_functions.save(tf, functions, trackable_obj, path)
        source = ModelSource.CONCRETE_FUNCTIONS

        def plain() -> TFLiteConverter:
            names = {"plain_inputs": saved.plain_inputs, "plain_outputs": saved.plain_outputs}
            return cls._from_folder(path, saved.keys, [], budget, folder, source=source, **names)

        if len(functions) == 1 and saved.bare:
            made = plain()
            made._leave_signatures_out()
        else:
            made = cls._from_folder(path, saved.keys, [], budget, folder, source=source)
        made._plain = plain if len(functions) == 1 else None
        made._find_debug_info = lambda: debug_info.of_functions(functions)
        return made

    @classmethod
    def experimental_from_jax(cls, serving_funcs: Any, inputs: Any) -> TFLiteConverter:
        """Not possible: raises UnsupportedError, which says what is."""
        del serving_funcs, inputs
        raise UnsupportedError(
            "functions of JAX are not converted directly: export them as a SavedModel (jax.experimental."
            "jax2tf.convert, then tf.saved_model.save) and use from_saved_model()"
        )

    @property
    def _debug_info(self) -> Any:
        """Where the nodes were made, as far as TensorFlow knows: its GraphDebugInfo, or None."""
        return self._find_debug_info()

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
        switches.warn(self, 3)
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
        switches.warn(self, 3)
        with progress_of(progress, "Converting") as report:
            self._ready().convert_to(path, report)


class _Refused:
    """Stands for a model that cannot be read: what it was refused for is said when it is converted."""

    def __init__(self, refusal: UnsupportedError) -> None:
        self._refusal = refusal

    def plan(self, *_: Any) -> Any:
        raise self._refusal

    convert = convert_to = convert_to_model = plan


def _of_config(config: str, weights: dict[str, Any], budget: Budget | None) -> Converter:
    version = _tensorflow_version()
    return Converter.from_keras_config(config, lambda path: weights.get(path, []), budget, tensorflow_version=version)


def _tensorflow_version() -> str:
    """Of TensorFlow, where the program uses it."""
    return str(getattr(sys.modules.get("tensorflow"), "__version__", ""))


def _is_keras_3(model: Any) -> bool:
    """Whether it is a model of Keras 3, and not of tf_keras or an older Keras."""
    keras = sys.modules.get("keras")  # loaded, if this is a model of Keras 3
    return keras is not None and keras.__version__.startswith("3.") and isinstance(model, keras.Model)


def _export_for_inference(model: Any, path: Path) -> None:
    """A SavedModel as Keras writes it for LiteRT. Keras's plain export does not say that the model is not trained, and
    then a layer such as Resizing puts the layers after it in training: their batches would be normalized.
    """
    import keras

    try:
        from keras.src.export.export_utils import get_input_signature
    except ImportError:  # before Keras 3.7
        model.export(path, verbose=False)
        return
    signature = get_input_signature(model)
    archive = keras.export.ExportArchive()
    archive.track(model)
    archive.add_endpoint(
        "serve",
        functools.partial(model.__call__, training=False),
        input_signature=signature if isinstance(signature, (list, tuple)) else [signature],
    )
    archive.write_out(str(path), verbose=False)


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
