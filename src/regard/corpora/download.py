"""Downloads that go on where they were cut, and are checked against a known checksum."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, build_opener

from regard.base.budgets import parse_json
from regard.base.errors import DataError, RegardError
from regard.base.files import BLOCK, read_json, write_json

TIMEOUT = 60.0  # seconds without a byte
ATTEMPTS = 4
PAUSE = 1.0  # seconds before the second attempt; doubled before each further one
LONGEST_ANSWER = 16 << 20  # bytes of a catalogue's answer
AGENT = {"User-Agent": "regard"}

DownloadProgress = Callable[[int, int | None], None]
"""Is told the bytes that are there, and of how many if that is known."""


class DownloadError(RegardError):
    """A download that has failed; the message says what to do."""


@dataclass(frozen=True)
class Checksum:
    """The size and SHA-256 of a file."""

    bytes: int
    sha256: str

    @classmethod
    def of(cls, path: Path) -> Checksum:
        """Compute the checksum of a file."""
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while block := file.read(BLOCK):
                digest.update(block)
        return cls(path.stat().st_size, digest.hexdigest())

    def require(self, path: Path, *, origin: str) -> None:
        """Refuse a file that is another one than this."""
        found = Checksum.of(path)
        if found != self:
            raise DataError(
                f"the checksum is wrong: {found.bytes:,} bytes with SHA-256 {found.sha256}, but "
                f"{self.bytes:,} bytes with {self.sha256} were expected",
                path=path,
                remedy=f"Remove it and fetch it again. If it is still wrong, {origin} has changed "
                "and should not be trusted.",
            )


def download(
    url: str,
    path: Path,
    *,
    wanted: Checksum | None = None,
    progress: DownloadProgress = lambda done, total: None,
) -> Checksum:
    """Download a file and return its checksum; refuse one that is not the wanted one.

    What arrives is kept in `NAME.part` until it is whole. A download that was cut goes on there,
    by a range request, as long as the server says that its file is the same.
    """
    _require_web(url)
    part, notes = path.with_name(f"{path.name}.part"), path.with_name(f"{path.name}.part.json")
    for attempt in range(1, ATTEMPTS + 1):
        try:
            _attempt(url, part, notes, progress)
            break
        except (HTTPException, URLError, OSError) as error:
            if not _may_pass(error):
                raise
            if attempt == ATTEMPTS:
                raise _failed(url, part, error) from None
            time.sleep(PAUSE * 2 ** (attempt - 1))
    found = Checksum.of(part)
    notes.unlink(missing_ok=True)
    if wanted is not None and found != wanted:
        part.unlink()  # nothing of it can be used
        raise DataError(
            f"{url} gave {found.bytes:,} bytes with SHA-256 {found.sha256}, but {wanted.bytes:,} "
            f"bytes with {wanted.sha256} were expected",
            path=path,
            remedy="Try again later; if it stays so, the file there was changed and should not be "
            "trusted.",
        )
    part.replace(path)
    return found


def fetch_json(url: str) -> Any:
    """Return the JSON value at an address."""
    _require_web(url)
    try:
        with _open(url, {}) as answer:
            return parse_json(answer.read(LONGEST_ANSWER))
    except ValueError:
        raise DownloadError(f"{url} did not answer with JSON. Try again later.") from None
    except (HTTPException, URLError, OSError) as error:
        raise _failed(url, None, error) from None


def _attempt(url: str, part: Path, notes: Path, progress: DownloadProgress) -> None:
    """Download what is still missing."""
    known: Any = read_json(notes, owner="download") if notes.is_file() and part.is_file() else {}
    if not isinstance(known, dict) or not isinstance(known.get("mark"), str):
        known = {}
    mark = known.get("mark") if known.get("url") == url else None
    done = part.stat().st_size if mark else 0
    if done and done == known.get("total"):
        return
    headers = {"Range": f"bytes={done}-", "If-Range": mark} if mark and done else {}
    with _open(url, headers) as answer:
        if answer.status != 206 or _start_of(answer) != done:
            done = 0  # the server sends the whole file, which may be another one by now
        length = answer.headers.get("Content-Length")
        total = done + int(length) if length and length.isdecimal() else None
        mark = answer.headers.get("ETag") or answer.headers.get("Last-Modified")
        if mark and mark.startswith("W/"):  # a weak mark is no promise of the same bytes
            mark = None
        write_json(notes, {"url": url, "mark": mark, "total": total})
        with part.open("r+b" if done else "wb") as file:
            file.seek(done)
            file.truncate()
            while block := answer.read(BLOCK):
                file.write(block)
                done += len(block)
                progress(done, total)
    if total is not None and done < total:
        raise ConnectionError("the connection was closed too early")


def _open(url: str, headers: dict[str, str]) -> HTTPResponse:
    opener = build_opener()
    request = Request(url, headers={**AGENT, **headers})  # of http and https only
    answer: HTTPResponse = opener.open(request, timeout=TIMEOUT)
    return answer


def _start_of(answer: HTTPResponse) -> int:
    """Return where a part of a file begins, as the server says; -1 if it does not."""
    unit, _, span = (answer.headers.get("Content-Range") or "").partition(" ")
    start = span.partition("-")[0]
    return int(start) if unit == "bytes" and start.isdecimal() else -1


def _require_web(url: str) -> None:
    if urlsplit(url).scheme not in ("http", "https"):
        raise DownloadError(f"{url!r} is not an address of the web: https:// is expected.")


def _may_pass(error: Exception) -> bool:
    """Return whether another attempt may help, or else the message; a full disk is neither."""
    if isinstance(error, HTTPException | URLError | ConnectionError | TimeoutError):
        return True
    return getattr(error, "filename", None) is None and not getattr(error, "errno", None)


def _failed(url: str, part: Path | None, error: Exception) -> DownloadError:
    """Return what a user should know of a failed download."""
    if isinstance(error, HTTPError):
        hint = "It may have moved." if error.code in (403, 404, 410) else "Try again later."
        return DownloadError(f"{url} answered with status {error.code}. {hint}")
    kept = part.stat().st_size if part is not None and part.is_file() else 0
    if kept:
        return DownloadError(
            f"The download of {url} was cut after {kept:,} bytes. Run the same command again: it "
            "goes on from there."
        )
    reason = getattr(error, "reason", None) or error
    said = getattr(reason, "strerror", None) or str(reason) or type(error).__name__
    return DownloadError(
        f"{urlsplit(url).netloc} cannot be reached ({said}). Is there a network connection? "
        "Without one, copy the files from another machine and name them with --data."
    )
