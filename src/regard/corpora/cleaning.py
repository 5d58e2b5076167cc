"""A corpus through filters: files in, files out, in the memory of its digests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from regard.base.errors import RunError, SettingsError
from regard.base.files import whole_file
from regard.corpora.filters import Account, FilterSettings, TextPair, choose_filters, filter_pairs
from regard.corpora.parallel import iterate_pairs
from regard.corpora.sources import LeftOut, languages_of
from regard.settings.recipe import parse_table, validate


def filter_corpus(
    data: str | Path | Sequence[str | Path],
    *,
    out: str | Path,
    pair: str | None = None,
    columns: Sequence[str] = (),
    set: Mapping[str, Any] | Sequence[str] = (),
) -> Account:
    """Write the pairs that all filters keep, and return the account of what was dropped.

    `data` is a file of pairs or two line files. `out` names a TSV file, or without that ending two
    line files: with `pair` "en-de", `clean` becomes `clean.en` and `clean.de`. `set` changes
    settings of the filters, as `{"max_words": 80}`.
    """
    given = [data] if isinstance(data, str | Path) else data
    paths = [Path(one) for one in given]
    settings = _settings(set)
    outputs = _outputs(Path(out), pair)
    for path in outputs:
        if path.exists():
            raise RunError(f"{path} exists already: choose another name with --out.")
        if not path.parent.is_dir():
            raise RunError(f"Cannot write {path}: there is no folder {path.parent}.")

    def pairs() -> Iterator[TextPair]:
        found = iterate_pairs(paths, columns=columns, pair=pair, left_out=LeftOut())
        return (TextPair(one.source, one.target) for one in found)

    filters = choose_filters(settings, pairs(), pair=pair)
    account = Account()
    with ExitStack() as stack:
        files = [stack.enter_context(whole_file(path)) for path in outputs]
        for kept in filter_pairs(pairs(), filters, account):
            if len(files) == 1:
                row = "\t".join(side.replace("\t", " ") for side in kept)
                files[0].write(f"{row}\n".encode())
            else:
                for file, side in zip(files, kept, strict=True):
                    file.write(f"{side}\n".encode())
    return account


def _settings(changes: Mapping[str, Any] | Sequence[str]) -> FilterSettings:
    """Return the settings of the filters with these changes."""
    if isinstance(changes, Mapping):
        return validate(dict(changes), FilterSettings, origin="filter")
    table = parse_table("", overrides=list(changes), origin="filter")
    return validate(table, FilterSettings, origin="filter")


def _outputs(out: Path, pair: str | None) -> list[Path]:
    if out.suffix == ".tsv":
        return [out]
    if pair is None:
        raise SettingsError(
            f"--out {out}: name a .tsv file, or give the languages with --pair en-de for two files."
        )
    return [out.with_name(f"{out.name}.{code}") for code in languages_of(pair)]
