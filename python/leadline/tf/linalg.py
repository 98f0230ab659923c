# SPDX-License-Identifier: Apache-2.0
"""tf.linalg: matrix products, which the engine computes in float32, and numpy's linear algebra."""

from __future__ import annotations

import numpy as np

from leadline.tf import dtypes, shape, tiles
from leadline.tf.array import expand_dims, reshape, squeeze, transpose, where
from leadline.tf.array import range as range_
from leadline.tf.convert import convert_all, convert_to_tensor
from leadline.tf.elementwise import _KINDS, broadcast, check_types
from leadline.tf.engine import fits, identity
from leadline.tf.errors import InvalidArgumentError
from leadline.tf.math import (
    _static,
    cast,
    equal,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_or,
    multiply,
    reduce_max,
    reduce_sum,
    sqrt,
    square,
    subtract,
)
from leadline.tf.math import abs as abs_
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
            else f"In[0] and In[1] has different ndims: {shape.text(a)} vs. {shape.text(b)}",
        )
    rows, inner = (a[-1], a[-2]) if adj_x else (a[-2], a[-1])
    other, columns = (b[-1], b[-2]) if adj_y else (b[-2], b[-1])
    if inner != other and None not in (inner, other):
        if call.symbolic:
            call.refuse(f"Dimensions must be equal, but are {inner} and {other}")
        if matrices:
            call.refuse(f"Matrix size-incompatible: In[0]: {shape.text(a)}, In[1]: {shape.text(b)}")
        call.refuse(
            f"Matrix size-incompatible: In[0]: {shape.text(a)}, In[1]: {shape.text(b)}: the inner sizes are {inner} "
            f"and {other}"
        )
    return [(dtype, (*broadcast(call, a[:-2], b[:-2]), rows, columns))]


def _turn(x: np.ndarray, adjoint: bool, conjugate: bool) -> np.ndarray:
    if not adjoint:
        return x
    x = x.swapaxes(-1, -2)
    return np.conj(x) if conjugate and x.dtype.kind == "c" else x


def _matmul(a, b, *, adj_x, adj_y, conjugate):
    return np.matmul(_turn(a, adj_x, conjugate), _turn(b, adj_y, conjugate))


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
    row(_name, _infer_matmul, _matmul, engine=_engine_matmul, heavy=True, rows=tiles.batch, extra={"prepare": _prepare})


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


Tensor.__matmul__ = lambda x, y: matmul(x, y, name="matmul")
Tensor.__rmatmul__ = lambda x, y: matmul(y, x, name="matmul")


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
    if any(dims is None or None in dims for dims in call.dims):
        return [(dtype, None)]
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
            dots = shape.broadcast(dots, dims[len(before) : len(dims) - len(after)])
    if not arrow:
        letters = left.replace(",", "").replace(".", "")
        right = ("..." if "..." in left else "") + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    before, ellipsis, after = right.partition("...")
    return (*(sizes[c] for c in before), *(dots if ellipsis else ()), *(sizes[c] for c in after))


row("Einsum", _infer_einsum, lambda *xs, equation: np.einsum(equation, *xs, optimize=len(xs) > 1))


def einsum(equation: str, *inputs, name=None, **options) -> Tensor:
    """Products and sums over named axes; a product of two matrices is tf.matmul's."""
    if len(equation.split("->")[0].split(",")) != len(inputs):
        raise ValueError(
            f'Got {len(inputs)} inputs for equation "{equation}", expecting {len(equation.split("->")[0].split(","))}'
        )
    inputs = convert_all(list(inputs))
    text = equation.replace(" ", "")
    plain = {"ij,jk->ik": (False, False), "ij,kj->ik": (False, True), "ji,jk->ik": (True, False)}.get(_renamed(text))
    if plain is not None:
        return matmul(*inputs, transpose_a=plain[0], transpose_b=plain[1], name=name)
    return apply("Einsum", inputs, name or "einsum", equation=text)


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
    axes = np.asarray(_static(axes)).tolist() if isinstance(axes, Tensor) else axes
    if isinstance(axes, int):
        first, second = list(range(a.ndim - axes, a.ndim)), list(range(axes))
    else:
        first, second = ([axis] if isinstance(axis, int) else list(axis) for axis in axes)
    first, second = [i % a.ndim for i in first], [i % b.ndim for i in second]
    kept_a = [i for i in range(a.ndim) if i not in first]
    kept_b = [i for i in range(b.ndim) if i not in second]
    inner = int(np.prod([a.shape[i] for i in first]))
    left = reshape(transpose(a, kept_a + first), [-1, inner])
    right = reshape(transpose(b, second + kept_b), [inner, -1])
    return reshape(matmul(left, right), [a.shape[i] for i in kept_a] + [b.shape[i] for i in kept_b], name)


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
    from leadline.tf.math import pow as pow_

    return pow_(reduce_sum(pow_(abs_(x), float(ord)), axis, keep), 1.0 / float(ord), name)


def _square_matrix(call: Call):
    dims = call.dims[0]
    if dims is not None:
        call.refuse_if(
            len(dims) < 2 or dims[-1] != dims[-2], f"Input matrix must be square, got shape {shape.text(dims)}"
        )
    return dims


def _numpy_linalg(function, message: str):
    def compute(*xs, **attrs):
        try:
            return function(*xs, **attrs)
        except np.linalg.LinAlgError as error:
            raise InvalidArgumentError(message=f"{message}: {error}") from None

    return compute


def _solve(a, b, *, adjoint):
    return np.linalg.solve(_turn(a, adjoint, True), b)


def _cholesky(x):
    """As TensorFlow: what is not positive definite has no numbers in it."""
    try:
        return np.linalg.cholesky(x)
    except np.linalg.LinAlgError:
        return np.full_like(x, np.nan)


row(
    "MatrixInverse",
    lambda call: [(call.dtypes[0], _square_matrix(call))],
    _numpy_linalg(lambda x, *, adjoint: np.linalg.inv(_turn(x, adjoint, True)), "Input is not invertible."),
)
row("MatrixDeterminant", lambda call: [(call.dtypes[0], (_square_matrix(call) or (None, None))[:-2])], np.linalg.det)
row(
    "MatrixSolve",
    lambda call: [(call.same_dtypes(), call.dims[1] if _square_matrix(call) else None)],
    _numpy_linalg(_solve, "Input matrix is not invertible."),
)
row("Cholesky", lambda call: [(call.dtypes[0], _square_matrix(call))], _cholesky)
row(
    "SelfAdjointEigV2",
    lambda call: [(call.dtypes[0].real_dtype, _square_matrix(call)[:-1]), (call.dtypes[0], call.dims[0])],
    lambda x: tuple(np.linalg.eigh(x)),
)


def _infer_qr(call: Call):
    *lead, m, n = call.dims[0]
    k = min(m, n)
    full = call.attrs["full"]
    return [(call.dtypes[0], (*lead, m, m if full else k)), (call.dtypes[0], (*lead, m if full else k, n))]


row("Qr", _infer_qr, lambda x, *, full: tuple(np.linalg.qr(x, "complete" if full else "reduced")))


def _infer_svd(call: Call):
    *lead, m, n = call.dims[0]
    k = min(m, n)
    full, dtype = call.attrs["full"], call.dtypes[0]
    return [
        (dtype.real_dtype, (*lead, k)),
        (dtype, (*lead, m, m if full else k)),
        (dtype, (*lead, n, n if full else k)),
    ]


def _svd(x, *, full):
    u, s, vh = np.linalg.svd(x, full_matrices=full)
    return s, u, np.conj(vh.swapaxes(-1, -2))


row("Svd", _infer_svd, _svd)


def inv(input, adjoint=False, name=None) -> Tensor:
    return apply("MatrixInverse", [convert_to_tensor(input)], name, adjoint=bool(adjoint))


def det(input, name=None) -> Tensor:
    return apply("MatrixDeterminant", [convert_to_tensor(input)], name)


def solve(matrix, rhs, adjoint=False, name=None) -> Tensor:
    return apply("MatrixSolve", convert_all([matrix, rhs]), name, adjoint=bool(adjoint))


def cholesky(input, name=None) -> Tensor:
    return apply("Cholesky", [convert_to_tensor(input)], name)


def eigh(tensor, name=None):
    return apply("SelfAdjointEigV2", [convert_to_tensor(tensor)], name)


def eigvalsh(tensor, name=None) -> Tensor:
    return eigh(tensor, name)[0]


def qr(input, full_matrices=False, name=None):
    from leadline.tf.nn import Qr

    return Qr(*apply("Qr", [convert_to_tensor(input)], name, full=bool(full_matrices)))


def svd(tensor, full_matrices=False, compute_uv=True, name=None):
    s, u, v = apply("Svd", [convert_to_tensor(tensor)], name, full=bool(full_matrices))
    return (s, u, v) if compute_uv else s


def eye(num_rows, num_columns=None, batch_shape=None, dtype=dtypes.float32, name=None) -> Tensor:
    """Ones on the diagonal, zeros elsewhere."""
    rows, columns = int(_static(num_rows)), int(_static(num_rows if num_columns is None else num_columns))
    matrix = cast(equal(expand_dims(range_(rows), 1), range_(columns)), dtype)
    if batch_shape is None:
        return matrix
    from leadline.tf.array import broadcast_to, identity

    return identity(broadcast_to(matrix, [*(int(size) for size in batch_shape), rows, columns]), name)


def band_part(input, num_lower, num_upper, name=None) -> Tensor:
    """The diagonal and so many beside it; the rest is zero. A negative number keeps all."""
    x = convert_to_tensor(input)
    rows, columns = x.shape[-2], x.shape[-1]
    distance = subtract(range_(columns), expand_dims(range_(rows), 1))
    lower, upper = int(_static(num_lower)), int(_static(num_upper))
    keep = logical_and(
        logical_or(greater_equal(distance, -lower), less(lower, 0)),
        logical_or(less_equal(distance, upper), less(upper, 0)),
    )
    return where(keep, x, cast(0, x.dtype), name)


def diag(diagonal, name="diag", **options) -> Tensor:
    """Matrices with the last axis on their diagonals."""
    if any(value not in (0, None) for value in options.values()):
        raise NotImplementedError("leadline.tf has tf.linalg.diag for the main diagonal only")
    x = convert_to_tensor(diagonal)
    return multiply(expand_dims(x, -1), eye(x.shape[-1], dtype=x.dtype), name)


def diag_part(input, name="diag_part", k=0, **options) -> Tensor:
    """The diagonals of the last two axes."""
    x = convert_to_tensor(input)
    return apply("DiagPart", [x], name, k=int(k))


def _infer_diag_part(call: Call):
    *lead, m, n = call.dims[0]
    k = call.attrs["k"]
    return [(call.dtypes[0], (*lead, max(0, min(m + min(k, 0), n - max(k, 0)))))]


row("DiagPart", _infer_diag_part, lambda x, *, k: np.ascontiguousarray(np.diagonal(x, k, -2, -1)))


def tensor_diag(diagonal, name=None) -> Tensor:
    return diag(diagonal)


tensor_diag_part = diag_part


def trace(x, name=None) -> Tensor:
    return reduce_sum(diag_part(x), -1, name=name)


def cross(a, b, name=None) -> Tensor:
    a, b = convert_all([a, b])
    from leadline.tf.array import roll

    return subtract(multiply(roll(a, -1, -1), roll(b, -2, -1)), multiply(roll(a, -2, -1), roll(b, -1, -1)), name)
