"""Computes the share of a bundle again, from its files alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from farmwatch.share.review_labels import read_review
from farmwatch.terminal.jsonl import JsonLines
from scoring.estimate.error_counts import ErrorCounts
from scoring.rates.settings import RateSettings
from scoring.rates.split_rates import RateLine, RateQuery, rate_lines
from stream.schema.records import SiteState
from stream.text.checksums import SUMS, digest_of, read_sums
from stream.text.user_errors import FarmwatchError

SITES_FILE, LABELS_FILE = "sites.jsonl", "labels.jsonl"
SETTINGS_FILE, RATE_FILE = "settings.json", "rate.json"
_CLOSE = 1e-6  # the last digits depend on the processor
_WORDS = ("remarks", "judged_remarks", "canary_remark", "change", "design_effect")  # not in a bundle: they follow
_EMPTY_ROW = msgspec.structs.asdict(SiteState(id="", site=""))
T = TypeVar("T")


class BundledRate(RateSettings, frozen=True, forbid_unknown_fields=False):
    """Settings of the rate; a bundle of an earlier version has more of them."""

    errors: ErrorCounts | None = None  # of sites of known truth; canaries took their place


class ReleaseSettings(msgspec.Struct, frozen=True):
    """The values beside sites and labels on which the share depends."""

    made_at: int  # ms
    rate: BundledRate


@dataclass(frozen=True, slots=True)
class ReleaseCheck:
    """The share of a bundle as it says, and as its files give it. `changed`: files without the checksum they had."""

    changed: list[str]
    stored: RateLine
    recomputed: RateLine

    @property
    def differs(self) -> list[str]:
        """The fields that differ."""
        differing = []
        for name in RateLine.__struct_fields__:
            stored, recomputed = getattr(self.stored, name), getattr(self.recomputed, name)
            is_number = isinstance(stored, float) and isinstance(recomputed, float)
            is_same = math.isclose(stored, recomputed, abs_tol=_CLOSE) if is_number else stored == recomputed
            if not is_same and name not in _WORDS:
                differing.append(name)
        return differing

    @property
    def ok(self) -> bool:
        """Whether the files are unchanged and give the same share."""
        return not self.changed and not self.differs


def check_release(folder: Path) -> ReleaseCheck:
    """Check a bundle. Raises FarmwatchError for a folder that is none, or that cannot be read."""
    if not (folder / SUMS).is_file():
        raise FarmwatchError(f"{folder}: no bundle of `farmwatch log release`: it has no {SUMS}")
    try:
        sums = read_sums(folder)
        changed = [name for name, digest in sums.items() if digest_of(folder / name) != digest]
        settings = _read(folder / SETTINGS_FILE, ReleaseSettings)
        needed = (SITES_FILE, SETTINGS_FILE, RATE_FILE, *([LABELS_FILE] if settings.rate.review else []))
        changed += [name for name in needed if name not in sums]
        stored = _read(folder / RATE_FILE, RateLine)
    except OSError as error:
        raise FarmwatchError(f"{folder}: cannot be read: {error}") from error
    lines = JsonLines([folder / SITES_FILE], dict[str, Any], "audit")
    try:
        values = ({**_EMPTY_ROW, "id": line["site"], **line} for _, line in lines)
        rows = [msgspec.convert([row[name] for name in SiteState.__struct_fields__], SiteState) for row in values]
    except (KeyError, msgspec.ValidationError) as error:
        raise FarmwatchError(f"{folder / SITES_FILE}: not the rows of sites: {error}") from error
    lines.end()
    rate = msgspec.structs.replace(settings.rate, review=str(folder / LABELS_FILE) if settings.rate.review else "")
    query = RateQuery(
        settings=rate, now_ms=settings.made_at, review=read_review(rate, settings.made_at), errors=rate.errors
    )
    return ReleaseCheck(changed, stored, rate_lines(rows, query)[0])


def _read(file: Path, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(file.read_bytes(), type=kind)
    except msgspec.MsgspecError as error:
        raise FarmwatchError(f"{file}: not as this version of farmwatch writes it: {error}") from error
