from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.conftest import TOY_WORDS

from regard.base.errors import SettingsError
from regard.compute.device import available_cores, can_fork, current_device
from regard.corpora.parallel import SentencePair
from regard.engines import choice, preparation
from regard.engines.choice import PlannedSearch, choose_engine, layouts
from regard.engines.ctranslate2_engine import CTranslate2Engine, Threads
from regard.engines.preparation import converted, engine_folder, fingerprint
from regard.engines.torch_engine import Engine, TorchEngine, TorchProcesses
from regard.exchange import ctranslate2
from regard.exchange.ctranslate2 import read_export_record, write_export_record
from regard.settings.decoding import DecodingSettings
from regard.tasks.translation.constraints import TextConstraints
from regard.tasks.translation.model import LoadedTranslator, load
from regard.tasks.translation.tuning import try_length_penalties

pytest.importorskip("ctranslate2")


@pytest.fixture
def run(random_transformer_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(random_transformer_run, tmp_path / "run"))


@pytest.fixture(autouse=True)
def small_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "SENTENCES", 4)
    monkeypatch.setattr(choice, "TARGET", 3)


@pytest.fixture(autouse=True)
def threads_as_before() -> Iterator[None]:
    """Two threads, left to all later tests, would wait for each other on a busy machine."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture
def loaded(run: Path) -> LoadedTranslator:
    return load(run)


def test_it_measures_once_and_then_knows(
    run: Path, loaded: LoadedTranslator, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    found = choose_engine(loaded, folder=run, threads=1, report=said.append)
    (measured,) = json.loads((run / "engines" / "choice.json").read_text("utf-8")).values()
    assert list(measured) == ["1 x 1", "torch"]
    assert all(speed > 0 for speed in measured.values())
    assert f"Engine: {found.name} (sentences per second" in said[0]

    def refuse(*given: Any) -> float:
        raise AssertionError("measured again")

    monkeypatch.setattr(choice, "_speed", refuse)
    again = choose_engine(loaded, folder=run, threads=1, report=said.append)
    assert again.name == found.name
    assert said[1] == said[0]


@pytest.mark.parametrize(
    ("fastest", "name"),
    [
        ("2 x 1", "ctranslate2 float32, 2 x 1 threads"),
        ("1 x 2", "ctranslate2 float32, 1 x 2 threads"),
        ("torch", "torch"),
    ],
)
def test_the_fastest_is_taken(
    fastest: str,
    name: str,
    loaded: LoadedTranslator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def speed(engine: CTranslate2Engine, sources: Any, beam: int) -> float:
        return 2.0 if str(engine.threads) == fastest else 1.0

    monkeypatch.setattr(choice, "_speed", speed)
    monkeypatch.setattr(choice, "_torch_speed", lambda *given: 3.0 if fastest == "torch" else 0.5)
    assert choose_engine(loaded, threads=2).name == name


def test_torch_on_request_or_where_there_is_no_other(
    loaded: LoadedTranslator, toy_run: Path
) -> None:
    said: list[str] = []
    assert choose_engine(loaded, engine="torch", report=said.append).name == "torch"
    recurrent = load(toy_run)
    assert choose_engine(recurrent, report=said.append).name == "torch"
    assert said[0] == "Engine: torch."
    assert "no layer for model.family = 'recurrent'" in said[1]
    with pytest.raises(SettingsError, match=r"ctranslate2 cannot be used: .*recurrent"):
        choose_engine(recurrent, engine="ctranslate2")
    with pytest.raises(SettingsError, match=r"quantization belongs to the engine ctranslate2"):
        choose_engine(loaded, engine="torch", quantization="int8")


@pytest.mark.parametrize(
    ("cores", "possible", "kind"),
    [(1, True, TorchEngine), (2, True, TorchProcesses), (2, False, TorchEngine)],
)
def test_torch_has_a_process_a_core(
    loaded: LoadedTranslator,
    monkeypatch: pytest.MonkeyPatch,
    cores: int,
    possible: bool,
    kind: type[Engine],
) -> None:
    monkeypatch.setattr(choice, "can_fork", lambda device: possible)
    monkeypatch.setattr(choice, "available_cores", lambda: cores)
    assert type(choose_engine(loaded, engine="torch")) is kind


TEXTS = [f"{word} badal" for word in TOY_WORDS[:16]]
# What CTranslate2 lacks: changed settings, whether there are constraints, and its name.
FALLBACKS: dict[str, tuple[dict[str, Any], bool, str]] = {
    "sampling": ({"method": "sample", "temperature": 0.5}, False, 'method = "sample"'),
    "minimum Bayes risk": ({"method": "mbr", "mbr_samples": 3}, False, 'method = "mbr"'),
    "a length penalty": ({"length_penalty": 1.8}, False, "length_penalty above 1.6"),
    "a minimum length": ({"min_length": 2}, False, "min_length"),
    "copied words": ({"copy_verbatim": True}, False, "copy_verbatim"),
    "constraints": ({}, True, "constraints"),
}


@pytest.fixture
def searching(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Return a function that returns how many processes have searched with torch."""
    log, search = tmp_path / "processes", TorchEngine.search

    def watched(self: TorchEngine, *given: Any, **options: Any) -> Any:
        with log.open("a") as file:
            file.write(f"{os.getpid()}\n")
        return search(self, *given, **options)

    monkeypatch.setattr(TorchEngine, "search", watched)
    return lambda: len(set(log.read_text().split()))


@pytest.fixture
def nothing_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail where a model is converted or an engine measured."""

    def refuse(*given: Any, **options: Any) -> Any:
        raise AssertionError("converted or measured")

    monkeypatch.setattr(ctranslate2, "write_ctranslate2", refuse)
    monkeypatch.setattr(choice, "_speed", refuse)
    monkeypatch.setattr(choice, "_torch_speed", refuse)


@pytest.mark.skipif(not can_fork(current_device()), reason="worker processes need Linux and no GPU")
@pytest.mark.usefixtures("nothing_prepared")
@pytest.mark.parametrize("case", FALLBACKS)
def test_a_search_that_ctranslate2_lacks_is_left_to_processes_of_torch(
    case: str, run: Path, loaded: LoadedTranslator, searching: Callable[[], int]
) -> None:
    changes, constrained, missing = FALLBACKS[case]
    said: list[str] = []
    search = PlannedSearch(loaded.decoding(**changes), constrained=constrained)
    engine = choose_engine(loaded, search, folder=run, threads=2, report=said.append)
    assert said == [f"Engine: torch (ctranslate2 cannot be used: it lacks {missing})."]
    assert not (run / "engines").exists()
    asked = TextConstraints(forbidden=("LADAB",)) if constrained else None
    wanted = loaded.translate(TEXTS, attention=False, constraints=asked, **changes)
    assert searching() == 1
    loaded.engine = engine
    found = loaded.translate(TEXTS, attention=False, constraints=asked, **changes)
    assert searching() == 2
    assert [one.text for one in found] == [one.text for one in wanted]
    assert isinstance(engine, TorchProcesses)
    engine.close()


@pytest.mark.usefixtures("nothing_prepared")
@pytest.mark.parametrize("asked", [{"engine": "ctranslate2"}, {"quantization": "int8"}], ids=str)
@pytest.mark.parametrize("case", FALLBACKS)
def test_ctranslate2_is_refused_on_request_where_it_lacks_something(
    case: str, asked: dict[str, Any], loaded: LoadedTranslator
) -> None:
    changes, constrained, missing = FALLBACKS[case]
    search = PlannedSearch(loaded.decoding(**changes), constrained=constrained)
    with pytest.raises(SettingsError) as caught:
        choose_engine(loaded, search, **asked)
    assert str(caught.value) == (
        f"The engine ctranslate2 cannot be used: it lacks {missing}. Use the engine torch."
    )


@pytest.mark.usefixtures("nothing_prepared")
def test_without_a_search_the_recipes_decides(loaded: LoadedTranslator) -> None:
    decoding = loaded.decoding(coverage_penalty=0.2)
    loaded.recipe = loaded.recipe.model_copy(update={"decoding": decoding})
    said: list[str] = []
    assert choose_engine(loaded, threads=1, report=said.append).name == "torch"
    assert "it lacks coverage_penalty" in said[0]


@pytest.mark.usefixtures("nothing_prepared")
def test_nothing_is_measured_for_a_short_text(loaded: LoadedTranslator) -> None:
    said: list[str] = []
    search = PlannedSearch(loaded.recipe.decoding, short=True)
    assert type(choose_engine(loaded, search, report=said.append)) is TorchEngine
    assert said == ["Engine: torch (a short text is not worth a measurement)."]
    with pytest.raises(AssertionError, match="converted or measured"):
        choose_engine(loaded, search, engine="ctranslate2")


@pytest.mark.skipif(not can_fork(current_device()), reason="worker processes need Linux and no GPU")
def test_torch_is_measured_and_used_with_all_processes(
    loaded: LoadedTranslator, monkeypatch: pytest.MonkeyPatch, searching: Callable[[], int]
) -> None:
    monkeypatch.setattr(choice, "SENTENCES", 8)
    monkeypatch.setattr(choice, "_speed", lambda *given: 0.0)
    engine = choose_engine(loaded, threads=2)
    assert searching() == 2
    assert isinstance(engine, TorchProcesses)
    engine.close()


def test_tuning_leaves_high_length_penalties_to_torch(
    run: Path, loaded: LoadedTranslator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "_torch_speed", lambda *given: 0.0)
    engines: dict[float, str] = {}

    def engine_for(settings: DecodingSettings) -> Engine:
        engine = choose_engine(loaded, PlannedSearch(settings), folder=run, threads=1)
        engines[settings.length_penalty] = engine.name
        return engine

    pairs = [SentencePair(text, text) for text in TEXTS]
    penalties = [0.6, 1.6, 1.8, 2.0]
    tried = list(try_length_penalties(loaded, pairs, penalties=penalties, engine_for=engine_for))
    assert [one.length_penalty for one in tried] == [0.6, 1.0, 1.6, 1.8, 2.0]
    assert engines == {0.6: "ctranslate2 float32, 1 x 1 threads", 1.8: "torch"}


def test_without_the_package_there_is_torch(
    loaded: LoadedTranslator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(package: str) -> str:
        raise PackageNotFoundError(package)

    monkeypatch.setattr(preparation, "version", missing)
    assert choose_engine(loaded).name == "torch"
    with pytest.raises(SettingsError, match=r"not installed \(pip install ctranslate2\)"):
        choose_engine(loaded, engine="ctranslate2")


def test_int8_only_on_request_or_where_it_costs_nothing(
    run: Path, loaded: LoadedTranslator
) -> None:
    asked = choose_engine(loaded, folder=run, quantization="int8", threads=1)
    assert asked.name == "ctranslate2 default, 1 x 1 threads"
    folder = engine_folder(run, "int8")
    record = read_export_record(folder)
    expected = {
        "not measured": ({}, False),
        "too much lost": ({"bleu_change": -0.2}, False),
        "next to nothing lost": ({"bleu_change": -0.1}, True),
        "of other weights": ({"bleu_change": 0.0, "fingerprint": "other"}, False),
    }
    for case, (more, taken) in expected.items():
        write_export_record(folder, {**record, **more})
        found = choose_engine(loaded, folder=run, threads=1)
        assert ("default" in found.name) is taken, case


def test_a_conversion_is_kept_until_the_weights_change(run: Path, loaded: LoadedTranslator) -> None:
    with converted(loaded, run=run) as folder:
        assert folder == run / "engines" / "ctranslate2-float32"
    made = (folder / "model.bin").stat().st_mtime_ns
    with converted(loaded, run=run):
        assert (folder / "model.bin").stat().st_mtime_ns == made
    before = fingerprint(loaded)
    loaded.model.projection.bias[5] += 1
    assert fingerprint(loaded) != before
    with converted(loaded, run=run):
        assert (folder / "model.bin").stat().st_mtime_ns != made
    assert read_export_record(folder)["fingerprint"] == fingerprint(loaded)


def test_a_folder_that_cannot_be_written_to_is_done_without(
    run: Path, loaded: LoadedTranslator
) -> None:
    (run / "engines").write_text("in the way")
    with converted(loaded, run=run) as folder:
        assert (folder / "model.bin").is_file()
        assert run not in folder.parents
    assert not folder.exists()
    assert choose_engine(loaded, folder=run, engine="ctranslate2", threads=1).search(
        [[5, 6]], loaded.recipe.decoding
    )


def test_a_damaged_memory_is_measured_anew(run: Path, loaded: LoadedTranslator) -> None:
    choose_engine(loaded, folder=run, threads=1)
    path = run / "engines" / "choice.json"
    known = json.loads(path.read_text("utf-8"))
    for damaged in ("[", "[]", json.dumps(dict.fromkeys(known, 1))):
        path.write_text(damaged)
        choose_engine(loaded, folder=run, threads=1)
        assert list(json.loads(path.read_text("utf-8"))) == list(known)


def test_layouts_share_out_the_cores() -> None:
    assert layouts(1) == [Threads(1, 1)]
    assert layouts(2) == [Threads(2, 1), Threads(1, 2)]
    assert layouts(8) == [Threads(8, 1), Threads(4, 2), Threads(2, 4), Threads(1, 8)]
    assert available_cores() >= 1
