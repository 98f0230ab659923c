# SPDX-License-Identifier: Apache-2.0
"""`leadline bench`: what it measures, and what it says about engines that are missing or die."""

import importlib.util
import json
import subprocess
import sys

import pytest
import sample_models
from test_cli import BAD_MODEL, IO, OK, PROGRAM, USAGE, leadline, leadline_json

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="the leadline program is not built")


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.tflite"
    path.write_bytes(sample_models.dense())
    return path


@pytest.fixture
def fake_python(tmp_path):
    """A program in Python's place that answers with the given lines."""

    def make(*lines):
        path = tmp_path / "python"
        text = "\n".join(f"echo '{line}'; read request || exit 3" for line in lines)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path

    return make


def start_line(**more):
    return json.dumps({"engine": "litert", "version": "9", "first_ms": 5.0, "peak_bytes": 7, **more})


def test_times_and_memory_of_leadline_alone(model):
    result = leadline_json("bench", model, "--threads", "1", "--rounds", "3", "--round-ms", "1")
    assert result["threads"] == 1
    (engine,) = result["engines"]
    assert engine["engine"] == "leadline"
    assert 0 < engine["fastest_ms"] <= engine["median_ms"] <= engine["p95_ms"]
    assert engine["runs"] >= 6
    assert engine["first_ms"] > 0
    assert engine["peak_resident_bytes"] >= result["planned_peak_bytes"]


def test_profile_tells_the_products_of_each_node(model):
    nodes = leadline_json("bench", model, "--rounds", "1", "--round-ms", "1", "--profile")["profile"]["nodes"]
    dense = [node for node in nodes if node["op"] == "FULLY_CONNECTED"]
    assert dense
    for node in dense:  # "[rows, in] x [out, in] -> [rows, out]"
        _, weights, result = (json.loads(shape) for part in node["shapes"].split(" -> ") for shape in part.split(" x "))
        assert node["macs"] == result[0] * weights[0] * weights[1]
    text = leadline("bench", model, "--rounds", "1", "--round-ms", "1", "--profile").stdout
    assert "GMAC/s" in text


@pytest.mark.skipif(importlib.util.find_spec("ai_edge_litert") is None, reason="ai-edge-litert is not installed")
def test_a_peer_runs_in_turns_and_gives_the_same_outputs(model):
    result = leadline_json(
        "bench", model, "--against", "litert", "--python", sys.executable, "--rounds", "2", "--round-ms", "1"
    )
    ours, theirs = result["engines"]
    assert theirs["engine"] == "litert"
    assert theirs["runs"] == ours["runs"]
    assert theirs["times_as_fast"] == pytest.approx(theirs["fastest_ms"] / ours["fastest_ms"])
    assert theirs["difference"] < 1e-5


def test_a_missing_engine_is_named_with_the_command_that_installs_it(model, fake_python):
    python = fake_python('{"error": "No module named ai_edge_litert", "missing": true}')
    message = leadline("bench", model, "--against", "litert", "--python", python, expect=BAD_MODEL).stderr
    assert f"{python} -m pip install ai-edge-litert==" in message


def test_no_python_is_an_error_that_says_what_to_do(model, tmp_path):
    message = leadline("bench", model, "--against", "openvino", "--python", tmp_path / "none", expect=IO).stderr
    assert "--python" in message


def test_an_engine_that_cannot_run_the_model_does_not_stop_the_others(model, fake_python):
    python = fake_python('{"error": "RuntimeError: no such op"}')
    ours, theirs = leadline_json("bench", model, "--against", "litert", "--python", python, "--round-ms", "1")[
        "engines"
    ]
    assert ours["runs"] > 0
    assert theirs["error"] == "RuntimeError: no such op"


def test_an_engine_that_dies_before_its_first_answer_is_reported(model, tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nkill -9 $$\n")
    python.chmod(0o755)
    theirs = leadline_json("bench", model, "--against", "litert", "--python", python, "--round-ms", "1")["engines"][1]
    assert "signal 9" in theirs["error"]


def test_an_engine_that_dies_later_is_an_error(model, fake_python):
    python = fake_python(start_line())
    result = subprocess.run(
        [PROGRAM, "bench", str(model), "--against", "litert", "--python", str(python)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert result.returncode == 1
    assert "litert: the process ended" in result.stderr


def test_unknown_engines_and_bad_counts_are_refused(model):
    for arguments in (["--against", "tvm"], ["--rounds", "0"], ["--round-ms", "0"]):
        leadline("bench", model, *arguments, expect=USAGE)
    assert leadline("bench", "--help", expect=OK).stdout
