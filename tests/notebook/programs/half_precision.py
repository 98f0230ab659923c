# SPDX-License-Identifier: Apache-2.0
# A SavedModel becomes a file with 16-bit weights.
import tensorflow as tf

converter = tf.lite.TFLiteConverter.from_saved_model("a/saved/model")
converter.optimizations = [tf.lite.Optimize.DEFAULT]
converter.target_spec.supported_types = [tf.float16]
content = converter.convert()
with open("a/half.tflite", "wb") as file:
    print("wrote", file.write(content) > 0)
