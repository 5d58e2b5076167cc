"""A model of one's own: a score, an encoder and a decoder, put together and trained in Python."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import regard
from regard.attention.lookup import Lookup
from regard.attention.scores import DotScore
from regard.base.errors import SettingsError
from regard.models.translator import Translator
from regard.recurrent.cells import RecurrentStack
from regard.recurrent.decoders import LuongDecoder
from regard.recurrent.encoder import RecurrentEncoder

SETTINGS = {"training.steps": 6, "training.validate_every": 3, "decoding.beam": 1}
PAIRS = [("a b c", "c b a"), ("b c", "c b"), ("c a", "a c"), ("a", "a")] * 5


class SquaredDistance(DotScore):
    """e_ij = -|s_i - h_j|^2."""

    def forward(self, query: torch.Tensor, prepared: torch.Tensor) -> torch.Tensor:
        return -torch.cdist(query, prepared).square()


def my_model(source_vocab: int, target_vocab: int) -> Translator:
    encoder = RecurrentEncoder(
        embedding=nn.Embedding(source_vocab, 8),
        stack=RecurrentStack(kind="gru", input_dim=8, hidden=12),
    )
    decoder = LuongDecoder(
        embedding=nn.Embedding(target_vocab, 8),
        stack=RecurrentStack(kind="gru", input_dim=8, hidden=12),
        lookup=Lookup(score=SquaredDistance(query_dim=12, key_dim=12)),
        combine=nn.Linear(24, 12),
    )
    return Translator(encoder=encoder, decoder=decoder, projection=nn.Linear(12, target_vocab))


@pytest.fixture(scope="module")
def own_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("own") / "run"
    data = {"train": PAIRS, "valid": PAIRS[:4], "test": PAIRS[:4]}
    trained = regard.train(
        "seq2seq-attention", data=data, model=my_model, set=SETTINGS, out=out, progress=False
    )
    assert isinstance(trained.model.model.decoder.lookup.score, SquaredDistance)
    assert trained.evaluation is not None
    assert trained.report.is_file()
    return out


def test_it_is_loaded_with_the_function_that_built_it(own_run: Path) -> None:
    model = regard.load(own_run, model=my_model)
    found = model.translate("a b c")
    assert found.attention is not None
    torch.testing.assert_close(
        torch.tensor(found.attention.weights.sum(1)).max(), torch.tensor(1.0)
    )


def test_without_the_function_it_is_refused(own_run: Path) -> None:
    with pytest.raises(SettingsError, match=r"was built in Python: .* regard.load\(folder, model="):
        regard.load(own_run)


def test_another_network_does_not_fit(own_run: Path) -> None:
    def larger(source_vocab: int, target_vocab: int) -> Translator:
        return my_model(source_vocab + 1, target_vocab)

    with pytest.raises(regard.RunError):
        regard.load(own_run, model=larger)


def test_a_task_that_takes_no_model_says_so(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="'forecast' takes no model"):
        regard.train("fibonacci-rnn", model=my_model, out=tmp_path / "run", progress=False)
