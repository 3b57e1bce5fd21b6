"""A TALLY stage for tests, fed record by record, with its state; and records to feed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from scoring.sites.settings import TallySettings
from scoring.sites.sprt import SprtParams
from scoring.stages.tally import TallyStage
from stream.log.sql_state import MemoryState
from stream.processing.metrics import Meter
from stream.processing.stage import Context
from stream.processing.state import KeyedState
from stream.schema.records import Decision, Hit, Record, Score, SiteState, Verdict, decode
from tests.support.pages.page_records import text_score

SITE = "a.example"
DAY_MS = 86_400_000
DETECTOR = "fake/1"
FALCON = "binoculars/falcon-7b+falcon-7b-instruct@0a1b2c3d/bfloat16/512/accuracy"  # known to every site method
SPRT = SprtParams(p0=0.10, min_articles=4)


class Desk:
    """A stage with its state, fed record by record, each in its own batch."""

    def __init__(
        self, detector: str = DETECTOR, *, decides: bool = True, follows: bool = False, **settings: Any
    ) -> None:
        self.stage = TallyStage(detector, TallySettings(**settings), decides=decides, follows=lambda _: follows)
        self.store = MemoryState()
        self.outputs: list[tuple[str, Record]] = []
        self.gone: list[str] = []  # keys of tombstones
        self.meter = Meter()
        self.now_ms = 1000

    def feed(self, *records: Record) -> Desk:
        """Process the records, keeping outputs and state."""
        for record in records:
            self._batch(record)
            self.now_ms += 1
        return self

    def tick(self, now_ms: int) -> Desk:
        """Process a batch without a record, at a later time."""
        self.now_ms = now_ms
        self._batch(None)
        return self

    def _batch(self, record: Record | None) -> None:
        state = KeyedState(self.store)
        ctx = Context(3, state, self.meter, self.now_ms)
        if record is not None:
            self.stage.process(record, record, ctx)
        self.stage.tick({3: ctx})
        self.store.apply(state.changes())
        for output in ctx.outputs:
            assert output.partition == 3
            if output.value is None:
                self.gone.append(output.key.decode())
                continue
            assert record is None or output.key.split()[0] == record.site.encode()
            kind = Decision if output.topic == "decisions" else SiteState
            self.outputs.append((output.topic, decode(kind, output.value)))

    @property
    def rows(self) -> list[SiteState]:
        return [record for topic, record in self.outputs if topic == "sites" and isinstance(record, SiteState)]

    @property
    def terms(self) -> dict[int, SiteState]:
        """The newest row of each earlier term."""
        found = [record for topic, record in self.outputs if topic == "sites.terms" and isinstance(record, SiteState)]
        return {row.term: row for row in found}

    @property
    def decisions(self) -> list[Decision]:
        return [record for _, record in self.outputs if isinstance(record, Decision)]

    @property
    def row(self) -> SiteState:
        """The newest row, without its time."""
        return msgspec.structs.replace(self.rows[-1], updated_at=0)


def hit(number: int, rank: int = 1, source: str = "file", query: str = "q1", site: str = SITE, at: int = 0) -> Hit:
    url = f"https://{site}/{number}"
    return Hit(id=f"h{number}", site=site, url=url, query_id=query, source=source, rank=rank, fetched_at=at)


def page(
    number: int,
    *,
    article: bool = True,
    segments: bool = False,
    text: str | None = None,
    visit: int = 1,
    failed: str = "short_text",
    rules: str = "d1",
    first_at: int = 0,
    age: str = "",
    published: str = "",
    signals: Sequence[str] = (),
    needs_script: bool = False,
) -> Verdict:
    """A verdict on page `number`, fetched at `visit`, by the ruleset with the digest `rules`."""
    return Verdict(
        id=f"p{number}v{visit}",
        site=SITE,
        page_id=f"p{number}",
        url=f"https://{SITE}/{number}",
        verdict="segments" if segments else "article" if article else "dropped",
        first_failed="" if article and not segments else failed,
        ruleset="default" if rules == "d1" else "other",
        digest=rules,
        text_digest=text or f"t{number}",
        fetched_at=visit,
        first_at=first_at,
        age=age,
        published=published,
        signals=list(signals),
        needs_script=needs_script,
    )


def score(text: str, flag: bool | None, detector: str = DETECTOR, number: float = 1.0) -> Score:
    more = {"abstain": "too_short"} if flag is None else {"score": number}
    return text_score(SITE, text, detector, flag, **more)


def site_of(flags: Sequence[bool], at: Sequence[int]) -> list[Record]:
    """Articles with these flags, fetched at these times."""
    records: list[Record] = []
    for number, (flag, visit) in enumerate(zip(flags, at, strict=True)):
        records += [page(number, visit=visit), score(f"t{number}", flag)]
    return records
