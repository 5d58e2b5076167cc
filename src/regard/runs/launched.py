"""A training whose processes torchrun has started, each with the same command.

The first process prepares and writes the run. The others wait, then follow it in a copy of the run
without its checkpoints, in a temporary folder, so machines need not share a disk.
"""

from __future__ import annotations

import base64
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from regard.base.errors import SettingsError
from regard.base.files import LOCK, fingerprint, write_json
from regard.compute.group import Group, GroupLostError, join_launched
from regard.runs.evidence import EVIDENCE
from regard.runs.run import RECIPE, Run
from regard.settings.recipe import read_table

LARGEST_SENT = 200_000_000  # bytes of a file of a run
NOT_SENT = (LOCK, "metrics.jsonl", "samples.jsonl", "report.html")
PACKAGE = Path(__file__).parents[1]
# What `train` is given that decides what is learned; each process reads the data by itself.
COMPARED = ("recipe", "set", "minutes", "pair", "columns", "built_in", "task", "start_from")


@contextmanager
def joined(given: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Join the processes that torchrun has started; yield what this one is to `train` with.

    Without torchrun that is what was given. A process that follows ends with the leader.
    """
    restarted = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0
    group = join_launched()
    if group.size == 1 and not restarted:
        yield given
        return
    try:
        _require_same(group, given)
        if group.leads:
            out = given["out"] or given["resume"] or given["recipe"]
            group.when_prepared = partial(_send_run, group, Path(str(out)))
            again = restarted and given["out"] and (Path(given["out"]) / RECIPE).exists()
            yield given | _going_on(Path(given["out"]), given) if again else given
            return
        # A signal to stop is sent to all: the leader finishes the update and ends the others.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        with TemporaryDirectory(prefix="regard-follows-") as folder:
            copy = Path(folder) / "run"
            _receive_run(group, copy)
            yield given | _going_on(copy, given) | {"progress": False}
    except GroupLostError:
        if group.leader_has_left:
            sys.exit(0)  # in order: what there is to say, it has said
        raise
    finally:
        group.close()


def _going_on(folder: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changes that go on with a run; data from memory has to be given again."""
    kept = bool(read_table(folder / RECIPE).get("data", {}).get("from_memory"))
    return {
        **dict.fromkeys((*COMPARED, "out")),
        "set": (),
        "built_in": False,
        "data": given["data"] if kept else None,
        "resume": folder,
    }


def _require_same(group: Group, given: Mapping[str, Any]) -> None:
    """Refuse processes that were started with other settings, or run other code."""
    own = {name: _described(given[name]) for name in COMPARED}
    files = sorted(path for path in PACKAGE.rglob("*") if path.suffix in (".py", ".toml"))
    own["code"] = [fingerprint(files), f"torch {torch.__version__}"]
    first, *others = group.gather(own)
    for number, other in enumerate(others, start=1):
        for name, value in other.items():
            if value == first[name]:
                continue
            if not group.leads:
                group.let_the_leader_end()
                sys.exit(2)  # the leader says why
            what = f"other {'code' if name == 'code' else 'settings'} than process 0"
            here = ", ".join(line for line in value if line not in first[name])[:200]
            there = ", ".join(line for line in first[name] if line not in value)[:200]
            raise SettingsError(
                f"Process {number} was started with {what}: {name} has {here or 'nothing'} in "
                f"place of {there or 'nothing'}. Give all processes the same command and the same "
                "version of Regard."
            )


def _described(value: Any) -> list[str]:
    """Return a setting as lines of text; a recipe file stands for what is in it."""
    if isinstance(value, str | Path) and str(value).endswith(".toml") and Path(value).is_file():
        return Path(value).read_text(encoding="utf-8").splitlines()
    return [str(one) for one in value] if isinstance(value, list | tuple) else [str(value)]


def _send_run(group: Group, folder: Path) -> None:
    """Send the files of a run that is prepared to the processes that follow."""
    sent = {
        path.name: base64.b64encode(path.read_bytes()).decode()
        for path in sorted(folder.iterdir())
        if path.is_file() and path.name not in NOT_SENT and path.stat().st_size < LARGEST_SENT
    }
    run = Run(folder)
    evidence = run.evidence | {"started_in": str(run.started_in)}
    group.tell({"files": sent, "evidence": evidence, "data": str((folder / "data").resolve())})


def _receive_run(group: Group, folder: Path) -> None:
    """Wait for the run of the leader, and write a copy of it."""
    found = group.hear()
    folder.mkdir()
    for name, content in found["files"].items():
        (folder / Path(name).name).write_bytes(base64.b64decode(content))
    write_json(folder / EVIDENCE, found["evidence"])
    if Path(found["data"]).is_dir():  # on this machine too: large corpora are not cut again
        (folder / "data").symlink_to(found["data"])
