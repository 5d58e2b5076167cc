r"""Equations as MathML, which browsers typeset themselves, from the part of TeX that lectures need.

Letters, numbers and operators; `_` and `^`; groups in braces; `\frac`, `\sqrt`, `\text`, `\vec`;
Greek letters, sums and products, named functions. A line break `\\` begins a new line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

from regard.base.errors import RegardError

TOKEN = re.compile(r"\\\\|\\[A-Za-z]+|\\[,;{}|]|\d+(?:[.,]\d+)*|[^\s]")

GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "eta": "η",
    "theta": "θ", "lambda": "λ", "mu": "μ", "sigma": "σ", "tau": "τ", "phi": "φ", "pi": "π",
    "omega": "ω", "Sigma": "Σ", "Omega": "Ω", "ell": "ℓ",
}  # fmt: skip
OPERATORS = {
    "cdot": "·", "times": "×", "odot": "⊙", "le": "≤", "ge": "≥", "ne": "≠", "approx": "≈",
    "in": "∈", "to": "→", "Rightarrow": "⇒", "dots": "…", "partial": "∂", "infty": "∞",
    "Vert": "‖", "|": "‖", "sim": "∼", "propto": "∝", "lfloor": "⌊", "rfloor": "⌋", "{": "{",
    "}": "}", "ll": "≪", "gg": "≫",
}  # fmt: skip
LARGE = {"sum": "∑", "prod": "∏"}
FUNCTIONS = frozenset(
    {"tanh", "exp", "softmax", "log", "sin", "cos", "max", "diag", "sigmoid", "LeakyReLU", "ATT",
     "concat", "ReLU", "LayerNorm", "conv", "shift", "FFN"}
)  # fmt: skip
SPACES = {",": "0.17em", ";": "0.28em", "quad": "1em", "qquad": "2em"}
SIGNS = {"-": "−", "*": "∗", "'": "′"}


def mathml(tex: str, *, block: bool = True, attributes: str = "") -> str:
    """Return an equation as a `<math>` element; `attributes` are written into its tag."""
    parser = _Parser(tex)
    lines = parser.lines()
    if len(lines) == 1:
        body = f"<mrow>{lines[0]}</mrow>"
    else:
        rows = "".join(
            f'<mtr><mtd style="text-align:left;padding:.25em 0">{line}</mtd></mtr>'
            for line in lines
        )
        body = f"<mtable>{rows}</mtable>"
    display = ' display="block"' if block else ""
    label = escape(" ".join(tex.split()), quote=True)
    more = f" {attributes}" if attributes else ""
    return f'<math{display} alttext="{label}"{more}>{body}</math>'


class _Parser:
    """Reads TeX from left to right; every method returns MathML of what it has read."""

    def __init__(self, tex: str):
        self.tex = tex.strip()
        self.tokens = TOKEN.findall(self.tex)
        self.place = 0

    def lines(self) -> list[str]:
        """Return the lines of the whole equation."""
        found = [""]
        while self.place < len(self.tokens):
            if self._peek() == "\\\\":
                self.place += 1
                found.append("")
            else:
                found[-1] += self._scripted()
        return found

    def _peek(self) -> str:
        return self.tokens[self.place] if self.place < len(self.tokens) else ""

    def _take(self) -> str:
        if self.place == len(self.tokens):
            raise RegardError(f"The equation {self.tex!r} ends too early.")
        self.place += 1
        return str(self.tokens[self.place - 1])

    def _scripted(self) -> str:
        """Return an atom with what stands below and above it."""
        token = self._peek()
        base = self._atom()
        scripts: dict[str, str] = {}
        while self._peek() in ("_", "^", "'"):
            mark = self._take()
            if mark == "'":
                scripts["^"] = scripts.get("^", "") + "<mo>′</mo>"
            else:
                scripts[mark] = scripts.get(mark, "") + self._atom()
        if not scripts:
            return base
        large = token.removeprefix("\\") in LARGE
        below = f"<mrow>{scripts['_']}</mrow>" if "_" in scripts else ""
        above = f"<mrow>{scripts['^']}</mrow>" if "^" in scripts else ""
        names = ("munder", "mover", "munderover") if large else ("msub", "msup", "msubsup")
        kind = names[2] if below and above else names[0] if below else names[1]
        return f"<{kind}>{base}{below}{above}</{kind}>"

    def _atom(self) -> str:
        token = self._take()
        if token == "{":
            return f"<mrow>{''.join(self._until('}'))}</mrow>"
        if token in ("}", "_", "^"):
            raise RegardError(f"The equation {self.tex!r} has a {token!r} out of place.")
        if token.startswith("\\"):
            return self._command(token[1:])
        if token[0].isdigit():
            return f"<mn>{token}</mn>"
        if token.isalpha():
            return f"<mi>{token}</mi>"
        if token in "()[]|":
            return f'<mo stretchy="false">{token}</mo>'
        return f"<mo>{escape(SIGNS.get(token, token))}</mo>"

    def _until(self, end: str) -> Iterator[str]:
        while self._peek() != end:
            yield self._scripted()
        self._take()

    def _command(self, name: str) -> str:
        if name in GREEK:
            return f"<mi>{GREEK[name]}</mi>"
        if name in OPERATORS:
            return f"<mo>{OPERATORS[name]}</mo>"
        if name in LARGE:
            return f'<mo largeop="true" movablelimits="false">{LARGE[name]}</mo>'
        if name in FUNCTIONS:
            return f'<mi mathvariant="normal">{name}</mi><mo>&#8289;</mo>'
        if name in SPACES:
            return f'<mspace width="{SPACES[name]}"/>'
        if name == "frac":
            return f"<mfrac>{self._atom()}{self._atom()}</mfrac>"
        if name == "sqrt":
            return f"<msqrt>{self._atom()}</msqrt>"
        if name in ("tilde", "hat", "bar"):
            mark = {"tilde": "~", "hat": "^", "bar": "¯"}[name]
            return f'<mover accent="true">{self._atom()}<mo>{mark}</mo></mover>'
        if name == "text":
            return f"<mtext>{escape(self._text()).replace(' ', '&#160;')}</mtext>"
        raise RegardError(f"The equation {self.tex!r} uses \\{name}, which is not known here.")

    def _text(self) -> str:
        """Return the words of a \\text{...} as they are written, spaces included."""
        before = sum(token == "\\text" for token in self.tokens[: self.place])
        found = re.findall(r"\\text\{([^}]*)\}", self.tex)
        if len(found) < before:
            raise RegardError(f"The equation {self.tex!r} has a \\text without its braces.")
        while self._take() != "}":
            pass
        return str(found[before - 1])
