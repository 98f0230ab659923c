# SPDX-License-Identifier: Apache-2.0
# Shapes that cannot be added, and a program that is ready for it.
import tensorflow as tf

try:
    print(tf.add(tf.zeros([4, 5]), tf.zeros([6, 7])))
except tf.errors.InvalidArgumentError as error:
    print("caught:", error)
