"""What the engine asks of a detector's settings, their common checks, and the digits of an identity.

This module loads neither torch nor weights: machines that never run the models need identities too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol

from scoring.engine.model_folder import fingerprint
from scoring.lite_ngram.words import LONGEST_CHARS, LONGEST_WORDS, MIN_FUNCTION_WORDS_PER_100

RULES = f"2 {LONGEST_CHARS} {LONGEST_WORDS} {MIN_FUNCTION_WORDS_PER_100}"
"""Part of an identity. Its first number is the version of the rules in scoring/engine/tokens.py."""
NumberFormat = Literal["bfloat16", "float32", "fp8"]
_DEVICE = re.compile(r"cpu|cuda(:\d{1,3})?")
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9._-]+")


class TextRules(Protocol):
    """Which texts are read, and how much of them."""

    @property
    def max_tokens(self) -> int:
        """Tokens of a window, special ones included."""

    @property
    def windows(self) -> int:
        """The most windows of a text."""

    @property
    def min_tokens(self) -> int: ...
    @property
    def english_only(self) -> bool: ...


class EngineSettings(TextRules, Protocol):
    """How a detector's models run."""

    @property
    def table(self) -> str:
        """Name of the settings' table."""

    @property
    def title(self) -> str:
        """Names of the models."""

    @property
    def device(self) -> str: ...
    @property
    def token_budget(self) -> int: ...
    @property
    def number_format(self) -> NumberFormat: ...


def refuse_bad_settings(settings: EngineSettings) -> None:
    """Raises ValueError for a device that is none, and for limits of tokens that admit no text."""
    if not _DEVICE.fullmatch(settings.device):
        raise ValueError("device must be cpu, cuda, or cuda: with the number of a card")
    if settings.min_tokens > settings.max_tokens:
        raise ValueError("min_tokens must be at most max_tokens")


def usual_token_budget(device: str) -> int:
    """Padded tokens of a batch that keep a device busy."""
    return 2_048 if device == "cpu" else 16_384


def usual_number_format(device: str) -> NumberFormat:
    """The number format in which a device is fast and scores are stable."""
    return "float32" if device == "cpu" else "bfloat16"


def text_digits(settings: TextRules, folders: Sequence[Path], more: str = "", text_rules: str = RULES) -> str:
    """Eight digits of an identity: a digest of the models' folders and of the rules that decide which texts are scored.

    Raises as `fingerprint`.
    """
    rules = f"min_tokens={settings.min_tokens} english_only={settings.english_only} rules={text_rules}{more}"
    return fingerprint(folders, rules)[:8]


def cut_in_words(cut: str) -> str:
    """What is read of a text, by the part TOKENS or TOKENSxWINDOWS of an identity."""
    tokens, _, windows = cut.partition("x")
    return f"first {tokens} tokens" if windows in ("", "1") else f"first {windows} windows of {tokens} tokens"


def short_name(model: str) -> str:
    """Last path component of a folder or hub id, without separators of an identity."""
    return _NOT_IN_A_NAME.sub("-", re.split(r"[/\\]", model.rstrip("/\\"))[-1]) or "model"
