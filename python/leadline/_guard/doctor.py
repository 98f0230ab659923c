# SPDX-License-Identifier: Apache-2.0
"""leadline.doctor() and leadline.devices(): the native reports with a text and an HTML form."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from typing import Any

from leadline import _leadline
from leadline._leadline import Device, Finding, InstalledPackage, format_bytes
from leadline.notebook.html import escape, html_table


class DoctorReport:
    """What doctor() saw and found. Print it, show it in a notebook, or read `findings`."""

    __module__ = "leadline"  # where users find it

    def __init__(self, native: _leadline.DoctorReport):
        self._native = native

    @property
    def findings(self) -> list[Finding]:
        """Findings, worst first: `id`, `severity`, `what`, `why`, `fix`, `source`."""
        return self._native.findings

    @property
    def problems(self) -> list[Finding]:
        """The findings that make something fail or die."""
        return [finding for finding in self.findings if finding.severity == "problem"]

    @property
    def packages(self) -> list[InstalledPackage]:
        """Installed packages that the checks are about."""
        return self._native.packages

    @property
    def python(self) -> str:
        """The interpreter that was looked at."""
        return self._native.python

    @property
    def python_version(self) -> str:
        """Its version; empty: unknown."""
        return self._native.python_version

    @property
    def site_packages(self) -> list[str]:
        """The folders that were looked at."""
        return self._native.site_packages

    @property
    def ok(self) -> bool:
        """Whether there are no problems; there may be warnings."""
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data, as `leadline doctor --json` prints it."""
        native = self._native
        count = {name: sum(f.severity == name for f in self.findings) for name in ("problem", "warning")}
        return {
            "python": native.python,
            "python_version": native.python_version,
            "site_packages": native.site_packages,
            "package_count": native.package_count,
            "problems": count["problem"],
            "warnings": count["warning"],
            "table_date": native.table_date,
            "packages": [
                {name: getattr(package, name) for name in ("name", "version", "location", "installer")}
                for package in native.packages
            ],
            "findings": [
                {name: getattr(finding, name) for name in ("id", "severity", "what", "why", "fix", "source")}
                for finding in native.findings
            ],
            "notes": native.notes,
        }

    def __repr__(self) -> str:
        return self._native.to_text()

    def _repr_html_(self) -> str:
        rows = [(f.severity, f.what, f.why, f.fix) for f in self.findings]
        head = escape(f"Python {self.python_version or '?'}: {self.python}")
        if not rows:
            return f"<div><strong>{head}</strong><p>Nothing was found that is known to kill kernels.</p></div>"
        return f"<div><strong>{head}</strong>{html_table(('', 'what', 'why it kills kernels', 'fix'), rows)}</div>"


def doctor(
    python: str | os.PathLike[str] | None = None,
    *,
    site_packages: Sequence[str | os.PathLike[str]] = (),
    machine: bool = True,
    deep: bool = False,
) -> DoctorReport:
    """Looks for what is known to kill kernels: versions that do not fit, broken installations, limits.

    Reads files and ELF headers; imports nothing. `leadline doctor` is the same on the command line.

    Args:
      python: an interpreter or the folder of an environment. None: the Python that runs this.
      site_packages: folders to look at instead of that Python's own.
      machine: also look at limits, memory and disk of this machine.
      deep: also compare every file of every package with what was installed (RECORD); takes seconds per gigabyte.
    """
    folders = [os.fspath(folder) for folder in site_packages]
    version = ""
    if python is None and not folders:
        python, version = sys.executable, platform.python_version()
        # What this process really imports from, in its order.
        folders = [path for path in sys.path if path and _holds_packages(path)]
    return DoctorReport(_leadline.doctor(os.fspath(python or ""), folders, version, machine, deep))


def _holds_packages(path: str) -> bool:
    return os.path.basename(path.rstrip("/")) in ("site-packages", "dist-packages") and os.path.isdir(path)


class DeviceList(list[Device]):
    """Devices of this machine, "/CPU:0" first: a list with a text and an HTML form. `notes` says why others were not
    found."""

    __module__ = "leadline"  # where users find it

    def __init__(self, native: _leadline.DeviceList):
        super().__init__(native.devices)
        self.notes: list[str] = native.notes
        self._text = native.to_text()

    def __repr__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        def size(count: int) -> str:
            return format_bytes(count) if count >= 0 else ""

        rows = [
            (
                d.name,
                d.model,
                d.api,
                d.cores or "",
                size(d.memory_bytes),
                size(d.memory_available),
                "yes" if d.runs else "not yet",
            )
            for d in self
        ]
        header = ("name", "model", "by", "cores", "memory", "can be used", "Leadline runs here")
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        return f"<div>{html_table(header, rows)}<ul>{notes}</ul></div>"


def devices(timeout: float = 5.0) -> DeviceList:
    """Lists the CPU, NVIDIA GPUs and OpenCL devices of this machine, named as in TensorFlow ("/CPU:0", "/GPU:1").

    Drivers are asked in a child process; one that crashes or takes longer than `timeout` seconds becomes a note.
    """
    return DeviceList(_leadline.devices(timeout))
