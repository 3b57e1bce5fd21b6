"""`farmwatch audit`: conservation, proved from the log itself, partition by partition.

Each hit is fetched or refused with a reason, each fetched page has one features record, each features record one
verdict (of each ruleset that judged it), each article one score or one reason, each site of the hits one row that says
exactly what follows from its verdicts and scores. What a stage has not read yet is `waiting`; what retention took is
`expired`; a dead letter of the stage is a reason. Anything else is broken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from crawler.errors import UnusableUrl
from crawler.queued import queued_pages
from crawler.urls import page_id
from farmwatch.flow import READS
from stream.dead_letters import DeadLetter
from stream.errors import BadRecord
from stream.heartbeat import is_heartbeat
from stream.log import Log
from stream.records import Features, Hit, Page, Record, Score, ScoreRequest, SiteState, Verdict, decode
from stream.topics import DEAD_LETTERS, FEATURES, HITS, PAGES, SCORE_REQUESTS, SCORES, SITES, VERDICTS

R = TypeVar("R", bound=Record)

_NEVER_MS = 2**63 - 1
_IMPORT = "import"  # Page.found_by of what came from an archive
_NO_PAGE = frozenset({"refused", "failed"})  # outcomes of visits that got no page; one that is unchanged had one before


@dataclass(frozen=True, slots=True)
class Broken:
    """One id that breaks a step, and how: missing, twice, or disagrees."""

    step: str
    id: str
    site: str
    how: str


@dataclass(slots=True)
class Step:
    """Counts of one step: every record that went in is done, dead, waiting, expired or broken."""

    name: str
    records: int = 0
    done: int = 0
    dead: int = 0
    waiting: int = 0
    expired: int = 0
    broken: int = 0
    reasons: Counter[str] = field(default_factory=Counter)  # of what is done without a page or a score


@dataclass(slots=True)
class AuditReport:
    """The counts per step and what breaks them."""

    steps: dict[str, Step]
    broken: list[Broken] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Nothing is lost, doubled or in disagreement."""
        return not self.broken

    @property
    def settled(self) -> bool:
        """Nothing waits."""
        return all(step.waiting == 0 for step in self.steps.values())


@dataclass(frozen=True, slots=True)
class _Kept(Generic[R]):
    """A record with where and when it stands on its topic."""

    record: R
    offset: int
    timestamp_ms: int


class _Counts(NamedTuple):
    """What a row says that can be counted in the log, in the fields' names."""

    digest: str
    pages: int
    articles: int
    scored: int
    abstained: int
    flagged: int


_Flags = Mapping[tuple[str, str, str], bool | None]  # (site, text digest, detector) -> flag, None = abstained

STEPS = ("hits -> pages", "pages -> features", "features -> verdicts", "articles -> scores", "sites -> rows")


def audit(log: Log) -> AuditReport:
    """Read the whole log and account for every record. Memory: the ids of one partition at a time."""
    report = AuditReport({name: Step(name) for name in STEPS})
    for partition in range(log.topics()[HITS]):
        _Partition(log, partition, report).audit()
    return report


class _Partition:
    """All of some sites: their hits, pages, features, verdicts, scores and rows share a partition number."""

    def __init__(self, log: Log, partition: int, report: AuditReport) -> None:
        self._log = log
        self._partition = partition
        self._report = report
        self._committed = {  # before anything is read: what was passed by then has left its traces in what is read
            (group, topic): log.committed(group, topic)[partition] or 0
            for group, topics in READS.items()
            for topic in topics
        }
        letters = [DeadLetter.read(message) for message in log.read(DEAD_LETTERS, partition)]
        self._dead = {(letter.stage, letter.topic, letter.offset) for letter in letters}
        self._given_up = {_site_of(letter.key) for letter in letters if letter.stage == "tally"}  # sites
        self._since: dict[str, int] = {}
        self._last: dict[str, int] = {}  # topic -> offset of its last record

    def audit(self) -> None:
        """Account for the partition while stages work on it: what is made of a record is read before the record."""
        queued = set(queued_pages(self._log, self._partition))
        rows = {row.record.site: row.record for row in self._read(SITES, SiteState)}
        scores = list(self._read(SCORES, Score))
        verdicts = list(self._read(VERDICTS, Verdict))
        requests = {_asked(request.record): request for request in self._read(SCORE_REQUESTS, ScoreRequest)}
        features = list(self._read(FEATURES, Features))
        pages = list(self._read(PAGES, Page))
        hits = list(self._read(HITS, Hit))
        self._hits_to_pages(hits, pages, queued)
        fetched = [page for page in pages if page.record.outcome == "fetched"]
        self._one_to_one("pages -> features", PAGES, "measure", fetched, FEATURES, features)
        self._one_to_one("features -> verdicts", FEATURES, "judge", features, VERDICTS, verdicts)
        self._articles_to_scores([v for v in verdicts if v.record.verdict == "article"], requests, scores)
        self._sites_to_rows({hit.record.site for hit in hits}, rows, verdicts, scores)

    def _hits_to_pages(self, hits: list[_Kept[Hit]], pages: list[_Kept[Page]], queued: set[str]) -> None:
        step = self._report.steps["hits -> pages"]
        crawled = _best([p.record for p in pages if p.record.found_by != _IMPORT])
        imported = {hit: p.record for p in pages if p.record.found_by == _IMPORT for hit in p.record.hits}
        self._refuse_twice(step.name, pages, _own_id)
        seen: set[str] = set()
        for hit in hits:
            wanted = hit.record.id if hit.record.imported else _page_of(hit.record)
            if wanted in seen:
                continue
            seen.add(wanted)
            page = (imported if hit.record.imported else crawled).get(wanted)  # an import has its page from the start
            if page is not None and page.outcome in _NO_PAGE:
                if wanted in queued:
                    page = None  # it was refused once, and is visited again
                else:
                    step.reasons[page.reason] += 1
            waiting = wanted in queued or self._unread("crawl", HITS, hit.offset)
            self._account(step, "crawl", HITS, hit, done=page is not None, waiting=waiting, downstream=PAGES)

    def _one_to_one(
        self,
        name: str,
        topic: str,
        group: str,
        upstream: Iterable[_Kept[Any]],
        downstream: str,
        results: Sequence[_Kept[Any]],
    ) -> None:
        step = self._report.steps[name]
        done = {r.record.id for r in results}
        self._refuse_twice(name, results, _own_id)
        sources = set()
        for source in upstream:
            sources.add(source.record.id)
            waiting = self._unread(group, topic, source.offset)
            self._account(step, group, topic, source, source.record.id in done, waiting, downstream)
        if self._log.beginning(topic)[self._partition] == 0:
            for result in results:
                if result.record.id not in sources:
                    self._break(name, result.record, f"{downstream} has it, {topic} does not")

    def _articles_to_scores(
        self,
        articles: list[_Kept[Verdict]],
        requests: Mapping[tuple[str, str], _Kept[ScoreRequest]],
        scores: list[_Kept[Score]],
    ) -> None:
        step = self._report.steps["articles -> scores"]
        scored = {(s.record.site, s.record.text_digest): s.record for s in scores}
        asked = Counter(article.record.id for article in articles)  # once for each ruleset that judged the fetch
        self._refuse_twice(step.name, scores, lambda s: (s.fetch_id, s.detector), lambda s: asked[s.fetch_id])
        for article in articles:
            score = scored.get((article.record.site, article.record.text_digest))
            if score is not None and score.abstain:
                step.reasons[score.abstain] += 1
            request = requests.get(_asked(article.record))
            if request is None:  # written in one transaction with the verdict, and kept for a shorter time
                self._account(step, "judge", VERDICTS, article, score is not None, False, SCORE_REQUESTS)
            else:
                waiting = self._unread("score", SCORE_REQUESTS, request.offset)
                self._account(step, "score", SCORE_REQUESTS, request, score is not None, waiting, SCORES)

    def _sites_to_rows(
        self,
        sites: set[str],
        rows: Mapping[str, SiteState],
        verdicts: list[_Kept[Verdict]],
        scores: list[_Kept[Score]],
    ) -> None:
        step = self._report.steps["sites -> rows"]
        behind = any(
            self._unread("tally", topic, self._last[topic]) for topic in (HITS, VERDICTS, SCORES) if topic in self._last
        )
        flags: _Flags = {(s.record.site, s.record.text_digest, s.record.detector): s.record.flag for s in scores}
        of_site: dict[str, list[Verdict]] = {}
        for verdict in verdicts:
            of_site.setdefault(verdict.record.site, []).append(verdict.record)
        expired = self._log.beginning(VERDICTS)[self._partition] > 0
        for site in sorted(sites):
            step.records += 1
            row = rows.get(site)
            wrong = "no row" if row is None else _contradiction(row, of_site.get(site, []), flags)
            if row is not None and (expired or not wrong):
                step.done += 1
            elif behind:
                step.waiting += 1
            elif site in self._given_up:
                step.dead += 1
            else:
                step.broken += 1
                self._report.broken.append(Broken(step.name, site, site, wrong))

    def _account(
        self, step: Step, stage: str, topic: str, kept: _Kept[R], done: bool, waiting: bool, downstream: str
    ) -> None:
        step.records += 1
        if done:
            step.done += 1
        elif (stage, topic, kept.offset) in self._dead:
            step.dead += 1
        elif waiting:
            step.waiting += 1
        elif kept.timestamp_ms < self._kept_since(downstream):
            step.expired += 1
        else:
            step.broken += 1
            self._report.broken.append(Broken(step.name, kept.record.id, kept.record.site, f"nothing in {downstream}"))

    def _refuse_twice(
        self,
        step: str,
        results: Iterable[_Kept[R]],
        key: Callable[[R], Hashable],
        wanted: Callable[[R], int] = lambda _: 1,
    ) -> None:
        """Break each key that stands there more often than `wanted`, and than once."""
        seen: Counter[Hashable] = Counter()
        for result in results:
            record = result.record
            name = key(record)
            seen[name] += 1
            if seen[name] == max(1, wanted(record)) + 1:
                self._break(step, record, "written twice")

    def _break(self, step: str, record: Record, how: str) -> None:
        self._report.steps[step].broken += 1
        self._report.broken.append(Broken(step, record.id, record.site, how))

    def _unread(self, group: str, topic: str, offset: int) -> bool:
        """True where the group's committed offset has not passed this record."""
        return offset >= self._committed[group, topic]

    def _kept_since(self, topic: str) -> int:
        """Records older than this (ms) may have left the topic by retention; 0 where nothing has left."""
        if topic not in self._since:
            first = self._log.beginning(topic)[self._partition]
            oldest = next(iter(self._log.read(topic, self._partition, first)), None) if first else None
            self._since[topic] = 0 if first == 0 else _NEVER_MS if oldest is None else oldest.timestamp_ms
        return self._since[topic]

    def _read(self, topic: str, kind: type[R]) -> Iterator[_Kept[R]]:
        """The records of a topic, without what is `_HEAVY`: the audit needs none of it in memory."""
        for message in self._log.read(topic, self._partition):
            self._last[topic] = message.offset
            if message.value is None or is_heartbeat(message):
                continue
            try:
                record = decode(kind, message.value)
            except BadRecord:
                continue  # the stage that read it has buried it: it counts as a dead letter there
            yield _Kept(_slim(record), message.offset, message.timestamp_ms)


def _contradiction(row: SiteState, verdicts: Sequence[Verdict], flags: _Flags) -> str:
    """Where the row says something else than the site's verdicts and scores; "" = nowhere.

    Exact, by the rules of the tally. A page's newest fetch counts, and of one fetch the verdict that was written last.
    Only pages whose verdict is of the ruleset that spoke last of the site count. `scored`, `abstained` and `flagged`
    count articles, not texts: articles of one text all have that text's score, and one score record accounts for them.
    Of the scores only those of the detector that the row names count, and of one text the score that was written last.
    """
    newest: dict[str, Verdict] = {}
    for verdict in verdicts:
        known = newest.get(verdict.page_id)
        if known is None or (verdict.fetched_at, verdict.id) >= (known.fetched_at, known.id):
            newest[verdict.page_id] = verdict
    digest = verdicts[-1].digest if verdicts else ""
    pages = [verdict for verdict in newest.values() if verdict.digest == digest]
    keys = [(row.site, page.text_digest, row.detector) for page in pages if page.verdict == "article"]
    found = [flags[key] for key in keys if key in flags]
    abstained = found.count(None)
    log = _Counts(digest, len(pages), len(keys), len(found) - abstained, abstained, found.count(True))
    said = _Counts(row.digest, row.pages, row.articles, row.scored, row.abstained, row.flagged)
    differing = zip(_Counts._fields, said, log, strict=True)
    return "; ".join(f"row says {name} {a}, the log says {b}" for name, a, b in differing if a != b)


def _best(pages: Iterable[Page]) -> dict[str, Page]:
    """Page id -> its last visit, or the last one that had a page: what was fetched once is not undone by a failure."""
    found: dict[str, Page] = {}
    for page in pages:
        if page.outcome not in _NO_PAGE or page.page_id not in found or found[page.page_id].outcome in _NO_PAGE:
            found[page.page_id] = page
    return found


def _own_id(record: Record) -> Hashable:
    """What stands once on its topic: a record, and of verdicts one for each ruleset."""
    return (record.id, record.digest) if isinstance(record, Verdict) else record.id


def _asked(record: Verdict | ScoreRequest) -> tuple[str, str]:
    """What joins an article with its score request: rulesets may have different texts of one fetch scored."""
    return record.id, record.text_digest


def _site_of(key: bytes) -> str:
    """The site in a record's key: the whole of it, or what stands before the space in a score's."""
    return key.decode(errors="replace").partition(" ")[0]


def _page_of(hit: Hit) -> str:
    try:
        return page_id(hit.url)
    except UnusableUrl:  # CRAWL has buried it: it counts as a dead letter
        return hit.id


_HEAVY = ("body", "text", "blocks", "rules", "measures", "quality", "headers", "snippet", "queries")


def _slim(record: R) -> R:
    heavy = {name: type(value)() for name in _HEAVY if (value := getattr(record, name, None))}
    return msgspec.structs.replace(record, **heavy) if heavy else record
