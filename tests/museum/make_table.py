# SPDX-License-Identifier: Apache-2.0
"""Writes docs/museum.md: every case, what LiteRT and TensorFlow do, and what Leadline does.

    .venv/bin/python tests/museum/make_table.py            # Leadline's column; the peers' are in peers.json
    .venv/bin/python tests/museum/make_table.py --peers    # runs the peers again, too; minutes

`--only I09 K01` keeps to some cases of the peers.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(HERE.parent / "conformance"), str(HERE.parent / "python")]
os.environ.setdefault("KERAS_BACKEND", "numpy")

from exhibit import Exhibit, View  # noqa: E402
from exhibits.seen import mutant_views  # noqa: E402
from museum import ALL  # noqa: E402
from visitor import Outcome, Visitor, difference, judge  # noqa: E402

PEERS = HERE / "peers.json"
PAGE = ROOT / "docs" / "museum.md"
PROGRAM_SECONDS = {"litert": 60, "tensorflow": 600}
SHOWN = 150  # characters of a message
MOST = 4  # different messages in a cell

HEAD = """\
# The museum: how other tools died, and what Leadline does

Public reports about TensorFlow Lite, LiteRT, their converter, calibrator and debugger, and all published advisories.
Each is a test in `tests/museum`: the same input, written by Leadline's own writer or cut from such a file, ends in the
right result (compared with a plain statement in numpy) or in a `leadline.Error` whose text names the cause; the process
lives, and every byte that was charged is released. Sources: `tf#N` is an issue of tensorflow/tensorflow, `lt#N` of
google-ai-edge/litert-torch; "public PoC" was published without a number. L: loading, I: running, K: converting,
M: tflite-micro, S: seen when Leadline began.

{summary}

The peers are ai-edge-litert 2.3.0 (models) and TensorFlow 2.21 (conversion), each run in a child process with a time
limit, models with 6 GiB of address space and on the same file that Leadline gets; `tests/museum/peers.json` keeps what they did.
"accepts it" means that they ran, with some result, what Leadline refuses: mostly what is not legal, in a few cases
what Leadline does not support (a rank of 40, an SVDF state of int8). Several inputs of a case have several answers.
Tests: `pytest tests/museum`, one by its number: `-k I09`. This page: `.venv/bin/python tests/museum/make_table.py`,
with `--peers` to run the peers again.

| case | what | source | LiteRT 2.3.0, TensorFlow 2.21 | Leadline |
|---|---|---|---|---|
"""


# What the peers do -------------------------------------------------------------------------------


def seen_of(shown: View, outcome: Outcome) -> str:
    """What a peer did with a view, in words for the table."""
    if outcome.kind == "death":
        return f"dies: {outcome.text}"
    if outcome.kind == "hang":
        return f"hangs: {outcome.text}"
    if outcome.kind == "error":
        _, kind, said = outcome.text.split(": ", 2)
        return f"refuses: {said or kind}"
    if shown.outputs is None:
        return "accepts it"
    return "wrong result" if difference(shown, outcome.outputs) else "right result"


def run_program(exhibit: Exhibit, python: str) -> str:
    """What a peer's program says, or how it ended."""
    seconds = PROGRAM_SECONDS[exhibit.peer]
    model = exhibit.model or (exhibit.views[0].model if exhibit.views else None)
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "KERAS_BACKEND": "tensorflow"}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tflite"
        if model is not None:
            path.write_bytes(model())
        names = exhibit.arguments or ("litert",)
        command = [python, "-c", exhibit.theirs, str(path), *names]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=seconds, env=environment, check=False
            )
        except subprocess.TimeoutExpired:
            return f"hangs: no answer after {seconds} s"
    if done.returncode < 0:
        return f"dies: {signal.Signals(-done.returncode).name}"
    if "result: " in done.stdout:
        return done.stdout.split("result: ", 1)[1].strip()
    last = [line for line in done.stderr.strip().splitlines() if line.strip()]
    return f"refuses: {last[-1] if last else f'ended with {done.returncode}'}"


def run_peers(exhibits: list[Exhibit], tensorflow: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    with Visitor("ai_edge_litert.interpreter") as litert:
        for exhibit in exhibits:
            said = [seen_of(shown, litert.look(shown)) for shown in exhibit.views]
            if exhibit.theirs:
                python = tensorflow if exhibit.peer == "tensorflow" else sys.executable
                said.append(run_program(exhibit, python))
            elif exhibit.unseen:
                said.append(exhibit.unseen)
            if exhibit.id == "S02":
                seen = Counter(litert.look(shown).kind for shown in mutant_views())
                ended = seen["death"] + seen["hang"]
                said.append(f"dies: {ended} of {seen.total()} end it; {seen['error']} refused, {seen['result']} run")
            said = [re.sub(r"/tmp/\S*/", "", line) for line in said]
            found[exhibit.id] = said
            print(f"{exhibit.id}: {'; '.join(short(line) for line in said)}", flush=True)
    return found


# The table ---------------------------------------------------------------------------------------


def run_leadline(exhibits: list[Exhibit]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    with Visitor("leadline.lite") as visitor:
        for exhibit in exhibits:
            said = []
            for shown in exhibit.views:
                outcome = visitor.look(shown)
                if why := judge(shown, outcome):
                    sys.exit(f"{exhibit.id}: {why}")
                said.append("right result" if outcome.kind == "result" else outcome.text.split(": ", 1)[1])
            if exhibit.ours is not None:
                said.append(exhibit.ours())
            found[exhibit.id] = said
    return found


def short(text: str) -> str:
    line = re.sub(r"/tmp/\S*/", "", " ".join(text.split()))
    return line if len(line) <= SHOWN else line[: SHOWN - 3] + "..."


def cell(said: list[str]) -> str:
    """Each thing once, with how often it was said; of many errors the first few."""
    counts = Counter(short(text) for text in said)
    if any(text.startswith("right result:") for text in counts):
        counts.pop("right result", None)
    parts = [text if count == 1 else f"{text} ({count} times)" for text, count in counts.items()]
    if len(parts) > MOST:
        kinds = Counter(text.split(":")[0] for text in said)
        parts = [*parts[: MOST - 1], f"... in all {', '.join(f'{kind}: {count}' for kind, count in kinds.items())}"]
    return "<br>".join(part.replace("|", "\\|").replace("<", "&lt;") for part in parts)


def summary(peers: dict[str, list[str]]) -> str:
    lines = [line for said in peers.values() for line in said]
    count = Counter(line.split(":")[0] for line in lines)
    cases = sum(any(line.startswith(("dies", "hangs")) for line in said) for said in peers.values())
    inputs = sum(len(exhibit.views) for exhibit in ALL)
    programs = sum(exhibit.ours is not None for exhibit in ALL)
    return (
        f"{len(ALL)} cases with {inputs} models and {programs} programs. Leadline: no death, no hang, no wrong result. "
        f"The peers die or hang in {cases} of the cases ({count['dies']} deaths, {count['hangs']} hangs). Wrong "
        f"results: {count['wrong result']}; models that Leadline refuses, but accepted: {count['accepts it']}."
    )


def page(peers: dict[str, list[str]], ours: dict[str, list[str]]) -> str:
    rows = [
        f"| {e.id} | {e.title} | {e.source} | {cell(peers.get(e.id) or ['-'])} | {cell(ours[e.id])} |\n" for e in ALL
    ]
    return HEAD.format(summary=summary(peers)) + "".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--tensorflow", default=str(ROOT / ".venv-tensorflow" / "bin" / "python"))
    chosen = parser.parse_args()
    peers = json.loads(PEERS.read_text()) if PEERS.exists() else {}
    if chosen.peers:
        exhibits = [e for e in ALL if not chosen.only or e.id in chosen.only]
        peers |= run_peers(exhibits, chosen.tensorflow)
        peers = {exhibit.id: peers[exhibit.id] for exhibit in ALL if exhibit.id in peers}
        PEERS.write_text(json.dumps(peers, indent=1, ensure_ascii=False) + "\n")
    PAGE.write_text(page(peers, run_leadline(ALL)))


if __name__ == "__main__":
    main()
