# SPDX-License-Identifier: Apache-2.0
"""The worked example of docs/quantization.md: its program and its commands say what stands there, number for number."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from test_cli import PROGRAM

ROOT = Path(__file__).parents[2]
#: What depends on the machine and how busy it is.
TIME = re.compile(r"(same time|[+-]\d+ % time|\d[\d.e-]* (ms|us)\b)")


def blocks() -> list[tuple[str, str]]:
    text = (ROOT / "docs" / "quantization.md").read_text(encoding="utf-8")
    example = text[text.index("### A worked example") : text.index("**Blame is measured at the outputs.**")]
    return re.findall(r"```(python|console)\n(.*?)```", example, re.DOTALL)


def words(text: str) -> str:
    return " ".join(TIME.sub("TIME", text).split())


@pytest.mark.skipif(PROGRAM is None, reason="the leadline program is not built")
def test_the_worked_example_does_what_it_says(tmp_path):
    (kind, program), *rest = blocks()
    assert kind == "python"
    (tmp_path / "sounds.py").write_text(program, encoding="utf-8")
    numbers = 0
    for kind, block in rest:
        assert kind == "console"
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, said = step.partition("\n")
            arguments = shlex.split(command)
            arguments[0] = {"python": sys.executable, "leadline": PROGRAM}[arguments[0]]
            environment = {**os.environ, "COLUMNS": "80"}
            done = subprocess.run(arguments, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
            assert done.returncode == 0, (command, done.stderr)
            # "..." stands for what is left out.
            found = words(done.stdout)
            for part in said.split("...\n"):
                assert words(part) in found, f"{command}\n{part}\nis not in\n{done.stdout}"
                numbers += len(re.findall(r"\d", TIME.sub("", part)))
    assert numbers > 100, "the example has output"
