# SPDX-License-Identifier: Apache-2.0
"""Prints the type stub of leadline._leadline. After a change of the bindings:

.venv/bin/python tools/make_stubs.py > python/leadline/_leadline.pyi && tools/lint_python.sh --format
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

# Classes that offer the buffer protocol, which Python shows as a method only since 3.12.
BUFFERS = ("SharedMapping", "TensorMemory")
BUFFER_METHOD = "    def __buffer__(self, flags: int, /) -> memoryview: ...\n"


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
    stub = re.sub(r"\bos\.PathLike\b(?!\[)", "os.PathLike[str]", stub)
    # To type checkers, arrays are buffers only from Python 3.12 on.
    stub = re.sub(r"(?<=: )Buffer\b(?=[,)])", "Buffer | NDArray[Any]", stub)
    stub = stub.replace(
        "from typing_extensions import Buffer\n",
        "from numpy.typing import NDArray\nfrom typing_extensions import Buffer\n",
    )
    for name in BUFFERS:
        stub, count = re.subn(rf'(class {name}:\n(?:    """(?:.|\n)*?"""\n)?)', rf"\1\n{BUFFER_METHOD}", stub)
        if count != 1:
            raise RuntimeError(f"the stub has no class {name}")
    return f"# SPDX-License-Identifier: Apache-2.0\n# Made by tools/make_stubs.py; do not edit.\n{stub.rstrip()}\n"


if __name__ == "__main__":
    print(make(), end="")
