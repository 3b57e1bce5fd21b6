"""`farmwatch audit`: conservation, proved from the log itself, partition by partition.

Each hit is fetched or refused with a reason, each fetched page has one features record, each features record one
verdict (of each ruleset that judged it), each article one score or one reason, each site of the hits one row that says
exactly what follows from its verdicts and scores. What a stage has not read yet is `waiting`; what retention took is
`expired`; a dead letter of the stage is a reason. Anything else is broken.

A live JUDGE requests a score of each article that has none, so an article without either is broken. A replay asks only
while SCORE runs its detector: an article that it judged (its verdict says so in a header) may be `unscored`, and so may
one whose request names a detector, which SCORE passes over where it runs others.

Verdicts and rows are those of one run. Of a run that is not live only its own steps are looked at, and only its window:
the records from where it began up to where it stops.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from crawler.errors import UnusableUrl
from crawler.queued import queued_pages
from crawler.urls import page_id
from farmwatch.audit_rows import Flags, contradiction
from farmwatch.audit_scope import CRAWLED, MEASURED, Audited, Kept, R, Requests, audited_run, slim
from farmwatch.flow import reads_of_live
from farmwatch.runs.named import measured_by
from stream.control import Control
from stream.dead_letters import DeadLetter
from stream.errors import BadRecord
from stream.heartbeat import is_heartbeat
from stream.log import Log
from stream.records import Features, Hit, Page, Record, Score, ScoreRequest, SiteState, Verdict, decode
from stream.runs import LIVE
from stream.stage import BY_REPLAY
from stream.topics import DEAD_LETTERS, HITS, PAGES, REPLAY_REQUESTS, SCORE_REQUESTS, SCORES

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


def audit(log: Log, run: str = "") -> AuditReport:
    """Read the whole log and account for every record, of a run or of the live one. Memory: ids of one partition.

    Raises NotFound for a run that is not there, or has no topics yet.
    """
    audited = audited_run(log, Control(log), run)
    report = AuditReport({name: Step(name) for name in audited.steps})
    for partition in range(log.topics()[HITS]):
        _Partition(log, partition, report, audited).audit()
    return report


class _Partition:
    """All of some sites: their hits, pages, features, verdicts, scores and rows share a partition number."""

    def __init__(self, log: Log, partition: int, report: AuditReport, audited: Audited) -> None:
        self._log = log
        self._partition = partition
        self._report = report
        self._audited = audited
        self._names = audited.names
        self._committed = {  # before anything is read: what was passed by then has left its traces in what is read
            (group, topic): log.committed(group, topic)[partition] or 0
            for group, topics in reads_of_live(audited.names).items()
            for topic in topics
        }
        run = audited.run.name
        own = {"measure": measured_by(audited.names.features), "judge": run, "tally": run}  # others work for no run
        read = (DeadLetter.read(message) for message in log.read(DEAD_LETTERS, partition))
        # a record that another run could not process may be fit for this one
        letters = [letter for letter in read if letter.run in ("", own.get(letter.stage, letter.run))]
        self._dead = {(letter.stage, letter.topic, letter.offset) for letter in letters}
        self._given_up = {_site_of(letter.key) for letter in letters if letter.stage == "tally"}  # sites
        self._since: dict[str, int] = {}
        self._last: dict[str, int] = {}  # topic -> offset of its last record

    def audit(self) -> None:
        """Account for the partition while stages work on it: what is made of a record is read before the record."""
        names = self._names
        queued = set(queued_pages(self._log, self._partition))
        rows = {row.record.site: row.record for row in self._read(names.sites, SiteState)}
        scores = list(self._read(SCORES, Score))
        verdicts = list(self._read(names.verdicts, Verdict))
        requests = self._requests()
        features = list(self._read(names.features, Features))
        pages = list(self._read(PAGES, Page))
        hits = list(self._read(HITS, Hit))
        if CRAWLED in self._audited.steps:
            self._hits_to_pages(hits, pages, queued)
        if MEASURED in self._audited.steps:
            fetched = [page for page in pages if page.record.outcome == "fetched"]
            fetched = self._in_window("measure", PAGES, fetched) if self._audited.run.remeasures else fetched
            self._one_to_one(MEASURED, PAGES, "measure", fetched, names.features, features)
        judged = self._in_window("judge", names.features, features)
        self._one_to_one("features -> verdicts", names.features, "judge", judged, names.verdicts, verdicts)
        self._articles_to_scores([v for v in verdicts if v.record.verdict == "article"], requests, scores)
        hits = self._in_window("tally", HITS, hits)
        scores = self._in_window("tally", SCORES, scores)
        self._sites_to_rows({hit.record.site for hit in hits}, rows, verdicts, scores)

    def _in_window(self, stage: str, topic: str, records: list[Kept[R]]) -> list[Kept[R]]:
        """Those that the run reads: from where it begins, and up to its stop unless it was live since and went on."""
        run, partition = self._audited.run, self._partition
        first, last = run.start.get(topic), run.stop.get(topic)
        begin = 0 if first is None else first[partition]
        end = _NEVER_MS
        if last is not None and not self._audited.is_live:
            end = max(last[partition], self._committed[self._audited.groups[stage], topic])
        found = [record for record in records if begin <= record.offset < end]
        self._last.pop(topic, None)
        if found:
            self._last[topic] = found[-1].offset
        return found

    def _requests(self) -> Requests:
        """What SCORE was asked for, at both priorities."""
        found = Requests()
        for topic in (SCORE_REQUESTS, REPLAY_REQUESTS):
            for request in self._read(topic, ScoreRequest):
                found.add(topic, request)
        return found

    def _hits_to_pages(self, hits: list[Kept[Hit]], pages: list[Kept[Page]], queued: set[str]) -> None:
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
        stage: str,
        upstream: Iterable[Kept[Any]],
        downstream: str,
        results: Sequence[Kept[Any]],
    ) -> None:
        step = self._report.steps[name]
        done = {r.record.id for r in results}
        # a log of before there were runs may have verdicts of several rulesets under the first
        of_first = self._audited.run.name == LIVE
        self._refuse_twice(name, results, _own_id if of_first else lambda record: record.id)
        sources = set()
        for source in upstream:
            sources.add(source.record.id)
            waiting = self._unread(stage, topic, source.offset)
            self._account(step, stage, topic, source, source.record.id in done, waiting, downstream)
        if self._log.beginning(topic)[self._partition] == 0:
            for result in results:
                if result.record.id not in sources:
                    self._break(name, result.record, f"{downstream} has it, {topic} does not")

    def _articles_to_scores(self, articles: list[Kept[Verdict]], requests: Requests, scores: list[Kept[Score]]) -> None:
        step = self._report.steps["articles -> scores"]
        detector = self._audited.run.detector
        by_others = {(s.record.site, s.record.text_digest) for s in scores}
        scored = {
            (s.record.site, s.record.text_digest): s.record for s in scores if detector in ("", s.record.detector)
        }
        asked = Counter(article.record.id for article in articles)  # once for each ruleset that judged the fetch
        if self._audited.alone or not (self._expired(SCORE_REQUESTS) or self._expired(REPLAY_REQUESTS)):
            # other runs may have asked for the fetch, or its text, as well: then it has a score for each request
            key, wanted = _fetch_and_detector, requests.of_fetch | asked
            self._refuse_twice(step.name, scores, key, lambda s: wanted[s.fetch_id])
        for article in articles:
            text = article.record.site, article.record.text_digest
            score = scored.get(text)
            if score is not None and score.abstain:
                step.reasons[score.abstain] += 1
            request = requests.of(article.record)
            waiting = request is not None and self._unread("score", request[0], request[1].offset)
            buried = request is not None and ("score", request[0], request[1].offset) in self._dead
            accounted = score is not None or waiting or buried
            if not accounted and (text in by_others or _may_be_unscored(article, request)):
                step.records += 1
                step.done += 1
                step.reasons["unscored"] += 1
            elif request is None:  # written in one transaction with the verdict, and kept for a shorter time
                self._account(step, "judge", self._names.verdicts, article, score is not None, False, SCORE_REQUESTS)
            else:
                topic, kept = request
                self._account(step, "score", topic, kept, score is not None, waiting, SCORES)

    def _expired(self, topic: str) -> bool:
        return self._log.beginning(topic)[self._partition] > 0

    def _sites_to_rows(
        self,
        sites: set[str],
        rows: Mapping[str, SiteState],
        verdicts: list[Kept[Verdict]],
        scores: list[Kept[Score]],
    ) -> None:
        step = self._report.steps["sites -> rows"]
        topics = (HITS, self._names.verdicts, SCORES)
        behind = any(self._unread("tally", topic, self._last[topic]) for topic in topics if topic in self._last)
        flags: Flags = {(s.record.site, s.record.text_digest, s.record.detector): s.record.flag for s in scores}
        of_site: dict[str, list[Verdict]] = {}
        for verdict in verdicts:
            of_site.setdefault(verdict.record.site, []).append(verdict.record)
        expired = self._expired(self._names.verdicts)
        for site in sorted(sites):
            step.records += 1
            row = rows.get(site)
            wrong = "no row" if row is None else contradiction(row, of_site.get(site, []), flags)
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
        self, step: Step, stage: str, topic: str, kept: Kept[R], done: bool, waiting: bool, downstream: str
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
        results: Iterable[Kept[R]],
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

    def _unread(self, stage: str, topic: str, offset: int) -> bool:
        """True where the committed offset of the stage's group has not passed this record."""
        return offset >= self._committed[self._audited.groups.get(stage, stage), topic]

    def _kept_since(self, topic: str) -> int:
        """Records older than this (ms) may have left the topic by retention; 0 where nothing has left."""
        if topic not in self._since:
            first = self._log.beginning(topic)[self._partition]
            oldest = next(iter(self._log.read(topic, self._partition, first)), None) if first else None
            self._since[topic] = 0 if first == 0 else _NEVER_MS if oldest is None else oldest.timestamp_ms
        return self._since[topic]

    def _read(self, topic: str, kind: type[R]) -> Iterator[Kept[R]]:
        """The records of a topic, without what is `_HEAVY`: the audit needs none of it in memory."""
        for message in self._log.read(topic, self._partition):
            self._last[topic] = message.offset
            if message.value is None or is_heartbeat(message):
                continue
            try:
                record = decode(kind, message.value)
            except BadRecord:
                continue  # the stage that read it has buried it: it counts as a dead letter there
            yield Kept(slim(record), message.offset, message.timestamp_ms, BY_REPLAY in message.headers)


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


def _may_be_unscored(article: Kept[Verdict], request: tuple[str, Kept[ScoreRequest]] | None) -> bool:
    """Whether a replay has not asked, or SCORE may have passed over a request that names a detector."""
    return article.by_replay if request is None else bool(request[1].record.detector)


def _fetch_and_detector(score: Score) -> Hashable:
    return score.fetch_id, score.detector


def _site_of(key: bytes) -> str:
    """The site in a record's key: the whole of it, or what stands before the space in a score's."""
    return key.decode(errors="replace").partition(" ")[0]


def _page_of(hit: Hit) -> str:
    try:
        return page_id(hit.url)
    except UnusableUrl:  # CRAWL has buried it: it counts as a dead letter
        return hit.id
