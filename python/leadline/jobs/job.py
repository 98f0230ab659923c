# SPDX-License-Identifier: Apache-2.0
"""A job is a function that also says what it will take: leadline.quantize(...) and leadline.quantize.plan(...)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar

from leadline._leadline import JobPlan

_P = ParamSpec("_P")
_R = TypeVar("_R")


class Job(Generic[_P, _R]):
    """Calls a function; `plan` takes the same arguments and takes nothing else: no sample is read."""

    __name__: str
    __qualname__: str  # of the function, as update_wrapper() copies it

    def __init__(self, run: Callable[_P, _R], plan: Callable[..., JobPlan]):
        self._run = run
        self._plan = plan
        functools.update_wrapper(self, run)

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        return self._run(*args, **kwargs)

    def plan(self, *args: _P.args, **kwargs: _P.kwargs) -> JobPlan:
        """What the job would take with these arguments, phase by phase; the samples may be left out as None.

        >>> print(leadline.quantize.plan("model.tflite", "int8"))
        """
        return self._plan(*args, **kwargs)

    def __reduce__(self) -> str:
        return self.__qualname__

    def __repr__(self) -> str:
        return f"<leadline job {self.__qualname__}>"


def planned_by(plan: Callable[..., JobPlan]) -> Callable[[Callable[_P, _R]], Job[_P, _R]]:
    """Makes a job of a function: `plan` takes its arguments, as far as they matter."""
    return lambda run: Job(run, plan)
