"""What goes wrong with a request: a status, a sentence for people, and when to try again."""

from __future__ import annotations

from fastapi.responses import JSONResponse

from regard.base.errors import RegardError


class ApiError(Exception):
    """An answer that is not what was asked for; the body is `{"error": ...}`."""

    def __init__(self, status: int, problem: str, *, retry_after: int | None = None):
        super().__init__(problem)
        self.status = status
        self.problem = problem
        self.retry_after = retry_after

    def response(self) -> JSONResponse:
        """Return the answer to send."""
        wait = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        return JSONResponse({"error": self.problem}, status_code=self.status, headers=wait)


class BusyError(ApiError):
    """More is waiting already than will be done in reasonable time."""

    def __init__(self, *, retry_after: int):
        super().__init__(
            429, "The server is busy: too much is waiting. Try again.", retry_after=retry_after
        )


def user_mistake(error: RegardError) -> ApiError:
    """Return an error about what a user asked for as an answer."""
    return ApiError(400, str(error))


def bad_request(problem: str) -> ApiError:
    """Return the error of a request that cannot be understood or served."""
    return ApiError(400, problem)
