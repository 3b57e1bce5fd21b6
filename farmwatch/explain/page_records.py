"""Finds the records of a page in the log: its newest features, earlier pages of its site, verdicts and scores."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from crawler.web.urls import normalise, page_id, site_of
from farmwatch.explain.not_measured import why_not_measured
from filters.extraction.interface import UNFINISHED
from filters.settings import SITE_CAPS
from stream.log.contract import Log, Message, partition_of
from stream.processing.topic_reader import messages_at, records_of
from stream.schema.projection import projection_of
from stream.schema.records import Features, Page, Record, Score, Verdict
from stream.schema.runs import RunNames
from stream.schema.topics import FEATURES, PAGES, SCORES
from stream.text.user_errors import NotFound


@projection_of(Features)
class FeaturesHead(Record, frozen=True, kw_only=True):
    """The fields before the text of a features record, which are cheap to read."""

    page_id: str
    url: str
    epoch: str
    extract_error: str


@dataclass(frozen=True, slots=True)
class FoundPage:
    """The newest features of a page; `earlier` has the ascending offsets of the pages that it was compared with."""

    features: Features
    partition: int
    offset: int
    earlier: Sequence[int]
    topic: str = FEATURES


class PageRecords:
    """The records of a page in the log, found by reading the partition of its site."""

    def __init__(self, log: Log, names: RunNames, found: FoundPage) -> None:
        self._log, self._names, self.found = log, names, found

    def verdicts(self) -> list[Verdict]:
        """All verdicts of the run on the page, in log order."""
        newest = self.found
        theirs = _of_site(self._log, self._names.verdicts, newest.partition, newest.features.site)
        return [verdict for _, verdict in records_of(Verdict, theirs) if verdict.page_id == newest.features.page_id]

    def scores(self, text_digests: Collection[str]) -> dict[str, list[Score]]:
        """Text digest -> the newest score of each detector on the page's site, the newest last."""
        features = self.found.features
        scores = records_of(Score, _of_site(self._log, SCORES, self.found.partition, features.site))
        return newest_scores((score for _, score in scores if score.site == features.site), text_digests)

    def earlier(self) -> Iterator[Features]:
        """The features of the pages that this page was compared with, in log order, read one at a time."""
        newest = self.found
        kept = messages_at(self._log, newest.topic, newest.partition, newest.earlier, near=sys.maxsize)  # in one pass
        return (page for _, page in records_of(Features, kept))


def find_page(log: Log, url: str, topic: str = FEATURES) -> FoundPage:
    """The newest features of a page, under any spelling of its URL. Raises UnusableUrl, and NotFound with the reason.

    `topic` has the features: a run may have measured its own.
    """
    site = site_of(url)
    topics = log.topics()
    if topic not in topics:
        raise NotFound("the log has no topics yet: run `farmwatch up`")
    partition = partition_of(site, topics[topic])
    address, mark, query = normalise(url).partition("?")
    slashed = address.removesuffix("/") if address.endswith("/") else f"{address}/"
    spellings = {page_id(spelling): spelling for spelling in (url, f"{slashed}{mark}{query}")}
    newest: dict[str, tuple[int, Features]] = {}
    visits: list[tuple[int, FeaturesHead]] = []
    for message, head in records_of(FeaturesHead, _of_site(log, topic, partition, site)):
        if head.page_id in spellings:
            for _, features in records_of(Features, [message]):
                newest[head.page_id] = message.offset, features
        if head.extract_error not in UNFINISHED:  # MEASURE ignores unfinished visits
            visits.append((message.offset, head))
    wanted = next((page for page in spellings if page in newest), None)
    if wanted is None:
        pages = (page for _, page in records_of(Page, _of_site(log, PAGES, partition, site)))
        raise NotFound(why_not_measured(log, normalise(url), site, list(spellings), pages))
    offset, features = newest[wanted]
    return FoundPage(features, partition, offset, compared_with(visits, features, offset), topic)


def newest_scores(stored: Iterable[Score], text_digests: Collection[str]) -> dict[str, list[Score]]:
    """Text digest -> the newest of these scores of each detector, the newest last."""
    newest: dict[tuple[str, str], Score] = {}
    for score in stored:
        if score.text_digest and score.text_digest in text_digests:
            newest.pop((score.text_digest, score.detector), None)
            newest[score.text_digest, score.detector] = score
    scores: dict[str, list[Score]] = {}
    for (text_digest, _), score in newest.items():
        scores.setdefault(text_digest, []).append(score)
    return scores


def compared_with(visits: Sequence[tuple[int, FeaturesHead]], features: Features, until: int) -> list[int]:
    """Offsets of the texts that MEASURE compared this page with, at offset `until`.

    MEASURE remembers the pages of a site per feature epoch. A page gets its place with its first text and keeps it when
    it is fetched again, with its newest text or none. It is compared with the pages before it. A new page displaces the
    oldest.
    """
    if features.extract_error:
        return []
    places: OrderedDict[str, int | None] = OrderedDict()  # page -> offset of its newest text, if any
    for offset, visit in visits:
        if visit.epoch != features.epoch or offset > until:
            continue
        if visit.page_id not in places:
            if visit.extract_error:
                continue
            while len(places) >= SITE_CAPS.pages_per_site:
                places.popitem(last=False)
        places[visit.page_id] = None if visit.extract_error else offset
    before = takewhile(lambda page: page != features.page_id, places)
    return sorted(text for page in before if (text := places[page]) is not None)


def _of_site(log: Log, topic: str, partition: int, site: str) -> Iterator[Message]:
    """Records of a site: their key is the site, or begins with the site and a space."""
    key = site.encode()
    return (message for message in log.read(topic, partition) if message.key.partition(b" ")[0] == key)
