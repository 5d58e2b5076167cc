"""With the same weights and vocabulary, the model gives what Hugging Face's GPT-2 gives."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
import torch

from regard.exchange.formats import read_foreign
from regard.tasks.exchange import import_model
from regard.tasks.language_modelling.exchange import export_gpt2
from regard.tasks.language_modelling.model import load
from regard.text.byte_bpe import ByteBpeTokenizer

transformers = pytest.importorskip("transformers")

SCRIPTS = [
    "The cats don't sit; they've 3,141 mats",
    "Straße über Öl, naïve façade",
    "кошка сидит на коврике",
    "γάτα κάθεται στο χαλί",
    "قطة تجلس على السجادة",
    "חתול יושב",
    "猫が座る 猫坐在垫子上 고양이",
    "बिल्ली चटाई पर बैठी",
    "👩‍👧 🇩🇪 ❤️ 🧑🏽‍🚀",
    "  \t two  spaces\u00a0and\u2003wide ones ",
    "x_1 += f(y[2]) # <|end of> 'll 's 'S",
]


def mixed_lines(count: int) -> list[str]:
    random = Random(3)
    letters = "".join(SCRIPTS)
    return [
        " ".join(random.choices(SCRIPTS, k=random.randint(1, 3)))
        if random.random() < 0.5
        else "".join(random.choices(letters, k=random.randint(1, 60)))
        for _ in range(count)
    ]


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that `transformers` has written, with random weights that matter."""
    folder = tmp_path_factory.mktemp("gpt2")
    tokenizer = ByteBpeTokenizer.train(SCRIPTS * 3, size=420)
    tokenizer.write_files(folder / "vocab.json", folder / "merges.txt")
    torch.manual_seed(4)
    config = transformers.GPT2Config(
        vocab_size=tokenizer.size,
        n_positions=128,
        n_embd=48,
        n_layer=3,
        n_head=4,
        initializer_range=0.2,
        bos_token_id=tokenizer.end,
        eos_token_id=tokenizer.end,
    )
    model = transformers.GPT2LMHeadModel(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))  # biases and norms too
    model.save_pretrained(folder)
    return folder


def greedy(model: torch.nn.Module, prompt: torch.Tensor, count: int) -> list[int]:
    ids = prompt
    for _ in range(count):
        following = model(ids).logits[:, -1].argmax(-1)
        ids = torch.cat([ids, following[:, None]], dim=1)
    return ids[0].tolist()


@torch.no_grad()
def test_logits_and_greedy_text_equal_gpt2(theirs: Path, tmp_path: Path) -> None:
    reference = transformers.GPT2LMHeadModel.from_pretrained(theirs).eval()
    found = read_foreign(theirs)
    tokens = torch.randint(0, found.tokenizers["text"].size, (3, 128))
    ours = found.model.project(found.model(tokens).features)
    torch.testing.assert_close(ours, reference(tokens).logits, atol=1e-4, rtol=0)

    run = import_model(theirs, out=tmp_path / "run").run
    loaded = load(run.folder)
    prompt = "кошка 猫"
    ids = loaded.text.encode(prompt)
    expected = greedy(reference, torch.tensor([ids]), 100)
    if loaded.text.end in expected:
        expected = expected[: expected.index(loaded.text.end)]
    (text,) = loaded.generate(prompt, max_tokens=100, temperature=0.0)
    assert text.tokens == len(expected) - len(ids) >= 50
    assert text.prompt + text.text == loaded.text.decode(expected)


@torch.no_grad()
def test_what_is_exported_loads_there_with_the_same_logits(theirs: Path, tmp_path: Path) -> None:
    import_model(theirs, out=tmp_path / "run")
    export_gpt2(tmp_path / "run", tmp_path / "exported")
    loaded = load(tmp_path / "run")
    reference = transformers.GPT2LMHeadModel.from_pretrained(tmp_path / "exported").eval()
    tokens = torch.randint(0, loaded.text.size, (2, 60))
    ours = loaded.model.project(loaded.model(tokens).features)
    torch.testing.assert_close(ours, reference(tokens).logits, atol=1e-4, rtol=0)
    tokenizer = transformers.GPT2Tokenizer.from_pretrained(tmp_path / "exported")
    assert tokenizer("don't 猫")["input_ids"] == loaded.text.encode("don't 猫")


def test_ids_equal_those_of_their_tokenizer(theirs: Path) -> None:
    ours = ByteBpeTokenizer.read_files(theirs / "vocab.json", theirs / "merges.txt")
    reference = transformers.GPT2Tokenizer.from_pretrained(theirs)
    for line in mixed_lines(1_000):
        ids = ours.encode(line)
        assert ids == reference(line)["input_ids"], line
        assert ours.decode(ids) == line
