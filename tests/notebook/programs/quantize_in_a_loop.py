# SPDX-License-Identifier: Apache-2.0
# Full integer quantization, again and again, with an interpreter each time.
import numpy as np
import tensorflow as tf

model = tf.keras.Sequential(
    [
        tf.keras.layers.Input((16, 16, 3)),
        tf.keras.layers.Conv2D(8, 3, activation="relu"),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(4, activation="softmax"),
    ]
)
rng = np.random.default_rng(1)
samples = [rng.random((1, 16, 16, 3), dtype=np.float32) for _ in range(20)]

for turn in range(3):
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: ([sample] for sample in samples)
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = tf.int8
    converter.inference_output_type = tf.int8
    interpreter = tf.lite.Interpreter(model_content=converter.convert())
    interpreter.allocate_tensors()
    print("turn", turn, "takes", interpreter.get_input_details()[0]["dtype"].__name__)
