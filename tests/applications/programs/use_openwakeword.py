# SPDX-License-Identifier: Apache-2.0
"""openWakeWord listens to a sound in chunks. Its own package has no models: those of pyopen-wakeword, the same files."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
from audio import notes
from openwakeword.model import Model

np.random.seed(3)  # noqa: NPY002  # it begins with noise of that generator
models = Path(importlib.util.find_spec("pyopen_wakeword").origin).parent / "models"
model = Model(
    wakeword_models=[str(models / name) for name in ("alexa.tflite", "hey_jarvis.tflite", "okay_nabu.tflite")],
    inference_framework="tflite",
    melspec_model_path=str(models / "melspectrogram.tflite"),
    embedding_model_path=str(models / "embedding_model.tflite"),
)
sound = (notes(16000, 4.0) * 32767).astype(np.int16)
scores = [model.predict(sound[start : start + 1280]) for start in range(0, sound.size - 1280, 1280)]

# The whole sound at once: the models are resized to it, and back for the next chunk.
spectrogram = model.preprocessor._get_melspectrogram(sound)
again = model.predict(sound[:1280])
np.savez(
    sys.argv[1],
    scores=np.array([[score[name] for name in sorted(score)] for score in scores], np.float32),
    spectrogram=spectrogram,
    features=model.preprocessor.get_features(16),
    again=np.array([again[name] for name in sorted(again)], np.float32),
)
