"""What flipped: bars for each rule, and the sample of flips with their texts, folded until somebody opens them."""

from __future__ import annotations

from collections.abc import Sequence

from replay.compare.comparison import IN, Comparison, FailedRule, Flip, RuleChange, Stratum
from replay.compare.report_markup import Html, foreign, join, link, tag
from replay.compare.report_plots import bars
from replay.compare.report_words import count, moment, part, rule, shortened

TEXT_CAP_CHARACTERS = 20_000  # of a flip's text: the report stays a file that a browser opens at once


def rule_bars(found: Comparison) -> Html:
    """Each rule that let a page in or threw one out; how many others there are."""
    shown = [one for one in found.rules if one.let_in_any or one.thrown_any]
    most = max((max(one.let_in_any, one.thrown_any) for one in shown), default=0)
    rest = [one for one in found.rules if one not in shown]
    changed = sum(one.threshold_a != one.threshold_b for one in rest)
    others = f"Rules that have to do with no flip: {count(len(rest))}"
    said = f"{others}, {count(changed)} of them with another condition in each run." if rest else ""
    if not shown:
        return tag("p", said or "Neither ruleset has a rule.")
    titles = ("rule", "thrown out | let in", f"thrown out: fail in {found.b.run}", f"let in: failed in {found.a.run}")
    head = tag(
        "tr", *(tag("th", title, scope="col", class_="n" if at > 1 else None) for at, title in enumerate(titles))
    )
    rows = [_rule_row(one, most) for one in shown]
    key = (
        tag("span", class_="key out first"),
        "thrown out, ",
        tag("span", class_="key in first"),
        "let in: this rule was the first to fail; ",
        tag("span", class_="key any"),
        "pale: it failed at all, beside others. “Only”: no other rule failed.",
    )
    return join(
        (
            tag("table", tag("thead", head), tag("tbody", *rows), class_="forest rules"),
            tag("p", *key, f" The longest bar is {count(most)} pages. {said}", class_="small"),
        )
    )


def _rule_row(one: RuleChange, most: int) -> Html:
    thresholds = [shortened(threshold or "not there") for threshold in (one.threshold_a, one.threshold_b)]
    changed = thresholds[0] if thresholds[0] == thresholds[1] else " → ".join(thresholds)
    picture = bars(
        one.thrown_first,
        one.thrown_any,
        one.let_in_first,
        one.let_in_any,
        most,
        f"{one.rule}: {count(one.thrown_any)} pages thrown out, {count(one.let_in_any)} let in",
    )
    return tag(
        "tr",
        tag("th", tag("code", one.rule), " ", tag("span", changed, class_="small"), scope="row"),
        tag("td", picture, class_="plot"),
        _three("out", one.thrown_first, one.thrown_only, one.thrown_any),
        _three("in", one.let_in_first, one.let_in_only, one.let_in_any),
    )


def _three(way: str, first: int, only: int, failed: int) -> Html:
    beside = f"{count(first)} first, {count(only)} only" if failed else ""
    label = tag("span", f"{way} ", class_="narrow")
    return tag("td", label, tag("b", count(failed)), " ", tag("span", beside, class_="small"), class_="n")


def strata(found: Comparison) -> Html:
    """How many flips there are of each kind and rule, and how many of them are in the sample."""
    if not found.strata:
        return tag("p", "No page flipped: there is nothing to sample.")
    head = tag("tr", *(tag("th", title, scope="col") for title in ("flip", "by rule", "in the sample")))
    rows = [
        tag("tr", tag("td", _badge(one.kind)), tag("td", tag("code", one.rule)), tag("td", _of(one), class_="n"))
        for one in found.strata
    ]
    return tag("div", tag("table", tag("thead", head), tag("tbody", *rows), class_="counts strata"), class_="scroll")


def sample(found: Comparison) -> Html:
    """The flips of the sample, each folded."""
    return join(_flip(one, found.a.run, found.b.run) for one in found.sample)


def _flip(one: Flip, a: str, b: str) -> Html:
    facts = (
        ("page", link(one.url)),
        ("fetched", f"{moment(one.fetched_at)}, fetch {one.fetch_id}"),
        (a, _verdict(one.verdict_a, one.failed_a)),
        (b, _verdict(one.verdict_b, one.failed_b)),
    )
    summary = tag(
        "summary", _badge(one.kind), " ", tag("code", one.rule), " ", tag("span", foreign(one.url), class_="url")
    )
    listed = tag("dl", *(join((tag("dt", name), tag("dd", said))) for name, said in facts))
    return tag("details", summary, tag("div", listed, *_text(one)))


def _text(one: Flip) -> Sequence[Html]:
    text = one.text
    if text is None:
        return (tag("p", "Its text is no longer in the log.", class_="small"),)
    if not text.strip():
        return (tag("p", "It has no main text.", class_="small"),)
    shown = tag("pre", text[:TEXT_CAP_CHARACTERS], dir="auto")
    rest = len(text) + one.text_cut - TEXT_CAP_CHARACTERS
    if rest <= 0:
        return (shown,)
    return shown, tag("p", f"{count(rest)} characters more are not shown here.", class_="small")


def _verdict(verdict: str, failed: Sequence[FailedRule]) -> Html:
    if not failed:
        return join((verdict,))
    return join((f"{verdict}: ", tag("ul", *(tag("li", rule(one)) for one in failed))))


def _badge(kind: str) -> Html:
    return tag("span", "let in" if kind == IN else "thrown out", class_=f"badge {'in' if kind == IN else 'out'}")


def _of(one: Stratum) -> str:
    return part(one.sampled, one.flips)
