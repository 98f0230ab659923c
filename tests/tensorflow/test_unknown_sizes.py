# SPDX-License-Identifier: Apache-2.0
"""Models that TensorFlow converts with sizes left open: run in Leadline with the sizes that the caller says."""

import numpy as np
import pytest
import tensorflow as tf

import leadline

RNG = np.random.default_rng(18)


class Windows(tf.Module):
    """Two convolutions without padding over images of any size, and their mean."""

    def __init__(self):
        super().__init__()
        self.first = tf.constant(RNG.normal(size=(3, 3, 3, 4)).astype(np.float32))
        self.second = tf.constant(RNG.normal(size=(3, 3, 4, 2)).astype(np.float32))

    @tf.function(input_signature=[tf.TensorSpec((None, None, None, 3), tf.float32, "image")])
    def __call__(self, image):
        hidden = tf.nn.relu(tf.nn.conv2d(image, self.first, 1, "VALID"))
        return {"map": tf.nn.conv2d(hidden, self.second, 1, "VALID")}


class Rows(tf.Module):
    """Differences of neighbouring rows, reshaped by a computed shape: one row is not enough."""

    @tf.function(input_signature=[tf.TensorSpec((None, None), tf.float32, "rows")])
    def __call__(self, rows):
        count = tf.shape(rows)[0]
        differences = rows[1:] - rows[:-1]
        return {"flat": tf.reshape(differences, [(count - 1) * tf.shape(rows)[1]])}


def converted(tmp_path, module, converter):
    tf.saved_model.save(module, str(tmp_path), signatures=module.__call__)
    return converter.from_saved_model(str(tmp_path)).convert()


@pytest.mark.parametrize("converter", [tf.lite.TFLiteConverter, leadline.lite.TFLiteConverter], ids=["tf", "leadline"])
def test_images_of_any_size(tmp_path, converter):
    module = Windows()
    content = converted(tmp_path, module, converter)
    interpreter = leadline.lite.Interpreter(model_content=content)
    runner = interpreter.get_signature_runner()
    for shape in ((1, 9, 8, 3), (3, 5, 5, 3), (2, 40, 17, 3)):
        value = RNG.normal(size=shape).astype(np.float32)
        wanted = module(value)["map"].numpy()
        np.testing.assert_allclose(runner(image=value)["map"], wanted, atol=1e-3)
        (details,) = interpreter.get_input_details()
        interpreter.resize_tensor_input(details["index"], shape)
        interpreter.allocate_tensors()
        interpreter.set_tensor(details["index"], value)
        interpreter.invoke()
        np.testing.assert_allclose(
            interpreter.get_tensor(interpreter.get_output_details()[0]["index"]), wanted, atol=1e-3
        )


def test_shapes_computed_from_unknown_sizes(tmp_path):
    module = Rows()
    content = converted(tmp_path, module, tf.lite.TFLiteConverter)
    runner = leadline.lite.Interpreter(model_content=content).get_signature_runner()
    for shape in ((2, 3), (7, 1), (40, 17), (2, 3)):
        value = RNG.normal(size=shape).astype(np.float32)
        np.testing.assert_allclose(runner(rows=value)["flat"], module(value)["flat"].numpy(), atol=1e-5)
