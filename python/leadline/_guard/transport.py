# SPDX-License-Identifier: Apache-2.0
"""Objects between a process and its guarded child: pickle 5 over a socket, large buffers in shared memory.

A message is a header, a table that says where the pickle and each buffer are, and the parts that are too small for
shared memory. Shared memory is anonymous (memfd) and travels as a descriptor: it has no name, and is gone with its last
user. The receiver maps it and copies nothing. Where it cannot be had (a limit of file sizes is one of shared memory
too), all parts go through the socket.
"""

from __future__ import annotations

import builtins
import contextlib
import dis
import errno
import importlib
import io
import itertools
import marshal
import os
import pickle
import signal
import socket
import struct
import sys
import threading
import types
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from leadline._leadline import SharedMapping

_HEADER = struct.Struct("<4sIIQ")  # magic, descriptors, rows of the table, bytes that follow it
_ROW = struct.Struct("<iQQ")  # descriptor (-1: in the message), offset, bytes
_MAGIC = b"LLG1"
_SMALL = 64 << 10  # buffers below stay in the pickle
_OWN = 1 << 20  # buffers from here on have a descriptor each, so that each can be freed by itself
_MOST_INLINE = 1 << 46
_MOST_DESCRIPTORS = 64  # the kernel passes at most 253 in one message
_ALIGN = 64
# What memfd_create, or writing to one, says where RLIMIT_FSIZE, the descriptors or the kernel forbid it.
_NO_SHARED_MEMORY = (errno.EFBIG, errno.EMFILE, errno.ENFILE, errno.ENOSYS, errno.EPERM, errno.ENOSPC)


class ProtocolError(RuntimeError):
    """What came is not a message."""


def send(connection: socket.socket, message: object) -> None:
    """Sends an object. What cannot be pickled raises before anything is sent."""
    file = io.BytesIO()
    buffers: list[memoryview] = []

    def keep(buffer: pickle.PickleBuffer) -> bool:
        view = buffer.raw()
        if view.nbytes < _SMALL:
            return True
        buffers.append(view)
        return False

    pickler_class()(file, protocol=5, buffer_callback=keep).dump(message)
    parts = [file.getbuffer(), *buffers]
    descriptors: list[int] = []
    try:
        try:
            rows, inline = _place(parts, descriptors)
        except OSError as error:
            if error.errno not in _NO_SHARED_MEMORY:
                raise
            while descriptors:
                os.close(descriptors.pop())
            rows, inline = _place_inline(parts)
        header = _HEADER.pack(_MAGIC, len(descriptors), len(rows), sum(part.nbytes for part in inline))
        head = header + b"".join(_ROW.pack(*row) for row in rows)
        sent = socket.send_fds(connection, [head], descriptors) if descriptors else connection.send(head)
        connection.sendall(memoryview(head)[sent:])
        for part in inline:
            connection.sendall(part)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


_Rows = list[tuple[int, int, int]]


def _place_inline(parts: list[memoryview]) -> tuple[_Rows, list[memoryview]]:
    rows = []
    placed = []
    offset = 0
    for part in parts:
        padding = -part.nbytes % _ALIGN
        rows.append((-1, offset, part.nbytes))
        placed += [part, memoryview(bytes(padding))]
        offset += part.nbytes + padding
    return rows, placed


def _place(parts: list[memoryview], descriptors: list[int]) -> tuple[_Rows, list[memoryview]]:
    """Writes large parts to shared memory. Returns the table, and the parts that go with the message."""
    rows = []
    inline: list[memoryview] = []
    common = -1  # index of the descriptor that smaller buffers share
    common_size = 0
    for part in parts:
        if part.nbytes < _OWN and part is parts[0]:
            inline = [part]
            rows.append((-1, 0, part.nbytes))
        elif part.nbytes >= _OWN and len(descriptors) < _MOST_DESCRIPTORS - 1:
            descriptors.append(os.memfd_create("leadline-guard"))
            _write(descriptors[-1], part, 0)
            rows.append((len(descriptors) - 1, 0, part.nbytes))
        else:
            if common < 0:
                common = len(descriptors)
                descriptors.append(os.memfd_create("leadline-guard"))
            _write(descriptors[common], part, common_size)
            rows.append((common, common_size, part.nbytes))
            common_size += -(-part.nbytes // _ALIGN) * _ALIGN
    return rows, inline


def _write(descriptor: int, part: memoryview, offset: int) -> None:
    done = 0
    while done < part.nbytes:
        done += os.pwrite(descriptor, part[done : done + (1 << 30)], offset + done)


def receive(connection: socket.socket) -> Any:
    """The next object. EOFError when the other side is gone; ProtocolError when what comes makes no sense."""
    return loads(receive_parts(connection))


def loads(parts: list[memoryview]) -> Any:
    """The object of a message."""
    return pickle.loads(parts[0], buffers=parts[1:])


def receive_parts(connection: socket.socket) -> list[memoryview]:
    """The next message, which is not looked into: loads() imports what it names."""
    head, descriptors, _, _ = socket.recv_fds(connection, _HEADER.size, _MOST_DESCRIPTORS)
    try:
        if not head:
            raise EOFError
        head += _read(connection, _HEADER.size - len(head))
        magic, count, row_count, inline_size = _HEADER.unpack(head)
        if magic != _MAGIC or count != len(descriptors) or not 1 <= row_count < 1 << 24 or inline_size >= _MOST_INLINE:
            raise ProtocolError("the guarded process sent something that is not a result")
        rows = list(_ROW.iter_unpack(_read(connection, row_count * _ROW.size)))
        sources = [memoryview(SharedMapping(fd, os.fstat(fd).st_size)) for fd in descriptors]
        sources.append(memoryview(_read(connection, inline_size)))  # row -1
        parts = [sources[index][offset : offset + size] for index, offset, size in rows]
        if any(part.nbytes != row[2] for part, row in zip(parts, rows, strict=True)):
            raise ProtocolError("the guarded process sent less than it announced")
    except IndexError:
        raise ProtocolError("the guarded process sent a table that is wrong") from None
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    return parts


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Keeps Ctrl-C for later: half a message would be taken for the next one."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is None:
        yield
        return
    pressed = []
    before = signal.signal(signal.SIGINT, lambda *_: pressed.append(True))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed:
        signal.raise_signal(signal.SIGINT)


def _read(connection: socket.socket, size: int) -> bytearray:
    data = bytearray(size)
    view = memoryview(data)
    while view:
        count = connection.recv_into(view)
        if count == 0:
            raise EOFError
        view = view[count:]
    return data


def pickler_class() -> type[pickle.Pickler]:
    """cloudpickle's where it is installed, else one of our own."""
    try:
        import cloudpickle
    except ImportError:
        return _ValuePickler

    class Pickler(_Unwrapping, cloudpickle.Pickler):  # type: ignore[misc,unused-ignore]  # cloudpickle has no types
        pass

    return Pickler


def _find(module_name: str | None, qualname: str) -> object:
    """What an import in the other process would find; nothing for __main__, which is another program there."""
    if module_name is None or module_name == "__main__":
        return None
    thing = sys.modules.get(module_name)
    for name in qualname.split("."):
        thing = getattr(thing, name, None)
    return thing


if TYPE_CHECKING:
    _Base = pickle.Pickler  # what the classes below are mixed with
else:
    _Base = object


_FILES = (io.TextIOWrapper, io.BufferedReader, io.BufferedWriter, io.BufferedRandom, io.FileIO)


class _Unwrapping(_Base):
    """A decorated function is found under its name, the function inside it is not: send its wrapper. Open files do not
    travel as copies of what is in them, as cloudpickle would have it."""

    def reducer_override(self, thing: Any) -> Any:
        if isinstance(thing, _FILES) and thing not in (sys.stdin, sys.stdout, sys.stderr):
            raise pickle.PicklingError(f"the open file {getattr(thing, 'name', thing)!r} cannot be sent")
        if isinstance(thing, types.FunctionType):
            found = _find(thing.__module__, thing.__qualname__)
            if found is not thing and getattr(found, "__wrapped__", None) is thing:
                return _unwrap, (found,)
        return super().reducer_override(thing)


def _unwrap(function: Any) -> Any:
    return function.__wrapped__


class _Values(_Base):
    """Functions that an import does not find go as code, with the globals and closures they use."""

    def reducer_override(self, thing: Any) -> Any:
        if isinstance(thing, types.ModuleType):
            return importlib.import_module, (thing.__name__,)
        if isinstance(thing, types.FunctionType) and _find(thing.__module__, thing.__qualname__) is not thing:
            return self._reduce_function(thing)
        if isinstance(thing, type) and thing.__module__ == "__main__":
            raise pickle.PicklingError(f"the class {thing.__qualname__} is defined in __main__ or a notebook")
        return NotImplemented

    def _reduce_function(self, function: types.FunctionType) -> tuple[Any, ...]:
        names = _global_names(function.__code__)
        state = {
            "globals": {name: function.__globals__[name] for name in names if name in function.__globals__},
            "cells": [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)],
            "defaults": function.__defaults__,
            "kwdefaults": function.__kwdefaults__,
            "attributes": {name: value for name, value in vars(function).items() if name != "__wrapped__"},
        }
        empty = [not _is_filled(cell) for cell in function.__closure__ or ()]
        code = marshal.dumps(function.__code__)
        made = (code, function.__module__, function.__name__, function.__qualname__, empty, id(self))
        return _make_function, made, state, None, None, _fill_function


class _ValuePickler(_Unwrapping, _Values, pickle.Pickler):
    """For where cloudpickle is not installed."""


def _global_names(code: types.CodeType) -> set[str]:
    names = {i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    inner = (_global_names(constant) for constant in code.co_consts if isinstance(constant, types.CodeType))
    return names.union(*inner)


def _is_filled(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


_globals_of_message: tuple[object, dict[str, dict[str, Any]]] = (None, {})


def _make_function(
    code: bytes, module: str, name: str, qualname: str, empty: list[bool], message: int
) -> types.FunctionType:
    global _globals_of_message  # functions of one message and module share their globals
    if _globals_of_message[0] != message:
        _globals_of_message = (message, {})
    namespace = _globals_of_message[1].setdefault(module, {"__builtins__": builtins, "__name__": module})
    cells = tuple(types.CellType() for _ in empty)
    function = types.FunctionType(marshal.loads(code), namespace, name, None, cells or None)
    function.__qualname__ = qualname
    function.__module__ = module
    function.__dict__["__empty_cells__"] = empty
    return function


def _fill_function(function: types.FunctionType, state: dict[str, Any]) -> None:
    empty = function.__dict__.pop("__empty_cells__")
    filled = itertools.compress(function.__closure__ or (), (not e for e in empty))
    for cell, value in zip(filled, state["cells"], strict=True):
        cell.cell_contents = value
    function.__globals__.update(state["globals"])
    function.__defaults__ = state["defaults"]
    function.__kwdefaults__ = state["kwdefaults"]
    function.__dict__.update(state["attributes"])
