# SPDX-License-Identifier: Apache-2.0
"""A Jupyter server for tests, and notebooks that are spoken to as a browser does: over a websocket."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from tornado import httpclient, websocket

TOKEN = "leadline"
_START_SECONDS = 90
V1 = "v1.kernel.websocket.jupyter.org"


@dataclass
class Outcome:
    """What came back for one cell."""

    stdout: str = ""
    stderr: str = ""
    error: str = ""
    ended: bool = False  # the cell did, by itself
    statuses: list[str] = field(default_factory=list)  # of the kernel, in the order of the messages


class Server:
    """`jupyter server` in a process of its own, with folders of its own. Use it with `with`."""

    def __init__(
        self, folder: Path, *, python: str = sys.executable, module: str = "jupyter_server", options=(), env=None
    ):
        self.folder = folder
        self.kernels = folder / "share" / "kernels"
        self.flights = folder / "flights"
        self.log = folder / "server.log"
        self.kernels.mkdir(parents=True)
        (folder / "work").mkdir()
        self.env = {
            # Under pytest, ipykernel would leave standard error to the server.
            **{name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER_", "PYTEST_"))},
            "JUPYTER_CONFIG_DIR": str(folder / "config"),
            "JUPYTER_DATA_DIR": str(folder / "data"),
            "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
            "JUPYTER_PATH": str(folder / "share"),
            "IPYTHONDIR": str(folder / "ipython"),
            "LEADLINE_FLIGHTS": str(self.flights),
            "LEADLINE_WATCH": "off",  # what these tests do to kernels is not the watch's to prevent
            **(env or {}),
        }
        command = [
            python, "-m", module, "--ServerApp.port=0", "--ServerApp.port_retries=0", f"--IdentityProvider.token={TOKEN}",
            "--ServerApp.open_browser=False", f"--ServerApp.root_dir={folder / 'work'}", "--allow-root",
            "--KernelRestarter.time_to_dead=0.5", "--KernelRestarter.stable_start_time=0.1",
            "--KernelRestarter.restart_limit=100", *options,
        ]  # fmt: skip
        self._file = self.log.open("w")
        self.process = subprocess.Popen(
            command, env=self.env, cwd=folder, stdout=self._file, stderr=subprocess.STDOUT, start_new_session=True
        )
        self.url = ""
        try:
            self._wait()
        except BaseException:
            self.close()
            raise

    def _wait(self) -> None:
        end = time.monotonic() + _START_SECONDS
        while time.monotonic() < end and self.process.poll() is None:
            for file in (self.folder / "runtime").glob("jpserver-*.json"):
                with contextlib.suppress(ValueError, KeyError, OSError, urllib.error.URLError):
                    self.url = json.loads(file.read_text())["url"].rstrip("/")
                    self.get("/api/status")
                    return
            time.sleep(0.1)
        raise RuntimeError(f"the server did not start:\n{self.log.read_text()}")

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def close(self) -> None:
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):  # the second one: without asking
            if self.process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self.process.pid, number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(10)
        self._file.close()

    def get(self, path: str, token: str = TOKEN) -> str:
        request = urllib.request.Request(self.url + path, headers={"Authorization": f"token {token}"} if token else {})
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.read().decode()

    def add_kernel(self, name: str, argv: list[str], **more) -> str:
        """A kernelspec; its name."""
        (self.kernels / name).mkdir()
        spec = {"argv": argv, "display_name": name, "language": "python", **more}
        (self.kernels / name / "kernel.json").write_text(json.dumps(spec))
        return name

    def pages(self) -> list[Path]:
        return sorted(self.flights.glob("*.html"))


class Notebook:
    """One kernel of a server, and a front end's connection to it. Use it with `async with`."""

    def __init__(self, server: Server, kernel: str = "python3", *, protocol: str = ""):
        self.server, self.kernel, self.protocol = server, kernel, protocol
        self.session = uuid.uuid4().hex
        self.id = ""
        self.messages: list[dict] = []
        self._reader = None

    async def call(self, method: str, path: str, body: dict | None = None):
        request = httpclient.HTTPRequest(
            self.server.url + path,
            method=method,
            headers={"Authorization": f"token {TOKEN}"},
            body=json.dumps(body or {}) if method == "POST" else None,
            request_timeout=60,
        )
        answer = await httpclient.AsyncHTTPClient().fetch(request)
        return json.loads(answer.body) if answer.body else None

    async def __aenter__(self) -> Notebook:
        self.id = (await self.call("POST", "/api/kernels", {"name": self.kernel}))["id"]
        await self.open()
        return self

    async def __aexit__(self, *_) -> None:
        await self.close()
        with contextlib.suppress(httpclient.HTTPError):
            await self.call("DELETE", f"/api/kernels/{self.id}")

    async def open(self) -> None:
        url = f"{self.server.url.replace('http', 'ws', 1)}/api/kernels/{self.id}/channels?session_id={self.session}"
        headers = {"Authorization": f"token {TOKEN}", "Origin": self.server.url}
        request = httpclient.HTTPRequest(url, headers=headers)
        self._socket = await websocket.websocket_connect(
            request, subprotocols=[self.protocol] if self.protocol else None
        )
        self._reader = asyncio.create_task(self._read(self._socket))

    async def _read(self, socket) -> None:
        while (message := await socket.read_message()) is not None:
            self.messages.append(_decode(message))

    async def close(self) -> None:
        if self._reader is not None:
            self._socket.close()
            await self._reader
            self._reader = None

    async def send(self, code: str) -> str:
        """Asks for a cell; its number."""
        header = {
            "msg_id": uuid.uuid4().hex, "msg_type": "execute_request", "username": "", "session": self.session,
            "date": "2026-01-01T00:00:00Z", "version": "5.3",
        }  # fmt: skip
        content = {"code": code, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False}
        if self.protocol:
            await self._socket.write_message(_encode_v1("shell", header, content), binary=True)
        else:
            message = {"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"}
            await self._socket.write_message(json.dumps(message))
        return header["msg_id"]

    def outcome(self, request: str) -> Outcome:
        result = Outcome()
        for message in self.messages:
            kind, content = message["header"]["msg_type"], message["content"]
            if kind == "status" and not message["parent_header"]:
                result.statuses.append(content["execution_state"])
            if message["parent_header"].get("msg_id") != request:
                continue
            if kind == "stream":
                text = getattr(result, content["name"]) + content["text"]
                setattr(result, content["name"], text)
                if "leadline:" in content["text"]:
                    result.statuses.append("told")
            elif kind == "error":
                result.error = content["ename"]
            elif kind == "status" and content["execution_state"] == "idle":
                result.ended = True
        return result

    async def wait(self, request: str, until, seconds: float = 60) -> Outcome:
        """Until `until(outcome)`; a TimeoutError when that does not come."""
        end = time.monotonic() + seconds
        while not until(self.outcome(request)):
            if time.monotonic() > end:
                raise TimeoutError(f"{self.outcome(request)}\n{self.server.log.read_text()[-6000:]}")
            await asyncio.sleep(0.05)
        return self.outcome(request)

    async def run(self, code: str, seconds: float = 60) -> Outcome:
        """Runs a cell to its end."""
        return await self.wait(await self.send(code), lambda outcome: outcome.ended, seconds)

    async def die(self, code: str, seconds: float = 60) -> Outcome:
        """Runs a cell that the kernel does not survive, up to the news of its restart."""
        before = self.restarts
        request = await self.send(code)
        outcome = await self.wait(request, lambda _: self.restarts > before, seconds)
        await self.wait_until_alive()
        return outcome

    @property
    def restarts(self) -> int:
        return self.outcome("").statuses.count("restarting")

    async def wait_until_alive(self) -> None:
        for _ in range(100):
            request = await self.send("1+1")
            try:
                await self.wait(request, lambda outcome: outcome.ended, 5)
                return
            except TimeoutError:
                continue
        raise TimeoutError("the kernel did not come back")


def _decode(message):
    if isinstance(message, str):
        return json.loads(message)
    count = int.from_bytes(message[:8], "little")
    ends = [int.from_bytes(message[8 * (i + 1) : 8 * (i + 2)], "little") for i in range(count)]
    parts = [message[ends[i] : ends[i + 1]] for i in range(count - 1)]
    header, parent, metadata, content = (json.loads(part) for part in parts[1:5])
    fields = {"header": header, "parent_header": parent, "metadata": metadata, "content": content}
    return {"channel": parts[0].decode(), **fields}


def _encode_v1(channel, header, content):
    parts = [channel.encode(), *(json.dumps(part).encode() for part in (header, {}, {}, content))]
    offsets = [8 * (len(parts) + 2)]
    for part in parts:
        offsets.append(offsets[-1] + len(part))
    numbers = [len(offsets), *offsets]
    return b"".join(number.to_bytes(8, "little") for number in numbers) + b"".join(parts)


def link_in(text: str) -> str:
    """The address behind "more"."""
    found = re.search(r"more +(\S+)", text)
    assert found, text
    return found[1]
