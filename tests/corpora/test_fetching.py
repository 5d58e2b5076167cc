"""Downloads from a server on this machine: cut, resumed, changed, and without a network."""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from regard.base import budgets
from regard.base.errors import DataError, RunError, SettingsError
from regard.corpora import download as downloads
from regard.corpora import fetching
from regard.corpora.download import Checksum, DownloadError, download, fetch_json
from regard.corpora.fetching import PinnedCorpus, PinnedFile, fetch_corpus


@dataclass
class Web:
    """What the server has, and what it was asked for."""

    files: dict[str, bytes] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)
    """By query parameter `corpus` or `corpora`, JSON of the catalogue."""
    cuts: list[int] = field(default_factory=list)
    """After how many bytes the next answers are cut."""
    marks: bool = True
    asked: list[tuple[str, str]] = field(default_factory=list)
    """Path and range of each request."""
    address: str = ""


class Handler(BaseHTTPRequestHandler):
    def __init__(self, web: Web, *arguments: Any):
        self.web = web
        super().__init__(*arguments)

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        self.web.asked.append((url.path, self.headers.get("Range", "")))
        if url.path == "/api":
            query = parse_qs(url.query)
            name = query.get("corpus", ["all"])[0]
            body = json.dumps(self.web.answers.get(name, {"corpora": []})).encode()
            return self.reply(200, body, {})
        if url.path not in self.web.files:
            return self.reply(404, b"", {})
        body = self.web.files[url.path]
        mark = f'"{hashlib.sha256(body).hexdigest()[:8]}"'
        headers = {"ETag": mark} if self.web.marks else {}
        span = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if span and self.headers.get("If-Range") == mark:
            first = int(span[1])
            headers["Content-Range"] = f"bytes {first}-{len(body) - 1}/{len(body)}"
            return self.reply(206, body[first:], headers)
        return self.reply(200, body, headers)

    def reply(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        cut = self.web.cuts.pop(0) if self.web.cuts and body else len(body)
        self.wfile.write(body[:cut])

    def log_message(self, *arguments: Any) -> None:
        """Say nothing."""


@pytest.fixture
def web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    monkeypatch.setattr(downloads, "PAUSE", 0.0)
    monkeypatch.setenv("REGARD_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("no_proxy", "*")
    web = Web()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, web)) as server:
        web.address = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setattr(fetching, "OPUS_API", f"{web.address}/api")
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield web
        server.shutdown()
        thread.join()


CONTENT = bytes(range(256)) * 40


def checksum(content: bytes) -> Checksum:
    return Checksum(len(content), hashlib.sha256(content).hexdigest())


def test_a_file_is_downloaded_and_checked(web: Web, tmp_path: Path) -> None:
    web.files["/a"] = CONTENT
    seen: list[tuple[int, int | None]] = []
    found = download(
        f"{web.address}/a",
        tmp_path / "a",
        wanted=checksum(CONTENT),
        progress=lambda done, total: seen.append((done, total)),
    )
    assert found == checksum(CONTENT) == Checksum.of(tmp_path / "a")
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert not list(tmp_path.glob("*.part*"))


def test_a_download_that_is_cut_goes_on_by_itself(web: Web, tmp_path: Path) -> None:
    web.files["/a"] = CONTENT
    web.cuts = [4_000, 1_000]
    download(f"{web.address}/a", tmp_path / "a", wanted=checksum(CONTENT))
    assert [span for _, span in web.asked] == ["", "bytes=4000-", "bytes=5000-"]


def test_a_download_goes_on_in_another_process(web: Web, tmp_path: Path) -> None:
    web.files["/a"] = CONTENT
    web.cuts = [1_000, 1_000, 1_000, 1_000]
    with pytest.raises(DownloadError, match=r"was cut after 4,000 bytes\. Run the same command"):
        download(f"{web.address}/a", tmp_path / "a")
    assert not (tmp_path / "a").exists()
    download(f"{web.address}/a", tmp_path / "a", wanted=checksum(CONTENT))
    assert web.asked[-1] == ("/a", "bytes=4000-")


@pytest.mark.parametrize("marks", [True, False])
def test_a_file_that_changed_meanwhile_is_downloaded_anew(
    web: Web, tmp_path: Path, marks: bool
) -> None:
    web.files["/a"] = CONTENT
    web.cuts, web.marks = [1_000] * 4, marks
    with pytest.raises(DownloadError):
        download(f"{web.address}/a", tmp_path / "a")
    web.files["/a"] = other = CONTENT[::-1]
    assert download(f"{web.address}/a", tmp_path / "a") == checksum(other)


def test_a_wrong_checksum(web: Web, tmp_path: Path) -> None:
    web.files["/a"] = CONTENT
    with pytest.raises(DataError, match=r"10,240 bytes with SHA-256 .* should not be trusted"):
        download(f"{web.address}/a", tmp_path / "a", wanted=checksum(b"other"))
    assert not list(tmp_path.iterdir())


def test_without_a_network_and_without_the_file(web: Web, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"/no answered with status 404\. It may have moved"):
        download(f"{web.address}/no", tmp_path / "a")
    closed = "http://127.0.0.1:9/a"
    with pytest.raises(DownloadError, match=r"127\.0\.0\.1:9 cannot be reached .*network"):
        download(closed, tmp_path / "a")
    with pytest.raises(DownloadError, match="cannot be reached"):
        fetch_json(closed)
    with pytest.raises(DownloadError, match="not an address of the web"):
        download("file:///etc/hostname", tmp_path / "a")
    web.files["/text"] = b"<html>"
    with pytest.raises(DownloadError, match="did not answer with JSON"):
        fetch_json(f"{web.address}/text")


@pytest.fixture
def pinned(web: Web, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    files = {f"train.{code}": f"{code}\n".encode() for code in ("en", "de", "fr")}
    web.files |= {f"/{name}": content for name, content in files.items()}
    corpus = PinnedCorpus(
        about="toy",
        licence="public domain",
        files=[
            PinnedFile(f"{web.address}/{name}", name, checksum(content), name[-2:])
            for name, content in files.items()
        ],
    )
    monkeypatch.setitem(fetching.pinned_corpora(), "toy", corpus)
    return files


def test_a_pinned_corpus(web: Web, pinned: dict[str, bytes], tmp_path: Path) -> None:
    out = tmp_path / "toy"
    found = fetch_corpus("toy", out=out, pair="en-de")
    assert sorted(found.files) == ["train.de", "train.en"]
    assert (out / "train.en").read_bytes() == pinned["train.en"]
    assert "Licence: public domain" in str(found)
    before = len(web.asked)
    again = fetch_corpus("toy", out=out)
    assert again.was_there
    assert again.to_dict() == found.to_dict()
    assert len(web.asked) == before
    with pytest.raises(RunError, match="holds toy en-de: choose another folder"):
        fetch_corpus("toy", out=out, pair="en-fr")
    (out / "train.en").write_text("changed\n")
    with pytest.raises(DataError, match=r"train\.en: the checksum is wrong"):
        fetch_corpus("toy", out=out)
    (out / "train.en").unlink()
    with pytest.raises(DataError, match="is missing, although it was fetched"):
        fetch_corpus("toy", out=out)
    (out / "corpus.json").write_text("[]")
    with pytest.raises(RunError, match="no record of a corpus"):
        fetch_corpus("toy", out=out)


def test_a_pinned_file_that_has_changed_is_refused(
    web: Web, pinned: dict[str, bytes], tmp_path: Path
) -> None:
    web.files["/train.de"] = b"other\n"
    with pytest.raises(DataError, match="were expected"):
        fetch_corpus("toy", out=tmp_path / "toy", pair="en-de")
    assert not (tmp_path / "toy" / "corpus.json").exists()


def test_names_that_are_not_known(web: Web, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="multi30k"):
        fetch_corpus("multi30", out=tmp_path / "a")
    with pytest.raises(SettingsError, match="language of multi30k"):
        fetch_corpus("multi30k", out=tmp_path / "a", pair="en-xx")
    with pytest.raises(SettingsError, match="name two with --pair"):
        fetch_corpus("opus/Books", out=tmp_path / "a")
    web.answers["all"] = {"corpora": ["Books", "Europarl"]}
    with pytest.raises(SettingsError, match="Books"):
        fetch_corpus("opus/Boks", out=tmp_path / "a", pair="en-de")
    web.answers["all"] = {"corpora": []}
    with pytest.raises(SettingsError, match=r"no corpus 'Books' for de and en in version v9"):
        fetch_corpus("opus/Books", out=tmp_path / "a", pair="en-de", version="v9")
    web.answers["Books"] = ["?"]
    with pytest.raises(DownloadError, match="something else than a list of corpora"):
        fetch_corpus("opus/Books", out=tmp_path / "a", pair="en-de")


def test_the_catalogue_without_a_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "OPUS_API", "http://127.0.0.1:9/api")
    with pytest.raises(DownloadError, match=r"127\.0\.0\.1:9 cannot be reached .*--data"):
        fetch_corpus("opus/Books", out=tmp_path / "a", pair="en-de")


def archive(**members: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name.replace("__", ".").replace("_dash_", "-"), content)
    return packed.getvalue()


@pytest.fixture
def books(web: Web) -> Web:
    web.files["/books.zip"] = archive(
        Books__de_dash_en__en="a dog\na cat\n",
        Books__de_dash_en__de="ein Hund\neine Katze\n",
        LICENSE="Free for all\nas it is\n",
        README="read",
    )
    entry = {"corpus": "Books", "url": f"{web.address}/books.zip", "version": "v1", "size": 1}
    web.answers["Books"] = {"corpora": [entry]}
    return web


def test_a_corpus_of_opus(books: Web, tmp_path: Path) -> None:
    found = fetch_corpus("opus/Books", out=tmp_path / "books", pair="en-de")
    assert (tmp_path / "books" / "train.en").read_text() == "a dog\na cat\n"
    assert (tmp_path / "books" / "train.de").read_text() == "ein Hund\neine Katze\n"
    assert found.version == "v1"
    assert "Licence: Free for all ..." in str(found)
    assert (tmp_path / "books" / "LICENSE").read_text() == "Free for all\nas it is\n"
    assert not list((tmp_path / "books").glob("*.zip*"))
    assert fetch_corpus("opus/Books", out=tmp_path / "books", pair="en-de").was_there
    fetch_corpus("opus/Books", out=tmp_path / "again", pair="en-de")
    books.files["/books.zip"] = archive(Books__en="other\n", Books__de="andere\n")
    with pytest.raises(DataError, match="were expected"):  # in any folder, ever after
        fetch_corpus("opus/Books", out=tmp_path / "third", pair="en-de")


def test_an_archive_that_cannot_be_used(
    books: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    books.files["/books.zip"] = archive(Books__en="a\n")
    with pytest.raises(DataError, match=r"has 0 files that end in \.de, not one"):
        fetch_corpus("opus/Books", out=tmp_path / "a", pair="en-de")
    books.files["/books.zip"] = b"no archive"
    with pytest.raises(DataError, match="no zip archive, or it is damaged"):
        fetch_corpus("opus/Books", out=tmp_path / "b", pair="en-de")
    locked_archive = bytearray(archive(Books__en="a\n", Books__de="b\n"))
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):  # flags: encrypted
        at = -1
        while (at := locked_archive.find(mark, at + 1)) >= 0:
            locked_archive[at + place] |= 1
    books.files["/books.zip"] = bytes(locked_archive)
    with pytest.raises(DataError, match="no zip archive, or it is damaged"):
        fetch_corpus("opus/Books", out=tmp_path / "e", pair="en-de")
    monkeypatch.setattr(budgets, "FREE_BYTES", 0)
    books.files["/books.zip"] = archive(Books__en="a\n", Books__de="b\n", more__fr="x" * (1 << 20))
    with pytest.raises(DataError, match="the file is refused"):
        fetch_corpus("opus/Books", out=tmp_path / "c", pair="en-de")
    assert not (tmp_path / "home").exists()  # nothing of these is remembered


@pytest.mark.parametrize("known", [[], {"u": 1}, {"u": {"bytes": 1}}])
def test_damaged_checksums_of_earlier_downloads(books: Web, tmp_path: Path, known: object) -> None:
    path = fetching.user_folder() / fetching.KNOWN_CHECKSUMS
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(known), encoding="utf-8")
    with pytest.raises(RunError, match=r"checksums\.json is damaged: .* Delete it"):
        fetch_corpus("opus/Books", out=tmp_path / "a", pair="en-de")


@pytest.mark.parametrize("notes", [[], {"url": 3}, {"mark": {}}])
def test_damaged_notes_of_a_download_begin_it_anew(web: Web, tmp_path: Path, notes: object) -> None:
    web.files["/a"] = b"whole"
    (tmp_path / "a.part").write_bytes(b"half")
    (tmp_path / "a.part.json").write_text(json.dumps(notes), encoding="utf-8")
    download(f"{web.address}/a", tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == b"whole"


def test_an_archive_without_a_licence(books: Web, tmp_path: Path) -> None:
    books.files["/books.zip"] = archive(Books__en="a\n", Books__de="b\n")
    found = fetch_corpus("opus/Books", out=tmp_path / "a", pair="en-de")
    assert "Licence: not stated" in str(found)


@pytest.mark.realdata
def test_the_pinned_checksums_are_those_of_the_real_files(real_data: Path) -> None:
    for file in fetching.pinned_corpora()["multi30k"].files:
        assert Checksum.of(real_data / "multi30k" / "raw" / file.name) == file.checksum
