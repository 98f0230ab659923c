# SPDX-License-Identifier: Apache-2.0
"""What LiteRT has no kernel for is written in ops that it has: converted files run there, too."""

import numpy as np
import pytest
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter

from leadline import lite

INTERPRETERS = {"leadline": lite.Interpreter, "litert": Interpreter}


@pytest.mark.parametrize("engine", INTERPRETERS)
def test_integers_of_64_bits(engine):
    """Relative positions in attention are sizes and signs of differences of such numbers."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64, name="x")])
    def distances(x):
        far = x[:, tf.newaxis] - x
        return tf.abs(far), tf.sign(far), tf.math.squared_difference(x[:, tf.newaxis], x)

    content = lite.TFLiteConverter.from_concrete_functions([distances.get_concrete_function()], tf.Module()).convert()
    runner = INTERPRETERS[engine](model_content=content).get_signature_runner()
    for x in (np.array([-3, 0, 7], np.int64), np.array([2**40, -(2**40)], np.int64)):
        results = runner(x=x)
        for name, wanted in zip(sorted(results), distances(x), strict=True):
            np.testing.assert_array_equal(results[name], wanted.numpy())


@pytest.mark.parametrize("engine", INTERPRETERS)
def test_zeros_like_integers_are_floats(engine):
    """Masked recurrent layers ask for zeros in the shape of something that becomes integers."""
    weights = tf.constant(np.random.default_rng(1).normal(size=(4, 3)).astype(np.float32))

    @tf.function(input_signature=[tf.TensorSpec([None, 4], name="x")])
    def doubled(x):
        y = tf.nn.relu(x @ weights)
        return tf.concat([y, tf.zeros_like(y)], axis=-1)

    converter = lite.TFLiteConverter.from_concrete_functions([doubled.get_concrete_function()], tf.Module())
    x = np.random.default_rng(2).normal(size=(5, 4)).astype(np.float32)
    converter.optimizations = [lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: [[x]]
    runner = INTERPRETERS[engine](model_content=converter.convert()).get_signature_runner()
    for part in (x, x[:2]):
        (made,) = runner(x=part).values()
        np.testing.assert_allclose(made, doubled(part).numpy(), atol=0.05)
