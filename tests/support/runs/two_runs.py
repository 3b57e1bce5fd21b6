"""Two runs in a log, as replays leave them: constructed pages judged by two real rulesets, and rows of their sites."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import xxhash

from filters.rules.judgement import judge
from filters.rules.ruleset import Ruleset, parse_ruleset
from stream.log.contract import Log, Output, Topic, partition_of
from stream.schema.records import Features, Record, SiteState, encode
from stream.schema.runs import LIVE, Alias, Run, RunStatus
from stream.schema.topics import FEATURES, all_topics
from tests.support.runs.replay_world import put_rows

PARTITIONS = 2
DETECTOR = "some-detector/1"
A, B = "older", "after"
EXTRACTED = '[rules.extracted]\nthreshold = "ok"\n'
RULESETS = {
    A: parse_ruleset(f'{EXTRACTED}[rules.language]\nthreshold = ["en"]\n[rules.min_tokens]\nthreshold = 50\n', "mild"),
    B: parse_ruleset(
        f"{EXTRACTED}[rules.min_tokens]\nthreshold = 100\n[rules.duplicate_share]\nthreshold = 0.3\n", "strict"
    ),
}


def page(
    number: int,
    tokens: float = 500,
    *,
    site: str = "a.example",
    repeats: float = 0.0,
    language: str = "en",
    text: str = "",
    **more: Any,
) -> Features:
    text = text or f"The text of page {number}."
    measures: dict[str, float | str | None] = {"tokens": tokens, "duplicate_share": repeats, "language": language}
    return Features(
        id=f"fetch-{number}",
        site=site,
        page_id=f"page-{number}",
        url=f"https://{site}/{number}",
        epoch="e1",
        text=text,
        text_digest=xxhash.xxh3_128_hexdigest(text.encode()),
        measures={**measures, "language_probability": 0.99},
        fetched_at=1000 + number,
        **more,
    )


def site(name: str, verdict: str, **more: Any) -> SiteState:
    """A site's row; `put_run` fills in the site and the run."""
    return SiteState(id=name, site=name, verdict=verdict, **more)


def begin(log: Log) -> None:
    log.create(all_topics(PARTITIONS, "e1"))


def put_run(
    log: Log,
    name: str,
    ruleset: Ruleset,
    pages: Sequence[Features],
    sites: Sequence[SiteState] | Mapping[str, str] = (),
    *,
    live: bool = False,
    finished: bool = True,
    **row: Any,
) -> Run:
    """Write a run: its row in `control`, its verdicts on the pages, and rows of its sites.

    Sites given as names with verdicts get their counts from the verdicts, with every article scored. `finished` commits
    the offsets of its groups at the ends of their topics, otherwise none.
    """
    defaults = {"detector": DETECTOR, "epoch": "e1", "state": RunStatus.DONE}
    run = Run(name=name, ruleset=ruleset.name, digest=ruleset.digest, **{**defaults, **row})
    names = run.names()
    log.create([Topic(topic, PARTITIONS) for topic in (names.verdicts, names.sites) if topic not in log.topics()])
    alias = [Alias(run=name, before=LIVE, number=1)] if live else []
    put_rows(log, run, *alias, rulesets=[(ruleset.digest, ruleset.source)])
    verdicts = [judge(features, ruleset, run=name, now_ms=5) for features in pages]
    outputs = [_output(names.verdicts, verdict) for verdict in verdicts]
    hit: dict[str, Any] = {"sources": ["file"], "best_rank": 1}
    if isinstance(sites, Mapping):
        pages_of = Counter(verdict.site for verdict in verdicts)
        articles_of = Counter(verdict.site for verdict in verdicts if verdict.verdict == "article")
        sites = [
            site(name, verdict, pages=pages_of[name], articles=articles_of[name], scored=articles_of[name], **hit)
            for name, verdict in sites.items()
        ]
    whose = {"ruleset": ruleset.name, "digest": ruleset.digest, "run": name}
    outputs += [
        _output(names.sites, msgspec.structs.replace(one, **whose, detector=one.detector or run.detector))
        for one in sites
    ]
    log.append(outputs)
    if finished:
        for group, topic in ((names.judge_group, names.features), (names.tally_group, names.verdicts)):
            log.reset(group, topic, log.end(topic))
    return run


def put_features(log: Log, pages: Sequence[Features], topic: str = FEATURES) -> None:
    log.append([_output(topic, features) for features in pages])


def _output(topic: str, record: Record) -> Output:
    return Output(topic, partition_of(record.site, PARTITIONS), record.site.encode(), encode(record))
