# SPDX-License-Identifier: Apache-2.0
"""Functions over the rows of elementwise.py and reductions.py: the larger part of tf.math."""

from __future__ import annotations

import numpy as np

from leadline.tf import dtypes, elementwise, reductions  # noqa: F401 they fill the table
from leadline.tf.convert import convert_all, convert_to_tensor
from leadline.tf.dtypes import as_dtype
from leadline.tf.op import apply
from leadline.tf.reductions import normalized_axes
from leadline.tf.tensor import Tensor


def _unary(op: str, public: str):
    def function(x, name=None) -> Tensor:
        return apply(op, [convert_to_tensor(x)], name or public)

    return _named(function, public, f"{op} of each element.")


def _binary(op: str, public: str):
    def function(x, y, name=None) -> Tensor:
        return apply(op, convert_all([x, y]), name or public)

    return _named(function, public, f"{op} of elements of x and y, which are broadcast to one shape.")


def _named(function, name: str, doc: str):
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


exp, expm1, log, log1p = _unary("Exp", "Exp"), _unary("Expm1", "Expm1"), _unary("Log", "Log"), _unary("Log1p", "Log1p")
sqrt, rsqrt, square = _unary("Sqrt", "Sqrt"), _unary("Rsqrt", "Rsqrt"), _unary("Square", "Square")
sin, cos, tan = _unary("Sin", "Sin"), _unary("Cos", "Cos"), _unary("Tan", "Tan")
asin, acos, atan = _unary("Asin", "Asin"), _unary("Acos", "Acos"), _unary("Atan", "Atan")
sinh, cosh, tanh = _unary("Sinh", "Sinh"), _unary("Cosh", "Cosh"), _unary("Tanh", "Tanh")
asinh, acosh, atanh = _unary("Asinh", "Asinh"), _unary("Acosh", "Acosh"), _unary("Atanh", "Atanh")
floor, ceil, rint, round = (
    _unary("Floor", "Floor"),
    _unary("Ceil", "Ceil"),
    _unary("Rint", "Rint"),
    _unary("Round", "Round"),
)
negative, sign, reciprocal = _unary("Neg", "Neg"), _unary("Sign", "Sign"), _unary("Reciprocal", "Reciprocal")
sigmoid, softplus, softsign = (
    _unary("Sigmoid", "Sigmoid"),
    _unary("Softplus", "Softplus"),
    _unary("Softsign", "Softsign"),
)
erf, erfc, lgamma = _unary("Erf", "Erf"), _unary("Erfc", "Erfc"), _unary("Lgamma", "Lgamma")
is_nan, is_inf, is_finite = _unary("IsNan", "IsNan"), _unary("IsInf", "IsInf"), _unary("IsFinite", "IsFinite")
logical_not, invert = _unary("LogicalNot", "LogicalNot"), _unary("Invert", "Invert")

add, subtract, multiply = _binary("AddV2", "Add"), _binary("Sub", "Sub"), _binary("Mul", "Mul")
floordiv, floormod, mod = (
    _binary("FloorDiv", "floordiv"),
    _binary("FloorMod", "FloorMod"),
    _binary("FloorMod", "FloorMod"),
)
truncatediv, truncatemod = _binary("TruncateDiv", "TruncateDiv"), _binary("TruncateMod", "TruncateMod")
maximum, minimum = _binary("Maximum", "Maximum"), _binary("Minimum", "Minimum")
squared_difference, atan2 = _binary("SquaredDifference", "SquaredDifference"), _binary("Atan2", "Atan2")
multiply_no_nan = _binary("MulNoNan", "multiply_no_nan")
xdivy, xlogy, xlog1py = _binary("Xdivy", "Xdivy"), _binary("Xlogy", "Xlogy"), _binary("Xlog1py", "Xlog1py")
pow = _binary("Pow", "Pow")
less, less_equal = _binary("Less", "Less"), _binary("LessEqual", "LessEqual")
greater, greater_equal = _binary("Greater", "Greater"), _binary("GreaterEqual", "GreaterEqual")
equal, not_equal = _binary("Equal", "Equal"), _binary("NotEqual", "NotEqual")
logical_and, logical_or = _binary("LogicalAnd", "LogicalAnd"), _binary("LogicalOr", "LogicalOr")
bitwise_and, bitwise_or = _binary("BitwiseAnd", "BitwiseAnd"), _binary("BitwiseOr", "BitwiseOr")
bitwise_xor = _binary("BitwiseXor", "BitwiseXor")
left_shift, right_shift = _binary("LeftShift", "LeftShift"), _binary("RightShift", "RightShift")


def logical_xor(x, y, name=None) -> Tensor:
    """x != y of truth values."""
    return not_equal(convert_to_tensor(x, dtype=dtypes.bool), convert_to_tensor(y, dtype=dtypes.bool), name)


def abs(x, name=None) -> Tensor:
    """The absolute value of each element; of complex numbers their length."""
    x = convert_to_tensor(x)
    return apply("ComplexAbs" if x.dtype.is_complex else "Abs", [x], name or "Abs")


def divide(x, y, name=None) -> Tensor:
    """x / y as Python has it."""
    return truediv(x, y, name)


def truediv(x, y, name=None) -> Tensor:
    """x / y; integers become floating: int8 and int16 float32, the larger ones float64."""
    x, y = convert_all([x, y])
    if x.dtype.is_integer and x.dtype is y.dtype:
        to = dtypes.float32 if x.dtype.size <= 2 else dtypes.float64
        x, y = cast(x, to), cast(y, to)
    return apply("RealDiv", [x, y], name or "truediv")


def divide_no_nan(x, y, name=None) -> Tensor:
    """x / y, and 0 where y is 0."""
    return apply("DivNoNan", convert_all([x, y]), name or "div_no_nan")


def cast(x, dtype, name=None) -> Tensor:
    """The elements as another type."""
    dtype = as_dtype(dtype)
    x = convert_to_tensor(x)
    return x if x.dtype is dtype else apply("Cast", [x], name or "Cast", dtype=dtype)


def saturate_cast(value, dtype, name=None) -> Tensor:
    """The elements as another type; those out of its range become its limits."""
    dtype, value = as_dtype(dtype), convert_to_tensor(value)
    if value.dtype.is_floating and dtype.is_integer:
        return cast(clip_by_value(value, float(dtype.min), float(dtype.max)), dtype, name)
    low, high = max(value.dtype.min, dtype.min), min(value.dtype.max, dtype.max)
    return cast(clip_by_value(value, low, high), dtype, name)


def clip_by_value(t, clip_value_min, clip_value_max, name=None) -> Tensor:
    """Elements below the one and above the other become them."""
    t = convert_to_tensor(t)
    low = minimum(t, convert_to_tensor(clip_value_max, dtype_hint=t.dtype))
    return maximum(low, convert_to_tensor(clip_value_min, dtype_hint=t.dtype), name=name)


def scalar_mul(scalar, x, name=None) -> Tensor:
    return multiply(scalar, x, name)


def add_n(inputs, name=None) -> Tensor:
    """The sum of several tensors of one shape."""
    total = convert_to_tensor(inputs[0])
    for item in inputs[1:]:
        total = add(total, item)
    return total


accumulate_n = add_n


def _reduction(op: str, public: str):
    def function(input_tensor, axis=None, keepdims=False, name=None) -> Tensor:
        x = convert_to_tensor(input_tensor)
        return apply(op, [x], name or op, axes=normalized_axes(_static(axis), x.ndim), keepdims=bool(keepdims))

    return _named(function, public, f"{op} over the axes; None: over all of them.")


def _static(axis):
    """Axes must be known while a graph is made."""
    if isinstance(axis, Tensor):
        from leadline.tf.graph import known_value

        value = known_value(axis)
        if value is None:
            raise NotImplementedError("an axis that is only known while the graph runs is not supported by leadline.tf")
        return value
    return axis


reduce_sum, reduce_mean, reduce_prod = (
    _reduction("Sum", "reduce_sum"),
    _reduction("Mean", "reduce_mean"),
    _reduction("Prod", "reduce_prod"),
)
reduce_max, reduce_min = _reduction("Max", "reduce_max"), _reduction("Min", "reduce_min")
reduce_all, reduce_any = _reduction("All", "reduce_all"), _reduction("Any", "reduce_any")
reduce_euclidean_norm = _reduction("EuclideanNorm", "reduce_euclidean_norm")


def reduce_variance(input_tensor, axis=None, keepdims=False, name=None) -> Tensor:
    """The mean of the squared distances from the mean."""
    x = convert_to_tensor(input_tensor)
    if x.dtype.is_integer:
        raise TypeError(f"Input must be either real or complex. Received integer type {x.dtype}.")
    distances = subtract(x, reduce_mean(x, axis, True))
    return reduce_mean(multiply(distances, distances), axis, keepdims, name)


def reduce_std(input_tensor, axis=None, keepdims=False, name=None) -> Tensor:
    """The root of the variance."""
    return sqrt(reduce_variance(input_tensor, axis, keepdims), name)


def reduce_logsumexp(input_tensor, axis=None, keepdims=False, name=None) -> Tensor:
    """log(sum(exp(x))) without overflow."""
    x = convert_to_tensor(input_tensor)
    largest = reduce_max(x, axis, True)
    from leadline.tf.array import reshape, shape, where, zeros_like

    largest = where(is_finite(largest), largest, zeros_like(largest))
    result = add(log(reduce_sum(exp(subtract(x, largest)), axis, True)), largest)
    return result if keepdims else reshape(result, shape(reduce_sum(x, axis)), name)


def count_nonzero(input, axis=None, keepdims=False, dtype=dtypes.int64, name=None) -> Tensor:
    x = convert_to_tensor(input)
    return reduce_sum(cast(not_equal(x, cast(0, x.dtype)), dtype), axis, keepdims, name)


def argmax(input, axis=None, output_type=dtypes.int64, name=None) -> Tensor:
    """Where the largest element along an axis is; the first of equal ones."""
    return apply("ArgMax", [convert_to_tensor(input)], name or "ArgMax", **_arg(axis, output_type))


def argmin(input, axis=None, output_type=dtypes.int64, name=None) -> Tensor:
    """Where the smallest element along an axis is; the first of equal ones."""
    return apply("ArgMin", [convert_to_tensor(input)], name or "ArgMin", **_arg(axis, output_type))


def _arg(axis, output_type) -> dict:
    return {"axis": 0 if axis is None else int(_static(axis)), "output_type": as_dtype(output_type)}


def cumsum(x, axis=0, exclusive=False, reverse=False, name=None) -> Tensor:
    """Sums of the elements up to each place along an axis."""
    attrs = {"axis": int(_static(axis)), "exclusive": bool(exclusive), "reverse": bool(reverse)}
    return apply("Cumsum", [convert_to_tensor(x)], name or "Cumsum", **attrs)


def cumprod(x, axis=0, exclusive=False, reverse=False, name=None) -> Tensor:
    """Products of the elements up to each place along an axis."""
    attrs = {"axis": int(_static(axis)), "exclusive": bool(exclusive), "reverse": bool(reverse)}
    return apply("Cumprod", [convert_to_tensor(x)], name or "Cumprod", **attrs)


def top_k(input, k=1, sorted=True, index_type=dtypes.int32, name=None):
    """The k largest along the last axis, and where they are."""
    from leadline.tf.nn import TopKV2

    values, indices = apply(
        "TopKV2", [convert_to_tensor(input)], name or "TopKV2", k=int(_static(k)), sorted=bool(sorted)
    )
    return TopKV2(values, cast(indices, index_type))


def in_top_k(targets, predictions, k, name=None) -> Tensor:
    from leadline.tf.array import expand_dims, gather

    chosen = gather(predictions, targets, axis=1, batch_dims=1)
    better = cast(greater(predictions, expand_dims(chosen, 1)), dtypes.int32)
    return less(reduce_sum(better, 1), k, name)


def real(input, name=None) -> Tensor:
    x = convert_to_tensor(input)
    return apply("Real", [x], name or "Real") if x.dtype.is_complex else x


def imag(input, name=None) -> Tensor:
    x = convert_to_tensor(input)
    return apply("Imag", [x], name or "Imag") if x.dtype.is_complex else multiply(x, cast(0, x.dtype))


def conj(x, name=None) -> Tensor:
    x = convert_to_tensor(x)
    return apply("Conj", [x], name or "Conj") if x.dtype.is_complex else x


def angle(input, name=None) -> Tensor:
    return apply("Angle", [convert_to_tensor(input)], name or "Angle")


def complex(real, imag, name=None) -> Tensor:
    real, imag = convert_all([real, imag])
    to = dtypes.complex128 if real.dtype is dtypes.float64 else dtypes.complex64
    return add(cast(real, to), multiply(cast(imag, to), np.array(1j, to.numpy)), name)


def polyval(coeffs, x, name=None) -> Tensor:
    x = convert_to_tensor(x)
    total = multiply(x, cast(0, x.dtype))
    for factor in coeffs:
        total = add(multiply(total, x), factor)
    return total


def l2_normalize(x, axis=None, epsilon=1e-12, name=None, dim=None) -> Tensor:
    """x divided by its length along the axes."""
    x = convert_to_tensor(x)
    length = reduce_sum(square(x), axis if dim is None else dim, True)
    return multiply(x, rsqrt(maximum(length, epsilon)), name)


def bincount(arr, weights=None, minlength=None, maxlength=None, dtype=dtypes.int32, name=None, axis=None) -> Tensor:
    """How often each number from 0 on occurs. Eager only."""
    from leadline.tf.convert import constant

    values = np.asarray(convert_to_tensor(arr)).reshape(-1)
    counts = np.bincount(values, None if weights is None else np.asarray(weights).reshape(-1), int(minlength or 0))
    return constant(
        counts[: None if maxlength is None else int(maxlength)], as_dtype(dtype) if weights is None else None
    )
