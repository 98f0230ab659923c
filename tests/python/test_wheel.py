# SPDX-License-Identifier: Apache-2.0
"""What pip gets, without compiling: the metadata and the Python part of a wheel, the files of a source distribution, and
the symbols of the extension that is installed."""

import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import leadline

SOURCES = Path(__file__).resolve().parents[2]
# Answers of the backend that pip asks; wheel.cmake=false leaves out what is compiled.
BUILD = """
import scikit_build_core.build, sys
settings = {"wheel.cmake": "false", "wheel.py-api": "py3"}
print(scikit_build_core.build.build_wheel(sys.argv[1], settings), scikit_build_core.build.build_sdist(sys.argv[1]))
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    done = subprocess.run(
        [sys.executable, "-c", BUILD, str(folder)], cwd=SOURCES, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def metadata_of(wheel: zipfile.ZipFile, name: str) -> str:
    return wheel.read(f"leadline-{leadline.__version__}.dist-info/{name}").decode()


def test_a_wheel_needs_numpy_and_nothing_else(built):
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        metadata = Parser().parsestr(metadata_of(wheel, "METADATA"))
    assert metadata["Name"] == "leadline"
    assert metadata["Version"] == leadline.__version__
    assert metadata.get_all("Requires-Dist") == ["numpy>=1.26"]
    assert metadata["Requires-Python"] == ">=3.10"
    assert metadata["License-Expression"] == "Apache-2.0"


def test_a_wheel_has_the_whole_package_and_tells_jupyter(built):
    package = SOURCES / "python"
    expected = {
        path.relative_to(package).as_posix()
        for path in (package / "leadline").rglob("*")
        if path.suffix in (".py", ".pyi", ".typed")
    }
    assert {"leadline/__init__.py", "leadline/_leadline.pyi", "leadline/py.typed"} <= expected
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        names = set(wheel.namelist())
        assert expected - names == set()
        assert not [name for name in names if "__pycache__" in name or name.endswith(".so")]
        assert "leadline-provisioner = leadline.jupyter.provisioner:" in metadata_of(wheel, "entry_points.txt")
        assert "Apache License" in metadata_of(wheel, "licenses/LICENSE")


def test_a_source_distribution_has_what_building_takes(built):
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    tracked = subprocess.run(
        ["git", "ls-files", "CMakeLists.txt", "cmake", "data", "include", "python", "src"],
        cwd=SOURCES,
        capture_output=True,
        text=True,
        check=False,
    )
    if tracked.returncode != 0:
        pytest.skip("the sources are not a git clone")
    present = {name for name in tracked.stdout.splitlines() if (SOURCES / name).exists()}
    assert len(present) > 1000
    assert present - names == set()
    assert not [name for name in names if name.startswith(("build/", ".venv", "dist/"))]


def symbols(which: str) -> set[str]:
    """Of the extension, without versions."""
    nm = shutil.which("nm")
    assert nm is not None, "binutils, which come with a compiler, are missing"
    extension = next(Path(leadline.__file__).parent.glob("_leadline.*.so"))
    listed = subprocess.run([nm, "-D", which, str(extension)], capture_output=True, text=True, check=True)
    return {line.split()[-1].partition("@")[0] for line in listed.stdout.splitlines()}


def test_the_extension_offers_its_init_function_and_nothing_else():
    assert symbols("--defined-only") == {"PyInit__leadline"}


def test_the_extension_looks_up_what_not_every_python_and_glibc_has():
    """Outside of Python's stable ABI, and newer than glibc 2.28: found at run time, or done in another way."""
    needed = symbols("--undefined-only")
    assert "PyObject_IsTrue" in needed and "memcpy" in needed
    python = {
        "PyMem_SetAllocator",
        "PyMem_RawMalloc",
        "PyObject_SetArenaAllocator",
        "PyGILState_Check",
        "PyObject_IS_GC",
    }
    glibc = {"_Fork", "gettid", "sigabbrev_np", "sigdescr_np"}
    assert needed & (python | glibc) == set()
