# SPDX-License-Identifier: Apache-2.0
"""A job is a function that also says what it will take: leadline.quantize(...) and leadline.quantize.plan(...)."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator
from typing import Any, Generic, ParamSpec, TypeAlias, TypeVar

from leadline._leadline import JobPlan, time_limit

_P = ParamSpec("_P")
_R = TypeVar("_R")

# A job is written as a generator: once its arguments are understood it yields a function that returns its plan, and
# then does the work. So plan() and the job read the same arguments in the same way.
Planned: TypeAlias = Generator[Callable[[], JobPlan], None, _R]


class Job(Generic[_P, _R]):
    """Calls a function; `plan` takes the same arguments and takes nothing else: of samples no more than the
    sizes is read, where the model leaves sizes open. The argument `timeout` is kept here: after that many seconds the
    work ends with TimeLimitError."""

    __name__: str
    __qualname__: str  # of the function, as update_wrapper() copies it

    def __init__(self, function: Callable[_P, Planned[_R]]):
        self._function = function
        functools.update_wrapper(self, function)
        signature = inspect.signature(function)
        result = str(signature.return_annotation).removeprefix("Planned[").removesuffix("]")
        self.__signature__ = signature.replace(return_annotation=result)

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        work = self._function(*args, **kwargs)
        timeout: Any = kwargs.get("timeout")
        with time_limit(timeout):
            next(work)
            try:
                next(work)
            except StopIteration as end:
                return end.value
        raise RuntimeError(f"{self.__name__} did not end")  # not reached

    def plan(self, *args: Any, **kwargs: Any) -> JobPlan:
        """What the job would take with these arguments, phase by phase; all but the models may be left out.

        >>> print(leadline.quantize.plan("model.tflite", "int8"))
        """
        given = self.__signature__.bind_partial(*args, **kwargs)
        for name, parameter in self.__signature__.parameters.items():
            if parameter.default is parameter.empty and parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
                given.arguments.setdefault(name, None)
        work: Any = self._function(*given.args, **given.kwargs)
        with time_limit(kwargs.get("timeout")):
            return next(work)()

    def __reduce__(self) -> str:
        return self.__qualname__

    def __repr__(self) -> str:
        return f"<leadline job {self.__qualname__}>"
