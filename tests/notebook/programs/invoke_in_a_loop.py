# SPDX-License-Identifier: Apache-2.0
# A quantized model that keeps its float interface, run again and again on one sample.
import numpy as np
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Input((8, 8, 1)), tf.keras.layers.Flatten(), tf.keras.layers.Dense(3)])
rng = np.random.default_rng(2)
samples = [rng.random((1, 8, 8, 1), dtype=np.float32) for _ in range(10)]
converter = tf.lite.TFLiteConverter.from_keras_model(model)
converter.optimizations = [tf.lite.Optimize.DEFAULT]
converter.representative_dataset = lambda: ([sample] for sample in samples)
interpreter = tf.lite.Interpreter(model_content=converter.convert())
interpreter.allocate_tensors()
source, target = interpreter.get_input_details()[0], interpreter.get_output_details()[0]

seen = set()
for _ in range(10):
    interpreter.set_tensor(source["index"], samples[0])
    interpreter.invoke()
    seen.add(interpreter.get_tensor(target["index"]).tobytes())
expected = np.asarray(model(samples[0]))
error = np.abs(interpreter.get_tensor(target["index"]) - expected).max() / np.abs(expected).max()
print("answers:", len(seen), "error below 10 %:", bool(error < 0.1))
