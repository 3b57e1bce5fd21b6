"""The sentences of a share: each kind of remark has words, as the golden file has them."""

from __future__ import annotations

import os
from pathlib import Path

from farmwatch.share.words import sentence, text_of
from scoring.estimate.remarks import Fact, Remark, RemarkKind

GOLDEN = Path(__file__).parents[3] / "golden" / "share_words.txt"
INTERVAL: dict[str, Fact] = {"share": 0.2, "point": 0.2, "low": 0.1, "high": 0.3, "confidence": 0.95}
KNOWN: dict[str, Fact] = {"llm_sites": 20, "llm_found": 18, "human_sites": 22, "called": 1, "least": 30}
FACTS: dict[str, Fact] = {
    **INTERVAL,
    **KNOWN,
    **{"human": 0.1, "llm": 0.12, "flagged": 0.2, "clusters": 5, "unit": "queries", "kinds": "human or LLM"},
    **{"fewest": 30, "kind": "LLM", "here": 0.6, "known": 0.8, "number": 2, "needed": 20, "labels": 9, "labelled": 7},
    **{"labellers": 3, "twice": 60, "alpha": 0.713, "times": 1.38, "against": 1},
    **{"at_ms": 0, "until_ms": 86_400_000, "drawn": 11, "undecided": 3, "at_most": 0.4, "method": "corrected"},
    **{"bound": 0.15, "unclassifiable": 6, "urls": 100, "yes": 1200, "unknown": 30, "unknown_mass": 20},
    **{"unknown_money": 15, "a_year": 1300.0},
    **{"without_pages": 4, "reason": "too few", "headline": "no_scores"},
}


def test_each_kind_has_its_words() -> None:
    """The golden file has the sentence of each kind."""
    lines = []
    for kind in RemarkKind:
        facts = {**FACTS}
        if kind in (RemarkKind.RATE, RemarkKind.FEW_FOR_A_RATE):
            facts["llm"] = 1
        if kind in (RemarkKind.NO_SITEMAPS, RemarkKind.NO_SIGNALS):
            facts |= {"sites": 60, "number": 0}
        if kind == RemarkKind.FARMS:
            facts |= {"sites": 1200, "unit": ""}
        if kind in (RemarkKind.SHARE, RemarkKind.TOO_FEW, RemarkKind.TOO_WIDE, RemarkKind.KINDS_NOT_TOLD_APART):
            facts |= {"sites": 1200, "units": 70, "unit": "domains"}
        if kind == RemarkKind.UNCLASSIFIABLE:
            facts["sites"] = 10
        if kind in (RemarkKind.BELOW_FALSE_ALARMS, RemarkKind.ABOVE_FOUND):
            facts["called"] = 0.1
        lines.append(f"{kind}: {sentence(Remark(kind, facts))}\n")
    if os.environ.get("FARMWATCH_TEST_RENEW"):
        GOLDEN.write_text("".join(lines), encoding="utf-8")
    assert "".join(lines) == GOLDEN.read_text(encoding="utf-8")


def test_a_reason_completes_the_sentence_before() -> None:
    """Other remarks follow after a semicolon; a share of nearly 0 is a bound."""
    reason, remedy = Remark(RemarkKind.NO_THRESHOLD), Remark(RemarkKind.SET_A_THRESHOLD)
    said = text_of([Remark(RemarkKind.NO_SHARE), reason, remedy])
    assert said.startswith("no share: the detector") and said.endswith("; set one (`farmwatch lab calibrate`)")
    none = {**INTERVAL, "share": 0.0, "sites": 9, "definition": "any-article", "one_query": True}
    of = "9 sites with scored articles, all of one query have an article by a language model"
    assert sentence(Remark(RemarkKind.SHARE, none)) == f"below 30.0% (95% interval 10.0% to 30.0%) of {of}"
