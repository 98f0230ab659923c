# SPDX-License-Identifier: Apache-2.0
"""leadline.guard: calls a function in a supervised child process, whose death is an exception here.

The child is a fresh Python, kept for the next call. Its limits and its end are native (leadline/guard/process.h).
"""

from __future__ import annotations

import asyncio
import atexit
import codecs
import contextlib
import functools
import inspect
import math
import numbers
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from leadline._guard import errors, front_end, transport
from leadline._leadline import Error, GuardedProcess, GuardReport, InvalidArgumentError, IoError, parse_bytes

_STACK_SIGNAL = signal.SIGRTMIN + 7
_INTERRUPT_SECONDS = 3.0  # for the function to end after Ctrl-C, before it is killed
_START_SECONDS = 120.0
_NOT_SENT = (
    "Functions and classes of a notebook or script travel with cloudpickle: pip install cloudpickle, or put them in a "
    "module. Open files, locks, generators and sessions cannot travel: make them inside the function."
)


class GuardError(Error):
    """The process that ran a guarded function died.

    `cause` is 'exit', 'signal', 'memory', 'processes', 'timeout' or 'interrupt'; `signal` and `exit_code` are numbers
    or None; `peak_bytes` is the most memory it had; `last_lines` is the end of its output; `python_stack` is where
    it was, when the interpreter could still say; `advice` is what to do about it.
    """

    __module__ = "leadline"  # where users find it

    code = "guard"

    def __init__(self, message: str, details: dict[str, Any] | None = None):
        super().__init__(message)
        details = details or {}
        self.cause: str = details.get("cause", "exit")
        self.signal: int | None = details.get("signal")
        self.exit_code: int | None = details.get("exit_code")
        self.peak_bytes: int = details.get("peak_bytes", 0)
        self.last_lines: list[str] = details.get("last_lines", [])
        self.python_stack: str = details.get("python_stack", "")
        self.advice: str = details.get("advice", "")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.args[0], {**self.__dict__})


class _ChildTraceback(Exception):
    """Where an exception was raised in the child, as the cause of the one raised here."""

    def __str__(self) -> str:
        return f'in the guarded process\n"""\n{self.args[0].rstrip()}\n"""'


def guard(
    fn: Callable[..., Any] | None = None,
    /,
    *args: Any,
    memory: int | str | None = None,
    timeout: float | None = None,
    processes: int = 1024,
    **kwargs: Any,
) -> Any:
    """Calls `fn(*args, **kwargs)` in a child process and returns what it returns.

        result = leadline.guard(train, data, memory="2GB", timeout=60)

        @leadline.guard(memory="2GB")       # without a function: a decorator
        def train(data): ...

    An `async def` is awaited in the child; what the decorator makes of one is awaited here. Displays and figures arrive
    in the notebook, and input() asks here. What `fn` raises is raised here. When the process dies, takes more than
    `memory` (bytes, or "2GB", "50%") with all it starts, has more than `processes` processes or takes longer than
    `timeout` seconds, GuardError says why; the caller continues. Output appears as it is written. Arrays travel in
    shared memory. Ctrl-C interrupts `fn`.

    The child is kept for the next call with the same limits: what it has imported stays imported. It protects from
    accidents, not from malice.
    """
    __tracebackhide__ = True
    limit: int | str = _parse_memory(memory)
    if isinstance(memory, str):
        limit = memory.strip()  # reports use its units; "50%" is of what there is when a child starts
    if timeout is not None and not (_is_number(timeout) and 0 < timeout < math.inf):
        raise InvalidArgumentError(f"timeout must be a positive number of seconds, not {timeout!r}")
    if not isinstance(processes, int) or processes < 1:
        raise InvalidArgumentError(f"processes must be positive, not {processes!r}")
    if fn is None:
        if args or kwargs:
            raise InvalidArgumentError("guard needs a function before its arguments")
        return functools.partial(_decorate, memory=limit, timeout=timeout, processes=processes)
    if not callable(fn):
        raise InvalidArgumentError(f"guard needs a function, not {type(fn).__qualname__}")
    return _call(fn, args, kwargs, limit, timeout, processes)


def _decorate(
    fn: Callable[..., Any], *, memory: int | str, timeout: float | None, processes: int
) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(fn):

        @functools.wraps(fn)
        async def guarded_coroutine(*args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            return await asyncio.to_thread(_call, fn, args, kwargs, memory, timeout, processes)

        return guarded_coroutine

    @functools.wraps(fn)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        return _call(fn, args, kwargs, memory, timeout, processes)

    return guarded


def _parse_memory(memory: int | str | None) -> int:
    """In bytes; 0: no limit."""
    if memory is None:
        return 0
    if not isinstance(memory, str) and not (_is_number(memory) and memory < math.inf):
        raise InvalidArgumentError(f"memory must be a number of bytes or a text such as '2GB', not {memory!r}")
    limit = parse_bytes(memory) if isinstance(memory, str) else int(memory)
    if limit <= 0:
        raise InvalidArgumentError(f"memory must be positive, not {memory!r}")
    return limit


def _is_number(value: Any) -> bool:
    """A real number, numpy's too; not NaN, and not a bool."""
    return not isinstance(value, bool) and isinstance(value, numbers.Real) and not math.isnan(value)


def _name(fn: Any) -> str:
    name = getattr(fn, "guard_name", None) or getattr(fn, "__qualname__", None)
    return name if isinstance(name, str) else type(fn).__qualname__


def _call(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    memory: int | str,
    timeout: float | None,
    processes: int,
) -> Any:
    __tracebackhide__ = True  # notebooks leave such frames out: the guard's own are not the user's
    if sys.is_finalizing():
        raise Error(
            f"guard cannot run '{_name(fn)}': this Python is shutting down (a __del__, or a thread that is still at "
            "work). Do it before the end of the program, or with atexit.register."
        )
    kind = "stale"
    value: Any = None
    text: str | None = None
    while kind == "stale":  # once at most: a child that has just been started has no old code
        surroundings = _surroundings()
        worker = _take(memory, processes)
        try:
            kind, value, text = worker.call(fn, args, kwargs, surroundings, timeout)
        finally:
            _give_back(worker)
    if kind == "result":
        return value
    if kind == "error":
        raise errors.unpack(value) from _ChildTraceback(text)
    cause = _ChildTraceback(text) if text else None
    if kind == "unreadable":
        raise InvalidArgumentError(
            f"'{_name(fn)}' could not be read by the guarded process: {value}. {_NOT_SENT}"
        ) from cause
    raise InvalidArgumentError(f"{value}. {_NOT_SENT}") from cause


class _Worker:
    """A child that serves calls, and the socket to it."""

    def __init__(self, memory: int | str, processes: int, environment: dict[bytes, bytes]):
        self.memory = _parse_memory(memory or None)
        self.settings = (memory, processes, environment, sys.executable)
        self._stack = -1
        try:
            self._stack = os.memfd_create("leadline-guard-stack")
            self._connection, other = socket.socketpair()
        except OSError as error:
            if self._stack >= 0:
                os.close(self._stack)
            raise IoError(f"guard cannot start a process: {error.strerror}") from error
        self._decoders: dict[int, codecs.IncrementalDecoder] = {}
        self.in_step = False  # the child waits for a call
        self._process: GuardedProcess | None = None
        try:
            fds = (other.fileno(), self._stack)
            code = (
                f"import sys; sys.path[:] = {sys.path!r}; sys.dont_write_bytecode = {bool(sys.dont_write_bytecode)}; "
                f"from leadline._guard.worker import main; "
                f"main({fds[0]}, {fds[1]}, {int(_STACK_SIGNAL)}, {os.getpid()})"
            )
            # Options such as -X and -W, as multiprocessing passes them on.
            options: list[str] = getattr(subprocess, "_args_from_interpreter_flags", list)()
            self._process = GuardedProcess(
                [sys.executable, *options, "-c", code],
                [name + b"=" + value for name, value in environment.items()],
                memory=self.memory, processes=processes, inherited=list(fds), stack_signal=int(_STACK_SIGNAL),
                like=memory if isinstance(memory, str) else "",
            )  # fmt: skip
            other.close()
            self.process.start_call(_START_SECONDS)
            self._await_reply("the guarded process")
        except BaseException:
            other.close()
            self.close()
            raise

    @property
    def process(self) -> GuardedProcess:
        assert self._process is not None, "it was closed"
        return self._process

    def call(
        self,
        fn: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        surroundings: dict[str, Any],
        timeout: float | None,
    ) -> tuple[str, Any, str | None]:
        __tracebackhide__ = True
        os.ftruncate(self._stack, 0)
        os.lseek(self._stack, 0, os.SEEK_SET)  # the child writes at the same position
        self._decoders = {}
        message = (fn, args, kwargs, surroundings)
        self.process.start_call(timeout or 0.0)
        self.in_step = False
        try:
            transport.send(self._connection, message)
        except ConnectionError:
            pass  # it is dead: the wait says how
        except (KeyboardInterrupt, SystemExit):
            raise
        except MemoryError as error:
            self.process.end_call()
            self.in_step = True
            raise MemoryError(f"there is no memory to send the arguments of '{_name(fn)}' with") from error
        except Exception as error:
            self.process.end_call()
            self.in_step = True  # nothing was sent
            raise InvalidArgumentError(
                f"cannot send '{_name(fn)}' or its arguments to the guarded process: {error}. {_NOT_SENT}"
            ) from error
        return self._await_reply(f"'{_name(fn)}'")

    def usable_again(self) -> bool:
        """Whether a next call would find what a fresh child has: no processes left running, and memory to use."""
        if not self.in_step or self.process.processes() != 1:
            return False
        return not self.memory or self.process.resident_bytes() < self.memory // 2

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process = None
        self._connection.close()
        if self._stack >= 0:
            os.close(self._stack)
            self._stack = -1

    def _await_reply(self, name: str) -> tuple[str, Any, str | None]:
        __tracebackhide__ = True
        watched = self._connection.fileno()
        kill_at = float("inf")
        interrupted = False
        while True:
            try:
                stream, data, readable, ended = self.process.wait(0.25, watched)
                if stream:
                    self._show(stream, data)
                if readable and watched >= 0:
                    try:
                        with transport.uninterrupted():
                            reply: tuple[str, Any, Any] = transport.receive(self._connection)
                    except (EOFError, ConnectionError):
                        # Dead, or about to be; a child that only closed its socket cannot be helped.
                        watched = -1
                        kill_at = min(kill_at, time.monotonic() + 5.0)
                        continue
                    if reply[0] == "request":
                        self._answer(reply[1], reply[2])
                        continue
                    if self.process.end_call():
                        break
                    watched = -1  # a limit was met: how it ends is known in a moment
            except KeyboardInterrupt:
                if interrupted:
                    self.process.kill()
                    raise
                interrupted = True
                kill_at = min(kill_at, time.monotonic() + _INTERRUPT_SECONDS)
                self.process.interrupt()
                continue
            if ended:
                self._drain()
                if interrupted:
                    raise KeyboardInterrupt
                raise self._death(name)
            if time.monotonic() > kill_at:
                self.process.kill()
        self._drain()
        self.in_step = reply[0] != "stale"
        if interrupted:
            raise KeyboardInterrupt from _ChildTraceback(reply[2] or "the function ended")
        return reply

    def _answer(self, kind: str, arguments: tuple[Any, ...]) -> None:
        """Does what the child asks for, after what it printed before."""
        self._drain(final=False)
        try:
            answer = ("answer", front_end.serve(kind, *arguments))
        except BaseException as error:
            answer = ("refused", errors.pack(error))
        # A child that died while somebody was typing is found by whoever waits for it.
        with contextlib.suppress(ConnectionError), transport.uninterrupted():
            transport.send(self._connection, answer)

    def _drain(self, *, final: bool = True) -> None:
        for _ in range(10_000):
            stream, data, _, _ = self.process.wait(0.0)
            if not stream:
                break
            self._show(stream, data)
        if not final:
            return
        for stream in tuple(self._decoders):
            self._show(stream, b"", final=True)

    def _show(self, stream: int, data: bytes, *, final: bool = False) -> None:
        decoder = self._decoders.setdefault(stream, codecs.getincrementaldecoder("utf-8")("replace"))
        target = sys.stdout if stream == 1 else sys.stderr
        text = decoder.decode(data, final)
        if not text or target is None:
            return
        try:
            target.write(text)
        except UnicodeEncodeError:  # a terminal with few characters must not end the call
            encoding = getattr(target, "encoding", None) or "ascii"
            target.write(text.encode(encoding, "backslashreplace").decode(encoding))
        except ValueError as error:  # of a file that is closed
            raise IoError(f"the output of the guarded process cannot be written: {error}") from error
        if hasattr(target, "flush"):
            target.flush()

    def _death(self, name: str) -> GuardError:
        report: GuardReport = self.process.report()
        size = os.fstat(self._stack).st_size
        stack = _own_frames(os.pread(self._stack, min(size, 1 << 16), 0).decode("utf-8", "replace"))
        lines = list(report.last_lines)
        text = [f"{name} {report.summary}. {report.advice}".rstrip()]
        if stack:
            text.append(f"Python stack:\n{stack}")
        if lines:
            text.append("Last lines:\n  " + "\n  ".join(lines[-10:]))
        details = {
            "cause": report.cause,
            "signal": report.signal or None,
            "exit_code": report.exit_code if report.exit_code >= 0 else None,
            "peak_bytes": report.peak_bytes,
            "last_lines": lines,
            "python_stack": stack,
            "advice": report.advice,
        }
        return GuardError("\n".join(text), details)


def _surroundings() -> dict[str, Any]:
    """Of the caller, for the child to be in."""
    try:
        folder = os.getcwd()
    except OSError as error:
        raise IoError(
            "guard cannot run in a working folder that was deleted: os.chdir() to one that is there, and call again"
        ) from error
    return {"folder": folder, "path": sys.path, "notebook": front_end.shell() is not None}


def _own_frames(stack: str) -> str:
    """What faulthandler wrote, without the frames of the worker below the function's."""
    below = ("_guard/worker.py", 'File "<string>"', "/leadline/notebook/", "/IPython/core/")
    return "\n".join(line for line in stack.splitlines() if not any(text in line for text in below)).strip()


_lock = threading.Lock()
_idle: list[_Worker] = []  # at most one: threads that guard at the same time have a child each
_keeps = True  # until the end of this process


def _take(memory: int | str, processes: int) -> _Worker:
    environment = dict(os.environb)
    with _lock:
        worker = _idle.pop() if _idle else None
    if worker is not None:
        if worker.settings == (memory, processes, environment, sys.executable) and not worker.process.report().ended:
            return worker
        worker.close()
    if not sys.executable:
        raise Error("guard cannot find the Python interpreter: sys.executable is empty")
    return _Worker(memory, processes, environment)


def _give_back(worker: _Worker) -> None:
    if _keeps and worker.usable_again():
        with _lock:
            if not _idle:
                _idle.append(worker)
                return
    worker.close()


def _close_idle() -> None:
    """Ends the child that is kept for the next call."""
    with _lock:
        workers = _idle[:]
        _idle.clear()
    for worker in workers:
        worker.close()


@atexit.register
def _close_for_good() -> None:
    global _keeps
    _keeps = False
    _close_idle()


def _forget_after_fork() -> None:
    global _lock
    _lock = threading.Lock()
    _idle.clear()  # the parent's children are not this process's


os.register_at_fork(after_in_child=_forget_after_fork)
