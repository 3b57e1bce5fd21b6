"""The pipes from texts to the rate: `score`, `tally` and `estimate`."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from farmwatch.errors import Exit
from farmwatch.in_order import in_order
from farmwatch.jsonl import JsonLines, batches, encode_lines, write_bytes, write_line
from farmwatch.messages import message
from scoring.detector import Detector, load_detector
from scoring.method_choice import site_method
from scoring.pipes import FlagLine, SiteVerdictLine, TextLine, estimate_sites, score_texts, tally_scores
from scoring.rate import ErrorCounts
from scoring.settings import TallySettings

T = TypeVar("T")
_TEXTS_AT_ONCE = 256


class TextOfSite(TextLine, frozen=True, kw_only=True):
    """Input of `score`: what stands here beside the text goes through to the output."""

    site: str | None = None
    url: str | None = None


class FlagOfDetector(FlagLine, frozen=True, kw_only=True):
    """Input of `tally`: with the detector whose flag it is, where the line says so."""

    detector: str = ""


def score_lines(files: Sequence[Path], detector_name: str, weights: Path | None, jobs: int = 1) -> Exit:
    """Texts to scores in `jobs` processes (0: one per core); the detector's warning goes to stderr.

    Raises UnknownDetector, BadWeights.
    """
    detector = load_detector(detector_name, weights)
    message(f"{detector_name}: {detector.warning}")
    lines = JsonLines(files, TextOfSite, "score", bar=True)
    texts = ([text for _, text in batch] for batch in batches(lines, _TEXTS_AT_ONCE))
    first = list(itertools.islice(texts, 1))  # a short input is scored before a process would have started
    for batch in first:
        write_bytes(_scored(detector, batch))
    jobs = jobs or os.cpu_count() or 1
    rest: Iterator[bytes] = (_scored(detector, batch) for batch in texts)
    if jobs > 1:
        rest = in_order(_scored_by_worker, texts, jobs, _load_worker, detector_name, weights)
    for scored in rest:
        write_bytes(scored)
    return lines.end()


_of_worker: list[Detector] = []  # in a working process: the detector that it loaded


def _load_worker(name: str, weights: Path | None) -> None:
    _of_worker.append(load_detector(name, weights))


def _scored_by_worker(texts: Sequence[TextOfSite]) -> bytes:
    return _scored(_of_worker[0], texts)


def _scored(detector: Detector, texts: Sequence[TextOfSite]) -> bytes:
    """The lines of a batch, with what stood beside the texts."""
    rows = []
    for text, scored in zip(texts, score_texts(detector, texts), strict=True):
        through = {name: value for name in ("site", "url") if (value := getattr(text, name)) is not None}
        rows.append({**msgspec.structs.asdict(scored), **through})
    return encode_lines(rows)


def tally_lines(files: Sequence[Path], detector: str, settings: TallySettings) -> Exit:
    """Page scores to site verdicts. Lines of another detector than the first one's are skipped: they are not pooled.

    Raises NoSiteTest where the method has no numbers for the detector, BadSiteNumbers.
    """
    lines = JsonLines(files, FlagOfDetector, "tally")
    of_one = _OneDetector(lines, detector)
    scores = list(of_one)
    method = site_method(
        settings.method,
        of_one.detector,
        sprt=settings.sprt,
        gaussian=settings.gaussian,
        deciles=settings.deciles,
    )
    for site in tally_scores(scores, method):
        write_line({**msgspec.structs.asdict(site), "detector": of_one.detector})
    return lines.end()


def estimate_lines(files: Sequence[Path], errors: ErrorCounts | None, confidence: float) -> Exit:
    """Site verdicts to the rate. Raises BadParameters for error counts or a confidence that make no sense."""
    lines = JsonLines(files, SiteVerdictLine, "estimate")
    write_line(estimate_sites((line for _, line in lines), errors, confidence))
    return lines.end()


class _OneDetector:
    """Flags of the first detector that is named."""

    def __init__(self, lines: JsonLines[FlagOfDetector], default: str) -> None:
        self._lines = lines
        self.detector = default
        self._named = False

    def __iter__(self) -> Iterator[FlagLine]:
        for place, line in self._lines:
            if line.detector and not self._named:
                self.detector, self._named = line.detector, True
            if line.detector and line.detector != self.detector:
                self._lines.bad(
                    place, f"score of {line.detector}; scores of two detectors are never pooled", "detector"
                )
                continue
            yield FlagLine(site=line.site, flag=line.flag, score=line.score)
