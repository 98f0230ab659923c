# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium for tests, spoken to in its DevTools protocol over a pipe: no package, no port."""

import base64
import json
import os
import select
import shutil
import subprocess
import time

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
_FLAGS = (
    "--headless=new --remote-debugging-pipe --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run "
    "--disable-background-networking --disable-component-update --disable-extensions --disable-sync"
).split()


class Browser:
    """One Chromium with a profile of its own in `folder`. Use it with `with`."""

    def __init__(self, folder):
        to_read, self._to = os.pipe()
        self._from, to_write = os.pipe()
        # Chromium reads commands from descriptor 3 and answers to 4; both pipes are moved away from there first.
        script = f'exec 8<&{to_read} 9>&{to_write} && exec 3<&8 4>&9 8<&- 9>&- && exec "$@"'
        command = ["bash", "-c", script, "bash", PROGRAM, *_FLAGS, f"--user-data-dir={folder}"]
        self._process = subprocess.Popen(
            command, pass_fds=(to_read, to_write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(to_read)
        os.close(to_write)
        self._buffer, self._count = b"", 0
        self.events = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call("Browser.close")
            self._process.wait(20)
        except Exception:
            self._process.kill()
            self._process.wait()
        os.close(self._to)
        os.close(self._from)

    def call(self, method, session=None, timeout=60, **params):
        """The result of a DevTools method; events that come meanwhile are kept."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        data = memoryview(json.dumps(message).encode() + b"\0")
        while data:
            data = data[os.write(self._to, data) :]
        end = time.monotonic() + timeout
        while True:
            answer = self._receive(end, method)
            if answer.get("id") == message["id"]:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def _receive(self, end, what):
        """The next message; events are also kept in `events`."""
        while b"\0" not in self._buffer:
            if not select.select([self._from], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError(f"chromium did not answer to {what}")
            data = os.read(self._from, 1 << 20)
            if not data:
                raise RuntimeError(f"chromium ended during {what}")
            self._buffer += data
        line, self._buffer = self._buffer.split(b"\0", 1)
        message = json.loads(line)
        if "method" in message:
            self.events.append(message)
        return message

    def open(self, path, width=1280, height=900, dark=False):
        return Page(self, path.resolve().as_uri(), width, height, dark)

    def open_url(self, url, width=1280, height=900, dark=False):
        return Page(self, url, width, height, dark)


class Frame:
    """A document with a session of its own. `problems` are console errors, exceptions and dialogs."""

    def __init__(self, browser, target):
        self._browser, self._target = browser, target
        self._session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def _events(self):
        return [e for e in self._browser.events if e.get("sessionId") == self._session]

    def call(self, method, **params):
        return self._browser.call(method, self._session, **params)

    def run(self, expression):
        """The value of a JavaScript expression; promises are waited for."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"]))
        return answer["result"].get("value")

    @property
    def problems(self):
        self.run("0")  # what is under way arrives
        return [e["params"] for e in self._events() if _is_problem(e)]

    @property
    def requests(self):
        """All addresses asked for."""
        sent = (e for e in self._events() if e["method"] == "Network.requestWillBeSent")
        return [e["params"]["request"]["url"] for e in sent]


def _is_problem(event):
    method, params = event["method"], event["params"]
    if method == "Log.entryAdded":
        return params["entry"]["level"] in ("error", "warning")
    if method == "Runtime.consoleAPICalled":
        return params["type"] in ("error", "warning", "assert")
    return method in ("Runtime.exceptionThrown", "Page.javascriptDialogOpening")


class Page(Frame):
    """An address opened in a tab."""

    def __init__(self, browser, url, width, height, dark):
        super().__init__(browser, browser.call("Target.createTarget", url="about:blank")["targetId"])
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}
        self.call("Emulation.setEmulatedMedia", features=[scheme, still])
        self.call("Page.navigate", url=url)
        self._wait_for_load()

    def _wait_for_load(self):
        end = time.monotonic() + 60
        while not any(e["method"] == "Page.loadEventFired" for e in self._events()):
            self._browser._receive(end, "load")
        # Two frames: observers have run.
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def frames(self):
        """The frames of the page that have processes of their own, as sandboxed ones do."""
        targets = self._browser.call("Target.getTargets")["targetInfos"]
        return [Frame(self._browser, t["targetId"]) for t in targets if t.get("parentId") == self._target]

    def click(self, selector, which=0):
        """A click of the mouse in the middle of an element."""
        x, y = self.run(
            f"(() => {{ const e = document.querySelectorAll({json.dumps(selector)})[{which}];"
            "e.scrollIntoView({block: 'center', inline: 'center'}); const b = e.getBoundingClientRect();"
            "return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        self.mouse(x, y, "mousePressed", "mouseReleased")

    def mouse(self, x, y, *kinds):
        for kind in kinds or ("mouseMoved",):
            button = {} if kind == "mouseMoved" else {"button": "left", "clickCount": 1}
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **button)

    def key(self, name):
        code = {"Enter": 13, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}[name]
        text = {"text": "\r"} if name == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            extra = text if kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=code, **extra)

    def screenshot(self, path, whole=False):
        image = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(image["data"]))
