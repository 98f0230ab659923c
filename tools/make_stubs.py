# SPDX-License-Identifier: Apache-2.0
"""Prints the type stub of leadline._leadline. After a change of the bindings:

.venv/bin/python tools/make_stubs.py > python/leadline/_leadline.pyi
"""

import re

from nanobind.stubgen import StubGen

from leadline import _leadline

# Exceptions that the extension makes without nanobind; the stub generator knows them by name only.
ERRORS = (
    "Error",
    "InvalidModelError",
    "UnsupportedError",
    "InvalidArgumentError",
    "BudgetError",
    "IoError",
    "OutOfMemoryError",
    "TimeLimitError",
)


def error_stub(name: str) -> str:
    cls = getattr(_leadline, name)
    bases = ", ".join(base.__name__ for base in cls.__bases__)
    attributes = [f"    {key}: {type(value).__name__}" for key, value in vars(cls).items() if not key.startswith("_")]
    doc = f'    """{cls.__doc__}"""'
    return "\n".join([f"class {name}({bases}):", doc, "", *attributes, ""])


def make() -> str:
    generator = StubGen(_leadline)
    generator.put(_leadline)
    imported = re.compile(r"from leadline import \([^)]*\)\n")
    classes = "\n\n".join(error_stub(name) for name in ERRORS)
    stub, count = imported.subn(lambda _: f"__version__: str\n\n\n{classes}", generator.get())
    if count != 1:
        raise RuntimeError("the stub generator did not import the exceptions as expected")
    return f"# SPDX-License-Identifier: Apache-2.0\n# Made by tools/make_stubs.py; do not edit.\n{stub.rstrip()}\n"


if __name__ == "__main__":
    print(make(), end="")
