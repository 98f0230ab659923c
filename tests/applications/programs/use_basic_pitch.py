# SPDX-License-Identifier: Apache-2.0
"""basic-pitch transcribes a few notes with the model in its package."""

import sys
import tempfile

import numpy as np
from audio import write_wave
from basic_pitch import FilenameSuffix, build_icassp_2022_model_path
from basic_pitch.inference import Model, predict

with tempfile.NamedTemporaryFile(suffix=".wav") as file:
    write_wave(file.name, 22050, 4.0)
    output, midi, events = predict(file.name, Model(build_icassp_2022_model_path(FilenameSuffix.tflite)))
pitches = np.array(sorted(event[2] for event in events))
assert {60, 64, 67, 72} <= set(pitches.tolist()), pitches
np.savez(sys.argv[1], pitches=pitches, **output)
