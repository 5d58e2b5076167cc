"""A head that is taught to align: its loss, its data, and where its rows stand afterwards."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from regard.base.errors import DataError
from regard.batching.alignments import AlignedExamples, TokenAligner, WordAligner, keys_of
from regard.batching.augmentation import Resegmenter
from regard.batching.batch import collate, encode_pairs, training_examples_of
from regard.corpora.parallel import SentencePair
from regard.engines.torch_engine import TorchEngine, attention_over, on_time
from regard.models.build import build_translator
from regard.models.translator import Translator
from regard.runs.run import open_run
from regard.settings.decoding import DecodingSettings
from regard.settings.models import TransformerSettings
from regard.settings.recipe import expect
from regard.tasks import find_recipe
from regard.tasks.translation.data import Splits
from regard.tasks.translation.evaluation import align, score_heads
from regard.tasks.translation.examples import with_links
from regard.tasks.translation.model import LoadedTranslator
from regard.tasks.translation.objective import batch_loss, training_loss
from regard.tasks.translation.settings import TranslationRecipe
from regard.tasks.translation.training import train_translator
from regard.text.tokenizers import train_tokenizer
from regard.training.progress import read_metrics

# A word of the other language is the same word backwards; its order is reversed too.
WORDS = ["cat", "dog", "house", "tree", "river", "stone", "light", "bird"]


def corpus(count: int = 200) -> list[SentencePair]:
    generator = torch.Generator().manual_seed(1)
    pairs = []
    for _ in range(count):
        size = int(torch.randint(2, 6, (1,), generator=generator))
        words = [WORDS[int(n)] for n in torch.randint(8, (size,), generator=generator)]
        pairs.append(SentencePair(" ".join(words), " ".join(w[::-1] for w in reversed(words))))
    return pairs


PAIRS = corpus()
TOKENIZERS = tuple(
    train_tokenizer([getattr(pair, side) for pair in PAIRS], kind="character")
    for side in ("source", "target")
)


def recipe_of(*overrides: str) -> TranslationRecipe:
    given = ["data.from_memory=true", "model.alignment_head=1", "training.alignment_loss=0.5"]
    small = ["model.layers=1", "model.model_dim=16", "model.heads=2", "model.feed_forward=16"]
    return expect(
        find_recipe("transformer-tiny", overrides=[*given, *small, *overrides]), TranslationRecipe
    )


def model_of(**changes: int | None) -> Translator:
    torch.manual_seed(1)
    settings = TransformerSettings(
        layers=2, model_dim=16, heads=2, feed_forward=16, dropout=0.0, **changes
    )
    return build_translator(settings, source_vocab=40, target_vocab=40)


def test_words_are_linked_by_both_directions() -> None:
    aligner = WordAligner.learn(PAIRS)
    assert aligner(SentencePair("cat dog", "god tac")) == {(0, 1), (1, 0)}
    assert aligner(SentencePair("cat Zorro", "tac zorro,")) >= {(0, 0), (1, 1)}  # names stay
    assert aligner(SentencePair("unseen", "words")) == frozenset()
    assert aligner(SentencePair("cat", "")) == frozenset()
    assert keys_of("«Cats» ... D.C.") == ["cats", "...", "d.c"]


def test_links_of_words_become_links_of_their_tokens() -> None:
    pair = SentencePair("ab c", "d ef", alignment=((0, 1),))
    texts = ["ab c d ef"]
    tokenizer = train_tokenizer(texts, kind="character")
    (example,) = encode_pairs([pair], tokenizer, tokenizer)
    found = TokenAligner(lambda one: one.alignment, tokenizer, tokenizer)(pair, example)
    assert found.links is not None
    pieces = tokenizer.pieces(example.target), tokenizer.pieces(example.source)
    links = list(zip(found.links[::2], found.links[1::2], strict=True))
    assert {(pieces[0][row], pieces[1][column]) for row, column in links} >= {
        ("e", "a"),
        ("f", "b"),
    }
    assert not any(pieces[0][row] == "d" or pieces[1][column] == "c" for row, column in links)
    batch = collate([found, example])
    assert batch.alignment is not None
    assert float(batch.alignment[1].sum()) == 0.0  # nothing is known of it
    rows = batch.alignment[0].sum(dim=1)
    assert set(rows.tolist()) == {0.0, 1.0}
    row = links[0][0] + 1  # the begin mark is read first
    assert float(batch.alignment[0, row].sum()) == pytest.approx(1.0)
    assert collate([example]).alignment is None


def test_batches_with_links_are_split_and_moved() -> None:
    examples = encode_pairs(PAIRS[:4], *TOKENIZERS)
    aligned = AlignedExamples(PAIRS, examples, TokenAligner(WordAligner.learn(PAIRS), *TOKENIZERS))
    batch = collate(aligned[:4])
    assert len(list(aligned)) == len(aligned) == 4
    assert batch.alignment is not None
    parts = batch.split(2)
    total = sum(float(part.alignment.sum()) for part in parts if part.alignment is not None)
    assert total == pytest.approx(float(batch.alignment.sum()))
    for part in parts:
        assert part.alignment is not None
        assert part.alignment.shape == (2, part.target_mask.shape[1], part.source_mask.shape[1])
    assert batch.to("cpu").alignment is not None
    assert collate(examples).to("cpu").alignment is None


def test_the_loss_falls_where_the_head_attends_as_it_should() -> None:
    model = model_of(alignment_head=1)
    examples = encode_pairs(PAIRS[:8], *TOKENIZERS)
    links = TokenAligner(WordAligner.learn(PAIRS), *TOKENIZERS)
    batch = collate(AlignedExamples(PAIRS, examples, links)[:8])
    plain = batch_loss(model, batch, smoothing=0.0)
    taught = batch_loss(model, batch, smoothing=0.0, alignment=0.5)
    assert float(taught.nats) == pytest.approx(float(plain.nats))
    assert float(taught.objective.detach()) > float(plain.objective.detach())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(60):
        optimizer.zero_grad()
        loss = batch_loss(model, batch, smoothing=0.0, alignment=1.0)
        loss.objective.backward()
        optimizer.step()
    cost = (loss.objective - loss.nats).detach()
    first = 2 * (taught.objective - plain.objective).detach()  # of the same weight
    assert float(cost) < 0.8 * float(first)
    twice = training_loss(
        model, batch, smoothing=0.0, coverage=0.1, word_dropout=0.1, r_drop=1.0, alignment=1.0
    )
    assert bool(torch.isfinite(twice.objective))


def test_rows_of_a_taught_head_stand_beside_their_tokens() -> None:
    weights = torch.tensor([[0.9, 0.1, 0.0], [0.2, 0.8, 0.0], [0.3, 0.3, 0.4]])
    assert torch.equal(on_time(model_of(), weights, source=2), weights)
    taught = model_of(alignment_head=1)
    assert taught.taught_head == (1, 1)
    found = on_time(taught, weights, source=2)
    assert torch.equal(found[:2], weights[1:])
    assert found[2].tolist() == [0.0, 0.0, 1.0]


@pytest.mark.parametrize("beam", [1, 3])
def test_a_search_shows_what_a_forced_pass_shows(beam: int) -> None:
    model = model_of(alignment_head=0).eval()
    settings = DecodingSettings(beam=beam, max_length=6)  # type: ignore[call-arg]
    sources = [[5, 9, 4], [7, 8]]
    found = TorchEngine(model).search(sources, settings, attention=True)
    for source, (best, *_) in zip(sources, found, strict=True):
        (forced,) = attention_over(model, [source], [best.tokens])
        assert best.attention is not None
        assert torch.allclose(best.attention[:, : len(source) + 1], forced, atol=1e-5)
        (same,) = attention_over(model, [source], [best.tokens], head=(1, 0))
        assert torch.allclose(same, forced, atol=1e-6)


def test_sampled_subwords_have_links_too() -> None:
    source, target = (
        train_tokenizer([getattr(p, side) for p in PAIRS], kind="sentencepiece", size=290)
        for side in ("source", "target")
    )
    examples = encode_pairs(PAIRS, source, target)
    align = TokenAligner(WordAligner.learn(PAIRS), source, target)
    redraw = Resegmenter(
        PAIRS, examples, source=source, target=target, alpha=0.3, seed=1, max_length=99, align=align
    )
    for example in redraw(0, 0, [list(range(20))])[0]:
        assert example.links
        rows, columns = example.links[::2], example.links[1::2]
        assert max(rows) < len(example.target)
        assert max(columns) < len(example.source)


def test_links_of_a_file_belong_to_the_pairs(tmp_path: Path) -> None:
    pairs = [SentencePair("a a a a a a", "b"), SentencePair("a b", "c d")]
    tokenizer = train_tokenizer(["a b c d"], kind="character")
    both = (tokenizer, tokenizer)
    train = training_examples_of(pairs, both, max_length=8)
    assert train.left_out.tolist() == [0]  # it is too long
    path = tmp_path / "links.txt"
    path.write_text("0-0\n0-1 1-0\n")
    recipe = recipe_of(f"training.alignments={path}", "batches.max_length=8")
    found, align = with_links(recipe, train, both)
    assert align is not None
    assert found.pairs[0].alignment == ((0, 1), (1, 0))
    assert found.examples[0].links is not None
    path.write_text("0-1 1-0\n")
    with pytest.raises(DataError, match="has 1 lines for 2 training pairs"):
        with_links(recipe, train, both)
    without = recipe_of("training.alignment_loss=0")
    assert with_links(without, train, both) == (train, None)


def test_a_loss_without_a_head_is_refused() -> None:
    with pytest.raises(Exception, match=r"needs a head to teach: set model\.alignment_head"):
        find_recipe("transformer-tiny", overrides=["training.alignment_loss=0.1"])
    with pytest.raises(Exception, match=r"alignment_head \(9\) must be one of the 4 heads"):
        find_recipe("transformer-tiny", overrides=["model.alignment_head=9"])


def test_a_training_teaches_the_head_and_goes_on_as_it_would_have(tmp_path: Path) -> None:
    gold = [
        replace(pair, alignment=tuple((n, size - 1 - n) for n in range(size)))
        for pair in corpus(240)[200:]
        for size in (len(pair.source.split()),)
    ]
    splits = Splits(PAIRS, gold, [])
    overrides = [
        "tokenizer.kind=word", "tokenizer.shared=false", "model.tie=target", "model.dropout=0",
        "training.validate_every=45", "training.average=0", "training.optimizer=adam",
        "training.learning_rate=0.01", "training.warmup=5", "batches.tokens=1024",
        "training.schedule=constant",
    ]  # fmt: skip

    def after(name: str, steps: int, processes: int = 1) -> LoadedTranslator:
        recipe = recipe_of(*overrides, f"training.steps={steps}", f"training.processes={processes}")
        run = open_run(tmp_path / name, recipe, resume=(tmp_path / name).exists())
        return train_translator(recipe, run, splits=splits).model

    whole = after("whole", 90)
    shown = [one.links() for one in align(whole, gold)]
    assert shown == [one.links() for one in align(whole, gold, head=(0, 1))]
    by_head = {score.place: score.error.value for score in score_heads(whole, gold)}
    assert by_head[(0, 1)] < 30 < by_head[(0, 0)]
    after("parts", 45)
    for one, two in zip(
        whole.model.parameters(), after("parts", 90).model.parameters(), strict=True
    ):
        assert torch.equal(one, two)
    after("alone", 2)
    after("shared", 2, processes=2)
    first, second = (
        next(
            row for row in read_metrics(tmp_path / name / "metrics.jsonl") if row["kind"] == "valid"
        )
        for name in ("alone", "shared")
    )
    assert first["loss"] == pytest.approx(second["loss"], rel=1e-3)
