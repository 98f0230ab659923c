# SPDX-License-Identifier: Apache-2.0
"""Expressions for leadline.tf and TensorFlow alike: functions of the module. Random data is made once, of one seed."""

import numpy as np

rng = np.random.default_rng(7)
F = rng.standard_normal((3, 4)).astype(np.float32)
G = rng.standard_normal((3, 4)).astype(np.float32)
P = (np.abs(F) + 0.1).astype(np.float32)
U = rng.uniform(-0.9, 0.9, (3, 4)).astype(np.float32)
D = rng.standard_normal((3, 4))
V = rng.standard_normal(4).astype(np.float32)
K = rng.integers(-5, 6, (3, 4)).astype(np.int32)
N = rng.integers(1, 6, (3, 4)).astype(np.int32)
L = rng.integers(-5, 6, (3, 4)).astype(np.int64)
B = F > 0
C = G > 0
Z = (F + 1j * G).astype(np.complex64)
X3 = rng.standard_normal((2, 3, 4)).astype(np.float32)
Y3 = rng.standard_normal((2, 4, 5)).astype(np.float32)
IMAGE = rng.standard_normal((2, 9, 8, 3)).astype(np.float32)
FILTER = rng.standard_normal((3, 2, 3, 5)).astype(np.float32)
DEPTHWISE = rng.standard_normal((3, 3, 3, 2)).astype(np.float32)
S = (F @ F.T + 3 * np.eye(3)).astype(np.float32)
BIG = rng.standard_normal((150, 170)).astype(np.float32)
WIDE = rng.standard_normal((170, 130)).astype(np.float32)
BIG_IMAGE = rng.standard_normal((1, 40, 41, 16)).astype(np.float32)
BIG_FILTER = rng.standard_normal((3, 3, 16, 24)).astype(np.float32)


def _cases() -> dict:
    cases = {}

    def add(name, function, tolerance=1e-5):
        assert name not in cases, name
        cases[name] = (function, tolerance)

    for name in (
        "abs",
        "exp",
        "sin",
        "cos",
        "tan",
        "tanh",
        "sinh",
        "cosh",
        "sigmoid",
        "negative",
        "sign",
        "square",
        "floor",
        "round",
        "asinh",
        "atan",
    ):
        add(f"{name}/f32", lambda tf, n=name: getattr(tf, n)(tf.constant(F)))
        add(f"{name}/f64", lambda tf, n=name: getattr(tf, n)(tf.constant(D)))
    for name in ("abs", "negative", "sign", "square", "round"):
        add(f"{name}/i32", lambda tf, n=name: getattr(tf, n)(tf.constant(K)))
    for name in ("sqrt", "acosh"):
        add(f"{name}/f32", lambda tf, n=name: getattr(tf, n)(tf.constant(P + 1)))
    for name in (
        "log",
        "log1p",
        "rsqrt",
        "expm1",
        "softplus",
        "softsign",
        "erf",
        "erfc",
        "lgamma",
        "reciprocal",
        "ceil",
        "rint",
        "is_nan",
        "is_inf",
        "is_finite",
    ):
        add(f"math.{name}", lambda tf, n=name: getattr(tf.math, n)(tf.constant(P)), 1e-4)
    for name in ("asin", "acos", "atanh"):
        add(f"{name}/f32", lambda tf, n=name: getattr(tf, n)(tf.constant(U)))
    for name in (
        "relu",
        "relu6",
        "elu",
        "selu",
        "gelu",
        "leaky_relu",
        "silu",
        "softmax",
        "log_softmax",
        "l2_normalize",
    ):
        add(f"nn.{name}", lambda tf, n=name: getattr(tf.nn, n)(tf.constant(F * 5)))
    add("nn.gelu/approximate", lambda tf: tf.nn.gelu(tf.constant(F), approximate=True))
    for axis in (0, 1, -1):
        add(f"nn.softmax/axis{axis}", lambda tf, a=axis: tf.nn.softmax(tf.constant(F), axis=a))

    for name in (
        "add",
        "subtract",
        "multiply",
        "divide",
        "maximum",
        "minimum",
        "equal",
        "not_equal",
        "less",
        "less_equal",
        "greater",
        "greater_equal",
    ):
        add(f"{name}/f32", lambda tf, n=name: getattr(tf, n)(tf.constant(F), tf.constant(G)))
        add(f"{name}/broadcast", lambda tf, n=name: getattr(tf, n)(tf.constant(F), tf.constant(V)))
        add(f"{name}/column", lambda tf, n=name: getattr(tf, n)(tf.constant(F[:, :1]), tf.constant(V)))
        add(f"{name}/i32", lambda tf, n=name: getattr(tf, n)(tf.constant(K), tf.constant(N)))
        add(f"{name}/i64", lambda tf, n=name: getattr(tf, n)(tf.constant(L), tf.constant(N.astype(np.int64))))
        add(f"{name}/f64", lambda tf, n=name: getattr(tf, n)(tf.constant(D), 2.0))
    for name in ("floordiv", "floormod", "truediv"):
        for kind, (a, b) in {"i32": (K, N), "f32": (F, P)}.items():
            add(f"math.{name}/{kind}", lambda tf, n=name, a=a, b=b: getattr(tf.math, n)(tf.constant(a), tf.constant(b)))
    add("truncatediv", lambda tf: tf.truncatediv(tf.constant(K), tf.constant(N)))
    add("truncatemod", lambda tf: tf.truncatemod(tf.constant(K), tf.constant(N)))
    add("pow", lambda tf: tf.pow(tf.constant(P), tf.constant(F)))
    add("pow/i32", lambda tf: tf.pow(tf.constant(K), 3))
    add("pow/operator", lambda tf: tf.constant(F) ** 2)
    add("atan2", lambda tf: tf.atan2(tf.constant(F), tf.constant(G)))
    add("squared_difference", lambda tf: tf.math.squared_difference(tf.constant(F), tf.constant(V)))
    add("divide_no_nan", lambda tf: tf.math.divide_no_nan(tf.constant(F), tf.constant([0.0, 1.0, 0.0, 2.0])))
    add("xlogy", lambda tf: tf.math.xlogy(tf.constant([0.0, 1.0]), tf.constant([0.0, 2.0])))
    add("xdivy", lambda tf: tf.math.xdivy(tf.constant([0.0, 1.0]), tf.constant([0.0, 2.0])))
    add("logical_and", lambda tf: tf.logical_and(B, C))
    add("logical_or", lambda tf: tf.logical_or(B, C))
    add("logical_xor", lambda tf: tf.math.logical_xor(B, C))
    add("logical_not", lambda tf: tf.logical_not(B))
    add("bitwise", lambda tf: tf.bitwise.bitwise_and(K, N) + tf.bitwise.bitwise_or(K, N) - tf.bitwise.bitwise_xor(K, N))
    add("invert", lambda tf: tf.bitwise.invert(tf.constant(K)))
    add("shifts", lambda tf: tf.bitwise.left_shift(K, N) + tf.bitwise.right_shift(K, N))
    for text in (
        "x + 1",
        "1 + x",
        "x - 2.5",
        "2.5 - x",
        "x * 3",
        "x / 2",
        "2 / x",
        "x // 2",
        "x % 2",
        "-x",
        "abs(x)",
        "x ** 2",
        "2 ** x",
        "x < 0",
        "x >= y",
        "x == y",
        "x != y",
        "x @ tf.transpose(y)",
        "x + y_np",
        "y_np + x",
        "x * [1, 2, 3, 4]",
    ):
        add(
            f"operator {text}",
            lambda tf, t=text: eval(t, {"tf": tf, "x": tf.constant(F), "y": tf.constant(G), "y_np": G}),
        )
    for text in ("x + 1", "x // 2", "x % 3", "x / 2", "7 // y", "x & y", "x | y", "x ^ y", "~x", "x == 1"):
        add(f"int operator {text}", lambda tf, t=text: eval(t, {"tf": tf, "x": tf.constant(K), "y": tf.constant(N)}))
    add("operator bool", lambda tf: (tf.constant(B) & tf.constant(C)) | ~tf.constant(B))
    add("float64 array to float32 tensor", lambda tf: tf.constant(F) + D)

    for name in ("reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod"):
        for axis in (None, 0, 1, -1, [0, 1], [-1, 0], []):
            for keep in (False, True):
                add(f"{name}/{axis}/{keep}", lambda tf, n=name, a=axis, k=keep: getattr(tf, n)(tf.constant(F), a, k))
        add(f"{name}/i32", lambda tf, n=name: getattr(tf, n)(tf.constant(K), 1))
        add(f"{name}/f64", lambda tf, n=name: getattr(tf, n)(tf.constant(D), 0))
        add(f"{name}/f16", lambda tf, n=name: getattr(tf, n)(tf.constant(F.astype(np.float16)), 0), 1e-2)
        add(f"{name}/scalar", lambda tf, n=name: getattr(tf, n)(tf.constant(2.5)))
        add(f"{name}/empty", lambda tf, n=name: getattr(tf, n)(tf.zeros([0, 3]), 0))
        add(f"{name}/rank3", lambda tf, n=name: getattr(tf, n)(tf.constant(X3), [0, 2]))
    add("reduce_all", lambda tf: tf.reduce_all(tf.constant(B), 0))
    add("reduce_any", lambda tf: tf.reduce_any(tf.constant(B), 1, True))
    add("reduce_variance", lambda tf: tf.math.reduce_variance(tf.constant(F), 1))
    add("reduce_std", lambda tf: tf.math.reduce_std(tf.constant(F)))
    add("reduce_logsumexp", lambda tf: tf.reduce_logsumexp(tf.constant(F), 1))
    add("reduce_euclidean_norm", lambda tf: tf.math.reduce_euclidean_norm(tf.constant(F), 1))
    add("count_nonzero", lambda tf: tf.math.count_nonzero(tf.constant(K), 0))
    for axis in (0, 1, -1, None):
        add(f"argmax/{axis}", lambda tf, a=axis: tf.argmax(tf.constant(F), a))
        add(f"argmin/{axis}", lambda tf, a=axis: tf.argmin(tf.constant(F), a))
    add("argmax/int32", lambda tf: tf.argmax(tf.constant(F), 1, output_type=tf.int32))
    add("argmax/ties", lambda tf: tf.argmax([1, 3, 3, 2]))
    for exclusive in (False, True):
        for reverse in (False, True):
            add(f"cumsum/{exclusive}/{reverse}", lambda tf, e=exclusive, r=reverse: tf.cumsum(tf.constant(F), 1, e, r))
            add(
                f"cumprod/{exclusive}/{reverse}",
                lambda tf, e=exclusive, r=reverse: tf.math.cumprod(tf.constant(K), 0, e, r),
            )

    add("reshape", lambda tf: tf.reshape(tf.constant(F), [2, -1]))
    add("reshape/scalar", lambda tf: tf.reshape(tf.constant([5.0]), []))
    add("reshape/flat", lambda tf: tf.reshape(tf.constant(F), [-1]))
    add("reshape/tensor", lambda tf: tf.reshape(tf.constant(F), tf.shape(tf.constant(F))[::-1]))
    add("transpose", lambda tf: tf.transpose(tf.constant(F)))
    add("transpose/perm", lambda tf: tf.transpose(tf.constant(X3), [2, 0, 1]))
    add("transpose/conjugate", lambda tf: tf.transpose(tf.constant(Z), conjugate=True))
    add("squeeze", lambda tf: tf.squeeze(tf.ones([1, 3, 1])))
    add("squeeze/axis", lambda tf: tf.squeeze(tf.ones([1, 3, 1]), [0]))
    for axis in (0, 1, 2, -1, -3):
        add(f"expand_dims/{axis}", lambda tf, a=axis: tf.expand_dims(tf.constant(F), a))
        if axis != 2:
            add(f"stack/{axis}", lambda tf, a=axis: tf.stack([F, G], axis=a))
    for axis in (0, 1, -1):
        add(f"concat/{axis}", lambda tf, a=axis: tf.concat([F, G], a))
        add(f"unstack/{axis}", lambda tf, a=axis: tf.unstack(tf.constant(F), axis=a))
    add("split", lambda tf: tf.split(tf.constant(F), 2, axis=1))
    add("split/sizes", lambda tf: tf.split(tf.constant(F), [1, -1], axis=1))
    add("slice", lambda tf: tf.slice(tf.constant(F), [0, 1], [2, -1]))
    for key in (
        "0",
        "-1",
        "1:",
        ":, 1",
        "..., -1",
        "::2",
        "::-1, 1:3",
        "0, 0",
        "None, 1",
        ":, None",
        "1:1",
        "-2:",
        "..., None",
        "0:100",
    ):
        add(f"index [{key}]", lambda tf, k=key: eval(f"x[{k}]", {"x": tf.constant(F)}))
    add("index tensor", lambda tf: tf.constant(F)[tf.constant(1) :, tf.constant(2)])
    for axis in (0, 1):
        add(f"gather/{axis}", lambda tf, a=axis: tf.gather(tf.constant(F), [[0, 2], [1, 0]], axis=a))
    add("gather/batch", lambda tf: tf.gather(tf.constant(F), [[0, 1], [2, 3], [1, 1]], axis=1, batch_dims=1))
    add("gather_nd", lambda tf: tf.gather_nd(tf.constant(F), [[0, 1], [2, 3]]))
    add("gather_nd/rows", lambda tf: tf.gather_nd(tf.constant(F), [[0], [2]]))
    add("scatter_nd", lambda tf: tf.scatter_nd([[1], [3], [1]], [1.0, 2.0, 3.0], [5]))
    add(
        "tensor_scatter_nd_update", lambda tf: tf.tensor_scatter_nd_update(tf.constant(F), [[0, 1], [2, 2]], [9.0, 8.0])
    )
    add("tensor_scatter_nd_add", lambda tf: tf.tensor_scatter_nd_add(tf.constant(F), [[0], [0]], [V, V]))
    add("unsorted_segment_sum", lambda tf: tf.math.unsorted_segment_sum(tf.constant(F), [0, 2, 0], 3))
    add("segment_sum", lambda tf: tf.math.segment_sum(tf.constant(F), [0, 0, 1]))
    add("tile", lambda tf: tf.tile(tf.constant(F), [2, 3]))
    add("repeat", lambda tf: tf.repeat(tf.constant(F), 2, axis=0))
    add("repeat/counts", lambda tf: tf.repeat(tf.constant([1, 2, 3]), [2, 0, 1]))
    for mode in ("CONSTANT", "REFLECT", "SYMMETRIC"):
        add(f"pad/{mode}", lambda tf, m=mode: tf.pad(tf.constant(F), [[1, 2], [0, 1]], m))
    add("pad/value", lambda tf: tf.pad(tf.constant(F), [[0, 0], [2, 0]], constant_values=7))
    add("broadcast_to", lambda tf: tf.broadcast_to(tf.constant(V), [2, 3, 4]))
    add("reverse", lambda tf: tf.reverse(tf.constant(F), [-1]))
    add("roll", lambda tf: tf.roll(tf.constant(F), [1, -1], [0, 1]))
    add("where", lambda tf: tf.where(tf.constant(B), tf.constant(F), tf.constant(G)))
    add("where/broadcast", lambda tf: tf.where(tf.constant(B), tf.constant(F), 0.0))
    add("where/places", lambda tf: tf.where(tf.constant(B)))
    add("boolean_mask", lambda tf: tf.boolean_mask(tf.constant(F), tf.constant(B)))
    add("boolean_mask/axis", lambda tf: tf.boolean_mask(tf.constant(F), [True, False, True, True], axis=1))
    add("unique", lambda tf: tuple(tf.unique(tf.constant([3, 1, 3, 2, 1]))))
    add("unique_with_counts", lambda tf: tuple(tf.unique_with_counts(tf.constant([3, 1, 3, 2, 1]))))
    add("one_hot", lambda tf: tf.one_hot([0, 2, -1, 5], 3))
    add("one_hot/axis", lambda tf: tf.one_hot([0, 2], 3, axis=0, on_value=5, off_value=1))
    add("one_hot/bool", lambda tf: tf.one_hot([0, 2], 3, on_value=True, off_value=False, dtype=tf.bool))
    add("sort", lambda tf: tf.sort(tf.constant(F)))
    add("sort/descending", lambda tf: tf.sort(tf.constant(F), axis=0, direction="DESCENDING"))
    add("argsort", lambda tf: tf.argsort(tf.constant(F), axis=0))
    add(
        "argsort/descending",
        lambda tf: tf.argsort(tf.constant([3.0, 1.0, 3.0, 2.0]), direction="DESCENDING", stable=True),
    )
    add("top_k", lambda tf: tuple(tf.math.top_k(tf.constant(F), 2)))
    add("top_k/ties", lambda tf: tuple(tf.math.top_k(tf.constant([1.0, 3.0, 3.0, 2.0]), 3)))
    add("in_top_k", lambda tf: tf.math.in_top_k([0, 1, 2], tf.constant(F), 2))
    add("searchsorted", lambda tf: tf.searchsorted([1, 3, 5], [0, 3, 6]))
    add("sequence_mask", lambda tf: tf.sequence_mask([1, 3, 2], 5))
    add("meshgrid", lambda tf: tf.meshgrid([1, 2, 3], [4, 5]))
    add("meshgrid/ij", lambda tf: tf.meshgrid([1, 2, 3], [4, 5], indexing="ij"))
    add("shape", lambda tf: tf.shape(tf.constant(X3)))
    add("shape/int64", lambda tf: tf.shape(tf.constant(X3), out_type=tf.int64))
    add("rank", lambda tf: tf.rank(tf.constant(X3)))
    add("size", lambda tf: tf.size(tf.constant(X3)))

    add("zeros", lambda tf: tf.zeros([2, 3]))
    add("ones/int", lambda tf: tf.ones([2], tf.int64))
    add("zeros/bool", lambda tf: tf.zeros([2], tf.bool))
    add("fill", lambda tf: tf.fill([2, 2], 7))
    add("zeros_like", lambda tf: tf.zeros_like(tf.constant(K)))
    add("ones_like", lambda tf: tf.ones_like(tf.constant(F), dtype=tf.int32))
    add("range", lambda tf: tf.range(5))
    add("range/step", lambda tf: tf.range(10, 0, -3))
    add("range/float", lambda tf: tf.range(0.0, 1.0, 0.3))
    add("range/mixed", lambda tf: tf.range(0, 2, 0.5))
    add("linspace", lambda tf: tf.linspace(0.0, 1.0, 5))
    add("linspace/none", lambda tf: tf.linspace(0.0, 1.0, 0))
    add("boolean index", lambda tf: tf.constant([1, 2, 3])[tf.constant([True, False, True])])
    add("linspace/int", lambda tf: tf.linspace(0, 10, 4))
    add("eye", lambda tf: tf.eye(3, 4))
    add("eye/batch", lambda tf: tf.eye(2, batch_shape=[3]))
    for value in (
        1,
        1.5,
        True,
        1j,
        [1, 2],
        [[1.0], [2.0]],
        2**40,
        [],
        [[]],
        np.float64(2),
        np.int8(3),
        np.arange(3),
        "text",
        ["a", b"b"],
    ):
        add(f"constant {value!r}", lambda tf, v=value: tf.constant(v))
    add("constant/dtype", lambda tf: tf.constant([1, 2], tf.float64))
    add("constant/shape", lambda tf: tf.constant(3, shape=[2, 2]))
    add("constant/reshape", lambda tf: tf.constant([1, 2, 3, 4], shape=[2, 2]))
    add("convert/tensors", lambda tf: tf.convert_to_tensor([tf.constant(1.0), 2.0]))
    for source, target in (
        ("float32", "int32"),
        ("float32", "float64"),
        ("int32", "bool"),
        ("bool", "float32"),
        ("int64", "int8"),
        ("float64", "float16"),
        ("complex64", "float32"),
        ("int32", "complex64"),
    ):
        add(f"cast/{source}/{target}", lambda tf, s=source, t=target: tf.cast(tf.cast(tf.constant(F * 3), s), t), 1e-2)
    add("saturate_cast", lambda tf: tf.saturate_cast(tf.constant([300.0, -300.0, 5.5]), tf.int8))
    add("clip_by_value", lambda tf: tf.clip_by_value(tf.constant(F), -0.5, 0.5))
    add("add_n", lambda tf: tf.add_n([tf.constant(F), tf.constant(G), tf.constant(F)]))
    add("complex", lambda tf: tf.complex(tf.constant(F), tf.constant(G)))
    add(
        "real imag conj angle",
        lambda tf: (tf.math.real(Z), tf.math.imag(Z), tf.math.conj(Z), tf.math.angle(Z), tf.abs(Z)),
    )
    add("complex arithmetic", lambda tf: tf.constant(Z) * tf.constant(Z) / 2 + 1)

    add("matmul", lambda tf: tf.matmul(tf.constant(F), tf.constant(G), transpose_b=True))
    add("matmul/a", lambda tf: tf.matmul(tf.constant(F), tf.constant(G), transpose_a=True))
    add("matmul/batch", lambda tf: tf.matmul(tf.constant(X3), tf.constant(Y3)))
    add("matmul/broadcast", lambda tf: tf.matmul(tf.constant(X3), tf.constant(Y3[0])))
    add("matmul/f64", lambda tf: tf.matmul(tf.constant(D), tf.constant(D), transpose_b=True))
    add("matmul/i32", lambda tf: tf.matmul(tf.constant(K), tf.constant(N), transpose_b=True))
    add("matmul/adjoint", lambda tf: tf.matmul(tf.constant(Z), tf.constant(Z), adjoint_b=True))
    add("matmul/big", lambda tf: tf.matmul(tf.constant(BIG), tf.constant(WIDE)), 1e-4)
    add("matmul/big transposed view", lambda tf: tf.matmul(tf.constant(BIG), tf.transpose(tf.constant(BIG))), 1e-4)
    add(
        "matmul/big transposed left",
        lambda tf: tf.matmul(tf.transpose(tf.constant(WIDE)), tf.transpose(tf.constant(BIG))),
        1e-4,
    )
    add("matvec", lambda tf: tf.linalg.matvec(tf.constant(F), tf.constant(V)))
    add("tensordot", lambda tf: tf.tensordot(tf.constant(X3), tf.constant(Y3), [[2], [1]]))
    add("tensordot/1", lambda tf: tf.tensordot(tf.constant(F), tf.constant(V), 1))
    for equation, operands in (
        ("ij,kj->ik", (F, G)),
        ("bij,bjk->bik", (X3, Y3)),
        ("ij->ji", (F,)),
        ("ii->i", (S,)),
        ("ij->", (F,)),
        ("...ij,...jk->...ik", (X3, Y3)),
        ("i,j->ij", (V, V)),
    ):
        add(f"einsum {equation}", lambda tf, e=equation, o=operands: tf.einsum(e, *map(tf.constant, o)))
    add("norm", lambda tf: tf.norm(tf.constant(F)))
    add("norm/axis", lambda tf: tf.norm(tf.constant(F), ord=1, axis=1))
    add("linalg.inv", lambda tf: tf.linalg.inv(tf.constant(S)), 1e-4)
    add("linalg.det", lambda tf: tf.linalg.det(tf.constant(S)), 1e-4)
    add("linalg.solve", lambda tf: tf.linalg.solve(tf.constant(S), tf.constant(F)), 1e-4)
    add("linalg.cholesky", lambda tf: tf.linalg.cholesky(tf.constant(S)), 1e-4)
    add("linalg.eigh", lambda tf: tf.linalg.eigh(tf.constant(S))[0], 1e-4)
    add("linalg.svd", lambda tf: tf.linalg.svd(tf.constant(F))[0], 1e-4)
    add("linalg.band_part", lambda tf: tf.linalg.band_part(tf.constant(F), 1, 0))
    add("linalg.diag", lambda tf: tf.linalg.diag(tf.constant(V)))
    add("linalg.diag_part", lambda tf: tf.linalg.diag_part(tf.constant(F)))
    add("linalg.trace", lambda tf: tf.linalg.trace(tf.constant(S)))
    add("linalg.matrix_transpose", lambda tf: tf.linalg.matrix_transpose(tf.constant(X3)))

    for padding in ("SAME", "VALID"):
        for stride in (1, 2):
            add(f"conv2d/{padding}/{stride}", lambda tf, p=padding, s=stride: tf.nn.conv2d(IMAGE, FILTER, s, p), 1e-4)
            add(
                f"depthwise/{padding}/{stride}",
                lambda tf, p=padding, s=stride: tf.nn.depthwise_conv2d(IMAGE, DEPTHWISE, [1, s, s, 1], p),
                1e-4,
            )
            add(f"max_pool/{padding}/{stride}", lambda tf, p=padding, s=stride: tf.nn.max_pool2d(IMAGE, 3, s, p))
            add(f"avg_pool/{padding}/{stride}", lambda tf, p=padding, s=stride: tf.nn.avg_pool2d(IMAGE, [2, 3], s, p))
            add(
                f"conv2d/big/{padding}/{stride}",
                lambda tf, p=padding, s=stride: tf.nn.conv2d(BIG_IMAGE, BIG_FILTER, s, p),
                1e-3,
            )
            add(
                f"max_pool/big/{padding}/{stride}", lambda tf, p=padding, s=stride: tf.nn.max_pool2d(BIG_IMAGE, 3, s, p)
            )
            add(
                f"avg_pool/big/{padding}/{stride}",
                lambda tf, p=padding, s=stride: tf.nn.avg_pool2d(BIG_IMAGE, [2, 3], s, p),
            )
    add("conv2d/dilated", lambda tf: tf.nn.conv2d(IMAGE, FILTER, 1, "VALID", dilations=2), 1e-4)
    add("conv2d/explicit", lambda tf: tf.nn.conv2d(IMAGE, FILTER, 1, [[0, 0], [1, 2], [0, 1], [0, 0]]), 1e-4)
    add("conv2d/f64", lambda tf: tf.nn.conv2d(IMAGE.astype(np.float64), FILTER.astype(np.float64), 1, "SAME"))
    add("conv1d", lambda tf: tf.nn.conv1d(IMAGE[:, :, 0], FILTER[:, 0], 1, "SAME"), 1e-4)
    add("softmax/big", lambda tf: tf.nn.softmax(tf.constant(BIG)))
    add("gelu/big", lambda tf: tf.nn.gelu(tf.constant(BIG)), 1e-4)
    add("bias_add", lambda tf: tf.nn.bias_add(tf.constant(F), tf.constant(V)))
    add("moments", lambda tf: tf.nn.moments(tf.constant(F), [0]))
    add("batch_normalization", lambda tf: tf.nn.batch_normalization(F, V, P[0], V, V, 1e-3))
    add("cross entropy", lambda tf: tf.nn.softmax_cross_entropy_with_logits(P, F))
    add("sparse cross entropy", lambda tf: tf.nn.sparse_softmax_cross_entropy_with_logits([0, 3, 1], tf.constant(F)))
    add("sigmoid cross entropy", lambda tf: tf.nn.sigmoid_cross_entropy_with_logits(labels=P, logits=tf.constant(F)))
    add("embedding_lookup", lambda tf: tf.nn.embedding_lookup(tf.constant(F), [2, 0]))
    add("l2_loss", lambda tf: tf.nn.l2_loss(tf.constant(F)))
    add("map_fn", lambda tf: tf.map_fn(lambda row: tf.reduce_sum(row), tf.constant(F)))
    add("while_loop", lambda tf: tf.while_loop(lambda i: i < 5, lambda i: (i + 2,), [tf.constant(0)]))
    add("variable", lambda tf: tf.Variable(F).assign_add(G).numpy())
    add("variable arithmetic", lambda tf: tf.Variable(F) * 2 + tf.Variable(V))
    return cases


CASES = _cases()

# What goes wrong in TensorFlow, and must go wrong here with an exception that the same except clauses catch.
ERRORS = {
    "add shapes": lambda tf: tf.add(np.ones((10, 10)), np.ones((20, 20))),
    "add dtypes": lambda tf: tf.constant([1]) + tf.constant([1.0]),
    "int plus float": lambda tf: tf.constant([1]) + 1.5,
    "matmul shapes": lambda tf: tf.matmul(tf.constant(F), tf.constant(G)),
    "matmul batch shapes": lambda tf: tf.matmul(tf.constant(X3), tf.constant(X3)),
    "matmul rank": lambda tf: tf.matmul(tf.constant(V), tf.constant(V)),
    "matmul dtypes": lambda tf: tf.matmul(tf.constant(F), tf.constant(D), transpose_b=True),
    "reshape count": lambda tf: tf.reshape(tf.constant(F), [5, 5]),
    "reshape multiple": lambda tf: tf.reshape(tf.constant(F), [5, -1]),
    "concat shapes": lambda tf: tf.concat([F, X3[0][:, :2]], 0),
    "concat rank": lambda tf: tf.concat([F, V], 0),
    "stack shapes": lambda tf: tf.stack([F, V]),
    "index": lambda tf: tf.constant(F)[5],
    "index type": lambda tf: tf.constant(F)["a"],
    "index float": lambda tf: tf.constant(F)[1.0],
    "reduce axis": lambda tf: tf.reduce_sum(tf.constant(F), 5),
    "squeeze": lambda tf: tf.squeeze(tf.constant(F), [0]),
    "expand": lambda tf: tf.expand_dims(tf.constant(F), 7),
    "transpose perm": lambda tf: tf.transpose(tf.constant(F), [0]),
    "gather index": lambda tf: tf.gather(tf.constant(F), [5]),
    "split": lambda tf: tf.split(tf.constant(F), 3, axis=1),
    "tile": lambda tf: tf.tile(tf.constant(F), [2]),
    "pad": lambda tf: tf.pad(tf.constant(F), [[1, 1]]),
    "broadcast_to": lambda tf: tf.broadcast_to(tf.constant(F), [2, 2]),
    "one of x and y": lambda tf: tf.where(B, F),
    "conv channels": lambda tf: tf.nn.conv2d(IMAGE, FILTER[:, :, :2], 1, "SAME"),
    "conv rank": lambda tf: tf.nn.conv2d(F, FILTER, 1, "SAME"),
    "divide by zero": lambda tf: tf.constant(K) // tf.constant(0),
    "negative power": lambda tf: tf.pow(tf.constant(K), -1),
    "sqrt of ints": lambda tf: tf.sqrt(tf.constant(K)),
    "top_k": lambda tf: tf.math.top_k(tf.constant(F), 9),
    "argmax axis": lambda tf: tf.argmax(tf.constant(F), 5),
    "constant float to int": lambda tf: tf.constant(1.5, tf.int32),
    "constant ragged": lambda tf: tf.constant([[1], [2, 3]]),
    "constant None": lambda tf: tf.constant(None),
    "constant shape": lambda tf: tf.constant([1, 2, 3], shape=[2, 2]),
    "convert dtype": lambda tf: tf.convert_to_tensor(tf.constant(F), dtype=tf.int32),
    "as_dtype": lambda tf: tf.as_dtype("no type"),
    "assign shape": lambda tf: tf.Variable(F).assign(V),
    "bool of tensor": lambda tf: bool(tf.constant(F)),
    "len of scalar": lambda tf: len(tf.constant(1)),
    "iterate scalar": lambda tf: list(tf.constant(1)),
    "hash": lambda tf: hash(tf.constant(1)),
    "name": lambda tf: tf.constant(1).name,
    "inverse": lambda tf: tf.linalg.inv(tf.zeros([2, 2])),
    "fill": lambda tf: tf.fill([-1], 1.0),
    "range": lambda tf: tf.range(0, 5, 0),
    "placeholder eagerly": lambda tf: tf.compat.v1.placeholder(tf.float32),
    "no attribute": lambda tf: tf.there_is_no_such_thing,
}
