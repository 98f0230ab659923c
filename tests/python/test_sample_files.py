# SPDX-License-Identifier: Apache-2.0
"""Samples from files on the command line and in Python: pictures, integers, and what is said about doubtful ones."""

import struct
import zlib

import numpy as np
import pytest
import test_cli
from test_cli import USAGE, leadline_json
from tflite_builder import ModelBuilder, Scalar

import leadline

F32 = np.float32
pytestmark = [
    pytest.mark.skipif(test_cli.PROGRAM is None, reason="the leadline program is not built"),
    pytest.mark.skipif(not leadline._leadline.reads_pictures(), reason="built without pictures"),
]


def png(pixels):
    """A PNG file of uint8 values [height, width, 3]."""

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def conv_model():
    builder = ModelBuilder()
    graph = builder.subgraph()
    x = graph.input("image", F32, (1, 8, 8, 3))
    rng = np.random.default_rng(1)
    weights = graph.constant("w", rng.normal(size=(2, 1, 1, 3)).astype(F32))
    bias = graph.constant("b", np.zeros(2, F32))
    options = {1: Scalar("i", 1), 2: Scalar("i", 1), 4: Scalar("i", 1), 5: Scalar("i", 1)}
    graph.output(graph.op("CONV_2D", [x, weights, bias], ("y", F32, [1, 8, 8, 2]), options=options))
    return builder.build()


@pytest.fixture
def files(tmp_path):
    """A model, 40 pictures, and the same as arrays."""
    (tmp_path / "model.tflite").write_bytes(conv_model())
    pixels = np.random.default_rng(2).integers(0, 256, (40, 8, 8, 3), dtype=np.uint8)
    (tmp_path / "pictures").mkdir()
    for number, image in enumerate(pixels):
        (tmp_path / "pictures" / f"{number:02}.png").write_bytes(png(image))
    np.save(tmp_path / "raw.npy", pixels)
    np.save(tmp_path / "scaled.npy", (pixels.astype(F32) - F32(127.5)) * F32(1 / 127.5))
    return tmp_path


def quantize(files, data, *options):
    output = files / "out.tflite"
    done = test_cli.leadline("quantize", files / "model.tflite", "-o", output, "--data", files / data, *options)
    return output.read_bytes(), done.stderr


def test_pictures_calibrate_as_their_values_do(files):
    from_pictures, said = quantize(files, "pictures", "--mean", 127.5, "--scale", 1 / 127.5)
    assert "warning" not in said
    from_arrays, said = quantize(files, "scaled.npy")
    assert "warning" not in said
    assert from_pictures == from_arrays
    plan = leadline_json("quantize", files / "model.tflite", "--data", files / "pictures", "--plan")
    assert plan


def test_raw_pixels_are_taken_and_told_of(files):
    from_bytes, said = quantize(files, "raw.npy")
    assert "warning: sample 0, input 'image': uint8 values are converted to float32" in said
    assert "as of raw pixels, but the model begins with CONV_2D" in said
    from_pictures, said = quantize(files, "pictures")
    assert "as of raw pixels" in said
    assert from_pictures == from_bytes


def test_one_sample_and_equal_samples_are_told_of(files):
    np.save(files / "one.npy", np.random.default_rng(1).normal(size=(1, 8, 8, 3)).astype(F32))
    assert "note: only 1 samples" in quantize(files, "one.npy")[1]
    np.save(files / "same.npy", np.tile(np.random.default_rng(1).normal(size=(1, 8, 8, 3)), (40, 1, 1, 1)).astype(F32))
    assert "all 40 samples of the dataset are the same" in quantize(files, "same.npy")[1]


def test_debug_takes_pictures(files):
    quantize(files, "scaled.npy")
    models = [files / "model.tflite", files / "out.tflite"]
    options = ["--mean", 127.5, "--scale", 1 / 127.5, "--samples", 5]
    from_pictures = leadline_json("debug", *models, "--data", files / "pictures", *options)
    from_arrays = leadline_json("debug", *models, "--data", files / "scaled.npy", "--samples", 5)
    assert from_pictures["samples"] == from_arrays["samples"] == 5
    assert from_pictures["outputs"] == from_arrays["outputs"]


def test_wrong_options_are_usage_errors(files):
    model, pictures = files / "model.tflite", files / "pictures"
    for options, message in [
        (["--image-size", "big"], "--image-size: expected a number like 224"),
        (["--image-size", "9"], "takes pictures of height 8, not of 9"),
        (["--mean", "1,2"], "2 mean values for pictures of 3 channels"),
        (["--colors", "red"], "unknown colors 'red'"),
        (["--resize", "cubic"], "unknown way to resize 'cubic'"),
    ]:
        done = test_cli.leadline("quantize", model, "--data", pictures, *options, expect=USAGE)
        assert message in done.stderr, options


def test_python_reads_the_same_files(files):
    import leadline.jobs.samples as samples

    model = leadline.Model.load(files / "model.tflite")
    source = samples.sample_source(files / "pictures", None, model, mean=127.5, scale=1 / 127.5)
    assert source.size == 40
    reader = leadline._leadline.SampleReader(model, source)
    for expected in np.load(files / "scaled.npy"):
        _, inputs, _ = reader.next()
        assert np.array_equal(samples.to_numpy(*inputs[0])[0], expected)
    assert reader.next() is None
