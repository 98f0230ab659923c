# SPDX-License-Identifier: Apache-2.0
"""Runs healthy notebooks in watched kernels in small containers, and counts those in which the watch said something:
`make survive SURVIVE_ARGS="--healthy 100"`. Several notebooks share a kernel, so that each finds what the last one left."""

from __future__ import annotations

import json
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import healthy
import situations

import kernels

TIMEOUT = 300.0
CONTAINERS = ("512MB", "700MB", "1.8GB")
SHARES = (0.85, 0.6, 0.3)  # of the container: the notebook and its kernel
_PER_KERNEL = 6
_KERNEL_BYTES = 110_000_000
_LEAST_BYTES = 20_000_000
_MACHINE_BYTES = 2_500_000_000  # more than 8 % of usual ones: below that the machine is what is full
# What malloc keeps of the notebook before is not this one's; within a notebook nothing is given back for it.
_TRIM = "import ctypes; ctypes.CDLL(None).malloc_trim(0)\n"
_LOOK = """import json as _json
_report = get_ipython().run_line_magic('watch', 'report')
print(_json.dumps({'alarms': _report.alarms, 'used': _report.now['used'], 'capacity': _report.now['capacity'],
                   'peak': max([_report.now['used'], *(s['used'] for s in _report.samples if s['seconds'] >= %f)]),
                   'seconds': _report.now['seconds']}))"""


@dataclass
class Outcome:
    """What became of one notebook; `wrong` is empty when the watch was silent and nothing failed."""

    name: str
    container: str
    share: float
    reached: float = 0.0  # the largest part of the container that was seen in use
    seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)


def look(kernel: kernels.Kernel, since: float | None = None) -> dict:
    """Alarms and memory so far, as the watch of the kernel reports them; the peak since a second of its clock."""
    result = kernel.run(_TRIM + _LOOK % 0 if since is None else _LOOK % since, timeout=TIMEOUT)
    assert result.error is None and not result.died, result
    return json.loads(result.stdout)


def run_notebook(kernel: kernels.Kernel, notebook: healthy.Notebook, container: str, share: float) -> Outcome:
    """Runs its cells with sizes that fill the container up to the share, and empties the kernel after them."""
    outcome, started = Outcome(notebook.name, container, share), time.monotonic()
    before = look(kernel)
    for cell in notebook.sized(int(share * before["capacity"]) - before["used"]):
        result = kernel.run(cell, timeout=TIMEOUT)
        outcome.seconds = time.monotonic() - started
        if result.died or result.error is not None or "leadline" in result.stdout + result.stderr:
            outcome.wrong.append(f"{cell}\n{result}")
        if result.died:
            return outcome
    after = look(kernel, before["seconds"])
    outcome.reached = after["peak"] / after["capacity"]
    if after["alarms"] != before["alarms"]:
        outcome.wrong.append(f"{after['alarms'] - before['alarms']} alarms")
    checked = kernel.run(situations.CHECK, timeout=TIMEOUT)
    if checked.value != situations.CHECKED:
        outcome.wrong.append(f"variables were lost: {checked}")
    return outcome


def choose(count: int, parse: Callable[[str], int]) -> Iterator[tuple[healthy.Notebook, str, float]]:
    """So many notebooks, all kinds before the next size, each time in another container; in the next larger one where
    its library does not fit."""
    chosen = 0
    for turn in range(len(SHARES) * len(CONTAINERS)):
        share = SHARES[turn % len(SHARES)]
        for number, notebook in enumerate(healthy.NOTEBOOKS):
            if chosen == count:
                return
            place = (number + turn + turn // len(SHARES)) % len(CONTAINERS)
            needed = notebook.loads + _KERNEL_BYTES + _LEAST_BYTES * notebook.takes
            while place < len(CONTAINERS) - 1 and share * parse(CONTAINERS[place]) < needed:
                place += 1
            yield notebook, CONTAINERS[place], share
            chosen += 1


def _wait_for_machine(needed: int) -> None:
    """What others take of the machine is no matter of the container; the watch would warn of it, rightly."""
    end = time.monotonic() + 600
    while time.monotonic() < end:
        meminfo = Path("/proc/meminfo").read_text()
        if 1024 * int(re.search(r"MemAvailable:\s+(\d+)", meminfo)[1]) > needed + _MACHINE_BYTES:
            return
        time.sleep(5)


def _start(python: str, group: kernels.MemoryGroup, folder: Path) -> kernels.Kernel:
    env = {"LEADLINE_FLIGHTS": str(folder / "flights"), "LEADLINE_WATCH": None, "LEADLINE_SAVE": None}
    kernel = kernels.Kernel(python, folder, wrapper=group.wrapper, env=env)
    loaded = kernel.run(situations.SETUP + "L = D = None", timeout=TIMEOUT)
    assert loaded.error is None and not loaded.died, loaded
    return kernel


def _run_batch(python: str, container: str, batch: list, parse: Callable[[str], int]) -> Iterator[Outcome]:
    with tempfile.TemporaryDirectory() as folder, kernels.MemoryGroup(parse(container)) as group:
        if not group.made:
            raise SystemExit("no control group with a memory limit can be made here: are you root?")
        kernel = _start(python, group, Path(folder))
        try:
            for notebook, share in batch:
                _wait_for_machine(parse(container))
                yield (outcome := run_notebook(kernel, notebook, container, share))
                if outcome.wrong:  # the next one begins with a kernel that is in order
                    kernel.close()
                    kernel = _start(python, group, Path(folder))
        finally:
            kernel.close()


def run_healthy(options, parse: Callable[[str], int], has: Callable[[str, str], bool]) -> int:
    """Exit code 1 when the watch said a word in one of them."""
    pythons = [python for python in (options.python, kernels.TENSORFLOW) if python]
    batches: dict[tuple[str, str], list] = {}
    for notebook, container, share in choose(options.healthy, parse):
        python = next((python for python in pythons if has(python, notebook.library)), None)
        if options.only not in notebook.name:
            continue
        if python is None:
            print(f"{notebook.name}: skipped, {notebook.library} is not installed", flush=True)
            continue
        batches.setdefault((python, container), []).append((notebook, share))
    outcomes: list[Outcome] = []
    for (python, container), batch in batches.items():
        for at in range(0, len(batch), _PER_KERNEL):
            for outcome in _run_batch(python, container, batch[at : at + _PER_KERNEL], parse):
                outcomes.append(outcome)
                print(f"{container:>7}  {outcome.name:<50} {100 * outcome.share:.0f} % planned, "
                      f"{100 * outcome.reached:.0f} % seen  {outcome.seconds:.1f} s  "
                      f"{'NOT LEFT ALONE' if outcome.wrong else 'ok'}", flush=True)  # fmt: skip
                for words in outcome.wrong:
                    print(words, flush=True)
    bad = sum(bool(outcome.wrong) for outcome in outcomes)
    full = sum(outcome.reached >= 0.75 for outcome in outcomes)
    print(f"{len(outcomes)} healthy notebooks, {bad} not left alone; {full} were seen to fill three quarters or more")
    if options.json:
        Path(options.json).write_text(json.dumps([vars(outcome) for outcome in outcomes], indent=1))
    return 1 if bad else 0
