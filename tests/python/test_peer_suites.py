# SPDX-License-Identifier: Apache-2.0
"""The suites over other people's tests (tests/peers) notice what they are there to notice."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

PEERS = Path(__file__).resolve().parents[1] / "peers"


@pytest.fixture
def models(monkeypatch, tmp_path):
    """keras_hub_models without keras-hub: no tests are made."""
    monkeypatch.setenv("PEERS_FOLDER", str(tmp_path))
    monkeypatch.setattr(sys, "path", [str(PEERS), *sys.path])
    import keras_hub_models

    yield keras_hub_models
    del sys.modules["keras_hub_models"]


def runner_with(**sizes):
    details = {name: {"shape_signature": given} for name, given in sizes.items()}
    return SimpleNamespace(get_input_details=lambda: details)


@pytest.mark.parametrize("lost", [{"ids": [-1, 5]}, {"ids": [1, -1]}, {"image": [-1, 8, -1, 3]}])
def test_a_file_with_fixed_sizes_in_place_of_unknown_ones_fails(models, lost):
    kept = {"ids": [-1, -1], "image": [-1, -1, -1, 3]}
    specs = {"ids": SimpleNamespace(shape=(None, None)), "image": SimpleNamespace(shape=(None, None, None, 3))}
    models._assert_sizes_left_open(runner_with(**kept), specs)
    runner = runner_with(**(kept | lost))
    with pytest.raises(AssertionError, match=f"input {next(iter(lost))} has sizes"):
        models._assert_sizes_left_open(runner, specs)
