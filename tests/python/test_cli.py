# SPDX-License-Identifier: Apache-2.0
"""The `leadline` program: results, JSON, files, exit codes, messages."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sample_models
from tflite_builder import ModelBuilder

ROOT = Path(__file__).parents[2]
OK, RUNTIME, USAGE, BAD_MODEL, OVER_BUDGET, IO = range(6)


def find_program():
    """LEADLINE_PROGRAM, the one beside this Python, .venv's, or the one on PATH."""
    places = [os.environ.get("LEADLINE_PROGRAM"), Path(sys.executable).parent / "leadline", ROOT / ".venv/bin/leadline"]
    for place in places:
        if place and os.access(place, os.X_OK):
            return str(place)
    return shutil.which("leadline")


PROGRAM = find_program()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="the leadline program is not built")


def leadline(*arguments, expect=OK, env=None):
    result = subprocess.run(
        [PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, **(env or {})},
    )  # fmt: skip
    assert result.returncode == expect, result.stdout + result.stderr
    if expect not in (OK, USAGE):
        assert result.stderr.startswith("error: ")
    return result


def leadline_json(*arguments, **options):
    return json.loads(leadline(*arguments, "--json", **options).stdout)


@pytest.fixture
def model(tmp_path):
    """Writes a model's bytes to a file and returns its path."""

    def write(content, name="model.tflite"):
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return write


def test_version_and_help():
    assert leadline("--version").stdout.startswith("leadline ")
    top = leadline("--help").stdout
    assert "Exit codes:" in top
    for command in ("inspect", "plan", "run", "ops"):
        assert command in top
        text = leadline(command, "--help").stdout
        assert "Examples:" in text
        assert leadline("help", command).stdout == text


def test_wrong_use_says_what_and_exits_with_2(model):
    path = model(sample_models.add())
    assert "usage" in leadline(expect=USAGE).stderr.lower()
    assert leadline("run", expect=USAGE).stderr.startswith("error: ")
    assert "--nonsense" in leadline("plan", path, "--nonsense", expect=USAGE).stderr
    assert "lots" in leadline("plan", path, "--memory", "lots", expect=USAGE).stderr
    assert "threads" in leadline("run", path, "--threads", "0", expect=USAGE).stderr
    assert leadline_json("run", path, "--threads", "0", expect=USAGE)["error"]["exit_code"] == USAGE
    refused = leadline("quantize", path, "--samples", "x.npy", expect=USAGE).stderr
    assert "--samples: expected a number of at least 0, got 'x.npy'" in refused
    refused = leadline("run", path, "--runs", "0", expect=USAGE).stderr
    assert "--runs: expected a whole number from 1 to 1000000, got '0'" in refused
    assert leadline_json("run", path, "--nonsense", expect=USAGE)["error"]["kind"] == "usage"


def test_inspect(model):
    path = model(sample_models.two_inputs())
    text = leadline("inspect", path).stdout
    assert "'both'" in text and "ADD" in text and "[2, 3]" in text
    assert "Nodes" not in text
    assert "Nodes" in leadline("inspect", path, "--nodes").stdout
    data = leadline_json("inspect", path, "--nodes", "--tensors")
    assert data["file_bytes"] == path.stat().st_size
    assert data["ops"] == {"ADD": 1, "MUL": 1}
    assert [t["name"] for t in data["subgraphs"][0]["inputs"]] == ["a", "b"]
    assert len(data["subgraphs"][0]["tensors"]) == 4
    assert data["subgraphs"][0]["nodes"][1]["op"] == "MUL"
    assert data["signatures"][0]["key"] == "both"


def test_control_characters_of_names_do_not_reach_the_terminal(model):
    builder = ModelBuilder()
    graph = builder.subgraph()
    x = graph.input("x\x1b[2J\x07", np.float32, [4])
    graph.output(graph.op("EXP", [x], ("y\x1b]0;title\x07\n", np.float32, [4])))
    path = model(builder.build())
    for arguments in (["inspect", "--tensors", "--nodes"], ["plan"], ["run", "--profile"]):
        text = leadline(arguments[0], path, *arguments[1:]).stdout
        assert "\\x1b" in text
        assert not any(ord(c) < 32 and c != "\n" for c in text)
    error = leadline("run", path, "--input", "no=x.npy", expect=USAGE).stderr
    assert "\\x1b" in error and "\x1b" not in error
    assert leadline_json("inspect", path)["subgraphs"][0]["inputs"][0]["name"] == "x\x1b[2J\x07"


def test_plan(model, tmp_path):
    path = model(sample_models.chain())
    page = tmp_path / "plan.html"
    text = leadline("plan", path, "--html", page).stdout
    assert "Peak " in text and "lower bound" in text
    assert page.read_text().startswith("<!DOCTYPE html>")
    data = leadline_json("plan", path, "--threads", 1)
    assert data["complete"] is True
    assert sum(data["categories"].values()) == data["peak_bytes"]
    assert len(data["steps"]) == 4
    assert data["arena_bytes"] >= data["lower_bound_bytes"]


def test_plan_for_another_shape_by_name_and_by_position(model):
    path = model(sample_models.add())
    assert leadline_json("plan", path)["tensors"][0]["shape"] == [1, 4]
    for name in ("x", "0"):
        data = leadline_json("plan", path, "--shape", f"{name}=100,4")
        assert data["tensors"][0]["shape"] == [100, 4]
    assert "'x'" in leadline("plan", path, "--shape", "z=1,4", expect=USAGE).stderr
    assert "sizes" in leadline("plan", path, "--shape", "x=1,a", expect=USAGE).stderr
    leadline("plan", path, "--shape", "x=1,-4", expect=USAGE)
    assert "ADD" in leadline("plan", path, "--shape", "x=1,7", expect=USAGE).stderr
    both = model(sample_models.two_inputs())
    assert leadline_json("plan", both, "--shape", "a=4,3", "--shape", "b=4,3")["tensors"][1]["shape"] == [4, 3]


def test_sizes_are_in_the_units_of_the_limit(model, tmp_path):
    path = model(sample_models.chain(size=100_000))
    for command in ("plan", "run"):
        assert " MB" in (text := leadline(command, path, "--memory", "900MB").stdout) and "iB" not in text
        assert " MiB" in (text := leadline(command, path, "--memory", "900M").stdout) and not re.search(
            r"\d [KMG]B", text
        )
        text = leadline(command, path, "--memory", "10KB", expect=OVER_BUDGET).stderr
        assert re.search(r"(the budget is|--memory allows) 10 KB", text) and "iB" not in text, text
    text = leadline("run", path, expect=OVER_BUDGET, env={"LEADLINE_MEMORY": "10KB"}).stderr
    assert "the budget is 10 KB" in text and "iB" not in text, text
    weights = model(sample_models.dense())
    text = leadline("inspect", weights, env={"LEADLINE_MEMORY": "900MB"}).stdout
    assert re.search(r"\d [KM]B \(", text) and "iB" not in text, text
    assert "iB" in leadline("inspect", weights, env={"LEADLINE_MEMORY": "900MiB"}).stdout
    path = model(sample_models.chain(size=100_000))
    leadline("plan", path, "--memory", "900MB", "--html", tmp_path / "plan.html")
    page = (tmp_path / "plan.html").read_text()
    assert '"units":"decimal"' in page and " MB" in page and not re.search(r"\d [KMG]iB", page)


def test_plan_over_the_limit_is_refused_with_the_numbers(model):
    path = model(sample_models.chain(size=100_000))
    need = leadline_json("plan", path, "--threads", 1)["peak_bytes"]
    leadline("plan", path, "--threads", 1, "--memory", need)
    error = leadline_json("plan", path, "--threads", 1, "--memory", need - 1, expect=OVER_BUDGET)["error"]
    assert error["needed_bytes"] == need
    assert error["limit_bytes"] == need - 1


def test_run_over_the_limit_is_refused(model):
    path = model(sample_models.chain(size=100_000))
    need = leadline_json("plan", path, "--threads", 1)["peak_bytes"]
    done = leadline_json("run", path, "--threads", 1, "--memory", need)
    assert done["counted_peak_bytes"] == done["planned_peak_bytes"] == need
    error = leadline_json("run", path, "--threads", 1, "--memory", need - 1, expect=OVER_BUDGET)["error"]
    assert error["kind"] == "budget"
    leadline("run", path, expect=OVER_BUDGET, env={"LEADLINE_MEMORY": "1000"})


def test_files_in_and_out(model, tmp_path):
    path = model(sample_models.two_inputs())
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 2, 3)).astype(np.float32)
    out = tmp_path / "out.npz"

    def check(*arguments):
        out.unlink(missing_ok=True)
        leadline("run", path, *arguments, "--output", out)
        with np.load(out) as result:
            assert sorted(result.files) == ["p", "s"]
            np.testing.assert_array_equal(result["s"], a + b)
            np.testing.assert_array_equal(result["p"], a * b)

    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", np.asfortranarray(b))
    check("--input", f"a={tmp_path / 'a.npy'}", "--input", f"b={tmp_path / 'b.npy'}")
    check("--input", f"0={tmp_path / 'a.npy'}", "--input", f"1={tmp_path / 'b.npy'}")
    np.savez(tmp_path / "stored.npz", a=a, b=b)
    check("--input", tmp_path / "stored.npz")
    np.savez_compressed(tmp_path / "packed.npz", b=np.asfortranarray(b), a=a)
    check("--input", tmp_path / "packed.npz")
    np.savez(tmp_path / "unnamed.npz", a, b)
    check("--input", tmp_path / "unnamed.npz")


def test_one_array_in_one_out(model, tmp_path):
    path = model(sample_models.add())
    x = np.ones((3, 4), np.float32)  # the model leaves the first size open
    np.save(tmp_path / "x.npy", x)
    leadline("run", path, "--input", tmp_path / "x.npy", "--output", tmp_path / "y.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), x + np.arange(4, dtype=np.float32))


def test_strings(model, tmp_path):
    path = model(sample_models.strings())
    indices = np.array([2, 0], np.int32)
    for words in (np.array([b"deep", b"", b"water"]), np.array(["deep", "", "wäßer"])):
        np.savez(tmp_path / "in.npz", words=words, indices=indices)
        data = leadline_json("run", path, "--input", tmp_path / "in.npz", "--output", tmp_path / "out.npy")
        expected = [w if isinstance(w, bytes) else w.encode() for w in words[indices].tolist()]
        assert np.load(tmp_path / "out.npy").tolist() == expected
        assert data["outputs"][0]["strings"] == [w.decode() for w in expected]
    assert leadline_json("run", path)["inputs"][0]["dtype"] == "string"


def test_inputs_that_do_not_fit(model, tmp_path):
    path = model(sample_models.two_inputs())
    good, wide, wrong = tmp_path / "good.npy", tmp_path / "wide.npy", tmp_path / "wrong.npy"
    np.save(good, np.zeros((2, 3), np.float32))
    np.save(wide, np.zeros((2, 4), np.float32))
    np.save(wrong, np.zeros((2, 3)))
    message = leadline("run", path, "--input", f"a={wrong}", expect=USAGE).stderr
    assert "float32" in message and "float64" in message and "'a'" in message
    message = leadline("run", path, "--input", f"a={wide}", expect=USAGE).stderr
    assert "[2, 3]" in message and "[2, 4]" in message
    assert "'b'" in leadline("run", path, "--input", f"a={good}", expect=USAGE).stderr
    leadline("run", path, "--input", f"a={good}", "--random")
    assert "2 inputs" in leadline("run", path, "--input", good, expect=USAGE).stderr
    leadline("run", path, "--input", f"a={good}", "--input", f"a={good}", expect=USAGE)


def test_files_that_cannot_be_read_or_written(model, tmp_path):
    path = model(sample_models.add())
    leadline("run", path, "--input", f"x={tmp_path / 'missing.npy'}", expect=IO)
    (tmp_path / "text.npy").write_text("not an array")
    leadline("run", path, "--input", f"x={tmp_path / 'text.npy'}", expect=IO)
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    assert "pickled" in leadline("run", path, "--input", tmp_path / "objects.npy", expect=IO).stderr
    np.savez(tmp_path / "cut.npz", x=np.zeros((1, 4), np.float32))
    (tmp_path / "cut.npz").write_bytes((tmp_path / "cut.npz").read_bytes()[:-30])
    leadline("run", path, "--input", tmp_path / "cut.npz", expect=IO)
    leadline("run", path, "--output", tmp_path / "no/such/folder/out.npz", expect=IO)
    leadline("plan", path, "--html", tmp_path / "no/such/folder/plan.html", expect=IO)
    assert leadline_json("inspect", tmp_path / "missing.tflite", expect=IO)["error"]["kind"] == "io"


@pytest.mark.parametrize("command", ["inspect", "plan", "run"])
def test_models_that_cannot_be_used(model, command):
    content = sample_models.dense()
    for size in (3, 20, 1000, len(content) // 2, len(content) - 1):
        error = leadline_json(command, model(content[:size]), expect=BAD_MODEL)["error"]
        assert error["kind"] == "invalid_model", size
    leadline(command, model(b"x" * 1000), expect=BAD_MODEL)


def test_unknown_op_is_named(model):
    message = leadline("run", model(sample_models.custom()), expect=BAD_MODEL).stderr
    assert "NobodyKnowsThisOp" in message
    assert "register_op" in message and "from Python or C++ only" in message


def test_flex_ops_are_listed_and_planned_around(model):
    builder = ModelBuilder()
    graph = builder.subgraph()
    x = graph.input("x", np.float32, [4])
    y = graph.op("FlexDecodeJpeg", [x], ("y", np.float32, [4]))
    graph.output(graph.op("FlexSentencepieceOp", [y], ("z", np.float32, [4])))
    path = model(builder.build())
    text = leadline("inspect", path).stdout
    assert "cannot run" in text and "TensorFlow's op DecodeJpeg" in text
    missing = leadline_json("inspect", path)["missing_ops"]
    assert [(op["name"], op["kind"], op["nodes"]) for op in missing] == [
        ("FlexDecodeJpeg", "flex", 1),
        ("FlexSentencepieceOp", "flex", 1),
    ]
    assert "Planned without FlexDecodeJpeg, FlexSentencepieceOp" in leadline("plan", path).stdout
    plan = leadline_json("plan", path)
    assert plan["missing_ops"] == ["FlexDecodeJpeg", "FlexSentencepieceOp"] and len(plan["steps"]) == 2
    message = leadline("run", path, expect=BAD_MODEL).stderr
    for part in (
        "'FlexDecodeJpeg', 'FlexSentencepieceOp'",
        "TFLITE_BUILTINS",
        "TensorFlow's op DecodeJpeg",
        "first at FlexDecodeJpeg #0 'y'",
        "from Python or C++ only",
    ):
        assert part in message


def test_ops():
    text = leadline("ops").stdout
    assert "CONV_2D" in text and "Ops that do not run" in text
    ops = {op["name"]: op for op in leadline_json("ops")["ops"]}
    assert ops["CONV_2D"]["runs"] and ops["CONV_2D"]["code"] == 3 and "i8" in ops["CONV_2D"]["fast"]
    assert "never executable" in ops["CONCAT_EMBEDDINGS"]["reason"]
    assert leadline("ops", "--markdown").stdout.startswith("# Ops")
    leadline("ops", "--markdown", "--json", expect=USAGE)


def test_random_inputs_depend_on_the_seed_alone(model, tmp_path):
    path = model(sample_models.dense())

    def result(*arguments):
        leadline("run", path, *arguments, "--output", tmp_path / "out.npy")
        return np.load(tmp_path / "out.npy")

    first = result("--seed", 1)
    np.testing.assert_array_equal(first, result("--seed", 1, "--random", "--threads", 2))
    assert not np.array_equal(first, result("--seed", 2))


def test_summary_of_outputs(model, tmp_path):
    path = model(sample_models.two_inputs())
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((2, 3), np.float32)
    b[0, 0] = np.nan
    np.savez(tmp_path / "in.npz", a=a, b=b)
    data = leadline_json("run", path, "--input", tmp_path / "in.npz")
    total = next(t for t in data["outputs"] if t["name"] == "s")
    assert (total["dtype"], total["shape"], total["not_finite"]) == ("float32", [2, 3], 1)
    assert (total["min"], total["max"], total["mean"]) == (2, 6, 4)
    assert total["top"][0] == {"index": [1, 2], "value": 6}
    assert "1 values are NaN" in leadline("run", path, "--input", tmp_path / "in.npz").stdout


def test_profile_and_timing(model):
    path = model(sample_models.chain(length=3))
    data = leadline_json("run", path, "--runs", 4, "--profile")
    assert data["runs"] == 4
    assert 0 < data["fastest_ms"] <= data["median_ms"] <= data["slowest_ms"]
    assert data["profile"]["ops"][0]["op"] == "TANH"
    assert data["profile"]["ops"][0]["nodes"] == len(data["profile"]["nodes"]) == 3
    assert all(node["runs"] == 4 for node in data["profile"]["nodes"])
    text = leadline("run", path, "--profile").stdout
    assert "Time per op" in text and "Time per node" in text
    assert "profile" not in leadline_json("run", path)


def test_signature_is_chosen_by_key(model):
    path = model(sample_models.two_signatures())
    keys = [s["key"] for s in leadline_json("inspect", path)["signatures"]]
    assert len(keys) == 2
    for key in keys:
        leadline("run", path, "--signature", key)
    assert keys[0] in leadline("run", path, "--signature", "none", expect=USAGE).stderr


def test_data_dependent_shapes(model):
    path = model(sample_models.where())
    assert leadline_json("plan", path)["complete"] is False
    assert "Not complete" in leadline("plan", path).stdout
    done = leadline_json("run", path, "--runs", 2)
    assert done["counted_peak_bytes"] == done["planned_peak_bytes"]


def test_every_model_of_the_collection_gives_a_result_or_a_message(shared):
    for path in sorted((shared / "models").glob("*.tflite")):
        for command in ("inspect", "plan"):
            result = subprocess.run([PROGRAM, command, path, "--json"], capture_output=True, text=True, check=False)
            assert result.returncode in (OK, BAD_MODEL), f"{path.name}: {result.stderr}"
            json.loads(result.stdout)
