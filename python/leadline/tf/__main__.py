# SPDX-License-Identifier: Apache-2.0
"""`python -m leadline.tf program.py [arguments]`: runs a program whose `import tensorflow` is leadline.tf.

-m module and -c code as Python has them. --force: also where TensorFlow is installed. --budget 2GB: the most memory.
"""

from __future__ import annotations

import os
import runpy
import sys


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
    if arguments[0] == "-m" and len(arguments) > 1:
        sys.argv = arguments[1:]
        sys.path[0] = os.getcwd()
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    elif arguments[0] == "-c" and len(arguments) > 1:
        sys.argv = ["-c", *arguments[2:]]
        exec(compile(arguments[1], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = arguments
        sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
        runpy.run_path(arguments[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
