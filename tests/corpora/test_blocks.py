from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from regard.base.errors import RunError, SettingsError
from regard.corpora.blocks import (
    DigestSet,
    ResumableOutput,
    digests_of,
    in_blocks,
    mapped,
    output_files,
)


def test_blocks() -> None:
    assert list(in_blocks(range(5), size=2)) == [[0, 1], [2, 3], [4]]
    assert list(in_blocks([], size=2)) == []


@pytest.mark.parametrize("processes", [1, 3])
@pytest.mark.parametrize("blocks", [0, 1, 2, 7])
def test_results_come_in_order_from_any_number_of_processes(processes: int, blocks: int) -> None:
    given = [[number] for number in range(blocks)]
    found = list(mapped(lambda block: block[0] ** 2, given, processes=processes))
    assert found == [([number], number**2) for number in range(blocks)]


def test_what_a_lost_process_had_to_do_is_done_here() -> None:
    here = os.getpid()

    def work(block: list[int]) -> int:
        if block[0] == 3 and os.getpid() != here:
            os._exit(1)
        return -block[0]

    found = list(mapped(work, [[number] for number in range(9)], processes=2))
    assert [result for _, result in found] == [-number for number in range(9)]


def test_digests_know_what_was_added() -> None:
    draw = np.random.default_rng(1)
    known: set[int] = set()
    found = DigestSet()
    for _ in range(40):
        digests = draw.integers(0, 3_000, 100).astype(np.uint64)
        expected = []
        for digest in digests.tolist():
            expected.append(digest not in known)
            known.add(digest)
        assert found.add(digests).tolist() == expected
    assert len(found) == len(known)
    again = DigestSet(np.array([1, 2, 1], np.uint64))
    assert again.add(np.array([2, 3], np.uint64)).tolist() == [False, True]
    assert again.add(np.empty(0, np.uint64)).tolist() == []
    assert len(np.unique(digests_of(["a", "b", "a"]))) == 2


def test_an_output_goes_on_from_its_last_commit(tmp_path: Path) -> None:
    path, job = tmp_path / "out.tsv", {"data": 1}

    def interrupted(upto: int) -> None:
        with ResumableOutput([path], job=job, temporary=["digests"], seconds=0.0) as output:
            for number in range(output.state.get("done", 0), upto):
                output.write([str(number), "a\tb"])
                output.files["digests"].write(b"x")
                output.commit(lambda number=number: {"done": number + 1})  # type: ignore[misc]
            output.write(["never", "committed"])
            raise KeyboardInterrupt

    for upto in (3, 6):
        with pytest.raises(KeyboardInterrupt):
            interrupted(upto)
        assert not path.exists()
    with ResumableOutput([path], job=job, temporary=["digests"]) as output:
        assert output.state == {"done": 6}
        assert output.read("digests") == b"x" * 6
        output.write(["6", "z"])
    assert path.read_text() == "".join(f"{n}\ta b\n" for n in range(6)) + "6\tz\n"
    assert [one.name for one in tmp_path.iterdir()] == ["out.tsv"]
    with pytest.raises(RunError, match=r"out\.tsv exists already: choose another name"):
        ResumableOutput([path], job=job)
    with pytest.raises(RunError, match="there is no folder"):
        ResumableOutput([tmp_path / "no" / "out.tsv"], job=job)


@pytest.mark.parametrize(
    "notes",
    [[], {"job": {"data": 1}}, {"job": {"data": 1}, "sizes": {"out.tsv": "1"}, "state": {}},
     {"job": {"data": 1}, "sizes": {"out.tsv": -1}, "state": {}},
     {"job": {"data": 1}, "sizes": {"out.tsv": 0}, "state": 3}],
)  # fmt: skip
def test_damaged_notes_of_a_job_begin_it_anew(tmp_path: Path, notes: object) -> None:
    path, job = tmp_path / "out.tsv", {"data": 1}
    with (
        pytest.raises(KeyboardInterrupt),
        ResumableOutput([path], job=job, seconds=0.0) as output,
    ):
        output.write(["a"])
        output.commit(lambda: {"done": 1})
        raise KeyboardInterrupt
    (found,) = tmp_path.glob("**/progress.json")
    found.write_text(json.dumps(notes), encoding="utf-8")
    with ResumableOutput([path], job=job) as output:
        assert output.state == {}
        output.write(["b"])
    assert path.read_text() == "b\n"


def test_another_job_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "out.tsv"
    with (
        pytest.raises(KeyboardInterrupt),
        ResumableOutput([path], job={"data": 1}, seconds=0.0) as output,
    ):
        output.write(["old", "old"])
        output.commit(lambda: {"done": 1})
        raise KeyboardInterrupt
    with ResumableOutput([path], job={"data": 2}) as output:
        assert output.state == {}
        output.write(["new", "new"])
    assert path.read_text() == "new\tnew\n"


def test_output_files() -> None:
    assert output_files(Path("a.tsv"), None) == [Path("a.tsv")]
    assert output_files(Path("a"), "en-de") == [Path("a.en"), Path("a.de")]
    with pytest.raises(SettingsError, match=r"--out a: name a \.tsv file"):
        output_files(Path("a"), None)
