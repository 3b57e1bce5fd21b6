"""The dates of pages: which source counts, which traps do not, and what is flagged."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest

from filters.dates.candidates import candidates
from filters.dates.page_dates import dates_of
from filters.extraction.html_tree import parse
from filters.settings import MeasureSettings
from filters.site_memory.measurer import Measurer
from filters.structure.measures import by_tag
from stream.schema.dates import CHATGPT, PageDates

URL = "https://a.example/the-ferry"
FETCHED = date(2026, 3, 5)
TEXT = "<p>The old ferry leaves the northern quay at a quarter past six.</p>"


def dates(html: str, url: str = URL, fetched: date | None = FETCHED) -> PageDates:
    elements = list(parse(html).iter())
    return dates_of(candidates(elements, by_tag(elements), html, url), fetched)


def published(html: str, url: str = URL) -> tuple[str, str] | None:
    """Day and source."""
    of = dates(html, url).published
    return (str(of), of.source) if of else None


def json_ld(*nodes: dict[str, Any]) -> str:
    return f'<script type="application/ld+json">{json.dumps({"@graph": nodes})}</script>'


def meta(name: str, content: str) -> str:
    return f'<meta property="{name}" content="{content}">'


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        (json_ld({"@type": "NewsArticle", "datePublished": "2021-05-04T10:00:00Z"}), ("2021-05-04", "json-ld")),
        (json_ld({"@type": ["Thing", "https://schema.org/BlogPosting"], "datePublished": "2021-05-04"}), "json-ld"),
        (meta("article:published_time", "2021-05-04T10:00:00Z"), "meta"),
        (f'{TEXT}<span itemprop="datePublished" content="2021-05-04">May</span>', "itemprop"),
        (f'{TEXT}<time class="entry-date published updated" datetime="2021-05-04">4 May</time>', "time"),
        (f"{TEXT}<time pubdate>4 May 2021</time>", "time"),
        (f'{TEXT}<meta name="date" content="2021-05-04">', "other meta"),
        (f'{TEXT}<time datetime="2021-05-04">4 May</time>', "other time"),
        (f'<div class="byline">By A. Writer, 4 May 2021</div>{TEXT}', "byline"),
    ],
)
def test_each_source_states_the_day(html: str, expected: tuple[str, str] | str) -> None:
    """Every source alone gives the day of publication and its own name."""
    assert published(html) == (expected if isinstance(expected, tuple) else ("2021-05-04", expected))


def test_the_day_in_the_url_is_declared() -> None:
    """A day in the path counts; one in the query does not."""
    assert published(TEXT, "https://a.example/2021/05/04/ferry") == ("2021-05-04", "url")
    assert published(TEXT, "https://a.example/ferry?from=2021-05-04") is None


def test_the_article_node_counts_not_those_of_others() -> None:
    """The node of this URL counts, else the first article; comments, images and other items of a list do not."""
    others = {"@type": "Article", "url": "https://a.example/other", "datePublished": "2019-01-02"}
    own = {"@type": "Article", "mainEntityOfPage": {"@id": URL}, "datePublished": "2021-05-04"}
    assert published(json_ld(others, own)) == ("2021-05-04", "json-ld")
    comment = {"@type": "Article", "comment": [{"@type": "Article", "datePublished": "2019-01-02"}]}
    assert published(json_ld(comment)) is None
    assert published(json_ld({"@type": "ImageObject", "datePublished": "2019-01-02"})) is None


def test_invalid_json_is_searched() -> None:
    """Much JSON-LD is invalid: its dates are found by name."""
    html = '<script type="application/ld+json">{"@type": "Article", "datePublished": "2021-05-04", }</script>'
    assert published(html) == ("2021-05-04", "json-ld")


@pytest.mark.parametrize("content", ['"' * 100_000, "[" * 100_000, '{"date": ' * 50_000, "1", "null", '[{"date": 1}]'])
def test_hostile_json_is_no_date(content: str) -> None:
    """JSON of any depth or type gives no date and no error."""
    assert published(f'<script type="application/ld+json">{content} date</script>') is None


def test_sources_that_agree_are_counted() -> None:
    """Sources within a day of the chosen one agree, and a month or a year with each of its days."""
    html = json_ld({"@type": "Article", "datePublished": "2021-05-04"}) + meta("article:published_time", "2021-05-05")
    found = dates(html, "https://a.example/2021/05/ferry")
    assert (found.agreeing, found.flags, found.trusted) == (3, [], date(2021, 5, 4))


def test_declared_dates_that_differ_are_a_conflict() -> None:
    """The more reliable source counts, but the day is not trusted."""
    html = json_ld({"@type": "Article", "datePublished": "2021-05-04"}) + meta("article:published_time", "2019-05-05")
    found = dates(html)
    assert (str(found.published), found.agreeing, found.flags, found.trusted) == ("2021-05-04", 1, ["conflict"], None)


def test_a_change_before_the_publication_is_a_conflict() -> None:
    """Of 2 to 5% of pages the date of change is before that of publication: one of them is wrong."""
    html = meta("article:published_time", "2021-05-04") + meta("article:modified_time", "2020-05-04")
    assert (dates(html).flags, dates(html).trusted) == (["conflict"], None)


def test_an_archive_that_is_dated_again_keeps_both_dates() -> None:
    """A page of before ChatGPT that was changed after it is trusted as published, and its change is known."""
    html = meta("article:published_time", "2019-05-04") + meta("article:modified_time", "2024-05-04")
    found = dates(html)
    assert found.trusted == date(2019, 5, 4) < CHATGPT
    assert found.modified is not None
    assert found.modified.day == date(2024, 5, 4)


def test_the_latest_change_counts() -> None:
    """Of several dates of change the last one is recorded, but none from after the fetch."""
    node = {"@type": "Article", "datePublished": "2019-05-04", "dateModified": "2020-01-01"}
    html = json_ld(node) + meta("og:updated_time", "2024-05-04")
    assert str(dates(html).modified) == "2024-05-04"
    assert str(dates(html, fetched=date(2022, 1, 1)).modified) == "2020-01-01"


@pytest.mark.parametrize(
    "header", ["<header><time>5 March 2026</time></header>", "<div class=date>March 5, 2026</div>"]
)
def test_the_day_of_the_crawl_in_a_header_is_flagged(header: str) -> None:
    """A weak date on the day of the fetch may be a clock; another weak date of the page is preferred."""
    assert dates(header + TEXT).flags == ["fetch_day"]
    both = dates(f"{header}{TEXT}<p class=byline>By A. Writer, 4 May 2021</p><time datetime=2021-05-04>4 May</time>")
    assert (str(both.published), both.flags) == ("2021-05-04", [])
    assert dates(meta("article:published_time", "2026-03-05")).trusted == FETCHED


def test_a_copyright_year_dates_nothing() -> None:
    """Neither a footer nor a line of copyright gives a date, not even one with a day."""
    footer = "<footer><p class=date>© 2019</p><time datetime=2019-01-01>2019</time></footer>"
    assert published(f"{TEXT}{footer}<p class=copyright-date>© 1 January 2019 A. Writer</p>") is None


def test_other_articles_and_comments_date_nothing() -> None:
    """Times in an aside, a navigation or a comment are of other texts."""
    time = "<time class=published datetime=2019-01-02>2 January 2019</time>"
    others = f"<aside>{time}</aside><nav>{time}</nav><div class=comment-list><p>{time}</p></div>"
    assert published(TEXT + others) is None


@pytest.mark.parametrize("inside", ["<div class=comment>{}</div>", "<footer>{}</footer>", "<aside>{}</aside>"])
@pytest.mark.parametrize("name", ["itemprop=datePublished", "name=date", "property='article:published_time'"])
def test_a_meta_element_of_a_comment_dates_nothing(inside: str, name: str) -> None:
    """In the body a `meta` element is of the item around it; in the head it is of the page, whatever its classes."""
    meta_of = f"<meta {name} content=2021-05-04>"
    assert published(TEXT + inside.format(meta_of)) is None
    head = f"<html class='has-sidebar comments-open'><head>{meta_of}</head><body>{TEXT}</body></html>"
    assert published(head) in {("2021-05-04", "meta"), ("2021-05-04", "other meta")}


def test_the_last_day_of_the_calendar_is_a_day_of_fetch() -> None:
    """A record that was fetched on 9999-12-31 is measured like any other: no day is later."""
    found = dates(meta("article:published_time", "2021-05-04"), fetched=date.max)
    assert (found.trusted, found.flags) == (date(2021, 5, 4), [])


@pytest.mark.parametrize(
    ("stated", "expected"),
    [("1970-01-01T00:00:00Z", (None, [])), ("2099-01-01", ("2099-01-01", ["future"])), ("today", (None, []))],
)
def test_impossible_days_are_no_days_of_publication(stated: str, expected: tuple[str | None, list[str]]) -> None:
    """The first second of Unix dates nothing, and a day of the future is never trusted."""
    found = dates(meta("article:published_time", stated))
    assert (found.published and str(found.published), found.flags) == expected
    assert found.trusted is None


def test_a_possible_day_is_preferred_to_one_of_the_future() -> None:
    """The less reliable source counts where the other is of the future, and both together are a conflict."""
    html = json_ld({"@type": "Article", "datePublished": "2099-05-04"}) + meta("article:published_time", "2021-05-04")
    assert (str(dates(html).published), dates(html).flags) == ("2021-05-04", ["conflict"])


def test_tomorrow_is_possible() -> None:
    """Days begin earlier in the east: the day after the fetch is trusted, the next one is not."""
    assert dates(meta("article:published_time", "2026-03-06")).trusted == date(2026, 3, 6)
    assert dates(meta("article:published_time", "2026-03-07")).flags == ["future"]
    assert dates(meta("article:published_time", "2026-03-07"), fetched=None).flags == []


def test_a_line_that_tells_a_change_is_no_publication() -> None:
    """What is updated, reviewed or aktualisiert is the date of a change, and so is a weak date of the same day."""
    line = dates(f"<p class=byline>Last updated 4 May 2021</p>{TEXT}")
    assert (line.published, str(line.modified)) == (None, "2021-05-04")
    same = dates(f"{meta('og:updated_time', '2021-05-04')}<p class=byline>4 May 2021</p>{TEXT}")
    assert (same.published, str(same.modified)) == (None, "2021-05-04")


def test_weak_dates_are_not_trusted() -> None:
    """A visible date without a declared one is recorded, and never trusted."""
    found = dates(f"<p class=byline>4 May 2021</p>{TEXT}")
    assert (str(found.published), found.flags, found.trusted) == ("2021-05-04", [], None)


def test_a_site_that_gives_one_day_to_its_pages_is_flagged() -> None:
    """From the fourth page on, a weak day that half of the site's pages have is flagged; a declared one is not."""

    def flags(pages: list[str]) -> list[list[str]]:
        measurer = Measurer(MeasureSettings())
        return [
            features.dates.flags
            for number, head in enumerate(pages)
            if (features := measurer.measure(f"{URL}-{number}", f"{head}<p>{number} {TEXT * 5}", "a.example")).dates
        ]

    weak, declared = "<p class=byline>4 May 2021</p>", meta("article:published_time", "2021-05-04")
    assert flags([weak] * 5) == [[], [], [], ["site_day"], ["site_day"]]
    assert flags([declared] * 5) == [[]] * 5
    assert flags([declared] * 5 + [weak] * 4) == [[]] * 9  # fewer than half
