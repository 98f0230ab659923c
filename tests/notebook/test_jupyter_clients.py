# SPDX-License-Identifier: Apache-2.0
"""Programs that run notebooks without a server (nbclient, `jupyter execute`), front ends that start kernels themselves, and
the transports they use: each hears why a kernel died."""

import json
import os
import queue
import re
import subprocess
import sys
import textwrap
import time
import uuid
from pathlib import Path

import pytest
import test_cli

nbformat = pytest.importorskip("nbformat", reason="nbclient is not installed")
jupyter_client = pytest.importorskip("jupyter_client", reason="jupyter_client is not installed")

CELLS = [
    "kept = 41",
    "print('before', flush=True)\nimport ctypes, time\ntime.sleep(0.3)\nctypes.string_at(0)",
    "kept + 1",
]
TOLD = "leadline: the kernel died of a segmentation fault"


@pytest.fixture
def env(tmp_path):
    return {
        **os.environ,
        "JUPYTER_DEFAULT_PROVISIONER_NAME": "leadline-provisioner",
        "JUPYTER_RUNTIME_DIR": str(tmp_path / "runtime"),
        "JUPYTER_DATA_DIR": str(tmp_path / "data"),
        "IPYTHONDIR": str(tmp_path / "ipython"),
        "LEADLINE_FLIGHTS": str(tmp_path / "flights"),
    }


@pytest.fixture
def book(tmp_path):
    path = tmp_path / "book.ipynb"
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS])
    nbformat.write(book, path)
    return path


def run_python(code, env, folder):
    command = [sys.executable, "-c", textwrap.dedent(code)]
    return subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, check=False, timeout=180)


def assert_explained(text):
    assert TOLD in text and "in this cell." in text, text
    assert "advice  " in text and "memory  " in text


@pytest.mark.parametrize("transport", ["tcp", "ipc"])
def test_nbclient(book, env, tmp_path, transport):
    """In the cell's output, in the error, and on standard error."""
    done = run_python(
        f"""
        import nbclient, nbformat, os, sys
        book = nbformat.read({str(book)!r}, 4)
        client = nbclient.NotebookClient(book, timeout=120)
        client.create_kernel_manager()
        client.km.transport = {transport!r}
        if {transport!r} == "ipc":
            client.km.ip = os.path.join(os.getcwd(), "s")
        client.km.kernel_spec.argv[0] = sys.executable
        try:
            client.execute()
        except nbclient.exceptions.DeadKernelError as error:
            print("ERROR", error)
        nbformat.write(book, "done.ipynb")
        """,
        env,
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    outputs = nbformat.read(tmp_path / "done.ipynb", 4).cells[1].outputs
    told = "".join(output.text for output in outputs if output.output_type == "stream" and output.name == "stderr")
    assert_explained(told)
    assert told.count("leadline: ") == 1
    assert_explained(done.stdout.partition("ERROR")[2])
    assert_explained(done.stderr)
    page = Path(re.search(r"more +(\S+)", told)[1])
    assert page.is_file() and "<svg" in page.read_text()


def test_jupyter_execute(book, env, tmp_path):
    program = Path(sys.executable).with_name("jupyter-execute")
    done = subprocess.run(
        [program, book], env=env, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=180
    )
    assert done.returncode != 0
    assert_explained(done.stderr)


def test_a_notebook_that_ends_well_says_nothing(env, tmp_path):
    path = tmp_path / "well.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1+1")]), path)
    program = Path(sys.executable).with_name("jupyter-execute")
    done = subprocess.run(
        [program, path], env=env, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=180
    )
    assert done.returncode == 0 and "leadline" not in done.stdout + done.stderr, done
    assert not list((tmp_path / "flights").glob("*"))


def test_encrypted_connections(env, tmp_path):
    """CURVE: the provisioner has the keys."""
    done = run_python(
        """
        import queue, sys, time, jupyter_client
        manager = jupyter_client.KernelManager()
        if not hasattr(manager, "transport_encryption"):
            sys.exit("NONE")
        manager.kernel_spec.argv[0] = sys.executable
        manager.kernel_spec.metadata["supported_encryption"] = "curve"
        manager.start_kernel(transport_encryption="required")
        client = manager.client()
        client.start_channels()
        client.wait_for_ready(timeout=60)
        request = client.execute("import os, time; time.sleep(0.5); os.kill(os.getpid(), 9)")
        end = time.monotonic() + 30
        while time.monotonic() < end:
            manager.is_alive()
            try:
                message = client.get_iopub_msg(timeout=0.2)
            except queue.Empty:
                continue
            if message["msg_type"] == "stream" and message["parent_header"].get("msg_id") == request:
                print(message["content"]["text"])
                break
        client.stop_channels()
        manager.shutdown_kernel(now=True)
        """,
        env,
        tmp_path,
    )
    if "NONE" in done.stderr:
        pytest.skip("this jupyter_client does not encrypt")
    assert "leadline: the kernel was killed (SIGKILL) by somebody in this cell." in done.stdout, done


def test_poll_never_raises(env, tmp_path):
    """Whatever fails inside, Jupyter sees what it would have seen."""
    done = run_python(
        """
        import os, sys, time, jupyter_client
        from leadline.jupyter import life, provisioner
        manager = jupyter_client.KernelManager()
        manager.kernel_spec.argv[0] = sys.executable
        manager.start_kernel()
        assert type(manager.provisioner) is provisioner.LeadlineProvisioner
        assert manager.is_alive()
        def fail(*_): raise RuntimeError("broken")
        life.KernelLife.look = fail
        assert manager.is_alive()
        life.KernelLife.postmortem = fail
        os.kill(manager.provisioner.pid, 9)
        time.sleep(0.5)
        assert not manager.is_alive()
        assert manager.provisioner.process.returncode == -9
        life.KernelLife.reap = life.KernelLife.note_request = fail
        manager.restart_kernel(now=True)
        assert manager.is_alive()
        manager.shutdown_kernel(now=True)
        print("GOOD")
        """,
        env,
        tmp_path,
    )
    assert done.stdout.strip() == "GOOD", done


# A supervised kernelspec


class Supervised:
    """A kernel that was started from a kernelspec by somebody who knows nothing of provisioners, as VS Code does."""

    def __init__(self, spec, env, folder):
        self.file = folder / f"kernel-{uuid.uuid4().hex}.json"
        self.file, _ = jupyter_client.connect.write_connection_file(str(self.file))
        command = [word.replace("{connection_file}", self.file) for word in spec["argv"]]
        self.errors = (folder / "errors.txt").open("w+")
        env = {**env, "JPY_PARENT_PID": str(os.getpid())}  # kernels end when that is not their parent any more
        self.process = subprocess.Popen(command, env=env, cwd=folder, stderr=self.errors, start_new_session=True)
        self.client = jupyter_client.BlockingKernelClient(connection_file=self.file)
        self.client.load_connection_file()
        self.client.start_channels(hb=False)
        self.client.wait_for_ready(timeout=60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.stop_channels()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(20)
        self.errors.close()

    def told(self, request, seconds=20):
        """Text on standard error that came for a request; empty when none came."""
        end, text = time.monotonic() + seconds, ""
        while time.monotonic() < end and not (text and self.process.poll() is not None):
            try:
                message = self.client.get_iopub_msg(timeout=0.2)
            except queue.Empty:
                continue
            if message["msg_type"] == "stream" and message["parent_header"].get("msg_id") == request:
                text += message["content"]["text"] if message["content"]["name"] == "stderr" else ""
        return text


@pytest.fixture
def spec(env, tmp_path):
    if test_cli.PROGRAM is None:
        pytest.skip("the leadline program is not built")
    env.pop("JUPYTER_DEFAULT_PROVISIONER_NAME")
    command = [test_cli.PROGRAM, "kernel", "install", "--python", sys.executable, "--prefix", str(tmp_path / "prefix")]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done
    file = tmp_path / "prefix" / "share" / "jupyter" / "kernels" / "python3-leadline" / "kernel.json"
    spec = json.loads(file.read_text())
    assert spec["display_name"].endswith("(Leadline)") and (file.parent / "logo-64x64.png").is_file()
    return spec


def test_a_supervised_kernel_tells_any_front_end(spec, env, tmp_path):
    with Supervised(spec, env, tmp_path) as kernel:
        request = kernel.client.execute("import ctypes, time; time.sleep(0.5); ctypes.string_at(0)")
        told = kernel.told(request)
        assert_explained(told)
        assert kernel.process.wait(20) == -11
        kernel.errors.seek(0)
        assert TOLD in kernel.errors.read()


def test_a_supervised_kernel_takes_signals_and_ends_when_asked(spec, env, tmp_path):
    with Supervised(spec, env, tmp_path) as kernel:
        request = kernel.client.execute("import time; time.sleep(60)")
        time.sleep(1)
        kernel.process.send_signal(2)
        reply = kernel.client.get_shell_msg(timeout=20)
        while reply["parent_header"]["msg_id"] != request:
            reply = kernel.client.get_shell_msg(timeout=20)
        assert reply["content"]["ename"] == "KeyboardInterrupt"
        kernel.client.shutdown()
        assert kernel.process.wait(20) == 0
        kernel.errors.seek(0)
        assert "leadline" not in kernel.errors.read()


COUNT_INTERRUPTS = """
import signal, subprocess, time
count = 0
def note(*_):
    global count
    count += 1
before = signal.signal(signal.SIGINT, note)
child = subprocess.Popen(["sleep", "60"])
print("ready", flush=True)
end = time.monotonic() + 60
while not count and time.monotonic() < end: time.sleep(0.01)
time.sleep(1)
signal.signal(signal.SIGINT, before)
print("interrupts:", count, "child:", child.wait(10))
"""


def test_an_interrupt_of_the_whole_group_reaches_a_supervised_kernel_once(spec, env, tmp_path):
    """Jupyter sends signals to the group of what it started; what the kernel started gets them too."""
    with Supervised(spec, env, tmp_path) as kernel:
        told = ""

        def see(message):
            nonlocal told
            if message["msg_type"] == "stream":
                if "ready" not in told and "ready" in message["content"]["text"]:
                    os.killpg(kernel.process.pid, 2)
                told += message["content"]["text"]

        answer = kernel.client.execute_interactive(COUNT_INTERRUPTS, output_hook=see, timeout=60)
        assert answer["content"]["status"] == "ok", answer
        assert "interrupts: 1 child: -2" in told, told


def test_a_supervised_kernel_ends_with_its_supervisor(spec, env, tmp_path):
    with Supervised(spec, env, tmp_path) as kernel:
        seen = []
        answer = kernel.client.execute_interactive("import os; print(os.getpid())", output_hook=seen.append)
        assert answer["content"]["status"] == "ok"
        pid = int(next(m["content"]["text"] for m in seen if m["msg_type"] == "stream"))
        assert pid != kernel.process.pid
        kernel.process.kill()
        kernel.process.wait(20)
        for _ in range(100):
            if not Path(f"/proc/{pid}").exists():
                return
            time.sleep(0.1)
        raise AssertionError("the kernel outlived its supervisor")


def test_a_provisioned_kernel_is_told_of_once(spec, env, tmp_path):
    """The supervisor steps aside where Leadline's provisioner is."""
    kernels = tmp_path / "prefix" / "share" / "jupyter"
    env.update(JUPYTER_PATH=str(kernels), JUPYTER_DEFAULT_PROVISIONER_NAME="leadline-provisioner")
    done = run_python(
        """
        import time, jupyter_client
        manager = jupyter_client.KernelManager(kernel_name="python3-leadline")
        manager.start_kernel()
        client = manager.client()
        client.start_channels()
        client.wait_for_ready(timeout=60)
        client.execute("import os, time; time.sleep(0.5); os.abort()")
        end = time.monotonic() + 30
        while manager.is_alive() and time.monotonic() < end:
            time.sleep(0.2)
        client.stop_channels()
        """,
        env,
        tmp_path,
    )
    assert done.stderr.count("leadline: the kernel was aborted") == 1, done
