# SPDX-License-Identifier: Apache-2.0
# A matrix times its own transpose, fetched through a session.
import numpy as np
import tensorflow as tf

matrix = np.random.default_rng(3).random((700, 900), dtype=np.float32)
product = tf.matmul(tf.constant(matrix), tf.transpose(tf.constant(matrix)))
print("shape", tuple(product.shape))
with tf.compat.v1.Session() as session:
    value = session.run(product)
    print("right:", bool(np.allclose(value, matrix @ matrix.T, rtol=1e-4)))
