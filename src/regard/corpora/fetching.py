"""Corpora by name: those that are pinned here, and those of OPUS (Tiedemann 2012)."""

from __future__ import annotations

import os
import shutil
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from regard.base.budgets import STREAMED, require_small_archive
from regard.base.errors import DataError, RunError, SettingsError
from regard.base.files import locked, read_json, write_json
from regard.corpora.download import Checksum, DownloadError, DownloadProgress, download, fetch_json
from regard.corpora.sources import languages_of
from regard.settings.recipe import require_known

OPUS_API = "https://opus.nlpl.eu/opusapi/"
OPUS = "opus/"
RECORD = "corpus.json"  # in the folder of a corpus: what it is and the checksums of its files
KNOWN_CHECKSUMS = "checksums.json"  # of all that was ever downloaded, by address
LICENCE_CHARACTERS = 100_000
UNKNOWN_LICENCE = "not stated in the archive; see https://opus.nlpl.eu"


@dataclass(frozen=True)
class PinnedFile:
    """A file of the web that never changes."""

    url: str
    name: str
    checksum: Checksum
    language: str = ""


@dataclass(frozen=True)
class PinnedCorpus:
    """A corpus whose files are known by their checksums."""

    about: str
    licence: str
    files: Sequence[PinnedFile]

    @property
    def languages(self) -> list[str]:
        """The languages to choose a pair from; none if it is not parallel."""
        return sorted({file.language for file in self.files if file.language})


@dataclass(frozen=True)
class FetchedCorpus:
    """A corpus in a folder, with what is known of it."""

    name: str
    folder: Path
    licence: str
    files: Mapping[str, Checksum]
    pair: str | None = None
    version: str = ""
    downloaded: Mapping[str, Checksum] = field(default_factory=dict)
    """The checksums of what was downloaded, by address."""
    was_there: bool = False
    """Whether nothing had to be downloaded."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values; in the folder they are its record."""
        return {
            "name": self.name,
            "pair": self.pair,
            "version": self.version,
            "licence": self.licence,
            "files": {name: vars(found) for name, found in self.files.items()},
            "downloaded": {url: vars(found) for url, found in self.downloaded.items()},
        }

    def __str__(self) -> str:
        size = sum(found.bytes for found in self.files.values())
        state = "is there already, with the right checksums" if self.was_there else "is there"
        lines = [f"{self.name} {state}: {self.folder} ({size:,} bytes)"]
        lines += [f"  {name}" for name in self.files]
        first, *more = self.licence.strip().splitlines() or [UNKNOWN_LICENCE]
        lines.append(f"Licence: {first}{' ...' if more else ''}")
        if more:
            lines.append(f"The whole licence is in {self.folder / 'LICENSE'}.")
        return "\n".join(lines)


def _multi30k() -> PinnedCorpus:
    folder = (
        "https://raw.githubusercontent.com/multi30k/dataset/"
        "a3d2e0d26b56f3846f66a952536ffed4e401d05a/data/task1/raw/"
    )
    files = {
        "train.de": (637044, "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6"),
        "train.en": (568929, "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f"),
        "train.fr": (604242, "622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c"),
        "val.de": (24681, "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a"),
        "val.en": (21650, "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28"),
        "val.fr": (23001, "ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9"),
        "test_2016_flickr.de": (
            22890,
            "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
        ),
        "test_2016_flickr.en": (
            21077,
            "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
        ),
        "test_2016_flickr.fr": (
            22310,
            "6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90",
        ),
    }
    return PinnedCorpus(
        about="29,000 image captions in English, German and French (Elliott et al. 2016)",
        licence="none is stated; the captions are given for research (Elliott et al. 2016)",
        files=[
            PinnedFile(f"{folder}{name}.gz", f"{name}.gz", Checksum(*found), name[-2:])
            for name, found in files.items()
        ],
    )


def _tinyshakespeare() -> PinnedCorpus:
    url = (
        "https://raw.githubusercontent.com/karpathy/char-rnn/"
        "6f9487a6fe5b420b7ca9afb0d7c078e37c1d1b4e/data/tinyshakespeare/input.txt"
    )
    digest = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"
    return PinnedCorpus(
        about="1.1 MB of Shakespeare's plays (Karpathy 2015), for language models",
        licence="public domain",
        files=[PinnedFile(url, "tinyshakespeare.txt", Checksum(1115394, digest))],
    )


@cache
def pinned_corpora() -> dict[str, PinnedCorpus]:
    """Return the corpora that are known by their checksums."""
    return {"multi30k": _multi30k(), "tinyshakespeare": _tinyshakespeare()}


def fetch_corpus(
    name: str,
    *,
    out: str | Path,
    pair: str | None = None,
    version: str = "latest",
    progress: DownloadProgress = lambda done, total: None,
) -> FetchedCorpus:
    """Download a corpus into a folder, or check that it is there already.

    `name` is that of a pinned corpus, or "opus/NAME" with the languages as `pair`. What was fetched
    once must have the same checksums ever after; the user's folder of data remembers them.
    """
    folder = Path(out)
    if not name.startswith(OPUS):
        require_known(name, [*pinned_corpora(), f"{OPUS}NAME"], what="corpus")
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        if (folder / RECORD).is_file():
            return _checked(folder, name, pair, version)
        if name.startswith(OPUS):
            found = _from_opus(name, folder, pair, version, progress)
        else:
            found = _pinned(name, folder, pair, progress)
        write_json(folder / RECORD, found.to_dict())
    return found


def _checked(folder: Path, name: str, pair: str | None, version: str) -> FetchedCorpus:
    """Return the corpus that a folder holds; refuse another one, and files that were changed."""
    record = read_json(folder / RECORD, owner="corpus")
    try:
        files = {one: Checksum(**found) for one, found in record["files"].items()}
        found = FetchedCorpus(
            name=record["name"],
            folder=folder,
            licence=record["licence"],
            files=files,
            pair=record["pair"],
            version=record["version"],
            downloaded={u: Checksum(**one) for u, one in record["downloaded"].items()},
            was_there=True,
        )
    except (TypeError, KeyError, AttributeError):
        raise RunError(f"{folder / RECORD} is no record of a corpus: choose another folder.") from (
            None
        )
    wanted = [name, pair or found.pair, found.version if version == "latest" else version]
    if wanted != [found.name, found.pair, found.version]:
        raise RunError(
            f"{folder} holds {found.name} {found.pair or ''} {found.version}".rstrip()
            + ": choose another folder."
        )
    for one, checksum in files.items():
        if not (folder / one).is_file():
            raise DataError(
                "the file is missing, although it was fetched",
                path=folder / one,
                remedy=f"Remove the folder {folder} and fetch the corpus again.",
            )
        checksum.require(folder / one, origin=name)
    return found


def _pinned(name: str, folder: Path, pair: str | None, progress: DownloadProgress) -> FetchedCorpus:
    corpus = pinned_corpora()[name]
    wanted = corpus.languages
    if pair is not None:
        for code in (wanted := list(languages_of(pair))):
            require_known(code, corpus.languages, what=f"language of {name}")
    files = [file for file in corpus.files if not file.language or file.language in wanted]
    for file in files:
        path = folder / file.name
        if not path.is_file() or Checksum.of(path) != file.checksum:
            download(file.url, path, wanted=file.checksum, progress=progress)
    return FetchedCorpus(
        name=name,
        folder=folder,
        licence=corpus.licence,
        files={file.name: file.checksum for file in files},
        pair=pair,
        downloaded={file.url: file.checksum for file in files},
    )


def _from_opus(
    name: str, folder: Path, pair: str | None, version: str, progress: DownloadProgress
) -> FetchedCorpus:
    """Fetch a corpus of OPUS: an archive with two line files and its licence."""
    if pair is None:
        raise SettingsError(f"{name} is there in many languages: name two with --pair, as en-de.")
    release = _release(name.removeprefix(OPUS), languages_of(pair), version)
    url = str(release["url"])
    archive = folder / f"{_plain(str(release['corpus']))}.zip"
    found = known_checksum(url)
    if found is None or not archive.is_file() or Checksum.of(archive) != found:
        found = download(url, archive, wanted=found, progress=progress)
    files, licence = _unpacked(archive, folder, languages_of(pair))
    remember_checksum(url, found)  # of an archive that can be used
    checksums = {file: Checksum.of(folder / file) for file in files}
    archive.unlink()
    return FetchedCorpus(
        name=name,
        folder=folder,
        licence=licence,
        files=checksums,
        pair=pair,
        version=str(release.get("version", "")),
        downloaded={url: found},
    )


def _release(corpus: str, languages: tuple[str, str], version: str) -> Mapping[str, Any]:
    """Return the entry of the catalogue of OPUS for the line files of a corpus."""
    first, second = sorted(languages)  # the catalogue names the languages in this order
    query = {"source": first, "target": second, "preprocessing": "moses", "version": version}
    answer = fetch_json(f"{OPUS_API}?{urlencode({'corpus': corpus, **query})}")
    found = answer.get("corpora") if isinstance(answer, dict) else None
    if not isinstance(found, list) or any(not isinstance(one, dict) for one in found):
        raise DownloadError(f"{OPUS_API} answered with something else than a list of corpora.")
    entries: list[dict[str, Any]] = [
        one for one in found if isinstance(one.get("url"), str) and one.get("corpus")
    ]
    if entries:
        return entries[0]
    listed = fetch_json(f"{OPUS_API}?{urlencode({'corpora': 'True', **query})}")
    names = listed.get("corpora") if isinstance(listed, dict) else None
    known = [str(one) for one in names] if isinstance(names, list) else []
    if known:
        require_known(corpus, known, what=f"corpus of OPUS for {first} and {second}")
    of_version = "" if version == "latest" else f" in version {version}"
    raise SettingsError(
        f"OPUS has no corpus {corpus!r} for {first} and {second}{of_version}: look at "
        "https://opus.nlpl.eu for what there is."
    )


def _plain(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in name)


def _unpacked(path: Path, folder: Path, languages: tuple[str, str]) -> tuple[list[str], str]:
    """Unpack the two line files of an archive as train.CODE, and return them and the licence."""
    try:
        with zipfile.ZipFile(path) as archive:
            require_small_archive(archive, path=path, budget=STREAMED)
            members = archive.namelist()
            files, licence = [], ""
            for code in languages:
                inside = [one for one in members if one.endswith(f".{code}")]
                if len(inside) != 1:
                    raise DataError(
                        f"the archive has {len(inside)} files that end in .{code}, not one",
                        path=path,
                        remedy="Unpack it by hand and name its files with --data.",
                    )
                files.append(f"train.{code}")
                with archive.open(inside[0]) as packed, (folder / files[-1]).open("wb") as file:
                    shutil.copyfileobj(packed, file)
            for member in (one for one in members if Path(one).name in ("LICENSE", "LICENCE")):
                with archive.open(member) as packed:
                    licence = packed.read(LICENCE_CHARACTERS).decode("utf-8", "replace").strip()
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError):
        raise DataError(  # the last two: an unknown compression, a password
            "this is no zip archive, or it is damaged",
            path=path,
            remedy="Remove it and fetch the corpus again.",
        ) from None
    if licence:
        (folder / "LICENSE").write_text(f"{licence}\n", encoding="utf-8")
    return files, licence or UNKNOWN_LICENCE


def user_folder() -> Path:
    """Return the folder of what Regard remembers for this user; `REGARD_HOME` names another."""
    if named := os.environ.get("REGARD_HOME"):
        return Path(named)
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "regard"


def known_checksum(url: str) -> Checksum | None:
    """Return the checksum that the first download from an address had."""
    path = user_folder() / KNOWN_CHECKSUMS
    found = _remembered(path).get(url)
    return None if found is None else Checksum(**found)


def remember_checksum(url: str, checksum: Checksum) -> None:
    """Remember the checksum of a first download."""
    path = user_folder() / KNOWN_CHECKSUMS
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path.parent, wait=True):
        write_json(path, {**_remembered(path), url: vars(checksum)})


def _remembered(path: Path) -> dict[str, dict[str, Any]]:
    """Return the checksums in a file, by address."""
    if not path.is_file():
        return {}
    known: Any = read_json(path, owner="list of checksums")
    try:
        for found in known.values():
            Checksum(**found)
    except (AttributeError, TypeError):
        raise RunError(
            f"{path} is damaged: it does not list checksums by address. Delete it; the checksums "
            "are remembered again at the next download."
        ) from None
    remembered: dict[str, dict[str, Any]] = known
    return remembered
