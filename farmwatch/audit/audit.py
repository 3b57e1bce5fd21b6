"""`farmwatch doctor audit`: proves the result from the log, partition by partition.

Each hit is fetched or refused with a reason. Each fetched page has one features record. Each features record has one
verdict (for each ruleset that judged it). Each article has one score or one reason. Each site has one row that follows
exactly from its hits, verdicts and scores. The rate is that of these rows.

A record that a stage has not read yet is `waiting`, and so is one whose result may be in flight; one that retention
removed is `expired`; a row that depends on expired records is `unprovable`; a dead letter of the stage is a reason.
Anything else is broken. A record that retention removed before a stage read it is lost. A retry of a dead letter waits
until its stage has read it; then the letter is no reason any more.

A live JUDGE requests a score for each article that has none, so an article without either is broken. A replay requests
scores only while SCORE runs its detector, so an article of a replay (its verdict has a header) may be `unscored`. The
same holds if its request names a detector: SCORE skips the request if it runs others.

Verdicts and rows are those of one run. For a run that is not live, only its own steps are audited, and only its window:
from its start to its stop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from crawler.errors import UnusableUrl
from crawler.frontier.report import queued_pages
from crawler.web.urls import page_id
from farmwatch.audit.partition_reader import PartitionReader
from farmwatch.audit.report import AuditReport, AuditStep, BrokenRecord, RateRows
from farmwatch.audit.rows import Evidence, Methods, RowCheck, check_row
from farmwatch.audit.scope import (
    CRAWLED,
    JUDGED,
    MEASURED,
    SCORED,
    TALLIED,
    AuditScope,
    R,
    Requests,
    StoredRecord,
    find_scope,
)
from farmwatch.config.config import Config
from replay.rows.dead_letters import Settlements
from replay.rows.stated_accounts import StatedAccounts
from scoring.estimate.reviewed_share import Review
from scoring.stages.site_pages import JudgedPage
from scoring.stages.site_tally import term_key
from stream.log.contract import Clock, Log, wall_ms
from stream.schema.control import Control
from stream.schema.records import Features, Hit, Page, Record, Score, ScoreRequest, SiteState
from stream.schema.topics import DECISIONS, HITS, PAGES, REPLAY_REQUESTS, SCORE_REQUESTS, SCORES
from stream.schema.vocabulary import KEPT, FetchOutcome

_IMPORT = "import"  # Page.found_by of an imported page
_NO_PAGE = frozenset({"no_page", "refused", "failed"})  # outcomes of visits; an unchanged page had one before


def audit(
    log: Log, run: str = "", config: Config | None = None, clock: Clock = wall_ms, review: Review | None = None
) -> AuditReport:
    """Read the whole log and account for every record of a run (default: the live run).

    Holds the ids of one partition in memory. `config` has the settings of the rate, and the site method if the run has
    none; a `review` counts as in `farmwatch rate`. Raises NotFound for an unknown run or one without topics.
    """
    config = config or Config()
    scope = find_scope(log, Control(log), run)
    report = AuditReport({name: AuditStep(name) for name in scope.steps})
    stated = StatedAccounts(log)
    stated.refresh()
    methods, rates, settlements = Methods(scope.run, config), RateRows(stated), Settlements(log)
    for partition in range(log.topics()[HITS]):
        reader = PartitionReader(log, partition, report, scope, settlements, clock())
        _Partition(log, reader, report, scope, methods, rates).audit()
    if not scope.is_live:  # SCORE also serves other runs
        report.waiting["score"] = report.steps[SCORED].waiting
    report.rates = rates.checks(config.rate, clock(), review)
    return report


@dataclass(frozen=True, slots=True)
class _Partition:
    """The hits, pages, features, verdicts, scores and rows of some sites: they share a partition number."""

    log: Log
    reader: PartitionReader
    report: AuditReport
    scope: AuditScope
    methods: Methods
    rates: RateRows

    def audit(self) -> None:
        """Account for the partition while stages work on it: results are read before their sources."""
        names, steps, read = self.scope.names, self.scope.steps, self.reader.records
        queued = set(queued_pages(self.log, self.reader.partition)) if CRAWLED in steps else set()
        rows, unreadable = self.reader.rows(names.sites)
        of_terms, unreadable_terms = self.reader.rows(names.terms) if names.terms in self.log.topics() else ({}, set())
        earlier: dict[str, list[SiteState]] = {}
        for row in of_terms.values():
            earlier.setdefault(row.site, []).append(row)
        scores = list(read(SCORES, Score))
        verdicts = list(read(names.verdicts, JudgedPage))
        requests = Requests()
        for topic in (SCORE_REQUESTS, REPLAY_REQUESTS):
            for request in read(topic, ScoreRequest):
                requests.add(topic, request)
        features = list(read(names.features, Features))
        pages = list(read(PAGES, Page)) if MEASURED in steps else []
        hits = list(read(HITS, Hit))
        if CRAWLED in steps:
            self.reader.count_unread("crawl", DECISIONS, {hit.record.site for hit in hits if not hit.record.imported})
            self._hits_to_pages(hits, pages, queued)
        if MEASURED in steps:
            fetched = [page for page in pages if page.record.outcome == FetchOutcome.FETCHED]
            fetched = self._in_window("measure", PAGES, fetched) if self.scope.run.remeasures else fetched
            self._one_to_one(MEASURED, PAGES, "measure", fetched, names.features, features)
        judged = self._in_window("judge", names.features, features)
        self._one_to_one(JUDGED, names.features, "judge", judged, names.verdicts, verdicts)
        self._articles_to_scores([v for v in verdicts if v.record.verdict in KEPT], requests, scores)
        sites: dict[str, Evidence] = {}
        for hit in self._in_window("tally", HITS, hits):
            sites.setdefault(hit.record.site, Evidence()).hits.append(hit)
        for verdict in verdicts:
            sites.setdefault(verdict.record.site, Evidence()).verdicts.append(verdict)
        expected = {*sites, *rows, *earlier} - unreadable
        begin, end = self.reader.window("tally", SCORES)
        for score in scores:
            if score.offset >= begin:
                evidence = sites.setdefault(score.record.site, Evidence())
                (evidence.scores if score.offset < end else evidence.later).append(score)
        for site in sorted(expected):
            terms = self._site_to_row(site, rows.get(site), sites.get(site))
            of_term = {row.term: row for row in earlier.get(site, ())}
            for row in of_term.values():
                kept = sites.get(site, Evidence())
                check = check_row(site, row, kept, self.methods, self.scope, self.reader, is_newest=False)
                self._count_row(site, sites.get(site), check)
            if len({row.term_end - row.term_start for row in of_term.values()}) < 2:  # else another setting made some
                missing = {
                    term for term in terms if term not in of_term and term_key(site, term) not in unreadable_terms
                }
                for term in sorted(missing):
                    check = RowCheck(None, f"no row of its term {term}", is_proved=False)
                    self._count_row(site, sites.get(site), check)

    def _in_window(self, stage: str, topic: str, records: list[StoredRecord[R]]) -> list[StoredRecord[R]]:
        begin, end = self.reader.window(stage, topic)
        return [record for record in records if begin <= record.offset < end]

    def _hits_to_pages(self, hits: list[StoredRecord[Hit]], pages: list[StoredRecord[Page]], queued: set[str]) -> None:
        step = self.report.steps[CRAWLED]
        crawled: dict[str, Page] = {}  # page id -> its last visit with a page, else its last visit
        for page in (p.record for p in pages if p.record.found_by != _IMPORT):
            if page.outcome not in _NO_PAGE or crawled.get(page.page_id, page).outcome in _NO_PAGE:
                crawled[page.page_id] = page
        imported = {hit: p.record for p in pages if p.record.found_by == _IMPORT for hit in p.record.hits}
        self._refuse_twice(step.name, pages, lambda page: page.id)
        seen: set[str] = set()
        for hit in hits:
            unread = self.reader.is_unread("crawl", HITS, hit.offset)  # already counted as waiting
            if unread and hit.record.imported:  # CRAWL will skip it
                self.report.waiting["crawl"] -= 1
            wanted = hit.record.id
            if not hit.record.imported:
                with suppress(UnusableUrl):  # CRAWL dead-lettered it
                    wanted = page_id(hit.record.url)
            if wanted in seen:
                continue
            seen.add(wanted)
            found = (imported if hit.record.imported else crawled).get(wanted)  # an import has its page at once
            if found is not None and found.outcome in _NO_PAGE:
                if wanted in queued:
                    found = None  # refused once, queued for another visit
                else:
                    step.reasons[found.reason] += 1
            if found is None and wanted in queued and not unread:
                self.report.waiting["crawl"] += 1
            waiting = wanted in queued or unread
            self._account(step, "crawl", HITS, hit, done=found is not None, waiting=waiting, downstream=PAGES)

    def _one_to_one(
        self,
        name: str,
        topic: str,
        stage: str,
        upstream: Iterable[StoredRecord[Any]],
        downstream: str,
        results: Sequence[StoredRecord[Any]],
    ) -> None:
        step = self.report.steps[name]
        done = {r.record.id for r in results}
        earlier = self.scope.run.earlier_epochs  # an earlier epoch that returned has measured its pages twice
        self._refuse_twice(
            name,
            results,
            lambda record: (record.id, _epoch_of(record)),
            lambda record: 1 + (_epoch_of(record) in earlier),
        )
        sources = set()
        for source in upstream:
            sources.add(source.record.id)
            waiting = self.reader.is_unread(stage, topic, source.offset)
            self._account(step, stage, topic, source, source.record.id in done, waiting, downstream)
        if not self._expired(topic):
            for result in results:
                if result.record.id not in sources and not self.reader.is_damaged(topic, result.record.site):
                    self._break(name, result.record, f"in {downstream}, but not in {topic}")

    def _articles_to_scores(
        self, articles: list[StoredRecord[JudgedPage]], requests: Requests, scores: list[StoredRecord[Score]]
    ) -> None:
        step = self.report.steps[SCORED]
        detector = self.scope.run.detector
        by_others = {(s.record.site, s.record.text_digest) for s in scores}
        scored = {
            (s.record.site, s.record.text_digest): s.record for s in scores if detector in ("", s.record.detector)
        }
        expected = Counter(article.record.id for article in articles)  # one for each ruleset that judged the fetch
        if self.scope.is_only_run or not (self._expired(SCORE_REQUESTS) or self._expired(REPLAY_REQUESTS)):
            # other runs may have requested the same fetch or text: then it has a score for each request
            wanted = requests.of_fetch | expected
            self._refuse_twice(step.name, scores, lambda s: (s.fetch_id, s.detector), lambda s: wanted[s.fetch_id])
        for article in articles:
            text = article.record.site, article.record.text_digest
            score = scored.get(text)
            if score is not None and score.abstain:
                step.reasons[score.abstain] += 1
            request = requests.of(article.record)
            waiting = request is not None and self.reader.is_unread("score", request[0], request[1].offset)
            is_dead = request is not None and self.reader.is_dead("score", request[0], request[1].offset)
            accounted = score is not None or waiting or is_dead
            # no request yet, or a request for another detector
            may_lack_it = article.by_replay if request is None else bool(request[1].record.detector)
            if not accounted and (text in by_others or may_lack_it):
                step.records += 1
                step.done += 1
                step.reasons["unscored"] += 1
            elif request is None:  # it was written with the verdict, and expires earlier
                self._account(
                    step, "judge", self.scope.names.verdicts, article, score is not None, False, SCORE_REQUESTS
                )
            else:
                topic, kept = request
                self._account(step, "score", topic, kept, score is not None, waiting, SCORES)

    def _expired(self, topic: str) -> bool:
        return self.reader.beginning(topic) > 0

    def _site_to_row(self, site: str, row: SiteState | None, evidence: Evidence | None) -> Sequence[int]:
        """Account for the row of a site's newest term; returns the earlier terms that the log has."""
        check = check_row(site, row, evidence or Evidence(), self.methods, self.scope, self.reader)
        if check.is_proved and evidence is None:
            check = check._replace(fault="the log has no record of this site")
        state = self._count_row(site, evidence, check)
        if state == "done":
            self.rates.add(row, check.row)
        elif state == "broken":
            self.rates.add(row, None if evidence is None else check.row)
        elif row is not None:
            self.rates.take(row)
        return check.earlier

    def _count_row(self, site: str, evidence: Evidence | None, check: RowCheck) -> str:
        """Count a row in the step; returns the name of the count."""
        step = self.report.steps[TALLIED]
        step.records += 1
        if check.is_proved and not check.fault:
            state = "done"
        elif evidence is not None and evidence.is_unread(self.reader, self.scope.names.verdicts):
            state = "waiting"
        elif check.fault and self.reader.is_in_flight(self.scope.names.sites):
            state = "waiting"
            self.report.waiting["tally"] += 1
        elif not check.fault:
            state = "unprovable"
        elif site in self.reader.given_up:
            state = "dead"
        else:
            state = "broken"
            self.report.broken.append(BrokenRecord(step.name, site, site, check.fault, check.differences))
        setattr(step, state, getattr(step, state) + 1)
        return state

    def _account(
        self, step: AuditStep, stage: str, topic: str, kept: StoredRecord[R], done: bool, waiting: bool, downstream: str
    ) -> None:
        record = kept.record  # a text is requested and scored once per site
        needed = record.text_digest if isinstance(record, JudgedPage | ScoreRequest) else record.id
        step.records += 1
        if done:
            step.done += 1
        elif self.reader.is_dead(stage, topic, kept.offset):
            step.dead += 1
        elif waiting:
            step.waiting += 1
        elif self.reader.may_be_unreadable(downstream, kept.record.site, needed):
            step.done += 1
        elif kept.timestamp_ms < self.reader.kept_since(downstream):
            step.expired += 1
        elif self.reader.is_in_flight(downstream):
            step.waiting += 1
            self.report.waiting[stage] += 1
        else:
            self._break(step.name, kept.record, f"nothing in {downstream}")

    def _refuse_twice(
        self,
        step: str,
        results: Iterable[StoredRecord[R]],
        key: Callable[[R], Hashable],
        wanted: Callable[[R], int] = lambda _: 1,
    ) -> None:
        seen: Counter[Hashable] = Counter()
        for result in results:
            record = result.record
            name = key(record)
            seen[name] += 1
            if seen[name] == max(1, wanted(record)) + 1:
                self._break(step, record, "written twice")

    def _break(self, step: str, record: Record, how: str) -> None:
        self.report.steps[step].broken += 1
        self.report.broken.append(BrokenRecord(step, record.id, record.site, how))


def _epoch_of(record: Record) -> str:
    return record.epoch if isinstance(record, Features | JudgedPage) else ""
