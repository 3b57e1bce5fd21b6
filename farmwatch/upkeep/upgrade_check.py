"""Measures stored pages with the installed versions and compares features, verdicts and scores; writes nothing."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing

import msgspec

from farmwatch.config.config import Config
from farmwatch.share.words import text_of
from filters.duplicates.lines import marked_lines
from filters.measure.epoch import feature_epoch, library_versions
from filters.measure.page_measures import PageMeasures, RawPage
from filters.measure.workers import ExtractionPool
from filters.rules.judgement import judge_and_text
from filters.site_memory.measurer import quality_of
from filters.site_memory.memory import Likeness
from replay.live.live_run import find_rules
from scoring.detectors.detector_set import DetectorSet
from scoring.detectors.registry import load_detectors
from scoring.rates.direct_share import direct_share
from stream.log.contract import Log
from stream.processing.topic_reader import records_of
from stream.schema.dates import DateFlag, PageDates
from stream.schema.records import Features, Page, Segments
from stream.schema.topics import PAGES
from stream.schema.vocabulary import KEPT

_CLOSE = 1e-6  # relative difference of floats that counts as none
_WINDOW = 4  # records of `pages` read at first for each wanted one: refused and failed ones are among them


class UpgradeCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The pages that were measured again, and how many of them differ."""

    pages: int
    texts: int  # with another text, or with a text only before or after
    features: dict[str, int]  # name -> pages with another value
    verdicts: dict[str, int]  # "article -> min_words" -> pages
    flags: int | None  # articles with another flag; None = not compared: the detector needs a device
    flagged_before: int
    flagged_after: int
    share_before: str  # of the sites of these pages
    share_after: str
    epoch: str  # of the live run
    installed_epoch: str
    versions: dict[str, str]  # installed

    @property
    def is_same(self) -> bool:
        """Whether nothing differs."""
        return not (self.texts or self.features or self.verdicts or self.flags)


def check_upgrade(log: Log, config: Config, pages: int) -> UpgradeCheck:
    """Measure the newest `pages` pages again. Raises MissingExtra, BadRuleset, and as `Log.read`."""
    live = find_rules(log, config)
    newest = list(newest_pages(log, live.names.features, pages))
    with closing(ExtractionPool(config.measure)) as pool:
        raw = [
            RawPage(page.final_url or page.url, page.encoding, page.body, fetched_at=page.fetched_at)
            for page, _ in newest
        ]
        measured = pool.map(raw)
    tokenizer = config.measure.tokenizer
    pairs = [(old, measured_again(old, new, tokenizer)) for (_, old), new in zip(newest, measured, strict=True)]
    features = Counter(name for old, new in pairs for name in differing(old, new))
    before, after = ([judge_and_text(pair[side], live.ruleset) for pair in pairs] for side in (0, 1))
    outcomes = [
        (_outcome(one.verdict, one.first_failed), _outcome(two.verdict, two.first_failed))
        for (one, _), (two, _) in zip(before, after, strict=True)
    ]
    verdicts = Counter(f"{one} -> {two}" for one, two in outcomes if one != two)
    texts = ([text for _, text in side] for side in (before, after))
    flags_before, flags_after = (_flags(config, live.run.detector, side) for side in texts)
    sites = [page.site for page, _ in newest]
    compared = flags_before is not None and flags_after is not None
    return UpgradeCheck(
        pages=len(pairs),
        texts=sum(old.text_digest != new.text_digest for old, new in pairs),
        features=dict(features.most_common()),
        verdicts=dict(verdicts.most_common()),
        flags=sum(a != b for a, b in zip(flags_before or (), flags_after or (), strict=True)) if compared else None,
        flagged_before=sum(flag is True for flag in flags_before or ()),
        flagged_after=sum(flag is True for flag in flags_after or ()),
        share_before=_share(sites, flags_before),
        share_after=_share(sites, flags_after),
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
    segments = new.segments
    if new.text == old.text and old.segments is not None and _is_part(old.segments, new.segments):
        segments = old.segments
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
        segments=segments,
        dates=new.dates,
        signals=new.signals,
    )


def _is_part(own: Sequence[Segments], found: Sequence[Segments]) -> bool:
    """Whether segments may be those found, without lines of earlier pages: of known kinds and paths, with all marks."""
    of_kinds = {(of_kind.kind, of_kind.path): of_kind for of_kind in found}
    return all(
        (known := of_kinds.get((of_kind.kind, of_kind.path))) is not None
        and {*marked_lines(known.without)} <= {*marked_lines(of_kind.without)}
        for of_kind in own
    )


def differing(old: Features, new: Features) -> Iterator[str]:
    """Names of the features that differ."""
    for name in ("blocks", "extract_path", "extract_error", "structure"):
        if not _same(getattr(old, name), getattr(new, name)):
            yield name
    if old.dates is not None and _of_page(old.dates) != new.dates:
        yield "dates"
    if old.signals is not None and old.signals != new.signals:
        yield "signals"
    if old.segments is not None and old.segments != new.segments:
        yield "segments"
    for name in sorted({*old.measures, *new.measures}):
        if not _same(old.measures.get(name), new.measures.get(name)):
            yield name
    for part in sorted({*old.quality, *new.quality}):
        if not _same(old.quality.get(part, []), new.quality.get(part, [])):
            yield f"quality of {part}"


def _of_page(dates: PageDates) -> PageDates:
    """The dates without the flag of a site, which a page alone does not have."""
    return msgspec.structs.replace(dates, flags=[flag for flag in dates.flags if flag != DateFlag.SITE_DAY])


def _same(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=_CLOSE, abs_tol=_CLOSE)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return one == other


def _outcome(verdict: str, first_failed: str) -> str:
    return verdict if verdict in KEPT else first_failed or verdict


def _flags(config: Config, detector: str, texts: Sequence[str]) -> list[bool | None] | None:
    """The flag of each text, None for no article; None in all if the detector is not here or needs a device."""
    if config.score.models or not detector:
        return None
    detectors = DetectorSet(load_detectors(config.score))
    if detector not in detectors.identities:
        return None
    place = detectors.identities.index(detector)
    scores = iter(detectors.score([text for text in texts if text]))
    said = [next(scores)[place] if text else None for text in texts]
    return [None if score is None or isinstance(score, Exception) else score.flag for score in said]


def _share(sites: Sequence[str], flags: Sequence[bool | None] | None) -> str:
    scored: Counter[str] = Counter()
    flagged: Counter[str] = Counter()
    for site, flag in zip(sites, flags or [None] * len(sites), strict=True):
        scored[site] += flag is not None
        flagged[site] += flag is True
    cells = Counter((count, flagged[site]) for site, count in scored.items() if count)
    return text_of(direct_share(cells)[0].remarks)
