# SPDX-License-Identifier: Apache-2.0
"""Rows of the ops that work element by element."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from leadline.tf import dtypes, shapes, tiles
from leadline.tf.engine import direct, numpy_scratch
from leadline.tf.errors import InvalidArgumentError
from leadline.tf.op import Call, row

_FLOAT = ("float16", "bfloat16", "float32", "float64")
_REAL = (*_FLOAT, "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_COMPLEX = ("complex64", "complex128")
_KINDS = {
    "float": _FLOAT,
    "field": (*_FLOAT, *_COMPLEX),
    "real": _REAL,
    "number": (*_REAL, *_COMPLEX),
    "bool": ("bool",),
    "integer": tuple(name for name in _REAL if "int" in name),
    "complex": _COMPLEX,
    "any": (*_REAL, *_COMPLEX, "bool", "string"),
}


def check_types(call: Call, allowed: tuple[str, ...]) -> None:
    for dtype in call.dtypes:
        if dtype.name not in allowed:
            call.refuse(
                f"Value for attr 'T' of {dtype.name} is not in the list of allowed values: {', '.join(allowed)}\n\t; "
                f"NodeDef: {{{{node {call.op}}}}}"
            )


def _infer_unary(kind: str, result=None):
    allowed = _KINDS[kind]

    def infer(call: Call):
        check_types(call, allowed)
        dtype = call.dtypes[0]
        return [(dtype if result is None else result(dtype), call.dims[0])]

    return infer


def _infer_binary(kind: str, result=None):
    allowed = _KINDS[kind]

    def infer(call: Call):
        dtype = call.same_dtypes()
        check_types(call, allowed)
        return [(dtype if result is None else result, broadcast(call, *call.dims))]

    return infer


def broadcast(call: Call, a, b):
    try:
        return shapes.broadcast(a, b)
    except ValueError:
        if call.symbolic:
            rank = max(len(a), len(b))
            pairs = zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b)
            x, y = next((x, y) for x, y in pairs if x != y and 1 not in (x, y) and None not in (x, y))
            call.refuse(f"Dimensions must be equal, but are {x} and {y}")
        call.refuse(f"Incompatible shapes: {shapes.text(a)} vs. {shapes.text(b)}")


def _each(function):
    """A function of one Python number, for each element."""
    vector = np.frompyfunc(function, 1, 1)

    def compute(x):
        flat, result = x.reshape(-1), np.empty(x.shape, x.dtype)
        target = result.reshape(-1)
        for i in range(0, flat.size, _BLOCK):  # objects of Python are large
            target[i : i + _BLOCK] = vector(flat[i : i + _BLOCK])
        return result

    return _lean(compute)


def _lean(function):
    """Marks a function that makes no arrays beside its result."""
    function.scratch = 0
    return function


def _sigmoid(x):
    # Where exp(-x) overflows the result is 0 anyway.
    return 1 / (1 + np.exp(-x))


def _rsqrt(x):
    root = np.asarray(np.sqrt(x))
    return np.divide(root.dtype.type(1), root, out=root)


def _softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _round(x):
    return np.rint(x) if x.dtype.kind in "fc" else x


def _reciprocal(x):
    if x.dtype.kind in "iu":
        _no_zero(x)
        return (np.ones((), x.dtype) / x).astype(x.dtype)
    return np.ones((), x.dtype) / x


def _no_zero(y) -> None:
    if y.dtype.kind in "iu" and not np.all(y):
        raise InvalidArgumentError(message="Integer division by zero")


def _floor_div(x, y):
    _no_zero(y)
    return np.floor_divide(x, y) if x.dtype.kind in "iu" else np.floor(x / y)


def _floor_mod(x, y):
    _no_zero(y)
    return np.mod(x, y)


def _truncate_div(x, y):
    _no_zero(y)
    if x.dtype.kind in "iu":
        quotient = np.floor_divide(x, y)
        return quotient + ((quotient < 0) & (quotient * y != x)).astype(x.dtype)
    return np.trunc(x / y)


def _truncate_mod(x, y):
    _no_zero(y)
    return np.fmod(x, y)


def _real_div(x, y):
    if x.dtype.kind in "iu":
        return _truncate_div(x, y)
    return np.divide(x, y)


def _pow(x, y):
    if y.dtype.kind == "i" and np.any(y < 0):
        raise InvalidArgumentError(message="Integers to negative integer powers are not allowed")
    return np.power(x, y)


def _where_zero(test, otherwise):
    return np.where(test, np.zeros((), np.result_type(otherwise)), otherwise)


def _leaky(x, *, alpha):
    return np.where(x > 0, x, x * x.dtype.type(alpha))


def _shift(function):
    # Shifting by the width or more is undefined; TensorFlow clamps the count.
    return lambda x, y: function(x, np.clip(y, 0, 8 * x.dtype.itemsize - 1).astype(x.dtype))


_BLOCK = 1 << 14
_SELU_SCALE, _SELU_ALPHA = 1.0507009873554805, 1.6732632423543772
_FLOAT32 = ("float32",)
_BOOL = dtypes.bool

# name, kinds of inputs, numpy, the engine's op (None: numpy computes it), its types
_UNARY: list[tuple[str, str, Any, str | None, tuple[str, ...]]] = [
    ("Abs", "real", np.abs, "ABS", ("float32", "int32")),
    ("Neg", "number", np.negative, "NEG", ("float32", "int32")),
    ("Sign", "number", np.sign, "SIGN", _FLOAT32),
    ("Exp", "field", np.exp, "EXP", _FLOAT32),
    ("Expm1", "field", np.expm1, None, ()),
    ("Log", "field", np.log, "LOG", _FLOAT32),
    ("Log1p", "field", np.log1p, None, ()),
    ("Sqrt", "field", np.sqrt, "SQRT", _FLOAT32),
    ("Rsqrt", "field", _lean(_rsqrt), "RSQRT", _FLOAT32),
    ("Square", "number", np.square, "SQUARE", _FLOAT32),
    ("Sin", "field", np.sin, "SIN", _FLOAT32),
    ("Cos", "field", np.cos, "COS", _FLOAT32),
    ("Tan", "field", np.tan, None, ()),
    ("Asin", "field", np.arcsin, None, ()),
    ("Acos", "field", np.arccos, None, ()),
    ("Atan", "field", np.arctan, None, ()),
    ("Sinh", "field", np.sinh, None, ()),
    ("Cosh", "field", np.cosh, None, ()),
    ("Tanh", "field", np.tanh, "TANH", _FLOAT32),
    ("Asinh", "field", np.arcsinh, None, ()),
    ("Acosh", "field", np.arccosh, None, ()),
    ("Atanh", "field", np.arctanh, None, ()),
    ("Floor", "float", np.floor, "FLOOR", _FLOAT32),
    ("Ceil", "float", np.ceil, "CEIL", _FLOAT32),
    ("Rint", "float", np.rint, "ROUND", _FLOAT32),
    ("Round", "number", _round, None, ()),
    ("Reciprocal", "number", _reciprocal, None, ()),
    ("Sigmoid", "field", _sigmoid, "LOGISTIC", _FLOAT32),
    ("Relu", "real", _lean(lambda x: np.maximum(x, x.dtype.type(0))), "RELU", _FLOAT32),
    ("Relu6", "real", _lean(lambda x: np.clip(x, x.dtype.type(0), x.dtype.type(6))), "RELU6", _FLOAT32),
    ("Elu", "float", lambda x: np.where(x > 0, x, np.expm1(x)), "ELU", _FLOAT32),
    ("Selu", "float", lambda x: _SELU_SCALE * np.where(x > 0, x, _SELU_ALPHA * np.expm1(x)), None, ()),
    ("Softplus", "float", _softplus, None, ()),
    ("Softsign", "float", lambda x: x / (1 + np.abs(x)), None, ()),
    ("Erf", "float", _each(math.erf), None, ()),
    ("Erfc", "float", _each(math.erfc), None, ()),
    ("Lgamma", "float", _each(lambda x: math.inf if x <= 0 and x == int(x) else math.lgamma(x)), None, ()),
    ("LogicalNot", "bool", np.logical_not, "LOGICAL_NOT", ("bool",)),
    ("Invert", "integer", np.invert, None, ()),
    ("Conj", "complex", np.conj, None, ()),
]
_UNARY_TO: list[tuple[str, str, Any, Any]] = [
    ("IsNan", "float", np.isnan, lambda dtype: _BOOL),
    ("IsInf", "float", np.isinf, lambda dtype: _BOOL),
    ("IsFinite", "float", np.isfinite, lambda dtype: _BOOL),
    ("Real", "complex", np.real, lambda dtype: dtype.real_dtype),
    ("Imag", "complex", np.imag, lambda dtype: dtype.real_dtype),
    ("Angle", "complex", np.angle, lambda dtype: dtype.real_dtype),
    ("ComplexAbs", "complex", np.abs, lambda dtype: dtype.real_dtype),
]
_BOTH = ("float32", "int32")
_BINARY: list[tuple[str, str, Any, str | None, tuple[str, ...]]] = [
    ("AddV2", "any", np.add, "ADD", _BOTH),
    ("Sub", "number", np.subtract, "SUB", _BOTH),
    ("Mul", "number", np.multiply, "MUL", _BOTH),
    ("RealDiv", "number", _real_div, "DIV", _FLOAT32),
    ("FloorDiv", "real", _floor_div, None, ()),
    ("FloorMod", "real", _floor_mod, None, ()),
    ("TruncateDiv", "number", _truncate_div, None, ()),
    ("TruncateMod", "real", _truncate_mod, None, ()),
    ("Pow", "number", _pow, "POW", _FLOAT32),
    ("Maximum", "real", np.maximum, "MAXIMUM", _BOTH),
    ("Minimum", "real", np.minimum, "MINIMUM", _BOTH),
    ("SquaredDifference", "number", lambda x, y: np.square(x - y), "SQUARED_DIFFERENCE", _BOTH),
    ("Atan2", "float", np.arctan2, None, ()),
    ("DivNoNan", "field", lambda x, y: _where_zero(y == 0, x / np.where(y == 0, y.dtype.type(1), y)), None, ()),
    ("MulNoNan", "field", lambda x, y: _where_zero(y == 0, x * y), None, ()),
    ("Xdivy", "field", lambda x, y: _where_zero(x == 0, x / y), None, ()),
    ("Xlogy", "field", lambda x, y: _where_zero(x == 0, x * np.log(y)), None, ()),
    ("Xlog1py", "field", lambda x, y: _where_zero(x == 0, x * np.log1p(y)), None, ()),
    ("BitwiseAnd", "integer", np.bitwise_and, None, ()),
    ("BitwiseOr", "integer", np.bitwise_or, None, ()),
    ("BitwiseXor", "integer", np.bitwise_xor, None, ()),
    ("LeftShift", "integer", _shift(np.left_shift), None, ()),
    ("RightShift", "integer", _shift(np.right_shift), None, ()),
    ("LogicalAnd", "bool", np.logical_and, "LOGICAL_AND", ("bool",)),
    ("LogicalOr", "bool", np.logical_or, "LOGICAL_OR", ("bool",)),
]
_COMPARISONS = [
    ("Equal", "any", np.equal, "EQUAL"),
    ("NotEqual", "any", np.not_equal, "NOT_EQUAL"),
    ("Less", "real", np.less, "LESS"),
    ("LessEqual", "real", np.less_equal, "LESS_EQUAL"),
    ("Greater", "real", np.greater, "GREATER"),
    ("GreaterEqual", "real", np.greater_equal, "GREATER_EQUAL"),
]


def _options(function, op, types) -> dict:
    options: dict = {"rows": tiles.elementwise}
    if op is not None:
        options["engine"] = direct(op, types)
    if isinstance(function, np.ufunc):
        return options | {"ufunc": function}
    return options | {"scratch": getattr(function, "scratch", 2)}


for _name, _kind, _function, _op, _types in _UNARY:
    row(_name, _infer_unary(_kind), _function, **_options(_function, _op, _types))
for _name, _kind, _function, _result in _UNARY_TO:
    row(_name, _infer_unary(_kind, _result), _function, rows=tiles.elementwise)
for _name, _kind, _function, _op, _types in _BINARY:
    row(_name, _infer_binary(_kind), _function, **_options(_function, _op, _types))
for _name, _kind, _function, _op in _COMPARISONS:
    row(_name, _infer_binary(_kind, _BOOL), _function, rows=tiles.elementwise, engine=direct(_op, _BOTH))

row("LeakyRelu", _infer_unary("float"), _leaky, rows=tiles.elementwise, scratch=2)


def _gelu(x, *, approximate):
    if approximate:
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + _each(math.erf)(x / math.sqrt(2)))


def _engine_gelu(stretch, inputs, attrs, ins, outs):
    return direct("GELU", _FLOAT32, approximate=attrs["approximate"])(stretch, inputs, attrs, ins, outs)


_GELU_OPTIONS = {
    "rows": tiles.elementwise,
    "engine": _engine_gelu,
    "heavy": True,
    "scratch": numpy_scratch(3),
}
row("Gelu", _infer_unary("float"), _gelu, **_GELU_OPTIONS)


def _infer_select(call: Call):
    call.refuse_if(call.dtypes[0] is not _BOOL, f"the condition is {call.dtypes[0].name}, expected bool")
    dtype = call.same_dtypes(1)
    return [(dtype, broadcast(call, call.dims[0], broadcast(call, call.dims[1], call.dims[2])))]


row("SelectV2", _infer_select, np.where, rows=tiles.elementwise)


def _infer_cast(call: Call):
    return [(call.attrs["dtype"], call.dims[0])]


def _cast(x, *, dtype):
    if x.dtype.kind == "f" and dtype.is_integer:
        # Out of range is undefined in C; numpy and TensorFlow leave it to the CPU.
        return x.astype(np.int64).astype(dtype.numpy) if dtype.size < 4 else x.astype(dtype.numpy)
    if x.dtype.kind == "c" and not dtype.is_complex:
        x = x.real
    return x.astype(dtype.numpy)


row("Cast", _infer_cast, _cast, rows=tiles.elementwise)
