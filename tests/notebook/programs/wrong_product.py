# SPDX-License-Identifier: Apache-2.0
# A product of stacks of matrices whose inner sizes do not match.
import numpy as np
import tensorflow as tf

stack = np.ones((400, 300, 3), np.float32)
print("before")
product = tf.matmul(tf.constant(stack), tf.constant(stack))
print("after", product.shape)
