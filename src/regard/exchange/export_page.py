"""The page that stands beside an export and says how to use it without Regard."""

from __future__ import annotations

from regard.base.protocols import Tokenizer
from regard.text.character import CharacterTokenizer
from regard.text.sentencepiece import SentencePieceTokenizer

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

SYMBOLS = """\
import ctranslate2

translator = ctranslate2.Translator("{folder}", inter_threads=2, intra_threads=1)
symbols = {symbols}
found = translator.translate_batch([symbols], beam_size=5, max_input_length=0{more})
print("".join(found[0].hypotheses[0]).removeprefix(" "))
"""

CHARACTERS = """
The tokens are single characters, those of `*_vocabulary.json`.
"""
WORDS = """
The tokens are those of `*_vocabulary.json`, and you have to split the text yourself: a word with
the space before it (" cat"; the first word of a text has one too), a punctuation mark glued to the
word before it (","), a further space (" "), or "", which takes away the space of the next token.
A word that is not in the list is "<unk>".
"""
SHORTLIST = """
`vmap.txt` lists the likely target tokens of each source token. With `use_vmap=True` only they are
looked at, which is faster and changes a translation now and then.
"""
FOLDER = "path/to/this/folder"


def export_page(source: Tokenizer, target: Tokenizer, *, shortlist: bool) -> str:
    """Return the page for these tokenizers."""
    more = ", use_vmap=True" if shortlist else ""
    notes = SHORTLIST if shortlist else ""
    if isinstance(source, SentencePieceTokenizer) and isinstance(target, SentencePieceTokenizer):
        one = source.model == target.model
        code = SUBWORDS.format(
            folder=FOLDER,
            source="sentencepiece.model" if one else "source.model",
            target="sentencepiece.model" if one else "target.model",
            more=more,
        )
        return PAGE.format(packages="ctranslate2 sentencepiece", code=code, notes=notes)
    letters = isinstance(source, CharacterTokenizer)
    symbols = 'list("...")' if letters else '[" a", " small", " example", "."]'
    return PAGE.format(
        packages="ctranslate2",
        code=SYMBOLS.format(folder=FOLDER, symbols=symbols, more=more),
        notes=(CHARACTERS if letters else WORDS) + notes,
    )
