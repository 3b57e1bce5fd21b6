"""Times that a process with a wrong clock has stored: how far the next process believes them."""

from __future__ import annotations

from typing import Any

import pytest

from crawler.fetch.jobs import RequestKind
from crawler.frontier.rows import CLOCK_KEY, ClockRow, SiteRow, pack, revisit_prefix, site_key
from crawler.frontier.stored_times import believed
from tests.support.web.frontier_site import Site, begun, fail, hits_at, status

HOUR_MS, DAY_MS, YEAR_MS = 3_600_000, 86_400_000, 365 * 86_400_000
MINUTE_MS = 60_000
REVISITS: dict[str, Any] = {"use_sitemaps": False, "refetch_fetched_s": 30 * 86_400.0}


def checked(site: Site) -> Site:
    """Go through all rows, as each tick does for some."""
    for _ in range(3):
        site.check_times()
    return site


def at(site: Site, now_ms: int) -> Site:
    """Go on with another process, at this time."""
    site.now = now_ms
    return checked(site)


def visit(site: Site, **fields: object) -> str:
    """Answer the next page, after robots.txt if that is due; returns its path."""
    job = site.reach(RequestKind.PAGE)
    site.answer(job, **fields)
    return job.url.removeprefix("http://a.test/")


@pytest.mark.parametrize("ahead_ms", [HOUR_MS, YEAR_MS])
def test_the_spacing_of_a_wrong_clock_is_kept_and_no_more(ahead_ms: int) -> None:
    """A site that was visited while the clock was ahead is due within a minute, and not before its delay."""
    site = checked(begun("0", "1", use_sitemaps=False))
    true_ms = site.now
    visit(at(site, true_ms + ahead_ms))
    at(site, true_ms + 10_000)
    due = site.committed.next_due()
    assert due is not None and true_ms + 10_000 + 5000 <= due <= true_ms + 10_000 + MINUTE_MS
    assert visit(site) == "1"


def test_a_new_hit_of_a_known_site_is_due_at_once() -> None:
    """Also where the clock was a year ahead when the site came to rest."""
    site = checked(begun("0", use_sitemaps=False))
    true_ms = site.now
    visit(at(site, true_ms + YEAR_MS))
    at(site, true_ms + 10_000)
    site.hits(*hits_at("new"))
    assert (site.committed.next_due() or 0) <= site.now + MINUTE_MS
    assert visit(site) == "new"


def test_a_park_of_a_wrong_clock_lasts_as_long_as_a_park_may() -> None:
    """An hour at most, and its reason stays."""
    site = checked(begun("0", use_sitemaps=False))
    true_ms = site.now
    visit(at(site, true_ms + YEAR_MS), **status(429), retry_after_s=600.0)
    at(site, true_ms + 10_000)
    assert site.now < site.row.parked_until <= site.now + HOUR_MS
    assert site.row.parked_why == "http_429" and site.row.next_start == site.row.parked_until


def test_revisits_keep_their_interval() -> None:
    """Pages fetched a year ahead are visited again after their interval from now, and no page at once."""
    site = checked(begun("0", "1", "2", **REVISITS))
    true_ms = site.now
    at(site, true_ms + YEAR_MS)
    for _ in range(3):
        visit(site)
    at(site, true_ms + 20_000)
    keys = [key for key in site.committed.rows if key.startswith(revisit_prefix("a.test"))]
    due = site.committed.next_due()
    assert len(keys) == 3 and due is not None and due == site.now + 30 * DAY_MS
    site.now = due
    assert [site.step().kind for _ in range(4)] == [RequestKind.ROBOTS, *[RequestKind.PAGE] * 3]


def test_a_stop_of_a_wrong_clock_can_be_lifted() -> None:
    """A day from now on a new hit opens an unreachable site, not a year later."""
    site = checked(begun("0", use_sitemaps=False, tries=1))
    true_ms = site.now
    visit(at(site, true_ms + YEAR_MS), **fail())
    assert site.row.stopped == "connection"
    at(site, true_ms + 10_000)
    site.now += DAY_MS
    assert site.hits(*hits_at("0")) == ["queued"]


def test_a_clock_behind_waits_no_longer_than_the_rules() -> None:
    """A process that starts ten minutes behind asks no site sooner than its delay, and each within a minute."""
    site = checked(begun("0", "1", use_sitemaps=False))
    site.step()
    at(site, site.now - 10 * MINUTE_MS)
    due = site.committed.next_due()
    assert due is not None and site.now + 5000 <= due <= site.now + MINUTE_MS


def test_right_times_stay() -> None:
    """A process that starts later, or with a clock that is a little behind, changes no row."""
    site = checked(begun("0", "1", **REVISITS))
    site.step()
    before = dict(site.committed.rows)
    for now in (site.now - 30_000, site.now + DAY_MS):
        at(site, now)
        assert site.committed.rows == before


def test_many_sites_are_checked_in_steps() -> None:
    """Each call takes some sites, and goes on where the committed one ended."""
    site = Site()
    for number in range(100):
        row = SiteRow(f"s{number}.test", next_start=site.now + YEAR_MS, queued=1)
        site.committed.rows[site_key(row.site)] = (pack(row), row.next_start)
    site.hits(*hits_at("0"))
    site.committed.rows[CLOCK_KEY] = (pack(ClockRow(site.now + YEAR_MS)), None)
    left = []
    for _ in range(4):
        site.check_times()
        left.append(sum((due or 0) > site.now + MINUTE_MS for _, due in site.committed.rows.values()))
    assert left[0] > left[1] > left[2] == left[3] == 0


def test_robots_txt_is_read_again_by_the_right_clock() -> None:
    """A text that was read a year ahead is valid for a day from now on."""
    site = begun("0", use_sitemaps=False)
    true_ms = site.now
    at(site, true_ms + YEAR_MS).step()
    at(site, true_ms + 10_000)
    assert site.row.robots_until <= site.now + DAY_MS


def test_nothing_is_believed_beyond_its_rule() -> None:
    """A time in the past, and 0, which means none, stay."""
    assert [believed(stored, 1000, 5.0) for stored in (0, 900, 3000, 9000)] == [0, 900, 3000, 6000]
