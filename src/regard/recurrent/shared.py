"""One recurrent matrix for encoder and decoder: the smallest encoder-decoder with attention.

y^e(t) = tanh(W^h y^e(t-1) + W^e x(t)), y^d(t) = tanh(W^h y^d(t-1) + W^d y(t-1)), y^d(0) = y^e(T).
"""

from __future__ import annotations

from regard.recurrent.cells import RecurrentStack


def share_recurrence(encoder: RecurrentStack, decoder: RecurrentStack) -> None:
    """Let the decoder use the encoder's recurrent matrices W^h, layer by layer."""
    if encoder.bidirectional or encoder.cell_hidden != decoder.cell_hidden:
        raise ValueError(
            "encoder and decoder can share a recurrent matrix only if both read in one direction "
            f"with one width (encoder {encoder.cell_hidden}, decoder {decoder.cell_hidden})"
        )
    for reading, writing in zip(encoder.cells, decoder.cells, strict=True):
        writing.state_weights = reading.state_weights
