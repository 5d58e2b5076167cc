"""API keys and the rate limiter."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.base.errors import DataError
from regard.serving import limits
from regard.serving.errors import ApiError
from regard.serving.limits import Keys, RateLimiter


class Clock:
    """A clock that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    path = tmp_path / "keys"
    path.write_text("# friends\nalpha\n\nbeta 2  # slow\ngamma 0\n")
    return Keys.read(path)


def status(limiter: RateLimiter, key: str = "", address: str = "10.0.0.1") -> int:
    try:
        limiter.admit(address=address, key=key)
    except ApiError as error:
        return error.status
    return 200


def test_without_keys_every_request_is_admitted() -> None:
    limiter = RateLimiter()
    assert not limiter.requires_key
    assert {status(limiter) for _ in range(100)} == {200}


def test_only_known_keys_are_admitted(keys: Keys) -> None:
    limiter = RateLimiter(keys=keys)
    assert limiter.requires_key
    assert [status(limiter, key) for key in ("", "delta", "alpha", "# friends")] == [
        403, 403, 200, 403,
    ]  # fmt: skip


def test_wrong_keys_are_limited(keys: Keys) -> None:
    clock = Clock()
    limiter = RateLimiter(keys=keys, clock=clock)
    assert status(limiter, "alpha") == 200
    assert [status(limiter, f"guess {n}") for n in range(22)] == [403] * 20 + [429] * 2
    assert status(limiter, "beta") == 429  # a right guess is not told from a wrong one
    assert status(limiter, "alpha") == 200  # but who was right before is served
    assert status(limiter, "beta", address="10.0.0.2") == 200
    clock.now = 4.0
    assert [status(limiter, "guess"), status(limiter, "guess")] == [403, 429]
    with pytest.raises(ApiError, match="Too many wrong API keys"):
        limiter.admit(address="10.0.0.1", key="guess")


def test_an_address_with_wrong_keys_waits_before_its_body_is_read(keys: Keys) -> None:
    limiter = RateLimiter(keys=keys, clock=Clock())
    for number in range(20):
        limiter.require_patience(address="10.0.0.1")
        assert status(limiter, f"guess {number}") == 403
    with pytest.raises(ApiError) as caught:
        limiter.require_patience(address="10.0.0.1")
    assert (caught.value.status, caught.value.retry_after) == (429, 3)
    limiter.require_patience(address="10.0.0.2")


def test_keys_are_not_kept_in_memory(keys: Keys) -> None:
    assert b"alpha" not in b"".join(keys.rates)


def test_a_key_may_have_a_rate_of_its_own(keys: Keys) -> None:
    limiter = RateLimiter(keys=keys, requests_per_minute=3, clock=Clock())
    found = {key: [status(limiter, key) for _ in range(5)] for key in ("alpha", "beta", "gamma")}
    assert found["alpha"] == [200, 200, 200, 429, 429]
    assert found["beta"] == [200, 200, 429, 429, 429]
    assert found["gamma"] == [200] * 5


def test_a_bucket_fills_up_again() -> None:
    clock = Clock()
    limiter = RateLimiter(requests_per_minute=6, clock=clock)
    assert [status(limiter) for _ in range(7)] == [200] * 6 + [429]
    with pytest.raises(ApiError, match="Too many requests: 6 a minute") as caught:
        limiter.admit(address="10.0.0.1", key="")
    assert caught.value.retry_after == 10
    assert status(limiter, address="10.0.0.2") == 200
    clock.now = 10
    assert [status(limiter) for _ in range(2)] == [200, 429]


def test_an_ipv6_network_shares_one_bucket() -> None:
    limiter = RateLimiter(requests_per_minute=1, clock=Clock())
    addresses = ["2001:db8::1", "2001:db8::2", "2001:db8:0:1::1", "unix", "unix"]
    found = [status(limiter, address=address) for address in addresses]
    assert found == [200, 429, 200, 200, 429]


def test_the_least_recently_used_bucket_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_BUCKETS", 2)
    limiter = RateLimiter(requests_per_minute=1, clock=Clock())
    found = [status(limiter, address=f"10.0.0.{last}") for last in (1, 2, 2, 3, 1)]
    assert found == [200, 200, 429, 200, 200]


@settings(deadline=None, max_examples=50)
@given(rate=st.integers(1, 20), waits=st.lists(st.floats(0, 20), min_size=1, max_size=60))
def test_no_minute_has_more_than_two_buckets(rate: int, waits: list[float]) -> None:
    clock = Clock()
    limiter = RateLimiter(requests_per_minute=rate, clock=clock)
    passed = []
    for wait in waits:
        clock.now += wait
        if status(limiter) == 200:
            passed.append(clock.now)
    for start in passed:
        assert sum(start <= moment < start + 60 for moment in passed) <= 2 * rate


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("alpha fast\n", r"line 1: the key is followed by something that is not a number"),
        ("alpha\nbeta 1 2\n", r"line 2: the key is followed"),
        ("# no key\n", r"no keys\. The file should hold one key per line"),
    ],
)
def test_a_file_of_keys_must_hold_keys(tmp_path: Path, content: str, problem: str) -> None:
    path = tmp_path / "keys"
    path.write_text(content)
    with pytest.raises(DataError, match=problem):
        Keys.read(path)
