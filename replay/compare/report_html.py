"""A comparison as one HTML file to keep and to pass on: no script, and nothing that is loaded from anywhere.

Its own policy forbids what it does not need (Content Security Policy, https://www.w3.org/TR/CSP3/), so that even a
mistake in escaping could neither run a page's script nor tell a site that somebody reads this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version

from replay.compare.comparison import OTHER_WINDOWS, Comparison, GroupChange, ShareChange, Side, points
from replay.compare.report_flips import rule_bars, sample, strata
from replay.compare.report_markup import Html, tag
from replay.compare.report_style import STYLE
from replay.compare.report_tables import changed_sites, denominators, forest, page_table, site_tables
from replay.compare.report_words import count, difference, moment, part, percent, window
from scoring.rates.split_rates import UNKNOWN

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def render(found: Comparison) -> str:
    """The whole report. What comes from crawled pages is text in it, and nothing else."""
    title = f"{found.b.run} beside {found.a.run}"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="referrer", content="no-referrer"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("link", rel="icon", href="data:,"),
        tag("title", f"{title}: farmwatch compare"),
        tag("style", Html(STYLE)),
    )
    body = tag("body", tag("main", *_sections(found, title)), _foot(found))
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _sections(found: Comparison, title: str) -> Iterator[Html]:
    yield tag("h1", title)
    yield tag("p", f"What two runs of farmwatch say of the same pages and sites, as of {moment(found.at)}.")
    yield from _notes(found)
    yield _headline(found)
    yield tag("h2", "Change of the shares")
    yield tag("p", _method(found), class_="small")
    yield forest(((_capital(change.title), change) for change in found.changes), found)
    yield tag("h2", "Verdicts side by side")
    yield tag("p", "Blue: both say the same. Orange: they differ. The darker, the larger the share.", class_="small")
    yield tag("div", page_table(found), site_tables(found), class_="tables")
    yield changed_sites(found)
    yield tag("h2", "What the rates are of")
    yield denominators(found)
    yield tag("h2", "Flips by rule")
    yield tag("p", _flips(found))
    yield rule_bars(found)
    yield from _only(found)
    yield tag("h2", "By source and rank")
    yield from _groups(found)
    yield tag("h2", "A sample of flips")
    if found.strata and not found.sample_size:
        yield tag("p", "No sample was asked for.")
        return
    yield tag("p", _sampled(found))
    yield strata(found)
    yield sample(found)


def _notes(found: Comparison) -> Iterator[Html]:
    notes = list(found.notes)
    if found.identical:
        notes.insert(0, "The two runs are identical: one ruleset, detector, method and window, and no verdict differs.")
    if notes:
        yield tag("div", tag("ul", *(tag("li", note) for note in notes)), class_="notes", role="note")


def _headline(found: Comparison) -> Html:
    first = found.changes[0] if found.changes else None
    changed = "–" if first is None or first.difference is None else f"{points(first.difference)} points"
    middle = tag(
        "div",
        tag("div", "change of the rate", class_="small"),
        tag("div", changed, class_="figure"),
        tag("div", _change_words(first, found), class_="small"),
        class_="card",
    )
    return tag("div", _rate(found.a), middle, _rate(found.b), class_="cards")


def _change_words(first: ShareChange | None, found: Comparison) -> str:
    if first is None:
        return "nothing to compare"
    moved = f"{count(first.moved)} of {count(first.sites)} sites moved"
    if first.difference is None:
        return "; ".join((first.remark or "nothing to compare", moved))
    said = f"{found.confidence:.0%} interval, paired and by site: {difference(first)}"
    windows = OTHER_WINDOWS if found.other_windows else ""
    return "; ".join(filter(None, (said, windows, moved, first.remark)))


def _rate(side: Side) -> Html:
    return tag(
        "div",
        tag("div", f"{side.run}: LLM sites of those classifiable", class_="small"),
        tag("div", percent(side.estimate.rate), class_="figure"),
        tag("p", side.estimate.text, class_="small"),
        *([tag("p", side.progress, class_="small")] if side.progress else []),
        class_="card",
    )


def _method(found: Comparison) -> str:
    return (
        f"{found.b.run} minus {found.a.run}, in percentage points, with {found.confidence:.0%} intervals: a paired"
        f" bootstrap that draws whole sites ({count(found.resamples)} resamples, seed {found.seed}). A filled dot: the"
        " interval leaves out 0. Below each share: what it is of."
    )


def _flips(found: Comparison) -> str:
    pages = found.pages
    return (
        f"{part(pages.b_only_article, pages.common)} fetches that both judged became articles (let in), and"
        f" {count(pages.a_only_article)} were thrown out. A page let in is counted for the rules of {found.a.run}"
        f" that it failed, a page thrown out for the rules of {found.b.run} that it fails."
    )


def _only(found: Comparison) -> Iterator[Html]:
    for side, rules in ((found.a, found.only_in_a), (found.b, found.only_in_b)):
        if rules:
            names = [part for rule in rules for part in (tag("code", rule), ", ")][:-1]
            yield tag("p", f"In force in {side.run} only: ", *names, ".", class_="small")


def _groups(found: Comparison) -> Iterator[Html]:
    known = {group.by for group in found.groups if group.group != UNKNOWN}
    if not known:
        yield tag("p", "No site has a source or a rank.")
        return
    yield tag("p", "A site of several sources counts in each of them.", class_="small")
    titles: dict[tuple[str, str], str] = {}
    for group in found.groups:
        for change in group.changes:
            titles.setdefault((group.by, change.name), change.title)
    for (by, name), title in titles.items():
        if by in known:
            yield tag("h3", f"{_capital(title)}, by {by}")
            yield forest(_rows([group for group in found.groups if group.by == by], name), found)
    for by in dict.fromkeys(by for by, _ in titles if by not in known):
        yield tag("p", f"No site has a {by}.", class_="small")


def _rows(groups: Sequence[GroupChange], name: str) -> Iterator[tuple[str, ShareChange]]:
    for group in groups:
        yield from ((group.group, change) for change in group.changes if change.name == name)


def _capital(title: str) -> str:
    return title[:1].upper() + title[1:]


def _sampled(found: Comparison) -> str:
    flips = sum(one.flips for one in found.strata)
    return (
        f"{part(len(found.sample), flips)} flips, drawn evenly over kinds and rules (seed {found.seed}, up to"
        f" {count(found.sample_size)}): a rare flip has as many pages here as a frequent one. Texts are those of the"
        " pages; links lead to the pages as they are today."
    )


def _foot(found: Comparison) -> Html:
    facts: Sequence[tuple[str, Callable[[Side], str]]] = (
        ("ruleset", lambda side: f"{side.ruleset}, digest {side.digest}"),
        ("detector", lambda side: side.detector),
        ("feature epoch", lambda side: side.epoch or "not known"),
        ("site method", lambda side: side.site_method),
        ("window", lambda side: window(side.from_at, side.to_at)),
        ("state", lambda side: side.state + (f", {side.progress}" if side.progress else "")),
    )
    head = tag("tr", tag("td"), *(tag("th", side.run, scope="col") for side in (found.a, found.b)))
    rows = [
        tag("tr", tag("th", name, scope="row"), *(tag("td", of(side)) for side in (found.a, found.b)))
        for name, of in facts
    ]
    made = (
        f"Made {moment(found.at)} by farmwatch {_version()} (schema {found.v}): {count(found.resamples)} resamples,"
        f" {found.confidence:.0%} intervals, seed {found.seed}, sample of up to {count(found.sample_size)}."
    )
    return tag("footer", tag("table", tag("thead", head), tag("tbody", *rows)), tag("p", made))


def _version() -> str:
    try:
        return version("farmwatch")
    except PackageNotFoundError:
        return "of an unknown version"
