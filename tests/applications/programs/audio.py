# SPDX-License-Identifier: Apache-2.0
"""Sounds made on the spot, the same in every run."""

import numpy as np


def notes(rate: int, seconds: float, frequencies=(261.63, 329.63, 392.0, 523.25)) -> np.ndarray:
    """Notes one after the other, each with overtones and an envelope, in a little noise: float32 within -1 to 1."""
    time = np.arange(int(rate * seconds)) / rate
    each = seconds / len(frequencies)
    number = np.minimum((time / each).astype(int), len(frequencies) - 1)
    pitch = np.array(frequencies)[number]
    envelope = np.exp(-3 * (time - number * each))
    wave = sum(np.sin(2 * np.pi * pitch * k * time) / k for k in (1, 2, 3)) * envelope
    noise = np.random.default_rng(7).normal(0, 0.003, time.size)
    return (0.4 * wave / np.abs(wave).max() + noise).astype(np.float32)


def write_wave(path: str, rate: int, seconds: float) -> None:
    import wave

    with wave.open(path, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((notes(rate, seconds) * 32767).astype("<i2").tobytes())
