"""The peers of the decoding benchmark, with our weights: plain CTranslate2 and Hugging Face.

Each is given lines of text and returns lines of text, as we do. CTranslate2 has a process of its
own, so that what we ask of the library does not reach it.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import ctranslate2
import sentencepiece
import torch

from regard.base.special_tokens import BEGIN, END, PAD
from regard.batching.batch import padded
from regard.engines.ctranslate2_engine import INSTRUCTIONS
from regard.exchange.fairseq import stack_rules
from regard.exchange.layout import WeightLayout, written
from regard.tasks.translation.model import LoadedTranslator

Translate = Callable[[Sequence[str]], list[str]]
POSITIONS = 512


@dataclass(frozen=True)
class Search:
    """What all are asked for; `length` fixes the output's length, for models that never end."""

    beam: int
    length: int | None = None


@dataclass(frozen=True)
class Layout:
    """How CTranslate2 is set up."""

    workers: int
    threads: int
    batch: int
    compute_type: str = "float32"


class PlainCTranslate2:
    """CTranslate2 that knows nothing of us, but for the folder that we have written."""

    def __init__(self, folder: Path, search: Search, *, instructions: str | None = None):
        spawn = multiprocessing.get_context("spawn")
        self._line, its_line = spawn.Pipe()
        whole = (its_line, folder, search, instructions)
        spawn.Process(target=_serve, args=whole, daemon=True).start()

    def set_up(self, layout: Layout) -> None:
        """Load the model anew."""
        self._line.send(layout)
        self._line.recv()

    def __call__(self, lines: Sequence[str]) -> list[str]:
        """Return translations; the way of the lines there and back is part of its time."""
        self._line.send(list(lines))
        found: list[str] = self._line.recv()
        return found


def _serve(line: Connection, folder: Path, search: Search, instructions: str | None) -> None:
    """Be the other process: a layout makes a translator, lines are translated."""
    os.environ.pop(INSTRUCTIONS, None)
    if instructions is not None:
        os.environ[INSTRUCTIONS] = instructions
    translate: Translate | None = None
    with suppress(EOFError):  # until nobody asks any more
        while True:
            question = line.recv()
            if isinstance(question, Layout):
                translate = None  # the model before goes first
                translate = _plain(folder, search, question)
                line.send(None)
            elif translate is not None:
                line.send(translate(question))


def _plain(folder: Path, search: Search, layout: Layout) -> Translate:
    translator = ctranslate2.Translator(
        str(folder),
        compute_type=layout.compute_type,
        inter_threads=layout.workers,
        intra_threads=layout.threads,
    )
    model = sentencepiece.SentencePieceProcessor(model_file=str(folder / "sentencepiece.model"))
    options: dict[str, Any] = {"max_decoding_length": 256}
    if search.length is not None:
        options = {"min_decoding_length": search.length, "max_decoding_length": search.length}

    def translate(lines: Sequence[str]) -> list[str]:
        found = translator.translate_batch(
            model.encode(list(lines), out_type=str),
            beam_size=search.beam,
            max_batch_size=layout.batch,
            batch_type="examples",
            **options,
        )
        outputs: list[str] = model.decode([one.hypotheses[0] for one in found])
        return outputs

    return translate


def hugging_face(ours: LoadedTranslator, search: Search, *, batch: int = 64) -> Translate:
    """Return their `generate` on sorted batches, with our weights and our positions."""
    model = their_model(ours)
    source, target = ours.source_tokenizer, ours.target_tokenizer
    options: dict[str, Any] = {"max_new_tokens": 256}
    if search.length is not None:
        options = {"min_new_tokens": search.length, "max_new_tokens": search.length}

    @torch.inference_mode()
    def translate(lines: Sequence[str]) -> list[str]:
        encoded = [source.encode(line) for line in lines]
        order = sorted(range(len(lines)), key=lambda row: -len(encoded[row]))
        outputs = [""] * len(lines)
        for first in range(0, len(order), batch):
            rows = order[first : first + batch]
            ids, mask = padded([encoded[row] for row in rows], after=END)
            found = model.generate(
                input_ids=ids,
                attention_mask=mask.long(),
                num_beams=search.beam,
                do_sample=False,
                **options,
            )
            for row, tokens in zip(rows, found.tolist(), strict=True):
                outputs[row] = target.decode(tokens)
        return outputs

    return translate


def their_model(ours: LoadedTranslator) -> Any:
    """Return a model of transformers with the same weights, so that it does the same work.

    Marian has its norms at the end of a block, M2M100 at the beginning; else they are alike.
    """
    import transformers

    settings: Any = ours.recipe.model
    common: dict[str, Any] = {
        "vocab_size": ours.target_tokenizer.size,
        "d_model": settings.model_dim,
        "encoder_layers": settings.layers,
        "decoder_layers": settings.decoder_layers or settings.layers,
        "encoder_attention_heads": settings.heads,
        "decoder_attention_heads": settings.heads,
        "encoder_ffn_dim": settings.feed_forward,
        "decoder_ffn_dim": settings.feed_forward,
        "max_position_embeddings": POSITIONS,
        "activation_function": settings.activation,
        "scale_embedding": True,
        "pad_token_id": PAD,
        "bos_token_id": BEGIN,
        "eos_token_id": END,
        "decoder_start_token_id": BEGIN,
        "forced_eos_token_id": None,
    }
    model: Any
    if settings.norm_placement == "pre":
        model = transformers.M2M100ForConditionalGeneration(transformers.M2M100Config(**common))
    else:
        model = transformers.MarianMTModel(transformers.MarianConfig(**common))
    names = set(model.state_dict())
    tensors = {name: value for name, value in _their_names(ours).items() if name in names}
    missing = model.load_state_dict(tensors, strict=False).missing_keys
    left = [name for name in missing if "layer" in name]
    if left:
        raise RuntimeError(f"these weights of Hugging Face's model were not set: {left[:3]}")
    if (
        settings.norm_placement == "pre"
    ):  # its table is no weight; the first PAD + 1 rows are unused
        for theirs, stack in (
            (model.model.encoder, ours.model.encoder),
            (model.model.decoder, ours.model.decoder),
        ):
            embedded: Any = stack.embedded
            theirs.embed_positions.weights[PAD + 1 :] = embedded.positions(
                len(theirs.embed_positions.weights) - PAD - 1
            )
    return model.eval()


def _their_names(ours: LoadedTranslator) -> dict[str, torch.Tensor]:
    """Return our weights by their names."""
    model: Any = ours.model
    tensors = written(model, WeightLayout(rules=stack_rules(ours.recipe.model, prefix="model.")))
    tensors["model.shared.weight"] = model.decoder.embedded.embedding.weight
    for name, stack in (("encoder", model.encoder), ("decoder", model.decoder)):
        tensors[f"model.{name}.embed_tokens.weight"] = stack.embedded.embedding.weight
        tensors[f"model.{name}.embed_positions.weight"] = stack.embedded.positions(POSITIONS)
    tensors["lm_head.weight"] = model.projection.weight
    return {key: value.detach() for key, value in tensors.items()}
