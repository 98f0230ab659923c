# SPDX-License-Identifier: Apache-2.0
"""The list of a server's connections, which provisioners read in threads of their own."""

import sys
import threading
import types
from typing import ClassVar

from leadline.jupyter import deaths


class Connection:
    """What the list asks of a connection."""

    kernel_id = "other"
    session = types.SimpleNamespace(session="a")
    open_requests: ClassVar[dict] = {}


def test_connections_come_and_go_while_a_death_is_told():
    done = threading.Event()

    def come_and_go():
        while not done.is_set():
            some = [Connection() for _ in range(50)]
            for connection in some:
                deaths.add_connection(connection)
            for connection in some:
                deaths.remove_connection(connection)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread = threading.Thread(target=come_and_go)
    thread.start()
    try:
        for _ in range(3000):
            assert not deaths.is_shown_by_server("mine", None)
            assert deaths.running_cell("mine", None) is None
    finally:
        done.set()
        thread.join()
        sys.setswitchinterval(interval)
