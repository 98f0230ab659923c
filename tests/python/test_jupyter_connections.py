# SPDX-License-Identifier: Apache-2.0
"""What is known of the cell that ran when a kernel died: by the connections of a server, and by what the kernel said."""

import asyncio
import json
import subprocess
import sys
import threading
import time
import types
from typing import ClassVar

import pytest

from leadline._leadline import postmortem_of_end
from leadline.jupyter import deaths
from leadline.jupyter.wire import DELIMITER, Activity, Address, Cell, Listener

zmq = pytest.importorskip("zmq", reason="pyzmq is not installed")


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


def test_a_cell_that_has_ended_did_not_kill_the_kernel_though_its_answer_is_on_its_way():
    connection = Connection()
    connection.kernel_id = "mine"
    connection.open_requests = {number: Cell({"msg_id": number}, f"cell {number}") for number in ("a", "b")}
    deaths.add_connection(connection)
    try:
        ended = Cell({"msg_id": "a"}, "cell a", 1, running=False)
        assert deaths.running_cell("mine", ended).source == "cell b"
        del connection.open_requests["b"]
        assert deaths.running_cell("mine", ended) is ended
    finally:
        deaths.remove_connection(connection)


def test_what_a_kernel_said_last_is_read_though_it_is_gone():
    """As on a busy machine: the kernel is dead long before all it said has been read."""
    with zmq.Context() as context, context.socket(zmq.XPUB) as kernel:
        port = kernel.bind_to_random_port("tcp://127.0.0.1")
        address = Address(f"tcp://127.0.0.1:{port}", b"key")
        activity = Listener().follow("kernel", address, lambda: time.sleep(0.1))
        for _ in range(4):  # topics
            assert kernel.recv()[:1] == b"\x01"
        for number in range(5):
            parent = {"msg_type": "execute_request", "msg_id": str(number)}
            content = {"code": f"cell {number}", "execution_count": number}
            body = [json.dumps(part).encode() for part in ({"msg_type": "execute_input"}, parent, {}, content)]
            kernel.send_multipart([b"kernel.execute_input", DELIMITER, address.sign(body), *body])
        assert not activity.closed.is_set()
    assert activity.closed.wait(20)
    assert (activity.cell.source, activity.cell.running) == ("cell 4", True)


def test_a_kernel_that_was_asked_to_end_by_somebody_else_did_not_die():
    """It answers him, not its parent, which may see the end before it reads the answer."""
    provisioner = pytest.importorskip("leadline.jupyter.provisioner", exc_type=ImportError).LeadlineProvisioner()
    from leadline.jupyter.life import KernelLife

    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        provisioner.process = process
        provisioner._life = KernelLife(process, ["python"], "", "", {})
        provisioner._activity = activity = Activity(Address("tcp://127.0.0.1:1", b""))
        while provisioner._life.reap() is None:
            time.sleep(0.01)

        def answer():
            activity.shutting_down = True
            activity.closed.set()

        reader = threading.Timer(0.1, answer)
        reader.start()
        assert asyncio.run(provisioner.poll()) == 0
        reader.join()
    assert provisioner.death is None
