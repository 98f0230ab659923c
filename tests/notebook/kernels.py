# SPDX-License-Identifier: Apache-2.0
"""Jupyter kernels for tests: started by jupyter_client as a notebook server does, spoken to in its messages.

A kernel has a folder and sockets of its own (no ports), and ends with everything it started: close() kills what is left
and reports it, so that a test fails that leaves a process behind.
"""

from __future__ import annotations

import contextlib
import os
import queue
import re
import shutil
import signal
import tempfile
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path

import jupyter_client
import zmq
from jupyter_client.kernelspec import KernelSpec

ROOT = Path(__file__).resolve().parents[2]
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_POLL = 0.1
_MARK = "LEADLINE_TEST_KERNEL"
_PATIENCE = float(os.environ.get("LEADLINE_PATIENCE", "1"))  # more for machines that are emulated
_START_SECONDS = 60 * _PATIENCE


def environment(name: str, variable: str) -> str | None:
    """The Python of an environment of this repository; the variable names another. None when there is none."""
    python = os.environ.get(variable) or str(ROOT / name / "bin" / "python")
    return python if os.access(python, os.X_OK) else None


PLAIN = environment(".venv", "LEADLINE_NOTEBOOK_PYTHON")
TENSORFLOW = environment(".venv-tensorflow", "LEADLINE_TENSORFLOW_PYTHON")


@dataclass
class Result:
    """What a cell gave."""

    stdout: str = ""
    stderr: str = ""
    displays: list[dict] = field(default_factory=list)  # data by MIME type, in order; the value of the cell too
    error: str | None = None  # the exception's name
    message: str = ""  # and what it says
    traceback: str = ""
    died: bool = False  # the kernel did, before the cell ended
    seconds: float = 0.0
    messages: list[tuple[float, str, dict]] = field(default_factory=list)  # (second, type, content)

    @property
    def html(self) -> list[str]:
        return [data["text/html"] for data in self.displays if "text/html" in data]

    @property
    def value(self) -> str | None:
        """The last text/plain."""
        texts = [data["text/plain"] for data in self.displays if "text/plain" in data]
        return texts[-1] if texts else None

    def __str__(self) -> str:
        end = "the kernel died" if self.died else f"{self.error}: {self.message}" if self.error else "no error"
        return f"{end}\n--- stdout\n{self.stdout[-4000:]}\n--- stderr\n{self.stderr[-4000:]}\n{self.traceback[-4000:]}"


class MemoryGroup:
    """A control group that may take this many bytes; `wrapper` starts a program in it. Use it with `with`.

    `made` is False where no such group can be made."""

    def __init__(self, limit: int):
        self.path = None
        for folder, files in _group_places():
            path = folder / f"leadline-test-{os.getpid()}-{uuid.uuid4().hex[:8]}"
            try:
                path.mkdir()
                (path / files[0]).write_text(str(limit))
                for name in files[1:]:  # swap: there may be none to limit
                    with contextlib.suppress(OSError):
                        (path / name).write_text(str(limit if "memsw" in name else 0))
                self.path = path
                break
            except OSError:
                with contextlib.suppress(OSError):
                    path.rmdir()
        self.made = self.path is not None
        self.wrapper = ("sh", "-c", 'echo $$ > "$0" && exec "$@"', f"{self.path}/cgroup.procs")

    def __enter__(self) -> MemoryGroup:
        return self

    def __exit__(self, *_) -> None:
        for _ in range(50):
            if self.path is None:
                return
            with contextlib.suppress(OSError):
                self.path.rmdir()
                self.path = None
            time.sleep(0.1)
        raise AssertionError(f"{self.path} cannot be removed: {(self.path / 'cgroup.procs').read_text()!r}")


def _group_places() -> list[tuple[Path, tuple[str, ...]]]:
    """Folders of this process's groups, and the files that limit memory in a group below."""
    places = []
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        path = path.lstrip("/")
        if controllers == "memory":
            files = ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes")
            places.append((Path("/sys/fs/cgroup/memory") / path, files))
        elif controllers == "":
            for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
                places.append((Path(root) / path, ("memory.max", "memory.swap.max")))
    return [place for place in places if place[0].is_dir()]


class Kernel:
    """One kernel and its notebook. Use it with `with`."""

    def __init__(
        self, python: str, folder: Path, *, wrapper: tuple[str, ...] = (), env: dict[str, str | None] | None = None
    ):
        """`wrapper` are words before the Python; in `env` None unsets a variable."""
        self.folder = Path(folder)
        self._own = Path(tempfile.mkdtemp(prefix="kernel"))  # short: names of sockets are at most 107 bytes
        self._context = zmq.Context()
        command = [*wrapper, python, "-Xfrozen_modules=off", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        self._manager = jupyter_client.KernelManager(
            context=self._context,
            transport="ipc",
            ip=str(self._own / "s"),
            connection_file=str(self._own / f"kernel-{uuid.uuid4()}.json"),
        )
        self._manager.shutdown_wait_time = 10.0
        self._manager._kernel_spec = KernelSpec(argv=command, display_name="test", language="python")
        self._env = _environment(self._own, env or {})
        self._client = None
        self.left_behind: list[str] = []
        try:
            self._manager.start_kernel(env=self._env, cwd=str(self.folder))
            self._connect()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Kernel:
        return self

    def __exit__(self, *exception) -> None:
        self.close()
        if exception[0] is None:
            assert not self.left_behind, f"the kernel left processes behind: {self.left_behind}"

    def _connect(self) -> None:
        if self._client is not None:
            self._client.stop_channels()
        self._client = self._manager.client()
        self._client.start_channels(stdin=False, hb=False)
        self._client.wait_for_ready(timeout=_START_SECONDS)

    @property
    def pid(self) -> int:
        return self._manager.provisioner.process.pid

    @property
    def exit_code(self) -> int | None:
        """As subprocess returns it: negative for a signal; None while it runs."""
        process = self._manager.provisioner.process
        return process.poll() if process is not None else None

    def run(self, code: str, timeout: float = 60, *, on_message=None) -> Result:
        """Runs a cell and waits for its end or the kernel's. `on_message(type, content)` sees messages as they come.

        A cell that takes too long is interrupted, then killed with its kernel, and is a TimeoutError."""
        result, started = Result(), time.monotonic()
        timeout *= _PATIENCE
        request = self._client.execute(code, allow_stdin=False)
        while True:
            result.seconds = time.monotonic() - started
            if result.seconds > timeout:
                self._stop_late_cell(request)
                raise TimeoutError(f"a cell took more than {timeout} s:\n{code[:400]}\n{result}")
            try:
                message = self._client.get_iopub_msg(timeout=_POLL)
            except queue.Empty:
                if self.exit_code is None:
                    continue
                result.died = True
                break
            if message["parent_header"].get("msg_id") != request:
                continue
            kind, content = message["msg_type"], message["content"]
            result.messages.append((time.monotonic() - started, kind, content))
            if on_message is not None:
                on_message(kind, content)
            if kind == "status" and content["execution_state"] == "idle":
                break
            _enter(result, kind, content)
        result.seconds = time.monotonic() - started
        if not result.died:
            with contextlib.suppress(queue.Empty):
                self._client.get_shell_msg(timeout=5)
        return result

    def _stop_late_cell(self, request: str) -> None:
        self.interrupt()
        end = time.monotonic() + 5
        while time.monotonic() < end and self.exit_code is None:
            with contextlib.suppress(queue.Empty):
                message = self._client.get_iopub_msg(timeout=_POLL)
                idle = message["content"].get("execution_state") == "idle"
                if idle and message["parent_header"].get("msg_id") == request:
                    return
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def answers(self) -> bool:
        """Whether 1+1 is 2, in this very kernel."""
        if self.exit_code is not None:
            return False
        result = self.run("1+1", timeout=20)
        return result.value == "2" and result.error is None

    def interrupt(self) -> None:
        """What the front end's stop button does."""
        self._manager.interrupt_kernel()

    def restart(self) -> None:
        """Another process for the same notebook and connection. As notebook servers do it: a kernel that lives is asked
        to end first."""
        self._manager.restart_kernel(now=self.exit_code is not None)
        self._connect()

    def peak_bytes(self) -> int:
        """Most resident memory of the kernel's process so far."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return 1024 * int(re.search(r"VmHWM:\s+(\d+)", status)[1])

    def processes(self) -> list[int]:
        """The kernel and everything it started, also what outlived it."""
        return _marked(self._own)

    def close(self) -> None:
        """Ends the kernel; what it had started and did not take along is killed and listed in `left_behind`."""
        if self._client is not None:
            self._client.stop_channels()
            self._client = None
        if self._manager.has_kernel:
            self._manager.shutdown_kernel(now=True)
        self._manager.cleanup_resources()
        self._context.destroy(linger=0)
        self.left_behind += _end(self._own)
        shutil.rmtree(self._own, ignore_errors=True)


def _environment(own: Path, changes: dict[str, str | None]) -> dict[str, str]:
    env = {**os.environ, "IPYTHONDIR": str(own / "ipython"), "JUPYTER_RUNTIME_DIR": str(own), "KERAS_HOME": str(own)}
    env.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="", PYDEVD_DISABLE_FILE_VALIDATION="1")
    env[_MARK] = str(own)
    env.pop("KERAS_BACKEND", None)  # what is there must do
    for name, value in changes.items():
        if value is None:
            env.pop(name, None)
        else:
            env[name] = value
    return env


def _enter(result: Result, kind: str, content: dict) -> None:
    if kind == "stream":
        setattr(result, content["name"], getattr(result, content["name"]) + content["text"])
    elif kind in ("display_data", "execute_result"):
        result.displays.append(content["data"])
    elif kind == "error":
        result.error, result.message = content["ename"], _COLOUR.sub("", content["evalue"])
        result.traceback = _COLOUR.sub("", "\n".join(content["traceback"]))


def _marked(own: Path) -> list[int]:
    """Living processes that inherited the environment of a kernel."""
    mark = f"{_MARK}={own}\0".encode()
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if mark in Path(f"/proc/{entry}/environ").read_bytes() and _state(int(entry))[1] not in "ZX":
                found.append(int(entry))
    return found


def _state(pid: int) -> tuple[str, str]:
    """Name and state of a process. Raises OSError when it is gone."""
    name, rest = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)
    return name.partition("(")[2], rest.split()[0]


def _end(own: Path, patience: float = 5.0) -> list[str]:
    """Waits for the processes of a kernel to be gone, then kills them; says which had to be killed."""
    end = time.monotonic() + patience
    while (rest := _marked(own)) and time.monotonic() < end:
        time.sleep(0.05)
    named = []
    for pid in rest:
        with contextlib.suppress(OSError):
            named.append(f"{pid} {_state(pid)}")
            os.kill(pid, signal.SIGKILL)
    return named
