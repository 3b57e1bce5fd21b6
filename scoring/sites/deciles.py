"""The method `deciles`: nine deciles of a site's page scores and a linear support vector machine over them.

From DeGenTWeb (He et al., arXiv 2507.13933 and 2605.00087): sort the scores of at least 15 pages of a site, take the
10th, 20th, ... 90th percentile (linear between neighbours), and call the site `llm` where

    margin = sum_i weight_i (decile_i - centre_i) / scale_i + offset > 0.

Centres and scales are means and standard deviations of the training sites' deciles. The margin of 1 is where the
support vectors lie, so that |margin| tells how far a site is from being a matter of opinion; it is no probability.

It is a test of fixed size: it says nothing before 15 scores and always something from there on, with the deciles of all
of them. It knows one detector's scale: numbers that were learned from another's scores are refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import msgspec

from scoring.errors import BadSiteNumbers, NoSiteTest
from scoring.interface import MethodName, PageScore, SiteVerdict
from scoring.sites.bimodal import is_mixed
from scoring.sites.family import not_as_measured, same_family
from scoring.sites.method import afterthoughts, method_digest
from stream.schema.vocabulary import HUMAN, LLM, UNCLASSIFIABLE

PLACES = tuple(tenth / 10 for tenth in range(1, 10))
PAGES = 15
FORMAT = "deciles-1"
_SHIPPED = "deciles-binoculars.json"
_MAX_BYTES = 1 << 16
_FAR = 1e6  # standard deviations
_MEND = "run `farmwatch train-sites`"


class HeldOutErrors(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Sites judged by numbers that were learned without them, at `PAGES` pages each."""

    human_sites: int
    human_wrong: int
    llm_sites: int
    llm_wrong: int


class DecileNumbers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What training learned. Raises ValueError where it is no set of decile numbers."""

    format: str
    detector: str  # family whose scores they are, see scoring.sites.family
    weights: list[float]
    centres: list[float]
    scales: list[float]
    offset: float
    human_sites: int
    llm_sites: int
    pages: int  # scores of all the training sites
    left_out: HeldOutErrors  # leave one site out

    def __post_init__(self) -> None:
        if self.format != FORMAT:
            raise ValueError(f"format {self.format!r}, this farmwatch reads {FORMAT!r}")
        for name, numbers in (("weights", self.weights), ("centres", self.centres), ("scales", self.scales)):
            if len(numbers) != len(PLACES):
                raise ValueError(f"{len(numbers)} {name}, not {len(PLACES)}")
            if not all(map(math.isfinite, numbers)):
                raise ValueError(f"{name} are not all finite")
        if not math.isfinite(self.offset) or min(self.scales) <= 0:
            raise ValueError("offset is not finite, or a scale is not above 0")
        if not self.detector:
            raise ValueError("no detector is named")

    def margin(self, scores: Sequence[float]) -> float:
        """> 0 is llm. Needs at least one score."""
        rows = zip(self.weights, deciles(scores), self.centres, self.scales, strict=True)
        return sum(weight * _standard(decile, centre, scale) for weight, decile, centre, scale in rows) + self.offset


def deciles(scores: Sequence[float]) -> list[float]:
    """The nine deciles of at least one score, linear between neighbours (as numpy.quantile)."""
    ordered = sorted(scores)
    found = []
    for share in PLACES:
        place = share * (len(ordered) - 1)
        below = math.floor(place)
        above = min(below + 1, len(ordered) - 1)
        part = place - below
        found.append(ordered[below] * (1 - part) + ordered[above] * part)
    return found


def load_deciles(detector: str, file: Path | None = None) -> DecileNumbers:
    """The numbers for this detector's scores: from `file`, or those that ship with farmwatch.

    Raises BadSiteNumbers for a file that is broken or another detector's, NoSiteTest where none ship for the detector.
    """
    name = str(file) if file else _SHIPPED
    try:
        data = _read(file) if file else resources.files("scoring.data").joinpath(_SHIPPED).read_bytes()
    except OSError as error:
        raise BadSiteNumbers(f"{name} cannot be read ({error.strerror}): {_MEND}") from error
    numbers = read_numbers(data, name)
    if file and not same_family(detector, numbers.detector):
        raise BadSiteNumbers(f"{name} was learned from scores of {numbers.detector}, not of {detector}: {_MEND}")
    reason = "" if file else not_as_measured(detector)
    if not reason:
        return numbers
    raise NoSiteTest(
        f"the method deciles ships with numbers that are not for {detector}, since {reason}: {_MEND} on scores of"
        ' labelled sites and set tally.deciles to its file, or set tally.method = "sprt"'
    )


def _read(file: Path) -> bytes:
    """The file up to a byte more than it may have: a vast one is not read, nor a pipe that never ends."""
    if not file.is_file():
        file.stat()  # tells what is wrong with a path where nothing is
        raise BadSiteNumbers(f"{file} is no regular file: {_MEND}")
    with file.open("rb") as stream:
        return stream.read(_MAX_BYTES + 1)


def read_numbers(data: bytes, name: str) -> DecileNumbers:
    """Decile numbers of a file called `name`. Raises BadSiteNumbers."""
    if len(data) > _MAX_BYTES:
        raise BadSiteNumbers(f"{name} has more than {_MAX_BYTES} bytes, decile numbers have fewer: {_MEND}")
    try:
        return msgspec.json.decode(data, type=DecileNumbers)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadSiteNumbers(f"{name} is no file of decile numbers ({error}): {_MEND}") from error


class DecileTest:
    """The method `deciles` with its numbers. Pure: the verdict depends on the scores only."""

    name: MethodName = "deciles"

    def __init__(self, numbers: DecileNumbers, close_after_ms: int | None = None) -> None:
        """`close_after_ms` after the 15th page the site closes, see scoring.sites.sequential; None = never."""
        self.numbers = numbers
        self.digest = method_digest(self.name, numbers, close_after_ms)
        self._close_after_ms = close_after_ms

    def decide(self, pages: Sequence[PageScore]) -> SiteVerdict:
        """Judge a site by its page scores in the order of their fetch; those without a score are passed over."""
        usable = [page for page in pages if page.score is not None]
        decided_at = usable[PAGES - 1].fetched_at if len(usable) >= PAGES else 0
        given = len(usable)
        if decided_at and self._close_after_ms is not None:
            closes_at = decided_at + self._close_after_ms
            usable = [*usable[:PAGES], *(page for page in usable[PAGES:] if page.fetched_at <= closes_at)]
        scores = [page.score for page in usable if page.score is not None]
        verdict, margin, before = UNCLASSIFIABLE, 0.0, ""
        if len(scores) >= PAGES:
            margin = self.numbers.margin(scores)
            verdict, first = _word(margin), _word(self.numbers.margin(scores[:PAGES]))
            before = first if first != verdict else ""
        return SiteVerdict(
            verdict=verdict,
            pages_used=len(scores),
            flagged=sum(bool(page.flag) for page in usable),
            llr=margin,
            pages=len(scores),
            method=self.name,
            decided_at=decided_at,
            before=before,
            before_pages=PAGES if before else 0,
            mixed=is_mixed(usable),
            closed=len(usable) < given,
        )

    def evidence(self, verdict: SiteVerdict) -> str:
        """Why a verdict is what it is, in one sentence for people."""
        if verdict.verdict == UNCLASSIFIABLE:
            scores = "score" if verdict.pages == 1 else "scores"
            return f"{verdict.pages} usable {scores}, at least {PAGES} are needed{afterthoughts(verdict)}"
        side = "above" if verdict.verdict == LLM else "not above"
        said = f"deciles of {verdict.pages} scored articles; margin {verdict.llr:+.2f}, {side} 0"
        return said + afterthoughts(verdict)


def _standard(decile: float, centre: float, scale: float) -> float:
    """Standardised, and cut where no score of any training site ever was: a broken score gives a margin, not NaN."""
    return min(max((decile - centre) / scale, -_FAR), _FAR)


def _word(margin: float) -> str:
    return LLM if margin > 0 else HUMAN
