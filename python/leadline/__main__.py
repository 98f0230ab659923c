# SPDX-License-Identifier: Apache-2.0
"""`python -m leadline ...` is the `leadline` program of this Python, also where PATH does not lead to it."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig


def find_program() -> str | None:
    """The program that was installed with this package, else the one in PATH; None when there is none."""
    schemes = [sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user")]
    places = [os.path.join(sysconfig.get_path("scripts", scheme), "leadline") for scheme in schemes]
    return next((place for place in places if os.access(place, os.X_OK)), shutil.which("leadline"))


def main() -> int:
    """Becomes the program."""
    if (program := find_program()) is not None:
        os.execv(program, ["leadline", *sys.argv[1:]])
    print(
        "leadline: the program is not installed beside this Python; `pip install leadline` installs both",
        file=sys.stderr,
    )
    return 127


if __name__ == "__main__":
    sys.exit(main())
