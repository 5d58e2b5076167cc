"""A corpus that is too large for memory: the same training, from a store."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

import regard
from regard.base.errors import DataError, RunError
from regard.batching import tokenising
from regard.batching.batch import TrainingExamples
from regard.corpora import pair_store, store
from regard.corpora.cache import Told
from regard.corpora.lines import stream_lines
from regard.corpora.parallel import drawn_evenly
from regard.corpora.store import StoredSequence, StoreError
from regard.runs.run import finish_or_start
from regard.settings.recipe import expect
from regard.tasks import find_recipe
from regard.tasks.translation import examples as task_examples
from regard.tasks.translation.data import Splits, read_splits
from regard.tasks.translation.settings import DataSettings, TokenizerSettings, TranslationRecipe

WORDS = [one + other for one in ("ba", "ko", "mi", "ru") for other in ("dal", "fen", "gon")]
TINY = [
    "model.layers=1",
    "model.model_dim=16",
    "model.heads=2",
    "model.feed_forward=16",
    "batches.tokens=300",
    "training.steps=6",
    "training.warmup=2",
    "training.schedule=constant",
    "training.validate_every=6",
    "training.checkpoint_every=3",
    "training.validate_sentences=5",
    "training.processes=1",
]


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of 300 pairs, and a limit that makes them too many for memory."""
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(store, "MOST_IN_MEMORY", 100)
    monkeypatch.setattr(tokenising, "BLOCK_PAIRS", 64)
    random = Random(1)
    sides = [" ".join(random.choices(WORDS, k=random.randint(1, 9))) for _ in range(300)]
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{side}\t{side[::-1]}\n" for side in sides), encoding="utf-8")
    return path


def read(corpus: Path, **options: Any) -> Splits:
    return read_splits(DataSettings(train=(str(corpus),), hold_out=20, hold_out_test=20, **options))


def in_memory(corpus: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> Splits:
    with monkeypatch.context() as patch:
        patch.setattr(store, "MOST_IN_MEMORY", 1000)
        return read(corpus, **options)


FILTER = {"max_words": 8, "script": False, "alignment": False}


@pytest.mark.parametrize("options", [{}, {"filter": FILTER}])
def test_a_store_holds_what_memory_would(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    with corpus.open("a", encoding="utf-8") as file:
        file.write("a copy\tof this\n" * 3)
    plain, stored = in_memory(corpus, monkeypatch, **options), read(corpus, **options)
    assert isinstance(stored.train, StoredSequence)
    assert list(stored.train) == plain.train
    assert (stored.valid, stored.test, stored.notes) == (plain.valid, plain.test, plain.notes)
    assert stored.fingerprint() == plain.fingerprint()
    again = read(corpus, **options)  # opened, not read
    assert (list(again.train), again.notes) == (plain.train, plain.notes)
    assert again.fingerprint() == plain.fingerprint()


def test_parts_in_other_files_and_bad_lines(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (corpus.parent / "valid.tsv").write_text("ba\tBA\nko\tKO\n", encoding="utf-8")
    with corpus.open("a", encoding="utf-8") as file:
        file.write("no translation\n")
    options = {"valid": (str(corpus.parent / "valid.tsv"),), "skip_bad": True}
    plain, stored = in_memory(corpus, monkeypatch, **options), read(corpus, **options)
    assert [pair.source for pair in stored.valid] == ["ba", "ko"]
    assert (list(stored.train), stored.test) == (plain.train, plain.test)
    assert (stored.notes, stored.left_out) == (plain.notes, plain.left_out)
    with pytest.raises(DataError, match=r"pairs\.tsv, line 301"):
        read(corpus)


def test_a_stored_corpus_is_read_once(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read(corpus)

    def no_more(*_: object, **__: object) -> None:
        raise AssertionError("it was read again")

    monkeypatch.setattr(pair_store, "build_corpus", no_more)
    assert len(read(corpus).train) == 260


def told_by(corpus: Path) -> list[str]:
    lines: list[str] = []
    settings = DataSettings(train=(str(corpus),), hold_out=20, hold_out_test=20)
    assert len(read_splits(settings, Told(say=lines.append)).train) > 200
    return lines


def test_a_changed_file_and_a_damaged_store_are_read_again(corpus: Path) -> None:
    assert told_by(corpus) == told_by(corpus) == []
    corpus.write_text(corpus.read_text() + "one more\tEINER MEHR\n")
    assert told_by(corpus) == [f"{corpus} has changed: the corpus is read again."]
    values = next((corpus.parent / "cache").glob("corpora/*/pairs/values"))
    values.write_bytes(values.read_bytes()[:-1])
    (line,) = told_by(corpus)
    assert line.startswith("The stored corpus is damaged (values has ")
    assert line.endswith("it is read again.")
    header = values.parent / "store.json"
    header.write_text(header.read_text().replace('"rows": {', '"rows": {"valid": [9999], "no": {'))
    assert "it is read again" in told_by(corpus)[0]


def test_a_full_disk_is_one_sentence_and_leaves_nothing(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(store.RowWriter, "add", full)
        with pytest.raises(RunError, match=r"no space left.*REGARD_CACHE names another folder"):
            read(corpus)
    left = [path.name for path in (corpus.parent / "cache").rglob("*") if path.is_file()]
    assert left == []
    assert len(read(corpus).train) == 260


def test_a_full_disk_while_tokenising_leaves_no_tokens(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def train() -> None:
        out, resume = corpus.parent / "run", (corpus.parent / "run").exists()
        where = {"resume": out} if resume else {"data": str(corpus), "out": out}
        recipe = () if resume else ("transformer-tiny",)
        regard.train(*recipe, **where, set=[*TINY, "training.steps=1"], progress=False)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    read(corpus)
    with monkeypatch.context() as patch:
        patch.setattr("regard.batching.tokenising._Cutter.__call__", full)
        with pytest.raises(RunError, match="there is no space left on the disk"):
            train()
    assert not list((corpus.parent / "run").glob("data/*"))
    train()
    assert weights(corpus.parent / "run")


def test_a_shard_that_is_missing_is_named(corpus: Path) -> None:
    other = corpus.with_name("other.tsv")
    other.write_text("one more\teiner mehr\n", encoding="utf-8")
    settings = DataSettings(train=(str(corpus), str(other)))  # type: ignore[call-arg]
    whole = len(read_splits(settings).train)
    other.rename(corpus.with_name("elsewhere.tsv"))
    with pytest.raises(DataError, match=r"other\.tsv: there is no such file"):
        read_splits(settings)
    corpus.with_name("elsewhere.tsv").rename(other)
    assert len(read_splits(settings).train) == whole


def test_line_files_of_unequal_length_are_named(corpus: Path) -> None:
    sides = [corpus.with_name(name) for name in ("train.en", "train.de")]
    for side, count in zip(sides, (300, 299), strict=True):
        side.write_text("".join(f"line {row}\n" for row in range(count)), encoding="utf-8")
    settings = DataSettings(train=tuple(map(str, sides)))  # type: ignore[call-arg]
    with pytest.raises(DataError, match=r"train\.de.*299 lines|300 lines.*299"):
        read_splits(settings)
    assert not list((corpus.parent / "cache").rglob("store.json"))


@pytest.mark.slow
def test_invalid_utf_8_in_line_nine_million_is_named(tmp_path: Path) -> None:
    path, last = tmp_path / "long.txt", 9_000_000
    with path.open("wb") as file:
        for _ in range(9):
            file.write(b"ab\n" * (last // 9 - 1) + b"cd\n")
        file.seek(-3, 2)
        file.write(b"\xff\xfe\n" + b"more\n")
    with pytest.raises(DataError, match=r"long\.txt, line 9000000: invalid UTF-8 at byte 1 of"):
        for _ in stream_lines(path, expected="a sentence a line"):
            pass


def test_nothing_to_hold_out_where_every_sentence_is_frequent(corpus: Path) -> None:
    corpus.write_text("the same\tdasselbe\n" * 300)
    with pytest.raises(DataError, match=r"nothing can be held out for valid.*Give --valid"):
        read(corpus)


def weights(folder: Path) -> bytes:
    return (folder / "best" / "model.safetensors").read_bytes()


SAMPLING = [
    "training.subword_sampling=0.2",
    "augmentation.typos=0.3",
    "augmentation.joined=0.1",
    "batches.max_length=24",
]


@pytest.mark.slow
def test_a_resumed_training_from_a_store_is_one_from_memory(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = corpus.parent

    def train(name: str, steps: int) -> None:
        changes = [*TINY, *SAMPLING, f"training.steps={steps}"]
        out = folder / name
        regard.train("transformer-tiny", data=str(corpus), out=out, set=changes, progress=False)

    train("stored", 3)

    def no_more(*_: object, **__: object) -> None:
        raise AssertionError("it was tokenised again")

    with monkeypatch.context() as patch:
        patch.setattr(task_examples, "write_examples", no_more)
        regard.train(resume=folder / "stored", set=["training.steps=6"], progress=False)
    with monkeypatch.context() as patch:
        patch.setattr(store, "MOST_IN_MEMORY", 1000)
        train("memory", 6)
    assert not (folder / "memory" / "data").exists()
    assert weights(folder / "stored") == weights(folder / "memory")


def tokenised(corpus: Path, *changes: str, say: list[str] | None = None) -> TrainingExamples:
    """The examples of a run beside the corpus, which is new the first time."""
    overrides = [*TINY, *changes, f"data.train=[{corpus}]"]
    recipe = expect(find_recipe("transformer-tiny", overrides=overrides), TranslationRecipe)
    run = finish_or_start(corpus.parent / "run", recipe)
    splits = read_splits(recipe.data)
    tokenizers = task_examples.run_tokenizers(run, recipe, splits.train)
    told = Told(say=(say if say is not None else []).append)
    return task_examples.training_examples(run, recipe, splits, tokenizers, told)


@pytest.mark.parametrize("kind", ["sentencepiece", "word", "character"])
def test_tokens_in_a_store_are_those_in_memory(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    changes = (f"tokenizer.kind={kind}", "batches.max_length=7")
    stored = tokenised(corpus, *changes)
    monkeypatch.setattr(store, "MOST_IN_MEMORY", 1000)
    memory = tokenised(corpus, *changes)
    assert isinstance(stored.examples, StoredSequence)
    assert isinstance(memory.examples, list)
    assert list(stored.examples) == memory.examples
    assert list(stored.pairs) == memory.pairs
    assert (stored.lengths.tolist(), stored.left_out.tolist()) == (
        memory.lengths.tolist(),
        memory.left_out.tolist(),
    )
    assert len(memory.left_out) > 0


def test_subwords_of_a_large_corpus_are_learned_from_a_sample(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = read(corpus).train

    def sample(**settings: Any) -> task_examples.VocabularySample:
        kept = TokenizerSettings(**{"sample_lines": 1_000, **settings})
        recipe = TranslationRecipe(tokenizer=kept)  # type: ignore[call-arg]
        return task_examples.VocabularySample.of(recipe, pairs)

    assert (len(sample()), sample().share) == (260, 1.0)
    monkeypatch.setattr(
        task_examples,
        "drawn_evenly",
        lambda pairs, most, seed: drawn_evenly(pairs, min(most, 100), seed=seed),
    )
    drawn = sample()
    assert (len(drawn), len(drawn) / drawn.share) == (100, 260)
    assert len(sample(kind="word")) == 260  # counted in all pairs


def test_half_of_a_shared_sample_is_of_each_side(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(
        task_examples, "drawn_evenly", lambda pairs, most, seed: asked.append(most) or pairs
    )
    for shared in (False, True):
        recipe = TranslationRecipe(tokenizer=TokenizerSettings(shared=shared))  # type: ignore[call-arg]
        task_examples.VocabularySample.of(recipe, [])
    assert asked == [500_000, 250_000]


def forged(header: dict[str, Any], **values: Any) -> str:
    return json.dumps({**header, "made_of": {**header["made_of"], **values}})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda header: "{", "The tokens of this run are damaged (store.json is missing"),
        (lambda header: forged(header, tokenizers="another"), "of another tokenizer"),
        (lambda header: forged(header, corpus="another"), "are of other data"),
    ],
)
def test_tokens_that_do_not_fit_are_made_again(
    corpus: Path, change: Callable[[dict[str, Any]], str], said: str
) -> None:
    lines: list[str] = []
    tokenised(corpus)
    header = corpus.parent / "run" / "data" / "train" / "store.json"
    before = header.read_text()
    header.write_text(change(json.loads(before)))
    tokenised(corpus, say=lines)
    assert (len(lines), said in lines[0]) == (1, True)
    assert header.read_text() == before
    tokenised(corpus, say=lines)
    assert len(lines) == 1


def test_a_foreign_token_is_refused(corpus: Path) -> None:
    examples = tokenised(corpus).examples
    assert isinstance(examples, StoredSequence)
    examples.store.made_of["sizes"] = [5, 5]
    with pytest.raises(StoreError, match="a token has the id"):
        list(examples)
