"""Operators by the ids that their domains share."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from farmwatch.share.words import sentence
from scoring.estimate.clusters import WeightedSites, agreement
from scoring.estimate.definitions import SITES
from scoring.estimate.operators import MOST_DOMAINS, SiteAccounts, accounts_of, find_operators
from scoring.estimate.remarks import Fact, Remark, RemarkKind
from stream.schema.records import SiteState
from stream.text.registrable_domain import registrable_domain

UA, GA4, ADSENSE = "analytics:google:123456", "analytics:ga4:ABCDEFGH12", "ads:adsense:1234567890123456"
GTM, PIXEL = "analytics:gtm:ABC123", "analytics:facebook:123456789"


def operators(**signals: list[str]) -> dict[str, str]:
    """Of hosts whose names have _ for a dot."""
    hosts = {name.replace("_", "."): of for name, of in signals.items()}
    return find_operators(lambda: (SiteAccounts(host, registrable_domain(host), of) for host, of in hosts.items())).of


def test_domains_that_share_an_account_are_of_one_operator() -> None:
    """Also in a chain of different accounts, named by the lowest domain; subdomains are of their domain."""
    found = operators(c_com=[UA, GA4], b_com=[GA4, ADSENSE], a_www_com=[ADSENSE], x_www_com=[], z_com=["cms:wordpress"])
    assert found == dict.fromkeys(("c.com", "b.com", "www.com"), "b.com")


@pytest.mark.parametrize(
    "signals",
    [
        ["ads:adsense", "analytics:google", "cms:wordpress", "theme:astra"],  # no id
        [GTM],
        [PIXEL],
        ["ads:mediavine:a-site", "ads:infolinks:123456", "verification:google:abcdef"],
    ],
)
def test_what_links_nothing(signals: list[str]) -> None:
    """Services without an account, containers and other ids alone."""
    assert operators(a_com=signals, b_com=signals) == {}


def test_sites_of_a_stated_owner_are_of_one_operator() -> None:
    """So is the owner's own domain; an owner on too many domains, or that is a platform, links none."""
    owner = "ads-txt:owner:owner.co.uk"
    found = operators(a_com=[owner], b_com=[owner], www_owner_co_uk=[], other_co_uk=[])
    assert found == dict.fromkeys(("a.com", "b.com", "owner.co.uk"), "a.com")
    assert operators(a_com=[owner], b_com=[]) == {}
    many = {f"s{number}_com": [owner] for number in range(MOST_DOMAINS + 1)}
    assert operators(**many) == {}
    assert len(operators(**many | {"s0_com": [owner, ADSENSE], "s1_com": [owner, ADSENSE]})) == 2
    platform = "ads-txt:owner:medium.com"
    assert operators(a_com=[platform], b_com=[platform]) == {}


def test_a_container_links_with_a_second_id() -> None:
    """Of another kind, and shared by the same domains."""
    assert operators(a_com=[GTM, PIXEL], b_com=[GTM, PIXEL], c_com=[GTM]) == {"a.com": "a.com", "b.com": "a.com"}
    assert operators(a_com=[GTM, PIXEL], b_com=[GTM], c_com=[PIXEL]) == {}


def test_ids_of_platforms_link_nothing() -> None:
    """An AdSense account that is also a host account, and one of a platform's own host."""
    host = "ads:adsense-host:1234567890123456"
    assert operators(a_com=[ADSENSE], b_com=[ADSENSE], c_com=[host]) == {}
    assert operators(a_com=[UA], b_com=[UA], www_blogspot_com=[UA]) == {}
    assert operators(a_com=[UA], b_com=[UA], a_wordpress_com=[UA]) == {}
    vendor = "analytics:google:486179"
    assert operators(a_com=[vendor], b_com=[vendor]) == {}
    assert operators(a_blogspot_com=[UA], b_blogspot_com=[UA]) == dict.fromkeys(
        ("a.blogspot.com", "b.blogspot.com"), "a.blogspot.com"
    )


def test_an_id_on_many_domains_needs_a_second_one() -> None:
    """On MOST_DOMAINS it links them, on one more only those with a second id of another kind."""
    for count, linked in ((MOST_DOMAINS, MOST_DOMAINS), (MOST_DOMAINS + 1, 2)):
        found = operators(**{f"s{number}_com": [UA, GTM] if number < 2 else [UA] for number in range(count)})
        assert len(found) == linked


def test_ten_thousand_ids_of_one_site() -> None:
    """They link it with each domain that has one of them."""
    found = operators(a_com=[f"analytics:google:{i}" for i in range(10_000)], b_com=["analytics:google:77"], c_com=[UA])
    assert found == {"a.com": "a.com", "b.com": "a.com"}


@given(st.lists(st.lists(st.sampled_from([UA, GA4, ADSENSE, GTM, PIXEL]), max_size=3), max_size=12))
def test_operators_do_not_depend_on_the_order(signals: list[list[str]]) -> None:
    """Each is named by the lowest of its domains, of which there are several."""
    sites = [SiteAccounts(f"s{i:02}.com", f"s{i:02}.com", of) for i, of in enumerate(signals)]
    found = find_operators(lambda: iter(sites)).of
    assert found == find_operators(lambda: reversed(sites)).of
    for name in set(found.values()):
        members = [domain for domain, of in found.items() if of == name]
        assert min(members) == name
        assert len(members) > 1


def test_sites_of_an_operator_are_one_cluster() -> None:
    """The design effect is that of subdomains of one domain."""
    together, apart = (
        [
            SiteState(id=name, site=name, scored=4, flagged=4 * (of % 2), signals=signals)
            for of in range(10)
            for part in range(4)
            for name, signals in (
                (f"p{part}.d{of}.com", {}) if nested else (f"d{of}p{part}.com", {f"analytics:ga4:G{of}": 1}),
            )
        ]
        for nested in (True, False)
    )
    nested, linked = (
        agreement(sites, sites.weights * [row.flagged for row in sites.rows])
        for sites in (WeightedSites.of(rows, SITES) for rows in (together, apart))
    )
    assert nested.effect == pytest.approx(linked.effect)
    assert nested.effect > 3
    assert (nested.unit, linked.unit) == ("registrable domains", "operators")


def test_rows_in_memory_keep_the_accounts_alone() -> None:
    """Of all signals those by which operators are found."""
    signals = {"ads:adsense": 3, ADSENSE: 2, "cms:wordpress": 3, GTM: 1, "theme:astra": 3, "ads:infolinks:12345": 1}
    assert accounts_of(signals) == {ADSENSE: 2, GTM: 1}


def test_the_largest_operator_of_few_clusters_is_named() -> None:
    """By its lowest domain, with its number of sites; where each has one site, and without names, none is."""
    linked, apart = (
        [
            SiteState(
                id=str(n),
                site=f"d{n:02}.co.uk",
                scored=9,
                flagged=9 * (n % 3 == 0),
                signals={ADSENSE: 1} if n in of_one else {},
            )
            for n in range(40)
        ]
        for of_one in (range(5, 17), ())
    )
    nameless = [replace(row, site="") for row in linked]
    told = []
    for rows in (linked, apart, nameless):
        sites = WeightedSites.of(rows, SITES)
        told.append(agreement(sites, np.array([float(row.flagged) for row in rows])).facts)
    operators: dict[str, Fact] = {"clusters": 29, "unit": "operators", "largest": "d05.co.uk", "largest_sites": 12}
    assert told[0] == operators and not any("largest" in facts for facts in told[1:])
    assert sentence(Remark(RemarkKind.FEW_CLUSTERS, operators)) == (
        "it rests on 29 operators; the largest, d05.co.uk, has 12 sites"
    )
