# SPDX-License-Identifier: Apache-2.0
# What is asked first in every report of a bug.
import sys

import tensorflow as tf

print("versions", tf.__version__.split(".")[0].isdigit(), sys.version_info >= (3, 10))
print("result", (tf.constant([1, 2]) + tf.constant([3, 4])).numpy().tolist())
