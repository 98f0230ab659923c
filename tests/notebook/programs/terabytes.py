# SPDX-License-Identifier: Apache-2.0
# A graph that asks for far more than any machine has.
import tensorflow as tf

with tf.Graph().as_default():
    huge = tf.random.uniform([20000, 20000, 5000])
    with tf.compat.v1.Session() as session:
        print(session.run(huge * 2.0))
