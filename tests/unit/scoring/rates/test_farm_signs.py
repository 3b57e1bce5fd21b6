"""The signs of a content farm: yes, no or unknown."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.rates.farm_signs import FarmSigns, both, either
from stream.schema.records import Sitemaps, SiteState

SIGNS = (True, False, None)
WITH_ADS = {"ads:adsense": 2, "ads:adsense:123": 2}


def row(pages: int = 4, articles: int = 4, **more: object) -> SiteState:
    """A site of this many pages and articles."""
    return SiteState(id="a.test", site="a.test", pages=pages, articles=articles, epoch="e", **more)  # type: ignore[arg-type]


def listed(urls: int, read: int = 1, files: int = 1) -> dict[str, Sitemaps]:
    """Sitemaps of the site."""
    return {"a.test": Sitemaps(id="a.test", site="a.test", urls=urls, files_read=read, files_listed=files, months={})}


def signs(sitemaps: dict[str, Sitemaps], *told: str) -> FarmSigns:
    return FarmSigns(sitemaps, frozenset(told or ("e",)))


@given(st.lists(st.sampled_from(SIGNS), min_size=1, max_size=4))
def test_unknown_signs_are_both_values_at_once(of: list[bool | None]) -> None:
    """A conjunction is known if and only if it is the same for each value of the unknown ones; so is a disjunction."""
    worlds = list(product(*([sign] if sign is not None else [True, False] for sign in of)))
    for found, every in (
        (both(*of), {all(world) for world in worlds}),
        (either(*of), {any(world) for world in worlds}),
    ):
        assert found == (every.pop() if len(every) == 1 else None)


@given(
    st.integers(0, 200),
    st.integers(0, 3),
    st.integers(0, 3),
    st.integers(0, 4),
    st.integers(0, 4),
    st.dictionaries(st.sampled_from(["ads:gam", "affiliate:amazon", "cms:wordpress"]), st.integers(1, 4)),
)
def test_more_knowledge_never_turns_a_yes_into_a_no(
    urls: int, read: int, unread: int, pages: int, others: int, of: dict[str, int]
) -> None:
    """A sign that is known stays as it is when further files are read that list more, or nothing more."""
    of = {name: min(number, pages + others) for name, number in of.items()}
    site = row(pages + others, pages, signals=of)
    partly, more, same = (
        signs(listed(urls + added, files, read + unread))
        for added, files in ((0, read), (90, read + unread), (0, read + unread))
    )
    before = partly.farm(site)
    assert before is None or before == same.farm(site)
    assert before is not True or more.farm(site) is True
    assert both(partly.mass(site, 100), True) == partly.mass(site, 100)


@pytest.mark.parametrize(
    ("sitemaps", "pages", "articles", "expected"),
    [
        ({}, 4, 4, None),  # no sitemap
        (listed(100), 4, 4, True),
        (listed(99), 4, 4, False),
        (listed(199), 4, 2, None),  # half of its pages are articles, and of all perhaps more
        (listed(180), 2, 1, None),
        (listed(100), 10, 5, False),  # at most .76 by the interval
        (listed(110), 200, 180, None),
        (listed(200), 4, 2, True),
        (listed(99, 1, 2), 4, 4, None),  # a file is unread
        (listed(100, 1, 2), 4, 4, True),
        (listed(500), 1, 1, None),  # one page tells nothing of the others
        (listed(99), 1, 1, False),
    ],
)
def test_mass_is_by_the_article_urls_of_sitemaps(
    sitemaps: dict[str, Sitemaps], pages: int, articles: int, expected: bool | None
) -> None:
    """Enough article URLs are mass, also where files are unread; fewer are none where all files were read and tell so.

    The part of a site's pages that are articles is of a sample, so near the limit the sign is unknown.
    """
    assert signs(sitemaps).mass(row(pages, articles)) is expected


@pytest.mark.parametrize(
    ("pages", "articles", "of", "expected"),
    [
        (4, 4, WITH_ADS, True),
        (4, 4, {"ads:adsense": 1, "ads:gam": 1}, None),  # one page, or two
        (4, 4, {"ads:adsense": 1, "ads:adsense:1": 1, "cms:wix": 4}, False),  # one page: the id is of the name
        (4, 4, {"ads:adsense:1": 1, "ads:adsense:2": 1}, False),
        (4, 4, {"affiliate:amazon": 1, "affiliate:awin": 1}, None),
        (4, 4, {"ads:adsense": 1, "affiliate:awin": 1}, False),
        (4, 4, {"affiliate:amazon": 2}, True),
        (4, 3, {"affiliate:amazon": 2}, None),  # one of both may be on the page that is no article
        (4, 3, {"affiliate:amazon": 3}, True),
        (4, 3, {"affiliate:amazon": 1}, False),
        (1, 1, {"ads:adsense": 1}, None),
        (4, 4, {"analytics:google": 4, "cms:wordpress": 4}, False),
        (4, 4, {"ads:adsense:1": 0, "ads-txt:owner:a.test": 0}, False),  # in ads.txt alone
        (4, 4, {}, False),
    ],
)
def test_a_site_is_monetised_by_two_of_its_pages(
    pages: int, articles: int, of: dict[str, int], expected: bool | None
) -> None:
    """Ads count on any two pages, affiliate links on two articles; what may be one page or two is unknown."""
    assert signs({}).monetised(row(pages, articles, signals=of)) is expected


def test_pages_from_before_signals_were_measured_tell_nothing() -> None:
    """In an epoch in which no page has a signal of any kind, nothing is known of monetisation."""
    of_epochs = FarmSigns.of([row(), row(signals={"cms:wordpress": 1})], {})
    assert of_epochs.monetised(row()) is False
    for of in ({}, {"ads-txt:owner:a.test": 0}):  # that of ads.txt is no page's
        assert FarmSigns.of([row(signals=of)], {}).monetised(row()) is None


@pytest.mark.parametrize(
    ("quarters", "expected"),
    [
        ({}, None),
        ({"2026-Q3": [2, 0], "2024-Q1": [2, 2]}, 100),
        ({"2025-Q3": [4, 0]}, 100),  # on the middle day of a quarter half of the one a year ago is recent
        ({"2025-Q2": [4, 0]}, 0),
    ],
)
def test_articles_a_year_are_those_of_the_last_four_quarters(
    quarters: dict[str, list[int]], expected: float | None
) -> None:
    """The part of dated articles that is of the last 12 months, times the article URLs."""
    now_ms = int(datetime(2026, 8, 16, 12, tzinfo=UTC).timestamp() * 1000)
    found = signs(listed(200)).articles_a_year(row(quarters=quarters), now_ms)
    assert found == (expected if expected is None else pytest.approx(expected, abs=3))
