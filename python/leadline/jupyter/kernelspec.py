# SPDX-License-Identifier: Apache-2.0
"""Kernelspecs whose kernels are supervised: for front ends that start kernels themselves, such as VS Code."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from leadline._leadline import InvalidArgumentError

SUPERVISOR = ["-m", "leadline.jupyter", "--"]


def supervised(spec: dict[str, Any], display_name: str = "") -> dict[str, Any]:
    """The fields of a kernel.json with a supervisor before the kernel."""
    command = list(spec["argv"])
    if command[: len(SUPERVISOR) + 1][1:] == SUPERVISOR:
        raise InvalidArgumentError("this kernelspec is supervised already")
    if command[0] in ("python", "python3"):
        command[0] = sys.executable  # as jupyter_client reads it, and VS Code does not
    return {
        **spec,
        "argv": [sys.executable, *SUPERVISOR, *command],
        "display_name": display_name or f"{spec.get('display_name', 'Python 3')} (Leadline)",
    }


def install(kernel: str, name: str = "", display_name: str = "", prefix: str = "") -> str:
    """Writes a supervised copy of a kernelspec; the folder it is in."""
    manager = _manager()
    try:
        source = manager.get_kernel_spec(kernel)
    except KeyError:
        known = ", ".join(sorted(manager.find_kernel_specs())) or "none"
        raise InvalidArgumentError(f"there is no kernelspec '{kernel}'; there are: {known}") from None
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "spec"
        if source.resource_dir and Path(source.resource_dir).is_dir():
            shutil.copytree(source.resource_dir, copy)
        copy.mkdir(exist_ok=True)
        (copy / "kernel.json").write_text(json.dumps(supervised(source.to_dict(), display_name), indent=1))
        where = {"prefix": prefix} if prefix else {"user": True}
        return str(manager.install_kernel_spec(str(copy), name or f"{kernel}-leadline", **where))


def uninstall(kernel: str, name: str = "") -> str:
    """Removes it; the folder it was in."""
    chosen = name or f"{kernel}-leadline"
    try:
        return str(_manager().remove_kernel_spec(chosen))
    except KeyError:
        raise InvalidArgumentError(f"there is no kernelspec '{chosen}'") from None


def _manager() -> Any:
    try:
        from jupyter_client.kernelspec import KernelSpecManager
    except ImportError:
        raise InvalidArgumentError("jupyter_client is not installed; `pip install ipykernel` brings it") from None
    return KernelSpecManager()
