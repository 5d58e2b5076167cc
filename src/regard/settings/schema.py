"""The base of all settings: frozen, and closed to names it does not know."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Settings(BaseModel):
    """A frozen table of a recipe; an unknown key is an error, never silently ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)
