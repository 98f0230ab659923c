# SPDX-License-Identifier: Apache-2.0
"""All exhibits, in the order of the table.

    python tests/museum/museum.py FOLDER

writes their models to files, for programs of a sanitizer build and for fuzzers:

    for file in FOLDER/*.tflite; do build/asan/leadline run --memory 256MB $file; done
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "conformance"), str(HERE.parent / "python")]

from exhibit import Exhibit  # noqa: E402
from exhibits import advisories, converting, loading, micro, running, seen  # noqa: E402

ALL: list[Exhibit] = [
    exhibit for hall in (loading, running, converting, micro, advisories, seen) for exhibit in hall.EXHIBITS
]


def write_models(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for exhibit in ALL:
        models = [shown.model for shown in exhibit.views] + ([exhibit.model] if exhibit.model else [])
        for number, model in enumerate(models):
            (folder / f"{exhibit.id}-{number}.tflite").write_bytes(model())


if __name__ == "__main__":
    write_models(Path(sys.argv[1]))
