# SPDX-License-Identifier: Apache-2.0
"""Custom ops that LiteRT has too: audio, MediaPipe's pooling and convolution, NumericVerify, Hadamard rotation."""

from __future__ import annotations

import struct

import numpy as np
from flexbuffer import flexbuffer
from harness import SAME, VALID, Case, Data, constant, given, result

# The struct of MediaPipe's ops: TfLitePadding begins at 1.
_PADDING = {SAME: 1, VALID: 2}


def cases():
    yield from _audio()
    yield from _numeric_verify()
    yield from _hadamard()
    yield from _transpose_conv()
    yield from _argmax_pool()


def _audio():
    for samples, channels in [(100, 1), (17, 2), (64, 3)]:
        for window, stride in [(8, 4), (16, 16), (5, 3), (30, 7)]:
            for squared in (False, True):
                name = f"{samples}x{channels} window {window} stride {stride} squared {squared}"
                options = flexbuffer(window_size=window, stride=stride, magnitude_squared=squared)
                if window > samples:
                    continue
                sound = given(Data(name).floats((samples, channels), -1, 1))
                yield Case("AudioSpectrogram", name, [sound], [result(np.float32)], custom_options=options)
    for bins, channels, coefficients in [(33, 20, 13), (65, 10, 10), (129, 40, 20)]:
        for batch, frames in [(1, 1), (2, 5)]:
            name = f"{batch}x{frames}x{bins} to {channels}, {coefficients}"
            options = flexbuffer(
                upper_frequency_limit=4000, lower_frequency_limit=20, filterbank_channel_count=channels,
                dct_coefficient_count=coefficients,
            )  # fmt: skip
            spectrum = given(Data(name).floats((batch, frames, bins), 0, 5))
            inputs = [spectrum, constant(np.array([8000], np.int32))]
            yield Case("Mfcc", name, inputs, [result(np.float32)], custom_options=options)


def _numeric_verify():
    for dtype, scale, zero in [(np.int8, 0.1, 3), (np.uint8, 0.02, 128), (np.int16, 0.001, 0)]:
        for shape in [(7,), (2, 3, 4)]:
            name = f"{np.dtype(dtype)} {shape}"
            data = Data(name)
            inputs = [given(data.ints(dtype, shape), scale, zero), given(data.floats(shape))]
            options = flexbuffer(tolerance=5.0, log_if_failed=False)
            yield Case("NumericVerify", name, inputs, [result(np.float32)], custom_options=options)


def _hadamard():
    for shape, size in [((2, 8), 8), ((3, 12), 4), ((1, 2, 16), 16), ((2, 3, 6), 2), ((4, 32), 16)]:
        value = given(Data(f"{shape}").floats(shape))
        options = flexbuffer(hadamard_size=size)
        output = result(np.float32, shape=shape)
        yield Case("aeq.hadamard_rotation", f"{shape} by {size}", [value], [output], custom_options=options)


def _transpose_conv():
    for shape, kernel, channels in [((1, 4, 5, 3), (2, 2), 2), ((2, 3, 3, 1), (3, 3), 4), ((1, 1, 2, 5), (4, 3), 1)]:
        for stride in (1, 2):
            for padding in (SAME, VALID):
                name = f"{shape} {kernel} to {channels} stride {stride} padding {padding}"
                data = Data(name)
                weights = constant(data.floats((channels, *kernel, shape[3])))
                inputs = [given(data.floats(shape)), weights, constant(data.floats((channels,)))]
                options = struct.pack("<3i", _PADDING[padding], stride, stride)
                grown = [
                    n * stride if padding == SAME else (n - 1) * stride + k
                    for n, k in zip(shape[1:3], kernel, strict=True)
                ]
                output = result(np.float32, shape=[shape[0], *grown, channels])
                yield Case("Convolution2DTransposeBias", name, inputs, [output], custom_options=options)


def _argmax_pool():
    for shape, window in [((1, 4, 6, 2), (2, 2)), ((2, 6, 6, 1), (2, 3)), ((1, 8, 4, 3), (4, 2))]:
        for padding in (SAME, VALID):
            height, width = window
            options = struct.pack("<6i", _PADDING[padding], width, height, width, height, 0)
            value = Data(f"{shape}").floats(shape)
            pooled = (shape[0], shape[1] // height, shape[2] // width, shape[3])
            yield Case(
                "MaxPoolingWithArgmax2D", f"{shape} by {window} padding {padding}", [given(value)],
                [result(np.float32, shape=pooled), result(np.float32, shape=pooled)], custom_options=options, litert="wrong",
                because="the places are integers put into a float tensor bit by bit; MediaPipe's are floats",
                reference=lambda x, h=height, w=width: _pooled(x, h, w),
            )  # fmt: skip


def _pooled(x: np.ndarray, height: int, width: int) -> list[np.ndarray]:
    """Largest values and their places in the window; windows do not overlap and fill the image."""
    n, h, w, c = x.shape
    windows = x.reshape(n, h // height, height, w // width, width, c).transpose(0, 1, 3, 5, 2, 4)
    flat = windows.reshape(*windows.shape[:4], -1)
    # MediaPipe adds 0.1, so that rounding down is safe.
    return [flat.max(-1), flat.argmax(-1).astype(np.float32) + np.float32(0.1)]
