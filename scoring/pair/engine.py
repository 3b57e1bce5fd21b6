"""The engine of pairs: reads texts with both models, for the scores of both detectors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from scoring.engine.engine import Device, ModelEngine
from scoring.errors import PoisonText
from scoring.interface import TextScore
from scoring.pair.device import PairDevice
from scoring.pair.models import PairModels, load_models
from scoring.pair.scores import PairReading
from scoring.pair.settings import PairSettings

Result = PairReading | TextScore | PoisonText


class PairEngine(ModelEngine[PairModels, PairReading]):
    """Reads texts with both models of a pair."""

    fewest_ids = 2  # nothing predicts one token

    def __init__(
        self,
        models: PairModels,
        settings: PairSettings,
        *,
        reload: Callable[[], PairModels] | None = None,
        device: Callable[[PairModels], Device] = PairDevice,
        suspects: Path | None = None,
    ) -> None:
        """As `ModelEngine`; without `reload`, the files of `settings` are loaded again after a loss."""
        super().__init__(models, settings, device, reload or (lambda: load_models(settings)), suspects)
