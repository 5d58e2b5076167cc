from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import TOY_WORDS
from tests.engines.conftest import Sources, decoding, fast_engine, random_sources

from regard.engines import preparation
from regard.engines.choice import choose_engine
from regard.engines.ctranslate2_engine import DEFAULT_PATIENCE, CTranslate2Engine, patience_key
from regard.engines.preparation import (
    Patience,
    agreement_is_shown,
    fingerprint,
    known_patience,
    least_patience,
    measure_patience,
    prepare_patience,
)
from regard.engines.torch_engine import TorchEngine, unfinished_share
from regard.settings.decoding import DecodingSettings
from regard.tasks.translation.model import LoadedTranslator, load

pytest.importorskip("ctranslate2")


@pytest.fixture
def run(random_transformer_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(random_transformer_run, tmp_path / "run"))


@pytest.fixture
def loaded(run: Path) -> LoadedTranslator:
    return load(run)


@pytest.fixture
def engine(loaded: LoadedTranslator) -> CTranslate2Engine:
    return fast_engine(loaded)


@pytest.fixture
def sources(loaded: LoadedTranslator) -> Sources:
    return random_sources(loaded, seed=3, count=320, longest=6)


def same_share(engine: CTranslate2Engine, sources: Sources, settings: DecodingSettings) -> float:
    pairs = zip(
        engine.search(sources, settings), engine.reference.search(sources, settings), strict=True
    )
    return sum(ours[0].tokens == theirs[0].tokens for ours, theirs in pairs) / len(sources)


def test_the_least_patience_that_suffices_is_found(
    engine: CTranslate2Engine, sources: Sources
) -> None:
    asked = decoding(beam=3)
    found = least_patience(engine, sources, asked)
    assert found.extra > 0  # such a model ends its outputs anywhere, and the best may come late
    assert agreement_is_shown(round((1 - found.agreement) * len(sources)), len(sources))
    assert found.sentences == len(sources)
    assert same_share(engine, sources, asked) == pytest.approx(found.agreement)
    less = preparation.TRIED[preparation.TRIED.index(found.extra) - 1]
    engine.patience[patience_key(asked)] = less
    different = round((1 - same_share(engine, sources, asked)) * len(sources))
    assert not agreement_is_shown(different, len(sources))


@pytest.mark.parametrize(
    ("different", "sentences", "shown"),
    [(0, 298, False), (0, 299, True), (1, 299, False), (4, 1_000, True), (5, 1_000, False)],
)
def test_agreement_must_be_shown(different: int, sentences: int, shown: bool) -> None:
    assert agreement_is_shown(different, sentences) is shown


def test_where_none_suffices_it_is_the_greatest(
    engine: CTranslate2Engine, sources: Sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparation, "SIGNIFICANCE", 0.0)
    found = least_patience(engine, sources[:5], decoding(beam=3))
    assert found is not None
    assert found.extra == max(preparation.TRIED)


def test_a_measurement_ends_in_its_time(
    engine: CTranslate2Engine, sources: Sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(0, 10_000, 10))
    monkeypatch.setattr("regard.engines.preparation.time.monotonic", lambda: float(next(clock)))
    monkeypatch.setattr(engine.reference, "batch_tokens", 60)
    assert least_patience(engine, sources, decoding(beam=3), seconds=50.0) is None
    assert next(clock) < 100  # it stopped after half of the time, with too few sentences
    clock = iter(range(0, 10_000, 1))
    asked = decoding(beam=3)
    monkeypatch.setattr(preparation, "SIGNIFICANCE", 0.0)
    assert least_patience(engine, sources[:5], asked, seconds=5.0) is None


def test_an_untrained_model_is_not_measured(
    run: Path, loaded: LoadedTranslator, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(preparation, "unfinished_share", lambda *_: 0.6)
    assert prepare_patience(loaded, run, TOY_WORDS[:4] * 75, say=said.append) is None
    assert said == [
        "Most outputs run to their length limit, as those of a model that has hardly learned: the "
        "fast engine is not tuned to this model."
    ]
    assert not (run / "engines").exists()


def test_outputs_that_only_the_limit_ends_are_counted(
    loaded: LoadedTranslator, sources: Sources
) -> None:
    engine = TorchEngine(loaded.model)
    limited = decoding(beam=1, max_length=1)
    assert unfinished_share(engine, sources, limited) > 0.5
    assert 0 <= unfinished_share(engine, sources, decoding(beam=3)) < 1


def test_outputs_at_their_limit_are_searched_again_in_small_batches(
    engine: CTranslate2Engine, sources: Sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    search = engine.reference.search

    def watched(some: Any, *arguments: Any, **options: Any) -> Any:
        sizes.append(sum(len(source) + 1 for source in some))
        return search(some, *arguments, **options)

    monkeypatch.setattr(engine.reference, "search", watched)
    monkeypatch.setattr(engine.reference, "batch_tokens", 40)
    engine.search(sources, decoding(beam=2, max_length=1))
    assert len(sizes) > 1
    assert max(sizes) <= 40


def test_more_patience_gives_more_of_the_references_outputs(
    engine: CTranslate2Engine, sources: Sources
) -> None:
    asked, sources = decoding(beam=3), sources[:80]
    wanted = [best.tokens for (best,) in engine.reference.search(sources, asked)]

    def agreement() -> int:
        found = [best.tokens for (best,) in engine.search(sources, asked)]
        return sum(ours == theirs for ours, theirs in zip(found, wanted, strict=True))

    engine.patience[patience_key(decoding(beam=2))] = 0  # of another search
    default = agreement()
    shares = []
    for extra in (0, DEFAULT_PATIENCE[1.2], 20):
        engine.patience[patience_key(asked)] = extra
        shares.append(agreement())
    least, usual, most = shares
    assert least < usual == default <= most


def test_patience_is_as_measured_and_otherwise_the_default(
    loaded: LoadedTranslator, sources: Sources, batches: list[dict[str, Any]]
) -> None:
    engine = fast_engine(loaded)
    engine.patience[patience_key(decoding(beam=4))] = 2
    for asked in (
        decoding(beam=4),
        decoding(beam=2),
        decoding(beam=4, length_penalty=0.5),
        decoding(beam=4, length_penalty=1.6),
    ):
        engine.search(sources[:1], asked)
    engine.search(sources[:1], decoding(beam=4), n_best=2)  # all of the list must be right
    usual, high = DEFAULT_PATIENCE.values()
    found = [batch["patience"] for batch in batches]
    assert found == [1 + 2 / 4, 1 + usual / 2, 1 + usual / 4, 1 + high / 4, 2]


def test_a_model_is_known_by_what_was_measured_of_it(
    run: Path, loaded: LoadedTranslator, sources: Sources
) -> None:
    own = loaded.recipe.decoding
    model = fingerprint(loaded)
    assert known_patience(run, model, own) is None
    found = measure_patience(loaded, run, sources, cores=1)
    assert known_patience(run, model, own) == found
    assert known_patience(None, model, own) is None
    assert known_patience(run, "another", own) is None
    assert known_patience(run, model, own.model_copy(update={"beam": own.beam + 1})) is None
    assert known_patience(run, model, own.model_copy(update={"length_penalty": 0.3})) is None


@pytest.mark.parametrize(
    "content",
    [
        5,
        "5",
        {},
        {"extra": -1, "agreement": 1.0, "sentences": 9},
        {"extra": 1_000_000, "agreement": 1.0, "sentences": 9},
        {"extra": 1, "agreement": "all", "sentences": 9},
    ],
)
def test_what_is_no_measurement_is_none(
    content: Any, run: Path, loaded: LoadedTranslator, sources: Sources
) -> None:
    measure_patience(loaded, run, sources[:3], cores=1)
    path = run / "engines" / preparation.PATIENCE
    (key,) = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps({key: content}), encoding="utf-8")
    assert known_patience(run, fingerprint(loaded), loaded.recipe.decoding) is None


def test_the_chosen_engine_has_the_measured_patience(
    run: Path, loaded: LoadedTranslator, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    given = {"folder": run, "engine": "ctranslate2", "threads": 1, "report": said.append}
    before = choose_engine(loaded, **given)  # type: ignore[arg-type]
    assert isinstance(before, CTranslate2Engine)
    assert before.patience == {}
    monkeypatch.setattr(preparation, "known_patience", lambda *of: Patience(3, 0.996, 500))
    after = choose_engine(loaded, **given)  # type: ignore[arg-type]
    assert isinstance(after, CTranslate2Engine)
    assert after.patience == {patience_key(loaded.recipe.decoding): 3}
    assert said[-1] == (
        "Patience with a beam of 5: a search ends with 3 finished hypotheses more than that; "
        "99.6% of 500 outputs were equal to torch's."
    )
    rounded = choose_engine(loaded, quantization="int8", **given)  # type: ignore[arg-type]
    assert isinstance(rounded, CTranslate2Engine)
    assert rounded.patience == {}
