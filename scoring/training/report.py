"""The numbers that stand beside the weights: what they were learned from, and how wrong they are."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from scoring.statistics.rounding import each_float
from scoring.training.evaluation import DetectorEvaluation
from scoring.training.page_sets import PageFile
from scoring.training.texts import TextSet, TrainingText

_DIGITS = 4


class FileReport(msgspec.Struct, frozen=True):
    """What was read of a file, dropped and used."""

    sha256: str
    read: int
    dropped: dict[str, int]  # reason -> texts
    used: int

    @staticmethod
    def of(data: bytes, texts: TextSet) -> FileReport:
        """Report on the file with these bytes."""
        return FileReport(hashlib.sha256(data).hexdigest(), texts.read, texts.dropped, len(texts.samples))

    @staticmethod
    def of_pages(data: bytes, pages: PageFile) -> FileReport:
        """Report on the file of labelled pages with these bytes."""
        dropped = {"no_english_article": pages.read - pages.used}
        return FileReport(hashlib.sha256(data).hexdigest(), pages.read, dropped, pages.used)


class TrainingReport(msgspec.Struct, frozen=True):
    """Everything measured in a training; the JSON beside the weights."""

    digest: str  # SHA-256 of the weights file
    warning: str  # what a detector with these weights must say
    threshold: float
    seed: int
    files: dict[str, FileReport]
    licences: dict[str, int]  # as the texts' sources state them -> texts used
    registers: dict[str, int]  # "label/domain" -> texts used
    evaluation: DetectorEvaluation

    def rounded(self) -> TrainingReport:
        """This report with the numbers that its JSON holds."""
        return msgspec.json.decode(self.to_json(), type=TrainingReport)

    def to_json(self) -> bytes:
        """Readable JSON, numbers to four places, the same bytes for the same report."""
        rounded = each_float(msgspec.to_builtins(self), lambda number: round(number, _DIGITS))
        return msgspec.json.format(msgspec.json.encode(rounded), indent=1) + b"\n"


def page_reports(paths: Sequence[Path], files: Sequence[PageFile]) -> dict[str, FileReport]:
    """What was read of files of labelled pages."""
    return {
        f"pages {place}: {found.name}": FileReport.of_pages(path.read_bytes(), found)
        for place, (path, found) in enumerate(zip(paths, files, strict=True), start=1)
    }


def licence_counts(samples: Sequence[TrainingText]) -> dict[str, int]:
    """Texts by the licence that their source states."""
    return _counts(sample.licence for sample in samples)


def register_counts(samples: Sequence[TrainingText]) -> dict[str, int]:
    """Texts by label and domain."""
    return _counts(f"{'llm' if sample.llm else 'human'}/{sample.domain}" for sample in samples)


def _counts(values: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(values).items()))
