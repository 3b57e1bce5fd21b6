"""Measures stored pages with the installed versions and compares features and verdicts; writes nothing."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import closing

import msgspec

from farmwatch.config.config import Config
from filters.measure.epoch import feature_epoch, library_versions
from filters.measure.page_measures import PageMeasures, RawPage
from filters.measure.workers import ExtractionPool
from filters.rules.judgement import judge_and_text
from filters.site_memory.measurer import quality_of
from filters.site_memory.memory import Likeness
from replay.live.live_run import find_rules
from stream.log.contract import Log
from stream.processing.topic_reader import records_of
from stream.schema.records import Features, Page, Verdict
from stream.schema.topics import PAGES
from stream.schema.vocabulary import PageClass

_CLOSE = 1e-6  # relative difference of floats that counts as none
_WINDOW = 4  # records of `pages` read at first for each wanted one: refused and failed ones are among them


class UpgradeCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The pages that were measured again, and how many of them differ."""

    pages: int
    texts: int  # with another text, or with a text only before or after
    features: dict[str, int]  # name -> pages with another value
    verdicts: dict[str, int]  # "article -> min_words" -> pages
    epoch: str  # of the live run
    installed_epoch: str
    versions: dict[str, str]  # installed

    @property
    def is_same(self) -> bool:
        """Whether nothing differs."""
        return not (self.texts or self.features or self.verdicts)


def check_upgrade(log: Log, config: Config, pages: int) -> UpgradeCheck:
    """Measure the newest `pages` pages again. Raises MissingExtra, BadRuleset, and as `Log.read`."""
    live = find_rules(log, config)
    newest = list(newest_pages(log, live.names.features, pages))
    with closing(ExtractionPool(config.measure)) as pool:
        raw = [RawPage(page.final_url or page.url, page.encoding, page.body) for page, _ in newest]
        measured = pool.map(raw)
    tokenizer = config.measure.tokenizer
    pairs = [(old, measured_again(old, new, tokenizer)) for (_, old), new in zip(newest, measured, strict=True)]
    features: Counter[str] = Counter()
    for old, new in pairs:
        features.update(differing(old, new))
    before, after = ([_outcome(judge_and_text(pair[side], live.ruleset)[0]) for pair in pairs] for side in (0, 1))
    verdicts = Counter(f"{one} -> {two}" for one, two in zip(before, after, strict=True) if one != two)
    return UpgradeCheck(
        pages=len(pairs),
        texts=sum(old.text_digest != new.text_digest for old, new in pairs),
        features=dict(features.most_common()),
        verdicts=dict(verdicts.most_common()),
        epoch=live.run.epoch,
        installed_epoch=feature_epoch(config.measure),
        versions=library_versions(config.measure),
    )


def newest_pages(log: Log, topic: str, pages: int) -> Iterator[tuple[Page, Features]]:
    """The newest pages with features on `topic`, of each partition as many, up to `pages` in all."""
    bounds = list(enumerate(zip(log.beginning(topic), log.end(topic), strict=True)))
    each = -(-pages // max(1, sum(first < end for _, (first, end) in bounds)))
    for partition, (first, end) in bounds:
        newest = records_of(Features, log.read(topic, partition, max(first, end - each), end))
        features = {record.id: record for _, record in newest}
        first, stop = log.beginning(PAGES)[partition], log.end(PAGES)[partition]
        window = _WINDOW * len(features)
        while features and first < stop:
            start = max(first, stop - window)
            for _, page in records_of(Page, log.read(PAGES, partition, start, stop)):
                if (known := features.pop(page.id, None)) is not None:
                    yield page, known
            stop, window = start, 2 * window


def measured_again(old: Features, new: PageMeasures, tokenizer: str) -> Features:
    """The features of a page by these measures; its likeness to earlier pages stays."""
    template_lines = old.template_lines if new.text == old.text else b""
    likeness = {name: old.measures.get(name) for name in Likeness().measures()}
    return msgspec.structs.replace(
        old,
        text=new.text,
        text_digest=new.text_digest,
        blocks=new.blocks,
        quality=quality_of(new, template_lines, tokenizer),
        structure=new.structure,
        extract_path=new.path,
        extract_error=new.error,
        measures={**new.measures, **likeness},
        template_lines=template_lines,
    )


def differing(old: Features, new: Features) -> Iterator[str]:
    """Names of the features that differ."""
    for name in ("blocks", "extract_path", "extract_error"):
        if getattr(old, name) != getattr(new, name):
            yield name
    for name in sorted({*old.measures, *new.measures}):
        if not _same(old.measures.get(name), new.measures.get(name)):
            yield name
    for part in sorted({*old.quality, *new.quality}):
        values = old.quality.get(part, []), new.quality.get(part, [])
        if len(values[0]) != len(values[1]) or not all(map(_same, *values)):
            yield f"quality of {part}"
    if len(old.structure) != len(new.structure) or not all(map(_same, old.structure, new.structure)):
        yield "structure"


def _same(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=_CLOSE, abs_tol=_CLOSE)
    return one == other


def _outcome(judged: Verdict) -> str:
    return judged.verdict if judged.verdict == PageClass.ARTICLE else judged.first_failed or judged.verdict
