"""Limits of the server: sizes, deadlines, API keys and rates."""

from __future__ import annotations

import math
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from ipaddress import ip_address, ip_network
from pathlib import Path

from pydantic import Field

from regard.base.errors import DataError, SettingsError
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
    memory: int | None = Field(
        None, ge=1, description="bytes of the server beyond which unused models are unloaded"
    )
    requests_per_minute: int = Field(0, ge=0, description="for an address or key; 0: no limit")
    origins: tuple[str, ...] = Field((), description='CORS: allowed origins; ("*",) for all')

    @property
    def body_bytes(self) -> int:
        """Most bytes of a request: escaped in JSON, a character takes up to twelve."""
        return 12 * self.max_characters + 65_536


UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
SIZE = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,3})?) ?([kmgt]?)(i?)b?", re.IGNORECASE)


def bytes_of(size: str) -> int:
    """Return a size written as 2GB, 500 MB or 1.5 GiB, in bytes."""
    found = SIZE.fullmatch(size.strip())
    if found is None or not float(found[1]):
        raise SettingsError(f"--memory {size!r} is not a size: write it as 2GB or 500MB.")
    unit = UNITS[found[2].lower()]
    return int(float(found[1]) * (2 ** (10 * round(math.log(unit, 1_000))) if found[3] else unit))


KEYS = "one key per line, optionally followed by its requests per minute"
RATE = re.compile(r"[0-9]{1,9}")
MOST_BUCKETS = 100_000
WRONG_KEYS_PER_MINUTE = 20


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
            if len(rest) > 1 or not all(RATE.fullmatch(one) for one in rest):
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


class _Buckets:
    """Token buckets that refill with time; the least recently used are forgotten."""

    def __init__(self, clock: Callable[[], float]):
        self._clock = clock
        self._held: OrderedDict[bytes, tuple[float, float]] = OrderedDict()

    def left(self, owner: bytes, rate: int) -> float:
        """Return the tokens of a bucket, which holds at most a minute's worth."""
        now = self._clock()
        left, since = self._held.pop(owner, (float(rate), now))
        left = min(float(rate), left + (now - since) * rate / 60)
        self._held[owner] = (left, now)
        while len(self._held) > MOST_BUCKETS:
            self._held.popitem(last=False)
        return left

    def take(self, owner: bytes, rate: int) -> float:
        """Take a token if there is one; return how many there were."""
        left = self.left(owner, rate)
        if left >= 1:
            self._held[owner] = (left - 1, self._held[owner][1])
        return left


class RateLimiter:
    """Checks keys and rates; every address or key has a token bucket that refills with time.

    An address that sends many wrong keys has to wait, so that keys cannot be guessed; a key that
    was right there before is still served.
    """

    def __init__(
        self,
        *,
        keys: Keys | None = None,
        requests_per_minute: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._keys = keys
        self._rate = requests_per_minute
        self._requests = _Buckets(clock)
        self._wrong = _Buckets(clock)
        self._known: OrderedDict[bytes, set[bytes]] = OrderedDict()  # right keys of a network

    @property
    def requires_key(self) -> bool:
        """Whether requests need an API key."""
        return self._keys is not None

    def require_patience(self, *, address: str) -> None:
        """Refuse an address that has sent too many wrong keys, unless it has sent a right one."""
        network = _network(address).encode()
        if network not in self._known:
            self._require_patience(network)

    def admit(self, *, address: str, key: str) -> None:
        """Admit a request, or refuse it with 403 or 429."""
        network = _network(address).encode()
        rate, owner = self._rate, network
        if self._keys is not None:
            if not key:
                raise ApiError(403, "Please give an API key, as api_key.")
            owner = _digest(key)
            self._check(self._keys, owner, network)
            key_rate = self._keys.rates[owner]
            rate = self._rate if key_rate is None else key_rate
        if rate and (left := self._requests.take(owner, rate)) < 1:
            raise _wait(f"Too many requests: {rate} a minute are allowed.", left, rate)

    def _check(self, keys: Keys, key: bytes, network: bytes) -> None:
        """Refuse a wrong key, and one that comes after many wrong ones."""
        if key not in self._known.get(network, ()):
            self._require_patience(network)
        if key not in keys.rates:
            self._wrong.take(network, WRONG_KEYS_PER_MINUTE)
            raise ApiError(403, "Invalid API key")
        self._known.setdefault(network, set()).add(key)
        self._known.move_to_end(network)
        while len(self._known) > MOST_BUCKETS:
            self._known.popitem(last=False)

    def _require_patience(self, network: bytes) -> None:
        left = self._wrong.left(network, WRONG_KEYS_PER_MINUTE)
        if left < 1:
            raise _wait("Too many wrong API keys.", left, WRONG_KEYS_PER_MINUTE)


def _wait(problem: str, left: float, rate: int) -> ApiError:
    """Return the error of a bucket that is empty."""
    return ApiError(429, problem, retry_after=max(1, math.ceil((1 - left) * 60 / rate)))


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
