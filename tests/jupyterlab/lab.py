# SPDX-License-Identifier: Apache-2.0
"""A notebook in JupyterLab in Chromium, used as a person does: keys, clicks, and what can be read on the screen."""

from __future__ import annotations

import json
import time

import nbformat
import servers

CELLS = "[...document.querySelectorAll('.jp-Notebook .jp-CodeCell')]"
SETTINGS = {  # no questions about news; light or dark as the browser says
    "notification": {"fetchNews": "false", "checkForUpdates": False},
    "themes": {"adaptive-theme": True},
}


def start(folder) -> servers.Server:
    """JupyterLab with settings of its own."""
    settings = folder / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    for name, values in SETTINGS.items():
        (settings / f"{name}.jupyterlab-settings").write_text(json.dumps(values))
    env = {"JUPYTERLAB_SETTINGS_DIR": str(folder / "settings")}
    return servers.Server(folder, module="jupyterlab", options=["--LabApp.expose_app_in_browser=True"], env=env)


class LabPage:
    """One notebook, open in a tab of its own."""

    def __init__(
        self, browser, server: servers.Server, name: str, cells: list[str], kernel: str = "python3", dark=False
    ):
        book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        book.metadata["kernelspec"] = {"name": kernel, "display_name": kernel, "language": "python"}
        nbformat.write(book, server.folder / "work" / name)
        self.server, self.name = server, name
        url = f"{server.url}/lab/workspaces/{name.replace('.', '-')}/tree/{name}?token={servers.TOKEN}&reset"
        self.page = browser.open_url(url, width=1100, height=760, dark=dark)
        self.wait_for("!!document.querySelector('.jp-Notebook .jp-CodeCell')", 120)
        self.wait_for_idle()

    def wait_for(self, expression: str, seconds: float = 60):
        """The value of a JavaScript expression as soon as it is something."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if value := self.page.run(expression):
                return value
            time.sleep(0.2)
        raise TimeoutError(f"{expression}\n{self.server.log.read_text()[-5000:]}")

    def wait_for_idle(self, seconds: float = 120) -> None:
        kernel = "window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel"
        # After a death the status may stay "autorestarting" until the next cell runs.
        ready = f"['idle', 'unknown', 'autorestarting'].includes({kernel}?.status)"
        self.wait_for(f"{kernel}?.connectionStatus === 'connected' && {ready}", seconds)

    def run(self, cell: int) -> None:
        """Selects a cell and runs it, as its menu does."""
        self.page.call("Page.bringToFront")
        self.wait_for("window.jupyterapp.commands.isEnabled('notebook:run-cell')")
        self.page.click(".jp-Notebook .jp-CodeCell .jp-InputPrompt", cell)
        self.wait_for(f"{CELLS}[{cell}]?.classList.contains('jp-mod-selected')")
        self.page.run("window.jupyterapp.commands.execute('notebook:run-cell'), 1")

    def output(self, cell: int) -> str:
        """What stands under a cell."""
        return self.page.run(f"{CELLS}[{cell}]?.querySelector('.jp-OutputArea')?.innerText ?? ''")

    def wait_for_output(self, cell: int, words: str, seconds: float = 90) -> str:
        end = time.monotonic() + seconds
        while words not in (text := self.output(cell)):
            if time.monotonic() > end:
                raise TimeoutError(
                    f"{words!r} is not under cell {cell}:\n{text}\n{self.server.log.read_text()[-5000:]}"
                )
            time.sleep(0.2)
        return text

    def dialog(self) -> str:
        """The text of a dialog; empty without one."""
        return self.page.run("document.querySelector('.jp-Dialog-content')?.innerText ?? ''")

    def close_dialog(self) -> None:
        self.page.click(".jp-Dialog-content .jp-mod-accept")

    def end(self) -> None:
        """Shuts the kernel down."""
        session = "window.jupyterapp.shell.currentWidget.sessionContext"
        self.page.run(f"{session}.shutdown().then(() => 1)")
