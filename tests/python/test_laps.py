# SPDX-License-Identifier: Apache-2.0
"""leadline.laps: loops that leak and loops that do not, each in a process of its own; and who made what lives."""

import gc
import json
import os
import subprocess
import sys
import textwrap
import time
import types

import pytest
from tflite_builder import ModelBuilder

import leadline
from leadline import _leadline, lite
from leadline._guard import laps as laps_module

ROUNDS = 20

PROGRAM = """
import ctypes, json, os, random, sys
import numpy as np
import leadline
from pathlib import Path

random.seed(int(os.environ.get("SEED", "1")))
model = sys.argv[1]
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
kept = []

{setup}

def step(i):
{body}

rounds = leadline.laps(range({rounds}), report=False)
for i in rounds:
    step(i)
print(json.dumps(rounds.report().to_dict()))
print(rounds.report())
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("laps") / "model.tflite"
    path.write_bytes(small_model())
    return str(path)


def small_model():
    import numpy as np

    builder = ModelBuilder()
    graph = builder.subgraph()
    x = graph.input("x", np.float32, [1, 100_000])
    graph.output(graph.op("TANH", [x], ("y", np.float32, [1, 100_000])))
    return builder.build()


def run_loop(model, body, setup="", rounds=ROUNDS, seed=1):
    code = PROGRAM.format(
        setup=textwrap.dedent(setup), body=textwrap.indent(textwrap.dedent(body), "    "), rounds=rounds
    )
    environment = {**os.environ, "SEED": str(seed)}
    result = subprocess.run(
        [sys.executable, "-c", code, model], capture_output=True, text=True, check=False, env=environment
    )
    assert result.returncode == 0, result.stderr
    first, text = result.stdout.split("\n", 1)
    return json.loads(first), text


LEAKS = {
    "list of small objects": ("kept.append([str(i * 1000 + j) for j in range(800)])", 50_000),
    "large list": ("kept.append([None] * 6_250)", 50_000),
    "dict that never forgets": ("for j in range(500): kept_dict[i, j] = float(j)", 50_000),
    "arrays, 50 KB": ("kept.append(np.ones(6_250))", 50_000),
    "arrays, 3.2 MB": ("kept.append(np.ones(400_000))", 3_200_000),
    "arrays, 3.2 MB, every second round": ("if i % 2: kept.append(np.ones(800_000))", 3_200_000),
    "arrays in steps of four rounds": ("if i % 4 == 3: kept.append(np.ones(1_600_000))", 3_200_000),
    "malloc, 50 KB": ("libc.memset(libc.malloc(50_000), 1, 50_000)", 50_000),
    "malloc, 1 MB, in a noisy loop": (
        "libc.memset(libc.malloc(1_000_000), 1, 1_000_000); x = [np.ones(random.randrange(300_000)) for _ in range(10)]",
        1_000_000,
    ),
    "interpreters": (
        "kept.append(leadline.lite.Interpreter(model)); kept[-1].allocate_tensors(); kept[-1].invoke()",
        800_000,
    ),
    "a generator that is never ended": (
        "def make():\n    x = np.ones(12_500)\n    yield\ng = make(); next(g); kept.append(g)",
        100_000,
    ),
    "mapped memory": ("import mmap\nm = mmap.mmap(-1, 1 << 20); m[:] = bytes(1 << 20); kept.append(m)", 1 << 20),
}


@pytest.mark.parametrize("name", LEAKS)
def test_a_leaking_loop_grows(model, name):
    body, size = LEAKS[name]
    report, text = run_loop(model, body, setup="kept_dict = {}")
    assert report["verdict"] == "grows", text
    assert 0.4 * size < report["bytes_per_round"] < 2.5 * size, text
    assert report["rounds"] == ROUNDS


FLAT = {
    "nothing": "pass",
    "arrays of one size": "x = np.ones(400_000) * 2",
    "arrays of many sizes": "x = [np.ones(random.randrange(400_000)) for _ in range(20)]; kept[:] = x[:3]",
    "small blocks of many sizes": "x = [bytes(random.randrange(3_000)) for _ in range(20_000)]; kept[:] = x[:100]",
    "a cache that fills in the first six rounds": "cache.setdefault(min(i, 6), np.ones(400_000))",
    "a ring of the last five": "kept.append(np.ones(random.randrange(200_000))); del kept[:-5]",
    "garbage in cycles": "x = {'a': np.ones(400_000)}; x['self'] = x",
    "a number of each round": "kept.append(float(i) * 0.5)",
    "something large once": "if i == random.choice([6, 9, 12]): kept.append(np.ones(3_000_000))",
    "interpreters": "x = leadline.lite.Interpreter(model); x.allocate_tensors(); x.invoke()",
    "strings": "x = [str(random.random()) for _ in range(50_000)]",
    "sorted dicts": "x = dict(sorted({random.random(): j for j in range(30_000)}.items()))",
}


@pytest.mark.parametrize("name", FLAT)
def test_a_loop_that_does_not_leak_is_flat(model, name):
    report, text = run_loop(model, FLAT[name], setup="cache = {}")
    assert report["verdict"] == "flat", text


@pytest.mark.parametrize("rounds", [40, 60, 100])
def test_a_bounded_buffer_is_flat(model, rounds):
    report, text = run_loop(model, "buffer.append(np.ones(10_000))", FULL_AFTER_30, rounds)
    assert report["verdict"] == "flat", text


FULL_AFTER_30 = "import collections; buffer = collections.deque(maxlen=30)"

FIGURES = """
import io, matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
"""


@pytest.mark.parametrize(
    ("rounds", "draw"),
    [
        (15, "figure, axes = plt.subplots(); axes.plot(range(100)); plt.close(figure)"),
        (20, "plt.figure(); plt.plot(np.random.rand(1000)); plt.savefig(io.BytesIO()); plt.close()"),
    ],
)
def test_closed_figures_are_flat(model, draw, rounds):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    report, text = run_loop(model, draw, FIGURES, rounds)
    assert report["verdict"] == "flat", text


OPENINGS = {
    "file": ("kept.append(open('/etc/passwd'))", "/etc/passwd", "descriptors"),
    "socket": ("import socket; kept.append(socket.socket(socket.AF_UNIX))", "UNIX", "descriptors"),
    "process": ("import subprocess; kept.append(subprocess.Popen(['sleep', '60']))", "sleep", "processes"),
}


@pytest.mark.parametrize("kind", OPENINGS)
def test_what_stays_open_is_found_and_named(model, kind):
    body, name, quantity = OPENINGS[kind]
    setup = "import atexit; atexit.register(lambda: [k.kill() for k in kept if hasattr(k, 'kill')])"
    report, text = run_loop(model, body, setup)
    assert report["verdict"] == "grows" and report[quantity]["verdict"] == "grows", text
    assert report[quantity]["per_round"] == 1
    opened = next(entry for entry in report["opened"] if entry["kind"] == kind)
    assert opened["count"] == ROUNDS - 3 and name in opened["name"]
    line = PROGRAM.format(setup=setup, body="@", rounds=0).splitlines().index("@") + 1
    assert (opened["file"], opened["line"]) == ("<string>", line)
    assert (
        f"{ROUNDS - 3} {'processes' if kind == 'process' else kind + 's'} more" in text and f"<string>:{line}" in text
    )


def test_processes_that_nobody_waits_for_are_named(model):
    body = "import os\nif os.fork() == 0: os._exit(0)"
    report, text = run_loop(model, body)
    assert report["processes"]["verdict"] == "grows", text
    assert "nobody waited for it" in text


def test_files_that_are_closed_again_are_flat(model):
    report, text = run_loop(model, "open('/etc/passwd').read(); import subprocess; subprocess.run(['true'])")
    assert report["verdict"] == "flat" and report["opened"] == [], text


def test_the_report_names_what_grew(model):
    body = """
    kept.append(leadline.lite.Interpreter(model))
    kept[-1].allocate_tensors()
    kept.append(np.ones(1000))
    """
    report, text = run_loop(model, body, rounds=50)
    assert report["verdict"] == "grows"
    assert report["types"]["numpy.ndarray"] >= 47
    assert report["types"]["leadline.lite.Interpreter"] == 47
    live = {entry["kind"]: entry for entry in report["live"]}
    assert live["Interpreter"]["count"] == 47
    assert live["Interpreter"]["bytes_each"] > 750_000
    line = PROGRAM.format(setup="", body="", rounds=0)
    assert live["Interpreter"]["file"] == "<string>" and live["Interpreter"]["line"] > line.count("def step")
    assert "47 Interpreter made at <string>:" in text and "KiB each" in text
    assert "+47 leadline.lite.Interpreter" in text


def test_the_verdict_is_printed_once_when_the_loop_ends(capsys):
    rounds = leadline.laps(range(15))
    assert len(rounds) == 15
    assert list(rounds) == list(range(15))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("leadline: flat over 15 rounds")
    assert rounds.report().verdict == "flat"
    assert capsys.readouterr().err == ""


def test_break_and_silence_and_few_rounds(capsys):
    rounds = leadline.laps(range(100))
    for i in rounds:
        if i == 5:
            break
    gc.collect()
    assert "too few rounds: 5" in capsys.readouterr().err
    assert rounds.rounds == 5
    for _ in leadline.laps(range(15), report=False):
        pass
    for _ in leadline.laps([]):
        pass
    assert capsys.readouterr().err == ""


def test_an_exception_in_the_loop_comes_through():
    with pytest.raises(KeyError):
        for i in leadline.laps(range(5), report=False):
            if i == 3:
                raise KeyError(i)


def test_laps_by_hand():
    laps = leadline.Laps()
    kept = []
    for _ in range(ROUNDS):
        kept.append(bytearray(200_000))
        laps.lap()
    report = laps.report()
    assert report.grows and report.rounds == ROUNDS == len(laps.samples)
    assert report.low <= report.bytes_per_round <= report.high
    assert report.allocated.verdict == "grows"
    assert report.types["bytearray"] == ROUNDS - 3
    assert report._repr_html_().startswith("<div><strong>grows ")
    assert json.loads(json.dumps(report.to_dict()))["types"]["bytearray"] == ROUNDS - 3


def test_a_long_loop_is_sampled_rarely():
    laps = leadline.Laps(collect=False)  # garbage of all tests before this one takes its time
    start = time.process_time()  # others may keep the machine busy
    for _ in range(3000):
        time.sleep(0.0002)
        laps.lap()
    assert laps.rounds == 3000
    assert len(laps.samples) <= 256
    assert time.process_time() - start < 10


# Live objects


def made_here():
    return [(thing.kind, thing.line) for thing in leadline.live_objects() if thing.file == __file__]


def test_live_objects_and_the_lines_that_made_them():
    gc.collect()
    before = made_here()
    content = small_model()
    model = leadline.Model.from_bytes(content)
    line = sys._getframe().f_lineno - 1
    interpreter = lite.Interpreter(model=model)
    interpreter.allocate_tensors()
    calibration = leadline.Calibration.from_bytes(empty_calibration(model))
    new = [entry for entry in made_here() if entry not in before]
    assert ("Model", line) in new and ("Interpreter", line + 2) in new and ("Calibration", line + 4) in new
    shown = {thing.kind: thing for thing in leadline.live_objects() if thing.file == __file__}
    assert shown["Model"].bytes == model.memory_bytes > len(content)
    assert 800_000 <= shown["Interpreter"].bytes < 900_000
    assert shown["Interpreter"].where == f"test_laps.py:{line + 2}"
    assert f"1 Interpreter made at test_laps.py:{line + 2}" in repr(leadline.live_objects())
    assert "test_laps.py" in leadline.live_objects()._repr_html_()
    del interpreter, calibration, model
    gc.collect()
    assert made_here() == before


def empty_calibration(model):
    return _leadline.Calibrator(model).calibration().to_bytes()


def test_converters_and_debuggers_are_listed():
    before = len(leadline.live_objects())
    converter = lite.TFLiteConverter(types.SimpleNamespace(convert_to_model=None))
    assert leadline.live_objects()[-1].kind == "TFLiteConverter"
    del converter
    with pytest.raises(leadline.InvalidArgumentError):
        lite.experimental.QuantizationDebugger()
    gc.collect()
    assert len(leadline.live_objects()) == before


def test_remembering_costs_little_and_forgets():
    class Thing:
        pass

    things = [Thing() for _ in range(20_000)]
    before = len(_leadline.live_objects())
    start = time.perf_counter()
    for thing in things:
        _leadline.remember_object(thing)
    microseconds = (time.perf_counter() - start) / len(things) * 1e6
    assert len(_leadline.live_objects()) == before + 20_000
    assert microseconds < 10  # 0.3 on a quiet machine
    del thing, things
    assert len(_leadline.live_objects()) == before


def test_counting_objects():
    import numpy as np

    before = _leadline.count_objects()
    kept = [np.zeros(3) for _ in range(1000)], {i: ("a", str(i) + "x") for i in range(500)}
    after = _leadline.count_objects()
    assert 1000 <= after["numpy.ndarray"] - before.get("numpy.ndarray", 0) <= 1010
    assert after["tuple"] - before["tuple"] >= 500
    assert after["str"] - before["str"] >= 500
    assert len(kept) == 2


def test_cells_of_notebooks_have_numbers(monkeypatch):
    class Shell:
        class compile:
            _filename_map = {"/tmp/ipykernel_1/123.py": 7}

    class IPython:
        get_ipython = staticmethod(lambda: Shell)

    monkeypatch.setitem(sys.modules, "IPython", IPython)
    assert laps_module._where("/tmp/ipykernel_1/123.py", 2) == "cell 7, line 2"
    assert laps_module._where("/home/x/train.py", 12) == "train.py:12"
    assert laps_module._where(None, 0) == "an unknown place"
