# SPDX-License-Identifier: Apache-2.0
"""`leadline kernel install` and `leadline kernel -- PROGRAM ...`, which call this module."""

from __future__ import annotations

import argparse
import sys

from leadline._leadline import Error


def main(arguments: list[str]) -> int:
    """The exit code."""
    if arguments[:1] == ["--"]:
        from leadline.jupyter.supervisor import supervise

        return supervise(arguments[1:])
    parser = argparse.ArgumentParser(prog="leadline kernel", description=__doc__, allow_abbrev=False)
    parser.add_argument("action", choices=["install", "uninstall"])
    parser.add_argument("--kernel", default="python3", help="the kernelspec to supervise (default: python3)")
    parser.add_argument("--name", default="", help="of the new kernelspec (default: the old one's with -leadline)")
    parser.add_argument("--display-name", default="", help="as front ends show it")
    parser.add_argument("--sys-prefix", action="store_true", help="into this environment, instead of the user's folder")
    parser.add_argument("--prefix", default="", help="into another environment")
    options = parser.parse_args(arguments)
    from leadline.jupyter import kernelspec

    try:
        if options.action == "uninstall":
            print("removed", kernelspec.uninstall(options.kernel, options.name))
        else:
            prefix = options.prefix or (sys.prefix if options.sys_prefix else "")
            print("installed", kernelspec.install(options.kernel, options.name, options.display_name, prefix))
    except Error as error:
        print(f"leadline: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
