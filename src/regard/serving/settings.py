"""Settings of the server: what it accepts, how long it waits, and whom it serves."""

from __future__ import annotations

from pydantic import Field

from regard.settings.schema import Settings


class ServerSettings(Settings):
    """Limits and manners of a server; the defaults suit a small machine."""

    batch_sentences: int = Field(64, ge=1, description="most sentences that are searched at once")
    batch_tokens: int = Field(2_048, ge=1, description="most source symbols of a batch")
    wait_ms: float = Field(2.0, ge=0, description="an idle server waits so long for company")
    queue: int = Field(2_000, ge=1, description="sentences that may wait for a model; then 429")
    views: int = Field(16, ge=1, description="views of attention that may wait; then 429")
    seconds: float = Field(30.0, gt=0, description="most seconds for one request; then 503")
    body_seconds: float = Field(10.0, gt=0, description="a request must have arrived by then")
    max_characters: int = Field(10_000, ge=1, description="of all texts of one request")
    max_items: int = Field(1_000, ge=1, description="texts in the list of one request")
    sentence_symbols: int = Field(
        512, ge=1, description="longest sentence: a longer one would hold up all others"
    )
    max_alternatives: int = Field(4, ge=0, description="further translations of a text")
    max_beam: int = Field(12, ge=1, description="widest beam that a view may ask for")
    view_symbols: int = Field(100, ge=1, description="longest sentence whose attention is shown")
    requests_per_minute: int = Field(0, ge=0, description="of an address or key; 0: any number")
    origins: tuple[str, ...] = Field((), description='CORS: sites that may ask; ("*",) for all')

    @property
    def body_bytes(self) -> int:
        """Most bytes of a request: a character may be written in up to twelve."""
        return 12 * self.max_characters + 65_536
