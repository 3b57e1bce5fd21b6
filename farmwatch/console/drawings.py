"""The pictures of each page, from the data that its JSON twin has."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from importlib.resources import files
from typing import Any, NamedTuple

from markupsafe import Markup

from farmwatch.console.pictures import (
    Dated,
    Mark,
    Point,
    Portion,
    Step,
    Strip,
    bars,
    path,
    percent,
    shares,
    timeline,
    trend,
    whole,
)
from scoring.estimate.definitions import RANKED_RESULTS
from scoring.rates.groups import UNKNOWN
from stream.schema.dates import CHATGPT
from stream.text.times import day_ms
from stream.text.wording import counted

_FLAGS = {True: ("flagged", "of-llm"), False: ("not flagged", "of-human"), None: ("no flag", "of-open")}
_STEPS = 200  # of a test that are drawn: most sites are decided long before
_SAVED, _MARGIN = 720, 10  # px: the width of a picture that is saved, and the margin around it
_PART_WORDS = {
    "all": "all",
    "first_ten": "the first ten",
    "new": "of sites that no result named before that week",
    "returning": "of the other sites",
}
_LINES, _SHADES = 30, 6  # groups of a chart, the largest; colours of the parts that have no own
Data = Mapping[str, Any]
Draw = Callable[[Data], Markup]


class Drawing(NamedTuple):
    """A picture of the page `view`. `save` draws it as a file, which has no page around it."""

    view: str
    draw: Draw
    save: Draw


def static_text(name: str) -> str:
    """A file that the console serves as it is."""
    return files("farmwatch.console").joinpath("static", name).read_text(encoding="utf-8")


def saved(picture: Markup) -> str:
    """A picture as a file of its own, with its colours."""
    head, _, rest = str(picture).partition(">")
    height = int(re.findall(r'height="(\d+)"', head)[0]) + 2 * _MARGIN
    start = f'<svg xmlns="http://www.w3.org/2000/svg" width="{_SAVED + 2 * _MARGIN}" height="{height}">'
    inner = head.replace("<svg", f'<svg x="{_MARGIN}" y="{_MARGIN}" width="{_SAVED}"', 1)
    return f"{start}<style>{static_text('pictures.css')}</style>{inner}>{rest}</svg>\n"


def _names(lines: Sequence[Data]) -> list[str]:
    """What each line of the share is of; with its ruleset where several lines are of the same."""
    names = [f"{line['by']} {line['group']}" if line["by"] else "all sites" for line in lines]
    many = {name for name, number in Counter(names).items() if number > 1}
    return [f"{name}, {line['digest'][:8]}" if name in many else name for name, line in zip(names, lines, strict=True)]


def verdict_parts(line: Data) -> list[Portion]:
    """Sites with a scored article: what their verdict says to people."""
    llm, human = line["llm"], line["human"]
    numbers = {"decided llm": llm, "decided human": human, "open": max(0, line["scored_sites"] - llm - human)}
    return [Portion(words, number, f"of-{words.split()[-1]}") for words, number in numbers.items()]


def reason_parts(line: Data) -> list[Portion]:
    """Sites without a scored article by reason."""
    reasons = list(line["not_judged"].items())
    return [Portion(why, sites, f"of-{min(n, _SHADES - 1)}") for n, (why, sites) in enumerate(reasons)]


def _share(data: Data, *, is_file: bool = False) -> Markup:
    lines = data["lines"]
    largest = sorted(range(len(lines)), key=lambda n: -lines[n]["scored_sites"])[:_LINES]
    names = _names(lines)
    rows = [_interval(names[n], lines[n]) for n in sorted(largest)]
    title = f"Share of LLM sites by {data['by']}" if data["by"] else "Share of LLM sites"
    return shares(title, rows, is_headline=not (is_file or data["by"] or len(rows) > 1))


def _interval(name: str, of: Data) -> Strip:
    return Strip(name, of["share"], of["low"], of["high"], f"of {counted(of['scored_sites'], 'site')}")


def _funnel(data: Data) -> Markup:
    return bars("From hits to verdicts", [Portion(stage["stage"], stage["count"], "of-0") for stage in data["funnel"]])


def _test(data: Data) -> Markup:
    test = data["test"]
    if test is None:
        return Markup()
    steps = []
    for step in test["steps"][:_STEPS]:
        flag, look = _FLAGS[step["flag"]]
        said = f"page {step['number']}: {percent(step['p_llm'])} {flag}, sum {step['llr']:+.2f} {step['verdict']}"
        steps.append(Step(step["p_llm"], step["llr"], said, look))
    return path(f"Test of {data['site']['site']}, page by page", steps, test["bounds"], test["threshold"])


def _timeline(data: Data) -> Markup:
    articles = []
    for article in data["dated"]:
        flag, look = _FLAGS[article["flag"]]
        said = f"{article['published']}: {percent(article['p_llm'])} {flag}"
        articles.append(Dated(date.fromisoformat(article["published"]), article["p_llm"], said, look))
    words = "release of ChatGPT" + ("; the site turned" if data["site"]["turned"] else "")
    return timeline(f"Articles of {data['site']['site']} by date", articles, CHATGPT, words)


def _shares(data: Data) -> Markup:
    rows = [_interval(f"{name}: {data[name.lower()]['run']}", data[name.lower()]["estimate"]) for name in ("A", "B")]
    return shares("Shares of two runs", rows)


def _trend(data: Data) -> Markup:
    points = [Point(*(point[name] for name in Point._fields)) for point in data["history"]]
    return trend("Share of LLM sites over time", points, [Mark(**mark) for mark in data["marks"]])


def _weeks(part: str) -> Drawing:
    def draw(data: Data) -> Markup:
        if data["by"] != "week" or data["of"] != RANKED_RESULTS:
            return Markup()
        dated = [line for line in data["lines"] if line["group"] != UNKNOWN]
        found = [(line, line if part == "all" else line[part]) for line in dated]
        points = [
            Point(_monday_ms(line["group"]), of["share"], of["low"], of["high"], _version(line))
            for line, of in found
            if of is not None and of["share"] is not None
        ]
        return trend(f"Share of LLM sites in search results, by rank: {_PART_WORDS[part]}", points)

    return Drawing("answer", draw, draw)


def _monday_ms(week: str) -> int:
    year, number = week.split("-W")
    return day_ms(date.fromisocalendar(int(year), int(number), 1))


def _version(line: Data) -> str:
    return " ".join(line[name] for name in ("digest", "detector", "site_method_digest"))


def _parts(view: str, title: str, parts: Callable[[Data], list[Portion]]) -> Drawing:
    def save(data: Data) -> Markup:
        return bars(title, parts(data)) if data["lines"] and not data["by"] else Markup("")

    return Drawing(view, lambda data: whole(title, parts(data)), save)


def _alike(view: str, draw: Draw) -> Drawing:
    return Drawing(view, draw, draw)


DRAWINGS = {
    "share": Drawing("answer", _share, lambda data: _share(data, is_file=True)),
    "verdicts": _parts("answer", "Verdicts of sites", lambda data: verdict_parts(data["lines"][0])),
    "not-judged": _parts("answer", "Sites not judged, by reason", lambda data: reason_parts(data["lines"][0])),
    "funnel": _alike("flow", _funnel),
    "test": _alike("site", _test),
    "dates": _alike("site", _timeline),
    "shares": _alike("compare", _shares),
    "trend": _alike("answer", _trend),
    "results": _weeks("all"),
    "results-first-ten": _weeks("first_ten"),
    "results-new": _weeks("new"),
    "results-returning": _weeks("returning"),
}
