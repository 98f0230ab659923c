# SPDX-License-Identifier: Apache-2.0
"""`python -m leadline.jupyter -- PROGRAM ...`: runs a kernel, passes signals on to it, and when it dies publishes why
on its own iopub channel before it ends as the kernel did. For front ends that start kernels themselves."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

from leadline.jupyter.life import Death, KernelLife
from leadline.jupyter.wire import LAST_WORDS_SECONDS, Activity, Address, listener, publish

_LOOK_SECONDS = 1.0
_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_PR_SET_PDEATHSIG = 1


def find_connection_file(command: list[str]) -> str:
    """The file among the words of a kernel's command that says how to reach it; empty: none."""
    for word in reversed(command):
        path = word.rpartition("=")[2]
        if path.endswith(".json") and os.path.isfile(path):
            return path
    return ""


def supervise(command: list[str]) -> int:
    """Runs the kernel to its end; its exit code. Does not return when a signal ended the kernel."""
    if not command:
        print("leadline kernel: expected -- and the command of a kernel", file=sys.stderr)
        return 2
    if os.environ.get("LEADLINE_PROVISIONED"):  # Leadline's provisioner follows this process: nothing to do here
        os.execvp(command[0], command)
    file = find_connection_file(command)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])  # it is waited for below
    process = _start(command)
    session = os.environ.get("JPY_SESSION_NAME") or os.path.basename(file)
    life = KernelLife(process, command, session, os.getcwd(), os.environ)
    activity = _follow(file, life)
    _pass_signals_on(life)
    while (status := life.reap()) is None:
        life.look()
        signal.sigtimedwait([signal.SIGCHLD], _LOOK_SECONDS)
    if not life.asked and activity is not None:
        activity.closed.wait(LAST_WORDS_SECONDS)
    if not life.asked and not (activity is not None and activity.shutting_down):
        _tell(life, status, activity)
    return _end_like(status)


def _start(command: list[str]) -> subprocess.Popen[bytes]:
    """The child ends when this process does, however that happens."""
    library = ctypes.CDLL(None)
    parent = os.getpid()

    def prepare() -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
        library.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    # Kernels look whether their parent is still the one that the front end named. In a session of its own, as Jupyter
    # starts kernels: front ends interrupt the whole group of what they started, and would reach the kernel twice.
    env = {**os.environ, "JPY_PARENT_PID": str(parent)}
    return subprocess.Popen(command, env=env, preexec_fn=prepare, start_new_session=True)


def _follow(file: str, life: KernelLife) -> Activity | None:
    try:
        address = Address.of(json.loads(Path(file).read_text()))
    except (OSError, ValueError):
        return None
    return listener().follow("kernel", address, life.look) if address is not None else None


def _pass_signals_on(life: KernelLife) -> None:
    def pass_on(number: int, _frame: object) -> None:
        if number == signal.SIGINT:
            life.interrupted = time.monotonic()
        else:
            life.note_request("shutdown")
        if life.process.returncode is None:
            os.killpg(life.process.pid, number)  # with what it started, as Jupyter does it

    for number in _PASSED_ON:
        signal.signal(number, pass_on)


def _tell(life: KernelLife, status: int, activity: Activity | None) -> None:
    try:
        cell = activity.cell if activity is not None else None
        death = Death(life.postmortem(status, cell), cell)
        text = death.text()
        print(text, file=sys.stderr, flush=True)
        if cell is not None and activity is not None and publish(activity.address, cell.header, text):
            death.note_told()
    except Exception as error:  # the end of the kernel must be seen as it was, whatever fails here
        print(f"leadline: no post-mortem: {error!r}", file=sys.stderr)


def _end_like(status: int) -> int:
    """Exits as the kernel did, so that who waits for this process sees the same."""
    if status >= 0:
        return status
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.stderr.flush()
    if -status not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
    return 128 - status
