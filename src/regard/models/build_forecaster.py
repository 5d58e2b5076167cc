"""Settings to forecaster."""

from __future__ import annotations

from torch import nn

from regard.attention.pooling import POOLINGS
from regard.models.forecaster import Forecaster
from regard.recurrent.cells import CELLS, RecurrentStack
from regard.settings.forecast import ForecasterSettings
from regard.settings.suggest import require_known


def build_forecaster(settings: ForecasterSettings, *, window: int, horizon: int) -> Forecaster:
    """Return a fresh forecaster in double precision: what it reads may be as small as 1e-251."""
    require_known(settings.cell, CELLS, what="model.cell")
    require_known(settings.attention, ["none", *POOLINGS], what="model.attention")
    attends = settings.attention != "none"
    hidden = settings.hidden
    return Forecaster(
        rnn=RecurrentStack(kind=settings.cell, input_dim=1, hidden=hidden),
        attention=POOLINGS[settings.attention](time=window, hidden=hidden) if attends else None,
        dense=nn.Linear(hidden, horizon),
        squash=settings.output == "tanh",
        window=window,
    ).double()
