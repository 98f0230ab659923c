# SPDX-License-Identifier: Apache-2.0
"""The real models that tests run, with their kind and tolerance, and inputs for them."""

from __future__ import annotations

import os
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

NO_SHARED = "no real models: set LEADLINE_SHARED to a folder with models/MODELS.md"


def _find_shared() -> Path | None:
    folder = Path(os.environ.get("LEADLINE_SHARED") or Path(__file__).resolve().parents[3] / "shared")
    return folder if (folder / "models" / "MODELS.md").is_file() else None


SHARED = _find_shared()

# What Leadline refuses, and how it says so; all others have to run. LiteRT refuses these too, or dies of them.
REFUSED = {
    "litert_blockwise_quantized": "input tensor 2 'quantized_tensor' is not computed before it is used",
    "nlc_string_input": "custom op 'CUSTOM_OP_STRING_TO_FLOATS'",
    "sentencepiece_tok_custom": "custom op 'FlexSentencepieceOp'",
    "tfl_sparse_tensor": "custom op 'FakeOp'",
    "tfl_tensor_string_data_type": "ADD #0 'c': input 0 'a' has type string, expected float32",
    "tflm_audio_preproc_float": "custom op 'SignalWindow'",
    "tflm_keyword_scrambled_svdf_int8": "SVDF #1 '': input 2 '' has type int8, expected int16",
    "tflm_person_detect_int8": "quantized along axis 3, but its shape is",
    "tflq_svdf_quantized": "SVDF #0 'output5': the state has shape",
    "whitespace_tok_ragged": "custom op 'tftext:WhitespaceTokenizer'",
    "wiki40b_lm_en_custom": "custom op 'FlexSentencepieceOp'",
}
# What the oracle has no kernels for, and Leadline has.
LITERT_DOES_NOT_RUN = {"litert_max_unpooling_2d", "mp_face_landmark_attention", "tfl_multi_add_flex"}


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
    """The models that LiteRT loads, as MODELS.md has them; none when the folder is missing."""
    if SHARED is None:
        return []
    models = []
    for line in (SHARED / "models" / "MODELS.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) < 9 or not cells[2].isdigit() or cells[7] != "yes":
            continue
        models.append(RealModel(cells[1], cells[3], SHARED / "models" / f"{cells[1]}.tflite"))
    return models


def runnable_models() -> list[RealModel]:
    """Those that have to run."""
    return [model for model in real_models() if model.name not in REFUSED]


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
