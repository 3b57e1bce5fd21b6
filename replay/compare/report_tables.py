"""The tables of a report: verdicts of A against those of B, what stands under the rates, and the changes of shares."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from replay.compare.comparison import OTHER_WINDOWS, SITE_KINDS, Comparison, ShareChange, Side, points
from replay.compare.report_markup import Html, foreign, join, tag
from replay.compare.report_plots import axis, mark, scale
from replay.compare.report_words import count, part, percent, signed

_COUNTS: Sequence[tuple[str, str, Callable[[Side], int]]] = (
    ("verdicts", "fetches judged by the ruleset", lambda side: side.verdicts),
    ("other", "fetches of another ruleset, left out", lambda side: side.other_verdicts),
    ("head", "sites", lambda side: side.sites),
    ("", "llm", lambda side: side.llm),
    ("", "human", lambda side: side.human),
    ("", "undecided", lambda side: side.undecided),
    ("sum", "classifiable (the denominator of the rate)", lambda side: side.classifiable),
    ("", "unclassifiable", lambda side: side.unclassifiable),
    ("other", "sites of another ruleset, detector or method, left out", lambda side: side.other_sites),
    ("head", "pages of these sites", lambda side: side.pages),
    ("sum", "articles", lambda side: side.articles),
    ("", "scored", lambda side: side.scored),
    ("", "flagged among the scored", lambda side: side.flagged),
    ("", "abstained", lambda side: side.abstained),
    ("", "without a score so far", lambda side: side.unscored),
)


def page_table(found: Comparison) -> Html:
    """The 2x2 of page verdicts."""
    pages = found.pages
    cells = [[pages.both_articles, pages.a_only_article], [pages.b_only_article, pages.both_dropped]]
    table = _square("Pages by verdict", ("article", "dropped"), cells, found.a.run, found.b.run)
    only = [
        f"{count(number)} only in {side.run}"
        for number, side in ((pages.only_in_a, found.a), (pages.only_in_b, found.b))
        if number
    ]
    said = f"{count(pages.common)} fetches that both runs judged" + (f"; {', '.join(only)}" if only else "")
    return tag("div", table, tag("p", f"{said}.", class_="small"), class_="card")


def site_tables(found: Comparison) -> Html:
    """Site verdicts: llm against all else among sites that both could classify, and all kinds."""
    two = _square("Sites: llm or not", ("llm", "not llm"), found.sites.llm_table, found.a.run, found.b.run)
    both = sum(map(sum, found.sites.llm_table))
    five = _square("Sites by verdict", SITE_KINDS, found.sites.counts, found.a.run, found.b.run, wide=True)
    known = sum(map(sum, found.sites.counts))
    return join(
        (
            tag(
                "div",
                two,
                tag("p", f"{count(both)} sites that both runs could classify.", class_="small"),
                class_="card",
            ),
            tag(
                "div", five, tag("p", f"{count(known)} sites that either run has.", class_="small"), class_="card wide"
            ),
        )
    )


def changed_sites(found: Comparison) -> Html:
    """The sites with another verdict, folded: as many as the comparison names."""
    if not found.changed_sites:
        return Html()
    a, b = found.a.run, found.b.run
    titles = ("site", a, b, f"articles {a}", f"articles {b}")
    head = tag("tr", *(_head(title, "col", "n" if number > 2 else None) for number, title in enumerate(titles)))
    rows = [
        tag(
            "tr",
            _head(foreign(one.site), "row"),
            tag("td", one.verdict_a),
            tag("td", one.verdict_b),
            *(
                tag("td", count(articles), *([f" ({count(unscored)} unscored)"] if unscored else []), class_="n")
                for articles, unscored in ((one.articles_a, one.unscored_a), (one.articles_b, one.unscored_b))
            ),
        )
        for one in found.changed_sites
    ]
    table = tag("table", tag("thead", head), tag("tbody", *rows), class_="counts")
    shown = f"{part(len(found.changed_sites), found.sites.changed)} sites with another verdict, most articles first"
    return tag("details", tag("summary", shown), tag("div", table, class_="scroll"))


def denominators(found: Comparison) -> Html:
    """What each run counts, side by side."""
    head = tag("tr", _head("", "col"), *(_head(run, "col", "n") for run in (found.a.run, found.b.run, "change")))
    rows = [
        tag(
            "tr",
            _head(name, "row"),
            *(tag("td", said, class_="n") for said in (count(of(found.a)), count(of(found.b)))),
            tag("td", signed(of(found.b) - of(found.a)), class_="n"),
            class_=kind or None,
        )
        for kind, name, of in _COUNTS
        if kind != "other" or of(found.a) or of(found.b)
    ]
    return tag("div", tag("table", tag("thead", head), tag("tbody", *rows), class_="counts"), class_="scroll")


def forest(rows: Iterable[tuple[str, ShareChange]], found: Comparison) -> Html:
    """Changes of shares, one a row, all on one scale. What must be known of several rows stands under them, once."""
    named, a, b = list(rows), found.a.run, found.b.run
    on = scale(change for _, change in named)
    remarks = _remarks(named)
    titles = ("", "change in points, with its interval", "points", a, b)
    head = tag("tr", *(_head(title, "col", "n" if number > 1 else None) for number, title in enumerate(titles)))
    body = []
    for name, change in named:
        own = [remark for remark, names in remarks.items() if names == [name]]
        if found.other_windows:
            own.insert(0, OTHER_WINDOWS)
        body.append(_forest_row(name, change, own, mark(change, on) if on else Html(), a, b))
    if on:
        body.append(tag("tr", tag("td"), tag("td", axis(on), class_="plot"), *[tag("td")] * 3, class_="axis"))
    table = tag("table", tag("thead", head), tag("tbody", *body), class_="forest")
    return join((table, *_below(remarks, len(named))))


def _remarks(named: Sequence[tuple[str, ShareChange]]) -> dict[str, list[str]]:
    """What must be known beside changes -> names of the rows of which it holds."""
    found: dict[str, list[str]] = {}
    for name, change in named:
        nothing = "nothing to compare" if change.difference is None else ""
        for remark in dict.fromkeys(filter(None, (change.remark or nothing).split("; "))):
            found.setdefault(remark, []).append(name)
    return found


def _below(remarks: Mapping[str, Sequence[str]], rows: int) -> Iterator[Html]:
    for remark, names in remarks.items():
        if len(names) > 1:
            whose = "All rows" if len(names) == rows else join([part for name in names for part in (", ", name)][1:])
            yield tag("p", whose, f": {remark}.", class_="small")


def _forest_row(name: str, change: ShareChange, remarks: Iterable[str], picture: Html, a: str, b: str) -> Html:
    if change.difference is None:
        said: object = "–"
    elif change.low is None or change.high is None:
        said = points(change.difference)
    else:
        between = f"{points(change.low)} to {points(change.high)}"
        said = join((tag("b", points(change.difference)), " ", tag("span", between, class_="small")))
    told = "; ".join((f"{count(change.moved)} of {count(change.sites)} sites moved", *remarks))
    return tag(
        "tr",
        _head(join((name, " ", tag("span", told, class_="small"))), "row"),
        tag("td", picture, class_="plot"),
        tag("td", said, class_="n"),
        _share(change.a, change.a_part, change.a_whole, a),
        _share(change.b, change.b_part, change.b_whole, b),
    )


def _share(share: float | None, number: int, whole: int, run: str) -> Html:
    label = tag("span", f"{run} ", class_="narrow")
    return tag("td", label, percent(share), " ", tag("span", part(number, whole), class_="small"), class_="n")


def _square(
    title: str, names: Sequence[str], cells: Sequence[Sequence[int]], a: str, b: str, *, wide: bool = False
) -> Html:
    """A table of counts, rows by A and columns by B, each cell as dark as its share of all."""
    total = sum(map(sum, cells))
    columns = [sum(row[number] for row in cells) for number in range(len(names))]
    titles = (_head(tag("span", name), "col", "n") for name in names)
    head = tag("tr", tag("td"), *titles, _head("all", "col", "n"))
    rows = []
    for number, (name, row) in enumerate(zip(names, cells, strict=True)):
        found = [_cell(pages, total, same=number == other) for other, pages in enumerate(row)]
        rows.append(tag("tr", _head(name, "row"), *found, tag("td", count(sum(row)), class_="n all")))
    sums = [tag("td", count(number), class_="n all") for number in (*columns, total)]
    rows.append(tag("tr", _head("all", "row"), *sums))
    table = tag(
        "table",
        tag("caption", title, " ", tag("span", f"rows {a}, columns {b}", class_="small")),
        tag("thead", head),
        tag("tbody", *rows),
        class_="square wide" if wide else "square",
    )
    return tag("div", table, class_="scroll")


def _cell(number: int, total: int, *, same: bool) -> Html:
    share = number / total if total else 0.0
    shown = tag("span", f"{share:.1%}", class_="small") if number else ""
    kind = ("n same" if same else "n differs") if number else "n"
    return tag("td", count(number), " ", shown, class_=kind, style=f"--s:{share:.3f}" if number else None)


def _head(content: object, scope: str, kind: str | None = None) -> Html:
    return tag("th", content, scope=scope, class_=kind)
