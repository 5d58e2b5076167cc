"""Lines of many scripts, with marks, digits, emoji and odd spaces, for tests of tokenizers."""

from __future__ import annotations

import random

TEXT = """
the cat sat on a mat and looked at the small dogs near our house yesterday evening
der Hund läuft schnell über die Straße größer Übermut l'été français garçon naïve coração
кошка сидит на окне и смотрит вниз собаки бегут γάτα κοιμάται στο σπίτι σκύλος
猫は 魚が 好きです 私 昨日 公園 天气 很好 我们 去 学校 고양이가 잔다 학교
القطة تنام في البيت חתול ישן בבית बिल्ली सो रही है ไทย แมว ߡߎߛߊ߫ ߘߎ߲ߓߎߦߊ
3.14 1,000 ½ ① ﬁne Å Å e\u0301 🙂 👩‍👩‍👧 … « guillemets » “quotes” — http://a.b/c?d=1
@user #tag a_b x=y <b> & %s {name} ▁ ⁇ don't it's O'Neil co-op U.S.A.
"""
WORDS = TEXT.split()


def mixed_lines(count: int, *, seed: int = 1) -> list[str]:
    """Return lines of one to twelve words; some with double, leading or trailing spaces."""
    draw = random.Random(seed)
    lines = []
    for number in range(count):
        words = draw.choices(WORDS, k=draw.randint(1, 12))
        line = (" " if number % 7 else "  ").join(words)
        lines.append({3: f" {line}", 5: f"{line} ", 8: f"{line}\u00a0x"}.get(number % 11, line))
    return lines
