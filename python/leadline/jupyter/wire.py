# SPDX-License-Identifier: Apache-2.0
"""Jupyter's messages on a kernel's iopub channel: which cell runs is read there while the kernel lives, and what it
died of is published there, in its place, when it is dead.

Needs pyzmq only: the supervisor of a kernel (supervisor.py) must be light.
"""

from __future__ import annotations

import datetime
import hashlib
import hmac
import json
import os
import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import zmq

DELIMITER = b"<IDS|MSG>"
_PROTOCOL = "5.3"
LONGEST_SOURCE = 100_000  # characters of a cell that are kept
# Topics of ipykernel and xeus, and of kernels that use the bare type. Output has others: it need not come here as well.
_TOPICS = (b"kernel", b"status", b"execute_input", b"shutdown")
# A subscriber tries again after 100 to 200 ms (ZMQ_RECONNECT_IVL) when its publisher is gone.
_SUBSCRIBERS_SECONDS = 0.35
_QUIET_SECONDS = 0.1
# For the last words of a dead kernel to be read. Its channel stays open when a child of the kernel holds it.
LAST_WORDS_SECONDS = 0.3


@dataclass(frozen=True)
class Address:
    """What a connection file says about the iopub channel."""

    endpoint: str
    key: bytes
    scheme: str = "hmac-sha256"
    public_key: bytes | None = None  # of CURVE, where the transport is encrypted
    secret_key: bytes | None = field(default=None, repr=False)

    @classmethod
    def of(cls, info: Mapping[str, Any]) -> Address | None:
        """From the fields of a connection file; None where there is no channel to listen to (inproc)."""
        transport, port = info.get("transport", "tcp"), info.get("iopub_port")
        if transport not in ("tcp", "ipc") or not port:
            return None
        separator = ":" if transport == "tcp" else "-"
        key = info.get("key", b"")
        return cls(
            endpoint=f"{transport}://{info.get('ip', '127.0.0.1')}{separator}{port}",
            key=key.encode() if isinstance(key, str) else key,
            scheme=info.get("signature_scheme") or "hmac-sha256",
            public_key=_bytes(info.get("curve_publickey")),
            secret_key=_bytes(info.get("curve_secretkey")),
        )

    def sign(self, parts: list[bytes]) -> bytes:
        """The signature of a message; empty where messages are not signed."""
        if not self.key:
            return b""
        digest = getattr(hashlib, self.scheme.partition("-")[2], hashlib.sha256)
        signer = hmac.new(self.key, digestmod=digest)
        for part in parts:
            signer.update(part)
        return signer.hexdigest().encode()


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


@dataclass
class Cell:
    """A cell that a kernel was asked to run."""

    header: dict[str, Any]  # of the request: what a front end recognizes the cell by
    source: str = ""
    number: int = 0  # as the front end shows it; 0: unknown
    running: bool = True


class Activity:
    """What one kernel said about itself."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.cell: Cell | None = None
        self.shutting_down = False  # it was asked to, by whoever has a connection
        self.closed = threading.Event()  # its channel is, and all that it said has been read

    def take(self, parts: list[bytes]) -> bool:
        """Reads one message; True when a cell began."""
        if DELIMITER not in parts:
            return False
        at = parts.index(DELIMITER)
        signature, body = parts[at + 1], parts[at + 2 : at + 6]
        if len(body) < 4 or not hmac.compare_digest(signature, self.address.sign(body)):
            return False
        header, parent, content = (json.loads(body[i]) for i in (0, 1, 3))
        kind = header.get("msg_type")
        if kind == "shutdown_reply":
            self.shutting_down = True
        if parent.get("msg_type") != "execute_request":
            return False
        known = self.cell is not None and self.cell.header.get("msg_id") == parent.get("msg_id")
        if kind == "status" and content.get("execution_state") == "idle":
            if known and self.cell is not None:
                self.cell.running = False
            return False
        if kind == "execute_input":
            source = str(content.get("code", ""))[:LONGEST_SOURCE]
            self.cell = Cell(parent, source, int(content.get("execution_count") or 0))
            return True
        if kind == "status" and content.get("execution_state") == "busy" and not known:
            self.cell = Cell(parent)
            return True
        return False


class Listener:
    """Listens to the kernels of this process, all in one thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._context = zmq.Context()
        self._wake: Any = None
        self._kernels: dict[str, tuple[Activity, Any]] = {}  # by name: and what to call when a cell begins
        self._sockets: dict[str, Any] = {}  # of the thread alone, as its monitors
        self._monitors: dict[str, Any] = {}  # tell when the other side is gone
        self._pid = os.getpid()

    def follow(self, name: str, address: Address, on_cell: Any = None) -> Activity:
        """Listens to a kernel from now on; one of the same name is forgotten."""
        activity = Activity(address)
        with self._lock:
            self._kernels[name] = (activity, on_cell)
            self._start()
            self._wake.send(name.encode())
        return activity

    def forget(self, name: str) -> None:
        """Ends it."""
        with self._lock:
            if self._kernels.pop(name, None) is not None and self._wake is not None:
                self._wake.send(name.encode())

    def _start(self) -> None:
        if self._wake is not None:
            return
        self._wake = self._context.socket(zmq.PAIR)
        self._wake.bind(f"inproc://leadline-{id(self)}")
        other = self._context.socket(zmq.PAIR)
        other.connect(f"inproc://leadline-{id(self)}")
        threading.Thread(target=self._run, args=(other,), name="leadline-listener", daemon=True).start()

    def _run(self, wake: Any) -> None:
        poller = zmq.Poller()
        poller.register(wake, zmq.POLLIN)
        while True:
            for socket, _ in poller.poll():
                if socket is wake:
                    self._change(poller, wake.recv().decode())
                    continue
                for name, own in self._sockets.items():
                    if own is socket:
                        self._receive(name, own)
                    elif self._monitors[name] is socket:
                        self._close(name, own, socket)

    def _change(self, poller: zmq.Poller, name: str) -> None:
        """A kernel was added, replaced or removed."""
        old = self._sockets.pop(name, None)
        if old is not None:
            poller.unregister(self._monitors.pop(name))
            poller.unregister(old)
            old.disable_monitor()
            old.close(linger=0)
        with self._lock:
            found = self._kernels.get(name)
        if found is None:
            return
        socket = self._context.socket(zmq.SUB)
        address = found[0].address
        if address.public_key is not None:
            socket.curve_publickey, socket.curve_secretkey = zmq.curve_keypair()
            socket.curve_serverkey = address.public_key
        for topic in _TOPICS:
            socket.subscribe(topic)
        self._monitors[name] = socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        socket.connect(address.endpoint)
        self._sockets[name] = socket
        poller.register(socket, zmq.POLLIN)
        poller.register(self._monitors[name], zmq.POLLIN)

    def _receive(self, name: str, socket: Any) -> bool:
        """Takes one message; False when there is none."""
        with self._lock:
            found = self._kernels.get(name)
        try:
            parts = socket.recv_multipart(zmq.NOBLOCK)
            if found is not None and found[0].take(parts) and found[1] is not None:
                found[1]()
        except zmq.Again:
            return False
        except Exception:  # a message that is not Jupyter's tells nothing; listening goes on
            return True
        return True

    def _close(self, name: str, socket: Any, monitor: Any) -> None:
        """The kernel is gone. What it said before is read first."""
        monitor.recv_multipart()
        while self._receive(name, socket):
            pass
        with self._lock:
            found = self._kernels.get(name)
        if found is not None:
            found[0].closed.set()


_listener: Listener | None = None


def listener() -> Listener:
    """The one of this process."""
    global _listener
    if _listener is None or _listener._pid != os.getpid():
        _listener = Listener()
    return _listener


def stream_message(address: Address, parent: Mapping[str, Any], text: str) -> list[bytes]:
    """Text on standard error, as the kernel itself would have published it for a request."""
    header = {
        "msg_id": uuid.uuid4().hex,
        "msg_type": "stream",
        "username": "leadline",
        "session": uuid.uuid4().hex,
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(),
        "version": _PROTOCOL,
    }
    content = {"name": "stderr", "text": text}
    body = [json.dumps(part).encode() for part in (header, parent, {}, content)]
    return [b"stream.stderr", DELIMITER, address.sign(body), *body]


def publish(address: Address, parent: Mapping[str, Any], text: str) -> bool:
    """Publishes text in the place of a dead kernel: on its address, to those who wait for it to come back.

    False when the address cannot be had (a child of the kernel still holds it), or nobody came."""
    with zmq.Context() as context, context.socket(zmq.XPUB) as socket:
        socket.setsockopt(zmq.LINGER, 500)
        if address.public_key is not None:
            if address.secret_key is None:
                return False
            socket.curve_server = True
            socket.curve_secretkey = address.secret_key
        try:
            socket.bind(address.endpoint)
        except zmq.ZMQError:
            return False
        came, last = 0, time.monotonic()
        end = last + _SUBSCRIBERS_SECONDS
        while time.monotonic() < end or (came and time.monotonic() < last + _QUIET_SECONDS):
            if socket.poll(20) and socket.recv()[:1] == b"\x01":
                came, last = came + 1, time.monotonic()
        if not came:
            return False
        socket.send_multipart(stream_message(address, parent, text))
        # Closing waits for what is on its way; subscribers of TCP have it then or never.
        return True
