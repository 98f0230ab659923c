# SPDX-License-Identifier: Apache-2.0
"""tf.linalg: matrix products, which the engine computes in float32, and numpy's linear algebra."""

from __future__ import annotations

import numpy as np

from leadline.tf import dtypes, shapes, tiles
from leadline.tf.arithmetic import (
    _static,
    abs as abs_,
    multiply,
    pow as pow_,
    reduce_max,
    reduce_sum,
    sqrt,
    square,
    subtract,
)
from leadline.tf.array import expand_dims, reshape, roll, squeeze, transpose
from leadline.tf.convert import convert_all, convert_to_tensor
from leadline.tf.elementwise import _KINDS, broadcast, check_types
from leadline.tf.engine import fits, identity
from leadline.tf.matrices import (  # noqa: F401 tf.linalg has them
    band_part,
    cholesky,
    det,
    diag,
    diag_part,
    eigh,
    eigvalsh,
    eye,
    inv,
    qr,
    solve,
    svd,
    tensor_diag,
    tensor_diag_part,
    trace,
    turned,
)  # fmt: skip
from leadline.tf.op import Call, apply, row
from leadline.tf.tensor import Tensor


def _infer_matmul(call: Call):
    dtype = call.same_dtypes()
    check_types(call, (*_KINDS["field"], "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"))
    a, b = call.dims
    if a is None or b is None:
        return [(dtype, None)]
    adj_x, adj_y = call.attrs["adj_x"], call.attrs["adj_y"]
    matrices = call.op == "MatMul"
    for i, dims in enumerate((a, b)):
        call.refuse_if(
            len(dims) < 2,
            f"In[{i}] ndims must be >= 2: {len(dims)}"
            if not matrices
            else f"In[0] and In[1] has different ndims: {shapes.text(a)} vs. {shapes.text(b)}",
        )
    rows, inner = (a[-1], a[-2]) if adj_x else (a[-2], a[-1])
    other, columns = (b[-1], b[-2]) if adj_y else (b[-2], b[-1])
    if inner != other and None not in (inner, other):
        if call.symbolic:
            call.refuse(f"Dimensions must be equal, but are {inner} and {other}")
        if matrices:
            call.refuse(f"Matrix size-incompatible: In[0]: {shapes.text(a)}, In[1]: {shapes.text(b)}")
        call.refuse(
            f"Matrix size-incompatible: In[0]: {shapes.text(a)}, In[1]: {shapes.text(b)}: the inner sizes are {inner} "
            f"and {other}"
        )
    return [(dtype, (*broadcast(call, a[:-2], b[:-2]), rows, columns))]


def _matmul(a, b, *, adj_x, adj_y, conjugate):
    return np.matmul(turned(a, adj_x, conjugate), turned(b, adj_y, conjugate))


def _prepare(arrays, attrs):
    """A transposed view is its memory and a flag: no copy is made."""
    a, adj_x = _untransposed(arrays[0], attrs["adj_x"])
    b, adj_y = _untransposed(arrays[1], attrs["adj_y"])
    if a.ndim == 2 and adj_x != adj_y and identity(a) == identity(b):
        return None  # a matrix times its own transpose: numpy's BLAS computes half of it and mirrors that
    return [a, b], {**attrs, "adj_x": adj_x, "adj_y": adj_y}


def _untransposed(x: np.ndarray, adjoint: bool):
    turned = x.swapaxes(-1, -2)
    if not x.flags.c_contiguous and turned.flags.c_contiguous:
        return turned, not adjoint
    return x, adjoint


def _engine_matmul(stretch, inputs, attrs, ins, outs):
    if any(dtype is not dtypes.float32 for dtype, _ in ins) or not fits(ins, outs):
        return None
    return stretch.node("BATCH_MATMUL", inputs, *outs, adj_x=attrs["adj_x"], adj_y=attrs["adj_y"])


for _name in ("MatMul", "BatchMatMulV2"):
    row(_name, _infer_matmul, _matmul, engine=_engine_matmul, heavy=True, rows=tiles.batch, prepare=_prepare)


def matmul(
    a,
    b,
    transpose_a=False,
    transpose_b=False,
    adjoint_a=False,
    adjoint_b=False,
    a_is_sparse=False,
    b_is_sparse=False,
    output_type=None,
    name=None,
) -> Tensor:
    """The product of matrices, or of stacks of them. Transposed operands are not copied."""
    if transpose_a and adjoint_a:
        raise ValueError("Only one of `transpose_a` and `adjoint_a` can be True.")
    if transpose_b and adjoint_b:
        raise ValueError("Only one of `transpose_b` and `adjoint_b` can be True.")
    a, b = convert_all([a, b])
    op = "MatMul" if (a.ndim or 2) <= 2 and (b.ndim or 2) <= 2 else "BatchMatMulV2"
    adj_x, adj_y = bool(transpose_a or adjoint_a), bool(transpose_b or adjoint_b)
    conjugate = bool(adjoint_a or adjoint_b)
    if conjugate and a.dtype.is_complex and (transpose_a or transpose_b):
        a, adj_x = (transpose_last(a), False) if transpose_a else (a, adj_x)
        b, adj_y = (transpose_last(b), False) if transpose_b else (b, adj_y)
    return apply(op, [a, b], name or "MatMul", adj_x=adj_x, adj_y=adj_y, conjugate=conjugate)


def matvec(a, b, transpose_a=False, adjoint_a=False, name=None, **ignored) -> Tensor:
    return squeeze(matmul(a, expand_dims(b, -1), transpose_a=transpose_a, adjoint_a=adjoint_a), -1, name)


def transpose_last(x, name="matrix_transpose", conjugate=False) -> Tensor:
    """The last two axes exchanged."""
    x = convert_to_tensor(x)
    rank = x.ndim
    if rank is None or rank < 2:
        raise ValueError(f"Argument `a` should be a (batch) matrix with rank >= 2. Received `a` with shape {x.shape}")
    return transpose(x, [*range(rank - 2), rank - 1, rank - 2], conjugate, name)


matrix_transpose = transpose_last


def adjoint(matrix, name=None) -> Tensor:
    return transpose_last(matrix, name or "adjoint", conjugate=True)


def _infer_einsum(call: Call):
    dtype = call.same_dtypes()
    equation = call.attrs["equation"]
    if any(dims is None for dims in call.dims):
        return [(dtype, None)]
    if any(None in dims for dims in call.dims):
        return [(dtype, _einsum_dims(call, equation))]
    stand_ins = [np.broadcast_to(np.zeros((), np.int8), dims) for dims in call.dims]
    if any(size == 0 for dims in call.dims for size in dims):
        return [(dtype, _einsum_dims(call, equation))]
    try:
        np.einsum_path(equation, *stand_ins, optimize=False)
    except ValueError as error:
        call.refuse(f"Expected input shapes that fit the equation '{equation}': {error}")
    return [(dtype, _einsum_dims(call, equation))]


def _einsum_dims(call: Call, equation: str):
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    sizes: dict[str, int] = {}
    dots: tuple = ()
    for term, dims in zip(left.split(","), call.dims):
        before, ellipsis, after = term.partition("...")
        sizes.update(zip(before, dims))
        sizes.update(zip(after, dims[len(dims) - len(after) :]))
        if ellipsis:
            dots = shapes.broadcast(dots, dims[len(before) : len(dims) - len(after)])
    if not arrow:
        letters = left.replace(",", "").replace(".", "")
        right = ("..." if "..." in left else "") + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    before, ellipsis, after = right.partition("...")
    return (*(sizes[c] for c in before), *(dots if ellipsis else ()), *(sizes[c] for c in after))


_EINSUM_OPTIONS = {"scratch": 2}  # operands and result, transposed into matrices
row("Einsum", _infer_einsum, lambda *xs, equation: np.einsum(equation, *xs, optimize=len(xs) > 1), **_EINSUM_OPTIONS)


def einsum(equation: str, *inputs, name=None, **options) -> Tensor:
    """Products and sums over named axes; a product of two matrices is tf.matmul's."""
    if len(equation.split("->")[0].split(",")) != len(inputs):
        raise ValueError(
            f'Got {len(inputs)} inputs for equation "{equation}", expecting {len(equation.split("->")[0].split(","))}'
        )
    operands = convert_all(list(inputs))
    text = equation.replace(" ", "")
    plain = {"ij,jk->ik": (False, False), "ij,kj->ik": (False, True), "ji,jk->ik": (True, False)}.get(_renamed(text))
    if plain is not None:
        return matmul(operands[0], operands[1], transpose_a=plain[0], transpose_b=plain[1], name=name)
    return apply("Einsum", operands, name or "einsum", equation=text)


def _renamed(equation: str) -> str:
    """The letters of a product of two matrices as i, j, k."""
    left, _, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != 2 or [len(t) for t in terms] != [2, 2] or len(right) != 2 or len(set(left) - {","}) != 3:
        return ""
    inner = set(terms[0]) & set(terms[1])
    if len(inner) != 1:
        return ""
    names = {inner.pop(): "j", right[0]: "i", right[1]: "k"}
    return "".join(names.get(c, c) for c in equation)


def tensordot(a, b, axes, name=None) -> Tensor:
    """The product of two tensors, summed over pairs of axes."""
    a, b = convert_all([a, b])
    if a.ndim is None or b.ndim is None:
        raise NotImplementedError("tf.tensordot of tensors of unknown rank is not supported by leadline.tf")
    axes = np.asarray(_static(axes)).tolist() if isinstance(axes, Tensor) else axes
    if isinstance(axes, int):
        first, second = list(range(a.ndim - axes, a.ndim)), list(range(axes))
    else:
        first, second = ([axis] if isinstance(axis, int) else list(axis) for axis in axes)
    first, second = [i % a.ndim for i in first], [i % b.ndim for i in second]
    if not (shapes.is_known(a._dims) and shapes.is_known(b._dims)):
        return _named_tensordot(a, b, first, second, name)
    kept_a = [i for i in range(a.ndim) if i not in first]
    kept_b = [i for i in range(b.ndim) if i not in second]
    inner = int(np.prod([a.shape[i] for i in first]))
    left = reshape(transpose(a, kept_a + first), [-1, inner])
    right = reshape(transpose(b, second + kept_b), [inner, -1])
    return reshape(matmul(left, right), [a.shape[i] for i in kept_a] + [b.shape[i] for i in kept_b], name)


def _named_tensordot(a: Tensor, b: Tensor, first: list[int], second: list[int], name) -> Tensor:
    left = [chr(ord("a") + i) for i in range(a.ndim)]
    right = [chr(ord("A") + i) for i in range(b.ndim)]
    for i, k in zip(first, second):
        right[k] = left[i]
    inner = {left[i] for i in first}
    result = [letter for letter in left + right if letter not in inner]
    return apply("Einsum", [a, b], name, equation=f"{''.join(left)},{''.join(right)}->{''.join(result)}")


def norm(tensor, ord="euclidean", axis=None, keepdims=None, name=None) -> Tensor:
    """The length of vectors: euclidean, 1, inf or another number."""
    x = convert_to_tensor(tensor)
    keep = bool(keepdims)
    if ord in ("euclidean", 2, "fro"):
        return sqrt(reduce_sum(square(abs_(x)), axis, keep), name)
    if ord == 1:
        return reduce_sum(abs_(x), axis, keep, name)
    if ord == np.inf:
        return reduce_max(abs_(x), axis, keep, name)
    return pow_(reduce_sum(pow_(abs_(x), float(ord)), axis, keep), 1.0 / float(ord), name)


def cross(a, b, name=None) -> Tensor:
    a, b = convert_all([a, b])
    return subtract(multiply(roll(a, -1, -1), roll(b, -2, -1)), multiply(roll(a, -2, -1), roll(b, -1, -1)), name)
