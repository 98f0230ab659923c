# SPDX-License-Identifier: Apache-2.0
"""Every form of a Keras model gives a file that computes what Keras does and is as small as TFLiteConverter's.

LEADLINE_LONG=1 takes all of keras.applications; bench/conversion_parity.py prints the results.
"""

import gc
import os

import conversion_forms
import keras_models
import numpy as np
import pytest
from test_soak import resident_bytes

from leadline import lite

LONG = os.environ.get("LEADLINE_LONG") == "1"
QUICK = ["classifier_28", "two_in_two_out", "convnet", "transformer", "lstm", "bidirectional_gru"]
LARGE = [*keras_models.MODELS, *keras_models.APPLICATIONS] if LONG else []


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder of a model with all its forms, made once."""
    root = tmp_path_factory.mktemp("forms")

    def make(name):
        if not (root / name / "complete").exists():
            conversion_forms.make(name, root / name)
        return root / name

    return make


@pytest.mark.parametrize("form", conversion_forms.FORMS)
@pytest.mark.parametrize("name", dict.fromkeys([*QUICK, *LARGE]))
def test_form_computes_what_keras_does_in_no_more_nodes(name, form, made, litert):
    folder = made(name)
    source, reference = conversion_forms.FORMS[form]
    content = conversion_forms.convert(form, folder / source)
    known = np.load(folder / f"{reference}.npz")
    assert conversion_forms.distance(litert, content, known) < 1e-4
    assert conversion_forms.distance(lite.Interpreter, content, known) < 1e-4
    theirs = folder / f"{reference}.tflite"
    if theirs.exists():  # their converter refuses recurrent layers with batches of any size
        size, operators = conversion_forms.describe(content)
        their_size, their_operators = conversion_forms.describe(theirs.read_bytes())
        assert size <= 1.02 * their_size
        assert operators.total() <= 1.02 * their_operators.total(), f"{operators - their_operators}"


@pytest.mark.parametrize("form", conversion_forms.FORMS)
def test_a_hundred_conversions_leave_memory_flat(form, made):
    source, _ = conversion_forms.FORMS[form]
    path = made("convnet") / source
    rounds = 100 if LONG or form != "live" else 10  # Keras takes its time to load and save
    for _ in range(5):
        conversion_forms.convert(form, path)
    gc.collect()
    before = resident_bytes()
    for _ in range(rounds):
        conversion_forms.convert(form, path)
    gc.collect()
    growth = resident_bytes() - before
    assert growth < (16 << 20 if form == "live" else 2 << 20), f"grew by {growth} bytes in {rounds} rounds"
