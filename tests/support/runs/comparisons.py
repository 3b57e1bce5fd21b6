"""Results of `farmwatch compare`: one of real size, and one of two empty runs."""

from __future__ import annotations

from typing import Any

import msgspec

from replay.compare.comparison import (
    ChangeKind,
    ChangeRemark,
    Comparison,
    FailedRule,
    Flip,
    JudgedShare,
    PageTable,
    RuleChange,
    ShareChange,
    Side,
    SiteCells,
    Stratum,
)
from scoring.estimate.remarks import Remark, RemarkKind
from scoring.rates.canary_counts import Correction
from scoring.rates.direct_share import DirectShare, ShareState

AT = 1_790_000_000_000


def change(
    name: str, title: str, a: tuple[int, int], b: tuple[int, int], low: float, high: float, **more: Any
) -> ShareChange:
    shares = [part / whole if whole else None for part, whole in (a, b)]
    both = shares[0] is not None and shares[1] is not None
    ends = (shares[1] - shares[0], low, high) if both else (None, None, None)  # type: ignore[operator]
    known = (name, title, *shares, *ends, *a, *b, min(2_140, max(a[1], b[1])), more.pop("moved", 0))
    return ShareChange(**dict(zip(ShareChange.__struct_fields__, known, strict=False)), **more)


def direct(share: float, low: float, high: float, *, sites: int) -> DirectShare:
    """A direct estimate as in `rate`."""
    facts = {"share": share, "low": low, "high": high, "confidence": 0.95, "sites": sites}
    remarks = (Remark(RemarkKind.SHARE, facts),)
    return DirectShare(share=share, low=low, high=high, method=ShareState.DIRECT, scored_sites=sites, remarks=remarks)


def side(run: str, **other: Any) -> Side:
    known: dict[str, Any] = {
        "ruleset": "default",
        "digest": "6f0c2a9e11d4b7a3",
        "detector": "binoculars/observer+performer@0a1b2c3d/float32/512/calibrated-2026",
        "epoch": "e4b1",
        "site_method": "sprt 1f2e3d4c",
        "state": "done",
        "progress": "",
        "verdicts": 48_211,
        "other_verdicts": 0,
        "sites": 2_140,
        "llm": 412,
        "human": 771,
        "undecided": 64,
        "unclassifiable": 893,
        "other_sites": 0,
        "pages": 46_004,
        "articles": 21_377,
        "through_segments": 0,
        "scored": 20_990,
        "abstained": 301,
        "unscored": 86,
        "flagged": 7_211,
        "estimate": direct(0.331, 0.301, 0.362, sites=1247),
        "judged": JudgedShare(share=0.312, low=0.28, high=0.34, method="corrected"),
    }
    return Side(run=run, **{**known, **other})


def made() -> Comparison:
    """A comparison of a stricter ruleset with the live one."""
    counts = RuleChange.__struct_fields__[3:]
    rules = [
        RuleChange(rule=rule, threshold_a=before, threshold_b=after, **dict(zip(counts, (*let, *out), strict=True)))
        for rule, before, after, let, out in (
            ("extracted", "== ok", "== ok", (0, 0, 0), (0, 0, 0)),
            ("min_tokens", ">= 50", ">= 120", (0, 0, 0), (1_940, 1_422, 1_940)),
            ("duplicate_share", "<= 0.3", "<= 0.5", (611, 540, 702), (0, 0, 0)),
            ("link_density", "", "<= 0.4", (0, 0, 0), (93, 40, 311)),
            ("stop_words", ">= 2", "no threshold", (12, 12, 15), (0, 0, 0)),
            ("language", "in de, en, fr", "in de, en, fr", (0, 0, 0), (0, 0, 0)),
        )
    ]
    text = "The garden was quiet that morning and the two of them walked slowly along the wall.\n\n" * 30
    sample = [
        flip(1, "out", "min_tokens", text[:300]),
        flip(2, "in", "duplicate_share", text),
        flip(3, "in", "duplicate_share", "كان الحديقة هادئة ذلك الصباح."),
        flip(4, "out", "link_density", None),
    ]
    return Comparison(
        at=AT,
        a=side("live", state="live"),
        b=side(
            "strict",
            ruleset="strict",
            digest="b81d5f0072c4e9aa",
            llm=371,
            human=776,
            undecided=71,
            unclassifiable=922,
            articles=20_069,
            scored=19_411,
            unscored=367,
            flagged=6_402,
            progress="367 articles wait for a score",
            other_sites=3,
            estimate=direct(0.304, 0.275, 0.335, sites=1218),
        ),
        identical=False,
        pages=PageTable(
            both_articles=19_344,
            a_only_article=2_033,
            b_only_article=725,
            both_dropped=26_100,
            only_in_a=9,
            only_in_b=0,
            other_class=12,
            other_text=31,
        ),
        sites=SiteCells(
            counts=[[360, 4, 20, 28, 0], [3, 749, 9, 10, 0], [8, 18, 37, 1, 0], [0, 5, 5, 883, 0], [0, 0, 0, 0, 0]]
        ),
        rules=rules,
        only_in_a=["stop_words"],
        only_in_b=["link_density"],
        changes=[
            change("share", "share of LLM sites", (412, 1247), (371, 1218), -0.041, -0.012, moved=61),
            change("site_rate", "LLM sites of those classifiable", (412, 1247), (371, 1218), -0.041, -0.012, moved=61),
            change("article_share", "Articles of pages", (21_377, 46_004), (20_069, 46_004), -0.036, -0.021, moved=803),
            change(
                *("flagged_share", "Flagged of scored articles", (7_211, 20_990), (6_402, 19_411), -0.021, 0.002),
                moved=640,
                remarks=[ChangeRemark(ChangeKind.UNSCORED, counts=(86, 21_377, 357, 20_069))],
            ),
        ],
        strata=[
            Stratum(kind="in", rule="duplicate_share", flips=611, sampled=2),
            Stratum(kind="out", rule="min_tokens", flips=1_940, sampled=1),
            Stratum(kind="out", rule="link_density", flips=93, sampled=1),
        ],
        sample=sample,
        sample_size=60,
        seed=7,
        resamples=2_000,
        confidence=0.95,
        corrections=[Correction(), Correction()],
    )


def flip(number: int, kind: str, rule: str, text: str | None, **other: Any) -> Flip:
    failed = [FailedRule(name=rule, value=30.5, op=">=", threshold=50)]
    known: dict[str, Any] = {
        "fetch_id": f"f{number}",
        "url": f"https://www.site-{number}.example/2026/03/an-article-about-gardens-and-walls.html?page={number}&x=1",
        "site": f"www.site-{number}.example",
        "page_id": f"p{number}",
        "verdict_a": "dropped" if kind == "in" else "article",
        "verdict_b": "article" if kind == "in" else "dropped",
        "failed_a": failed if kind == "in" else [],
        "failed_b": failed if kind == "out" else [],
        "text_digest": "d",
        "fetched_at": AT - 86_400_000,
    }
    return Flip(kind=kind, rule=rule, text=text, **{**known, **other})


def empty() -> Comparison:
    """A comparison of two runs without records."""
    zero = dict.fromkeys(Side.__struct_fields__[10:-2], 0)
    no_scores = ChangeRemark(ChangeKind.NO_SHARE, ("A",), share=(Remark(RemarkKind.NO_SCORES),))
    nothing = ("rules", "only_in_a", "only_in_b", "strata", "sample", "corrections")
    return msgspec.structs.replace(
        made(),
        a=side("live", estimate=DirectShare(), judged=JudgedShare(), **zero),
        b=side("again", estimate=DirectShare(), judged=JudgedShare(), **zero),
        identical=True,
        pages=PageTable(**dict.fromkeys(PageTable.__struct_fields__, 0)),
        sites=SiteCells(counts=[[0] * 5 for _ in range(5)]),
        changes=[change("share", "share of LLM sites", (0, 0), (0, 0), 0, 0, remarks=[no_scores])],
        **{name: [] for name in nothing},
    )
