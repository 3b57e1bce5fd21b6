"""A forgotten site leaves the frontier and its totals; other sites stay."""

from __future__ import annotations

from crawler.frontier.forgetting import forget_sites
from crawler.frontier.report import lines_of
from crawler.frontier.rows import TOTALS_KEY, Totals, unpack
from tests.support.web.crawl_driver import Store, driving, hits_of, settings_for
from tests.support.web.loopback import Web, page

SITES = ("gone.test", "kept.test")


def test_a_site_leaves_with_its_urls_and_sums(loopback: Web) -> None:
    """Totals and rows are those of a crawl that never knew the site; a second time changes nothing."""
    loopback.routes |= {f"{site}/{n}": page(f"{n}", f"/{n + 1}") for site in SITES for n in range(5)}
    settings = settings_for(loopback.target, use_sitemaps=False, refetch_fetched_s=1000.0)
    hits = {site: hits_of(f"http://{site}/0", f"http://{site}/missing") for site in SITES}
    store, alone = Store(1), Store(1)
    for into, sites in ((store, SITES), (alone, SITES[1:])):
        with driving(settings, into) as driver:
            driver.run([hit for site in sites for hit in hits[site]])
            driver.round(hits_of(*(f"http://{site}/late" for site in sites)))  # queued
    state = store.states[0]
    state.apply(forget_sites(settings, state, lambda site: site == "gone.test"))
    assert not any(b"gone.test" in key + value for key, (value, _) in state.rows.items())
    assert unpack(Totals, state.rows[TOTALS_KEY][0]) == unpack(Totals, alone.states[0].rows[TOTALS_KEY][0])
    assert len(state.rows) == len(alone.states[0].rows)
    assert forget_sites(settings, state, lambda site: site == "gone.test") == []
    assert len(list(lines_of(state, settings, 1))) == 1
