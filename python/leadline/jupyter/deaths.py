# SPDX-License-Identifier: Apache-2.0
"""The deaths of this process's kernels, for whoever shows them: connections of a server, and errors of nbclient."""

from __future__ import annotations

import sys
import threading
import time
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leadline.jupyter.life import Death
    from leadline.jupyter.wire import Cell

_RECENT_SECONDS = 30.0
_MOST_PAGES = 200

_lock = threading.Lock()
_recent: list[tuple[float, str, Death]] = []
_pages: dict[str, Path] = {}
_connections: weakref.WeakSet[Any] = weakref.WeakSet()  # of this server's front ends
_server = False


def serve() -> None:
    """This process is a server: its log is the place for what no front end shows."""
    global _server
    _server = True


def in_server() -> bool:
    """Whether it is."""
    return _server


def add_connection(connection: Any) -> None:
    """A front end whose connection writes post-mortems itself."""
    with _lock:
        _connections.add(connection)


def remove_connection(connection: Any) -> None:
    """It is gone."""
    with _lock:
        _connections.discard(connection)


def _open_connections() -> list[Any]:
    with _lock:  # provisioners ask in threads of their own, and a set that grows meanwhile cannot be listed
        return list(_connections)


def is_shown_by_server(kernel_id: str, cell: Cell | None) -> bool:
    """Whether the front end that asked for the cell has a connection open."""
    asker = cell.header.get("session") if cell is not None else None
    return any(
        connection.kernel_id == kernel_id and connection.session.session == asker for connection in _open_connections()
    )


def running_cell(kernel_id: str, heard: Cell | None) -> Cell | None:
    """The cell that ran at the end. A kernel that dies at once may not have said that it began the cell, or which one,
    but the front end that asked for it waits for an answer."""
    open_requests = [
        connection.open_requests for connection in _open_connections() if connection.kernel_id == kernel_id
    ]
    if heard is not None and heard.running:
        if not heard.source:  # it said that it was busy, and no more
            asked = (cells.get(heard.header.get("msg_id", "")) for cells in open_requests)
            heard.source = next((cell.source for cell in asked if cell is not None), "")
        return heard
    ended = heard.header.get("msg_id") if heard is not None else None  # its answer may still be on its way
    for cells in open_requests:
        for number, waiting in list(cells.items()):  # the server's own thread may change it
            if number != ended:
                return waiting
    return heard


def add(kernel_id: str, death: Death) -> None:
    """A kernel died."""
    with _lock:
        now = time.monotonic()
        _recent[:] = [entry for entry in _recent if now - entry[0] < _RECENT_SECONDS]
        _recent.append((now, kernel_id, death))
        if death.page is not None:
            _pages[death.page.stem] = death.page
            while len(_pages) > _MOST_PAGES:
                _pages.pop(next(iter(_pages)))
    _explain_errors_of_nbclient()


def page(name: str) -> Path | None:
    """The page of a death in this process, by its name."""
    return _pages.get(name)


def last(kernel_id: str) -> Death | None:
    """The last death of a kernel, if it was in the last half minute."""
    with _lock:
        found = [entry for entry in _recent if entry[1] == kernel_id and time.monotonic() - entry[0] < _RECENT_SECONDS]
    return found[-1][2] if found else None


def recent() -> list[Death]:
    """Of the last half minute, oldest first."""
    with _lock:
        return [death for moment, _, death in _recent if time.monotonic() - moment < _RECENT_SECONDS]


def _explain_errors_of_nbclient() -> None:
    """nbclient (papermill, `jupyter execute`, nbconvert) raises DeadKernelError("Kernel died") for every death. The
    class that its module raises from now on says why; it is a subclass of the one that programs catch."""
    client: Any = sys.modules.get("nbclient.client")
    base = getattr(client, "DeadKernelError", None)
    if base is None or getattr(base, "explained_by_leadline", False):
        return

    class DeadKernelError(base):  # type: ignore[misc, valid-type]
        explained_by_leadline = True

        def __init__(self, *words: Any) -> None:
            told = "\n".join(death.text() for death in recent())
            super().__init__(*([f"{words[0]}\n{told}", *words[1:]] if words and told else words))

    DeadKernelError.__module__ = base.__module__
    DeadKernelError.__qualname__ = base.__qualname__
    client.DeadKernelError = DeadKernelError
