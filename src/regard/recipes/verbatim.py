"""Which words of a source must stand in its translation as they are."""

from __future__ import annotations

import re

# In this order: a URL may hold numbers, and a placeholder letters that look like a word.
VERBATIM = re.compile(
    r"""
      (?:https?|ftp)://[^\s<>"]*[^\s<>".,;:!?)\]}']      # URLs, without the full stop behind them
    | www\.[^\s<>"]*[^\s<>".,;:!?)\]}']
    | [\w.+-]+@[\w-]+(?:\.[\w-]+)+                       # addresses
    | \{\{?[\w.:-]*\}?\}                                 # {name}, {0}, {{name}}
    | %(?:\([\w.]+\))?(?:\d+\$)?[sdif]\b                 # %s, %(name)s, %1$s
    | \$\{?\w+\}?                                        # $name, ${name}, $5
    | </?\w+/?>                                          # <b>, </b>, <br/>
    | __\w+__
    | (?<!\w)\d+(?:[.,:/-]\d+)*(?!\w)                    # numbers, dates and times
    """,
    re.VERBOSE,
)


def verbatim_words(text: str) -> list[str]:
    """Return placeholders, URLs, addresses and numbers, each once, in order."""
    return list(dict.fromkeys(VERBATIM.findall(text)))
