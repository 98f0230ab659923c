# SPDX-License-Identifier: Apache-2.0
"""The kernel provisioner "leadline-provisioner": kernels run as Jupyter's own local provisioner runs them, and when one
dies without having been asked to, the cell that was running says why.

It never changes what Jupyter sees: poll() returns what it would have returned, and an error in here is a line in the
log.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning.local_provisioner import LocalProvisioner

from leadline.jupyter import deaths
from leadline.jupyter.life import Death, KernelLife
from leadline.jupyter.wire import LAST_WORDS_SECONDS, Activity, Address, listener, publish

_MOST_SECONDS = 10.0  # that a restart waits for the post-mortem
PROVISIONED = "LEADLINE_PROVISIONED"  # tells a supervisor in the kernelspec that it is not needed


class LeadlineProvisioner(LocalProvisioner):
    """A local provisioner that explains deaths."""

    _life: KernelLife | None = None
    _activity: Activity | None = None
    _telling: threading.Thread | None = None
    death: Death | None = None  # of the last process

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Adds a word to the environment."""
        kwargs = await super().pre_launch(**kwargs)
        env = kwargs.get("env")
        if isinstance(env, dict):
            env[PROVISIONED] = "1"
        return kwargs

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        """Starts the kernel, and begins to follow it."""
        info = await super().launch_kernel(cmd, **kwargs)
        try:
            self._begin(cmd, kwargs)
        except Exception:
            self.log.warning("leadline: this kernel cannot be followed", exc_info=True)
        return info

    def _begin(self, cmd: list[str], kwargs: dict[str, Any]) -> None:
        self._life = self._activity = self._telling = self.death = None
        process: Any = self.process
        if not isinstance(process, subprocess.Popen):
            return
        env = kwargs.get("env") or os.environ
        file = getattr(self.parent, "connection_file", "")
        session = env.get("JPY_SESSION_NAME") or os.path.basename(file)
        folder = str(kwargs.get("cwd") or os.getcwd())
        self._life = KernelLife(process, cmd, session, folder, env)
        if (address := self._address()) is not None:
            self._activity = listener().follow(str(self.kernel_id), address, self._life.look)

    def _address(self) -> Address | None:
        info: dict[str, Any] = dict(self.connection_info or {})
        for name in ("curve_publickey", "curve_secretkey"):
            info[name] = getattr(self.parent, name, None)
        return Address.of(info)

    async def poll(self) -> int | None:
        """As the local provisioner's; the first time that the process is gone, the death is explained before."""
        try:
            await self._look()
            if self._life is not None and self.process is self._life.process:
                return self._life.process.returncode  # Popen.poll() might end it without its account
        except Exception:
            self.log.warning("leadline: no post-mortem", exc_info=True)
        return await super().poll()

    async def _look(self) -> None:
        life = self._life
        if life is None or self.process is not life.process:
            return
        status = life.reap()
        if status is None:
            life.look()
            return
        if self._telling is None and not life.asked:
            await self._hear_last_words()
        if self._telling is None:
            if self._was_asked(life):
                return
            self._telling = threading.Thread(target=self._tell, args=(life, status), name="leadline-postmortem")
            self._telling.daemon = True
            self._telling.start()
        # The address of the kernel is in use until it is told, and the next kernel needs it.
        end = time.monotonic() + _MOST_SECONDS
        while self._telling.is_alive() and time.monotonic() < end:
            await asyncio.sleep(0.02)

    async def _hear_last_words(self) -> None:
        """On a busy machine the kernel may be dead before it is read which cell it began, or who asked it to end."""
        end = time.monotonic() + LAST_WORDS_SECONDS
        while self._activity is not None and not self._activity.closed.is_set() and time.monotonic() < end:
            await asyncio.sleep(0.01)

    def _was_asked(self, life: KernelLife) -> bool:
        return bool(life.asked) or (self._activity is not None and self._activity.shutting_down)

    def _tell(self, life: KernelLife, status: int) -> None:
        """In a thread of its own: reading recordings and waiting for subscribers take a moment."""
        try:
            cell = deaths.running_cell(str(self.kernel_id), self._activity.cell if self._activity is not None else None)
            death = Death(life.postmortem(status, cell), cell)
            self.death = death
            deaths.add(str(self.kernel_id), death)
            if deaths.is_shown_by_server(str(self.kernel_id), cell):
                return  # an open connection of this server writes it under the cell
            text = death.text()
            if cell is not None and (address := self._address()) is not None and publish(address, cell.header, text):
                death.note_told()
            if deaths.in_server():
                self.log.warning(text)
            else:
                print(text, file=sys.stderr, flush=True)
        except Exception:
            self.log.warning("leadline: no post-mortem", exc_info=True)

    # What the user asks for. The process is looked at before: what is dead already did not die of it.

    def _note(self, what: str) -> None:
        life = self._life
        if life is not None and self.process is life.process:
            try:
                life.note_request(what)
            except Exception:
                self.log.debug("leadline: the kernel could not be looked at", exc_info=True)

    async def send_signal(self, signum: int) -> None:
        """Passes a signal on."""
        if self._life is not None and signum == signal.SIGINT:
            self._life.interrupted = time.monotonic()
        elif signum in (signal.SIGTERM, signal.SIGKILL, signal.SIGHUP):
            self._note("shutdown")
        await super().send_signal(signum)

    async def kill(self, restart: bool = False) -> None:
        """Kills the kernel."""
        self._note("restart" if restart else "shutdown")
        await super().kill(restart)

    async def terminate(self, restart: bool = False) -> None:
        """Asks the kernel to end."""
        self._note("restart" if restart else "shutdown")
        await super().terminate(restart)

    async def shutdown_requested(self, restart: bool = False) -> None:
        """The kernel was sent a message to end."""
        self._note("restart" if restart else "shutdown")
        await super().shutdown_requested(restart)

    async def cleanup(self, restart: bool = False) -> None:
        """Frees what is held for the kernel."""
        if not restart:
            listener().forget(str(self.kernel_id))
        await super().cleanup(restart)
