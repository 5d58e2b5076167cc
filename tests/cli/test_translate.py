from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import regard

TEXT, TRANSLATION = "badal kofen migon", "LADAB NEFOK NOGIM"


def test_text(run: Any, toy_run: Path) -> None:
    assert run("translate", toy_run, TEXT).out == TRANSLATION + "\n"


def test_text_of_several_lines(run: Any, toy_run: Path) -> None:
    assert run("translate", toy_run, "badal\n\nkofen").lines == ["LADAB", "", "NEFOK"]


def test_text_of_several_sentences(run: Any, toy_run: Path) -> None:
    sentences = ["badal kofen!", "Migon rulis"]
    each = [run("translate", toy_run, sentence).lines[0] for sentence in sentences]
    text = " ".join(sentences)
    assert run("translate", toy_run, text).lines == [" ".join(each)]
    (whole,) = run("translate", toy_run, text, "--json").json
    for options in (["--split", "never"], ["--must", "LADAB"]):
        assert run("translate", toy_run, text, *options).lines == [whole["text"]]


def test_standard_input(run: Any, toy_run: Path) -> None:
    answer = run("translate", toy_run, stdin=b"badal kofen\r\n\nmigon\n")
    assert answer.lines == ["LADAB NEFOK", "", "NOGIM"]


def test_files(run: Any, toy_run: Path, toy_corpus: Path, tmp_path: Path) -> None:
    out, links = tmp_path / "out.txt", tmp_path / "out.align"
    answer = run(
        "translate", toy_run, "--input", toy_corpus / "test.src", "--output", out, "--align", links
    )
    assert (answer.code, answer.out) == (0, "")
    sources = (toy_corpus / "test.src").read_text(encoding="utf-8").splitlines()
    translated = out.read_text(encoding="utf-8").splitlines()
    assert len(translated) == len(sources) == len(links.read_text().splitlines())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.align", "out.txt"]


def test_alignments(run: Any, toy_run: Path, tmp_path: Path) -> None:
    run("translate", toy_run, f"{TEXT}\n", "--align", tmp_path / "links")
    assert (tmp_path / "links").read_text() == "0-0 1-1 2-2\n"


def test_json(run: Any, toy_run: Path) -> None:
    (found,) = run("translate", toy_run, TEXT, "--json").json
    assert (found["source"], found["text"]) == (TEXT, TRANSLATION)
    assert found["score"] <= 0
    assert len(found["attention"]["weights"]) == len(found["attention"]["target"])


def test_json_goes_to_the_output_file_too(run: Any, toy_run: Path, tmp_path: Path) -> None:
    answer = run("translate", toy_run, TEXT, "--json", "--output", tmp_path / "out.json")
    assert answer.out == ""
    assert TRANSLATION in (tmp_path / "out.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("options", [[], ["--beam", "2"]])
def test_n_best(run: Any, toy_run: Path, options: list[str]) -> None:
    lines = run("translate", toy_run, TEXT, "--n-best", "3", *options).lines
    scores, texts = zip(*(line.split(" ||| ") for line in lines), strict=True)
    assert texts[0] == TRANSLATION
    assert len(set(texts)) == 3
    assert [float(s) for s in scores] == sorted((float(s) for s in scores), reverse=True)


def test_greedy(run: Any, toy_run: Path) -> None:
    assert run("translate", toy_run, TEXT, "--beam", "1").out == TRANSLATION + "\n"


# Name of the case: the bytes of the input, and the message, after the name of the file.
BAD_INPUTS = {
    "invalid UTF-8": (b"badal\nko\xfffen\n", ", line 2: invalid UTF-8"),
    "empty": (b"", ": the file is empty"),
}


@pytest.mark.parametrize("case", BAD_INPUTS)
def test_bad_input_is_named_with_file_and_line(
    refuse: Any, toy_run: Path, tmp_path: Path, case: str
) -> None:
    content, message = BAD_INPUTS[case]
    path = tmp_path / "in.txt"
    path.write_bytes(content)
    out = tmp_path / "out.txt"
    out.write_text("kept", encoding="utf-8")
    assert f"{path}{message}" in refuse("translate", toy_run, "--input", path, "--output", out)
    assert f"standard input{message}" in refuse("translate", toy_run, stdin=content)
    assert out.read_text(encoding="utf-8") == "kept"


def test_mistakes(refuse: Any, toy_run: Path, tmp_path: Path) -> None:
    cases: list[tuple[list[object], str]] = [
        ([toy_run, "--input", tmp_path / "no.txt"], "no.txt: there is no such file"),
        ([toy_run, "x", "--input", tmp_path / "no.txt"], "Give either TEXT or --input, not both."),
        ([toy_run, "x", "--output", tmp_path / "no/out"], "there is no folder"),
        ([toy_run, "x", "--output", tmp_path], "Cannot write"),
        ([tmp_path / "no", "x"], "There is no run at"),
        ([tmp_path, "x"], "it has no recipe.toml"),
    ]
    for arguments, message in cases:
        assert message in refuse("translate", *arguments)


def test_what_is_too_long_is_translated_in_pieces(run: Any, toy_run: Path, tmp_path: Path) -> None:
    lines, page = tmp_path / "in.txt", tmp_path / "in.html"
    lines.write_text("badal\n" + "badal " * 3_000 + "\n", encoding="utf-8")
    page.write_text("<p>" + "badal " * 3_000, encoding="utf-8")
    for arguments in (["--input", lines], ["--input", page], ["badal " * 3_000]):
        answer = run("translate", toy_run, *arguments, "--beam", "1")
        assert answer.code == 0, answer.err
        assert answer.out.count("LADAB") >= 100
    endless = run("translate", toy_run, "x" * 3_000)
    assert f"[1 unknown word: {'x' * 40}…]" in endless.err


def test_a_checkpoint_cut_short(refuse: Any, toy_run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(toy_run, copy)
    weights = copy / "best" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    assert f"{weights} is missing or damaged (" in refuse("translate", copy, "x")


def test_files_of_other_formats(run: Any, toy_run: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("<p>badal <b>kofen</b> migon</p><hr>\n", encoding="utf-8")
    assert run("translate", toy_run, "--input", page).out == (
        "<p>LADAB <b>NEFOK</b> NOGIM</p><hr>\n"
    )
    table = tmp_path / "table.tsv"
    table.write_bytes(b"1\tbadal\r\n2\tkofen\n")
    out = tmp_path / "out.tsv"
    run("translate", toy_run, "--input", table, "--column", "2", "--output", out)
    assert out.read_bytes() == b"1\tLADAB\r\n2\tNEFOK\n"
    answer = run("translate", toy_run, "--field", "a", stdin=b'{"a": "badal", "b": 1}\n')
    assert answer.out == '{"a": "LADAB", "b": 1}\n'
    answer = run("translate", toy_run, "--format", "po", stdin=b'msgid "badal"\nmsgstr ""\n')
    assert answer.out == '#, fuzzy\nmsgid "badal"\nmsgstr "LADAB"\n'
    options = ("--format", "po", "--no-fuzzy")
    answer = run("translate", toy_run, *options, stdin=b'msgid "badal"\nmsgstr ""\n')
    assert answer.out == 'msgid "badal"\nmsgstr "LADAB"\n'


def test_windows_and_alignments_of_standard_input(run: Any, toy_run: Path, tmp_path: Path) -> None:
    links = tmp_path / "links"
    answer = run(
        "translate", toy_run, "--window", "1", "--align", links, stdin=b"badal kofen\nmigon\n"
    )
    assert answer.lines == ["LADAB NEFOK", "NOGIM"]
    assert links.read_text() == "0-0 1-1\n0-0\n"


def test_an_interrupted_translation_goes_on(
    run: Any, toy_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from regard.tasks.translation.model import LoadedTranslator

    source, out = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("badal\nkofen\nmigon\n", encoding="utf-8")
    command = ["translate", toy_run, "--input", source, "--output", out, "--window", "2"]
    stream = LoadedTranslator.stream

    def interrupted(self: LoadedTranslator, texts: Any, **options: Any) -> Any:
        if "migon" in texts:
            raise KeyboardInterrupt
        return stream(self, texts, **options)

    with monkeypatch.context() as patch:
        patch.setattr(LoadedTranslator, "stream", interrupted)
        answer = run(*command)
    assert answer.code == 130
    assert "What is done is kept in" in answer.err
    assert not out.exists()
    answer = run(*command, "--beam", "1")
    assert "have changed: beginning anew" in answer.err
    assert out.read_text(encoding="utf-8") == "LADAB\nNEFOK\nNOGIM\n"


def test_search_options(run: Any, toy_run: Path) -> None:
    sampled = ["--sample", "--temperature", "0.1", "--top-k", "3", "--top-p", "0.9", "--seed", "2"]
    assert run("translate", toy_run, TEXT, *sampled).out == TRANSLATION + "\n"
    limited = run("translate", toy_run, TEXT, "--max-length", "2", "--length-penalty", "0.5")
    assert len(limited.out.split()) <= 2
    assert run("translate", toy_run, TEXT, "--set", "decoding.beam=2").out == TRANSLATION + "\n"
    answer = run("translate", toy_run, TEXT, "--engine", "torch", "--threads", "1", "--verbose")
    assert answer.out == TRANSLATION + "\n"
    answer = run("translate", toy_run, TEXT, "--verbose")
    assert answer.err.splitlines()[0].startswith("Engine: torch (a short text")


def test_mistakes_with_files(refuse: Any, toy_run: Path, tmp_path: Path) -> None:
    source = tmp_path / "in.txt"
    source.write_text("badal\n", encoding="utf-8")
    page = tmp_path / "in.html"
    page.write_text("<p>badal", encoding="utf-8")
    cases: list[tuple[list[object], str]] = [
        (["--input", source, "--output", source], "it is the input. Choose another name."),
        (["--input", source, "--format", "htlm"], "Did you mean 'html'?"),
        (["--input", source, "--format", "jsonl"], "name one with --field"),
        (["--input", page, "--json"], "not with html"),
        (["--input", tmp_path / "no.po"], "no.po: there is no such file"),
        (["x", "--set", "training.steps=3"], "only settings of the search can be changed here"),
        (["x", "--set", "decoding.baem=3"], "Did you mean 'beam'?"),
    ]
    for arguments, message in cases:
        assert message in refuse("translate", toy_run, *arguments), arguments


def test_progress_in_a_log_and_on_a_terminal() -> None:
    import io

    from rich.console import Console

    from regard.runs.display import BulkDisplay

    for terminal in (False, True):
        screen = io.StringIO()
        with BulkDisplay(Console(file=screen, force_terminal=terminal, width=120)) as display:
            display._start -= 20
            display._last_line -= 20
            display.moved(100, 0.25)
            display._last_line -= 20
            display.moved(200, 0.5)
        assert ("ETA 0:00:40" in screen.getvalue()) or terminal
        assert "200 lines" in screen.getvalue()
    with BulkDisplay(Console(file=io.StringIO())) as display:
        display.moved(3, None)


def test_words_that_are_asked_for(run: Any, refuse: Any, toy_run: Path, tmp_path: Path) -> None:
    terms = tmp_path / "terms.tsv"
    terms.write_text("badal\tRUPUR\n", encoding="utf-8")
    source = tmp_path / "in.txt"
    source.write_text("badal kofen\nkofen\n", encoding="utf-8")
    first, second = run("translate", toy_run, "--input", source, "--terminology", terms).lines
    assert ("RUPUR" in first.split(), second) == (True, "NEFOK")
    assert run("translate", toy_run, TEXT, "--prefix", "RUPUR ").out.startswith("RUPUR")
    assert "LADAB" not in run("translate", toy_run, TEXT, "--must-not", "LADAB").out
    assert "MATAB" in run("translate", toy_run, TEXT, "--must", "MATAB").out
    message = refuse("translate", toy_run, TEXT, "--must", "MATAB", "--engine", "ctranslate2")
    assert "ctranslate2 cannot be used: it lacks constraints. Use the engine torch." in message
    source.write_text("badal\nkofen\n", encoding="utf-8")
    message = refuse(
        "translate", toy_run, "--input", source, "--max-length", "1", "--must", "MATAB LADAB"
    )
    assert "in.txt, line " in message


def test_zero_is_a_value_and_not_left_out() -> None:
    from regard.cli.translate import search_changes

    given = {"length_penalty": 0.0, "temperature": 0.0, "seed": 0, "min_length": 0}
    assert search_changes([], sample=False, **given) == given
    assert search_changes([], sample=True, beam=None, replace_unknown=False) == {"method": "sample"}


def test_a_length_penalty_of_zero_reaches_the_search(run: Any, toy_run: Path) -> None:
    answer = run("translate", toy_run, "a b c", "--length-penalty", "0", "--json")
    (found,) = answer.json
    assert found["score"] == pytest.approx(found["log_probability"])
    (plain,) = run("translate", toy_run, "a b c", "--json").json
    assert plain["score"] != pytest.approx(plain["log_probability"])


def test_a_temperature_of_zero_is_greedy(run: Any, toy_run: Path) -> None:
    cold = run("translate", toy_run, "a b c", "--sample", "--temperature", "0").out
    assert cold == run("translate", toy_run, "a b c", "--beam", "1").out


def test_a_seed_of_zero_is_another_seed(run: Any, toy_run: Path) -> None:
    drawn = ["--sample", "--temperature", "5", "--n-best", "3"]
    by_seed = {
        seed: run("translate", toy_run, "a b c", *drawn, "--seed", seed).out for seed in "01"
    }
    assert by_seed["0"] != by_seed["1"]


@pytest.mark.parametrize(
    ("options", "missing"),
    [
        (["--sample"], 'method = "sample"'),
        (["--copy-verbatim"], "copy_verbatim"),
        (["--must-not", "LADAB"], "constraints"),
    ],
)
def test_a_file_is_left_to_torch_where_ctranslate2_lacks_something(
    run: Any, random_transformer_run: Path, tmp_path: Path, options: list[str], missing: str
) -> None:
    pytest.importorskip("ctranslate2")
    folder = shutil.copytree(random_transformer_run, tmp_path / "run")
    source = tmp_path / "in.txt"
    source.write_text("badal kofen\n" * 9, encoding="utf-8")
    answer = run("translate", folder, "--input", source, "--verbose", "--threads", "1", *options)
    assert len(answer.lines) == 9
    reason = f"Engine: torch (ctranslate2 cannot be used: it lacks {missing})."
    assert answer.err.splitlines()[0] == reason
    assert not (folder / "engines").exists()


def test_engines_are_not_measured_for_a_short_file(
    run: Any, random_transformer_run: Path, tmp_path: Path
) -> None:
    pytest.importorskip("ctranslate2")
    folder = shutil.copytree(random_transformer_run, tmp_path / "run")
    source = tmp_path / "in.txt"
    source.write_text("badal kofen\n" * 9, encoding="utf-8")
    answer = run("translate", folder, "--input", source, "--verbose")
    assert "Engine: torch (a short text is not worth a measurement)." in answer.err
    assert not (folder / "engines").exists()
    source.write_text("badal kofen\n" * 900, encoding="utf-8")
    assert "sentences per second" in run("translate", folder, "--input", source, "--verbose").err


def test_unknown_words_are_named(run: Any, toy_run: Path) -> None:
    answer = run("translate", toy_run, "Badal kofen migon.")
    assert answer.err == "[2 unknown words: Badal, migon.]\n"
    assert answer.code == 0
    assert run("translate", toy_run, TEXT).err == ""
    (found,) = run("translate", toy_run, "Badal kofen", "--json").json
    assert found["unknown"] == ["Badal"]


def test_unknown_words_of_a_file_are_counted(run: Any, toy_run: Path, tmp_path: Path) -> None:
    lines = ["Badal kofen", "Badal migon", "kofen migon", *(f"new{n}" for n in range(9))]
    (tmp_path / "in.txt").write_text("\n".join(lines), encoding="utf-8")
    answer = run("translate", toy_run, "--input", tmp_path / "in.txt", "--output", tmp_path / "out")
    assert "[10 unknown words in 11 of 12 sentences: Badal (2 times), new0, " in answer.err
    assert "and 2 more]" in answer.err


def test_text_in_another_spelling_of_unicode(run: Any, toy_run: Path, tmp_path: Path) -> None:
    given = {"tokenizer.kind": "word", "training.steps": 1, "training.validate_every": 1}
    pairs = [("die Bücher", "the books"), ("müde Äpfel", "tired apples")] * 8
    model = regard.train(
        "demo-attention", data=pairs, out=tmp_path / "run", set=given, progress=False
    ).model
    assert model.translate("Bu\u0308cher").unknown == ()
    assert model.translate("Bu\u0308cher").text == model.translate("Bücher").text
