"""A Transformer as a folder for plain `ctranslate2`: layers, tokenizers, and a page on its use."""

import json
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import numpy as np
import sentencepiece
import torch
from ctranslate2.specs import common_spec, transformer_spec

from regard.base.errors import RunError, SettingsError
from regard.base.files import fingerprint, whole_folder, write_file, write_json
from regard.base.protocols import Tokenizer
from regard.base.shapes import Float, Tensor
from regard.base.special_tokens import SPECIALS
from regard.compute.device import HOST
from regard.exchange.ctranslate2_layout import layout
from regard.exchange.layout import written
from regard.models.translator import Translator
from regard.settings.models import RecurrentSettings, TransformerSettings
from regard.text.imported import ImportedTokenizer
from regard.text.sentencepiece import SentencePieceTokenizer
from regard.text.splitters import SentencePieceSplitter
from regard.text.words import CharacterTokenizer
from regard.transformer.layers import GATED, Embedded

PAGE = """# A translation model for CTranslate2

Made with Regard. It needs `pip install {packages}` and nothing else:

```python
{code}```
{notes}
Scores equal Regard's with `length_penalty=1, return_scores=True, return_end_token=True`: the sum of
log-probabilities divided by the number of tokens, end mark included.
"""

SUBWORDS = """\
import ctranslate2
import sentencepiece

translator = ctranslate2.Translator("{folder}", inter_threads=2, intra_threads=1)
source = sentencepiece.SentencePieceProcessor(model_file="{folder}/{source}")
target = sentencepiece.SentencePieceProcessor(model_file="{folder}/{target}")

pieces = source.encode("...", out_type=str)
found = translator.translate_batch([pieces], beam_size=5, max_input_length=0{more})
print(target.decode(found[0].hypotheses[0]))
"""

TOKENS = """\
import ctranslate2

translator = ctranslate2.Translator("{folder}", inter_threads=2, intra_threads=1)
tokens = {tokens}
found = translator.translate_batch([tokens], beam_size=5, max_input_length=0{more})
print("".join(found[0].hypotheses[0]).removeprefix(" "))
"""

CHARACTERS = """
The tokens are single characters, those of `*_vocabulary.json`.
"""
WORDS = """
The tokens are those of `*_vocabulary.json`, and you have to split the text yourself: a word with
the space before it (" cat"; the first word of a text has one too), a punctuation mark joined to the
word before it (","), a further space (" "), or "", which takes away the space of the next token.
A word that is not in the list is "<unk>".
"""
SHORTLIST_NOTE = """
`vmap.txt` lists the likely target tokens of each source token. With `use_vmap=True` only these are
considered, which is faster and sometimes changes a translation.
"""
FOLDER = "path/to/this/folder"


def export_page(source: Tokenizer, target: Tokenizer, *, shortlist: bool) -> str:
    """Return the page for these tokenizers."""
    more = ", use_vmap=True" if shortlist else ""
    notes = SHORTLIST_NOTE if shortlist else ""
    if subword_model(source) is not None and subword_model(target) is not None:
        one = shares_model(source, target)
        code = SUBWORDS.format(
            folder=FOLDER,
            source="sentencepiece.model" if one else "source.model",
            target="sentencepiece.model" if one else "target.model",
            more=more,
        )
        return PAGE.format(packages="ctranslate2 sentencepiece", code=code, notes=notes)
    characters = isinstance(source, CharacterTokenizer)
    tokens = 'list("...")' if characters else '[" a", " small", " example", "."]'
    return PAGE.format(
        packages="ctranslate2",
        code=TOKENS.format(folder=FOLDER, tokens=tokens, more=more),
        notes=(CHARACTERS if characters else WORDS) + notes,
    )


ACTIVATIONS = {
    "relu": common_spec.Activation.RELU,
    "gelu": common_spec.Activation.GELU,
    "gelu-tanh": common_spec.Activation.GELUTanh,
    "swish": common_spec.Activation.SWISH,
    "swiglu": common_spec.Activation.SWISH,
    "geglu": common_spec.Activation.GELU,
    "geglu-tanh": common_spec.Activation.GELUTanh,
}
# Settings of which CTranslate2 supports only some values, and those values.
KNOWN: dict[str, tuple[object, ...]] = {
    "encoder": ("attention",),
    "decoder": ("attention",),
    "kernel": ("softmax",),
    "window": (None,),
    "encoder_window": (None,),
    "experts": (0,),
    "pattern": ("full",),
    "span": (None,),
    "positions": ("sinusoidal", "learned", "relative", "rotary", "none"),
    "score": ("scaled-dot",),
    "head_dim": (None,),
    "key_value_heads": (None,),
    "head_norm": (False,),
    "rotary_base": (10_000.0,),
    "rotary_factor": (1.0,),
    "scaled_output": (False,),
}
INSIDE = ("relative", "rotary")  # positions that act inside the attention


def unsupported(settings: TransformerSettings | RecurrentSettings) -> str | None:
    """Return the setting for which CTranslate2 has no layer, with its value; None if it has all.

    Its linear biases (ALiBi) are those of a decoder alone, so an encoder cannot have them.
    """
    if not isinstance(settings, TransformerSettings):
        return f"model.family = {settings.family!r}"
    for name, known in KNOWN.items():
        value = getattr(settings, name)
        if value not in known:
            return f"model.{name} = {value!r}"
    return None


@torch.no_grad()
def translator_spec(
    model: Translator[Any], *, settings: TransformerSettings, most_positions: int
) -> transformer_spec.TransformerSpec:
    """Return the model with all its weights; vocabularies are left to the caller.

    Positions are written as a table of our vectors, at most `most_positions` of them, because
    CTranslate2 computes other sinusoids.
    """
    shape = {
        "num_heads": settings.heads,
        "pre_norm": settings.norm_placement == "pre",
        "activation": ACTIVATIONS[settings.activation],
        "ffn_glu": settings.activation in GATED,
        "layernorm_embedding": settings.embedding_norm,
        "rms_norm": settings.norm == "rms",
        "relative_position": settings.positions == "relative",
    }
    if settings.positions == "rotary":  # over the whole head, whose halves are rotated
        shape |= {"rotary_dim": 0, "rotary_interleave": False}
    encoder = transformer_spec.TransformerEncoderSpec(settings.layers, **shape)
    decoder = transformer_spec.TransformerDecoderSpec(
        settings.decoder_layers or settings.layers,
        alignment_layer=settings.alignment_layer,
        alignment_heads=0,  # the mean of all heads
        **shape,
    )
    stacks: Any = model
    for spec, stack in ((encoder, stacks.encoder), (decoder, stacks.decoder)):
        spec.scale_embeddings = stack.embedded.scale
        if settings.positions not in INSIDE:
            vectors = _position_table(stack.embedded, most_positions)
            spec.position_encodings.encodings = _array(vectors)
    whole = transformer_spec.TransformerSpec(encoder, decoder)
    table = layout(settings, dict(model.named_parameters(remove_duplicate=False)))
    tensors = written(model, table)
    for name, tensor in tensors.items():
        _set(whole, name, tensor)
    for name, other in table.copies.items():
        _set(whole, name, tensors[other])
    whole.config.add_source_eos = True
    whole.config.layer_norm_epsilon = stacks.decoder.layers[0].self_residual.norm.eps
    return whole


def _position_table(embedded: Embedded, places: int) -> Float[Tensor, "places model_dim"]:
    """Return the vectors that are added to the embeddings, as far as there are any."""
    if embedded.positions is None:
        return torch.zeros(1, embedded.embedding.embedding_dim).expand(places, -1)
    end = embedded.positions.max_length or places  # learned ones have an end
    vectors: Tensor = embedded.positions(min(end, places))
    return vectors


def _set(spec: Any, name: str, tensor: Tensor) -> None:
    """Give a specification the variable of this name, as "encoder/layer_0/ffn/linear_0/bias"."""
    *path, last = name.split("/")
    for part in path:
        if hasattr(spec, part):
            spec = getattr(spec, part)
        else:  # one of several, as layer_0
            several, _, number = part.rpartition("_")
            spec = getattr(spec, several)[int(number)]
    setattr(spec, last, _array(tensor))


def _array(tensor: Tensor) -> Float[np.ndarray, "*shape"]:
    """Return a copy of the values, since CTranslate2 quantises in place."""
    return tensor.to(HOST, torch.float32).numpy().copy()


Quantization = Literal["int8", "int16", "float16", "bfloat16"]
# Sinusoids have no end, but CTranslate2 reads them from a table.
MOST_POSITIONS = 2_048
RECORD, CHECKSUMS = "export.json", "checksums"
SHORTLIST = "vmap.txt"


def require_exportable(settings: TransformerSettings | RecurrentSettings) -> TransformerSettings:
    """Return the settings, or raise an error that names one that CTranslate2 has no layer for."""
    problem = unsupported(settings)
    if problem is not None or not isinstance(settings, TransformerSettings):
        raise SettingsError(
            f"CTranslate2 has no layer for {problem}, so this model cannot be exported to it. "
            "Translate with the torch engine, or train a Transformer without that setting."
        )
    return settings


def write_ctranslate2(
    folder: Path,
    *,
    model: Translator[Any],
    settings: TransformerSettings,
    source_tokenizer: Tokenizer,
    target_tokenizer: Tokenizer,
    quantization: Quantization | None = None,
    shortlist: Iterable[str] | None = None,
    record: Mapping[str, Any] | None = None,
) -> Path:
    """Write the model as CTranslate2 reads it, whole or not at all; a folder there is replaced.

    `shortlist` are the lines of a vocabulary map. `record` is stored as `export.json`.
    """
    spec = translator_spec(model, settings=settings, most_positions=MOST_POSITIONS)
    spec.register_source_vocabulary(token_names(source_tokenizer))
    spec.register_target_vocabulary(token_names(target_tokenizer))
    spec.validate()
    spec.optimize(quantization)
    require_replaceable(folder)
    with whole_folder(folder) as writing:
        spec.save(str(writing))
        copy_tokenizers(writing, source_tokenizer, target_tokenizer)
        if shortlist is not None:
            text = "".join(line + "\n" for line in shortlist)
            write_file(writing / SHORTLIST, text)
        page = export_page(source_tokenizer, target_tokenizer, shortlist=shortlist is not None)
        write_file(writing / "README.md", page)
        write_export_record(
            writing,
            {
                "quantization": quantization or "float32",
                "regard": version("regard"),
                "ctranslate2": version("ctranslate2"),
                **(record or {}),
            },
        )
    return folder


def token_names(tokenizer: Tokenizer) -> list[str]:
    """Return a unique name for every id: what CTranslate2 calls the tokens.

    They are the pieces of SentencePiece and the tokens of other tokenizers, unchanged. The id is
    appended to a token that has the name of a special one ("</s>").
    """
    if isinstance(tokenizer, SentencePieceTokenizer):
        processor = sentencepiece.SentencePieceProcessor()
        processor.load_from_serialized_proto(tokenizer.model)
        names: list[str] = processor.id_to_piece(list(range(tokenizer.size)))
        return names
    if isinstance(tokenizer, ImportedTokenizer):
        return imported_names(tokenizer)
    vocabulary: Any = getattr(tokenizer, "vocabulary", None)
    if vocabulary is None:
        raise SettingsError(
            f"A {type(tokenizer).__name__} has no list of tokens that could be exported."
        )
    tokens = [
        f"{token}#{number}" if token in SPECIALS else token
        for number, token in enumerate(vocabulary.tokens, len(SPECIALS))
    ]
    return [*SPECIALS, *tokens]


def imported_names(tokenizer: ImportedTokenizer) -> list[str]:
    """Return the names of an imported tokenizer: our special tokens, then its own tokens."""
    names, used = list(SPECIALS), set(SPECIALS)
    for number, theirs in enumerate(tokenizer.numbering.theirs[len(SPECIALS) :], len(SPECIALS)):
        token = tokenizer.splitter.token(theirs)
        names.append(f"{token}#{number}" if token in used else token)
        used.add(token)
    return names


def subword_model(tokenizer: Tokenizer) -> bytes | None:
    """Return the SentencePiece model of a tokenizer, if it has one."""
    if isinstance(tokenizer, SentencePieceTokenizer):
        return tokenizer.model
    if isinstance(tokenizer, ImportedTokenizer) and isinstance(
        tokenizer.splitter, SentencePieceSplitter
    ):
        return tokenizer.splitter.model
    return None


def copy_tokenizers(folder: Path, source: Tokenizer, target: Tokenizer) -> None:
    """Write the tokenizers' own files: one `sentencepiece.model` if both languages share it."""
    models = {"source": subword_model(source), "target": subword_model(target)}
    if shares_model(source, target):
        models = {"sentencepiece": models["source"]}
    for name, model in models.items():
        if model is not None:
            write_file(folder / f"{name}.model", model)


def shares_model(source: Tokenizer, target: Tokenizer) -> bool:
    """Return whether one SentencePiece model splits both languages."""
    model = subword_model(source)
    return model is not None and model == subword_model(target)


def write_export_record(folder: Path, record: Mapping[str, Any]) -> None:
    """Write the record of an export into its folder."""
    sums = {
        path.relative_to(folder).as_posix(): fingerprint([path])
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != RECORD
    }
    write_json(folder / RECORD, {**record, CHECKSUMS: sums})


def read_export_record(folder: Path) -> dict[str, Any]:
    """Return the record of an export; empty if it is missing or damaged."""
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def export_is_whole(folder: Path) -> bool:
    """Return whether the files of an export are those that its record has the checksums of."""
    sums = read_export_record(folder).get(CHECKSUMS)
    if not isinstance(sums, dict) or not sums:
        return False
    try:
        return all(fingerprint([folder / Path(name).name]) == sums[name] for name in sums)
    except OSError:
        return False


def require_replaceable(folder: Path) -> None:
    """Refuse to write where something other than an earlier export would be lost."""
    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder} is a file; choose another folder with --output.")
    if folder.exists() and any(folder.iterdir()) and not (folder / RECORD).is_file():
        raise RunError(
            f"{folder} is not empty and holds no earlier export; choose another folder with "
            "--output."
        )
