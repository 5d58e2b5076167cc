"""The settings of augmentation: how often the text of a training pair is changed, and how."""

from pydantic import Field

from regard.settings.recipe import Settings


class AugmentationSettings(Settings):
    """Shares of the training sentences that are changed, anew in each epoch; 0: none.

    The first four change the source alone, so that bad input still gives a good translation. The
    others change both sides alike.
    """

    case: float = Field(0.0, ge=0, le=1, description="sources in capitals, small or title case")
    typos: float = Field(
        0.0, ge=0, le=1, description="sources with letters swapped, dropped, doubled or mistyped"
    )
    punctuation: float = Field(
        0.0, ge=0, le=1, description="sources whose punctuation is missing or doubled"
    )
    diacritics: float = Field(0.0, ge=0, le=1, description="sources without accents and umlauts")
    joined: float = Field(
        0.0, ge=0, le=1, description="pairs joined with another pair on the same line"
    )
    markup: float = Field(
        0.0, ge=0, le=1, description="pairs with tags around the sentence or a word that is copied"
    )
    copied: float = Field(
        0.0, ge=0, le=1, description="pairs with another name or number, the same on both sides"
    )

    def shares(self) -> dict[str, float]:
        """Return the kinds that are asked for, with their shares."""
        return {name: share for name, share in self.model_dump().items() if share}
