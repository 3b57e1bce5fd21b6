"""Settings of the pair engine, and the identity derived from them and from the models' small files.

This module loads neither torch nor weights: machines that never run the models need identities too.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from scoring.lite_ngram.words import LONGEST_CHARS, LONGEST_WORDS, MIN_FUNCTION_WORDS_PER_100
from scoring.pair.model_folder import find_model, fingerprint

Measure = Literal["binoculars", "fast-detectgpt"]
MEASURES: tuple[Measure, ...] = ("binoculars", "fast-detectgpt")

RULES = f"2 {LONGEST_CHARS} {LONGEST_WORDS} {MIN_FUNCTION_WORDS_PER_100}"
"""Part of a pair's identity. Its first number is the version of the rules in scoring/pair/tokens.py."""
_DEVICE = re.compile(r"cpu|cuda(:\d{1,3})?")
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9._-]+")


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
    dtype: Literal["", "bfloat16", "float32"] = ""
    """Number format of weights and activations; empty: bfloat16 on cuda, float32 on cpu. Part of the identity."""
    max_tokens: Annotated[int, msgspec.Meta(ge=2, le=2048)] = 512
    """Tokens read of a text, special ones included; the rest is cut off. Part of the identity."""
    min_tokens: Annotated[int, msgspec.Meta(ge=2, le=2048)] = 128
    """Texts of fewer tokens are not scored (`too_short`). Under about 100 words, 128 tokens, the published thresholds
    flagged 4% and 9% of 1,306 human pages, above it 0.4% and 2%."""
    english_only: bool = True
    """Texts in another script (`other_language`) or with few English function words (`few_function_words`) are not
    scored: the published thresholds are English."""
    batch_tokens: Annotated[int, msgspec.Meta(ge=0, le=4_194_304)] = 0
    """Tokens of a batch, padding included; 0: 16,384 on cuda, 2,048 on cpu. Halved by itself while memory is short."""

    def __post_init__(self) -> None:
        for name in ("observer", "performer"):
            if not getattr(self, name).strip() or "\0" in getattr(self, name):
                raise ValueError(f"{name} must be a model folder or a hub id such as 'tiiuae/falcon-7b'")
        if not _DEVICE.fullmatch(self.device):
            raise ValueError("device must be cpu, cuda, or cuda: with the number of a card")
        if self.min_tokens > self.max_tokens:
            raise ValueError("min_tokens must be at most max_tokens")
        if 0 < self.batch_tokens < 64:
            raise ValueError("batch_tokens must be 0, or at least 64")

    def folders(self) -> tuple[Path, Path]:
        return find_model(self.observer, self.observer_revision), find_model(self.performer, self.performer_revision)

    @property
    def token_budget(self) -> int:
        return self.batch_tokens or (2_048 if self.device == "cpu" else 16_384)

    @property
    def number_format(self) -> Literal["bfloat16", "float32"]:
        """The dtype in use: as set, or else the device's own."""
        return self.dtype or ("float32" if self.device == "cpu" else "bfloat16")


def pair_identity(settings: PairSettings, measure: Measure, text_rules: str = RULES) -> str:
    """The identity without its threshold set: "binoculars/falcon-7b+falcon-7b-instruct@<8 hex>/bfloat16/512".

    The eight digits are a digest of both models' folders and of the rules that decide which texts are scored.
    Raises MissingModel where a folder or the hub's cache on this machine does not have a model, UnsupportedModel where
    it has no safetensors weights, MissingExtra for a hub id without the packages that know the cache.
    """
    rules = f"min_tokens={settings.min_tokens} english_only={settings.english_only} rules={text_rules}"
    digest = fingerprint(settings.folders(), rules)[:8]
    names = f"{_short(settings.observer)}+{_short(settings.performer)}"
    return f"{measure}/{names}@{digest}/{settings.number_format}/{settings.max_tokens}"


def _short(name: str) -> str:
    """Last path component of a folder or hub id, without separators of an identity."""
    return _NOT_IN_A_NAME.sub("-", re.split(r"[/\\]", name.rstrip("/\\"))[-1]) or "model"
