"""The best symbols of each row, without sorting whole vocabularies."""

from __future__ import annotations

import torch

from regard.base.shapes import Float, Int, Tensor

# Columns looked at together: about the root of a vocabulary, so that both stages are short.
CHUNK = 64


def top_of_rows(
    values: Float[Tensor, "rows columns"], count: int
) -> tuple[Float[Tensor, "rows best"], Int[Tensor, "rows best"]]:
    """Return the `count` greatest values of each row, greatest first, and their columns.

    The k greatest values lie in the k chunks with the greatest maxima. Maxima are found at the
    speed of memory; sorting, which is slow, sees only the few chunks.
    """
    columns = values.shape[1]
    count = min(count, columns)
    chunks = columns // CHUNK
    if chunks <= 2 * count:
        best, places = values.topk(count, dim=1)
        return best, places
    body = values[:, : chunks * CHUNK].reshape(-1, chunks, CHUNK)
    held = body.amax(dim=2).topk(count, dim=1).indices  # [rows, count]
    near = body.gather(1, held[:, :, None].expand(-1, -1, CHUNK)).flatten(1)
    tail = values[:, chunks * CHUNK :]
    best, places = torch.cat([near, tail], dim=1).topk(count, dim=1)
    inside = places.clamp(max=count * CHUNK - 1)
    in_body = held.gather(1, inside // CHUNK) * CHUNK + inside % CHUNK
    in_tail = places - count * CHUNK + chunks * CHUNK
    return best, torch.where(places < count * CHUNK, in_body, in_tail)
