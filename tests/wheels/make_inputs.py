# SPDX-License-Identifier: Apache-2.0
"""Writes what smoke.py works on: a Keras file, an int8 model, samples, labels, a folder of pictures.

usage: make_inputs.py <folder>     with a Python that has Keras and Leadline
"""

import os
import struct
import sys
import zlib
from pathlib import Path

os.environ.setdefault("KERAS_BACKEND", "jax")

import keras
import numpy as np

import leadline


def png(pixels: np.ndarray) -> bytes:
    """A PNG file of 8-bit RGB."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    height, width, _ = pixels.shape
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    keras.utils.set_random_seed(7)
    random = np.random.default_rng(7)
    layers = keras.layers
    model = keras.Sequential(
        [
            layers.Input((33, 29, 3), name="image"),
            layers.Conv2D(11, 3, strides=2, padding="same", activation="relu"),
            layers.DepthwiseConv2D(3, padding="same", activation="relu6"),
            layers.Conv2D(37, 1, activation="relu"),
            layers.MaxPooling2D(2),
            layers.Conv2D(16, 3, activation="hard_swish"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(5, activation="softmax"),
        ]
    )
    model.save(folder / "model.keras")
    samples = random.normal(size=(16, 33, 29, 3)).astype(np.float32)
    np.save(folder / "samples.npy", samples)
    np.savez_compressed(folder / "samples.npz", image=samples)
    np.save(folder / "labels.npy", np.argmax(model.predict(samples, verbose=0), axis=1))
    np.save(folder / "expected.npy", model.predict(samples, verbose=0))
    leadline.convert(folder / "model.keras", folder / "converted.tflite")
    content = leadline.quantize(
        folder / "converted.tflite",
        "int8",
        [[sample[None]] for sample in samples],
        input_type="int8",
        output_type="int8",
    )
    (folder / "int8.tflite").write_bytes(content)
    (folder / "converted.tflite").unlink()
    for name in ("cats", "dogs"):
        (folder / "pictures" / name).mkdir(parents=True, exist_ok=True)
        pixels = random.integers(0, 256, (40, 50, 3), dtype=np.uint8)
        (folder / "pictures" / name / "one.png").write_bytes(png(pixels))


if __name__ == "__main__":
    main()
