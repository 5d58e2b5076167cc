"""The settings of decoding: the search method, its preferences and its limits."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from regard.settings.recipe import Settings


class DecodingSettings(Settings):
    """How translations are searched for."""

    method: Literal["beam", "sample", "mbr"] = Field(
        "beam",
        description='"sample" draws outputs at random; "mbr" (minimum Bayes risk) draws many and '
        "keeps the one most similar to the others",
    )
    beam: int = Field(
        5, ge=1, le=1_000, description="hypotheses kept at each step; 1 is greedy search"
    )
    length_penalty: float = Field(
        1.0, ge=0, description="alpha: scores are divided by length ** alpha"
    )
    length_penalty_kind: Literal["none", "average", "wu"] = Field(
        "average",
        description='divide by length ** alpha; "wu": by ((5 + length) / 6) ** alpha; "none": by 1',
    )
    coverage_penalty: float = Field(
        0.0, ge=0, description="weight of source tokens that got no attention (Wu et al.)"
    )
    diversity_groups: int = Field(1, ge=1, description="groups of beams that avoid each other")
    diversity_strength: float = Field(
        0.5, ge=0, description="log-probability lost for each earlier group with the same token"
    )
    temperature: float = Field(
        1.0, ge=0, description="of sampling; lower values are more cautious, 0 is greedy"
    )
    top_k: int = Field(0, ge=0, description="sample among the k most probable tokens; 0: all")
    top_p: float = Field(
        1.0,
        gt=0,
        le=1,
        description="sample among the most probable tokens, up to this probability mass",
    )
    seed: int = Field(1, ge=0, description="seed of sampling")
    mbr_samples: int = Field(32, ge=2, le=10_000, description="samples drawn for method mbr")
    mbr_utility: Literal["chrf", "bleu"] = Field("chrf", description="how similarity is measured")
    no_repeat_ngram: int = Field(
        0, ge=0, description="n-grams of this size occur at most once; 0: no limit"
    )
    repetition_penalty: float = Field(
        1.0, ge=1, description="factor that makes tokens of the output so far less likely"
    )
    min_length: int = Field(0, ge=0, le=100_000, description="fewest tokens of an output")
    min_ratio: float = Field(
        0.0, ge=0, description="fewest tokens of an output, as a multiple of the source's"
    )
    max_length: int | None = Field(None, ge=1, le=100_000, description="most tokens of an output")
    max_ratio: float = Field(
        2.0, gt=0, le=1_000, description="most tokens of an output, as a multiple of the source's"
    )
    max_extra: int = Field(20, ge=1, le=100_000, description="tokens allowed beyond max_ratio")
    copy_verbatim: bool = Field(
        False, description="require the source's placeholders, URLs and numbers in the output"
    )
    replace_unknown: bool = Field(
        False, description="replace an unknown word by the most attended source word"
    )

    @model_validator(mode="after")
    def _groups(self) -> DecodingSettings:
        if self.beam % self.diversity_groups:
            raise ValueError(
                f"beam ({self.beam}) must be divisible by diversity_groups "
                f"({self.diversity_groups})"
            )
        return self

    @model_validator(mode="after")
    def _lengths(self) -> DecodingSettings:
        if self.max_length is not None and self.min_length > self.max_length:
            raise ValueError(
                f"min_length ({self.min_length}) must not exceed max_length ({self.max_length})"
            )
        if self.min_ratio > self.max_ratio:
            raise ValueError(
                f"min_ratio ({self.min_ratio}) must not exceed max_ratio ({self.max_ratio})"
            )
        return self

    @model_validator(mode="after")
    def _belong_together(self) -> DecodingSettings:
        """Refuse options that the chosen method would silently ignore."""
        sampling = {"temperature", "top_k", "top_p"}
        searching = {"coverage_penalty", "diversity_groups"}
        ignored = sampling if self.method == "beam" else searching
        for name in sorted(ignored):
            value = getattr(self, name)
            if value != type(self).model_fields[name].default:
                wanted = '"sample" or "mbr"' if self.method == "beam" else '"beam"'
                raise ValueError(f"{name} ({value}) has an effect only with method = {wanted}")
        return self
