"""`regard train --from RUN`: what it chooses, mixes in, keeps, and says of before and after."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.conftest import TOY_WORDS

import regard
from regard.base.errors import Interrupted, RegardError, RunError, SettingsError
from regard.batching.order import BatchOrder, BatchPosition
from regard.cli.compare import general_table
from regard.runs.display import SilentDisplay
from regard.runs.run import Run
from regard.studies.common_test import family_tests
from regard.tasks.translation.fine_tuning import alternating, general_rows
from regard.tasks.translation.forgetting import FILE, GENERAL, kept_tests
from regard.tasks.translation.model import load
from regard.tasks.translation.settings import TranslationRecipe

FEW = {
    "training.steps": 4, "training.validate_every": 2, "training.checkpoint_every": 2,
    "training.validate_sentences": 4, "decoding.beam": 1,
}  # fmt: skip


class Notes(SilentDisplay):
    """Remembers what a training says."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, line: str) -> None:
        self.lines.append(line)


@pytest.fixture(scope="module")
def domain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pairs of the toy words whose translations are in the opposite order."""
    path = tmp_path_factory.mktemp("domain") / "domain.tsv"
    rows = []
    for number in range(80):
        words = [TOY_WORDS[(number * step) % len(TOY_WORDS)] for step in (1, 7, 11)]
        rows.append(f"{' '.join(words)}\t{' '.join(w[::-1].upper() for w in words[::-1])}\n")
    path.write_text("".join(rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def general(toy_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """General pairs of the toy language."""
    path = tmp_path_factory.mktemp("general") / "general.tsv"
    sides = [
        (toy_corpus / f"valid.{end}").read_text("utf-8").splitlines() for end in ("src", "tgt")
    ]
    path.write_text("".join(f"{s}\t{t}\n" for s, t in zip(*sides, strict=True)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def mixed(toy_run: Path, domain: Path, general: Path, tmp_path_factory: Any) -> Any:
    """A run that was fine-tuned with general pairs mixed in, and what it said."""
    display = Notes()
    trained = regard.train(
        start_from=toy_run, data={"train": domain, "mix": general}, set=FEW,
        out=tmp_path_factory.mktemp("tuned") / "run", progress=display,
    )  # fmt: skip
    return trained, display.lines


def test_what_was_chosen_is_said(mixed: Any, toy_run: Path) -> None:
    trained, said = mixed
    recipe, before = trained.model.recipe, load(toy_run).recipe
    assert (recipe.model, recipe.tokenizer) == (before.model, before.tokenizer)
    assert recipe.training.start_from == str(toy_run)
    assert recipe.training.learning_rate < before.training.learning_rate / 10
    assert recipe.training.patience == 3
    reasons = "\n".join(line for line in said if line.startswith("from: "))
    for part in (
        f"model, tokenizers and search are those of {toy_run}",
        f"all weights at a learning rate of {recipe.training.learning_rate:g}, low so that",
        "pairs of about",
        "at most 4 updates, fewer if 3 validations in a row (every 2 updates)",
        "50% of the tokens of each update are general pairs",
    ):
        assert part in reasons
    assert "Held out of 40 general pairs by seed 1: 4." in said


def test_both_tests_are_kept_shown_and_reported(mixed: Any, toy_run: Path) -> None:
    trained, said = mixed
    folder = trained.run.folder
    tuned = json.loads((folder / "test.json").read_text("utf-8"))["fine_tuning"]
    assert tuned["start"] == str(toy_run)
    inside, outside = tuned["tests"]
    assert (inside["test"], inside["sentences"], inside["origin"]) == (
        "in domain",
        8,
        "the test part",
    )
    assert (outside["test"], outside["sentences"]) == ("general", 4)
    assert outside["origin"] == "held out of data.mix"
    for one in (inside, outside):
        low, high = one["bleu_difference_interval"]
        assert low <= one["bleu_difference"] <= high
        assert 0 <= one["p_value"] <= 1
        assert one["after"]["bleu"] - one["before"]["bleu"] == pytest.approx(one["bleu_difference"])
    assert outside["before"]["bleu"] > 90  # the first run knows its language
    assert any(line.startswith("Before fine-tuning, general: BLEU ") for line in said)
    shown = "\n".join(trained.lines())
    assert f"Fine-tuned from {toy_run}, greedy search; 95 % intervals" in shown
    assert "general: 4 sentences, held out of data.mix" in shown
    page = trained.report.read_text("utf-8")
    assert "Before and after fine-tuning" in page
    assert "held out of data.mix" in page
    assert {name: len(kept) for name, kept in kept_tests(folder).items()} == {
        "in domain": inside["sentences"],
        "general": 4,
    }


def test_the_first_run_is_not_needed_any_more(
    toy_run: Path, domain: Path, general: Path, tmp_path: Path
) -> None:
    start, out = tmp_path / "start", tmp_path / "run"
    shutil.copytree(toy_run, start)
    data = {"train": domain, "mix": general}
    whole = regard.train(
        start_from=start, data=data, out=tmp_path / "whole", set=FEW, progress=False
    )
    regard.train(
        start_from=start, data=data, out=out, set={**FEW, "training.steps": 3}, progress=False
    )
    shutil.rmtree(start)
    shutil.rmtree(out / "best")
    again = regard.train(resume=out, set={"training.steps": 4}, progress=False)
    assert len(again.evaluation.forgetting.changes) == 2
    weights = [
        load_file(Run(folder).folder / "checkpoints" / "step-00000004" / "model.safetensors")
        for folder in (whole.run.folder, out)
    ]
    for name, tensor in weights[0].items():  # the mixture was read on at the same place
        assert torch.equal(tensor, weights[1][name]), name
    assert regard.load(out).translate(TOY_WORDS[0]).text


def test_a_stop_before_the_first_update_leaves_nothing(
    toy_run: Path, domain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from regard.tasks.translation import forgetting

    def stop(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(forgetting, "translated", stop)
    with pytest.raises(Interrupted, match="nothing is kept"):
        regard.train(start_from=toy_run, data=domain, out=tmp_path / "run", set=FEW, progress=False)
    assert not (tmp_path / "run").exists()


def test_a_plan_says_why_and_writes_nothing(
    toy_run: Path, domain: Path, general: Path, tmp_path: Path
) -> None:
    data = {"train": domain, "mix": general}
    plan = regard.plan(start_from=toy_run, data=data, set=FEW, progress=False)
    shown = str(plan)
    assert f"because     model, tokenizers and search are those of {toy_run}" in shown
    assert "mix         36 general pairs, 50% of the tokens of each update" in shown
    assert plan.recipe.training.steps == 4
    assert not list(tmp_path.iterdir())


def test_a_recipe_decides_the_rest(toy_run: Path, domain: Path, tmp_path: Path) -> None:
    trained = regard.train(
        "transformer-tiny", start_from=toy_run, data=domain, out=tmp_path / "run", progress=False,
        set={**FEW, "training.optimizer": "adam", "training.average": 0},
    )  # fmt: skip
    recipe = trained.model.recipe
    assert recipe.model.family == "recurrent"
    assert recipe.training.label_smoothing == 0.1
    assert recipe.training.learning_rate == 0.01


def test_the_test_part_of_the_first_run_is_the_general_one(
    toy_run: Path, domain: Path, tmp_path: Path
) -> None:
    trained = regard.train(
        start_from=toy_run, data=domain, out=tmp_path / "run", set=FEW, progress=False
    )
    outside = trained.evaluation.forgetting.changes[1]
    assert (outside.name, outside.origin) == (GENERAL, f"the test part of {toy_run}")
    assert outside.sentences == 30


@pytest.mark.parametrize("rank", [pytest.param(0, marks=pytest.mark.slow), 2])
def test_adapters_of_a_transformer_are_merged_for_use(
    random_transformer_run: Path, domain: Path, tmp_path: Path, rank: int
) -> None:
    changes = {**FEW, "training.adapter_rank": rank, "data.hold_out_test": 4}
    trained = regard.train(
        start_from=random_transformer_run, data=domain, out=tmp_path / "run", set=changes,
        progress=False,
    )  # fmt: skip
    folder = trained.run.folder
    names = set(load_file(folder / "best" / "model.safetensors"))
    assert any("parametrizations" in name for name in names) is bool(rank)
    names = {name for name, _ in trained.model.model.named_parameters()}
    assert not any("parametrizations" in name for name in names)
    before = load(random_transformer_run).model.state_dict()
    changed = {
        n for n, t in trained.model.model.state_dict().items() if not torch.equal(t, before[n])
    }
    if rank:
        assert changed
        assert all(
            ".attention." in n or "_attention." in n or "feed_forward." in n for n in changed
        )
    again = regard.train(  # a run with adapters can be fine-tuned, too
        start_from=folder, data=domain, out=tmp_path / "again", set={**FEW, "training.steps": 1},
        progress=False,
    )  # fmt: skip
    assert again.model.recipe.training.adapter_rank == 0


def test_frozen_parts_stay(random_transformer_run: Path, domain: Path, tmp_path: Path) -> None:
    changes = {**FEW, "training.freeze": ["embedding", "cross-attention", "encoder.layers.0"]}
    trained = regard.train(
        start_from=random_transformer_run, data=domain, out=tmp_path / "run", set=changes,
        progress=False,
    )  # fmt: skip
    before = load(random_transformer_run).model.state_dict()
    for name, tensor in trained.model.model.state_dict().items():
        stays = "embedded" in name or "cross_attention" in name or "encoder.layers.0." in name
        if stays:
            assert torch.equal(tensor, before[name]), name
    reasons = regard.plan(
        start_from=random_transformer_run, data=domain, set=changes, progress=False
    ).reasons
    assert "all weights but embedding, cross-attention, encoder.layers.0 at" in "\n".join(reasons)


def pairs_from(epoch: int, batch: int) -> Iterator[tuple[BatchPosition, Any]]:
    """Three batches an epoch, each named by its place."""
    while True:
        last = batch == 2
        after = BatchPosition(epoch + 1, 0) if last else BatchPosition(epoch, batch + 1)
        yield after, f"own {epoch}.{batch}"
        epoch, batch = after.epoch, after.batch


def test_batches_alternate_from_any_place() -> None:
    order = BatchOrder([(4, 4)] * 5, token_budget=16, seed=3)

    def general(epoch: int, first: int) -> Iterator[Any]:
        rows = general_rows(order, epoch)
        for _ in range(first):
            next(rows)
        yield from rows

    whole = alternating(pairs_from, general, 0, 0)
    read = [next(whole) for _ in range(14)]
    assert [one for _, one in read[::2]] == [f"own {e}.{b}" for e in (0, 1) for b in range(3)] + [
        "own 2.0"
    ]
    assert sorted(row for _, rows in read[1:6:2] for row in rows) == [0, 1, 2, 3, 4]
    for number in range(13):
        place = read[number][0]
        rest = alternating(pairs_from, general, place.epoch, place.batch)
        assert [next(rest) for _ in range(3)][: 13 - number] == read[number + 1 : number + 4]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"recipe": "auto"}, "auto chooses a model, --from keeps that of a run"),
        ({"resume": True, "out": "x"}, "--from begins a training, --resume goes on with one"),
        ({"task": "classify"}, "--task classify says what to learn from a language model"),
        ({"task": "clasify"}, "Unknown task 'clasify'. Did you mean 'classify'"),
        ({"recipe": "gpt-nano"}, "a training of the task 'language-model' cannot start from it"),
        ({"set": {"training.freeze": ["encodr"]}}, "and by name decoder, embedding"),
        ({"set": {"training.adapter_rank": 2}}, "this model has no attention to adapt"),
        ({"set": {"training.optimizer": "muon", "training.adapter_rank": 2}}, "are trained with"),
    ],
)  # fmt: skip
def test_what_cannot_be_fine_tuned_is_refused(
    toy_run: Path, domain: Path, tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    given = {"out": tmp_path / "run", **options}
    with pytest.raises(RegardError, match=message):
        regard.train(start_from=toy_run, data=domain, progress=False, **given)
    assert not (tmp_path / "run").exists()


def test_more_mistakes(toy_run: Path, domain: Path, general: Path, tmp_path: Path) -> None:
    few = tmp_path / "few.tsv"
    few.write_text("badal\tLADAB\n" * 5, encoding="utf-8")
    given = {"start_from": toy_run, "out": tmp_path / "run", "progress": False}
    with pytest.raises(SettingsError, match="5 general pairs are too few"):
        regard.train(data={"train": domain, "mix": few}, **given)
    with pytest.raises(SettingsError, match=r"No pair of data\.mix is within"):
        data = {"train": [("badal", "B")] * 40, "mix": [("badal kofen migon ruly", "A B C")] * 40}
        regard.train(data=data, set={"batches.max_length": 3}, **given)
    with pytest.raises(SettingsError, match="--task says what to learn from a language model"):
        regard.train("demo-attention", task="answer", out=tmp_path / "run", progress=False)
    with pytest.raises(RunError, match="There is no run at"):
        regard.train(start_from=tmp_path / "none", data=domain, out=tmp_path / "run")


def test_a_damaged_record_is_said(mixed: Any, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('{"tests": {"general": {"rows": [[1]]}}}', encoding="utf-8")
    with pytest.raises(RunError, match="is not what a fine-tuning has recorded"):
        kept_tests(tmp_path)
    assert kept_tests(tmp_path / "none") == {}


def test_without_general_pairs_it_is_said(domain: Path, tmp_path: Path, toy_run: Path) -> None:
    start, display = tmp_path / "start", Notes()
    shutil.copytree(toy_run, start)
    recipe = Run(start).recipe(TranslationRecipe)
    unknown = recipe.data.model_copy(update={"train": (), "valid": (), "test": ()})
    Run(start).rewrite(recipe.model_copy(update={"data": unknown}))  # as an imported run
    trained = regard.train(
        start_from=start, data=domain, out=tmp_path / "run", set=FEW, progress=display
    )
    assert any("so what is forgotten cannot be seen" in line for line in display.lines)
    assert "general: no test, so what was forgotten is not known" in "\n".join(trained.lines())


def test_the_first_run_and_the_tuned_one_are_compared_on_both_tests(
    mixed: Any, toy_run: Path, tmp_path: Path
) -> None:
    trained, _ = mixed
    found = regard.compare([toy_run, trained.run.folder], out=tmp_path, progress=False)
    tuned = json.loads((trained.run.folder / "test.json").read_text("utf-8"))["fine_tuning"]
    rows = found.rows()
    for row, when in zip(rows, ("before", "after"), strict=True):
        assert row["bleu"] == pytest.approx(tuned["tests"][0][when]["bleu"])
        assert row["general_bleu"] == pytest.approx(tuned["tests"][1][when]["bleu"])
    assert found.to_dict()["general_sentences"] == 4
    assert "on which forgetting is seen" in (tmp_path / "comparison.html").read_text("utf-8")
    table = general_table(found)
    assert table.row_count == 2
    other = {"general": kept_tests(trained.run.folder)["general"]}
    assert other != family_tests({"a": toy_run}, {"a": load(toy_run).recipe}) == {}
