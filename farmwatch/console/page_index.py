"""The records of a page, read by the offsets that the read model knows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from crawler.web.urls import page_id, site_of
from farmwatch.console.read_model import ReadModel
from farmwatch.explain.not_measured import why_not_measured
from farmwatch.explain.page_records import FoundPage, PageRecords, compared_with, newest_scores
from stream.log.contract import Log
from stream.processing.topic_reader import messages_at, records_of
from stream.schema.records import Features, Page, R, Score, Verdict
from stream.schema.runs import RunNames
from stream.schema.topics import PAGES, SCORES
from stream.text.user_errors import NotFound

_NEAR, _NEAR_ON_BROKER = 32, 500  # offsets: reading so many costs less than a read of its own


class IndexedRecords(PageRecords):
    """The records of a page by its URL, found by their offsets."""

    def __init__(self, model: ReadModel, log: Log, names: RunNames, url: str) -> None:
        """Raises UnusableUrl, and NotFound for a page that is not measured, or whose features left the log."""
        self._model, self._log, self._names = model, log, names
        self.page_id = page_id(url)
        where = model.located(site_of(url), self.page_id)
        if where is None:
            raise NotFound(self._why(url, None))
        self.where = where
        at = max((at for at, visit in where.visits if visit.page_id == self.page_id), default=-1)
        features = next(self._read(Features, names.features, [at]), None)
        if features is None:
            raise NotFound(self._why(url, self.page()))
        before = compared_with(where.visits, features, at)
        super().__init__(log, names, FoundPage(features, where.partition, at, before, names.features))

    def verdicts(self) -> list[Verdict]:
        return list(self._read(Verdict, self._names.verdicts, self.where.judged))

    def scores(self, text_digests: Collection[str]) -> dict[str, list[Score]]:
        at = self._model.scores_at(self.where.site, text_digests)
        return newest_scores(self._read(Score, SCORES, at), text_digests)

    def earlier(self) -> Iterator[Features]:
        return self._read(Features, self._names.features, self.found.earlier)

    def page(self) -> Page | None:
        """The record with the HTML; None if it left the log."""
        return next(self._read(Page, PAGES, [] if self.where.page_at is None else [self.where.page_at]), None)

    def _why(self, url: str, page: Page | None) -> str:
        """With what the crawl knows; on a broker its state would have to be restored for that."""
        pages, is_near = [] if page is None else [page], not self._log.forgets_offsets
        return why_not_measured(self._log, url, site_of(url), [self.page_id], pages, asks_crawl=is_near)

    def _read(self, kind: type[R], topic: str, offsets: Sequence[int]) -> Iterator[R]:
        """The records at these ascending offsets; those that are near each other are read at once."""
        near = _NEAR_ON_BROKER if self._log.forgets_offsets else _NEAR
        messages = messages_at(self._log, topic, self.where.partition, offsets, near)
        return (record for _, record in records_of(kind, messages))
