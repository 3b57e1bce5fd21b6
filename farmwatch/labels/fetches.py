"""Labelled pages with their features in a log, on which rulesets can be evaluated, as on folders of labelled pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from farmwatch.labels.judgements import PageLabel, latest_judgements
from farmwatch.labels.labelled_pages import Label, LabelledPage
from farmwatch.terminal.jsonl import JsonLines
from farmwatch.terminal.messages import message
from stream.log.contract import Log, partition_of
from stream.processing.topic_reader import records_of
from stream.schema.control import Control
from stream.schema.records import Features, Record
from stream.schema.topics import FEATURES
from stream.text.user_errors import Exit, FarmwatchError
from stream.text.wording import counted


class _Head(Record, frozen=True, kw_only=True):
    """The start of a features record, which is cheap to read."""


class LabelledFetches:
    """The pages that a file of `farmwatch review label` labels; the last label of a page counts, whoever gave it.

    Damaged lines are reported on stderr by number, and pages without features by URL; `skipped` counts both.
    """

    def __init__(self, file: Path) -> None:
        """Read the file; `-` is stdin. Raises FarmwatchError for an unreadable file, or one without a labelled page."""
        self._lines = JsonLines([file], PageLabel, "rulesets evaluate")
        self._sites: dict[str, str] = {}  # fetch id -> site
        self.labels: list[Label] = []
        judging: list[PageLabel] = []
        others = 0
        for place, line in self._lines:
            if not line.fetch_id:
                others += 1
            elif line.page_type and not line.site:
                self._lines.bad(place, "no site, by which its page is found in the log")
            else:
                judging.append(line)
        for page in {page.fetch_id: page for page in latest_judgements(judging)}.values():
            self._sites[page.fetch_id] = page.site
            label = Label(source=file.name, id=page.fetch_id, place=str(file), url=page.url, page_type=page.page_type)
            self.labels.append(label)
        if others:
            message(f"{counted(others, 'line')} left out: without a fetch_id, thus no judgement of a page of a log")
        if not self.labels:
            raise FarmwatchError(
                f"{file}: it judges no page: name a file of `farmwatch review label`, or a folder of labelled pages"
            )

    @property
    def skipped(self) -> int:
        return self._lines.skipped

    @property
    def exit(self) -> Exit:
        return Exit.PROBLEM if self.skipped else Exit.OK

    def measured(self, log: Log, advance: Callable[[int], None] = lambda _: None) -> Iterator[LabelledPage]:
        """The labelled pages with the features that the live run judges; `advance` gets the number of processed pages.

        The partitions of their sites are read from the beginning. Raises FarmwatchError for a log without features.
        """
        live = Control(log).live
        topic = FEATURES if live is None else live.features
        partitions = log.topics().get(topic)
        if partitions is None:
            raise FarmwatchError(f"the log has no topic {topic}: is it the log that these pages were sampled from?")
        wanted: dict[int, dict[str, Label]] = {}
        for label in self.labels:
            wanted.setdefault(partition_of(self._sites[label.id], partitions), {})[label.id] = label
        for partition, labels in sorted(wanted.items()):
            for features in self._features(log, topic, partition, labels):
                yield LabelledPage(labels.pop(features.id), features)
                advance(1)
        for label in (label for labels in wanted.values() for label in labels.values()):
            reason = "no features in the log: retention took them, or it is another log"
            self._lines.bad(label.url or label.id, reason)
        self._lines.end()

    def _features(self, log: Log, topic: str, partition: int, labels: dict[str, Label]) -> Iterator[Features]:
        sites = {self._sites[fetch_id].encode() for fetch_id in labels}
        of_sites = (record for record in log.read(topic, partition) if record.key in sites)
        for record, head in records_of(_Head, of_sites):
            if head.id in labels:
                yield from (features for _, features in records_of(Features, [record]))
                if not labels:
                    return
