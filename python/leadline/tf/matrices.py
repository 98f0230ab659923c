# SPDX-License-Identifier: Apache-2.0
"""Single matrices: decompositions, diagonals and bands, by numpy."""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from leadline.tf import dtypes, shapes
from leadline.tf.arithmetic import _static, cast, equal, reduce_sum
from leadline.tf.array import broadcast_to, expand_dims, identity, range as range_
from leadline.tf.convert import convert_all, convert_to_tensor
from leadline.tf.errors import InvalidArgumentError
from leadline.tf.op import Call, apply, row
from leadline.tf.tensor import Tensor

Qr = namedtuple("Qr", ["q", "r"])


def _matrix(call: Call, square: bool = False):
    """The shape of the stack, rows and columns; all unknown when the rank is."""
    dims = call.dims[0]
    if dims is None:
        return None, None, None
    call.refuse_if(len(dims) < 2, f"Input must have rank >= 2, got shape {shapes.text(dims)}")
    *lead, rows, columns = dims
    bad = square and rows != columns and None not in (rows, columns)
    call.refuse_if(bad, f"Input matrix must be square, got shape {shapes.text(dims)}")
    return tuple(lead), rows, columns


def _dims(lead, *sizes):
    return None if lead is None else (*lead, *sizes)


def _smaller(a, b):
    return None if a is None or b is None else min(a, b)


def turned(x: np.ndarray, adjoint: bool, conjugate: bool) -> np.ndarray:
    """The matrices transposed; conjugated as well where that is asked for."""
    if not adjoint:
        return x
    x = x.swapaxes(-1, -2)
    return np.conj(x) if conjugate and x.dtype.kind == "c" else x


def _same(call: Call):
    _matrix(call, square=True)
    return [(call.dtypes[0], call.dims[0])]


def _checked(function, message: str):
    def compute(*xs, **attrs):
        try:
            return function(*xs, **attrs)
        except np.linalg.LinAlgError as error:
            raise InvalidArgumentError(message=f"{message}: {error}") from None

    return compute


def _cholesky(x):
    """As TensorFlow: what is not positive definite has no numbers in it."""
    try:
        return np.linalg.cholesky(x)
    except np.linalg.LinAlgError:
        return np.full_like(x, np.nan)


def _inverse(x, *, adjoint):
    return np.linalg.inv(turned(x, adjoint, True))


def _solve(a, b, *, adjoint):
    return np.linalg.solve(turned(a, adjoint, True), b)


def _infer_solve(call: Call):
    _matrix(call, square=True)
    a, b = call.dims
    if a is not None and b is not None:
        bad = len(b) < 2 or (a[-1] != b[-2] and None not in (a[-1], b[-2]))
        call.refuse_if(bad, f"Input matrix and right-hand side must have the same number of rows: {a} vs. {b}")
    return [(call.same_dtypes(), b)]


def _infer_eigh(call: Call):
    lead, rows, _ = _matrix(call, square=True)
    return [(call.dtypes[0].real_dtype, _dims(lead, rows)), (call.dtypes[0], call.dims[0])]


def _infer_qr(call: Call):
    lead, m, n = _matrix(call)
    k = m if call.attrs["full"] else _smaller(m, n)
    return [(call.dtypes[0], _dims(lead, m, k)), (call.dtypes[0], _dims(lead, k, n))]


def _infer_svd(call: Call):
    lead, m, n = _matrix(call)
    full, dtype, k = call.attrs["full"], call.dtypes[0], _smaller(m, n)
    left, right = _dims(lead, m, m if full else k), _dims(lead, n, n if full else k)
    return [(dtype.real_dtype, _dims(lead, k)), (dtype, left), (dtype, right)]


def _svd(x, *, full):
    u, s, vh = np.linalg.svd(x, full_matrices=full)
    return s, u, np.conj(vh.swapaxes(-1, -2))


def _infer_diag(call: Call):
    dims = call.dims[0]
    call.refuse_if(dims == (), "Input must be at least 1-dim, received a scalar")
    return [(call.dtypes[0], None if dims is None else (*dims, dims[-1]))]


def _diag(x):
    result = np.zeros((*x.shape, x.shape[-1]), x.dtype)
    np.einsum("...ii->...i", result)[...] = x
    return result


def _infer_diag_part(call: Call):
    lead, m, n = _matrix(call)
    k = call.attrs["k"]
    size = None if m is None or n is None else max(0, min(m + min(k, 0), n - max(k, 0)))
    return [(call.dtypes[0], _dims(lead, size))]


def _band(x, *, lower, upper):
    if lower >= 0:
        x = np.triu(x, -lower)
    return np.tril(x, upper) if upper >= 0 else x


_LAPACK = {"scratch": 3}  # it works on copies
row("MatrixInverse", _same, _checked(_inverse, "Input is not invertible."), **_LAPACK)
row("MatrixDeterminant", lambda call: [(call.dtypes[0], _matrix(call, square=True)[0])], np.linalg.det, **_LAPACK)
row("MatrixSolve", _infer_solve, _checked(_solve, "Input matrix is not invertible."), **_LAPACK)
row("Cholesky", _same, _cholesky, **_LAPACK)
row("SelfAdjointEigV2", _infer_eigh, lambda x: tuple(np.linalg.eigh(x)), **_LAPACK)
row("Qr", _infer_qr, lambda x, *, full: tuple(np.linalg.qr(x, "complete" if full else "reduced")), **_LAPACK)
row("Svd", _infer_svd, _svd, **_LAPACK)
row("MatrixDiag", _infer_diag, _diag)
row("DiagPart", _infer_diag_part, lambda x, *, k: np.ascontiguousarray(np.diagonal(x, k, -2, -1)))
row("MatrixBandPart", lambda call: [(call.dtypes[0], call.dims[0])] if _matrix(call) else [], _band)


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


def qr(input, full_matrices=False, name=None) -> Qr:
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
    return identity(broadcast_to(matrix, [*(int(size) for size in batch_shape), rows, columns]), name)


def band_part(input, num_lower, num_upper, name=None) -> Tensor:
    """The diagonal and this many beside it; the rest is zero. A negative number keeps all."""
    attrs = {"lower": int(_static(num_lower)), "upper": int(_static(num_upper))}
    return apply("MatrixBandPart", [convert_to_tensor(input)], name or "MatrixBandPart", **attrs)


def diag(diagonal, name="diag", **options) -> Tensor:
    """Matrices with the last axis on their diagonals."""
    if any(value not in (0, None) for value in options.values()):
        raise NotImplementedError("leadline.tf has tf.linalg.diag for the main diagonal only")
    return apply("MatrixDiag", [convert_to_tensor(diagonal)], name)


def diag_part(input, name="diag_part", k=0, **options) -> Tensor:
    """The diagonals of the last two axes."""
    return apply("DiagPart", [convert_to_tensor(input)], name, k=int(k))


def tensor_diag(diagonal, name=None) -> Tensor:
    return diag(diagonal)


tensor_diag_part = diag_part


def trace(x, name=None) -> Tensor:
    return reduce_sum(diag_part(x), -1, name=name)
