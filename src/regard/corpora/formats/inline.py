"""Tags inside a text: found as pairs, and placed around the aligned words of a translation.

Every tag occurs exactly once and pairs stay nested, whatever the alignment. An element is placed
around the target words that are aligned with its source words or, if they are far apart, around the
stretch with most of them. A tag without words is placed next to the words around it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

# The largest number of foreign words between two words of an element in the translation.
WIDEST_GAP = 2


@dataclass(frozen=True)
class Tag:
    """Markup before the character at `position`; `partner` is the index of its other half."""

    position: int
    raw: str
    kind: Literal["open", "close", "alone"] = "alone"
    name: str = ""
    partner: int | None = None


class AlignedWord(NamedTuple):
    """The characters of a word in a translation, and the characters of its source word."""

    start: int
    end: int
    source: tuple[int, int] | None


@dataclass
class _Element:
    """A pair of tags or a single one, over the characters from start to end of the source."""

    opening: str
    closing: str
    start: int
    end: int
    children: list[_Element] = field(default_factory=list)


def paired(tags: Sequence[Tag]) -> tuple[Tag, ...]:
    """Return tags with their partners; a tag without a partner is kept as a single one."""
    found = [replace(tag, partner=None) for tag in tags]
    open_tags: list[int] = []
    places: dict[str, list[int]] = {}  # of the open tags of each name
    for index, tag in enumerate(found):
        if tag.kind == "open":
            places.setdefault(tag.name, []).append(len(open_tags))
            open_tags.append(index)
        elif tag.kind == "close" and places.get(tag.name):
            depth = places[tag.name][-1]
            partner = open_tags[depth]
            while len(open_tags) > depth:  # tags that were opened inside and not closed
                places[found[open_tags.pop()].name].pop()
            found[partner] = replace(found[partner], partner=index)
            found[index] = replace(tag, partner=partner)
    return tuple(found)


def nesting(tags: Sequence[Tag]) -> int:
    """Return how deep pairs of tags are nested."""
    depth = deepest = 0
    for index, tag in enumerate(tags):
        if tag.partner is not None:
            depth += 1 if tag.partner > index else -1
            deepest = max(deepest, depth)
    return deepest


def peeled(text: str, tags: Sequence[Tag]) -> tuple[int, int]:
    """Return the range of tags inside the text, without those before and after all text."""
    first, last = 0, len(tags)
    lead, end = len(text) - len(text.lstrip()), len(text.rstrip())
    while first < last and tags[first].position <= lead:
        partner = tags[first].partner
        if partner is None:
            first += 1
        elif partner == last - 1 and tags[last - 1].position >= end:
            first, last = first + 1, last - 1
        elif tags[last - 1].partner is None and tags[last - 1].position >= end:
            last -= 1
        else:
            break
    while first < last and tags[last - 1].partner is None and tags[last - 1].position >= end:
        last -= 1
    return first, last


def place_tags(
    source: str,
    tags: Sequence[Tag],
    *,
    target: str,
    words: Sequence[AlignedWord],
    write: Callable[[str], str] = str,
) -> str:
    """Return the target, escaped for the format, with all tags in it."""
    root = _Element("", "", 0, len(source), _tree(tags, 0, len(tags)))
    return _Placing(source, target, words, write).inside(root, 0, len(words), 0, len(target))


def _tree(tags: Sequence[Tag], first: int, last: int) -> list[_Element]:
    """Return the elements of these tags."""
    elements = []
    index = first
    while index < last:
        tag = tags[index]
        if tag.partner is not None and index < tag.partner < last:
            close = tags[tag.partner]
            children = _tree(tags, index + 1, tag.partner)
            elements.append(_Element(tag.raw, close.raw, tag.position, close.position, children))
            index = tag.partner
        else:
            elements.append(_Element(tag.raw, "", tag.position, tag.position))
        index += 1
    return elements


class _Placed(NamedTuple):
    """The place of an element: characters and words of the target."""

    start: int
    end: int
    first: int
    last: int
    order: int
    element: _Element


class _Placing:
    """The placement of tags, from the outermost elements inwards."""

    def __init__(
        self, source: str, target: str, words: Sequence[AlignedWord], write: Callable[[str], str]
    ):
        self._source = source
        self._target = target
        self._words = words
        self._write = write

    def inside(self, parent: _Element, first: int, last: int, start: int, end: int) -> str:
        """Return the target's characters from start to end with the parent's children in them."""
        written, cursor = [], start
        for placed in self._children(parent, first, last, start, end):
            written.append(self._write(self._target[cursor : placed.start]))
            inner = self.inside(placed.element, placed.first, placed.last, placed.start, placed.end)
            written.append(f"{placed.element.opening}{inner}{placed.element.closing}")
            cursor = placed.end
        written.append(self._write(self._target[cursor:end]))
        return "".join(written)

    def _children(
        self, parent: _Element, first: int, last: int, start: int, end: int
    ) -> list[_Placed]:
        """Return the children from left to right, without overlaps."""
        wide: list[_Placed] = []
        points: list[tuple[int, _Element]] = []
        labels = [self._label(word, parent.children) for word in self._words[first:last]]
        for order, element in enumerate(parent.children):
            run = _best_run(labels, order)
            if run is None:
                points.append((order, element))
                continue
            low, high = first + run[0], first + run[1]
            left, right = self._trimmed(element, self._words[low].start, self._words[high - 1].end)
            left, right = max(left, start), min(right, end)
            wide.append(_Placed(left, max(left, right), low, high, order, element))
        wide.sort(key=lambda placed: placed.start)
        for order, element in points:
            place = min(max(self._point(element, first, last, start, end), start), end)
            for other in wide:
                if other.start < place < other.end or (
                    place == other.start and order > other.order
                ):
                    place = other.start if order < other.order else other.end
            wide.append(_Placed(place, place, first, first, order, element))
        return sorted(wide, key=lambda placed: (placed.start, placed.end, placed.order))

    def _label(self, word: AlignedWord, children: Sequence[_Element]) -> int | None:
        """Return the child that a word belongs to, -1 for the text around them, None if unknown."""
        if word.source is None:
            return None
        shared = [
            min(word.source[1], child.end) - max(word.source[0], child.start) for child in children
        ]
        most = max(shared, default=0)
        return shared.index(most) if most > 0 else -1

    def _trimmed(self, element: _Element, start: int, end: int) -> tuple[int, int]:
        """Exclude punctuation that is outside in the source, such as a comma after a bold word."""
        text = self._source[element.start : element.end].strip()
        if text and text[-1].isalnum():
            while end - 1 > start and not self._target[end - 1].isalnum():
                end -= 1
        if text and text[0].isalnum():
            while start + 1 < end and not self._target[start].isalnum():
                start += 1
        return start, end

    def _point(self, element: _Element, first: int, last: int, start: int, end: int) -> int:
        """Return the place of an element without words: at the word it touches in the source."""
        place = element.start
        before, after = self._source[:place][-1:], self._source[place:][:1]
        known = [(w.source, w) for w in self._words[first:last] if w.source is not None]
        earlier = [(source[1], word) for source, word in known if source[1] <= place]
        later = [(source[0], word) for source, word in known if source[0] >= place]
        touches = before.strip() and not after.strip()
        if later and not (touches and earlier):
            return min(later, key=lambda pair: pair[0])[1].start
        if earlier:
            return max(earlier, key=lambda pair: pair[0])[1].end
        return start if place <= 0 else end


def _best_run(labels: Sequence[int | None], child: int) -> tuple[int, int] | None:
    """Return the stretch with most words of a child."""
    best: tuple[int, int, int] | None = None
    begin, count, latest, outside = 0, 0, 0, 0
    for index, label in enumerate(labels):
        if label == child:
            if count == 0 or outside > WIDEST_GAP:
                begin, count = index, 0
            count, latest, outside = count + 1, index + 1, 0
            if best is None or count > best[0]:
                best = (count, begin, latest)
        elif label is not None:
            outside += 1 if label == -1 else WIDEST_GAP + 1
    return best[1:] if best else None
