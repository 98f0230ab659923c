# SPDX-License-Identifier: Apache-2.0
"""Every operation of keras.ops that a functional model can hold is converted, or refused by name."""

import importlib
import inspect

import pytest

keras = pytest.importorskip("keras", reason="keras is not installed")

import keras_op_cases  # noqa: E402
from keras import ops  # noqa: E402
from keras_cases import Case, check, with_class  # noqa: E402

import leadline  # noqa: E402

# Without an op in the format, with results of unknown size, of complex numbers, of Python functions, or for training.
REFUSED = set(
    """
    AllClose Angle Arange Bincount Cross Diag Diagflat Full Gcd
    Geomspace Imag I0 IsIn Isreal Kron Lcm Linspace Logspace Median Nanargmax Nanargmin Nancumsum Nancumprod
    Nanmedian Nanpercentile Nanquantile Nanstd Nanvar Ndim Nonzero Percentile Quantile UnravelIndex SearchSorted
    Size Nextafter Trapezoid Vander Corrcoef Correlate Slogdet Argpartition Histogram Unique View ConvTranspose
    BinaryCrossentropy CategoricalCrossentropy SparseCategoricalCrossentropy CTCLoss CTCDecode PSNR Polar Unfold
    Fold SegmentReduction InTopK CDist ExtractSequences FFT FFT2 IFFT2 RFFT IRFFT STFT ISTFT Erfinv Logdet
    ViewAsComplex ViewAsReal Cholesky CholeskyInverse Det Eig Eigh Inv LuFactor Qr Solve SolveTriangular SVD Lstsq
    MatrixRank Pinv JVP HSVToRGB AffineTransform MapCoordinates PerspectiveTransform GaussianBlur ElasticTransform
    ScaleAndTranslate SobelEdges SSIM Map Scan AssociativeScan Scatter ScatterUpdate SliceUpdate Switch WhileLoop
    ForiLoop Cond VectorizedMap
""".split()
)
# Converted, but another operation takes their place in a model, or they are covered together with others.
TOGETHER = {"Abs", "Conj", "Array", "ConvertToTensor", "EmptyLike", "Vsplit", "BroadcastTo", "Meshgrid", "SegmentMin",
            "SegmentProd"}  # fmt: skip
SEEN: set[str] = set()


@pytest.mark.parametrize("case", keras_op_cases.CASES, ids=lambda case: case.id)
def test_operation_computes_what_keras_does(case, litert):
    check(case, litert)


def test_every_operation_is_in_the_table_or_refused():
    seen = {type(op).__name__ for case in keras_op_cases.CASES for op in case.model().operations}
    operations = set()
    for module in ("numpy", "nn", "math", "linalg", "image", "core"):
        for name, value in vars(importlib.import_module(f"keras.src.ops.{module}")).items():
            if inspect.isclass(value) and issubclass(value, keras.Operation) and value.__module__.endswith(module):
                operations.add(name)
    assert sorted(operations - seen - REFUSED - TOGETHER) == []
    assert sorted(REFUSED & seen) == []


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_refused_operation_is_named(name, tmp_path):
    model = Case("exp", lambda x: ops.exp(x), [(4,)]).model()
    with pytest.raises(leadline.UnsupportedError) as caught:
        leadline.lite.TFLiteConverter.from_keras_file(with_class(model, tmp_path, "Exp", name)).convert()
    assert f"({name})" in str(caught.value) and "express it with other operations" in str(caught.value)
