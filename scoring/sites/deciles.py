"""The method `deciles`: nine deciles of a site's page scores and a linear support vector machine over them.

From DeGenTWeb (He et al., arXiv 2507.13933 and 2605.00087): take the 10th, 20th, ... 90th percentile (linear between
neighbours) of the scores of at least 15 pages of a site, which is `llm` where

    margin = sum_i weight_i (decile_i - centre_i) / scale_i + offset > 0.

Centres and scales are means and standard deviations of the training sites' deciles. Support vectors have the margin 1,
so |margin| shows how clear a site is; it is no probability. The test decides nothing before 15 scores, and always
decides from 15 on. Numbers learned from another detector's scores are refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import msgspec

from scoring.errors import BadSiteNumbers, NoDeciles
from scoring.interface import MethodName, PageScore, SiteVerdict
from scoring.sites.bimodal import is_mixed
from scoring.sites.family import not_as_measured, same_family
from scoring.sites.method import NumberedMethod, describe_corrections, describe_too_few
from stream.schema.vocabulary import SiteClass

PLACES = tuple(tenth / 10 for tenth in range(1, 10))
PAGES = 15
_NINE = msgspec.Meta(min_length=9, max_length=9)
_SHIPPED = "deciles-binoculars.json"
_MAX_BYTES = 1 << 16
_FAR = 1e6  # standard deviations


class HeldOutErrors(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Sites judged by numbers that were learned without them, at `PAGES` pages each."""

    human_sites: int
    human_wrong: int
    llm_sites: int
    llm_wrong: int


class DecileNumbers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The numbers that training learned."""

    format: Literal["deciles-1"]
    detector: Annotated[str, msgspec.Meta(min_length=1)]  # family of the scores, see scoring.sites.family
    weights: Annotated[list[float], _NINE]
    centres: Annotated[list[float], _NINE]
    scales: Annotated[list[Annotated[float, msgspec.Meta(gt=0)]], _NINE]
    offset: float
    human_sites: int
    llm_sites: int
    pages: int  # scores of all the training sites
    left_out: HeldOutErrors  # leave one site out

    def margin(self, scores: Sequence[float]) -> float:
        """> 0 is llm. Needs at least one score."""
        rows = zip(self.weights, deciles(scores), self.centres, self.scales, strict=True)
        # clipped far outside the scores of all training sites: a broken score gives a margin, not NaN
        parts = (weight * min(max((at - centre) / scale, -_FAR), _FAR) for weight, at, centre, scale in rows)
        return sum(parts) + self.offset


def deciles(scores: Sequence[float]) -> list[float]:
    """The nine deciles of at least one score, linear between neighbours (as numpy.quantile)."""
    ordered = sorted(scores)
    values = []
    for share in PLACES:
        place = share * (len(ordered) - 1)
        below = math.floor(place)
        above = min(below + 1, len(ordered) - 1)
        part = place - below
        values.append(ordered[below] * (1 - part) + ordered[above] * part)
    return values


def load_deciles(detector: str, file: Path | None = None) -> DecileNumbers:
    """The numbers for this detector's scores: from `file`, or those that ship with farmwatch.

    Raises BadSiteNumbers for a file that is broken or another detector's, NoDeciles where none ship for the detector.
    """
    if file:
        try:
            if file.stat().st_size > _MAX_BYTES or not file.is_file():
                raise BadSiteNumbers(f"{file} is no regular file of at most {_MAX_BYTES} bytes")
            data = file.read_bytes()
        except OSError as error:
            raise BadSiteNumbers(f"{file} cannot be read ({error.strerror})") from error
        numbers = read_numbers(data, str(file))
        if not same_family(detector, numbers.detector):
            raise BadSiteNumbers(f"{file} was learned from scores of {numbers.detector}, not of {detector}")
        return numbers
    if reason := not_as_measured(detector):
        raise NoDeciles(
            f"the method deciles ships with numbers that are not for {detector}, since {reason}", detector=detector
        )
    return read_numbers(resources.files("scoring.data").joinpath(_SHIPPED).read_bytes(), _SHIPPED)


def read_numbers(data: bytes, name: str) -> DecileNumbers:
    """Decile numbers of a file called `name`. Raises BadSiteNumbers."""
    try:
        return msgspec.json.decode(data, type=DecileNumbers)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadSiteNumbers(f"{name} is no file of decile numbers ({error})") from error


class DecileTest(NumberedMethod, frozen=True, tag="deciles"):
    """The method `deciles`. Pages without a score are skipped; the site closes by the 15th page's fetch time."""

    name: ClassVar[MethodName] = "deciles"
    numbers: DecileNumbers
    close_after_ms: int | None = None

    def decide(self, pages: Sequence[PageScore]) -> SiteVerdict:
        given = [page for page in pages if page.score is not None]
        usable = given
        decided_at = given[PAGES - 1].fetched_at if len(given) >= PAGES else 0
        if decided_at and self.close_after_ms is not None:
            closes_at = decided_at + self.close_after_ms
            usable = [*given[:PAGES], *(page for page in given[PAGES:] if page.fetched_at <= closes_at)]
        scores = [page.score for page in usable if page.score is not None]
        verdict: str = SiteClass.UNCLASSIFIABLE
        margin, before = 0.0, ""
        if len(scores) >= PAGES:
            margin = self.numbers.margin(scores)
            verdict, first = _verdict_of(margin), _verdict_of(self.numbers.margin(scores[:PAGES]))
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
            closed=len(usable) < len(given),
        )

    def evidence(self, verdict: SiteVerdict) -> str:
        if verdict.verdict == SiteClass.UNCLASSIFIABLE:
            return describe_too_few(verdict.pages, PAGES) + describe_corrections(verdict)
        side = "above" if verdict.verdict == SiteClass.LLM else "not above"
        said = f"deciles of {verdict.pages} scored articles; margin {verdict.llr:+.2f}, {side} 0"
        return said + describe_corrections(verdict)


def _verdict_of(margin: float) -> str:
    return SiteClass.LLM if margin > 0 else SiteClass.HUMAN
