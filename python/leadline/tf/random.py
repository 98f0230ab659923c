# SPDX-License-Identifier: Apache-2.0
"""tf.random on numpy's generators: the distributions are TensorFlow's, the numbers for a seed are not."""

from __future__ import annotations

import numpy as np

from leadline.tf import dtypes, graph, movement, tiles
from leadline.tf.arithmetic import add, cast, multiply, subtract
from leadline.tf.array import _sizes
from leadline.tf.convert import convert_to_tensor
from leadline.tf.dtypes import as_dtype
from leadline.tf.op import Call, apply, row
from leadline.tf.tensor import Tensor


class _Generators:
    """One stream of numbers for ops without a seed of their own, one for each that has."""

    def __init__(self) -> None:
        self.global_seed: int | None = None
        self._streams: dict = {}

    def reset(self) -> None:
        self._streams.clear()

    def get(self, seed):
        if seed not in self._streams:
            known = [abs(number) for number in (self.global_seed, seed) if number is not None]
            self._streams[seed] = np.random.Generator(np.random.SFC64(known or None))
        return self._streams[seed]


generators = _Generators()


def set_seed(seed: int) -> None:
    """Restarts all streams of random numbers from `seed`."""
    generators.global_seed = int(seed)
    if graph.building():
        graph.current().seed = int(seed)
    generators.reset()


def _infer(call: Call):
    dims = movement.sizes_of(call, 0)
    for size in dims or ():
        call.refuse_if(size is not None and size < 0, f"Dimension {size} must be >= 0")
    return [(call.attrs["dtype"], dims)]


def _drawn_as(dtype) -> np.dtype:
    return dtype.numpy if dtype.size >= 4 else np.dtype(np.float32)


def _normal(size, *, dtype, mean, stddev, seed):
    values = generators.get(seed).standard_normal(tuple(int(n) for n in size), dtype=_drawn_as(dtype))
    values *= values.dtype.type(stddev)
    values += values.dtype.type(mean)
    return values


def _truncated(size, *, dtype, mean, stddev, seed):
    source = generators.get(seed)
    values = source.standard_normal(tuple(int(n) for n in size), dtype=_drawn_as(dtype))
    while (far := np.abs(values) > 2).any():
        values[far] = source.standard_normal(int(far.sum()), dtype=values.dtype)
    values *= values.dtype.type(stddev)
    values += values.dtype.type(mean)
    return values


def _uniform(size, *, dtype, low, high, seed):
    source, dims = generators.get(seed), tuple(int(n) for n in size)
    if dtype.is_integer:
        return source.integers(low, high, dims, dtype=dtype.numpy)
    values = source.random(dims, dtype=_drawn_as(dtype))
    values *= values.dtype.type(high - low)
    values += values.dtype.type(low)
    # Rounding may reach the end of the interval, which is not part of it.
    np.minimum(values, np.nextafter(values.dtype.type(high), values.dtype.type(low)), out=values)
    return values


_OPTIONS = {"stateful": True, "rows": tiles.source}
row("RandomStandardNormal", _infer, _normal, **_OPTIONS)
row("TruncatedNormal", _infer, _truncated, **_OPTIONS)
row("RandomUniform", _infer, _uniform, **_OPTIONS)


def _floating(dtype):
    dtype = as_dtype(dtype)
    if not dtype.is_floating:
        raise ValueError(f"Argument `dtype` got invalid value {dtype!r}: expected a floating type")
    return dtype


def _normals(op: str, name: str, shape, mean, stddev, dtype, seed) -> Tensor:
    dtype = _floating(dtype)
    numbers = (
        np.ndim(mean) == 0 and np.ndim(stddev) == 0 and not isinstance(mean, Tensor) and not isinstance(stddev, Tensor)
    )
    attrs = {"dtype": dtype, "seed": seed}
    if numbers:
        return apply(op, [_sizes(shape)], name, mean=float(mean), stddev=float(stddev), **attrs)
    values = apply(op, [_sizes(shape)], name, mean=0.0, stddev=1.0, **attrs)
    return add(multiply(values, cast(stddev, dtype)), cast(mean, dtype))


def normal(shape, mean=0.0, stddev=1.0, dtype=dtypes.float32, seed=None, name=None) -> Tensor:
    """Numbers of a normal distribution."""
    return _normals("RandomStandardNormal", name or "random_normal", shape, mean, stddev, dtype, seed)


def truncated_normal(shape, mean=0.0, stddev=1.0, dtype=dtypes.float32, seed=None, name=None) -> Tensor:
    """The same without what is further than two deviations from the mean."""
    return _normals("TruncatedNormal", name or "truncated_normal", shape, mean, stddev, dtype, seed)


def uniform(shape, minval=0, maxval=None, dtype=dtypes.float32, seed=None, name=None) -> Tensor:
    """Numbers from minval up to, but without, maxval, each as likely as the others."""
    dtype = as_dtype(dtype)
    if maxval is None:
        if dtype.is_integer:
            raise ValueError(f"Must specify maxval for integer dtype {dtype!r}")
        maxval = 1
    if isinstance(minval, Tensor) or isinstance(maxval, Tensor) or np.ndim(minval) or np.ndim(maxval):
        values = apply(
            "RandomUniform", [_sizes(shape)], name or "random_uniform", dtype=dtype, low=0, high=1, seed=seed
        )
        low, high = convert_to_tensor(minval, dtype_hint=dtype), convert_to_tensor(maxval, dtype_hint=dtype)
        return add(multiply(values, subtract(high, low)), low)
    if dtype.is_integer and not minval < maxval:
        from leadline.tf.errors import InvalidArgumentError

        raise InvalidArgumentError(message=f"Need minval < maxval, got {minval} >= {maxval} [Op:RandomUniformInt]")
    return apply(
        "RandomUniform", [_sizes(shape)], name or "random_uniform", dtype=dtype, low=minval, high=maxval, seed=seed
    )


def _shuffled(x, *, seed):
    return generators.get(seed).permutation(x, axis=0) if x.ndim else x


row("RandomShuffle", movement.same, _shuffled, stateful=True)


def shuffle(value, seed=None, name=None) -> Tensor:
    """The rows in another order."""
    return apply("RandomShuffle", [convert_to_tensor(value)], name or "RandomShuffle", seed=seed)


def _infer_categorical(call: Call):
    return [(call.attrs["dtype"], (call.dims[0][0], call.attrs["count"]))]


def _categorical(logits, *, count, dtype, seed):
    # The largest of logits plus Gumbel noise is a draw from their softmax.
    noise = generators.get(seed).gumbel(size=(logits.shape[0], count, logits.shape[1]))
    return np.argmax(logits[:, None, :] + noise, -1)


row("Multinomial", _infer_categorical, _categorical, stateful=True)


def categorical(logits, num_samples, dtype=dtypes.int64, seed=None, name=None) -> Tensor:
    attrs = {"count": int(num_samples), "dtype": as_dtype(dtype), "seed": seed}
    return apply("Multinomial", [convert_to_tensor(logits)], name or "categorical", **attrs)
