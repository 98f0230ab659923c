# SPDX-License-Identifier: Apache-2.0
# Variables with and without a scope.
import tensorflow as tf

loose = tf.Variable(tf.random.normal([300, 300]))
with tf.name_scope("inner"):
    named = tf.Variable(tf.zeros([3]), name="weights")
named.assign_add([1.0, 2.0, 3.0])
print("shapes", tuple(loose.shape), tuple(named.shape))
print("value", named.numpy().tolist())
