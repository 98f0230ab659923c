# SPDX-License-Identifier: Apache-2.0
"""tf.compat: v1 is leadline.tf with the functions of TensorFlow 1 in front, v2 is leadline.tf itself."""

from __future__ import annotations

import sys
import types

from leadline.tf import arithmetic, array, control, convert, dtypes, graph, random, session, variables
from leadline.tf.tensor import Tensor


class _Logging:
    """tf.compat.v1.logging: levels are kept, messages go to Python's logging."""

    DEBUG, INFO, WARN, ERROR, FATAL = 10, 20, 30, 40, 50

    def __init__(self) -> None:
        self._level = self.WARN

    def set_verbosity(self, level: int) -> None:
        self._level = level

    def get_verbosity(self) -> int:
        return self._level


class ConfigProto:
    """Options of a session. Leadline's runs need none; they are kept as given."""

    def __init__(self, **options) -> None:
        self.gpu_options = types.SimpleNamespace(allow_growth=True, per_process_gpu_memory_fraction=1.0)
        self.__dict__.update(options)


class GPUOptions(types.SimpleNamespace):
    pass


def _v1_reduction(function):
    def reduce(input_tensor, axis=None, keepdims=None, name=None, reduction_indices=None, keep_dims=None) -> Tensor:
        return function(input_tensor, reduction_indices if axis is None else axis, bool(keepdims or keep_dims), name)

    reduce.__name__ = function.__name__
    return reduce


def _zeros_initializer(dtype=dtypes.float32):
    return lambda shape, dtype=dtype, **ignored: array.zeros(shape, dtype)


def _ones_initializer(dtype=dtypes.float32):
    return lambda shape, dtype=dtype, **ignored: array.ones(shape, dtype)


def _constant_initializer(value=0, dtype=dtypes.float32):
    return lambda shape, dtype=dtype, **ignored: convert.constant(value, dtype, shape)


def _random_normal_initializer(mean=0.0, stddev=1.0, seed=None, dtype=dtypes.float32):
    return lambda shape, dtype=dtype, **ignored: random.normal(shape, mean, stddev, dtype, seed)


def _random_uniform_initializer(minval=-0.05, maxval=0.05, seed=None, dtype=dtypes.float32):
    return lambda shape, dtype=dtype, **ignored: random.uniform(shape, minval, maxval, dtype, seed)


def _disable_v2_behavior() -> None:
    graph.disable_eager_execution()


_FIRST = {
    "AUTO_REUSE": variables.AUTO_REUSE,
    "ConfigProto": ConfigProto,
    "GPUOptions": GPUOptions,
    "GraphKeys": types.SimpleNamespace(
        GLOBAL_VARIABLES="variables", TRAINABLE_VARIABLES="trainable_variables", LOCAL_VARIABLES="local_variables"
    ),
    "InteractiveSession": session.InteractiveSession,
    "Session": session.Session,
    "assign": lambda ref, value, **options: ref.assign(value),
    "assign_add": lambda ref, value, **options: ref.assign_add(value),
    "assign_sub": lambda ref, value, **options: ref.assign_sub(value),
    "arg_max": arithmetic.argmax,
    "arg_min": arithmetic.argmin,
    "constant_initializer": _constant_initializer,
    "disable_eager_execution": graph.disable_eager_execution,
    "disable_v2_behavior": _disable_v2_behavior,
    "div": arithmetic.divide,
    "enable_eager_execution": graph.enable_eager_execution,
    "enable_v2_behavior": graph.enable_eager_execution,
    "executing_eagerly": graph.executing_eagerly,
    "get_default_graph": graph.current,
    "get_default_session": session.current_session,
    "get_variable": variables.get_variable,
    "get_variable_scope": variables.get_variable_scope,
    "get_collection": lambda key, scope=None: graph.current().get_collection(key, scope),
    "global_variables": variables.global_variables,
    "global_variables_initializer": variables.global_variables_initializer,
    "initialize_all_variables": variables.global_variables_initializer,
    "initializers": types.SimpleNamespace(
        zeros=_zeros_initializer,
        ones=_ones_initializer,
        constant=_constant_initializer,
        random_normal=_random_normal_initializer,
        random_uniform=_random_uniform_initializer,
        global_variables=variables.global_variables_initializer,
    ),
    "local_variables": variables.local_variables,
    "local_variables_initializer": variables.local_variables_initializer,
    "log": arithmetic.log,
    "logging": _Logging(),
    "ones_initializer": _ones_initializer,
    "placeholder": session.placeholder,
    "placeholder_with_default": session.placeholder_with_default,
    "random_normal": random.normal,
    "random_normal_initializer": _random_normal_initializer,
    "random_shuffle": random.shuffle,
    "random_uniform": random.uniform,
    "random_uniform_initializer": _random_uniform_initializer,
    "reduce_all": _v1_reduction(arithmetic.reduce_all),
    "reduce_any": _v1_reduction(arithmetic.reduce_any),
    "reduce_max": _v1_reduction(arithmetic.reduce_max),
    "reduce_mean": _v1_reduction(arithmetic.reduce_mean),
    "reduce_min": _v1_reduction(arithmetic.reduce_min),
    "reduce_prod": _v1_reduction(arithmetic.reduce_prod),
    "reduce_sum": _v1_reduction(arithmetic.reduce_sum),
    "reset_default_graph": graph.reset_default_graph,
    "set_random_seed": random.set_seed,
    "to_float": lambda x, name=None: arithmetic.cast(x, dtypes.float32, name),
    "to_int32": lambda x, name=None: arithmetic.cast(x, dtypes.int32, name),
    "to_int64": lambda x, name=None: arithmetic.cast(x, dtypes.int64, name),
    "trainable_variables": variables.trainable_variables,
    "truncated_normal": random.truncated_normal,
    "variable_scope": variables.variable_scope,
    "variables_initializer": variables.variables_initializer,
    "where_v2": array.where,
    "zeros_initializer": _zeros_initializer,
    "Print": lambda input_, data, message=None, **options: (control.print(message or "", *data), input_)[1],
}


class _Module(types.ModuleType):
    """A module over leadline.tf, with names of its own in front."""

    def __init__(self, name: str, first: dict) -> None:
        super().__init__(name, __doc__)
        self.__path__ = []
        self.__dict__.update(first)

    def __getattr__(self, name: str):
        return getattr(sys.modules["leadline.tf"], name)

    def __dir__(self):
        return sorted({*self.__dict__, *dir(sys.modules["leadline.tf"])})


v1 = _Module("leadline.tf.compat.v1", _FIRST)
v2 = _Module("leadline.tf.compat.v2", {})


def as_bytes(text, encoding: str = "utf-8") -> bytes:
    return text.encode(encoding) if isinstance(text, str) else bytes(text)


def as_str(text, encoding: str = "utf-8") -> str:
    return text.decode(encoding) if isinstance(text, bytes) else text


as_text = as_str_any = as_str
