"""Documents that are zip archives (DOCX, ODT, EPUB): some entries hold texts, the others are kept.

Entries keep their order, names and dates. Those without translated text keep their content byte for
byte, and where no text changes, the whole file stays as it is.
"""

import io
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.base.budgets import require_small_archive
from regard.base.errors import DataError
from regard.corpora.formats.document import Document, Segment

# Returns the texts of an entry with this name, or None if it has none.
EntryReader = Callable[[str, bytes], Document | None]


@dataclass(frozen=True)
class PackageEntry:
    """An entry of an archive, and its texts if it has any."""

    info: zipfile.ZipInfo
    content: bytes
    document: Document | None


@dataclass(frozen=True)
class PackageDocument:
    """An archive with texts in some of its entries."""

    content: bytes
    entries: tuple[PackageEntry, ...]

    @property
    def segments(self) -> list[Segment]:
        """The texts to translate, in the order of the entries."""
        return [s for entry in self.entries if entry.document for s in entry.document.segments]

    def filled(self, translations: Sequence[str]) -> bytes:
        """Return the archive with these translations, already escaped for the format."""
        place, written = 0, []
        for entry in self.entries:
            content = entry.content
            if entry.document is not None:
                count = len(entry.document.segments)
                content = entry.document.filled(translations[place : place + count]).encode()
                place += count
            written.append(content)
        if all(new == entry.content for new, entry in zip(written, self.entries, strict=True)):
            return self.content
        target = io.BytesIO()
        with zipfile.ZipFile(target, "w") as archive:
            for new, entry in zip(written, self.entries, strict=True):
                archive.writestr(_kept_facts(entry.info), new)
        return target.getvalue()


def _kept_facts(info: zipfile.ZipInfo) -> zipfile.ZipInfo:
    """Return the name, date and kind of an entry, without what depends on its content."""
    kept = zipfile.ZipInfo(info.filename, info.date_time)
    kept.compress_type = info.compress_type
    kept.external_attr = info.external_attr
    kept.create_system = info.create_system
    kept.comment = info.comment
    return kept


def read_package(content: bytes, path: Path, read: EntryReader, *, needed: str) -> PackageDocument:
    """Return the entries of an archive, which must have one whose name ends as `needed`."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            require_small_archive(archive, path=path)
            entries = []
            for info in archive.infolist():
                if info.flag_bits & 1:
                    raise _damaged(f"its entry {info.filename!r} is encrypted", path)
                inside = archive.read(info)
                entries.append(PackageEntry(info, inside, read(info.filename, inside)))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError) as error:
        raise _damaged(f"it is no whole zip archive ({error})", path) from error
    if not any(entry.info.filename.endswith(needed) for entry in entries):
        raise _damaged(f"it holds no {needed}", path)
    return PackageDocument(content, tuple(entries))


def entry_text(content: bytes, name: str, path: Path) -> str:
    """Return the text of an entry, which must be UTF-8."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise _damaged(f"its entry {name!r} is not UTF-8", path) from None


def _damaged(problem: str, path: Path) -> DataError:
    return DataError(
        f"{path.suffix.removeprefix('.').upper() or 'the file'} cannot be read: {problem}",
        path=path,
        remedy="Open it in the program that made it and save it again.",
    )
