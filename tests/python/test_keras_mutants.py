# SPDX-License-Identifier: Apache-2.0
"""Configurations with something wrong in them are refused with an error, in no time, and never kill the process."""

import json
import random
import time
import zipfile

import pytest

pytest.importorskip("keras", reason="keras is not installed")

import keras_layer_cases
import keras_op_cases

import leadline
from leadline import lite

MODELS = [
    "Conv2D-groups", "Conv2DTranspose-dilated", "ConvLSTM2D-state", "LSTM-sequences", "StackedRNNCells-state",
    "Bidirectional-mask", "MultiHeadAttention-mask", "Attention-concat_scaled", "EinsumDense-merge", "Dot-rank4",
    "AdaptiveMaxPooling2D-mixed", "MelSpectrogram-plain", "STFTSpectrogram-psd", "GroupNormalization-groups",
    "TimeDistributed-model", "Resizing-crop", "Discretization-one_hot", "LayerNormalization-apart",
    "take_along_axis", "pad", "repeat", "roll", "einsum", "tensordot-axes", "get_item", "segment_sum", "top_k", "reshape",
]  # fmt: skip
ODD = [None, -1, 0, 1, 7, 2**20, 2**31, 2**62, -(2**63), 1e300, 0.5, "", "x", "same", [], {}, [[1]], [-1], [2**40, 2], True,
       [None], {"class_name": "__keras_tensor__"}, ["in0", 0, 0]]  # fmt: skip
LONGEST = 2.0  # seconds


def places(value, path=()):
    """Every place in a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from places(item, (*path, key))


def mutant(document, rng: random.Random):
    copy = json.loads(json.dumps(document))
    for _ in range(rng.choice((1, 1, 2))):
        every = list(places(copy))
        path = rng.choice(every)
        parent = copy
        for key in path[:-1]:
            parent = parent[key]
        what = rng.random()
        if what < 0.15:
            del parent[path[-1]]
        elif what < 0.3:  # something from elsewhere in the document
            other = copy
            for key in rng.choice(every):
                other = other[key] if not (isinstance(other, list) and key >= len(other)) else other
                if not isinstance(other, (dict, list)):
                    break
            parent[path[-1]] = json.loads(json.dumps(other))
        else:
            parent[path[-1]] = rng.choice(ODD)
    return copy


@pytest.mark.parametrize("name", MODELS)
def test_mutants_are_refused_or_converted(name, tmp_path, long_run):
    case = next(c for c in [*keras_layer_cases.CASES, *keras_op_cases.CASES] if c.id == name)
    path = tmp_path / "model.keras"
    case.model().save(path)
    with zipfile.ZipFile(path) as archive:
        entries = {entry: archive.read(entry) for entry in archive.namelist()}
    document = json.loads(entries["config.json"])
    rng = random.Random(name)
    for number in range(400 if long_run else 20):
        entries["config.json"] = json.dumps(mutant(document, rng)).encode()
        with zipfile.ZipFile(path, "w") as archive:
            for entry, data in entries.items():
                archive.writestr(entry, data)
        started = time.process_time()
        try:
            lite.TFLiteConverter.from_keras_file(path, budget=leadline.Budget(256 << 20)).convert()
        except leadline.Error:
            pass
        except BaseException as error:
            raise AssertionError(f"mutant {number}: {error!r}\n{entries['config.json'][:2000]!r}") from error
        assert time.process_time() - started < LONGEST, f"mutant {number}: {entries['config.json'][:2000]!r}"
