"""What a language model learns: the next token of a text, or tokens that are hidden in it."""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain
from typing import Any

import torch

from regard.attention.costs import LayerCosts
from regard.base.errors import SettingsError
from regard.base.special_tokens import BEGIN
from regard.batching.texts import AnswerBatch, StreamBatch
from regard.compute.device import beside
from regard.compute.group import shared_out
from regard.models.language_model import LanguageModel
from regard.settings.language_models import BidirectionalSettings
from regard.tasks.language_modelling import data as task_data
from regard.tasks.language_modelling.answers import AnswerData
from regard.tasks.language_modelling.settings import LanguageModelRecipe
from regard.text.byte_bpe import ByteBpeTokenizer
from regard.text.tokenizers import RunningText
from regard.training.losses import LossSum, chunked_token_loss
from regard.training.objective import Validation

# Of the tokens that were chosen: those hidden, and those hidden or left (Devlin et al. 2019, 3.1).
HIDDEN, HIDDEN_OR_LEFT = 0.8, 0.9
SHARES = 64  # of a validation, for the processes of a training


def loss_of_recipe(recipe: LanguageModelRecipe, text: RunningText) -> Callable[..., LossSum]:
    """Return the loss of a recipe's model, given the model and a batch."""
    settings = recipe.model
    if not isinstance(settings, BidirectionalSettings):
        return next_token_loss
    if recipe.data.pairs:
        raise SettingsError(
            'model.family = "bidirectional" cannot learn answers to prompts (data.pairs): use '
            'model.family = "transformer".'
        )
    mark = settings.mask_token
    if mark is None and isinstance(text.tokenizer, ByteBpeTokenizer):
        mark = text.tokenizer.end
    return partial(
        hidden_token_loss,
        mark=BEGIN if mark is None else mark,
        share=settings.hidden_share,
        vocab=text.size,
    )


def next_token_loss(model: LanguageModel[Any], batch: StreamBatch | AnswerBatch) -> LossSum:
    """Return the summed loss of the tokens that a batch asks for."""
    tokens, batch = batch.target_tokens, beside(model, batch)
    costs = LayerCosts(model)
    loss = chunked_token_loss(
        model(batch.tokens, **costs.probing).features,
        expected=batch.expected,
        mask=batch.mask,
        weight=model.projection.weight,
        bias=model.projection.bias,
    )
    return loss._replace(objective=costs.added_to(loss.objective, tokens=tokens))


def hidden_token_loss(
    model: LanguageModel[Any], batch: StreamBatch, *, mark: int, share: float, vocab: int
) -> LossSum:
    """Return the loss of tokens that were chosen to be guessed, as if all had been.

    Most of them are hidden behind the mark, some exchanged for another token and some left, so
    that every token may be wrong. In validation the choice is a function of the text.
    """
    tokens = batch.tokens
    generator = None
    if not model.training:
        generator = torch.Generator().manual_seed(int(tokens.sum()))
    chance, fate = torch.rand(2, *tokens.shape, generator=generator)
    chosen = chance < share
    chosen.view(-1)[0] |= ~chosen.any()  # there is something to learn in every batch
    others = torch.randint(vocab, tokens.shape, generator=generator)
    read = torch.where(chosen & (fate < HIDDEN), mark, tokens)
    read = torch.where(chosen & (fate >= HIDDEN_OR_LEFT), others, read)
    read, tokens, chosen = beside(model, (read, tokens, chosen))
    costs = LayerCosts(model)
    loss = chunked_token_loss(
        model(read, **costs.probing).features,
        expected=tokens,
        mask=chosen,
        weight=model.projection.weight,
        bias=model.projection.bias,
    )
    grown = batch.target_tokens / chosen.sum()
    return LossSum(
        costs.added_to(loss.objective * grown, tokens=batch.target_tokens), loss.nats * grown
    )


def validated(
    data: task_data.TextData | AnswerData,
    model: LanguageModel[Any],
    recipe: LanguageModelRecipe,
    *,
    loss_of: Callable[..., LossSum],
    most: int | None = None,
) -> Validation:
    """Return loss and perplexity per token, and of a text bits a character and a byte.

    They are those of all that was held out, or of `most` of its tokens. Guesses of hidden tokens
    are no code of the text, so they have no bits.
    """

    def sums(shares: Sequence[int]) -> list[list[tuple[int, float, int]]]:
        found: dict[int, list[tuple[int, float, int]]] = {share: [] for share in shares}
        batches: Iterable[Any] = data.validation(recipe, most=most)
        for number, batch in enumerate(batches):
            if number % SHARES in found:
                nats = float(loss_of(model, batch).nats)
                found[number % SHARES].append((number, nats, batch.target_tokens))
        return [found[share] for share in shares]

    shares = shared_out(range(SHARES), sums)
    losses = [(nats, tokens) for _, nats, tokens in sorted(chain(*shares))]
    loss = sum(nats for nats, _ in losses) / sum(tokens for _, tokens in losses)
    metrics = {"loss": loss, "perplexity": math.exp(min(loss, 700))}
    if isinstance(data, task_data.TextData) and not model.reads_both_ways:
        bits = loss / math.log(2) * len(data.valid)  # its first token costs as the others do
        metrics["bits_per_character"] = bits / data.valid.characters
        metrics["bits_per_byte"] = bits / data.valid.bytes
    return Validation(metrics=metrics, value=loss)
