# SPDX-License-Identifier: Apache-2.0
"""The real models that tests run, with their kind and tolerance, and inputs for them."""

from __future__ import annotations

import os
import re
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

NO_SHARED = "no real models: set LEADLINE_SHARED to a folder with models/MODELS.md"


def _find_shared() -> Path | None:
    folder = Path(os.environ.get("LEADLINE_SHARED") or Path(__file__).resolve().parents[3] / "shared")
    return folder if (folder / "models" / "MODELS.md").is_file() else None


SHARED = _find_shared()

# The ops that must run. A model that needs others may be refused, naming one of them.
REQUIRED_OPS = frozenset("""
    ADD SUB MUL DIV MAXIMUM MINIMUM SQUARED_DIFFERENCE POW FLOOR_DIV FLOOR_MOD
    EQUAL NOT_EQUAL LESS LESS_EQUAL GREATER GREATER_EQUAL LOGICAL_AND LOGICAL_OR LOGICAL_NOT
    ABS NEG EXP LOG SQRT RSQRT SQUARE SIN COS FLOOR CEIL ROUND
    RELU RELU6 RELU_N1_TO_1 LEAKY_RELU PRELU ELU GELU HARD_SWISH LOGISTIC TANH SOFTMAX LOG_SOFTMAX
    CONV_2D DEPTHWISE_CONV_2D TRANSPOSE_CONV FULLY_CONNECTED BATCH_MATMUL
    AVERAGE_POOL_2D MAX_POOL_2D L2_POOL_2D MEAN SUM REDUCE_MAX REDUCE_MIN REDUCE_PROD REDUCE_ANY REDUCE_ALL
    ARG_MAX ARG_MIN RESHAPE SQUEEZE EXPAND_DIMS TRANSPOSE CONCATENATION PACK UNPACK SPLIT SPLIT_V SLICE STRIDED_SLICE
    GATHER GATHER_ND PAD PADV2 MIRROR_PAD TILE BROADCAST_TO FILL SHAPE RANK RANGE CAST QUANTIZE DEQUANTIZE
    SELECT SELECT_V2 WHERE ONE_HOT TOPK_V2 RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR SPACE_TO_DEPTH DEPTH_TO_SPACE
    UNIDIRECTIONAL_SEQUENCE_LSTM VAR_HANDLE READ_VARIABLE ASSIGN_VARIABLE CALL_ONCE IF WHILE
    TFLite_Detection_PostProcess
""".split())  # fmt: skip


@dataclass(frozen=True)
class RealModel:
    """A row of MODELS.md."""

    name: str
    kind: str
    path: Path

    @property
    def tolerance(self) -> float:
        """Allowed difference of float outputs, relative to the largest magnitude of the output."""
        coarse = ("dynamic-range", "float16", "mixed", "blockwise")
        return 2e-3 if self.kind.startswith(coarse) else 1e-4


def real_models() -> list[RealModel]:
    """The models that LiteRT runs, as MODELS.md has them; none when the folder is missing."""
    if SHARED is None:
        return []
    models = []
    for line in (SHARED / "models" / "MODELS.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) < 9 or not cells[2].isdigit() or cells[7] != "yes":
            continue
        models.append(RealModel(cells[1], cells[3], SHARED / "models" / f"{cells[1]}.tflite"))
    return models


def extra_ops(message: str) -> list[str]:
    """The ops beyond the list that an UnsupportedError names; none when it is about ops that must run."""
    listed = re.search(r"cannot run: (.*)", message)
    if listed:
        ops = [re.sub(r"^custom op '(.*)'$", r"\1", op) for op in listed[1].split(", ")]
    else:
        ops = re.findall(r"(?:^|: )(\w+) #\d+", message)[:1]  # "CONV_2D #17 'name': what is missing"
    return [op for op in ops if op not in REQUIRED_OPS]


# What these models cannot do without: values that an op accepts, and shapes that fit each other.
_SPECIAL_INPUTS = {
    "litert_single_rsqrt_default_a16w8_recipe_quantized": lambda inputs: [np.abs(inputs[0] // 2) + 1],
    "seanet16_transpose_conv0": lambda inputs: [np.array([1, 3, 12, 64], np.int32), inputs[1]],  # its output shape
    "tfl_dynamic_shapes": lambda inputs: [*inputs[:2], np.full((1, 1), 5, np.float32)],  # length of a slice
}


def seeded_inputs(name: str, details: list[dict]) -> list[np.ndarray]:
    """Inputs that every run of this model gets: the full range of quantized types, small indices, floats in [-1, 1)."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    inputs = [_random(rng, item) for item in details]
    return _SPECIAL_INPUTS[name](inputs) if name in _SPECIAL_INPUTS else inputs


def _random(rng: np.random.Generator, details: dict) -> np.ndarray:
    shape, dtype = tuple(details["shape"]), np.dtype(details["dtype"])
    if dtype.kind == "f":
        return rng.uniform(-1, 1, shape).astype(dtype)
    if dtype.kind == "c":
        return (rng.uniform(-1, 1, shape) + 1j * rng.uniform(-1, 1, shape)).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind == "S":
        words = [b"lead", b"line", b"", b"fathom"]
        return np.array([words[i] for i in rng.integers(0, 4, int(np.prod(shape)))], object).reshape(shape)
    if details["quantization"][0] or dtype.itemsize == 1:
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    return rng.integers(0, 2, shape).astype(dtype)
