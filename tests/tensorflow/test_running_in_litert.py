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
