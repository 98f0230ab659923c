# SPDX-License-Identifier: Apache-2.0
"""leadline.doctor() and leadline.devices(), and the commands of the same names."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from test_cli import PROGRAM, USAGE, leadline_json
from tflite_builder import ModelBuilder

import leadline

ROOT = Path(__file__).parents[2]
needs_program = pytest.mark.skipif(PROGRAM is None, reason="the leadline program is not built")


@pytest.fixture
def site(tmp_path):
    """Makes up packages in a site-packages folder of Python 3.11."""
    folder = tmp_path / "lib/python3.11/site-packages"

    def add(name, version, *requirements):
        info = folder / f"{name}-{version}.dist-info"
        info.mkdir(parents=True)
        lines = [f"Name: {name}", f"Version: {version}", *(f"Requires-Dist: {line}" for line in requirements)]
        (info / "METADATA").write_text("\n".join(lines) + "\n")
        return folder

    return add


@pytest.fixture
def model(tmp_path):
    builder = ModelBuilder()
    graph = builder.subgraph()
    x = graph.input("x", np.float32, [4])
    graph.output(graph.op("EXP", [x], ("y", np.float32, [4])))
    path = tmp_path / "exp.tflite"
    path.write_bytes(builder.build())
    return path


def test_doctor_looks_at_this_python_and_imports_nothing():
    code = (
        "import sys, leadline; before = set(sys.modules); r = leadline.doctor(); new = set(sys.modules) - before; "
        "print(r.python, r.python_version); assert not {'keras', 'tensorflow', 'h5py', 'jax'} & new; assert r.packages"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert shown == [sys.executable, ".".join(map(str, sys.version_info[:3]))]


def test_doctor_finds_a_conflict_and_shows_it(site):
    site("tensorflow", "2.15.1", "numpy<2.0.0,>=1.23.5")
    folder = site("numpy", "2.0.0")
    report = leadline.doctor(site_packages=[folder], machine=False)
    assert not report.ok
    assert {"numpy-abi", "requirements"} <= {finding.id for finding in report.problems}
    finding = next(finding for finding in report.findings if finding.id == "numpy-abi")
    assert finding.severity == "problem" and "numpy<2" in finding.fix and finding.source.startswith("https://")
    assert "problem [numpy-abi]" in repr(report)
    assert "numpy&lt;2" in report._repr_html_()
    assert report.to_dict()["problems"] == len(report.problems)


@pytest.fixture
def numpy_copy(tmp_path):
    """The installed NumPy, in a folder of its own: its metadata and native libraries."""
    import importlib.metadata
    import shutil

    numpy = importlib.metadata.distribution("numpy")
    folder = tmp_path / "lib/python3.11/site-packages"
    for file in numpy.files:
        if ".so" in file.name or "dist-info" in str(file):
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file.locate(), folder / file)
    record = next(folder.glob("numpy-*.dist-info")) / "RECORD"
    lines = [line for line in record.read_text().splitlines() if ".so" in line]
    record.write_text("\n".join(lines) + "\n")
    return folder


def test_doctor_finds_a_library_that_was_cut_off(numpy_copy):
    def found(**options):
        report = leadline.doctor(site_packages=[numpy_copy], machine=False, **options)
        return {finding.id: finding for finding in report.problems}

    assert found() == {} and found(deep=True) == {}
    library = next(numpy_copy.glob("numpy/_core/_multiarray_umath*.so"))
    whole = library.read_bytes()
    for size in (0, 1000, len(whole) // 2, len(whole) - 100):
        library.write_bytes(whole[:size])
        assert library.name in found()["library-damaged"].what, size
    library.write_bytes(whole[: len(whole) // 2] + b"\1" + whole[len(whole) // 2 + 1 :])
    assert "library-damaged" not in found()
    assert library.name in found(deep=True)["files-changed"].what


def test_doctor_finds_an_import_that_fails(site):
    """As pydantic's does beside an old typing_extensions."""
    folder = site("typing_extensions", "4.5.0")
    site("pydantic", "2.14.3", "typing-extensions<5")
    for name, text in {
        "typing_extensions": "class Self: ...\n",
        "pydantic": "from typing_extensions import Sentinel\n",
    }.items():
        (folder / f"{name}.py").write_text(text)
    assert leadline.doctor(site_packages=[folder], machine=False).ok  # no requirement is broken: nothing is looked for
    (folder / "pydantic-2.14.3.dist-info/METADATA").write_text(
        "Name: pydantic\nVersion: 2.14.3\nRequires-Dist: typing-extensions>=4.16\n"
    )
    report = leadline.doctor(site_packages=[folder], machine=False)
    assert [finding.id for finding in report.problems] == ["requirements"]
    assert "imports Sentinel from typing_extensions, which does not have it" in report.problems[0].why
    if PROGRAM is not None:
        arguments = [PROGRAM, "doctor", "--site-packages", folder, "--no-machine"]
        assert subprocess.run(arguments, capture_output=True, check=False).returncode == 1


def test_doctor_says_when_all_is_well(site):
    report = leadline.doctor(site_packages=[site("numpy", "2.0.0")], machine=False)
    assert report.ok and not report.findings
    assert "Nothing was found" in repr(report) and "Nothing was found" in report._repr_html_()


def test_doctor_refuses_what_is_not_there(tmp_path):
    with pytest.raises(leadline.InvalidArgumentError, match="there is no Python at"):
        leadline.doctor(tmp_path / "nothing")


@needs_program
def test_doctor_command(site):
    site("tensorflow", "2.15.1")
    folder = site("tensorflow_cpu", "2.15.1")
    arguments = [PROGRAM, "doctor", "--site-packages", folder, "--no-machine"]
    shown = subprocess.run([*arguments, "--json"], capture_output=True, text=True, check=False)
    document = json.loads(shown.stdout)
    assert shown.returncode == 1 and document["problems"] == 1
    assert document["findings"][0]["id"] == "tensorflow-duplicates"
    assert document == leadline.doctor(site_packages=[folder], machine=False).to_dict()
    text = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert text.returncode == 1 and "fix  python -m pip uninstall -y tensorflow tensorflow-cpu" in text.stdout
    clean = [PROGRAM, "doctor", "--site-packages", folder.parent, "--no-machine", "--python-version", "3.11"]
    assert subprocess.run(clean, capture_output=True, check=False).returncode == 0
    assert subprocess.run([*clean[:2], "--python", "/nowhere"], capture_output=True, check=False).returncode == USAGE


@needs_program
def test_doctor_page_lists_every_check():
    checks = {(check["id"], check["what"]) for check in leadline_json("doctor", "--list")["checks"]}
    page = (ROOT / "docs/doctor.md").read_text()
    assert set(re.findall(r"^\| `([a-z0-9-]+)` \| (.*) \|$", page, re.MULTILINE)) == checks


def test_devices_has_the_cpu():
    devices = leadline.devices()
    cpu = devices[0]
    assert cpu.name == "/CPU:0" and cpu.runs
    assert 1 <= cpu.cores <= len(os.sched_getaffinity(0))
    assert cpu.memory_available <= cpu.memory_bytes
    assert "/CPU:0" in repr(devices) and "/CPU:0" in devices._repr_html_()
    assert all(device.runs == (device.name == "/CPU:0") for device in devices)


@needs_program
def test_devices_command_agrees():
    document = leadline_json("devices")
    assert [d["name"] for d in document["devices"]] == [d.name for d in leadline.devices()]


def test_interpreter_runs_on_the_cpu_it_asks_for(model):
    for name in (None, "/CPU:0", "cpu", "/device:CPU:0"):
        assert leadline.lite.Interpreter(model, device=name).device == "/CPU:0"


def test_missing_device_is_an_error_that_lists_what_exists(model):
    with pytest.raises(leadline.InvalidArgumentError, match=r"there is no device /GPU:77; this machine has /CPU:0"):
        leadline.lite.Interpreter(model, device="/GPU:77")


def test_missing_device_falls_back_when_asked_to(model):
    with pytest.warns(RuntimeWarning, match=r"there is no device /GPU:77; this machine has /CPU:0"):
        interpreter = leadline.lite.Interpreter(model, device="/GPU:77", on_missing="fallback")
    assert interpreter.device == "/CPU:0"
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.zeros(4, np.float32))
    interpreter.invoke()
    assert interpreter.get_tensor(1).tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize(
    "arguments", [{"device": "the fast one"}, {"device": 3}, {"device": "/GPU:0", "on_missing": "x"}]
)
def test_wrong_device_arguments(model, arguments):
    with pytest.raises(leadline.InvalidArgumentError):
        leadline.lite.Interpreter(model, **arguments)


@needs_program
def test_run_with_a_device(model):
    missing = subprocess.run(
        [PROGRAM, "run", model, "--device", "/GPU:77"], capture_output=True, text=True, check=False
    )
    assert missing.returncode == USAGE and "there is no device /GPU:77" in missing.stderr
    document = leadline_json("run", model, "--device", "/GPU:77", "--on-missing", "fallback")
    assert document["device"] == "/CPU:0" and "there is no device /GPU:77" in document["device_note"]


def test_devices_leave_threads_of_the_caller_alone():
    # A fork with fork handlers stops OpenBLAS's threads under those who use them, for ever.
    code = """if True:
        import os, threading, leadline, numpy
        def work():
            for _ in range(200): numpy.random.rand(200, 200) @ numpy.random.rand(200, 200)
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads: thread.start()
        for _ in range(5): leadline.devices()
        for thread in threads: thread.join()
        assert not open(f"/proc/self/task/{os.getpid()}/children").read()
    """
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
