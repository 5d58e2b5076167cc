"""Who may ask, and how often: API keys from a file, and a bucket of requests for everybody."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from ipaddress import ip_address, ip_network
from pathlib import Path

from regard.base.errors import DataError
from regard.corpora.lines import read_lines
from regard.serving.errors import ApiError

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


class Doorkeeper:
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
