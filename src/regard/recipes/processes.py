"""How many processes a translator's training is shared out among."""

from __future__ import annotations

from typing import Any

import torch

from regard.base.errors import SettingsError
from regard.base.helpers import CAN_HAVE_HELPERS
from regard.models.summary import parameter_count
from regard.models.translator import Translator
from regard.settings.translation import TranslationRecipe

# The operations of a larger model are large enough for threads to share.
LARGEST = 20_000_000
# With fewer source and target symbols, a process has too little to do.
LEAST_TOKENS = 1_000


def processes_for(recipe: TranslationRecipe, model: Translator[Any]) -> int:
    """Return how many processes are asked for or, if nothing is, how many are worth their while."""
    wanted = recipe.training.processes
    possible = CAN_HAVE_HELPERS and not recipe.training.compile
    if wanted is not None and wanted > 1 and not possible:
        raise SettingsError(
            f"training.processes = {wanted} needs Linux, no GPU and no training.compile; "
            "set it to 1 or leave it out."
        )
    if wanted is not None:
        return wanted
    if not possible or parameter_count(model) > LARGEST:
        return 1
    return max(1, min(torch.get_num_threads(), recipe.batches.tokens // LEAST_TOKENS))
