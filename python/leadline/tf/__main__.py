# SPDX-License-Identifier: Apache-2.0
"""`python -m leadline.tf program.py [arguments]`: runs a program whose `import tensorflow` is leadline.tf.

-m module and -c code as Python has them. --force: also where TensorFlow is installed. --budget 2GB: the most memory.
"""

from __future__ import annotations

import sys

from leadline._native.programs import run_program


def main(arguments: list[str]) -> int:
    from leadline import tf

    force = False
    while arguments and arguments[0] in ("--force", "--budget", "-h", "--help"):
        option = arguments.pop(0)
        if option in ("-h", "--help"):
            print(__doc__)
            return 0
        if option == "--force":
            force = True
        elif arguments:
            tf.set_budget(arguments.pop(0))
    if not arguments:
        print(
            "usage: python -m leadline.tf [--force] [--budget BYTES] program.py | -m module | -c code", file=sys.stderr
        )
        return 2
    if not tf.install(force):
        print("leadline.tf: TensorFlow is installed and is used; --force runs leadline.tf instead", file=sys.stderr)
    run_program(arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
