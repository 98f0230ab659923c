# SPDX-License-Identifier: Apache-2.0
# The first GPU if there is one, else the CPU.
import tensorflow as tf

gpus = tf.config.list_physical_devices("GPU")
name = "/GPU:0" if gpus else "/CPU:0"
print("chosen", name, "of", len(tf.config.list_physical_devices()) > 0)
with tf.device(name):
    total = tf.constant([0.5, 1.5]) + tf.constant([2.0, 3.0])
    with tf.compat.v1.Session() as session:
        print("total", session.run(total).tolist())
