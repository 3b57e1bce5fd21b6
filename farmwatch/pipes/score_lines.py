"""The pipes from texts to the rate: `score`, `tally` and `estimate`."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple, Self, TypeVar

import msgspec

from farmwatch.share.review_labels import read_review
from farmwatch.share.words import line_fields, text_of
from farmwatch.terminal.jsonl import JsonLines, batches, encode_lines, write_bytes, write_line
from farmwatch.terminal.messages import message
from farmwatch.terminal.parallel import ordered_map
from scoring.detectors.detector_set import DetectorSet
from scoring.detectors.registry import load_detectors
from scoring.detectors.settings import ScoreSettings
from scoring.errors import DeviceLost
from scoring.estimate.error_counts import ErrorCounts
from scoring.interface import Detector, name_of
from scoring.rates.settings import RateSettings
from scoring.rates.site_rates import EstimateLine
from scoring.sites.registry import site_method
from scoring.sites.settings import TallySettings
from scoring.stages.pipes import FlagLine, SiteVerdictLine, TallyLine, TextLine, estimate_sites, tally_scores
from stream.log.contract import wall_ms
from stream.text.user_errors import Exit, UsageError
from stream.text.wording import counted

T = TypeVar("T")
_TEXTS_AT_ONCE = 256
_UNNAMED = "lite-ngram"  # the detector if neither lines nor command name one


class ScoreLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Output of `score`: the fields of `TextScore`, and those that its text came with."""

    id: str
    detector: str  # identity
    score: float | None
    p_llm: float | None
    flag: bool | None
    abstain: str
    tokens: int
    windows: int = 0
    windows_flagged: int | None = None
    windows_spread: float | None = None
    site: str | None = None
    url: str | None = None


def score_lines(files: Sequence[Path], settings: ScoreSettings, jobs: int = 1) -> Exit:
    """Texts to scores, a line per text and detector, in `jobs` processes (0: one per core); warnings go to stderr.

    Language models run only in this process, for any `jobs`, because a device holds them once. Raises as
    `load_detectors`, and DeviceGone.
    """
    detectors = load_detectors(settings)
    for detector in detectors:
        message(f"{name_of(detector.identity)}: {detector.warning}")
    detector_set = DetectorSet(detectors)
    lines = JsonLines(files, TextLine, "score", bar=True)
    placed = batches(lines, _TEXTS_AT_ONCE)
    first = list(itertools.islice(placed, 1))  # a short input is scored before a process would have started
    for batch in first:
        _write(lines, _scored(detector_set, batch))
    jobs = 1 if settings.models else jobs or os.cpu_count() or 1
    rest: Iterator[_Scored] = (_scored(detector_set, batch) for batch in placed)
    if jobs > 1:
        rest = ordered_map(_scored_by_worker, placed, jobs, _load_worker, settings)
    for scored in rest:
        _write(lines, scored)
    detector_set.close()
    return lines.end()


class _Scored(NamedTuple):
    """A batch's lines of output, and the errors of texts without one: (place, reason)."""

    lines: bytes
    bad: list[tuple[str, str]]


_of_worker: list[DetectorSet] = []  # in a worker process: the loaded detectors


def _load_worker(settings: ScoreSettings) -> None:
    _of_worker.append(DetectorSet(load_detectors(settings)))


def _scored_by_worker(placed: Sequence[tuple[str, TextLine]]) -> _Scored:
    return _scored(_of_worker[0], placed)


def _scored(detector_set: DetectorSet, placed: Sequence[tuple[str, TextLine]]) -> _Scored:
    """The lines of a batch. Raises DeviceGone for a device that fails each time."""
    rows: list[ScoreLine] = []
    bad: list[tuple[str, str]] = []
    of_texts = scores_of(detector_set, [text for _, text in placed])
    for (place, _), scores in zip(placed, of_texts, strict=True):
        if isinstance(scores, Exception):
            bad.append((place, str(scores)))
        else:
            rows += scores
    return _Scored(encode_lines(rows), bad)


def scores_of(detector_set: DetectorSet, texts: Sequence[TextLine]) -> Iterator[list[ScoreLine] | Exception]:
    """Of each text, its score by each detector, or the error of a text that one cannot read. Raises DeviceGone."""
    while True:
        try:
            results = detector_set.score([text.text for text in texts])
            break
        except DeviceLost as error:
            message(f"the device was lost, its models are loaded again: {error}")
    for text, scores in zip(texts, results, strict=True):
        good = [said for said in scores if not isinstance(said, Exception)]
        if len(good) < len(scores):
            yield next(said for said in scores if isinstance(said, Exception))
            continue
        yield [
            ScoreLine(id=str(text.id), detector=of, **msgspec.structs.asdict(scored), site=text.site, url=text.url)
            for of, scored in zip(detector_set.identities, good, strict=True)
        ]


def _write(lines: JsonLines[TextLine], scored: _Scored) -> None:
    write_bytes(scored.lines)
    for place, reason in scored.bad:
        lines.bad(place, reason)


def score_texts(texts: Sequence[TextLine], detectors: Sequence[Detector]) -> list[ScoreLine]:
    """A score per text and detector. Raises DeviceGone, PoisonText for a text that a detector cannot read."""
    scores: list[ScoreLine] = []
    with closing(DetectorSet(detectors)) as detector_set:
        for first in range(0, len(texts), _TEXTS_AT_ONCE):
            for of_text in scores_of(detector_set, texts[first : first + _TEXTS_AT_ONCE]):
                if isinstance(of_text, Exception):
                    raise of_text
                scores += of_text
    return scores


def tally_lines(files: Sequence[Path], detector: str, settings: TallySettings) -> Exit:
    """Page scores to site verdicts, of the detector that `flags_of` chooses. Raises as that and `judge_sites`."""
    lines = JsonLines(files, FlagLine, "tally")
    placed = list(lines)
    flags = flags_of([line for _, line in placed], detector)
    for number in flags.unnamed:
        lines.bad(placed[number][0], f"score of a detector that is not named, not of {flags.detector}", "detector")
    if flags.others:
        message(f"{counted(flags.others, 'score')} of other detectors than {flags.detector} passed over")
    for site in judge_sites(flags, settings):
        write_line(site)
    return lines.end()


class Flags(NamedTuple):
    """The flags of one detector, in page order."""

    detector: str  # identity, or a name
    lines: list[FlagLine]
    others: int  # lines of other detectors
    unnamed: list[int]  # places of lines that name none, where others do


def flags_of(lines: Sequence[FlagLine], detector: str) -> Flags:
    """The lines of `detector` (name or identity), or else of the only named one; those of others are left out.

    A line without a detector belongs to `detector`. Raises UsageError if the detector is ambiguous, or of no line.
    """
    named = list(dict.fromkeys(line.detector for line in lines if line.detector))
    meant = [identity for identity in named if detector in ("", identity, name_of(identity))]
    if len(meant) > 1:
        several = " and ".join(meant[:4])
        raise UsageError(f"these are scores of {several}, which are never pooled: choose one by --detector")
    if named and not meant:
        raise UsageError(f"--detector {detector!r}: these are scores of {', '.join(named[:4])}")
    of = meant[0] if meant else detector
    flags: list[FlagLine] = []
    others, unnamed = 0, []
    for number, line in enumerate(lines):
        whose = line.detector or (of if detector else "")
        if whose == of:
            flags.append(line)
        elif whose:
            others += 1
        else:
            unnamed.append(number)
    return Flags(of or _UNNAMED, flags, others, unnamed)


def judge_sites(flags: Flags, settings: TallySettings) -> list[TallyLine]:
    """Site verdicts, in the order of the sites. Raises NoSiteTest, BadSiteNumbers."""
    return tally_scores(flags.lines, site_method(settings, flags.detector), flags.detector)


class ShareEstimate(EstimateLine, frozen=True, kw_only=True):
    """The fields of the output of `estimate`."""

    @classmethod
    def of_line(cls, line: EstimateLine) -> Self:
        return cls(**{name: getattr(line, name) for name in EstimateLine.__struct_fields__})

    @property
    def open(self) -> int:
        """The sites with a scored article that are not decided."""
        return self.open_of_scored

    @property
    def text(self) -> str:
        """The share in words."""
        return text_of(self.remarks)

    @property
    def judged_text(self) -> str:
        """The judged share in words."""
        return text_of(self.judged_remarks)


def estimate_lines(files: Sequence[Path], errors: ErrorCounts | None, confidence: float, review: str) -> Exit:
    """Site verdicts to the rate. Raises BadParameters for invalid error counts or confidence."""
    labels = read_review(RateSettings(review=review), wall_ms())
    lines = JsonLines(files, SiteVerdictLine, "estimate")
    write_line(line_fields(estimate_sites((line for _, line in lines), errors, confidence, labels)))
    return lines.end()
