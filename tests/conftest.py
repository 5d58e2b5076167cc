from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest
import torch

# The models of the tests are tiny: threads would wait for each other longer than they compute.
torch.set_num_threads(1)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real corpora: REGARD_DATA, or `shared/data` next to the repository."""
    named = os.environ.get("REGARD_DATA")
    default = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(named) if named else default
    if not folder.is_dir():
        pytest.skip(f"no real corpora in {folder}; name their folder in REGARD_DATA")
    return folder


# An invented language: thirty words, each of which its translation spells backwards in capitals.
TOY_WORDS = [first + second for first in ("ba", "ko", "mi", "ru", "ze") for second in
             ("dal", "fen", "gon", "lis", "pur", "tam")]  # fmt: skip


@pytest.fixture(scope="session")
def toy_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with train, valid and test files of the invented language, .src and .tgt."""
    folder = tmp_path_factory.mktemp("toy-corpus")
    random = Random(1)
    for name, size in {"train": 600, "valid": 40, "test": 30}.items():
        sources = [" ".join(random.sample(TOY_WORDS, random.randint(2, 6))) for _ in range(size)]
        targets = [" ".join(w[::-1].upper() for w in line.split()) for line in sources]
        (folder / f"{name}.src").write_text("\n".join(sources) + "\n", encoding="utf-8")
        (folder / f"{name}.tgt").write_text("\n".join(targets) + "\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def toy_settings(toy_corpus: Path) -> list[str]:
    """Overrides by which a small translator learns the invented language in seconds."""
    files = {name: [f"{toy_corpus / name}{end}" for end in (".src", ".tgt")]
             for name in ("train", "valid", "test")}  # fmt: skip
    return [
        *(f"data.{name}=[{source},{target}]" for name, (source, target) in files.items()),
        "tokenizer.kind=word",
        "model.cell=gru",
        "model.hidden=48",
        "model.embedding=24",
        "model.dropout=0",
        "batches.tokens=400",
        "training.steps=300",
        "training.warmup=20",
        "training.learning_rate=0.01",
        "training.validate_every=150",
        "training.checkpoint_every=150",
        "training.validate_sentences=20",
    ]


@pytest.fixture(scope="session")
def toy_run(toy_settings: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that has learned the invented language; nobody may change it."""
    from regard.runs.run import open_run
    from regard.settings.recipe import expect
    from regard.tasks import find_recipe
    from regard.tasks.translation.data import read_splits
    from regard.tasks.translation.settings import TranslationRecipe
    from regard.tasks.translation.training import tested, train_translator

    recipe = expect(find_recipe("seq2seq-attention", overrides=toy_settings), TranslationRecipe)
    folder = tmp_path_factory.mktemp("toy-runs") / "attention"
    trained = train_translator(recipe, open_run(folder, recipe, resume=False))
    tested(trained, read_splits(recipe.data).test)
    return folder


@pytest.fixture(scope="session")
def random_transformer_run(
    toy_corpus: Path, toy_settings: list[str], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The folder of a small Transformer that was never trained, and whose outputs do end.

    Nobody may change it.
    """
    from regard.base.special_tokens import BEGIN, END, PAD
    from regard.corpora.parallel import read_pairs
    from regard.models.build import build_translator
    from regard.runs.run import Run
    from regard.settings.recipe import expect
    from regard.tasks import find_recipe
    from regard.tasks.translation.examples import run_tokenizers
    from regard.tasks.translation.settings import TranslationRecipe
    from regard.training.checkpoint import CheckpointStore
    from regard.training.progress import Progress

    changes = ["layers=2", "model_dim=32", "heads=2", "feed_forward=48", "output_bias=true"]
    overrides = [line for line in toy_settings if not line.startswith("model.")]
    overrides += [f"model.{change}" for change in changes]
    recipe = expect(find_recipe("transformer-tiny", overrides=overrides), TranslationRecipe)
    run = Run.create(tmp_path_factory.mktemp("random-runs") / "transformer", recipe)
    pairs = read_pairs([toy_corpus / "train.src", toy_corpus / "train.tgt"])
    source, target = run_tokenizers(run, recipe, pairs)
    torch.manual_seed(1)
    model = build_translator(recipe.model, source_vocab=source.size, target_vocab=target.size)
    with torch.no_grad():
        model.projection.bias[END] = 2.0
        model.projection.bias[[PAD, BEGIN]] = -20.0  # as training leaves what it never sees
    CheckpointStore(run.folder).save_best(model, Progress(), {})
    return run.folder
