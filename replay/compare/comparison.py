"""The result of a comparison of two runs, used by the terminal, the console and as JSON.

Differences are B - A. Shares lie in [0, 1]; times are milliseconds UTC. The numbers in `docs/explanation/compare.md`
have the names of these fields. Texts, URLs and site names come from crawled pages and are hostile: escape them.
"""

from __future__ import annotations

import enum

import msgspec

from scoring.estimate.remarks import Remark, RemarkKind
from scoring.rates.canary_counts import Correction
from scoring.rates.direct_share import DirectShare
from stream.schema.vocabulary import SiteClass

SITE_KINDS: tuple[str, ...] = (*SiteClass, "absent")  # absent: the run has no row of the site
SITES_NAMED = 100  # largest number of sites with different verdicts that are listed
DISAGREEMENTS_NAMED = 100  # largest number of pages that are listed because two detectors disagree
IN, OUT = "in", "out"  # a page that became an article, and one that was thrown out


class JudgedShare(msgspec.Struct, frozen=True, kw_only=True):
    """The share by site verdicts alone. None if the denominator is 0."""

    share: float | None = None
    low: float | None = None
    high: float | None = None
    method: str = "no classifiable sites"  # corrected | corrected by canaries | uncorrected
    remarks: tuple[Remark, ...] = (Remark(RemarkKind.NO_RATE),)  # the first is the headline


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two runs, and its counts. Pages and articles of `sites`; scores of `detector` only."""

    run: str
    ruleset: str
    digest: str  # of the ruleset
    detector: str  # identity
    epoch: str  # feature epoch; "" = unknown
    site_method: str  # such as "sprt 1f2e3d4c"
    state: str  # running | done | cancelled; "live" for the run that the alias names
    progress: str  # unfinished work as text; "" = none
    from_at: int = 0  # the window; 0 = from the beginning
    to_at: int = 0  # 0 = no end
    verdicts: int  # fetches judged by this ruleset, canaries left out
    other_verdicts: int  # fetches judged last by another ruleset: left out of everything
    sites: int
    llm: int
    human: int
    undecided: int
    unclassifiable: int
    other_sites: int  # sites whose row is of another ruleset, detector or site method: left out of everything
    pages: int  # of those sites: pages with a verdict, each page's newest fetch
    articles: int
    through_segments: int  # scored articles whose evidence is of their segments
    scored: int  # articles with a usable score
    abstained: int  # articles on which the detector abstained
    unscored: int  # articles without a score so far: neither llm nor human
    flagged: int  # scored articles classified as LLM text
    estimate: DirectShare  # both as in `farmwatch rate`
    judged: JudgedShare

    @property
    def classifiable(self) -> int:
        """Sites with a verdict: the denominator of the rate."""
        return self.llm + self.human + self.undecided


class ChangeKind(enum.StrEnum):
    """What must be said about a change; `sides` are A, B or both."""

    NO_SHARE = "no share"  # of a side, which says why in `share`
    OTHER_METHODS = "other methods"
    NO_DENOMINATOR = "no denominator"  # of the sides
    SAME_RUN = "same run"
    FEW_SITES = "few sites"  # their number
    NONE_MOVED = "none moved"
    UNSCORED = "unscored"  # unscored articles and all articles of A, then of B


class ChangeRemark(msgspec.Struct, frozen=True):
    """A remark that must be shown with a change."""

    kind: ChangeKind
    sides: tuple[str, ...] = ()
    counts: tuple[int, ...] = ()
    share: tuple[Remark, ...] = ()


class ShareChange(msgspec.Struct, frozen=True, kw_only=True):
    """One share in both runs, and its difference with an interval over whole sites.

    `name`: share (the direct estimate), site_rate (llm of classifiable sites, uncorrected), article_share
    (articles of pages), flagged_share (flagged of scored ones).
    """

    name: str
    title: str
    a: float | None  # None: the denominator is 0
    b: float | None
    difference: float | None  # b - a; None if one of them is None
    low: float | None
    high: float | None
    a_part: int  # numerator and denominator; of the direct estimate rounded
    a_whole: int
    b_part: int
    b_whole: int
    sites: int  # in the denominator of either run
    moved: int  # sites whose contribution differs
    remarks: list[ChangeRemark] = []


class PageTable(msgspec.Struct, frozen=True, kw_only=True):
    """Fetches judged by both runs, by verdict; fetches judged by only one run are in no cell."""

    both_articles: int
    a_only_article: int  # thrown out by B
    b_only_article: int  # let in by B
    both_dropped: int
    only_in_a: int
    only_in_b: int
    other_class: int = 0  # of both_articles: by segments in one run, as a whole page in the other
    other_text: int = 0  # of both_articles: the runs score different texts of the page

    @property
    def common(self) -> int:
        return self.both_articles + self.a_only_article + self.b_only_article + self.both_dropped


class SiteCells(msgspec.Struct, frozen=True, kw_only=True):
    """Sites by verdict of A (rows) and of B (columns), both in the order of SITE_KINDS; canaries left out."""

    counts: list[list[int]]

    @property
    def changed(self) -> int:
        return sum(count for at, row in enumerate(self.counts) for other, count in enumerate(row) if at != other)

    @property
    def llm_table(self) -> list[list[int]]:
        """llm against the rest, for sites classifiable in both runs: rows A llm, A not; columns B llm, B not."""
        c = self.counts
        return [[c[0][0], c[0][1] + c[0][2]], [c[1][0] + c[2][0], sum(c[1][1:3]) + sum(c[2][1:3])]]


class SiteFlip(msgspec.Struct, frozen=True, kw_only=True):
    """A site with different verdicts in A and B; `absent` if a run has no row of it."""

    site: str
    verdict_a: str
    verdict_b: str
    articles_a: int
    articles_b: int
    unscored_a: int  # of the articles
    unscored_b: int


class Disagreement(msgspec.Struct, frozen=True, kw_only=True):
    """A page whose text one of two detectors flags."""

    url: str
    site: str
    page_id: str
    fetch_id: str
    text_digest: str
    score_a: float  # by the detector of A; its scale and direction are not those of B
    score_b: float
    flagged_by: str  # A | B


class TextFlags(msgspec.Struct, frozen=True, kw_only=True):
    """Different texts that both runs keep and both detectors scored, by their flags."""

    both: int
    a_only: int
    b_only: int
    neither: int
    apart: list[Disagreement]  # a page of each text, most decisive first; at most DISAGREEMENTS_NAMED

    @property
    def agreeing(self) -> int:
        return self.both + self.neither

    @property
    def disagreeing(self) -> int:
        return self.a_only + self.b_only

    @property
    def texts(self) -> int:
        return self.agreeing + self.disagreeing


class RuleChange(msgspec.Struct, frozen=True, kw_only=True):
    """The flips that one rule caused.

    Rules of A let a page in that failed them before; rules of B throw a page out that fails them now.
    """

    rule: str
    threshold_a: str  # such as ">= 50", "no threshold"; "" = not in the ruleset
    threshold_b: str
    let_in_first: int  # became articles; this rule of A was the first to fail
    let_in_only: int  # became articles; this rule of A was the only one to fail
    let_in_any: int  # became articles; this rule of A failed
    thrown_first: int  # the same for pages thrown out, by rules of B
    thrown_only: int
    thrown_any: int


class FailedRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that a page fails: its value on the page, and its condition."""

    name: str
    value: float | str | None  # None = unknown
    op: str
    threshold: float | str | list[str] | None


class Flip(msgspec.Struct, frozen=True, kw_only=True):
    """One page of the sample, with its text."""

    fetch_id: str
    url: str
    site: str
    page_id: str
    kind: str  # in | out
    rule: str  # of its stratum: the first rule that failed under A (in) or B (out)
    verdict_a: str
    verdict_b: str
    failed_a: list[FailedRule]
    failed_b: list[FailedRule]
    text: str | None  # main text, or that of its segments if B keeps it by them; None = its features expired
    text_digest: str  # of the whole text
    fetched_at: int
    text_cut: int = 0  # characters cut off at the end


class Stratum(msgspec.Struct, frozen=True, kw_only=True):
    """Flips of one kind by one rule, and their number in the sample."""

    kind: str
    rule: str
    flips: int
    sampled: int


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """The comparison of two runs over the same pages and sites."""

    v: int = 1
    at: int  # when it was made
    a: Side
    b: Side
    identical: bool  # one ruleset, features, detector, site method and correction; no page and no site differs
    pages: PageTable
    sites: SiteCells
    rules: list[RuleChange]  # those of both rulesets, in the order of B, then of A alone
    only_in_a: list[str]  # rules in force that only one of the rulesets has
    only_in_b: list[str]
    changes: list[ShareChange]  # share first
    strata: list[Stratum]
    sample: list[Flip]
    sample_size: int  # as requested
    seed: int
    resamples: int
    confidence: float
    corrections: list[Correction]  # of the rates of A and of B
    other_windows: bool = False  # differences also come from different windows
    changed_sites: list[SiteFlip] = []  # sites with different verdicts, most articles first; at most SITES_NAMED
    flags: TextFlags | None = None  # of runs with two detectors
