"""Budgets: what one untrusted input may take, and the messages for what takes more."""

from __future__ import annotations

import io
import os
import threading
import zipfile
from pathlib import Path

import pytest

from regard.base import budgets
from regard.base.budgets import (
    Budget,
    Meter,
    machine_memory,
    open_input,
    parse_json,
    parse_toml,
    require_small_archive,
    shown,
)
from regard.base.errors import DataError

PATH = Path("a.xml")
REMEDY = "Split it into smaller files, or check where it comes from."


def test_the_default_budget_leaves_most_of_the_memory() -> None:
    Meter(PATH).take(bytes=machine_memory() // 4)
    with pytest.raises(DataError, match="it takes more than"):
        Meter(PATH).take(bytes=machine_memory() // 4 + 1)
    with pytest.raises(DataError, match="it has more than"):
        Meter(PATH).take(items=machine_memory() // 1_000)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no such device")
def test_devices_are_no_files() -> None:
    with pytest.raises(DataError, match="this is a device"), open_input(Path("/dev/zero")):
        pass
    with open_input(Path(os.devnull)) as file:
        assert file.read() == b""


def test_bytes_are_counted() -> None:
    meter = Meter(PATH, Budget(bytes=3 << 20))
    meter.take(bytes=3 << 20)
    with pytest.raises(DataError) as caught:
        meter.take(bytes=1)
    assert str(caught.value) == f"a.xml: the file is refused: it takes more than 3 MB. {REMEDY}"


def test_items_are_counted() -> None:
    meter = Meter(PATH, Budget(items=2_000))
    meter.take(items=2_000)
    with pytest.raises(DataError, match="it has more than 2,000 parts"):
        meter.take(items=1)


def test_levels_are_counted() -> None:
    meter = Meter(PATH, Budget(depth=2))
    meter.enter()
    meter.leave()
    meter.enter()
    meter.enter()
    with pytest.raises(DataError, match="it is nested more than 2 levels deep"):
        meter.enter()


def test_seconds_are_counted_by_size(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(budgets.time, "monotonic", lambda: now)
    meter = Meter(PATH, Budget(seconds=5.0, seconds_per_megabyte=10.0))
    meter.take(bytes=1 << 20)
    now = 14.9
    meter.look_at_the_clock()
    now = 15.1
    with pytest.raises(DataError, match="reading it takes longer than 15 seconds"):
        meter.take(items=1024)


def test_expansion_is_counted_beyond_what_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "FREE_BYTES", 1_000)
    meter = Meter(PATH, Budget(expansion=10), packed=100)
    meter.take(bytes=2_000)
    with pytest.raises(DataError, match="100 bytes unpack to more than 2,000"):
        meter.take(bytes=1)


def test_an_archive_is_judged_before_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budgets, "FREE_BYTES", 1_000)
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(10 << 20))
    with zipfile.ZipFile(path) as archive, pytest.raises(DataError, match="bytes unpack to more"):
        require_small_archive(archive, path=path)
    with zipfile.ZipFile(path) as archive, pytest.raises(DataError, match="more than 2 MB"):
        require_small_archive(archive, path=path, budget=Budget(bytes=2 << 20))


def test_an_archive_in_memory_is_judged_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "FREE_BYTES", 1_000)
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(10 << 20))
    with zipfile.ZipFile(held) as archive, pytest.raises(DataError, match="bytes unpack to more"):
        require_small_archive(archive, path=Path("q.docx"))


def test_a_pipe_without_a_writer_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budgets, "PIPE_SECONDS", 0.1)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with (
        pytest.raises(DataError, match=r"nothing was written to this pipe within 0\.1 seconds"),
        open_input(pipe),
    ):
        pass


def test_a_pipe_with_a_writer_is_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=[b"one\ntwo\n"])
    writer.start()
    with open_input(pipe) as file:
        assert file.read() == b"one\ntwo\n"
    writer.join()


def test_a_missing_file_stays_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), open_input(tmp_path / "none"):
        pass


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "9" * 5_000, b"\xff", '{"a": NaN]'])
def test_whatever_is_wrong_with_json_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError):
        parse_json(text)


BAD_TOML = {
    "many dots": (f"{'a.' * 100_000}a = 1", "a key has more than 32 parts"),
    "many quoted dots": ('"a".' * 50_000 + "a = 1", "a key has more than 32 parts"),
    "dots in a table": (f"[{'a.' * 100_000}a]", "a key has more than 32 parts"),
    "lists in lists": (f"a = {'[' * 100_000}", "it is nested more than 32 levels deep"),
    "tables in tables": (f"a = {'{a=' * 100_000}", "it is nested more than 32 levels deep"),
    "a megabyte": ("#" * 1_100_000, "it has more than 1,048,576 characters"),
    "many digits": (f"a = {'9' * 5_000}", "Exceeds the limit"),
    "unclosed text": ('a = """' + '\\"""' * 50_000, "Unterminated string"),
}


@pytest.mark.parametrize("name", BAD_TOML)
def test_toml_that_would_take_long_is_refused(name: str) -> None:
    text, problem = BAD_TOML[name]
    with pytest.raises(ValueError, match=problem):
        parse_toml(text)


def test_dots_and_brackets_in_texts_do_not_count() -> None:
    text = f"""a = "{"." * 100}[[["  # {"[" * 100}\nb = '{"{" * 100}'\nc = {[0.5] * 100}\n"""
    assert parse_toml(text)["c"] == [0.5] * 100


def test_values_are_shown_shortened() -> None:
    assert shown("a") == "'a'"
    assert shown("b" * 99) == f"'{'b' * 59}..."
    assert shown(1 << 20_000) == "a huge int"
