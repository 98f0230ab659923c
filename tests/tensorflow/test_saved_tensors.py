# SPDX-License-Identifier: Apache-2.0
"""Tensors among the variables that the watch saves, and among the largest objects it names."""

import numpy as np
import pytest
import tensorflow as tf

from leadline._guard import save
from leadline._guard.largest import bytes_of


@pytest.mark.parametrize("make", [tf.ones, lambda shape: tf.Variable(tf.ones(shape))], ids=["tensor", "variable"])
def test_tensors_have_a_size(make):
    held = [make((1000, 500)), {"b": make((250, 1000))}]
    assert 3_000_000 <= bytes_of(held)[0] < 3_010_000


def test_what_holds_tensors_comes_after_small_variables(tmp_path):
    """A loop's list of tensors is what takes the memory: it must not keep everything else from being saved."""
    path = str(tmp_path / "x.saved")
    variables = {"loop": [tf.ones(1000)], "kept": {"array": np.arange(1000)}}
    assert save.save(variables, path) == ["kept", "loop"]
    assert save.Saved(path).read("loop")[0].shape == (1000,)
