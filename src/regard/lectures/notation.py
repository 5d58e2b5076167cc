"""The notations of different lectures for the same three steps: scores, weights, context.

Equations of the guide name what they speak of (`\\query`, `\\weight`, ...); a notation says how
that is written. What a notation does not have of its own is written as in the first one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from regard.lectures.mathml import mathml


@dataclass(frozen=True)
class Notation:
    """How one family of lectures writes attention, as TeX for every role."""

    name: str
    title: str
    roles: Mapping[str, str]


ROLES = {
    "query": "what asks",
    "key": "what it is compared with",
    "value": "what is read",
    "score": "score",
    "weight": "weight",
    "context": "context",
    "scoring": "how scores are computed",
    "weighing": "how weights follow",
    "reading": "how the context follows",
    "each": "the index that is summed over",
}

NOTATIONS = {
    notation.name: notation
    for notation in (
        Notation(
            "states",
            "h, s, e, α, c",
            {
                "query": "s_{i-1}",
                "key": "h_j",
                "value": "h_j",
                "score": "e_{ij}",
                "weight": "\\alpha_{ij}",
                "context": "c_i",
                "scoring": "e_{ij} = a(s_{i-1}, h_j)",
                "weighing": "\\alpha_{ij} = \\frac{\\exp(e_{ij})}{\\sum_k \\exp(e_{ik})}",
                "reading": "c_i = \\sum_j \\alpha_{ij} h_j",
                "each": "j",
            },
        ),
        Notation(
            "time",
            "α_{t,u}, h_u",
            {
                "query": "s_{t-1}",
                "key": "h_u",
                "value": "h_u",
                "score": "e_{t,u}",
                "weight": "\\alpha_{t,u}",
                "context": "c_t",
                "scoring": "e_{t,u} = f_e(h_u, s_{t-1})",
                "weighing": "\\alpha_{t,u} = f_{\\alpha}(h_u, s_{t-1}) "
                "= \\frac{\\exp(e_{t,u})}{\\sum_v \\exp(e_{t,v})}",
                "reading": "c_t = \\sum_u \\alpha_{t,u} h_u",
                "each": "u",
            },
        ),
        Notation(
            "steps",
            "g, e_i, w_i",
            {
                "query": "s_0",
                "key": "h_i",
                "value": "h_i",
                "score": "e_i(1)",
                "weight": "w_i(1)",
                "context": "c(1)",
                "scoring": "e_i(1) = g(h_i, s_0) = h_i^T W_g s_0",
                "weighing": "w_i(1) = \\frac{\\exp(e_i(1))}{\\sum_k \\exp(e_k(1))}",
                "reading": "c(1) = \\sum_i w_i(1) h_i",
                "each": "i",
            },
        ),
        Notation(
            "vectors",
            "y^e, y^d, a, a_1, y^a",
            {
                "query": "y^d(t)",
                "key": "y^e(i)",
                "value": "y^e(i)",
                "score": "a(t)_i",
                "weight": "a_1(t)_i",
                "context": "y^a(t)",
                "scoring": "a(t) = {Y^e}^T y^d(t)",
                "weighing": "a_1(t) = \\softmax(a(t))",
                "reading": "y^a(t) = Y^e a_1(t)",
                "each": "i",
            },
        ),
        Notation(
            "matrices",
            "Q, K, V",
            {
                "query": "q_i",
                "key": "k_j",
                "value": "v_j",
                "score": "s_{ij}",
                "weight": "\\alpha_{ij}",
                "context": "z_i",
                "scoring": "S = \\frac{Q K^T}{\\sqrt{d_k}}",
                "weighing": "A = \\softmax(S)",
                "reading": "Z = A V",
                "each": "j",
            },
        ),
    )
}
ROLE = re.compile(r"\\(" + "|".join(ROLES) + r")(?![A-Za-z])")


def written(tex: str, notation: str) -> str:
    """Return TeX with the roles written in a notation."""
    roles = NOTATIONS[notation].roles
    return ROLE.sub(lambda found: "{" + roles[found[1]] + "}", tex)


def equation_html(tex: str) -> str:
    """Return an equation as HTML; one that names roles, once for every notation.

    The first notation is shown; a switch on the page shows another one.
    """
    if not ROLE.search(tex):
        return f'<div class="equation">{mathml(tex)}</div>'
    shown = []
    for number, name in enumerate(NOTATIONS):
        hidden = ' hidden=""' if number else ""
        one = mathml(written(tex, name))
        shown.append(f'<div class="in-notation" data-notation="{name}"{hidden}>{one}</div>')
    return f'<div class="equation">{"".join(shown)}</div>'


def table_html() -> str:
    """Return what each notation writes for each role, as a table."""
    heads = "".join(f"<th>{mathml(_title(name), block=False)}</th>" for name in NOTATIONS)
    rows = []
    for role, meaning in ROLES.items():
        if role == "each":
            continue
        cells = "".join(
            f"<td>{mathml(notation.roles[role], block=False)}</td>"
            for notation in NOTATIONS.values()
        )
        rows.append(f"<tr><th>{meaning}</th>{cells}</tr>")
    return (
        f'<div class="wide"><table class="notations"><thead><tr><th></th>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _title(name: str) -> str:
    """Return the title of a notation as TeX."""
    return NOTATIONS[name].title.replace("α", "\\alpha")


def switch_html() -> str:
    """Return the choice of a notation, for the top of a page."""
    options = "".join(
        f'<option value="{each.name}">{each.title}</option>' for each in NOTATIONS.values()
    )
    return (
        '<label class="notation-switch">Notation <select class="notation-choice" '
        f'aria-label="Notation of the equations">{options}</select></label>'
    )
