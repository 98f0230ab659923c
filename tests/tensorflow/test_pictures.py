# SPDX-License-Identifier: Apache-2.0
"""Pictures as samples: what TensorFlow decodes and resizes to, Leadline does too."""

import numpy as np
import pytest
import tensorflow as tf

import leadline
from leadline import _leadline
from leadline.jobs.samples import sample_source, to_numpy

F32 = np.float32


def image_model(height, width, channels):
    builder = leadline.ModelBuilder()
    shape = [1, height, width, channels]
    x, y = builder.input("image", F32, shape), builder.tensor("y", F32, shape)
    builder.node("NEG", [x], [y])
    builder.output(y)
    return leadline.Model.from_bytes(builder.to_tflite())


def picture(height, width):
    """Smooth colours with an edge."""
    y, x = np.mgrid[0:height, 0:width]
    image = np.stack([x * 255 / width, y * 255 / height, 255 - (x + y) * 255 / (height + width)], -1)
    image[height // 3 : height // 2] = 255 - image[height // 3 : height // 2]
    return image.astype(np.uint8)


def decode(content, kind, channels):
    """TensorFlow's default for JPEG is a faster transform that is up to 5 levels off."""
    if kind == "png":
        return tf.io.decode_png(content, channels=channels).numpy()
    return tf.io.decode_jpeg(content, channels=channels, dct_method="INTEGER_ACCURATE").numpy()


def read(path, model, **options):
    reader = _leadline.SampleReader(model, sample_source(path, None, model, **options))
    _, inputs, _ = reader.next()
    return to_numpy(*inputs[0])


@pytest.mark.parametrize("size", [(31, 45), (64, 64), (120, 80)])
@pytest.mark.parametrize("kind", ["png", "jpg", "progressive.jpg"])
def test_decoding_and_resizing_agree_with_tensorflow(kind, size, tmp_path):
    image = picture(*size)
    if kind == "png":
        content = tf.io.encode_png(image)
    else:
        content = tf.io.encode_jpeg(image, quality=90, progressive=kind.startswith("progressive"))
    path = tmp_path / f"picture.{kind}"
    path.write_bytes(content.numpy())
    plain = read(path, image_model(*size, 3))
    assert np.array_equal(plain[0], decode(content, kind, 3))
    for target in [(48, 48), (17, 90)]:
        expected = tf.image.resize(plain[0], target).numpy()
        assert np.abs(read(path, image_model(*target, 3), scale=1)[0] - expected).max() < 1e-3
    nearest = tf.image.resize(plain[0], (48, 48), method="nearest").numpy()
    assert np.array_equal(read(path, image_model(48, 48, 3), resize="nearest")[0], nearest)
    grey = decode(content, kind, 1).astype(int)
    assert np.abs(read(path, image_model(*size, 1))[0].astype(int) - grey).max() <= (2 if kind == "png" else 0)
