"""Abbreviations that a sentence hardly ever ends with, by language; written without the last dot.

Only those that something must follow, as a name follows "Dr."; what may well end a sentence, as
"etc.", is left out, since a capital letter after it then begins the next one.
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ABBREVIATIONS: dict[str, frozenset[str]] = {
    "en": _words(
        "mr mrs ms dr prof st rev hon gen col capt lt sgt gov sen rep pres messrs "
        "vol fig figs eq eqs sec ch pp ed eds cf vs viz approx "
        "e.g i.e mt ft al jan feb apr aug sept oct nov dec"
    ),
    "de": _words(
        "hr fr dr prof st nr bd abb abs art aufl bsp bzw ca d.h evtl ggf geb gest hrsg inkl "
        "kap max min mind mio mrd o.ä sog str tel u.a u.ä usf v.a vgl z.b z.t zzgl "
        "jan feb apr aug sept okt nov dez ing dipl"
    ),
    "fr": _words(
        "m mm mme mmes mlle mlles dr pr st ste av bd p pp fig cf ex env éd vol chap art n° "
        "janv févr avr juil sept oct nov déc c.-à-d p.ex"
    ),
    "es": _words(
        "sr sra sres sras srta dr dra prof ud uds d dña st sta av avda pág págs fig núm cf p.ej "
        "vol cap art aprox ene feb abr ago sept oct nov dic"
    ),
    "it": _words(
        "sig sig.ra sigg dott dott.ssa prof prof.ssa ing avv on st p pp pag fig cfr vol cap art "
        "es ca gen febb apr ago sett ott nov dic"
    ),
    "nl": _words(
        "dhr mevr mw dr prof ir ing st nr blz bijv bv ca d.w.z fig jl m.b.t o.a t.a.v vgl "
        "jan feb apr aug sept okt nov dec"
    ),
    "pt": _words(
        "sr sra srs sras dr dra prof profa av pág págs fig núm nº cf p.ex vol cap art aprox "
        "jan fev abr ago set out nov dez"
    ),
    "cs": _words("p pí sl dr ing mgr prof doc č čl odst str tzv např tj resp cca"),
    "pl": _words("p dr prof inż mgr ul al nr str np tzw tj ok wg red św"),
    "ru": _words("г гг им ул д кв стр рис т.е т.н см ср напр проф акад"),
}

# Languages that write ordinal numbers with a dot: the 3rd of May is "3. Mai".
ORDINAL_DOT = _words("bs cs da de et fi fo hr hu is lb lt lv nb nn no pl sk sl sr sv tr")

# Only before a number: "no." and "p." are words, or the ends of words, as well.
BEFORE_NUMBERS = _words("no nos p s art")

EVERY_LANGUAGE: frozenset[str] = frozenset().union(*ABBREVIATIONS.values())
