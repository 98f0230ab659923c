# SPDX-License-Identifier: Apache-2.0
"""Kernels of a real Jupyter server die in every way, and the cell that was running says why; what the user asks for is
no death."""

import asyncio
import os
import re
import subprocess
import sys
import time
import urllib.error

import pytest
import servers

import kernels

pytest.importorskip("jupyter_server", reason="jupyter_server is not installed")

LIMIT = 512 * 1024 * 1024
# A Python without Leadline: as if it were not installed.
BARE = "import sys; sys.modules['leadline'] = None; from ipykernel import kernelapp; kernelapp.launch_new_instance()"
# name: (cell, words of a notebook with %load_ext leadline, words of one without)
DEATHS = {
    "SIGKILL": (
        "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
        ["the kernel was killed (SIGKILL) by somebody in this cell."],
        ["the kernel was killed (SIGKILL) by somebody in this cell."],
    ),
    "SIGSEGV": (
        "import ctypes\nctypes.string_at(0)",
        ["the kernel died of a segmentation fault", "line 2 of the cell: ctypes.string_at(0)", "leadline.guard"],
        ["the kernel died of a segmentation fault in this cell.", "leadline.guard", "%load_ext leadline"],
    ),
    "abort": (
        "import os\ndef give_up():\n    os.abort()\ngive_up()",
        [
            "the kernel was aborted",
            "line 3 of the cell: os.abort(), in give_up, called from line 4 of the cell: give_up()",
        ],
        ["the kernel was aborted in this cell."],
    ),
    "os._exit": (
        "import os\nos._exit(3)",
        ["the kernel ended by itself with exit code 3 in this cell.", "os._exit()"],
        ["the kernel ended by itself with exit code 3 in this cell.", "os._exit()"],
    ),
    "exec": (
        "import os\nos.execv('/bin/true', ['true'])",
        ["the kernel became another program (exec): /bin/true in this cell.", "subprocess"],
        ["the kernel ended by itself with exit code 0 in this cell."],
    ),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with servers.Server(tmp_path_factory.mktemp("server")) as started:
        started.add_kernel("bare", [sys.executable, "-c", BARE, "-f", "{connection_file}"])
        yield started


def assert_told(outcome, words):
    """Once, and before the front end hears of the restart: afterwards it would not show it."""
    assert outcome.stderr.count("leadline: ") == 1, outcome
    for word in words:
        assert word in outcome.stderr, f"{word!r} is not in\n{outcome.stderr}"
    assert outcome.statuses.index("told") < outcome.statuses.index("restarting"), outcome
    assert "advice  " in outcome.stderr and "memory  it had " in outcome.stderr


async def fresh(notebook, load):
    if load:
        loaded = await notebook.run("%load_ext leadline")
        assert not loaded.error, loaded
        assert "died" not in loaded.stderr, "it was told already"
        started = await notebook.run("import leadline; watch = leadline.watch(1.0, refuse_large=False)")
        assert not started.error, started
    notebook.messages.clear()


@pytest.mark.parametrize("load", [True, False], ids=["watched", "unwatched"])
def test_the_cell_says_why_the_kernel_died(server, load):
    async def die():
        async with servers.Notebook(server, protocol=servers.V1 if load else "") as notebook:
            for name, (code, watched, unwatched) in DEATHS.items():
                await fresh(notebook, load)
                outcome = await notebook.die(f"print('before', flush=True)\n{code}")
                assert outcome.stdout in ("before\n", ""), name  # the kernel's own thread may not have sent it
                words = [shifted(word) for word in (watched if load else unwatched)]
                assert_told(outcome, words)

    asyncio.run(die())


def shifted(words):
    """Cells have one line before."""
    return re.sub(r"line (\d+) of the cell", lambda found: f"line {int(found[1]) + 1} of the cell", words)


def test_a_kernel_without_leadline_is_explained_too(server):
    async def die():
        async with servers.Notebook(server, "bare") as notebook:
            absent = await notebook.run("import leadline")
            assert absent.error == "ModuleNotFoundError"
            notebook.messages.clear()
            outcome = await notebook.die("x = bytearray(300_000_000)\nimport os; os.kill(os.getpid(), 11)")
            assert_told(outcome, ["the kernel died of a segmentation fault in this cell."])
            return outcome.stderr

    told = asyncio.run(die())
    # The peak is told by itself where the last look at the kernel was before it or after it.
    sizes = re.findall(r"(?:peak was|it had) (\d+)(?:\.\d+)? MiB", told)
    assert max(map(int, sizes), default=0) > 300, told


def test_the_whole_story_has_an_address(server):
    async def die():
        async with servers.Notebook(server) as notebook:
            await notebook.run("%load_ext leadline\nimport time; time.sleep(1.5)")  # for a curve
            return await notebook.die("import os, time; time.sleep(0.3); os.kill(os.getpid(), 9)")

    link = servers.link_in(asyncio.run(die()).stderr)
    assert link.startswith(f"{server.url}/leadline/postmortem/{time.strftime('%Y%m%dT', time.gmtime())}")
    page = server.get(link[len(server.url) :])
    assert "<svg" in page and "was killed (SIGKILL) by somebody" in page and "<script" not in page
    assert "SIGKILL" not in server.get(link[len(server.url) :], token="wrong"), "that is the page to log in"
    with pytest.raises(urllib.error.HTTPError) as missing:
        server.get("/leadline/postmortem/nothing")
    assert missing.value.code == 404
    assert all(page.stat().st_mode & 0o077 == 0 for page in server.pages())


def test_what_the_user_asks_for_is_no_death(server):
    """Restart, interrupt, sys.exit() in a cell, shutdown: also of a kernel that is busy, or does not listen."""

    async def ask():
        async with servers.Notebook(server) as notebook:
            await fresh(notebook, True)
            left = await notebook.run("import sys; sys.exit(3)")
            assert left.error == "SystemExit"
            await notebook.call("POST", f"/api/kernels/{notebook.id}/restart")
            await notebook.wait_until_alive()
            busy = await notebook.send("import time; time.sleep(60)")
            await asyncio.sleep(1)
            await notebook.call("POST", f"/api/kernels/{notebook.id}/interrupt")
            stopped = await notebook.wait(busy, lambda outcome: outcome.ended)
            assert stopped.error == "KeyboardInterrupt"
            busy = await notebook.send(
                "while True:\n    try:\n        time.sleep(60)\n    except KeyboardInterrupt: pass"
            )
            await asyncio.sleep(1)
            await notebook.call("POST", f"/api/kernels/{notebook.id}/restart")  # ends in SIGKILL
            await notebook.wait_until_alive()
            await notebook.call("DELETE", f"/api/kernels/{notebook.id}")
            await asyncio.sleep(1.5)
            return notebook.messages

    pages = server.pages()
    messages = asyncio.run(ask())
    assert "leadline:" not in str(messages)
    assert server.pages() == pages
    assert "leadline: no post-mortem" not in server.log.read_text()


def test_only_the_notebook_that_died_hears_of_it(server):
    async def die():
        async with servers.Notebook(server) as one, servers.Notebook(server) as other:
            working = await other.send("import time; time.sleep(4); print('done')")
            outcome = await one.die("import os; os.abort()")
            assert_told(outcome, ["was aborted in this cell"])
            done = await other.wait(working, lambda outcome: outcome.ended)
            assert (done.stdout, done.stderr, done.error) == ("done\n", "", "")
            assert "leadline" not in str(other.messages)

    asyncio.run(die())


def test_of_many_cells_the_one_that_ran_is_named(server):
    """Run all: the front end sends them at once."""

    async def die():
        async with servers.Notebook(server) as notebook:
            requests = [
                await notebook.send(code)
                for code in ("x = 1", "import os, time; time.sleep(1); os.kill(os.getpid(), 9)", "y = 2", "z = 3")
            ]
            outcome = await notebook.wait(requests[1], lambda outcome: "restarting" in outcome.statuses)
            assert_told(outcome, ["was killed (SIGKILL) by somebody in this cell"])
            assert all("leadline" not in notebook.outcome(request).stderr for request in requests[:1] + requests[2:])

    asyncio.run(die())


def test_a_front_end_that_was_away_hears_of_it_when_it_is_back(server):
    async def die():
        async with servers.Notebook(server) as notebook:
            request = await notebook.send("import os, time; time.sleep(3); os.kill(os.getpid(), 9)")
            await asyncio.sleep(1)
            await notebook.close()
            await asyncio.sleep(6)
            await notebook.open()
            outcome = await notebook.wait(request, lambda outcome: "leadline" in outcome.stderr)
            assert "was killed (SIGKILL) by somebody in this cell" in outcome.stderr

    asyncio.run(die())


def test_children_that_outlive_the_kernel_do_not_hide_its_death(server):
    """They hold its sockets."""
    code = (
        "import os, time\nif os.fork() == 0:\n    time.sleep(20); os._exit(0)\ntime.sleep(0.5); os.kill(os.getpid(), 9)"
    )

    async def die():
        async with servers.Notebook(server) as notebook:
            assert_told(await notebook.die(code), ["was killed (SIGKILL) by somebody in this cell"])

    asyncio.run(die())


@pytest.mark.parametrize("load", [True, False], ids=["watched", "unwatched"])
def test_the_oom_killer_is_named_and_nobody_else(server, load):
    """In a container of 512 MB. Then a kernel beside it kills itself, while the OOM kill is still counted."""
    with kernels.MemoryGroup(LIMIT) as group:
        if not group.made:
            pytest.skip("no control group with a memory limit can be made here")
        launch = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        name = server.add_kernel(f"contained-{load}", [*group.wrapper, *launch])

        async def die():
            async with servers.Notebook(server, name) as notebook:
                await fresh(notebook, load)
                took = await notebook.die(
                    "import collections, itertools\ncollections.deque(map(bytearray, itertools.repeat(b'x' * 10_000_000)))",
                    120,
                )
                await fresh(notebook, load)
                other = await notebook.die("import os, time\ntime.sleep(0.5)\nos.kill(os.getpid(), 9)")
                return took, other

        took, other = asyncio.run(die())
    assert_told(took, ["the kernel was killed by the OOM killer in this cell", "of 512 MiB", "smaller batches"])
    assert (
        re.search(r"it grew from \S+ MiB to \S+ MiB in the last \S+ s, since \d\d:\d\d:\d\d", took.stderr) or not load
    )
    assert_told(other, ["the kernel was killed (SIGKILL) by somebody in this cell"])


def test_the_memory_of_a_kernel_has_an_address(server):
    async def ask():
        async with servers.Notebook(server) as notebook:
            await notebook.run("x = bytearray(b'x') * 200_000_000")
            return await notebook.call("GET", f"/leadline/memory/{notebook.id}")

    memory = asyncio.run(ask())
    assert 200e6 < memory["resident"] < 600e6 and memory["capacity"] > memory["used"] > 0


LOAD = """
import logging
from types import SimpleNamespace as Some
from jupyter_client.provisioning.factory import KernelProvisionerFactory as Factory
from leadline.jupyter import server
settings = {"kernel_websocket_connection_class": int, "base_url": "/"}
app = Some(
    gateway_config=Some(gateway_enabled=GATEWAY), log=logging.getLogger(), config={},
    web_app=Some(settings=settings, add_handlers=lambda *_: None),
)
Factory.instance()
server.load(app)
print(Factory.instance().default_provisioner_name, settings["kernel_websocket_connection_class"].__name__)
"""


@pytest.mark.parametrize(
    ("gateway", "configured", "expected"),
    [
        (True, None, "local-provisioner int"),
        (False, "somebody-elses", "somebody-elses int"),
        (False, "local-provisioner", "local-provisioner int"),
        (False, None, "leadline-provisioner int"),
    ],
)
def test_gateways_other_provisioners_and_other_connections_are_left_alone(gateway, configured, expected):
    env = {**os.environ, "JUPYTER_DEFAULT_PROVISIONER_NAME": configured or ""}
    if configured is None:
        env.pop("JUPYTER_DEFAULT_PROVISIONER_NAME")
    command = [sys.executable, "-c", LOAD.replace("GATEWAY", str(gateway))]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == expected, done
