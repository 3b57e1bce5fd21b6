"""Checks a pair without its weights: `python -m scoring.pair.check SETTINGS`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from scoring.engine.check import ModelCheck, look_at, refuse_unfit, tell
from scoring.pair.settings import PairSettings


def refuse_unfit_pair(settings: PairSettings) -> ModelCheck:
    """Check everything but the weights, in a separate process. Raises as `refuse_unfit`."""
    return refuse_unfit("scoring.pair.check", settings)


def look(settings: PairSettings) -> ModelCheck:
    """Run the checks in the separate process; returns the findings, or the first fault."""

    def load_small_files() -> Sequence[Path]:
        from scoring.pair.models import load_tokenizers

        folders = settings.folders()
        load_tokenizers(settings, folders)
        return folders

    return look_at(settings, load_small_files)


if __name__ == "__main__":
    tell(look(msgspec.json.decode(sys.argv[1], type=PairSettings)))
