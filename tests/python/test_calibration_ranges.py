# SPDX-License-Identifier: Apache-2.0
"""The ranges that calibration chooses, against brute force."""

import numpy as np
import pytest
import sample_models

import leadline
from leadline import CalibrationMethod, CalibrationRule

F32 = np.float32

DISTRIBUTIONS = {
    "normal": lambda rng: rng.normal(0, 2, 20000),
    "one-sided": lambda rng: np.maximum(rng.normal(0, 1, 20000), 0),
    "clipped at 6": lambda rng: np.clip(rng.normal(3, 3, 20000), 0, 6),
    "heavy tail": lambda rng: rng.standard_t(2.5, 20000),
    "skewed": lambda rng: rng.exponential(1, 20000) - 0.3,
    "negative": lambda rng: -rng.gamma(2, 1, 20000),
    "outlier": lambda rng: np.append(rng.normal(0, 1, 20000), [40.0]),
}


def calibration_of(values):
    content = sample_models.chain(length=1, size=values.size)
    return leadline.calibrate(content, [values.astype(F32)[None]])


def levels(low, high, bits, symmetric):
    """Scale, smallest and largest value of the integers for a range."""
    if symmetric:
        end = max(-low, high)
        return end / (2 ** (bits - 1) - 1), -end, end
    low, high = min(low, 0), max(high, 0)
    scale = (high - low) / (2**bits - 1)
    first = -scale * np.round(-low / scale)
    return scale, first, first + scale * (2**bits - 1)


def square_error(values, low, high, bits, symmetric):
    scale, first, last = levels(low, high, bits, symmetric)
    return np.mean((values - np.clip(np.round(values / scale) * scale, first, last)) ** 2)


@pytest.fixture(scope="module", params=DISTRIBUTIONS)
def distribution(request):
    values = DISTRIBUTIONS[request.param](np.random.default_rng(11)).astype(F32).astype(np.float64)
    return values, calibration_of(values)


def test_percentile_is_numpys(distribution):
    values, calibration = distribution
    width = np.abs(values).max() / 1000  # at most one bin
    for percent in (90, 99, 99.9):
        rule = CalibrationRule(CalibrationMethod.PERCENTILE, percentile=percent)
        low, high = calibration.range(0, 0, rule)
        tail = (100 - percent) / 2
        symmetric = calibration.range(0, 0, rule, 8, True)
        end = max(-symmetric[0], symmetric[1])
        # Between values that lie far apart every position is right.
        for found, data, share in (
            (low, values, tail), (high, values, 100 - tail), (end, np.abs(values), percent)
        ):  # fmt: skip
            below, above = (np.percentile(data, share, method=side) for side in ("lower", "higher"))
            assert below - width <= found <= above + width


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("symmetric", [False, True])
def test_mse_is_as_good_as_an_exhaustive_search(distribution, bits, symmetric):
    values, calibration = distribution
    low, high = calibration.range(0, 0, CalibrationRule(CalibrationMethod.MSE), bits, symmetric)
    found = square_error(values, low, high, bits, symmetric)
    smallest, largest = min(values.min(), 0), max(values.max(), 0)
    shares = np.linspace(0.1, 1, 31)
    if symmetric:
        end = max(-smallest, largest)
        best = min(square_error(values, -end * s, end * s, bits, True) for s in shares)
    else:
        lows = shares if smallest < 0 else [0]
        highs = shares if largest > 0 else [0]
        best = min(square_error(values, smallest * a, largest * b, bits, False) for a in lows for b in highs)
    assert found <= best * 1.03
    assert found <= square_error(values, smallest, largest, bits, symmetric) * 1.001, "never worse than min-max"


def divergence(counts, begin, end, size):
    """The definition, without any concern for speed."""
    p = counts[begin:end].astype(np.float64)
    inside = p.copy()
    p[0] += counts[:begin].sum()
    p[-1] += counts[end:].sum()
    q = np.zeros_like(p)
    for level in range(size):
        part = slice(level * len(p) // size, (level + 1) * len(p) // size)
        filled = p[part] > 0
        q[part][filled] = inside[part].sum() / max(filled.sum(), 1)
    filled = p > 0
    p, q = p[filled] / p.sum(), q[filled] / inside.sum()
    q = q * (1 - 1e-4) + 1e-4 / filled.sum()
    return np.sum(p * np.log(p / q))


@pytest.mark.parametrize("symmetric", [False, True])
def test_kl_is_the_best_threshold_by_definition(distribution, symmetric):
    values, calibration = distribution
    width = 2.0 ** (np.floor(np.log2(np.abs(values).max())) - 10)
    data = np.abs(values) if symmetric else values
    bins = np.where(data < 0, -np.floor(-data / width) - 1, np.floor(data / width)).astype(int)
    first, last = (0 if symmetric else bins.min()), bins.max() + 1
    counts = np.bincount(bins - first, minlength=last - first)
    size = 128 if symmetric else 256
    largest = max(last, -first)
    found = {}
    for t in range(largest, 0, -max(1, largest // 256)):
        low, high = max(first, -t), min(last, t)
        if high - low <= size:
            break
        found[t] = divergence(counts, low - first, high - first, size)
    best = min(found, key=found.get) if found else largest
    low, high = calibration.range(0, 0, CalibrationRule(CalibrationMethod.KL), 8, symmetric)
    end = np.abs(values).max() if best == largest else best * width
    assert (low, high) == pytest.approx((max(values.min(), -end), min(values.max(), end)), rel=1e-6)
    assert calibration.range(0, 0, CalibrationRule(CalibrationMethod.KL), 16) == (values.min(), values.max())
