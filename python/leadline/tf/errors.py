# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's errors. All are leadline.Errors too; the numbers are those of TensorFlow's status codes."""

from __future__ import annotations

import leadline

OK, CANCELLED, UNKNOWN, INVALID_ARGUMENT, DEADLINE_EXCEEDED, NOT_FOUND, ALREADY_EXISTS = range(7)
PERMISSION_DENIED, RESOURCE_EXHAUSTED, FAILED_PRECONDITION, ABORTED, OUT_OF_RANGE, UNIMPLEMENTED = range(7, 13)
INTERNAL, UNAVAILABLE, DATA_LOSS, UNAUTHENTICATED = range(13, 17)


class OpError(leadline.Error):
    """What went wrong in an op."""

    _code = UNKNOWN

    def __init__(self, node_def=None, op=None, message="", error_code=None, *args) -> None:
        super().__init__(message)
        self.node_def = node_def
        self.op = op
        self.message = message
        self.error_code = self._code if error_code is None else error_code

    def __str__(self) -> str:
        return self.message

    def __reduce__(self):
        return type(self), (None, None, self.message)


def _subclass(name: str, number: int, *bases: type) -> type:
    return type(name, (OpError, *bases), {"_code": number, "__module__": __name__, "__doc__": f"Status {number}."})


CancelledError = _subclass("CancelledError", CANCELLED)
UnknownError = _subclass("UnknownError", UNKNOWN)
InvalidArgumentError = _subclass("InvalidArgumentError", INVALID_ARGUMENT, leadline.InvalidArgumentError)
DeadlineExceededError = _subclass("DeadlineExceededError", DEADLINE_EXCEEDED)
NotFoundError = _subclass("NotFoundError", NOT_FOUND)
AlreadyExistsError = _subclass("AlreadyExistsError", ALREADY_EXISTS)
PermissionDeniedError = _subclass("PermissionDeniedError", PERMISSION_DENIED)
UnauthenticatedError = _subclass("UnauthenticatedError", UNAUTHENTICATED)
ResourceExhaustedError = _subclass("ResourceExhaustedError", RESOURCE_EXHAUSTED)
FailedPreconditionError = _subclass("FailedPreconditionError", FAILED_PRECONDITION)
AbortedError = _subclass("AbortedError", ABORTED)
OutOfRangeError = _subclass("OutOfRangeError", OUT_OF_RANGE)
UnimplementedError = _subclass("UnimplementedError", UNIMPLEMENTED, leadline.UnsupportedError)
InternalError = _subclass("InternalError", INTERNAL)
UnavailableError = _subclass("UnavailableError", UNAVAILABLE)
DataLossError = _subclass("DataLossError", DATA_LOSS)


class BudgetError(ResourceExhaustedError, leadline.BudgetError):
    """It does not fit the budget: a ResourceExhaustedError, a leadline.BudgetError and a MemoryError.

    `needed` and `limit` are in bytes; `where` is the line of the program that asked for it.
    """

    code = "budget"
    where = ""


class DtypeError(InvalidArgumentError, TypeError):
    """Types that do not go together: in TensorFlow an InvalidArgumentError or, in a graph, a TypeError."""
