"""Tables with a record a row: TSV, CSV, JSON lines, Parquet and Arrow, and the columns of them."""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from regard.base.errors import DataError
from regard.corpora.arrow import read_records
from regard.corpora.formats.json_lines import read_object
from regard.corpora.lines import empty_file, stream_lines
from regard.corpora.sources import KNOWN, LeftOut, kind_of, languages_of
from regard.settings.recipe import suggestion
from regard.text.languages import NAMES, language_code

SEPARATORS = ",;\t"
RECORDS = ("jsonl", "parquet", "arrow")
SKIP = "or leave such lines out with --set data.skip_bad=true"


class Row(NamedTuple):
    """The wanted cells of a record, and its line or number, counted from 1."""

    line: int
    cells: tuple[Any, ...]


@dataclass(frozen=True)
class Columns:
    """Which columns are wanted: those that a user chose, or the first known names."""

    what: str
    """What a row should hold, for messages."""
    names: tuple[tuple[str, ...], ...]
    """For each cell, the names that its column usually has."""
    chosen: tuple[str, ...] = ()
    """For each cell, the name or number (from 1) that a user gave."""
    nested: str = ""
    """The name of a column that holds an object with all cells, as `translation`."""

    @property
    def count(self) -> int:
        """The number of cells."""
        return len(self.names)

    def named(self, *, columns: Sequence[str], path: Path | str) -> "Columns":
        """Return them with the choice of a user."""
        if columns and len(columns) != self.count:
            raise DataError(
                f"{len(columns)} column{'s' * (len(columns) != 1)} chosen "
                f"({', '.join(columns)}) where {self.count} are wanted",
                path=path,
                remedy=f"Choose {self.what}, as --columns {self.example}.",
            )
        return Columns(self.what, self.names, tuple(columns), self.nested)

    def label(self, place: int, kind: str) -> str:
        """Return what a message calls one of the cells."""
        if self.chosen:
            return f"column {self.chosen[place]}"
        return f"the {self.names[place][0]}" if kind in RECORDS else f"column {place + 1}"

    @property
    def example(self) -> str:
        """Columns as they could be chosen."""
        return ",".join(names[0] for names in self.names)


PAIR = Columns(
    "source and target", (("source", "src"), ("target", "tgt", "trg")), nested="translation"
)
LABELLED = Columns(
    "text and label",
    (("text", "sentence", "review", "question"), ("label", "class", "category")),
)
TEXT = Columns("text", (("text", "content", "sentence"),))


def pair_columns(pair: str | None) -> Columns:
    """Return the columns of sentence pairs; languages are names of columns too."""
    if pair is None:
        return PAIR
    names = tuple(
        (language, NAMES.get(language, language).lower(), *usual)
        for language, usual in zip(languages_of(pair), PAIR.names, strict=True)
    )
    return Columns(PAIR.what, names, nested=PAIR.nested)


def read_rows(path: Path, columns: Columns, left_out: LeftOut | None = None) -> Iterator[Row]:
    """Yield the wanted cells of each record of a table of any kind and size.

    Without a header line the first columns are taken. A file of unknown ending is read as TSV.
    """
    kind = kind_of(path)
    if kind in RECORDS:
        return _from_records(path, kind, columns, LeftOut() if left_out is None else left_out)
    return _from_cells(path, kind, columns, LeftOut() if left_out is None else left_out)


def rows_of(path: Path, kind: str) -> Iterator[tuple[int, list[str]]]:
    """Yield all cells of each line of a TSV or CSV file; empty lines at the end are left out."""
    lines = stream_lines(path, expected="a record a line")
    if kind != "csv":
        empty: list[int] = []
        for number, line in enumerate(lines, 1):
            if not line.strip("\r\n "):
                empty.append(number)
                continue
            yield from ((before, [""]) for before in empty)
            empty = []
            yield number, line.split("\t")
        return
    first = next(lines, "")
    reader = csv.reader(_followed(first, lines), delimiter=max(SEPARATORS, key=first.count))
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                yield reader.line_num, row
    except csv.Error as error:
        raise DataError(
            f"this is not CSV ({error})",
            path=path,
            line=reader.line_num,
            remedy="Is a quotation mark missing?",
        ) from None


def _followed(first: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield lines with their ends, which belong to quoted cells of several lines."""
    yield first + "\n"
    for line in lines:
        yield line + "\n"


def _from_cells(path: Path, kind: str, columns: Columns, left_out: LeftOut) -> Iterator[Row]:
    rows = rows_of(path, kind)
    first = next(rows, None)
    if first is None:
        raise empty_file(path, expected=f"{columns.what} in each line")
    places, headed = _places(first[1], columns, path=path)
    needed = max(places) + 1
    if not kind and len(first[1]) == 1 < columns.count:
        raise unknown_kind(path)
    for line, cells in rows if headed else _with(first, rows):
        if len(cells) >= needed:
            yield Row(line, tuple(cells[place] for place in places))
            continue
        problem = f"{len(cells)} column{'s' * (len(cells) != 1)} where {needed} are needed"
        error = DataError(problem, path=path, line=line, remedy=_remedy(kind, columns))
        left_out.add("too few columns", error)


def unknown_kind(path: Path) -> DataError:
    """Return the error for a file that should hold a table, and does not look like one."""
    ending = f"its ending is {path.suffix!r}" if path.suffix else "its name has no ending"
    return DataError(
        f"the kind of file is not clear: {ending}, and no tab is in its first line",
        path=path,
        remedy=f"Known kinds are {KNOWN}, plain, .gz or .zst. For two files with one sentence per "
        "line, name both.",
    )


def _with(
    first: tuple[int, list[str]], rows: Iterator[tuple[int, list[str]]]
) -> Iterator[tuple[int, list[str]]]:
    yield first
    yield from rows


def _remedy(kind: str, columns: Columns) -> str:
    if columns.chosen:
        return "Choose other columns with --columns, counted from 1."
    if kind != "csv" and columns.nested:
        return (
            "Source and target are separated by a tab. For two files with one sentence per line, "
            f"name both; {SKIP}."
        )
    return f"Each line should hold {columns.what}. Choose columns with --columns, {SKIP}."


def _places(first: Sequence[str], columns: Columns, *, path: Path) -> tuple[list[int], bool]:
    """Return the places of the columns, and whether the first line is a header."""
    header = [cell.strip().lower() for cell in first]
    if columns.chosen and not all(name.isdecimal() for name in columns.chosen):
        return [_place(name, first, path) for name in columns.chosen], True
    if columns.chosen:
        places = [int(name) - 1 for name in columns.chosen]
        if min(places) < 0:
            raise DataError("there is no column 0", path=path, remedy="Columns are counted from 1.")
        known = [
            place < len(header) and header[place] in names
            for place, names in zip(places, columns.names, strict=True)
        ]
        headings = [header[place] for place in places if place < len(header)]
        return places, all(known) or bool(_languages(headings, columns))
    found = [
        next((header.index(name) for name in names if name in header), None)
        for names in columns.names
    ]
    if None not in found:
        return [place for place in found if place is not None], True
    named = _languages(header, columns)
    return (named, True) if named else (list(range(columns.count)), False)


def _languages(names: Sequence[str], columns: Columns) -> list[int]:
    """Return the places of the only two columns of pairs that are called by languages, or none."""
    if not columns.nested:
        return []
    codes = {place: code for place, name in enumerate(names) if (code := language_code(name))}
    codes = {place: code for place, code in codes.items() if names[place] != "id"}
    return list(codes) if len(codes) == len({*codes.values()}) == columns.count else []


def _place(name: str, first: Sequence[str], path: Path) -> int:
    names = [cell.strip() for cell in first]
    if name in names:
        return names.index(name)
    if name.isdecimal() and 0 < int(name) <= len(names):
        return int(name) - 1
    raise DataError(
        f"there is no column {name!r}", path=path, line=1, remedy=suggestion(name, names)
    )


def _from_records(path: Path, kind: str, columns: Columns, left_out: LeftOut) -> Iterator[Row]:
    tops = [name.partition(".")[0] for name in columns.chosen]
    usual = [*(name for names in columns.names for name in names), columns.nested]
    numbers = any(name.isdecimal() for name in columns.chosen)
    wanted = [] if numbers else [*columns.chosen, *tops] or usual
    records = _json_records(path) if kind == "jsonl" else read_records(path, kind, wanted=wanted)
    empty = True
    for line, record in records:
        empty = False
        try:
            cells = _cells(record, columns, path=path, line=line)
        except DataError as error:
            left_out.add(f"no {columns.what}", error)
        else:
            yield Row(line, cells)
    if empty:
        raise empty_file(path, expected=f"records with {columns.what}")


def _json_records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(stream_lines(path, expected="a JSON object a line"), 1):
        if line.strip():
            yield number, read_object(line, path=path, line=number)


def _cells(
    record: Mapping[str, Any], columns: Columns, *, path: Path, line: int
) -> tuple[Any, ...]:
    """Return the wanted values of a record."""
    if columns.chosen:
        return tuple(_inner(record, name, path=path, line=line) for name in columns.chosen)
    inside = record.get(columns.nested) if columns.nested else None
    if isinstance(inside, Mapping):
        record = inside
    found = [next((name for name in names if name in record), None) for names in columns.names]
    if None not in found:
        return tuple(record[name] for name in found if name is not None)
    values = list(record.values())
    if named := _languages([str(name).lower() for name in record], columns):
        values = [values[place] for place in named]
    texts = all(isinstance(value, str) for value in values)
    if columns.nested and texts and len(values) == columns.count:
        return tuple(values)
    raise DataError(
        f"the line has no {columns.what} (but {', '.join(map(str, record)) or 'nothing'})",
        path=path,
        line=line,
        remedy=f"Choose columns, as --columns {columns.example}, {SKIP}.",
    )


def _inner(record: Mapping[str, Any], name: str, *, path: Path, line: int) -> Any:
    """Return the value of a name, which may lead into objects, as "translation.en"."""
    if name.isdecimal() and name not in record and 0 < int(name) <= len(record):
        return list(record.values())[int(name) - 1]
    value: Any = record
    for key in [name] if name in record else name.split("."):
        if not isinstance(value, Mapping) or key not in value:
            known = value if isinstance(value, Mapping) else record
            raise DataError(
                f"there is no column {name!r}",
                path=path,
                line=line,
                remedy=suggestion(key, map(str, known)),
            )
        value = value[key]
    return value
