# SPDX-License-Identifier: Apache-2.0
"""Flex ops that compute: elementwise functions, reductions, signals, matrices, random numbers."""

import numpy as np
import tensorflow as tf
from flex_cases import RNG, case, complex_numbers, normal, positive, whole

raw = tf.raw_ops


def math_cases():
    for dtype in ("float64", "float16"):
        for op in "Erf Atan Cos Cosh Elu Exp Log1p Neg Relu Relu6 Round Selu Sigmoid Sign Sin Sinh Softplus Softsign Square Tan Tanh Ceil Floor Expm1".split():
            selected = [op] if op in ("Log1p", "Expm1") else ()
            argument = "features" if op in ("Elu", "Relu", "Relu6", "Selu", "Softplus", "Softsign") else "x"
            case(
                f"{op}_{dtype}",
                lambda a, o=op, n=argument: getattr(raw, o)(**{n: a}),
                positive(3, 4, dtype=dtype) if op == "Log1p" else normal(3, 4, dtype=dtype),
                selected=selected,
            )
        if dtype != "float16":
            case("Rint", lambda a: raw.Rint(x=a), 3 * normal(3, 4, dtype=dtype), selected=["Rint"])
        for op in "Log Sqrt Rsqrt Reciprocal Inv".split():
            case(f"{op}_{dtype}", lambda a, o=op: getattr(raw, o)(x=a), positive(3, 4, dtype=dtype))
    for dtype in ("float32", "float64"):
        others = "Erfc Erfinv Ndtri Lgamma Digamma BesselI0e BesselI1e Acos Asin Acosh Asinh Atanh".split()
        for op in others:
            low, high = {"Acosh": (1.1, 5), "Ndtri": (0.01, 0.99), "Lgamma": (0.1, 9), "Digamma": (0.1, 9)}.get(
                op, (-0.95, 0.95)
            )
            values = RNG.uniform(low, high, size=(3, 5)).astype(dtype)
            case(f"{op}_{dtype}", lambda a, o=op: getattr(raw, o)(x=a), values, selected=[op])
        for op in "Igamma Igammac".split():
            case(
                f"{op}_{dtype}",
                lambda a, b, o=op: getattr(raw, o)(a=a, x=b),
                positive(3, 4, dtype=dtype),
                positive(3, 4, dtype=dtype),
                selected=[op],
            )
        case(
            f"Betainc_{dtype}",
            lambda a, b, x: raw.Betainc(a=a, b=b, x=x),
            positive(3, 4, dtype=dtype),
            positive(3, 4, dtype=dtype),
            RNG.uniform(0.01, 0.99, size=(3, 4)).astype(dtype),
            selected=["Betainc"],
        )
    for op in "Exp Log Sin Cos Tanh Sqrt Rsqrt Square Neg Reciprocal Sigmoid Conj Sinh Cosh".split():
        argument = "input" if op == "Conj" else "x"
        case(f"{op}_complex64", lambda a, o=op, n=argument: getattr(raw, o)(**{n: a}), complex_numbers(3, 4))
    for op, tout in [("Real", "Tout"), ("Imag", "Tout"), ("ComplexAbs", "Tout"), ("Angle", "Tout")]:
        for dtype, real in [("complex64", tf.float32), ("complex128", tf.float64)]:
            name = "x" if op == "ComplexAbs" else "input"
            case(
                f"{op}_{dtype}",
                lambda a, o=op, n=name, t=tout, r=real: getattr(raw, o)(**{n: a, t: r}),
                complex_numbers(3, 4, dtype=dtype),
            )
    case("complex_of_parts", lambda a, b: tf.complex(a, b), normal(3, 4), normal(4))
    for dtype in ("float64", "int64", "complex64", "float16", "uint8", "int16"):
        values = {
            "complex64": lambda *s: complex_numbers(*s),
            "uint8": lambda *s: whole(1, 9, *s, dtype="uint8"),
            "int64": lambda *s: whole(1, 9, *s, dtype="int64"),
            "int16": lambda *s: whole(1, 9, *s, dtype="int16"),
        }.get(dtype, lambda *s, d=dtype: positive(*s, dtype=d))
        for op in "AddV2 Sub Mul Equal NotEqual".split():
            case(f"{op}_{dtype}", lambda a, b, o=op: getattr(raw, o)(x=a, y=b), values(2, 1, 4), values(3, 1))
        if dtype not in ("complex64", "uint8", "int16"):
            for op in "FloorDiv FloorMod Maximum Minimum Pow SquaredDifference Less GreaterEqual".split():
                case(f"{op}_{dtype}", lambda a, b, o=op: getattr(raw, o)(x=a, y=b), values(3, 4), values(4))
    for op in "Xdivy Xlogy Xlog1py DivNoNan MulNoNan Atan2 RealDiv".split():
        case(
            f"{op}_float64",
            lambda a, b, o=op: getattr(raw, o)(**({"y": a, "x": b} if o == "Atan2" else {"x": a, "y": b})),
            np.array([0.0, 1.0, 2.0, -3.0]),
            np.array([0.5, 0.0, 2.0, 3.0]) if op != "Atan2" else normal(4, dtype="float64"),
        )
    for op in "BitwiseAnd BitwiseOr BitwiseXor LeftShift RightShift".split():
        case(
            f"{op}_int64",
            lambda a, b, o=op: getattr(raw, o)(x=a, y=b),
            whole(0, 99, 3, 4, dtype="int64"),
            whole(0, 6, 4, dtype="int64"),
        )
    case("Invert", lambda a: raw.Invert(x=a), whole(-9, 9, 6))
    case("PopulationCount", lambda a: raw.PopulationCount(x=a), whole(0, 999, 6))
    case(
        "TruncateMod", lambda a, b: raw.TruncateMod(x=a, y=b), whole(-9, 9, 6), whole(1, 5, 6), selected=["TruncateMod"]
    )
    case(
        "negative_division",
        lambda a, b: raw.FloorDiv(x=a, y=b) * 100 + raw.FloorMod(x=a, y=b),
        whole(-9, 9, 8),
        np.array([-4, 3, -1, 2, 5, -5, 1, 7], "int32"),
    )
    case("IsFinite", lambda a: raw.IsFinite(x=a), np.array([1.0, np.inf, np.nan, -np.inf]))
    case(
        "ClipByValue",
        lambda a: raw.ClipByValue(
            t=a, clip_value_min=tf.constant(-0.5, tf.float64), clip_value_max=tf.constant(0.5, tf.float64)
        ),
        normal(3, 4, dtype="float64"),
    )


def reduction_cases():
    for dtype in ("float64", "int64", "complex64", "float16"):
        values = complex_numbers(2, 3, 4) if dtype == "complex64" else positive(2, 3, 4, dtype=dtype)
        for op in ("Sum", "Mean", "Prod"):
            case(f"{op}_{dtype}", lambda a, o=op: getattr(raw, o)(input=a, axis=[0, -1]), values)
        if dtype != "complex64":
            for op in ("Max", "Min"):
                case(f"{op}_{dtype}", lambda a, o=op: getattr(raw, o)(input=a, axis=1, keep_dims=True), values)
            case(f"ArgMax_{dtype}", lambda a: raw.ArgMax(input=a, dimension=1), values)
        for op in ("Cumsum", "Cumprod"):
            for exclusive in (False, True):
                for reverse in (False, True):
                    case(
                        f"{op}_{dtype}_{exclusive}_{reverse}",
                        lambda a, o=op, e=exclusive, r=reverse: getattr(raw, o)(x=a, axis=1, exclusive=e, reverse=r),
                        values,
                    )
    case("cumulative_logsumexp", lambda a: tf.math.cumulative_logsumexp(a, axis=1, reverse=True), normal(3, 4))


def signal_cases():
    for length in (8, 6, 7):
        for dtype in ("complex64", "complex128"):
            for op in "FFT IFFT".split():
                case(
                    f"{op}_{length}_{dtype}",
                    lambda a, o=op: getattr(raw, o)(input=a),
                    complex_numbers(2, length, dtype=dtype),
                )
        case(f"RFFT_{length}", lambda a, n=length: tf.signal.rfft(a, [n]), normal(3, 8))
        case(f"IRFFT_{length}", lambda a, n=length: tf.signal.irfft(a, [n]), complex_numbers(3, 5))
    case("RFFT_float64", tf.signal.rfft, normal(3, 10, dtype="float64"))
    case("FFT2D", tf.signal.fft2d, complex_numbers(2, 4, 6))
    case("IFFT2D", tf.signal.ifft2d, complex_numbers(2, 4, 6))
    case("RFFT2D", lambda a: tf.signal.rfft2d(a, [5, 6]), normal(2, 4, 8))
    case("IRFFT2D", lambda a: tf.signal.irfft2d(a, [4, 6]), complex_numbers(2, 4, 4))
    case("FFT3D", tf.signal.fft3d, complex_numbers(2, 3, 4, 5))
    case("IFFT3D", tf.signal.ifft3d, complex_numbers(3, 4, 5))
    case("RFFT3D", tf.signal.rfft3d, normal(2, 3, 4, 6))
    case("IRFFT3D", tf.signal.irfft3d, complex_numbers(3, 4, 4))
    case("stft", lambda a: tf.abs(tf.signal.stft(a, 16, 8)), normal(2, 64))
    case("inverse_stft", lambda a: tf.signal.inverse_stft(tf.signal.stft(a, 16, 8), 16, 8), normal(2, 64))
    case("fft_shift", lambda a: tf.signal.fftshift(tf.signal.fft(tf.complex(a, 0.0 * a))), normal(8))
    case(
        "audio_spectrogram",
        lambda a: raw.AudioSpectrogram(input=a, window_size=60, stride=30, magnitude_squared=True),
        normal(300, 2),
    )
    case("mfcc", lambda a: raw.Mfcc(spectrogram=a, sample_rate=8000, dct_coefficient_count=9), positive(2, 3, 65))
    case("hilbert_phase", lambda a: tf.math.angle(tf.signal.fft(tf.complex(a, tf.zeros_like(a)))), normal(16))


def matrix_cases():
    square = normal(2, 4, 4, dtype="float64") + 4 * np.eye(4)
    definite = np.matmul(square, square.transpose(0, 2, 1))
    for dtype in ("float32", "float64"):
        a, spd = square.astype(dtype), definite.astype(dtype)
        case(f"inverse_{dtype}", tf.linalg.inv, a)
        case(f"inverse_adjoint_{dtype}", lambda m: tf.linalg.inv(m, adjoint=True), a)
        case(f"determinant_{dtype}", tf.linalg.det, a)
        case(f"log_determinant_{dtype}", lambda m: tf.stack(tf.linalg.slogdet(m)), a)
        case(f"cholesky_{dtype}", tf.linalg.cholesky, spd)
        for lower in (True, False):
            for adjoint in (True, False):
                case(
                    f"triangular_{dtype}_{lower}_{adjoint}",
                    lambda m, r, low=lower, j=adjoint: tf.linalg.triangular_solve(m, r, lower=low, adjoint=j),
                    a,
                    normal(2, 4, 3, dtype=dtype),
                )
        case(f"qr_{dtype}", lambda m: tf.matmul(*tf.linalg.qr(m)), a)
        case(f"qr_r_{dtype}", lambda m: tf.abs(tf.linalg.qr(m, full_matrices=True)[1]), normal(5, 3, dtype=dtype))
        case(f"solve_{dtype}", tf.linalg.solve, a, normal(2, 4, 3, dtype=dtype), selected=["MatrixSolve"])
    for dtype in ("float64", "int32", "complex64"):
        left = complex_numbers(2, 3, 4) if dtype == "complex64" else positive(2, 3, 4, dtype=dtype)
        right = complex_numbers(2, 5, 4) if dtype == "complex64" else positive(2, 5, 4, dtype=dtype)
        case(f"matmul_{dtype}", lambda a, b: tf.matmul(a, b, adjoint_b=True), left, right)
        case(f"matmul_flat_{dtype}", lambda a, b: raw.MatMul(a=a, b=b, transpose_b=True), left[0], right[0])
        case(f"einsum_{dtype}", lambda a, b: tf.einsum("bij,bkj->kbi", a, b), left, right)
    case("einsum_diagonal", lambda a: raw.Einsum(inputs=[a], equation="bii->bi"), normal(2, 3, 3))
    case("einsum_trace", lambda a: raw.Einsum(inputs=[a], equation="bii->b"), normal(2, 3, 3))
    case(
        "einsum_ellipsis",
        lambda a, b: raw.Einsum(inputs=[a, b], equation="...ij,...jk->i...k"),
        normal(2, 1, 3, 4),
        normal(5, 4, 2),
    )
    case("band_part_float64", lambda a: tf.linalg.band_part(a, 1, 2), normal(2, 4, 5, dtype="float64"))
    case("diag_float64", tf.linalg.diag, normal(2, 3, dtype="float64"))
    case("diag_part_float64", tf.linalg.diag_part, normal(2, 3, 3, dtype="float64"))
    case("set_diag_float64", tf.linalg.set_diag, normal(2, 3, 3, dtype="float64"), normal(2, 3, dtype="float64"))
    case("diag_offset", lambda a: tf.linalg.diag(a, k=1), normal(2, 3))
    case("diag_part_offsets", lambda a: tf.linalg.diag_part(a, k=(-1, 1), padding_value=9.0), normal(2, 4, 5))
    case(
        "cross_float64",
        tf.linalg.cross,
        normal(2, 3, dtype="float64"),
        normal(2, 3, dtype="float64"),
        selected=["Cross"],
    )


def random_cases():
    seed = np.array([3, 5], "int32")
    for dtype in (tf.float32, tf.float64):
        case(
            f"stateless_uniform_{dtype.name}", lambda s, d=dtype: tf.random.stateless_uniform([3, 5], s, dtype=d), seed
        )
        case(f"stateless_normal_{dtype.name}", lambda s, d=dtype: tf.random.stateless_normal([3, 5], s, dtype=d), seed)
        case(
            f"stateless_truncated_{dtype.name}",
            lambda s, d=dtype: tf.random.stateless_truncated_normal([40, 5], s, dtype=d),
            seed,
        )
    for dtype in (tf.int32, tf.int64):
        case(
            f"stateless_int_{dtype.name}",
            lambda s, d=dtype: tf.random.stateless_uniform([3, 5], s, minval=-4, maxval=90, dtype=d),
            seed,
        )
        case(
            f"stateless_bits_{dtype.name}",
            lambda s, d=dtype: tf.random.stateless_uniform([7], s, minval=None, maxval=None, dtype=d),
            seed,
        )
    for op in ("StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal"):
        case(op, lambda s, o=op: getattr(raw, o)(shape=[3, 5], seed=s), seed)
    case(
        "StatelessMultinomial",
        lambda a, s: raw.StatelessMultinomial(logits=a, num_samples=9, seed=s),
        normal(3, 4),
        seed,
    )
    for op in ("RandomUniform", "RandomStandardNormal", "TruncatedNormal"):
        for dtype in (tf.float32, tf.float64):
            case(
                f"{op}_{dtype.name}",
                lambda n, o=op, d=dtype: getattr(raw, o)(shape=n, dtype=d, seed=11, seed2=13),
                np.array([4, 5], "int32"),
            )
    case(
        "RandomUniformInt",
        lambda n: raw.RandomUniformInt(shape=n, minval=2, maxval=50, seed=11, seed2=13),
        np.array([4, 5], "int32"),
    )
    case("Multinomial", lambda a: raw.Multinomial(logits=a, num_samples=9, seed=11, seed2=13), normal(3, 4))


for group in (math_cases, reduction_cases, signal_cases, matrix_cases, random_cases):
    group()
