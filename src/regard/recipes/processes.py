"""How many processes a training is shared out among."""

from __future__ import annotations

import torch
from torch import nn

from regard.base.errors import SettingsError
from regard.base.helpers import CAN_HAVE_HELPERS
from regard.models.summary import parameter_count

# The operations of a larger model are large enough for threads to share.
LARGEST = 20_000_000
# With fewer symbols, a process has too little to do.
LEAST_TOKENS = 2_000


def processes_for(
    model: nn.Module, *, wanted: int | None, tokens: int, compiled: bool = False
) -> int:
    """Return how many processes are asked for or, if nothing is, how many are worth their while.

    `tokens` are the symbols of a batch.
    """
    possible = CAN_HAVE_HELPERS and not compiled
    if wanted is not None and wanted > 1 and not possible:
        raise SettingsError(
            f"training.processes = {wanted} needs Linux, no GPU and no training.compile; "
            "set it to 1 or leave it out."
        )
    if wanted is not None:
        return wanted
    if not possible or parameter_count(model) > LARGEST:
        return 1
    return max(1, min(torch.get_num_threads(), tokens // LEAST_TOKENS))
