#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the models that the schema-aware fuzzer takes apart into one file.

usage: write_bases.py OUTPUT [--per-op N] [--heavy] [--also FOLDER | ZIP | MODEL ...]

All cases of tests/conformance (N of each op, evenly taken; all by default), those of heavy_models.py if wanted, and the
.tflite files of the folders and archives named, as far as they are small. OUTPUT is a sequence of (group, name, content), each with a 32-bit length.
"""

import argparse
import importlib
import struct
import sys
import zipfile
from collections import defaultdict
from pathlib import Path

CONFORMANCE = Path(__file__).parent.parent / "tests" / "conformance"
LARGEST = 4 << 20


def conformance_models(per_op):
    """(op, name of the case, content)"""
    sys.path.insert(0, str(CONFORMANCE))
    by_op = defaultdict(list)
    for file in sorted((CONFORMANCE / "cases").glob("*.py")):
        for case in importlib.import_module(f"cases.{file.stem}").cases():
            by_op[case.op].append(case)
    for op, cases in sorted(by_op.items()):
        wanted = len(cases) if per_op is None else min(per_op, len(cases))
        for i in range(wanted):
            case = cases[i * len(cases) // wanted]
            yield op, str(case), case.model()


def models_of(path):
    """The same for files: a group is an archive, or the file itself."""
    if path.is_dir():
        for entry in sorted(path.iterdir()):
            if entry.suffix in {".tflite", ".zip"}:
                yield from models_of(entry)
    elif path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                if entry.filename.endswith(".tflite") and entry.file_size <= LARGEST:
                    yield f"zip {path.stem}", f"{path.stem}/{entry.filename}", archive.read(entry)
    elif path.stat().st_size <= LARGEST:
        yield f"file {path.stem}", path.stem, path.read_bytes()


def heavy():
    """One group, for they are slow."""
    import heavy_models

    for name, content in heavy_models.models():
        yield "heavy", name, content


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--per-op", type=int)
    parser.add_argument("--heavy", action="store_true")
    parser.add_argument("--also", type=Path, nargs="+", default=[])
    arguments = parser.parse_args()
    sources = [conformance_models(arguments.per_op), *(models_of(path) for path in arguments.also)]
    if arguments.heavy:
        sources.append(heavy())
    count = size = 0
    with arguments.output.open("wb") as output:
        groups = set()
        for source in sources:
            for group, name, content in source:
                for part in (group.encode(), name.encode(), content):
                    output.write(struct.pack("<I", len(part)) + part)
                groups.add(group)
                count, size = count + 1, size + len(content)
    print(f"{arguments.output}: {count} models in {len(groups)} groups, {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
