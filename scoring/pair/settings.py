"""Settings of the pair engine, and the identity derived from them and from the models' small files.

This module loads neither torch nor weights: machines that never run the models need identities too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal

import msgspec

from scoring.engine.model_folder import find_model
from scoring.engine.settings import (
    RULES,
    NumberFormat,
    refuse_bad_settings,
    short_name,
    text_digits,
    usual_number_format,
    usual_token_budget,
)

Measure = Literal["binoculars", "fast-detectgpt"]
MEASURES: tuple[Measure, ...] = ("binoculars", "fast-detectgpt")


class PairSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A pair of language models of one tokenizer, and how texts go through it, in order of use."""

    observer: str = "tiiuae/falcon-7b"
    """Folder or hub id of the model that gives the weights of the cross-perplexity."""
    performer: str = "tiiuae/falcon-7b-instruct"
    """Folder or hub id of the model whose surprise at the text is measured."""
    observer_revision: str = ""
    """Branch, tag or commit of the observer at the hub; empty: the main branch. A folder has none."""
    performer_revision: str = ""
    """Branch, tag or commit of the performer at the hub; empty: the main branch. A folder has none."""
    device: str = "cuda"
    """Where the models run: cuda, cuda:1 … or cpu (small models only)."""
    dtype: Literal["", "bfloat16", "float32", "fp8"] = ""
    """Number format of weights and activations; empty: bfloat16 on cuda, float32 on cpu; fp8: the matrix products of
    the bodies in 8 bits and the rest in bfloat16, on cards of compute capability 9.0 (Hopper) or later. Part of the
    identity."""
    max_tokens: Annotated[int, msgspec.Meta(ge=2, le=2048)] = 512
    """Tokens of a window, special ones included. Part of the identity."""
    windows: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1
    """The most windows read of a text; its score is their mean, weighted by tokens. Part of the identity. Published
    thresholds are of one."""
    min_tokens: Annotated[int, msgspec.Meta(ge=2, le=2048)] = 128
    """Texts of fewer tokens are not scored (`too_short`). Under about 100 words, 128 tokens, the published thresholds
    flagged 4% and 9% of 1,306 human pages, above it 0.4% and 2%."""
    english_only: bool = True
    """Texts in another script (`other_language`) or with few English function words (`few_function_words`) are not
    scored: the published thresholds are English."""
    batch_tokens: Annotated[int, msgspec.Meta(ge=0, le=4_194_304)] = 0
    """Tokens of a batch, padding included; 0: 16,384 on cuda, 2,048 on cpu. Halved by itself while memory is short."""

    table: ClassVar[str] = "score.pair"

    def __post_init__(self) -> None:
        for name in ("observer", "performer"):
            if not getattr(self, name).strip() or "\0" in getattr(self, name):
                raise ValueError(f"{name} must be a model folder or a hub id such as 'tiiuae/falcon-7b'")
        refuse_bad_settings(self)
        if 0 < self.batch_tokens < 64:
            raise ValueError("batch_tokens must be 0, or at least 64")

    def folders(self) -> tuple[Path, Path]:
        return find_model(self.observer, self.observer_revision), find_model(self.performer, self.performer_revision)

    @property
    def title(self) -> str:
        return f"{self.observer} and {self.performer}"

    @property
    def token_budget(self) -> int:
        return self.batch_tokens or usual_token_budget(self.device)

    @property
    def number_format(self) -> NumberFormat:
        """The dtype in use: as set, or else the device's own."""
        return self.dtype or usual_number_format(self.device)


def pair_identity(settings: PairSettings, measure: Measure, text_rules: str = RULES) -> str:
    """The identity without its threshold set: "binoculars/falcon-7b+falcon-7b-instruct@<8 hex>/bfloat16/512", with
    several windows "…/512x4".

    The eight digits are a digest of both models' folders and of the rules that decide which texts are scored.
    Raises MissingModel where a folder or the hub's cache on this machine does not have a model, UnsupportedModel where
    it has no safetensors weights, MissingExtra for a hub id without the packages that know the cache.
    """
    digits = text_digits(settings, settings.folders(), text_rules=text_rules)
    names = f"{short_name(settings.observer)}+{short_name(settings.performer)}"
    cut = str(settings.max_tokens) if settings.windows == 1 else f"{settings.max_tokens}x{settings.windows}"
    return f"{measure}/{names}@{digits}/{settings.number_format}/{cut}"
