# SPDX-License-Identifier: Apache-2.0
"""Models for inputs of any size whose graphs hold checks of those sizes: they convert, and run at each of them."""

import numpy as np
import pytest
import tensorflow as tf
from keras_compare import assert_close

from leadline import lite


class Positions(tf.Module):
    """Embeddings with a table of positions, sliced to the length of the sequence, and a causal mask."""

    def __init__(self, rows):
        self.table = tf.Variable(tf.random.stateless_normal([rows, 4], [1, 2]))
        self.words = tf.Variable(tf.random.stateless_normal([10, 4], [3, 4]))

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32, name="ids")])
    def __call__(self, ids):
        batch, length = tf.unstack(tf.shape(ids))
        x = tf.gather(self.words, ids)
        x += tf.broadcast_to(tf.slice(self.table, [0, 0], [length, 4]), [batch, length, 4])
        heads = tf.transpose(tf.reshape(x, [batch, length, 2, 2]), [0, 2, 1, 3])
        scores = tf.matmul(heads, heads, transpose_b=True)
        row, column = tf.range(length)[:, tf.newaxis], tf.range(length)[tf.newaxis, :]
        scores += tf.where(row >= column, 0.0, -1e9)
        heads = tf.matmul(tf.nn.softmax(scores), heads)
        return tf.reshape(tf.transpose(heads, [0, 2, 1, 3]), [batch, length, 4])


def run(content: bytes, value: np.ndarray) -> list[np.ndarray]:
    runner = lite.Interpreter(model_content=content).get_signature_runner()
    (name,) = runner.get_input_details()
    return list(runner(**{name: value}).values())


@pytest.mark.parametrize("rows", [5, 64, 512])
def test_position_tables_leave_every_length_they_have(rows):
    module = Positions(rows)
    converter = lite.TFLiteConverter.from_concrete_functions([module.__call__.get_concrete_function()], module)
    content = converter.convert()
    for batch, length in ((1, 1), (2, 4), (3, rows), (1, min(rows, 33))):
        ids = np.random.default_rng(length).integers(0, 10, (batch, length)).astype(np.int32)
        assert_close(run(content, ids), [module(ids).numpy()])


def test_limits_and_branches_on_a_length_are_not_decided_when_converting():
    @tf.function(input_signature=[tf.TensorSpec([None, None], name="x")])
    def first_hundred(x):
        short = x[:, : tf.minimum(tf.shape(x)[1], 100)]
        return short * tf.where(tf.shape(x)[1] > 50, 2.0, 3.0)

    content = lite.TFLiteConverter.from_concrete_functions([first_hundred.get_concrete_function()]).convert()
    for length in (1, 7, 60, 130):
        x = np.random.default_rng(length).normal(size=(2, length)).astype(np.float32)
        assert_close(run(content, x), [first_hundred(x).numpy()])


def test_pictures_need_not_be_square():
    @tf.function(input_signature=[tf.TensorSpec([None, None, None, 3], name="x")])
    def upright(x):
        height, width = tf.shape(x)[1], tf.shape(x)[2]
        return tf.cond(height < width, lambda: tf.transpose(x, [0, 2, 1, 3]), lambda: x * 2.0)

    content = lite.TFLiteConverter.from_concrete_functions([upright.get_concrete_function()]).convert()
    for shape in ((1, 4, 4, 3), (2, 5, 3, 3), (1, 3, 6, 3)):
        x = np.random.default_rng(shape[1]).normal(size=shape).astype(np.float32)
        assert_close(run(content, x), [upright(x).numpy()])
