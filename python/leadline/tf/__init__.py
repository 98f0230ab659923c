# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's interface on Leadline's engine: what programs use most, planned and budgeted before anything large is
allocated.

    from leadline import tf              # or: leadline.tf.install(), then import tensorflow as tf

    tf.set_budget("2GB")
    y = tf.matmul(x, tf.transpose(x))    # the transpose costs nothing
    tf.random.normal([10000] * 3)        # refused at once: 3.6 TiB

docs/tf.md lists what is there. What is not raises AttributeError; nothing is a stub that does nothing.
"""

from __future__ import annotations

import types as _types
import typing as _typing

import leadline as _leadline
from leadline import lite
from leadline.tf import compat, config, control as _control, dtypes, errors, linalg, math, nn, random

# Lists, or each of the names would have a line.
# isort: off
from leadline.tf.array import (
    argsort, boolean_mask, broadcast_static_shape, broadcast_to, concat, ensure_shape, expand_dims, fill, gather,
    gather_nd, identity, linspace, meshgrid, newaxis, one_hot, ones, ones_like, pad, range, rank, repeat, reshape,
    reverse, roll, scatter_nd, searchsorted, sequence_mask, shape, shape_n, size, slice, sort, split, squeeze, stack,
    stop_gradient, strided_slice, tensor_scatter_nd_add, tensor_scatter_nd_sub, tensor_scatter_nd_update, tile,
    transpose, unique, unique_with_counts, unstack, where, zeros, zeros_like,
)  # fmt: skip
from leadline.tf.config import device
from leadline.tf.control import (
    Module, cond, map_fn, numpy_function, print, py_function, vectorized_map, while_loop,
)  # fmt: skip
from leadline.tf.convert import constant, convert_to_tensor, is_tensor
from leadline.tf.dtypes import (
    DType, as_dtype, bool, complex64, complex128, double, float16, float32, float64, half, int8, int16, int32, int64,
    resource, string, uint8, uint16, uint32, uint64, variant,
)  # fmt: skip
from leadline.tf.functions import TensorSpec, function
from leadline.tf.graph import Graph, Operation, executing_eagerly, name_scope
from leadline.tf.installer import install, uninstall
from leadline.tf.linalg import einsum, eye, matmul, norm, tensordot
from leadline.tf.arithmetic import (
    abs, acos, acosh, add, add_n, argmax, argmin, asin, asinh, atan, atan2, atanh, cast, clip_by_value, complex, cos,
    cosh, cumsum, divide, equal, exp, floor, greater, greater_equal, less, less_equal, logical_and, logical_not,
    logical_or, maximum, minimum, multiply, negative, not_equal, pow, reduce_all, reduce_any, reduce_logsumexp,
    reduce_max, reduce_mean, reduce_min, reduce_prod, reduce_sum, round, saturate_cast, scalar_mul, sigmoid, sign,
    sin, sinh, sqrt, square, subtract, tan, tanh, truediv, truncatediv, truncatemod,
)  # fmt: skip
from leadline.tf.memory import get_budget, set_budget
from leadline.tf.shapes import TensorShape
from leadline.tf.tensor import Tensor
from leadline.tf.variables import Variable, group, no_op
# isort: on

if _typing.TYPE_CHECKING:  # __getattr__ imports it
    from leadline.tf import keras as keras

__all__ = [
    "DType",
    "Graph",
    "Module",
    "Operation",
    "Tensor",
    "TensorShape",
    "TensorSpec",
    "Variable",
    "__version__",
    "abs",
    "acos",
    "acosh",
    "add",
    "add_n",
    "argmax",
    "argmin",
    "argsort",
    "as_dtype",
    "asin",
    "asinh",
    "assert_equal",
    "assert_greater",
    "assert_less",
    "assert_rank",
    "atan",
    "atan2",
    "atanh",
    "bitwise",
    "bool",
    "boolean_mask",
    "broadcast_static_shape",
    "broadcast_to",
    "cast",
    "clip_by_value",
    "compat",
    "complex",
    "complex64",
    "complex128",
    "concat",
    "cond",
    "config",
    "constant",
    "control_dependencies",
    "convert_to_tensor",
    "cos",
    "cosh",
    "cumsum",
    "debugging",
    "device",
    "divide",
    "double",
    "dtypes",
    "einsum",
    "ensure_shape",
    "equal",
    "errors",
    "executing_eagerly",
    "exp",
    "expand_dims",
    "eye",
    "fill",
    "float16",
    "float32",
    "float64",
    "floor",
    "function",
    "gather",
    "gather_nd",
    "get_budget",
    "get_logger",
    "get_static_value",
    "greater",
    "greater_equal",
    "group",
    "half",
    "identity",
    "init_scope",
    "install",
    "int8",
    "int16",
    "int32",
    "int64",
    "is_tensor",
    "less",
    "less_equal",
    "linalg",
    "linspace",
    "lite",
    "logical_and",
    "logical_not",
    "logical_or",
    "map_fn",
    "math",
    "matmul",
    "maximum",
    "meshgrid",
    "minimum",
    "multiply",
    "name_scope",
    "negative",
    "newaxis",
    "nn",
    "no_op",
    "norm",
    "not_equal",
    "numpy_function",
    "one_hot",
    "ones",
    "ones_like",
    "pad",
    "pow",
    "print",
    "py_function",
    "random",
    "range",
    "rank",
    "reduce_all",
    "reduce_any",
    "reduce_logsumexp",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
    "repeat",
    "reshape",
    "resource",
    "reverse",
    "roll",
    "round",
    "saturate_cast",
    "scalar_mul",
    "scatter_nd",
    "searchsorted",
    "sequence_mask",
    "set_budget",
    "shape",
    "shape_n",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "size",
    "slice",
    "sort",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "stop_gradient",
    "strided_slice",
    "string",
    "subtract",
    "tan",
    "tanh",
    "tensor_scatter_nd_add",
    "tensor_scatter_nd_sub",
    "tensor_scatter_nd_update",
    "tensordot",
    "test",
    "tile",
    "transpose",
    "truediv",
    "truncatediv",
    "truncatemod",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "uninstall",
    "unique",
    "unique_with_counts",
    "unstack",
    "variant",
    "vectorized_map",
    "version",
    "where",
    "while_loop",
    "zeros",
    "zeros_like",
]  # fmt: skip

# The interface is that of 2.21; the local part says who implements it, and sorts as PEP 440 has it.
__version__ = f"2.21.0+leadline.{_leadline.__version__}"
version = _types.SimpleNamespace(VERSION=__version__, GIT_VERSION="unknown", COMPILER_VERSION="unknown")

bitwise = _types.SimpleNamespace(
    bitwise_and=math.bitwise_and, bitwise_or=math.bitwise_or, bitwise_xor=math.bitwise_xor, invert=math.invert,
    left_shift=math.left_shift, right_shift=math.right_shift,
)  # fmt: skip
debugging = _types.SimpleNamespace(
    assert_equal=_control.assert_equal, assert_none_equal=_control.assert_none_equal, assert_less=_control.assert_less,
    assert_less_equal=_control.assert_less_equal, assert_greater=_control.assert_greater,
    assert_greater_equal=_control.assert_greater_equal, assert_rank=_control.assert_rank,
    check_numerics=_control.check_numerics,
)  # fmt: skip
debugging.set_log_device_placement = config.set_log_device_placement
debugging.assert_all_finite = lambda x, message="", name=None: _control.check_numerics(x, message)
assert_equal, assert_less, assert_greater, assert_rank = (
    _control.assert_equal, _control.assert_less, _control.assert_greater, _control.assert_rank,
)  # fmt: skip


test = _types.SimpleNamespace(
    is_gpu_available=config.is_gpu_available, gpu_device_name=config.gpu_device_name,
    is_built_with_cuda=config.is_built_with_cuda,
)  # fmt: skip


def get_logger():
    """The logger of this name, as programs set its level."""
    import logging

    return logging.getLogger("tensorflow")


def init_scope():
    """A context outside of all graphs."""
    from leadline.tf.graph import eagerly

    return eagerly()


def control_dependencies(control_inputs):
    """A context in which operations of a graph run after others."""
    import contextlib

    from leadline.tf import graph

    return graph.current().control_dependencies(control_inputs) if graph.building() else contextlib.nullcontext()


def get_static_value(tensor, partial=False):
    """The value of a tensor where it is known before a run, or None."""
    from leadline.tf.graph import known_value

    return known_value(tensor) if isinstance(tensor, Tensor) else tensor


def load_ipython_extension(ipython) -> None:
    """`%load_ext leadline.tf`: `import tensorflow` finds leadline.tf when TensorFlow is not installed."""
    if not install():
        import builtins

        builtins.print("leadline.tf: TensorFlow is installed and is used; leadline.tf.install(force=True) changes that")


def unload_ipython_extension(ipython) -> None:
    uninstall()


def __getattr__(name: str):
    if name == "keras":
        import importlib

        return importlib.import_module("leadline.tf.keras")
    if name == "bfloat16":
        return dtypes.bfloat16_type()
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise AttributeError(
        f"leadline.tf has no '{name}'. It is the part of TensorFlow's interface that runs on Leadline's engine; real "
        "TensorFlow has the rest. docs/tf.md lists what is there."
    )
