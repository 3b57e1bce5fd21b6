"""Checks an encoder without its weights: `python -m scoring.encoder.check SETTINGS`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from scoring.encoder.settings import EncoderSettings
from scoring.engine.check import ModelCheck, look_at, refuse_unfit, tell


def refuse_unfit_encoder(settings: EncoderSettings) -> ModelCheck:
    """Check everything but the weights, in a separate process. Raises as `refuse_unfit`."""
    return refuse_unfit("scoring.encoder.check", settings)


def look(settings: EncoderSettings) -> ModelCheck:
    """Run the checks in the separate process; returns the findings, or the first fault."""

    def load() -> Sequence[Path]:
        from scoring.encoder.model import load_small_files

        return [load_small_files(settings).folder]

    return look_at(settings, load)


if __name__ == "__main__":
    tell(look(msgspec.json.decode(sys.argv[1], type=EncoderSettings)))
