# SPDX-License-Identifier: Apache-2.0
"""Exceptions on their way out of a guarded process.

They arrive as themselves where that is possible without importing anything: TensorFlow's errors must not bring
TensorFlow into the process that keeps away from it. Otherwise something of the same name and words arrives, whose class
derives from the nearest base that is known here.
"""

from __future__ import annotations

import io
import pickle
import sys
import types
from typing import Any

from leadline._guard import transport

Packed = tuple[list[bytes], list[tuple[str, str]], str]


def pack(error: BaseException) -> Packed:
    """In the guarded process: pickles of an exception, the best first, the names of its classes, its words."""
    try:
        words = str(error)
    except Exception as failure:
        words = f"(its text cannot be had: {failure})"
    names = [(kind.__module__, kind.__qualname__) for kind in type(error).__mro__]
    # Many classes cannot be made again from `args`: their __init__ takes something else.
    pickles = [data for thing in (error, _Stripped(error)) if (data := _dumps(thing)) is not None]
    return pickles, names, words


def unpack(packed: Packed) -> BaseException:
    """In the caller: the exception, or what looks like it."""
    pickles, names, words = packed
    for data in pickles:
        try:
            error = KnownOnly(io.BytesIO(data)).load()
            if isinstance(error, BaseException):
                return error
        except Exception:
            pass
    bases = (found for name in names if (found := _known(*name)) is not None)
    base = next((b for b in bases if isinstance(b, type) and issubclass(b, BaseException)), Exception)
    module, qualname = names[0]
    kind: type[BaseException] = types.new_class(
        qualname.rpartition(".")[2],
        (base,),
        exec_body=lambda names: names.update({"__module__": module, "__str__": lambda self: words}),
    )
    return _restore(kind, (words,), {})


def _dumps(thing: object) -> bytes | None:
    file = io.BytesIO()
    try:
        transport.pickler_class()(file, protocol=5).dump(thing)
    except Exception:
        return None
    return file.getvalue()


class _Stripped:
    """Arrives as the exception, with None for every attribute and argument that cannot travel."""

    def __init__(self, error: BaseException):
        self._error = error

    def __reduce__(self) -> tuple[Any, ...]:
        state = {name: self._sendable(value) for name, value in vars(self._error).items()}
        return _restore, (type(self._error), tuple(map(self._sendable, self._error.args)), state)

    @staticmethod
    def _sendable(value: object) -> object:
        return value if _dumps(value) is not None else None


def _restore(kind: type[BaseException], args: tuple[Any, ...], state: dict[str, Any]) -> BaseException:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


class KnownOnly(pickle.Unpickler):
    """Finds only what belongs to a package that is imported already."""

    def find_class(self, module: str, name: str) -> object:
        if module.partition(".")[0] not in sys.modules:
            raise pickle.UnpicklingError(f"{module} is not imported here")
        return super().find_class(module, name)


def _known(module: str, qualname: str) -> object:
    thing = sys.modules.get(module)
    for name in qualname.split("."):
        thing = getattr(thing, name, None)
    return thing
