# SPDX-License-Identifier: Apache-2.0
"""`python -m leadline.lite program.py [arguments]`: a program whose tflite_runtime and ai_edge_litert are Leadline.

-m module and -c code as Python has them. --force: also where those packages are installed. --tensorflow: also where the
program takes `tf.lite` from tensorflow (see leadline.tf). --budget 2GB: the most memory.
"""

from __future__ import annotations

import os
import sys

from leadline._native.programs import run_program


def main(arguments: list[str]) -> int:
    from leadline.lite.installer import install

    force = tensorflow = False
    while arguments and arguments[0] in ("--force", "--tensorflow", "--budget", "-h", "--help"):
        option = arguments.pop(0)
        if option in ("-h", "--help"):
            print(__doc__)
            return 0
        force = force or option == "--force"
        tensorflow = tensorflow or option == "--tensorflow"
        if option == "--budget" and arguments:
            os.environ["LEADLINE_MEMORY"] = arguments.pop(0)
    if not arguments:
        print(
            "usage: python -m leadline.lite [--force] [--tensorflow] [--budget BYTES] program.py | -m module | -c code",
            file=sys.stderr,
        )
        return 2
    found = install(force)
    if tensorflow:
        from leadline import tf

        found += ("tensorflow.lite",) if tf.install(force) else ()
    if not found:
        print("leadline.lite: the real packages are installed and are used; --force runs Leadline", file=sys.stderr)
    run_program(arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
