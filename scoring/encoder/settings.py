"""Settings of the encoder, and the identity derived from them and from the model's small files, without torch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar

import msgspec

from scoring.engine.model_folder import find_model
from scoring.engine.settings import (
    NumberFormat,
    refuse_bad_settings,
    short_name,
    text_digits,
    usual_number_format,
    usual_token_budget,
)
from scoring.errors import MissingModel


class EncoderSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A trained sequence classifier, and how texts go through it, in order of use."""

    model: str = ""
    """Folder of the classifier, or its hub id if the hub's cache has it: safetensors and a tokenizer."""
    llm_label: str = ""
    """The label of LLM texts in the model's `config.json`; empty: the only one named llm, ai, fake, generated or alike.
    A model of one logit has none: a high one means an LLM."""
    device: str = "cpu"
    """Where the model runs: cpu (float32) or cuda, cuda:1 … (bfloat16). The number format is part of the identity."""
    max_tokens: Annotated[int, msgspec.Meta(ge=8, le=8192)] = 512
    """Tokens of a window, special ones included; take what the model was trained with. Part of the identity."""
    windows: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1
    """The most windows read of a text; its score is their mean, weighted by tokens. Part of the identity."""
    min_tokens: Annotated[int, msgspec.Meta(ge=2, le=8192)] = 128
    """Texts of fewer tokens are not scored (`too_short`)."""
    english_only: bool = True
    """Texts in another script (`other_language`) or with few English function words (`few_function_words`) are not
    scored. Turn it off for a model that was trained on other languages."""

    table: ClassVar[str] = "score.encoder"

    def __post_init__(self) -> None:
        if "\0" in self.model:
            raise ValueError("model must be the folder of a sequence classifier")
        refuse_bad_settings(self)

    def folder(self) -> Path:
        """The model's folder. Raises MissingModel, also if none is set."""
        if not self.model.strip():
            raise MissingModel("score.encoder.model is not set: name the folder of a trained sequence classifier")
        return find_model(self.model)

    @property
    def title(self) -> str:
        return self.model

    @property
    def token_budget(self) -> int:
        # On a CPU larger batches are hardly faster, and have more padding.
        return max(self.max_tokens, 512 if self.device == "cpu" else usual_token_budget(self.device))

    @property
    def number_format(self) -> NumberFormat:
        return usual_number_format(self.device)


def encoder_identity(settings: EncoderSettings) -> str:
    """The identity without its threshold set: "encoder/desklib@<8 hex>/float32/768x1".

    The eight digits are a digest of the model's folder, its label, and the rules that decide which texts are scored.
    Raises MissingModel, UnsupportedModel, MissingExtra as `pair_identity`.
    """
    digits = text_digits(settings, [settings.folder()], f" llm_label={settings.llm_label}")
    cut = f"{settings.max_tokens}x{settings.windows}"
    return f"encoder/{short_name(settings.model)}@{digits}/{settings.number_format}/{cut}"
