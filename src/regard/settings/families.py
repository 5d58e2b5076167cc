"""The families of translators; `family` chooses one, and a recipe without it is recurrent."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Discriminator, Tag

from regard.settings.model import RecurrentSettings
from regard.settings.transformer import TransformerSettings


def family_of(value: Any) -> str:
    """Return the family that a table, or settings that are already made, belong to."""
    if isinstance(value, dict):
        return str(value.get("family", "recurrent"))
    return str(getattr(value, "family", "recurrent"))


TranslatorSettings = Annotated[
    Annotated[RecurrentSettings, Tag("recurrent")]
    | Annotated[TransformerSettings, Tag("transformer")],
    Discriminator(family_of),
]
