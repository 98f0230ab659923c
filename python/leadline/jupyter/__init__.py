# SPDX-License-Identifier: Apache-2.0
"""leadline.jupyter: a kernel that died says why, under the cell that was running.

Installing Leadline beside jupyter_server is enough: the server loads this extension, and its kernels are started by
`leadline-provisioner`. nbclient, papermill and `jupyter execute` take it with
JUPYTER_DEFAULT_PROVISIONER_NAME=leadline-provisioner, and front ends that start kernels themselves (VS Code) with the
kernelspec that `leadline kernel install` writes. See docs/watch.md.
"""

from __future__ import annotations

from typing import Any

PROVISIONER = "leadline-provisioner"


def _jupyter_server_extension_points() -> list[dict[str, Any]]:
    return [{"module": "leadline.jupyter"}]


def _load_jupyter_server_extension(server: Any) -> None:
    from leadline.jupyter.server import load

    load(server)
