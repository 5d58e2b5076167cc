"""Keys and rates."""

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


def status(doorkeeper: RateLimiter, key: str = "", address: str = "10.0.0.1") -> int:
    try:
        doorkeeper.admit(address=address, key=key)
    except ApiError as error:
        return error.status
    return 200


def test_without_keys_everybody_is_let_in() -> None:
    doorkeeper = RateLimiter()
    assert not doorkeeper.wants_key
    assert {status(doorkeeper) for _ in range(100)} == {200}


def test_only_known_keys_are_let_in(keys: Keys) -> None:
    doorkeeper = RateLimiter(keys=keys)
    assert doorkeeper.wants_key
    assert [status(doorkeeper, key) for key in ("", "delta", "alpha", "# friends")] == [
        403, 403, 200, 403,
    ]  # fmt: skip


def test_no_key_lies_in_memory(keys: Keys) -> None:
    assert b"alpha" not in b"".join(keys.rates)


def test_a_key_may_have_a_rate_of_its_own(keys: Keys) -> None:
    doorkeeper = RateLimiter(keys=keys, requests_per_minute=3, clock=Clock())
    found = {key: [status(doorkeeper, key) for _ in range(5)] for key in ("alpha", "beta", "gamma")}
    assert found["alpha"] == [200, 200, 200, 429, 429]
    assert found["beta"] == [200, 200, 429, 429, 429]
    assert found["gamma"] == [200] * 5


def test_a_bucket_fills_up_again() -> None:
    clock = Clock()
    doorkeeper = RateLimiter(requests_per_minute=6, clock=clock)
    assert [status(doorkeeper) for _ in range(7)] == [200] * 6 + [429]
    with pytest.raises(ApiError, match="Too many requests: 6 a minute") as caught:
        doorkeeper.admit(address="10.0.0.1", key="")
    assert caught.value.retry_after == 10
    assert status(doorkeeper, address="10.0.0.2") == 200
    clock.now = 10
    assert [status(doorkeeper) for _ in range(2)] == [200, 429]


def test_a_household_has_one_bucket_in_ipv6() -> None:
    doorkeeper = RateLimiter(requests_per_minute=1, clock=Clock())
    addresses = ["2001:db8::1", "2001:db8::2", "2001:db8:0:1::1", "unix", "unix"]
    found = [status(doorkeeper, address=address) for address in addresses]
    assert found == [200, 429, 200, 200, 429]


def test_buckets_are_not_kept_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_BUCKETS", 2)
    doorkeeper = RateLimiter(requests_per_minute=1, clock=Clock())
    found = [status(doorkeeper, address=f"10.0.0.{last}") for last in (1, 2, 2, 3, 1)]
    assert found == [200, 200, 429, 200, 200]


@settings(deadline=None, max_examples=50)
@given(rate=st.integers(1, 20), waits=st.lists(st.floats(0, 20), min_size=1, max_size=60))
def test_no_minute_has_more_than_two_buckets(rate: int, waits: list[float]) -> None:
    clock = Clock()
    doorkeeper = RateLimiter(requests_per_minute=rate, clock=clock)
    passed = []
    for wait in waits:
        clock.now += wait
        if status(doorkeeper) == 200:
            passed.append(clock.now)
    for start in passed:
        assert sum(start <= moment < start + 60 for moment in passed) <= 2 * rate


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("alpha fast\n", r"line 1: behind the key stands something else than a number"),
        ("alpha\nbeta 1 2\n", r"line 2: behind the key"),
        ("# nobody\n", r"no keys\. The file should hold a key"),
    ],
)
def test_a_file_of_keys_must_hold_keys(tmp_path: Path, content: str, problem: str) -> None:
    path = tmp_path / "keys"
    path.write_text(content)
    with pytest.raises(DataError, match=problem):
        Keys.read(path)
