# SPDX-License-Identifier: Apache-2.0
"""Does every job once, in Python and with the program, where nothing but the wheel and numpy is installed. What came out
is printed as JSON, for test.sh to compare machines: integer results are equal on all of them.

usage: smoke.py <folder of make_inputs.py>
"""

import hashlib
import importlib.metadata
import json
import platform
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import numpy as np

import leadline
from leadline import lite

INPUTS = Path(sys.argv[1]).resolve()
SAMPLES = np.load(INPUTS / "samples.npy")
PROGRAM = Path(sysconfig.get_path("scripts")) / "leadline"


def program(*arguments: object, status: int = 0) -> str:
    """What the program prints; its exit code has to be `status`."""
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == status, f"leadline {arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def run(content: bytes, inputs: np.ndarray) -> np.ndarray:
    """The outputs for each of the inputs, one after the other."""
    interpreter = lite.Interpreter(model_content=content, num_threads=1)
    interpreter.allocate_tensors()
    results = []
    for values in inputs:
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], values[None])
        interpreter.invoke()
        results.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"])[0].copy())
    assert interpreter.counted_peak_bytes() == interpreter.plan().peak_bytes
    return np.stack(results)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def check_package() -> None:
    """What the wheel brought, as pip, Jupyter, type checkers and lawyers look for it."""
    package = importlib.metadata.distribution("leadline")
    assert package.version == leadline.__version__
    assert [line.split(";")[0] for line in package.requires or []] == ["numpy>=1.26"], package.requires
    assert program("--version").split()[-1] == leadline.__version__
    files = {str(path) for path in package.files or []}
    for name in ("leadline/py.typed", "leadline/_leadline.pyi"):
        assert name in files, name
    licences = {Path(name).name for name in files if "/licenses/" in name}
    assert {"LICENSE", "fmt.txt", "hwy.txt", "flatbuffers.txt", "CLI.txt", "zlib.txt"} <= licences, licences
    kernels = importlib.metadata.entry_points(group="jupyter_client.kernel_provisioners")
    assert "leadline-provisioner" in kernels.names
    prefix = Path(sys.prefix)
    config = json.loads((prefix / "etc/jupyter/jupyter_server_config.d/leadline.json").read_text())
    assert config["ServerApp"]["jpserver_extensions"] == {"leadline.jupyter": True}
    assert (prefix / "share/jupyter/labextensions/leadline/package.json").is_file()


def convert(folder: Path) -> np.ndarray:
    model = folder / "float.tflite"
    program("convert", INPUTS / "model.keras", "-o", model)
    leadline.convert(INPUTS / "model.keras", folder / "again.tflite")
    assert model.read_bytes() == (folder / "again.tflite").read_bytes()
    outputs = run(model.read_bytes(), SAMPLES)
    np.testing.assert_allclose(outputs, np.load(INPUTS / "expected.npy"), atol=1e-5)
    return outputs


def plan_and_run(folder: Path) -> None:
    model = folder / "float.tflite"
    planned = json.loads(program("plan", model, "--threads", 1, "--json"))
    assert str(lite.Interpreter(str(model), num_threads=1).plan().peak_bytes) in json.dumps(planned)
    assert "peak" in program("plan", model, "--html", folder / "plan.html").lower()
    np.savez_compressed(folder / "one.npz", image=SAMPLES[:1])
    name = lite.Interpreter(str(model)).get_input_details()[0]["name"]
    np.save(folder / "one.npy", SAMPLES[:1])
    program("run", model, "--input", f"{name}={folder / 'one.npy'}", "--output", folder / "out.npy")
    np.testing.assert_allclose(np.load(folder / "out.npy"), np.load(INPUTS / "expected.npy")[:1], atol=1e-5)
    try:
        lite.Interpreter(str(model), budget="20kB").allocate_tensors()
        raise AssertionError("20 kB were enough")
    except leadline.BudgetError:
        pass


def quantize(folder: Path) -> bytes:
    model = folder / "float.tflite"
    program("quantize", model, "--data", INPUTS / "samples.npy", "-o", folder / "int8.tflite")
    content = leadline.quantize(model, "int8", [[sample[None]] for sample in SAMPLES])
    assert content == (folder / "int8.tflite").read_bytes()
    for mode in ("dynamic", "float16", "int16x8"):
        program("quantize", model, "--mode", mode, "--data", INPUTS / "samples.npy", "-o", folder / "other.tflite")
    assert np.abs(run(content, SAMPLES) - np.load(INPUTS / "expected.npy")).max() < 0.1
    return content


def debug_and_tune(folder: Path) -> None:
    model, quantized, samples = folder / "float.tflite", folder / "int8.tflite", INPUTS / "samples.npy"
    program("debug", model, quantized, "--data", samples, "--report", folder / "report.html")
    assert (folder / "report.html").stat().st_size > 10000
    dataset = [[sample[None]] for sample in SAMPLES[:4]]
    assert str(leadline.debug(model, quantized, dataset))
    program("tune", model, "--data", samples, "--target", "0.9", "-o", folder / "tuned.tflite")
    assert leadline.tune(model, dataset, "cosine", target=0.9)


def evaluate(folder: Path) -> None:
    result = leadline.evaluate(folder / "float.tflite", SAMPLES, np.load(INPUTS / "labels.npy"))
    assert result.value == 1.0, result
    labels = ("--labels", INPUTS / "labels.npy")
    program("evaluate", folder / "float.tflite", "--data", INPUTS / "samples.npy", *labels)
    pictures = ("--data", INPUTS / "pictures", "--mean", "127.5", "--scale", "0.0078")
    assert "2" in program("evaluate", folder / "float.tflite", *pictures)


def guard_and_watch() -> None:
    eat = "x = [bytearray(1 << 20) for _ in range(3000)]"
    program("guard", "--memory", "300MB", "--", sys.executable, "-c", eat, status=122)
    program("guard", "--memory", "300MB", "--", sys.executable, "-c", "raise SystemExit(7)", status=7)
    assert leadline.guard(sum, [1, 2, 3]) == 6
    try:
        leadline.guard(exec, eat, memory="300MB")
        raise AssertionError("3 GB went into 300 MB")
    except leadline.GuardError:
        pass
    with leadline.watch(recorder=False) as watch:
        try:
            bytearray(1 << 50)
            raise AssertionError("a petabyte was there")
        except MemoryError:
            pass
        assert watch.report()
    assert leadline.live_objects() is not None
    program("doctor", status=0)
    program("postmortem", "--help")


def main() -> None:
    # An emulator's own memory and system calls are not those of the program. Its /proc shows the machine it runs on.
    emulated = platform.machine() == "aarch64" and "vendor_id" in Path("/proc/cpuinfo").read_text()
    check_package()
    integers = run((INPUTS / "int8.tflite").read_bytes(), np.clip(np.rint(SAMPLES * 40), -128, 127).astype(np.int8))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        floats = convert(folder)
        plan_and_run(folder)
        quantized = quantize(folder)
        debug_and_tune(folder)
        evaluate(folder)
    if not emulated:
        guard_and_watch()
    facts = {
        "machine": platform.machine(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "libc": " ".join(platform.libc_ver()),
        "integers": digest(integers.tobytes()),
        "quantized": digest(quantized),
        "floats": digest(floats.tobytes()),
        "guard_and_watch": not emulated,
    }
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
