# SPDX-License-Identifier: Apache-2.0
"""The guarded child of leadline.guard: serves calls from its socket until its parent is done with it."""

from __future__ import annotations

import asyncio
import builtins
import faulthandler
import functools
import importlib
import inspect
import io
import linecache
import os
import signal
import socket
import sys
import threading
import traceback
import types
from typing import Any

from leadline._guard import errors, sources, transport
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

    global _caller
    connection = socket.socket(fileno=connection_fd)
    _caller = Caller(connection)
    builtins.input = _caller.input
    server = _Server(connection)
    transport.send(connection, ("ready", None, None))
    while server.serve():
        pass


class Caller:
    """Asks the process that called, in the middle of a call: to show something, or for a line of input."""

    def __init__(self, connection: socket.socket):
        self._connection = connection
        self._process = os.getpid()
        self._lock = threading.Lock()

    def is_reachable(self) -> bool:
        """Not from a process that the guarded code forked: the socket is its parent's."""
        return os.getpid() == self._process

    def ask(self, kind: str, *arguments: Any) -> Any:
        """The caller's answer. What was printed before is shown before, what is printed after it after."""
        if not self.is_reachable():
            raise RuntimeError(f"only the guarded process itself can ask its caller for {kind}, not one that it forked")
        with self._lock, transport.uninterrupted():
            for stream in (sys.stdout, sys.stderr):
                _flush(stream)
            transport.send(self._connection, ("request", kind, arguments))
            outcome, value = transport.receive(self._connection)
        if outcome == "answer":
            return value
        raise errors.unpack(value)

    def input(self, prompt: object = "", /) -> str:
        """builtins.input in a guarded process: asked by the caller."""
        text = str(prompt)
        if not self.is_reachable():
            raise EOFError("input() in a process that the guarded process forked: nobody can be asked")
        return str(self.ask("input", text))


_caller: Caller | None = None


def caller() -> Caller | None:
    """Where the guarded code's displays go; None outside of a guarded process."""
    return _caller


def _flush(stream: Any) -> None:
    try:
        stream.flush()
    except (AttributeError, OSError, ValueError):  # None, or closed by the called code
        pass


class _Server:
    def __init__(self, connection: socket.socket):
        self._connection = connection
        self._streams = sys.stdout, sys.stderr
        self._sources = sources.LoadedSources()
        self._environment = dict(os.environ)

    def serve(self) -> bool:
        """One call. False: the end."""
        own = os.getpid()
        try:
            parts = transport.receive_parts(self._connection)
        except (EOFError, ConnectionError):
            return False
        if self._sources.changed() or any(stream.closed for stream in self._streams):
            transport.send(self._connection, ("stale", None, None))
            return False
        reply = self._call(parts)
        del parts
        if os.getpid() != own:
            os._exit(0)  # a copy that the function forked and let run on: the answer is its parent's to give
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for stream in (sys.stdout, sys.stderr, *self._streams):
            _flush(stream)
        sys.stdout, sys.stderr = self._streams
        self._sources.take_in_new()
        return self._answer(reply)

    def _answer(self, reply: tuple[str, object, str | None]) -> bool:
        try:
            transport.send(self._connection, reply)
        except (ConnectionError, transport.ProtocolError):
            return False
        except BaseException as error:
            _, thing, text = reply
            name = getattr(thing, "name_unsendable", None)
            what = name() if name is not None else f"The result, of type {type(thing).__qualname__},"
            note = f"{what} cannot be sent from the guarded process: {error}"
            transport.send(self._connection, ("unsendable", note, text))
        return True

    def _call(self, parts: list[memoryview]) -> tuple[str, object, str | None]:
        try:
            self._sources.start_call()
            importlib.invalidate_caches()
            linecache.checkcache()
            function, args, kwargs, surroundings = transport.loads(parts)
            _enter(surroundings)
            if os.environ != self._environment:  # what an earlier call set was that call's
                os.environ.clear()
                os.environ.update(self._environment)
            _become_main(function)
        except BaseException as error:
            return "unreadable", f"{type(error).__name__}: {error}", traceback.format_exc()
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            return "result", _run(function, args, kwargs), None
        except SystemExit:
            raise
        except BaseException as error:
            frames = _frames_of_user(error)
            text = "".join(traceback.format_exception(type(error), error, frames, limit=_most_frames(frames)))
            error.__traceback__ = None
            return "error", errors.pack(error), text


def _run(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    result = function(*args, **kwargs)
    if inspect.iscoroutine(result):
        return asyncio.run(result)
    return result


def _most_frames(frames: types.TracebackType | None) -> int | None:
    """How many of them a text has: all, or the innermost of a million."""
    count = 0
    while frames is not None and count < 1000:
        frames, count = frames.tb_next, count + 1
    return -200 if frames is not None else None


def _frames_of_user(error: BaseException) -> types.TracebackType | None:
    """Without the worker's frames, and IPython's around a cell."""
    shown = error.__traceback__
    tail = shown
    while tail is not None:
        file = tail.tb_frame.f_code.co_filename
        tail = tail.tb_next
        if file == __file__ or os.sep + "IPython" + os.sep in file or file.endswith("notebook/cell.py"):
            shown = tail
        else:
            break
    return shown


def _enter(surroundings: dict[str, Any]) -> None:
    """Makes working folder and search path the caller's."""
    folder, path = surroundings["folder"], surroundings["path"]
    os.chdir(folder)  # even if it is there: one that was deleted and made again has the same name
    if sys.path != path:
        sys.path[:] = path
    if surroundings["notebook"]:
        sources.when_imported("IPython", _make_shell)


def _make_shell() -> None:
    """Displays of functions, and their figures, arrive in the caller's notebook."""
    if "leadline.notebook.guarded_shell" not in sys.modules:  # else a cell makes it, and imports IPython for it
        from leadline.notebook import guarded_shell

        guarded_shell.get()


def _become_main(function: Any) -> None:
    """Functions of a notebook or script came as values; a pool that the code starts looks for them in __main__."""
    while True:
        if isinstance(function, functools.partial):
            function = function.func
        elif isinstance(function, types.MethodType):
            function = function.__func__
        else:
            break
    if not isinstance(function, types.FunctionType):
        return
    namespace = function.__globals__
    if namespace.get("__name__") != "__main__" and function.__module__ != "__main__":
        return
    module = types.ModuleType("__main__")
    vars(module).update(namespace)
    vars(module).setdefault(function.__name__, function)
    for thing in list(vars(module).values()):
        if isinstance(thing, types.FunctionType) and thing.__module__ == "__main__":
            vars(module).update({k: v for k, v in thing.__globals__.items() if k not in vars(module)})
    module.__name__ = "__main__"
    sys.modules["__main__"] = module
