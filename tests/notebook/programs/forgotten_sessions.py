# SPDX-License-Identifier: Apache-2.0
# Sessions that are never closed, and one that is.
import tensorflow as tf

forgotten = [tf.compat.v1.Session(graph=tf.Graph()) for _ in range(50)]
graph = tf.Graph()
with graph.as_default():
    place = tf.compat.v1.placeholder(tf.float32, [2])
    doubled = place * 2.0
with tf.compat.v1.Session(graph=graph) as session:
    print("doubled", session.run(doubled, feed_dict={place: [1.0, 2.5]}).tolist(), "with", len(forgotten), "open")
