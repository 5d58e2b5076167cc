"""What the server accepts, how long it waits, who may ask, and how often."""

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
    """Limits and manners of a server; the defaults suit a small machine."""

    batch_sentences: int = Field(64, ge=1, description="most sentences that are searched at once")
    batch_tokens: int = Field(2_048, ge=1, description="most source symbols of a batch")
    wait_ms: float = Field(2.0, ge=0, description="an idle server waits so long for company")
    queue: int = Field(2_000, ge=1, description="sentences that may wait for a model; then 429")
    views: int = Field(16, ge=1, description="views of attention that may wait; then 429")
    seconds: float = Field(30.0, gt=0, description="most seconds for one request; then 503")
    body_seconds: float = Field(10.0, gt=0, description="a request must have arrived by then")
    max_characters: int = Field(10_000, ge=1, description="of all texts of one request")
    max_items: int = Field(1_000, ge=1, description="texts in the list of one request")
    sentence_symbols: int = Field(
        512, ge=1, description="longest sentence: a longer one would hold up all others"
    )
    max_alternatives: int = Field(4, ge=0, description="further translations of a text")
    max_beam: int = Field(12, ge=1, description="widest beam that a view may ask for")
    view_symbols: int = Field(100, ge=1, description="longest sentence whose attention is shown")
    requests_per_minute: int = Field(0, ge=0, description="of an address or key; 0: any number")
    origins: tuple[str, ...] = Field((), description='CORS: sites that may ask; ("*",) for all')

    @property
    def body_bytes(self) -> int:
        """Most bytes of a request: a character may be written in up to twelve."""
        return 12 * self.max_characters + 65_536


KEYS = "a key and, if it likes, its requests per minute a line"
MOST_BUCKETS = 100_000


@dataclass(frozen=True)
class Keys:
    """Keys by their digests, so that none lies in memory; each may have a rate of its own."""

    rates: Mapping[bytes, int | None]

    @classmethod
    def read(cls, path: Path) -> Keys:
        """Read a file with a key a line, and behind it the requests per minute it is good for."""
        rates: dict[bytes, int | None] = {}
        for number, line in enumerate(read_lines(path, expected=KEYS), 1):
            key, *rest = line.partition("#")[0].split() or [""]
            if not key:
                continue
            if len(rest) > 1 or not all(one.isascii() and one.isdigit() for one in rest):
                raise DataError(
                    "behind the key stands something else than a number",
                    path=path,
                    line=number,
                    remedy=f"The file should hold {KEYS}.",
                )
            rates[_digest(key)] = int(rest[0]) if rest else None
        if not rates:
            raise DataError("no keys", path=path, remedy=f"The file should hold {KEYS}.")
        return cls(rates)


class RateLimiter:
    """Lets requests in; everybody has a bucket that fills up with time (a token bucket)."""

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
    def wants_key(self) -> bool:
        """Whether only those with a key are let in."""
        return self._keys is not None

    def admit(self, *, address: str, key: str) -> None:
        """Let a request pass, or refuse it with 403 or 429."""
        rate, owner = self._rate, _neighbourhood(address).encode()
        if self._keys is not None:
            if not key:
                raise ApiError(403, "Please give an API key, as api_key.")
            owner = _digest(key)
            if owner not in self._keys.rates:
                raise ApiError(403, "Invalid API key")
            own = self._keys.rates[owner]
            rate = self._rate if own is None else own
        if rate:
            self._draw(owner, rate)

    def _draw(self, owner: bytes, rate: int) -> None:
        """Take one request from a bucket that holds a minute's worth at most."""
        now = self._clock()
        left, since = self._buckets.pop(owner, (float(rate), now))
        left = min(float(rate), left + (now - since) * rate / 60)
        allowed = left >= 1
        self._buckets[owner] = (left - 1 if allowed else left, now)
        while len(self._buckets) > MOST_BUCKETS:  # the one that was asked for least lately
            self._buckets.popitem(last=False)
        if not allowed:
            raise ApiError(
                429,
                f"Too many requests: {rate} a minute are allowed.",
                retry_after=max(1, math.ceil((1 - left) * 60 / rate)),
            )


def _digest(key: str) -> bytes:
    return sha256(key.encode("utf-8", "replace")).digest()


def _neighbourhood(address: str) -> str:
    """Return whom an address belongs to: one machine, or in IPv6 the network of a household."""
    try:
        found = ip_address(address)
    except ValueError:
        return address
    if found.version == 4:
        return address
    return str(ip_network(f"{found.compressed.partition('%')[0]}/64", strict=False))
