"""Errors of requests: a status, a message, and when to try again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regard.base.errors import RegardError

if TYPE_CHECKING:
    from fastapi.responses import JSONResponse


class ApiError(Exception):
    """An error response; its body is `{"error": ...}`."""

    def __init__(self, status: int, problem: str, *, retry_after: int | None = None):
        super().__init__(problem)
        self.status = status
        self.problem = problem
        self.retry_after = retry_after

    def response(self) -> JSONResponse:
        """Return the response to send."""
        from fastapi.responses import JSONResponse

        wait = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        return JSONResponse({"error": self.problem}, status_code=self.status, headers=wait)


class BusyError(ApiError):
    """Too many requests are waiting already."""

    def __init__(self, *, retry_after: int):
        super().__init__(
            429, "The server is busy: too much is waiting. Try again.", retry_after=retry_after
        )


def user_mistake(error: RegardError) -> ApiError:
    """Return the response for an error of the library that a request caused."""
    return ApiError(400, str(error))


def bad_request(problem: str) -> ApiError:
    """Return the error for a request that cannot be understood or served."""
    return ApiError(400, problem)
