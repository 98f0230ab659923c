# SPDX-License-Identifier: Apache-2.0
"""The life of a kernel as its parent sees it: memory from time to time, the exit status at the end."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from leadline._leadline import Postmortem, flights_folder, look_at_process, mark_reported, postmortem_of_end
from leadline.jupyter.wire import Cell

_KIB = 1024
_MOST_SAMPLES = 1200  # an hour of them, three seconds apart
_CLOSEST_SECONDS = 0.2


class KernelLife:
    """One process of a kernel, from its start to its end."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        command: Sequence[str],
        session: str,
        folder: str,
        env: Mapping[str, str],
    ) -> None:
        self.process = process
        self.started = time.time()
        self.command = " ".join(command)
        self.session, self.folder = session, folder
        self.flights = folder_of_recordings(env)
        self.asked = ""  # what it was asked to do by whoever may: "shutdown", "restart"; empty: nothing
        self.interrupted = 0.0  # when it was last sent SIGINT
        self.ended = 0.0
        # Not ru_maxrss of this process, which includes that of the program it was started by.
        self._own_peak = int(look_at_process(os.getpid())["peak_resident"])
        self._peak = 0
        self._samples: deque[tuple[float, int, int, int]] = deque(maxlen=_MOST_SAMPLES)
        self._last: dict[str, Any] = {}
        self._last_time = 0.0
        self.look()

    def look(self) -> None:
        """Reads the memory and the counters of the living process."""
        now = time.monotonic()
        if now - self._last_time < _CLOSEST_SECONDS or self.ended:
            return
        look = dict(look_at_process(self.process.pid))
        if not look["resident"]:  # it is gone, or only its number is left
            return
        self._last, self._last_time = look, now
        self._peak = max(self._peak, look["peak_resident"])
        self._samples.append((now, look["resident"], look["used"], look["capacity"]))

    def reap(self) -> int | None:
        """The exit status as subprocess gives it, and the kernel's account of the memory; None while it lives."""
        process = self.process
        if process.returncode is None:
            try:
                # Instead of Popen.poll(), which throws the account away.
                pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            except OSError:  # somebody else has waited for it
                process.poll()
            else:
                if pid != process.pid:
                    return None
                process.returncode = os.waitstatus_to_exitcode(status)
                # Until exec, the process was a copy of this one: what is not more than that tells nothing.
                if usage.ru_maxrss * _KIB > self._own_peak:
                    self._peak = max(self._peak, usage.ru_maxrss * _KIB)
        status_now = process.returncode
        if status_now is not None and not self.ended:
            self.ended = time.time()
        return status_now

    def note_request(self, what: str) -> None:
        """It is asked to end. What died before that did not die of it."""
        status = self.reap()
        by_interrupt = status == -signal.SIGINT and time.monotonic() - self.interrupted < 5
        if (status is None or by_interrupt) and not self.asked:
            self.asked = what

    def postmortem(self, status: int, cell: Cell | None) -> Postmortem:
        """How it came to its end."""
        end = time.monotonic()
        known: dict[str, Any] = {
            "pid": self.process.pid,
            "exit_status": status,
            "started": self.started,
            "ended": self.ended or time.time(),
            "before": {**self._last, "peak_resident": self._peak},
            "samples": [(end - moment, *sizes) for moment, *sizes in self._samples],
            "command": self.command,
            "session": self.session,
            "folder": self.folder,
            "flights": self.flights,
        }
        if cell is not None:
            known.update(cell=cell.number, cell_source=cell.source, cell_running=cell.running)
        return postmortem_of_end(known)


def folder_of_recordings(env: Mapping[str, str]) -> str:
    """Where a process with this environment keeps its flight recordings."""
    if wanted := env.get("LEADLINE_FLIGHTS"):
        return wanted
    if os.path.isabs(state := env.get("XDG_STATE_HOME", "")):
        return str(Path(state) / "leadline" / "flights")
    return flights_folder()


class Death:
    """The end of a kernel that nobody had asked for, and the page that tells all of it."""

    def __init__(self, report: Postmortem, cell: Cell | None) -> None:
        self.report, self.cell = report, cell
        self.page: Path | None = None
        try:
            from leadline.notebook.postmortem import write_page

            self.page = write_page(report)
        except OSError:  # a full disk, a home that cannot be written: the text must do
            pass

    def text(self, pages: str = "") -> str:
        """For the place where it died. `pages` is the address below which a server shows pages."""
        more = str(self.page) if self.page is not None else ""
        if self.page is not None and pages:
            more = pages + self.page.stem
        return self.report.brief(more)

    def note_told(self) -> None:
        """The next kernel need not say it again."""
        if self.report.path:
            mark_reported(self.report.path)
