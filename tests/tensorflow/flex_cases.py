# SPDX-License-Identifier: Apache-2.0
"""The table of functions whose ops become Flex ops, and the values they are given. A case is a function and its inputs;
flex_number_cases.py and flex_tensor_cases.py fill the table."""

import numpy as np

RNG = np.random.default_rng(7)
CASES = {}
# Ops that the converter takes for Flex ops only when they are named.
SELECTED = {}
# Loops stay builtin ops, and with them what is around them.
WITH_LOOPS = set()


def case(name, function, *inputs, selected=()):
    assert name not in CASES, name
    CASES[name] = (function, [np.asarray(array) for array in inputs])
    if selected:
        SELECTED[name] = list(selected)


def normal(*shape, dtype="float32"):
    return RNG.normal(size=shape).astype(dtype)


def unit(*shape, dtype="float32"):
    return RNG.uniform(-0.95, 0.95, size=shape).astype(dtype)


def positive(*shape, dtype="float32"):
    return RNG.uniform(0.1, 4, size=shape).astype(dtype)


def whole(low, high, *shape, dtype="int32"):
    return RNG.integers(low, high, size=shape).astype(dtype)


def complex_numbers(*shape, dtype="complex64"):
    return (RNG.normal(size=shape) + 1j * RNG.normal(size=shape)).astype(dtype)
