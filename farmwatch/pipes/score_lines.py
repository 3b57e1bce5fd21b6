"""The pipes from texts to the rate: `score`, `tally` and `estimate`."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from farmwatch.share.words import line_fields
from farmwatch.terminal.jsonl import JsonLines, batches, encode_lines, write_bytes, write_line
from farmwatch.terminal.messages import message
from farmwatch.terminal.parallel import ordered_map
from scoring.detectors.detector_set import DetectorSet
from scoring.detectors.registry import load_detectors
from scoring.detectors.settings import ScoreSettings
from scoring.errors import DeviceLost
from scoring.estimate.error_counts import ErrorCounts
from scoring.interface import name_of
from scoring.sites.registry import site_method
from scoring.sites.settings import TallySettings
from scoring.stages.pipes import FlagLine, SiteVerdictLine, TextLine, estimate_sites, tally_scores
from stream.text.user_errors import Exit, UsageError
from stream.text.wording import counted

T = TypeVar("T")
_TEXTS_AT_ONCE = 256
_UNNAMED = "lite-ngram"  # the detector if neither lines nor command name one


class TextOfSite(TextLine, frozen=True, kw_only=True):
    """Input of `score`: the fields besides the text are copied to the output."""

    site: str | None = None
    url: str | None = None


class FlagOfDetector(FlagLine, frozen=True, kw_only=True):
    """Input of `tally`: with the detector of the flag, if the line names it."""

    detector: str = ""


def score_lines(files: Sequence[Path], settings: ScoreSettings, jobs: int = 1) -> Exit:
    """Texts to scores, a line per text and detector, in `jobs` processes (0: one per core); warnings go to stderr.

    Pairs of language models run only in this process, for any `jobs`, because a device holds them once. Raises as
    `load_detectors`, and DeviceGone.
    """
    detectors = load_detectors(settings)
    for detector in detectors:
        message(f"{name_of(detector.identity)}: {detector.warning}")
    detector_set = DetectorSet(detectors)
    lines = JsonLines(files, TextOfSite, "score", bar=True)
    placed = batches(lines, _TEXTS_AT_ONCE)
    first = list(itertools.islice(placed, 1))  # a short input is scored before a process would have started
    for batch in first:
        _write(lines, _scored(detector_set, batch))
    jobs = 1 if settings.uses_pair else jobs or os.cpu_count() or 1
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


def _scored_by_worker(placed: Sequence[tuple[str, TextOfSite]]) -> _Scored:
    return _scored(_of_worker[0], placed)


def _scored(detector_set: DetectorSet, placed: Sequence[tuple[str, TextOfSite]]) -> _Scored:
    """The lines of a batch, with the fields besides the texts. Raises DeviceGone for a device that fails each time."""
    texts = [text.text for _, text in placed]
    while True:
        try:
            results = detector_set.score(texts)
            break
        except DeviceLost as error:
            message(f"the device was lost, its models are loaded again: {error}")
    rows: list[dict[str, object]] = []
    bad: list[tuple[str, str]] = []
    for (place, text), scores in zip(placed, results, strict=True):
        good = [said for said in scores if not isinstance(said, Exception)]
        if len(good) < len(scores):
            bad.append((place, str(next(said for said in scores if isinstance(said, Exception)))))
            continue
        through = {name: value for name in ("site", "url") if (value := getattr(text, name)) is not None}
        for identity, scored in zip(detector_set.identities, good, strict=True):
            rows.append({"id": str(text.id), "detector": identity, **msgspec.structs.asdict(scored), **through})
    return _Scored(encode_lines(rows), bad)


def _write(lines: JsonLines[TextOfSite], scored: _Scored) -> None:
    write_bytes(scored.lines)
    for place, reason in scored.bad:
        lines.bad(place, reason)


def tally_lines(files: Sequence[Path], detector: str, settings: TallySettings) -> Exit:
    """Page scores to site verdicts, of one detector: `detector` (name or identity), or else the only named one.

    Lines of others are counted and skipped. A line without a detector belongs to `detector`; without that, it is bad if
    other lines name one. Raises UsageError if the detector is ambiguous, NoSiteTest, BadSiteNumbers.
    """
    lines = JsonLines(files, FlagOfDetector, "tally")
    placed = list(lines)
    named = list(dict.fromkeys(line.detector for _, line in placed if line.detector))
    meant = [identity for identity in named if detector in ("", identity, name_of(identity))]
    if len(meant) > 1:
        several = " and ".join(meant[:4])
        raise UsageError(f"these are scores of {several}, which are never pooled: choose one by --detector")
    if named and not meant:
        raise UsageError(f"--detector {detector!r}: these are scores of {', '.join(named[:4])}")
    of = meant[0] if meant else detector
    scores = []
    others = 0
    for place, line in placed:
        whose = line.detector or (of if detector else "")
        if whose == of:
            scores.append(FlagLine(site=line.site, flag=line.flag, score=line.score))
        elif whose:
            others += 1
        else:
            lines.bad(place, f"score of a detector that is not named, not of {of}", "detector")
    if others:
        message(f"{counted(others, 'score')} of other detectors than {of} passed over")
    of = of or _UNNAMED
    method = site_method(settings, of)
    for site in tally_scores(scores, method):
        judged_by = {"detector": of, "method": method.name, "method_digest": method.digest}
        write_line({**msgspec.structs.asdict(site), **judged_by})
    return lines.end()


def estimate_lines(files: Sequence[Path], errors: ErrorCounts | None, confidence: float) -> Exit:
    """Site verdicts to the rate. Raises BadParameters for invalid error counts or confidence."""
    lines = JsonLines(files, SiteVerdictLine, "estimate")
    write_line(line_fields(estimate_sites((line for _, line in lines), errors, confidence)))
    return lines.end()
