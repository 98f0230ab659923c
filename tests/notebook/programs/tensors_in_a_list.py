# SPDX-License-Identifier: Apache-2.0
# A list that only grows, and a session that fetches each of its tensors.
import numpy as np
import tensorflow as tf

kept = [tf.constant(np.full((50, 50), i, np.float64)) for i in range(500)]
print("kept", len(kept))
with tf.compat.v1.Session() as session:
    print("sum", sum(float(session.run(tensor)[0, 0]) for tensor in kept))
