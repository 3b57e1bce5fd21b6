"""TALLY: hits, verdicts and scores of a site → its row, and the word to CRAWL that the site is decided."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import msgspec
import xxhash

from scoring.canary import is_canary
from scoring.method_choice import site_method
from scoring.settings import TallySettings
from scoring.site_tally import SiteTally, hit_key, stop_reason
from scoring.site_verdict import SprtParams
from stream import topics
from stream.records import Decision, Hit, Record, Score, Verdict, encode
from stream.stage import Context, Stage


class TallyStage(Stage):
    """Folds what is known of each site into one row. State: a `SiteTally` per site, and a mark per counted hit.

    Emits a row when it differs from the one emitted last, and a stop decision once per site: as soon as the site is
    decided, or has articles enough; a mixed site goes on for longer. Until the site closes, later pages may still
    correct the row. Scores of another detector than `detector` are kept, counted apart, and left out of the row:
    identities are never pooled. Canary sites are sites like any other here.
    """

    name: ClassVar[str] = "tally"
    inputs: ClassVar[Mapping[str, type[Record]]] = {
        topics.HITS: Hit,
        topics.VERDICTS: Verdict,
        topics.SCORES: Score,
    }
    forward: ClassVar[str | None] = None
    heartbeat_input: ClassVar[str | None] = topics.SCORES  # those on hits and verdicts have not gone all the way
    store: str | None = topics.TALLY_STORE

    def __init__(
        self,
        detector: str,
        settings: TallySettings | None = None,
        run: str = "live",
        site_test: SprtParams | None = None,
        canaries: Callable[[Mapping[int, Context]], None] | None = None,
    ) -> None:
        """Tally scores of the identity `detector` (a whole identity, threshold tag included), and send canaries.

        `site_test` is that of the detector's threshold set, if it has one. Raises as `site_method`: NoSiteTest,
        BadSiteNumbers.
        """
        self._settings = settings or TallySettings()
        self._detector = detector
        self._method = site_method(self._settings, detector, site_test)
        self._run = run
        self._canaries = canaries

    def tick(self, contexts: Mapping[int, Context]) -> None:
        """Send the canary pages that are due."""
        if self._canaries is not None:
            self._canaries(contexts)

    def process(self, record: Any, prepared: Any, ctx: Context) -> None:
        """Put the record in its place in the site's tally; emit what that changes."""
        del prepared  # nothing here is slow
        result = self._kind(record, ctx)
        ruleset = record.ruleset if isinstance(record, Verdict) else ""
        ctx.meter.count("stage_records", run=ctx.run or self._run, ruleset=ruleset, stage=self.name, result=result)
        if result == "repeated_hit":
            return
        key = record.site.encode()
        before = ctx.state.get(key)
        tally = SiteTally.load(before, self._detector)
        if isinstance(record, Hit):
            ctx.state.put(hit_key(record), b"1")
            tally.add_hit(record)
        elif isinstance(record, Verdict):
            tally.add_verdict(record)
        else:
            tally.add_score(record, self._detector)
        self._emit(record.site, tally, ctx)
        after = tally.dump()
        if after != before:
            ctx.state.put(key, after)

    def _kind(self, record: Hit | Verdict | Score, ctx: Context) -> str:
        """What the record is to the tally: the word for it in the metrics."""
        if isinstance(record, Hit):
            return "repeated_hit" if ctx.state.get(hit_key(record)) is not None else "hit"
        if isinstance(record, Verdict):
            return record.verdict
        return "score" if record.detector == self._detector else "other_detector"

    def _emit(self, site: str, tally: SiteTally, ctx: Context) -> None:
        verdict = self._method.decide(tally.evidence(self._detector))
        row = tally.row(site, self._detector, verdict, self._method.digest, self._run)
        digest = xxhash.xxh3_128_digest(encode(row))
        if digest != tally.emitted:
            tally.emitted = digest
            ctx.emit(topics.SITES, msgspec.structs.replace(row, updated_at=ctx.now_ms))
        if tally.stopped or is_canary(site):  # nobody crawls a canary site
            return
        reason = stop_reason(verdict, self._settings.enough_articles, self._settings.enough_if_mixed)
        if reason:
            tally.stopped = reason
            ctx.emit(topics.DECISIONS, Decision(id=site, site=site, stop=True, reason=reason, decided_at=ctx.now_ms))
