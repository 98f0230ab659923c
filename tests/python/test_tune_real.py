# SPDX-License-Identifier: Apache-2.0
"""leadline.tune on a real transformer whose int8 form is useless: few nodes in float mend it, on sounds that it was not
tuned with too."""

import time

import numpy as np

import leadline


def tones(frequencies, seed: int) -> list:
    """A second of a tone in noise each."""
    rng = np.random.default_rng(seed)
    time_axis = np.arange(16000) / 16000
    return [
        [(0.5 * np.sin(2 * np.pi * f * time_axis) + 0.01 * rng.normal(size=16000)).astype(np.float32)[None]]
        for f in frequencies
    ]


def test_few_nodes_of_a_keyword_transformer_stay_float(shared):
    model = shared / "models" / "kwt1_keyword_transformer.tflite"
    start = time.process_time()
    result = leadline.tune(model, tones(np.geomspace(100, 4000, 16), 0), "cosine", 0.98, num_threads=1, progress=False)
    took = time.process_time() - start
    assert result.reached and result.value >= 0.98
    assert len(result.kept) <= 61, "a tenth of the nodes"
    assert took <= 60
    unseen = tones(np.geomspace(130, 3700, 12), 1)
    checked = leadline.debug(model, result.content, unseen, effects=False, progress=False)
    assert min(output["accumulated"]["cosine"] for output in checked.outputs) >= 0.97
