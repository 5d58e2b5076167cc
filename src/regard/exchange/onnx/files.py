"""A folder for onnxruntime: two graphs, the tokenizers, and a page on their use."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from regard.base.errors import SettingsError
from regard.base.files import whole_folder, write_file, write_json
from regard.base.protocols import Tokenizer
from regard.exchange.onnx.session import DECODER, ENCODER, LONGEST, RECORD
from regard.models.translator import Translator
from regard.settings.models import RecurrentSettings, TransformerSettings
from regard.text.sentencepiece import SentencePieceTokenizer

PACKAGES = ("onnx", "onnxruntime")

# Settings of which a graph can have only some values, and those values.
KNOWN: dict[str, tuple[object, ...]] = {
    "encoder": ("attention",),
    "kernel": ("softmax",),
    "positions": ("sinusoidal", "learned", "rotary", "alibi", "bucketed", "none"),
    "score": ("scaled-dot", "dot"),
    "encoder_window": (None,),
    "experts": (0,),
    "pattern": ("full",),
    "span": (None,),
}

PAGE = """# A translation model for onnxruntime

Made with Regard. It needs `pip install {packages}` and nothing else:

```python
{code}```

`encoder.onnx` reads the source once; `decoder.onnx` is one step of the decoder. Both tell the names
and shapes of their inputs and outputs. Token ids: padding 0, unknown 1, begin 2, end 3; the source
ends with an end token. Texts may have up to {most:,} tokens.{weights}
"""
WEIGHTS_NOTE = """

Further outputs are the attention weights of every layer N and head: `self_weights.N` of the encoder
and of the decoder, and `cross_weights.N` of the decoder."""
LOOP = """
import numpy as np
import onnxruntime

FOLDER = "path/to/this/folder"
encoder, decoder = (
    onnxruntime.InferenceSession(f"{FOLDER}/{name}.onnx") for name in ("encoder", "decoder")
)


def named(session, inputs):
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs)))


def translate(ids, longest=200):
    source = np.array([[*ids, 3]])
    mask = np.ones_like(source, dtype=bool)
    memory = named(encoder, {"tokens": source, "mask": mask})
    memory = {name: part for name, part in memory.items() if name.startswith("memory_")}
    state = {
        value.name: np.zeros([1] + [n if isinstance(n, int) else 0 for n in value.shape[1:]],
                             dtype=np.float32)
        for value in decoder.get_inputs() if value.name.startswith("past_")
    }
    token, output = 2, []
    for position in range(longest):
        inputs = {"tokens": np.array([token]), "position": np.array(position), "mask": mask}
        found = named(decoder, {**inputs, **memory, **state})
        state = {name: found[name.removeprefix("past_")] for name in state}
        logits = found["logits"][0]
        logits[[0, 2]] = -np.inf  # never padding or begin
        token = int(logits.argmax())
        if token == 3:
            break
        output.append(token)
    return output

"""
SUBWORDS = """
import sentencepiece

source, target = (
    sentencepiece.SentencePieceProcessor(model_file=f"{FOLDER}/{name}.model")
    for name in ("source", "target")
)
print(target.decode(translate(source.encode("..."))))
"""
IDS = """
print(translate([5, 6, 7]))  # ids of the tokens in source.json, ids in target.json
"""


def require_onnx(settings: TransformerSettings | RecurrentSettings) -> TransformerSettings:
    """Return the settings, or raise an error that names those that no graph is made for."""
    if not isinstance(settings, TransformerSettings):
        raise SettingsError(
            f"Only Transformers are exported to ONNX, not model.family = {settings.family!r}."
        )
    wrong = [
        f"model.{name} = {getattr(settings, name)!r}"
        for name, known in KNOWN.items()
        if getattr(settings, name) not in known
    ]
    if wrong:
        raise SettingsError(
            f"This model cannot be exported to ONNX because of {', '.join(wrong)}. Translate with "
            "the torch engine, or train a Transformer without that."
        )
    return settings


def require_packages() -> None:
    """Refuse to begin where a package of the extra `onnx` is missing."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        raise SettingsError(
            f"Export to ONNX needs {' and '.join(missing)}: pip install onnx onnxruntime."
        )


def write_onnx(
    folder: Path,
    *,
    model: Translator[Any],
    settings: TransformerSettings,
    source_tokenizer: Tokenizer,
    target_tokenizer: Tokenizer,
    int8: bool = False,
    weights: bool = False,
    record: Mapping[str, Any] | None = None,
) -> Path:
    """Write the model for onnxruntime, whole or not at all.

    `int8` stores matrices in 8 bits; `weights` adds those of every head as outputs.
    """
    require_packages()
    import onnx

    from regard.exchange.onnx.graphs import decoder_graph, encoder_graph
    from regard.exchange.onnx.layers import MOST_POSITIONS

    graphs = {
        ENCODER: encoder_graph(model, settings, weights=weights, int8=int8),
        DECODER: decoder_graph(model, settings, weights=weights, int8=int8),
    }
    most = settings.max_length if settings.positions == "learned" else MOST_POSITIONS
    with whole_folder(folder) as writing:
        for name, graph in graphs.items():
            if int8:
                _write_int8(graph, writing / name)
            else:
                onnx.save(graph, writing / name)
        for name, tokenizer in (("source", source_tokenizer), ("target", target_tokenizer)):
            tokenizer.save(writing, name)
        subwords = all(
            isinstance(one, SentencePieceTokenizer) for one in (source_tokenizer, target_tokenizer)
        )
        page = PAGE.format(
            packages="onnxruntime sentencepiece" if subwords else "onnxruntime",
            code=(LOOP + (SUBWORDS if subwords else IDS)).lstrip(),
            most=most,
            weights=WEIGHTS_NOTE if weights else "",
        )
        write_file(writing / "README.md", page)
        found = {
            "quantization": "int8" if int8 else "float32",
            "weights": weights,
            LONGEST: most,
            "regard": version("regard"),
            "onnx": version("onnx"),
            **(record or {}),
        }
        write_json(writing / RECORD, found)
    return folder


def _write_int8(graph: Any, path: Path) -> None:
    """Write a graph with its matrices in 8 bits, one scale a column."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    # There is nothing to prepare in our graphs; without this mark a warning asks for it.
    graph.metadata_props.add(key="onnx.quant.pre_process", value="onnxruntime.quant")
    quantize_dynamic(
        graph,
        path,
        weight_type=QuantType.QInt8,
        per_channel=True,
        op_types_to_quantize=["MatMul"],
        extra_options={"DefaultTensorType": graph.graph.output[0].type.tensor_type.elem_type},
    )
