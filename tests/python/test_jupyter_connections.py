# SPDX-License-Identifier: Apache-2.0
"""The list of a server's connections, which provisioners read in threads of their own."""

import sys
import threading
import time
import types
from typing import ClassVar

from leadline._leadline import postmortem_of_end
from leadline.jupyter import deaths
from leadline.jupyter.wire import Cell


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


def test_a_kernel_that_said_only_that_it_was_busy_died_in_the_cell_it_was_asked_for():
    connection = Connection()
    connection.kernel_id = "mine"
    connection.open_requests = {number: Cell({"msg_id": number}, f"cell {number}") for number in ("a", "b")}
    deaths.add_connection(connection)
    try:
        busy = Cell({"msg_id": "b"})
        assert deaths.running_cell("mine", busy).source == "cell b"
        assert deaths.running_cell("other", Cell({"msg_id": "b"})).source == ""
        assert deaths.running_cell("mine", Cell({"msg_id": "c"})).source == ""
    finally:
        deaths.remove_connection(connection)


def test_a_cell_of_unknown_source_is_named_in_the_post_mortem(tmp_path):
    now = time.time()
    known = {"pid": 1, "exit_status": -6, "started": now - 1, "ended": now, "flights": str(tmp_path)}
    assert "was aborted in this cell" in postmortem_of_end({**known, "cell_running": True}).brief()
    assert "in this cell" not in postmortem_of_end({**known, "cell_running": False}).brief()
