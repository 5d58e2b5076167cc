from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.text.sentences import SplitSentence, join_sentences, split_sentences

# Name of the case: language, text with | where a sentence ends.
CASES = {
    "two": ("", "Hello there.| How are you?| Fine!"),
    "small letters go on": ("", "He said yes. or no.| Then left."),
    "abbreviations": ("en", "Dr. Smith met Mrs. Jones, e.g. Mary.| They spoke."),
    "in all languages": ("", "Vgl. Kap. Drei.| Voir M. Dupont."),
    "numbered": ("en", "See no. 5 and p. 7 there.| I said no.| Then left."),
    "initials": ("", "J. R. R. Tolkien wrote.| He taught."),
    "decimal numbers": ("", "It costs 3.50 in all.| Cheap."),
    "a number at the end": ("en", "It was 1990.| The year began."),
    "German ordinals": ("de", "Am 3. Mai kam er.| Im Jahr 1990.| Da war Ruhe."),
    "number of an item": ("", "1. Introduction to it.| 2. The rest."),
    "quotes": ("", "“Go away!”| “Why?” she asked.| 'No.'| (Yes.)| End."),
    "French quotes": ("fr", "« Oui. »| « Non. »"),
    "ellipsis": ("", "Well... maybe… not.| Or so..."),
    "many marks": ("", "What?!| No way!!!| Ok."),
    "a site": ("", "See www.example.com for it.| Bye."),
    "Chinese": ("", "你好。|再见！|“好吗？”|好。"),
    "Japanese": ("", "「行こう。」|彼は言った。|はい。"),
    "Hindi": ("", "नमस्ते।| आप कैसे हैं?"),
    "Arabic": ("", "كيف حالك؟| بخير."),
    "Spanish": ("es", "¡Hola!| ¿Qué tal, Sr. Pérez?| Bien."),
    "blank lines": ("", "A title|\n\nThe text.|\r\n \r\nMore of\nit."),
    "one": ("", "just words"),
    "none": ("", ""),
}


@pytest.mark.parametrize("case", CASES)
def test_sentences(case: str) -> None:
    language, marked = CASES[case]
    found = split_sentences(marked.replace("|", ""), language=language)
    assert [s.text + s.gap for s in found] == [
        part for part in _with_gaps(marked.split("|")) if part or len(found) == 1
    ]


def _with_gaps(parts: list[str]) -> list[str]:
    """Move white space at the start of a sentence behind the one before it."""
    moved = [parts[0]]
    for part in parts[1:]:
        moved[-1] += part[: len(part) - len(part.lstrip())]
        moved.append(part.lstrip())
    return moved


def test_gaps() -> None:
    found = split_sentences("  One.  Two.\nThree. ")
    assert found == [("", "  "), ("One.", "  "), ("Two.", "\n"), ("Three.", " ")]


def test_hard_breaks() -> None:
    found = split_sentences("one\n  two. Three\n", hard_breaks=True)
    assert found == [("one", "\n  "), ("two.", " "), ("Three", "\n")]


@pytest.mark.parametrize(
    ("text", "translations", "joined"),
    [
        pytest.param("One.  Two.\n", ["Eins.", "Zwei."], "Eins.  Zwei.\n", id="spaces kept"),
        pytest.param("你好。再见。", ["Hello.", "Bye."], "Hello. Bye.", id="a space is needed"),
        pytest.param("你好。再见。", ["今日は。", "では。"], "今日は。では。", id="none is needed"),
        pytest.param("你好。再见。", ["", "Bye."], "Bye.", id="an empty translation"),
    ],
)
def test_join(text: str, translations: list[str], joined: str) -> None:
    assert join_sentences(split_sentences(text), translations) == joined


ANY = st.text(alphabet=st.sampled_from("aB1.!?…。」\"' \n\r\t\u3000"), max_size=60) | st.text()


@settings(deadline=None, max_examples=200)
@given(ANY, st.booleans(), st.sampled_from(["", "de", "en", "xx"]))
def test_nothing_is_lost(text: str, hard_breaks: bool, language: str) -> None:
    found = split_sentences(text, language=language, hard_breaks=hard_breaks)
    assert "".join(s.text + s.gap for s in found) == text
    assert all(s.text == s.text.strip() and not s.gap.strip() for s in found)
    assert all(s.text for s in found[1:])
    assert all(isinstance(s, SplitSentence) for s in found)
    if hard_breaks:
        assert not any("\n" in s.text for s in found)


def test_a_megabyte() -> None:
    assert len(split_sentences("Some words here. " * 60_000)) == 60_000
    assert len(split_sentences("." * 1_000_000)) == 1
    assert len(split_sentences(" " * 1_000_000)) == 1


LONG = {
    "words": "word " * 100_000,
    "pauses": "we went on, and on; " * 2_000,
    "no spaces": "字" * 3_000 + "，" + "字" * 900,
    "an endless word": "x" * 700 + " y" * 900 + " " + "z" * 501,
    "wide gaps": "  two words  \t" * 900,
}


@pytest.mark.parametrize("case", LONG)
def test_a_sentence_that_no_model_could_read_is_cut(case: str) -> None:
    text = LONG[case]
    found = split_sentences(text, longest=2_000)
    assert "".join(part + gap for part, gap in found) == text
    assert all(len(part) <= 500 for part, _ in found if " " in part or case == "no spaces")
    assert sum(not part for part, _ in found) <= 1  # white space before the first
    assert not any(part[:1].isspace() or part[-1:].isspace() for part, _ in found)
    if case == "pauses":
        assert all(part[-1] in ",;" for part, _ in found)
    if case == "an endless word":
        assert (found[0].text, found[-1].text) == ("x" * 700, "z" * 501)


def test_a_sentence_of_usual_length_is_whole() -> None:
    assert len(split_sentences("word, " * 330, longest=2_000)) == 1
    assert len(split_sentences("word, " * 999)) == 1
