# SPDX-License-Identifier: Apache-2.0
"""Shapes, types and quantization parameters that the tables of the elementwise ops share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from harness import Data, Tensor, constant, given, quantize, result

try:
    from ml_dtypes import bfloat16 as BF16
except ImportError:
    BF16 = None

F32, F16, F64 = np.float32, np.float16, np.float64
I8, I16, I32, I64 = np.int8, np.int16, np.int32, np.int64
U8, U16, U32, U64 = np.uint8, np.uint16, np.uint32, np.uint64
C64, BOOL, STRING = np.complex64, np.bool_, np.dtype(object)

SHAPES = [(), (1,), (7,), (0,), (2, 3), (3, 0), (1, 5, 1), (2, 3, 4), (1, 3, 2, 5), (2, 1, 3, 1, 2), (2, 1, 2, 3, 1, 2)]

BROADCASTS = [
    ((), ()), ((1,), ()), ((), (4,)), ((5,), (5,)), ((5,), (1,)), ((2, 3), (3,)), ((3,), (2, 3)), ((2, 3), (2, 1)),
    ((7, 1), (1, 5)), ((2, 3, 4), ()), ((2, 3, 4), (1, 1, 1)), ((2, 3, 4), (3, 1)), ((3, 1, 4), (2, 1)),
    ((2, 3, 4, 5), (1, 3, 1, 5)), ((1, 3, 1, 5), (2, 3, 4, 5)), ((2, 2, 3, 5), (5,)), ((2, 3, 4, 5), (2, 3, 1, 1)),
    ((1, 13, 2), (1, 1, 2)), ((2, 1, 3, 1, 2), (4, 1, 5, 1)), ((1, 2, 3, 1, 2, 2), (3, 1, 1)),
    ((2, 1, 2, 1, 2, 1), (1, 3, 1, 2, 1, 2)), ((17, 33), (17, 33)), ((4, 37), (37,)), ((4, 37), (4, 1)),
]  # fmt: skip
EMPTY_BROADCASTS = [
    ((0,), (0,)), ((0,), (1,)), ((2, 0, 3), (3,)), ((1, 3), (0, 1)), ((2, 0), ()), ((3, 0, 2), (1, 1, 2)),
]  # fmt: skip
# Beyond the blocks and vectors of any kernel.
LARGE_BROADCASTS = [
    ((40, 50, 3), (50, 1)), ((40, 50, 3), (40, 1, 3)), ((40, 50, 3), (40, 50, 1)), ((1, 50, 3), (40, 1, 1)),
    ((5003,), (5003,)), ((5003,), (1,)), ((), (5003,)), ((2, 70, 33), (70, 1)), ((33, 1, 65), (1, 31, 1)),
]  # fmt: skip
FEW_BROADCASTS = [((), ()), ((5,), (5,)), ((2, 3), (3,)), ((1, 5), (7, 1)), ((2, 3, 4, 5), (1, 3, 1, 5)), ((4,), ())]


@dataclass(frozen=True)
class Params:
    """Scale and zero point of a quantized type."""

    dtype: type
    scale: float
    zero_point: int = 0

    def __str__(self) -> str:
        return f"{name_of(self.dtype)} {self.scale:.4g} {self.zero_point}"

    def given(self, value: np.ndarray, **options) -> Tensor:
        return given(value, self.scale, self.zero_point, **options)

    def constant(self, value: np.ndarray) -> Tensor:
        return constant(value, self.scale, self.zero_point)

    def result(self) -> Tensor:
        return result(self.dtype, self.scale, self.zero_point)

    def levels(self, reals) -> np.ndarray:
        return quantize(reals, self.scale, self.zero_point, self.dtype)


def name_of(dtype) -> str:
    """f32, i8, ..."""
    kind = np.dtype(dtype)
    if kind == np.bool_ or kind.kind in "SO":
        return "bool" if kind == np.bool_ else "string"
    if BF16 is not None and kind == np.dtype(BF16):
        return "bf16"
    return f"{kind.kind}{8 * kind.itemsize}"


def known(*types) -> list:
    """Without bfloat16 where numpy does not know it."""
    return [t for t in types if t is not None]


def every_level(dtype) -> np.ndarray:
    """All 256 values of an 8-bit type, or some thousand of a wider one with its ends and the numbers around zero."""
    info = np.iinfo(dtype)
    if info.bits == 8:
        return np.arange(info.min, info.max + 1, dtype=dtype).reshape(4, 64)
    middle = (info.min + info.max + 1) // 2
    spread = np.linspace(info.min, info.max, 1985).astype(np.int64)
    return np.concatenate([spread, np.arange(middle - 31, middle + 32)]).astype(dtype).reshape(8, 256)


def edges(data: Data, dtype, shape, low=-100, high=100) -> np.ndarray:
    """Moderate integers with the ends of the type among them."""
    info = np.iinfo(dtype)
    values = data.ints(dtype, shape, max(low, info.min), min(high, info.max))
    for i, edge in enumerate([info.min, info.max, 0, 1]):
        if 3 * i < values.size:
            values.flat[3 * i] = edge
    return values
