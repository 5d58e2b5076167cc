"""The families of translators; `family` chooses one, and a recipe without it is recurrent."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Discriminator, Tag

from regard.settings.model import RecurrentSettings
from regard.settings.transformer import TransformerSettings


def by_family(default: str) -> Discriminator:
    """Return what tells a union's members apart: a table's `family`, or this one without it."""

    def family_of(value: Any) -> str:
        if isinstance(value, dict):
            return str(value.get("family", default))
        return str(getattr(value, "family", default))

    return Discriminator(family_of)


TranslatorSettings = Annotated[
    Annotated[RecurrentSettings, Tag("recurrent")]
    | Annotated[TransformerSettings, Tag("transformer")],
    by_family("recurrent"),
]
