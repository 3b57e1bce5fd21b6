"""What /metrics shows: the metrics of the program, those of its process, and on each of them the label `role`."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from itertools import chain

from prometheus_client import CollectorRegistry, GCCollector, Metric, PlatformCollector, ProcessCollector

ROLE = "role"


class Exposition(CollectorRegistry):
    """A registry with what another one has, and `process_*` and `python_*`. Every sample says the role.

    The times at which series began (`_created`) are left out: nobody asks for them, and they are a sixth of all series.
    """

    def __init__(self, metrics: CollectorRegistry, role: str) -> None:
        """Show `metrics`, as they are when they are collected."""
        super().__init__()
        self._metrics = metrics
        self._role = {ROLE: role}
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self)

    def collect(self) -> Iterator[Metric]:
        """Every family, with its samples as shown."""
        for family in chain(self._metrics.collect(), super().collect()):
            shown = copy(family)
            shown.samples = [
                sample._replace(labels={**sample.labels, **self._role})
                for sample in family.samples
                if not sample.name.endswith("_created")
            ]
            yield shown
