# SPDX-License-Identifier: Apache-2.0
"""The guarded child of leadline.guard: serves calls from its socket until its parent is done with it."""

from __future__ import annotations

import faulthandler
import io
import os
import signal
import socket
import sys
import traceback

from leadline._guard import errors, transport
from leadline._leadline import die_with_parent


def main(connection_fd: int, stack_fd: int, stack_signal: int, parent: int) -> None:
    die_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    faulthandler.enable(stack_fd)
    faulthandler.register(stack_signal, stack_fd, all_threads=True)
    for descriptor in (connection_fd, stack_fd):
        os.set_inheritable(descriptor, False)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    for stream in (sys.stdout, sys.stderr):
        assert isinstance(stream, io.TextIOWrapper)
        stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)

    connection = socket.socket(fileno=connection_fd)
    transport.send(connection, ("ready", None, None))
    while _serve(connection):
        pass


def _serve(connection: socket.socket) -> bool:
    own = os.getpid()
    try:
        reply = _call(connection)
    except EOFError:
        return False
    if os.getpid() != own:
        os._exit(0)  # a copy that the function forked and let run on: the answer is its parent's to give
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):  # the called code closed it
            pass
    try:
        transport.send(connection, reply)
    except OSError:
        return False
    except BaseException as error:
        _, thing, text = reply
        note = f"The result, of type {type(thing).__qualname__}, cannot be sent from the guarded process: {error}"
        transport.send(connection, ("unsendable", note, text))
    return True


def _call(connection: socket.socket) -> tuple[str, object, str | None]:
    try:
        function, args, kwargs, folder, path = transport.receive(connection)
        if os.getcwd() != folder:
            os.chdir(folder)
        if sys.path != path:
            sys.path[:] = path
    except EOFError:
        raise
    except BaseException as error:
        return "unreadable", f"{type(error).__name__}: {error}", traceback.format_exc()
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        return "result", function(*args, **kwargs), None
    except SystemExit:
        raise
    except BaseException as error:
        inner = error.__traceback__.tb_next if error.__traceback__ else None  # without this function
        text = "".join(traceback.format_exception(type(error), error, inner))
        error.__traceback__ = None
        return "error", errors.pack(error), text
