# SPDX-License-Identifier: Apache-2.0
"""Mixed work for an hour in one process, then in a notebook: nothing stays charged, resident memory does not grow.

    python tests/soak/soak.py --seconds 3600            # this process
    python tests/soak/soak.py --seconds 3600 --notebook # a Jupyter kernel

Prints the rounds done and the growth; exits with 1 when it is more than --growth-mb.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "notebook")]

from soak_jobs import Jobs, make_keras_file, resident_bytes, temporary_folder  # noqa: E402

import leadline  # noqa: E402
from leadline import lite  # noqa: E402

WARM_UP_ROUNDS = 20  # caches of Python, numpy and malloc fill in the first rounds
SMALL_MODEL_BYTES = 2 << 20
MB = 1 << 20


def small_models() -> list[str]:
    """Real ones, where they are at hand."""
    folder = os.environ.get("LEADLINE_SHARED")
    files = sorted(Path(folder, "models").glob("*.tflite")) if folder else []
    return [str(path) for path in files if path.stat().st_size < SMALL_MODEL_BYTES]


def runnable(models: list[str]) -> list[str]:
    """Those that run with zeros as inputs."""
    chosen = []
    for path in models:
        try:
            interpreter = lite.Interpreter(path)
            interpreter.allocate_tensors()
            interpreter.invoke()
            chosen.append(path)
        except leadline.Error:
            continue
    return chosen


class Growth:
    """Resident memory round by round, until the time is over."""

    def __init__(self, seconds: float):
        self.started = time.monotonic()
        self.end = self.started + seconds
        self.resident: list[int] = []

    def goes_on(self) -> bool:
        return time.monotonic() < self.end or len(self.resident) < WARM_UP_ROUNDS + 2

    def bytes(self) -> int:
        """From the least after the warm-up to the least at the end: single rounds may hold a page more or less."""
        settled = self.resident[WARM_UP_ROUNDS:]
        part = max(1, len(settled) // 10)
        return min(settled[-part:]) - min(settled[:part])

    def summary(self, place: str, jobs: int) -> str:
        return (
            f"{place}: {jobs} jobs in {len(self.resident)} rounds, {time.monotonic() - self.started:.0f} s; resident "
            f"{self.resident[-1] / MB:.1f} MB, grown by {self.bytes() / MB:.2f} MB; nothing left charged"
        )


def soak(growth: Growth, keras_file: str | None, models: list[str]) -> str:
    """Rounds of all jobs in this process."""
    jobs = Jobs(keras_file, models)
    while growth.goes_on():
        for name in jobs.names():
            jobs.run(name)
        growth.resident.append(resident_bytes())
    return growth.summary("one process", jobs.count)


def soak_kernel(growth: Growth, keras_file: str | None, models: list[str]) -> str:
    """The same in a Jupyter kernel, a cell for each round."""
    from kernels import Kernel

    with temporary_folder() as folder, Kernel(sys.executable, Path(folder)) as kernel:

        def cell(code: str) -> str:
            result = kernel.run(code, timeout=600)
            assert result.error is None and not result.died, str(result)
            return result.stdout

        cell(
            f"import sys; sys.path.insert(0, {str(HERE)!r})\n"
            "from soak_jobs import Jobs, resident_bytes\n"
            f"jobs = Jobs({keras_file!r}, {models!r})"
        )
        while growth.goes_on():
            cell("for name in jobs.names(): jobs.run(name)")
            growth.resident.append(int(cell("print(resident_bytes())")))
        return growth.summary("a Jupyter kernel", int(cell("print(jobs.count)")))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--growth-mb", type=float, default=5)
    parser.add_argument("--notebook", action="store_true", help="in a Jupyter kernel")
    args = parser.parse_args()
    growth = Growth(args.seconds)
    with temporary_folder() as folder:
        place = soak_kernel if args.notebook else soak
        print(place(growth, make_keras_file(Path(folder)), runnable(small_models())), flush=True)
    return 0 if growth.bytes() < args.growth_mb * MB else 1


if __name__ == "__main__":
    sys.exit(main())
