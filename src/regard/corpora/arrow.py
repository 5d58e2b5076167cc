"""Parquet and Arrow files, and the folders that Hugging Face `datasets` saves, through pyarrow."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from regard.base.budgets import STREAMED, Meter, parse_json
from regard.base.errors import DataError, SettingsError

ROWS = 4_096  # of an Arrow file at once
# Of a Parquet file at once: a dictionary of one long text may stand for every row.
PACKED_ROWS = 64


def dataset_splits(folder: Path) -> dict[str, list[Path]]:
    """Return the Arrow files of each split of a dataset that was saved with `save_to_disk`.

    A dataset without splits is one called train.
    """
    listing = folder / "dataset_dict.json"
    if not listing.is_file():
        return {"train": _arrow_files(folder)}
    splits = _description(listing).get("splits")
    if not isinstance(splits, list) or not all(_is_name(split) for split in splits):
        raise _damaged(listing)
    return {split: _arrow_files(folder / split) for split in splits}


def _arrow_files(folder: Path) -> list[Path]:
    """Return the files of one split, in their order; they never lie outside its folder."""
    state = _description(folder / "state.json")
    if state.get("_indices_data_files"):
        raise DataError(
            "the dataset is a selection by indices, which is not read",
            path=folder,
            remedy="Save it again after dataset.flatten_indices().",
        )
    files = state.get("_data_files")
    listed = files if isinstance(files, list) else []
    names: list[Any] = [f.get("filename") for f in listed if isinstance(f, dict)]
    if not names or not all(_is_name(name) for name in names):
        raise _damaged(folder / "state.json")
    return [folder / name for name in names]


def _is_name(value: Any) -> bool:
    """Return whether a value is the plain name of a file, which leads to no other folder."""
    return isinstance(value, str) and value not in ("", ".", "..") and Path(value).name == value


def _description(path: Path) -> dict[str, Any]:
    try:
        found = parse_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise _damaged(path) from None
    if not isinstance(found, dict):
        raise _damaged(path)
    return found


def _damaged(path: Path) -> DataError:
    return DataError(
        "this description of a dataset is missing or damaged",
        path=path,
        remedy="Save the dataset again with save_to_disk.",
    )


def read_records(
    path: Path, kind: str, *, wanted: Iterable[str] = ()
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the rows of a Parquet or Arrow file, numbered from 1.

    Of the columns only those that are wanted are read, or all of them if it has none of these.
    """
    number = 0
    with _reading(path, kind):
        meter = Meter(path, STREAMED, packed=path.stat().st_size)
        for batch in _batches(path, kind, frozenset(wanted)):
            meter.take(bytes=batch.nbytes)
            batch.validate(full=True)  # else a damaged file could read memory that is not its own
            for row in batch.to_pylist():
                number += 1
                yield number, row


def _batches(path: Path, kind: str, wanted: frozenset[str]) -> Iterator[Any]:
    import pyarrow
    from pyarrow import parquet

    if kind == "parquet":
        with parquet.ParquetFile(path) as file:
            _require_small(file.metadata, path)
            names = [name for name in file.schema_arrow.names if name in wanted]
            yield from file.iter_batches(PACKED_ROWS, columns=names or None, use_threads=False)
        return
    with pyarrow.memory_map(str(path)) as file:
        try:  # as `datasets` writes it
            stream = pyarrow.ipc.open_stream(file)
        except pyarrow.ArrowInvalid:
            reader = pyarrow.ipc.open_file(file)
            stream = (reader.get_batch(place) for place in range(reader.num_record_batches))
        for batch in stream:
            names = [name for name in batch.schema.names if name in wanted]
            yield from _sliced(batch.select(names) if names else batch)


def _require_small(metadata: Any, path: Path) -> None:
    """Refuse a Parquet file that says that it unpacks to far more than it has.

    The descriptions of single columns are not looked at: a damaged one ends the process.
    """
    meter = Meter(path, STREAMED, packed=path.stat().st_size)
    for group in range(metadata.num_row_groups):
        meter.take(items=1, bytes=max(0, metadata.row_group(group).total_byte_size))


def _sliced(batch: Any) -> Iterator[Any]:
    for first in range(0, batch.num_rows, ROWS):
        yield batch.slice(first, ROWS)


@contextmanager
def _reading(path: Path, kind: str) -> Iterator[None]:
    """Turn errors of reading into a DataError."""
    name = kind.capitalize()
    try:
        import pyarrow
    except ImportError:
        raise SettingsError(
            f"{path}: {name} files are read with pyarrow, which is not installed: "
            "pip install pyarrow"
        ) from None
    try:
        yield
    except FileNotFoundError:
        raise DataError("there is no such file", path=path, remedy="Check the path.") from None
    except DataError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError, OverflowError, LookupError) as error:
        raise DataError(
            f"this is not a file in the {name} format, or it is damaged",
            path=path,
            remedy="Copy or write it again.",
        ) from error
