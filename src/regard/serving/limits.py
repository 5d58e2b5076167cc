"""Limits of the server: sizes, deadlines, API keys and rates."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from ipaddress import ip_address, ip_network
from pathlib import Path

from pydantic import Field

from regard.base.errors import DataError
from regard.corpora.lines import read_lines
from regard.serving.errors import ApiError
from regard.settings.recipe import Settings


class ServerSettings(Settings):
    """Limits and batching of a server; the defaults suit a small machine."""

    batch_sentences: int = Field(64, ge=1, description="most sentences of a batch")
    batch_tokens: int = Field(2_048, ge=1, description="most source tokens of a batch")
    wait_ms: float = Field(2.0, ge=0, description="how long an idle model waits for more sentences")
    queue: int = Field(2_000, ge=1, description="most sentences waiting for a model; then 429")
    views: int = Field(16, ge=1, description="most waiting attention requests; then 429")
    deadline_seconds: float = Field(30.0, gt=0, description="deadline of a request; then 503")
    body_seconds: float = Field(10.0, gt=0, description="deadline for receiving a request's body")
    max_characters: int = Field(
        10_000, ge=1, description="most characters in the texts of a request"
    )
    max_items: int = Field(1_000, ge=1, description="most texts in the list of a request")
    sentence_tokens: int = Field(
        512, ge=1, description="longest sentence: a longer one would hold up all others"
    )
    max_alternatives: int = Field(4, ge=0, description="most further translations of a text")
    max_beam: int = Field(12, ge=1, description="widest beam of an attention request")
    view_tokens: int = Field(100, ge=1, description="longest sentence whose attention is shown")
    requests_per_minute: int = Field(0, ge=0, description="for an address or key; 0: no limit")
    origins: tuple[str, ...] = Field((), description='CORS: allowed origins; ("*",) for all')

    @property
    def body_bytes(self) -> int:
        """Most bytes of a request: escaped in JSON, a character takes up to twelve."""
        return 12 * self.max_characters + 65_536


KEYS = "one key per line, optionally followed by its requests per minute"
MOST_BUCKETS = 100_000


@dataclass(frozen=True)
class Keys:
    """API keys, stored as digests only; each may have a rate of its own."""

    rates: Mapping[bytes, int | None]

    @classmethod
    def read(cls, path: Path) -> Keys:
        """Read a file of keys, one per line, optionally followed by a rate per minute."""
        rates: dict[bytes, int | None] = {}
        for number, line in enumerate(read_lines(path, expected=KEYS), 1):
            key, *rest = line.partition("#")[0].split() or [""]
            if not key:
                continue
            if len(rest) > 1 or not all(one.isascii() and one.isdigit() for one in rest):
                raise DataError(
                    "the key is followed by something that is not a number",
                    path=path,
                    line=number,
                    remedy=f"The file should hold {KEYS}.",
                )
            rates[_digest(key)] = int(rest[0]) if rest else None
        if not rates:
            raise DataError("no keys", path=path, remedy=f"The file should hold {KEYS}.")
        return cls(rates)


class RateLimiter:
    """Checks keys and rates; every address or key has a token bucket that refills with time."""

    def __init__(
        self,
        *,
        keys: Keys | None = None,
        requests_per_minute: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._keys = keys
        self._rate = requests_per_minute
        self._clock = clock
        self._buckets: OrderedDict[bytes, tuple[float, float]] = OrderedDict()

    @property
    def requires_key(self) -> bool:
        """Whether requests need an API key."""
        return self._keys is not None

    def admit(self, *, address: str, key: str) -> None:
        """Admit a request, or refuse it with 403 or 429."""
        rate, owner = self._rate, _network(address).encode()
        if self._keys is not None:
            if not key:
                raise ApiError(403, "Please give an API key, as api_key.")
            owner = _digest(key)
            if owner not in self._keys.rates:
                raise ApiError(403, "Invalid API key")
            key_rate = self._keys.rates[owner]
            rate = self._rate if key_rate is None else key_rate
        if rate:
            self._take_token(owner, rate)

    def _take_token(self, owner: bytes, rate: int) -> None:
        """Take one token from a bucket that holds at most a minute's worth."""
        now = self._clock()
        left, since = self._buckets.pop(owner, (float(rate), now))
        left = min(float(rate), left + (now - since) * rate / 60)
        allowed = left >= 1
        self._buckets[owner] = (left - 1 if allowed else left, now)
        while len(self._buckets) > MOST_BUCKETS:  # the least recently used one
            self._buckets.popitem(last=False)
        if not allowed:
            raise ApiError(
                429,
                f"Too many requests: {rate} a minute are allowed.",
                retry_after=max(1, math.ceil((1 - left) * 60 / rate)),
            )


def _digest(key: str) -> bytes:
    return sha256(key.encode("utf-8", "replace")).digest()


def _network(address: str) -> str:
    """Return what shares a bucket: an IPv4 address, or the /64 network of an IPv6 address."""
    try:
        found = ip_address(address)
    except ValueError:
        return address
    if found.version == 4:
        return address
    return str(ip_network(f"{found.compressed.partition('%')[0]}/64", strict=False))
