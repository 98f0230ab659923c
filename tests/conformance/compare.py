# SPDX-License-Identifier: Apache-2.0
"""Whether two results of a case are the same, within what its arithmetic allows."""

from __future__ import annotations

import numpy as np
from harness import Case


def difference(case: Case, got: list[list[np.ndarray]], want: list[list[np.ndarray]]) -> str:
    """Empty when all outputs of all runs agree, else what differs first."""
    largest = max((_magnitude(value) for feed in case.feeds() for value in feed), default=0.0)
    for run, (ours, theirs) in enumerate(zip(got, want, strict=True)):
        if len(ours) != len(theirs):
            return f"{len(ours)} outputs, expected {len(theirs)}"
        for i, (left, right) in enumerate(zip(ours, theirs, strict=True)):
            with np.errstate(all="ignore"):
                why = _difference(case, i, np.asarray(left), np.asarray(right), largest)
            if why:
                return f"run {run}, output {i}: {why}"
    return ""


def _magnitude(value: np.ndarray) -> float:
    if value.dtype.kind not in "fc" or not value.size:
        return 0.0
    finite = np.abs(value[np.isfinite(value)])
    return float(finite.max()) if finite.size else 0.0


def _difference(case: Case, index: int, got: np.ndarray, want: np.ndarray, largest_input: float) -> str:
    if got.shape != want.shape:
        return f"shape {got.shape}, expected {want.shape}"
    strings = got.dtype.kind in "OS" and want.dtype.kind in "OS"
    if not strings and (got.dtype.kind, got.dtype.itemsize) != (want.dtype.kind, want.dtype.itemsize):
        return f"type {got.dtype}, expected {want.dtype}"
    if case.shapes_only or not want.size:
        return ""
    if want.dtype.kind in "fcV":
        right = _floats_agree(got, want, case.loose, largest_input)
    elif want.dtype.kind in "iu":
        quantized = index < len(case.outputs) and np.size(case.outputs[index].scales) > 0
        steps = 1 if quantized and want.dtype.itemsize <= 2 and not case.exact else 0
        right = _distance(got, want) <= steps
    else:
        right = got == want
    if np.all(right):
        return ""
    at = np.unravel_index(int(np.argmin(right)), want.shape)
    wrong = int(np.size(right) - np.count_nonzero(right))
    return f"{wrong} of {want.size} differ, first at {tuple(map(int, at))}: {got[at]!r}, expected {want[at]!r}"


def _distance(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    if want.dtype.itemsize == 8:  # no wider integer to subtract in
        return np.where(got == want, 0, 2)
    return np.abs(got.astype(np.int64) - want.astype(np.int64))


def _floats_agree(got: np.ndarray, want: np.ndarray, loose: bool, largest_input: float) -> np.ndarray:
    """1e-4 of the value and 1e-5 of the largest one: sums of different order agree so far; half precision 1 %."""
    narrow = want.dtype.itemsize <= 2
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    got, want = got.astype(wide), want.astype(wide)
    finite = np.isfinite(want)
    largest = float(np.abs(want[finite]).max()) if finite.any() else 0.0
    if loose or narrow:
        allowed = 1e-2 * np.abs(want) + 1e-2 * largest + 1e-6
    else:
        allowed = 1e-4 * np.abs(want) + 1e-5 * largest + 2e-7 * largest_input + 1e-7
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    return same | (finite & np.isfinite(got) & (np.abs(got - want) <= allowed))
