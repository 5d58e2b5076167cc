"""Documents through a model: read, translated segment by segment, and written as they were."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from regard.corpora.formats.document import Document
from regard.recipes.loaded import LoadedTranslator
from regard.recipes.run import RECIPE, Run
from regard.recipes.segments import Splitting, linked, translate_segments
from regard.recipes.sentence_cache import SENTENCE_ERRORS, SentenceCache, Translate, located

BLOCK = 2**20


def translate_document(
    document: Document,
    translate: Translate,
    *,
    path: Path,
    splitting: Splitting,
    done: Callable[[float], None] = lambda share: None,
) -> str:
    """Return a document with all its segments translated; everything else stays as it is."""
    segments = document.segments
    try:
        written = translate_segments(
            segments, SentenceCache(translate, linked), splitting, done=done
        )
    except SENTENCE_ERRORS as error:
        line = segments[error.index].line
        raise located(error, path=path, line=line, what="a sentence") from error
    return document.filled(written)


def needs_alignment(document: Document, model: LoadedTranslator) -> bool:
    """Return whether tags have to be put around words, by a model that can tell which."""
    return model.attends and any(segment.tags for segment in document.segments)


def run_fingerprint(folder: Path) -> str:
    """Return a digest of all that makes a run translate as it does: recipe, words and weights."""
    digest = hashlib.blake2b(digest_size=16)
    weights = Run.open(folder).weights()
    files = [folder / RECIPE, *sorted(folder.glob("source.*")), *sorted(folder.glob("target.*"))]
    for file in (*files, *sorted(weights.glob("model*"))):
        with file.open("rb") as content:
            while block := content.read(BLOCK):
                digest.update(block)
    return digest.hexdigest()
