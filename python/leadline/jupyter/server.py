# SPDX-License-Identifier: Apache-2.0
"""The extension of jupyter_server: its connections write a dead kernel's post-mortem under the cell before they tell
the front end of the restart, after which it would be dropped; pages of post-mortems, and the memory of kernels, have
addresses."""

from __future__ import annotations

import json
import os
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

from jupyter_client.provisioning.factory import KernelProvisionerFactory
from jupyter_server.base.handlers import APIHandler, JupyterHandler
from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection
from jupyter_server.utils import url_path_join
from tornado import web

from leadline._leadline import flights_folder, look_at_process
from leadline.jupyter import PROVISIONER, deaths
from leadline.jupyter.life import Death
from leadline.jupyter.wire import LONGEST_SOURCE, Cell
from leadline.notebook.postmortem import read_page

_MOST_REQUESTS = 1000


class LeadlineWebsocketConnection(ZMQChannelsWebsocketConnection):
    """A connection of a front end to a kernel."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.open_requests: dict[str, Cell] = {}  # cells that are not done, in order
        self._written: Death | None = None

    def connect(self) -> Any:
        """Opens it."""
        deaths.add_connection(self)
        return super().connect()

    def disconnect(self) -> None:
        """Closes it."""
        deaths.remove_connection(self)
        super().disconnect()

    def handle_incoming_message(self, incoming_msg: str) -> None:
        """From the front end: cells to run are remembered."""
        try:
            self._remember_request(incoming_msg)
        except Exception:  # whatever is wrong with it, the base class will say
            self.log.debug("leadline: a message was not understood", exc_info=True)
        super().handle_incoming_message(incoming_msg)

    def _remember_request(self, message: Any) -> None:
        if self.subprotocol == "v1.kernel.websocket.jupyter.org":
            from jupyter_server.services.kernels.connection.base import deserialize_msg_from_ws_v1

            channel, parts = deserialize_msg_from_ws_v1(message)
            if channel != "shell":
                return
            header, content = self.session.unpack(parts[0]), parts[3]
        elif isinstance(message, str):
            fields = json.loads(message)
            header, content = fields.get("header", {}), fields.get("content")
        else:
            return
        if header.get("msg_type") != "execute_request":
            return
        if isinstance(content, bytes):
            content = self.session.unpack(content)
        self.open_requests[header["msg_id"]] = Cell(header, str(content.get("code", ""))[:LONGEST_SOURCE])
        while len(self.open_requests) > _MOST_REQUESTS:
            self.open_requests.pop(next(iter(self.open_requests)))

    def handle_outgoing_message(self, stream: Any, outgoing_msg: list[Any]) -> None:
        """To the front end: cells that are done are forgotten."""
        try:
            channel = stream if isinstance(stream, str) else getattr(stream, "channel", None)
            if channel == "shell" and self.open_requests:
                _, parts = self.session.feed_identities(outgoing_msg)
                self.open_requests.pop(self.session.unpack(parts[2]).get("msg_id"), None)
        except Exception:
            self.log.debug("leadline: a message was not understood", exc_info=True)
        super().handle_outgoing_message(stream, outgoing_msg)

    def on_kernel_restarted(self) -> None:
        """The kernel died and will be started again."""
        self._write_death()
        super().on_kernel_restarted()

    def on_restart_failed(self) -> None:
        """The kernel died too often."""
        self._write_death()
        super().on_restart_failed()

    def _write_death(self) -> None:
        try:
            death = getattr(self.kernel_manager.provisioner, "death", None)
            if death is None or death is self._written:
                return
            self._written = death
            self.open_requests.clear()
            header = death.cell.header if death.cell is not None else {}
            if header.get("session") != self.session.session:
                return  # not this front end's cell: the one whose it is has a connection, or it was published
            if (iopub := self.channels.get("iopub")) is not None and not iopub.closed():
                iopub.flush()  # what the cell had printed comes first
            self.write_stderr(death.text(self._pages()).rstrip("\n"), header)
            death.note_told()
        except Exception:
            self.log.warning("leadline: the post-mortem could not be written", exc_info=True)

    def _pages(self) -> str:
        """Where this front end finds pages of post-mortems: the address it came from may not be the server's own."""
        handler = self.websocket_handler
        origin = handler.request.headers.get("Origin", "").rstrip("/")
        if not origin.startswith(("http://", "https://")):
            return ""
        return origin + url_path_join(handler.settings.get("base_url", "/"), "leadline", "postmortem") + "/"


class PostmortemHandler(JupyterHandler):
    """GET leadline/postmortem/NAME: the whole story of a death."""

    @web.authenticated
    async def get(self, name: str) -> None:
        page = read_page(deaths.page(name) or Path(flights_folder()) / f"{name}.html")
        if page is None:
            raise web.HTTPError(404, f"There is no post-mortem '{name}'; the newest 40 are kept.")
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.finish(page)


class MemoryHandler(APIHandler):
    """GET leadline/memory/KERNEL: its memory now, against what its container or the machine can give; and, if the one
    before it has just died, why."""

    @web.authenticated
    async def get(self, kernel_id: str) -> None:
        try:
            provisioner = self.kernel_manager.get_kernel(kernel_id).provisioner
        except KeyError:
            raise web.HTTPError(404, f"There is no kernel '{kernel_id}'.") from None
        pid = getattr(provisioner, "pid", None)
        look = look_at_process(pid) if pid else {}
        names = ("resident", "peak_resident", "used", "capacity", "container")
        known = {name: look[name] for name in names if name in look}
        if (death := deaths.last(kernel_id)) is not None:
            known["cause"] = death.report.brief().partition("\n")[0]
        self.finish(json.dumps(known))


def load(server: Any) -> None:
    """Takes its place in a server. Kernels of gateways, and those of other provisioners, are left alone."""
    gateway = getattr(server, "gateway_config", None)
    if gateway is not None and gateway.gateway_enabled:
        server.log.info("leadline: kernels run behind a gateway; their deaths are explained there or not at all")
        return
    deaths.serve()
    factory = KernelProvisionerFactory.instance(parent=server)
    # Where the metadata of packages is not at hand (a zipped application), the factory has to be told.
    factory.provisioners.setdefault(
        PROVISIONER,
        EntryPoint(PROVISIONER, "leadline.jupyter.provisioner:LeadlineProvisioner", factory.GROUP_NAME),
    )
    # Only where nobody has chosen: who names the local provisioner wants that one.
    chosen = factory.default_provisioner_name_env in os.environ or "default_provisioner_name" in server.config.get(
        "KernelProvisionerFactory", {}
    )
    if not chosen and factory.default_provisioner_name == "local-provisioner":
        factory.default_provisioner_name = PROVISIONER
    settings = server.web_app.settings
    if settings.get("kernel_websocket_connection_class") is ZMQChannelsWebsocketConnection:
        settings["kernel_websocket_connection_class"] = LeadlineWebsocketConnection
    base = settings.get("base_url", "/")
    handlers = [
        (url_path_join(base, r"/leadline/postmortem/([\w-][\w.-]*)"), PostmortemHandler),
        (url_path_join(base, r"/leadline/memory/([\w-]+)"), MemoryHandler),
    ]
    server.web_app.add_handlers(".*$", handlers)
