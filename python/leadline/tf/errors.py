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


class CancelledError(OpError):
    """Status cancelled."""

    _code = CANCELLED


class UnknownError(OpError):
    """Status unknown."""

    _code = UNKNOWN


class InvalidArgumentError(OpError, leadline.InvalidArgumentError):
    """Status invalid argument."""

    _code = INVALID_ARGUMENT


class DeadlineExceededError(OpError):
    """Status deadline exceeded."""

    _code = DEADLINE_EXCEEDED


class NotFoundError(OpError):
    """Status not found."""

    _code = NOT_FOUND


class AlreadyExistsError(OpError):
    """Status already exists."""

    _code = ALREADY_EXISTS


class PermissionDeniedError(OpError):
    """Status permission denied."""

    _code = PERMISSION_DENIED


class UnauthenticatedError(OpError):
    """Status unauthenticated."""

    _code = UNAUTHENTICATED


class ResourceExhaustedError(OpError):
    """Status resource exhausted."""

    _code = RESOURCE_EXHAUSTED


class FailedPreconditionError(OpError):
    """Status failed precondition."""

    _code = FAILED_PRECONDITION


class AbortedError(OpError):
    """Status aborted."""

    _code = ABORTED


class OutOfRangeError(OpError):
    """Status out of range."""

    _code = OUT_OF_RANGE


class UnimplementedError(OpError, leadline.UnsupportedError):
    """Status unimplemented."""

    _code = UNIMPLEMENTED


class InternalError(OpError):
    """Status internal."""

    _code = INTERNAL


class UnavailableError(OpError):
    """Status unavailable."""

    _code = UNAVAILABLE


class DataLossError(OpError):
    """Status data loss."""

    _code = DATA_LOSS


class BudgetError(ResourceExhaustedError, leadline.BudgetError):
    """It does not fit the budget: a ResourceExhaustedError, a leadline.BudgetError and a MemoryError.

    `needed` and `limit` are in bytes; `where` is the line of the program that asked for it.
    """

    code = "budget"
    where = ""


class DtypeError(InvalidArgumentError, TypeError):
    """Types that do not go together: in TensorFlow an InvalidArgumentError or, in a graph, a TypeError."""
