"""Which hosts an exclusion covers."""

from __future__ import annotations

import pytest

from crawler.errors import UnusableUrl
from crawler.web.exclusions import Exclusions, exclusion_of, is_boundless, reach_of


@pytest.mark.parametrize(
    ("exclusion", "covered", "others"),
    [
        ("www.example.com", ["www.example.com"], ["example.com", "a.www.example.com", "www.example.com.evil.org"]),
        ("example.com", ["example.com", "www.example.com", "a.b.example.com"], ["badexample.com", "example.com.org"]),
        ("shop.co.uk", ["a.shop.co.uk", "shop.co.uk"], ["other.co.uk", "co.uk"]),
        ("a.blogspot.com", ["a.blogspot.com", "x.a.blogspot.com"], ["b.blogspot.com", "blogspot.com"]),
        ("*.blog.example.com", ["x.blog.example.com", "a.b.blog.example.com"], ["blog.example.com", "example.com"]),
        ("casino*", ["casino.org", "casino24.example.com"], ["my-casino.org"]),
        ("192.0.2.1", ["192.0.2.1"], ["192.0.2.11"]),
        ("[2001:db8::1]", ["[2001:db8::1]"], ["[2001:db8::11]"]),
        ("localhost", ["localhost"], ["localhost.example.com"]),
    ],
)
def test_what_is_covered(exclusion: str, covered: list[str], others: list[str]) -> None:
    """A host covers itself, a registrable domain all of its hosts, and a pattern each host that it matches in full."""
    exclusions = Exclusions([exclusion_of(exclusion)])
    assert [host for host in [*covered, *others] if exclusions.covers(host)] == covered


def test_names_are_spelled_as_the_log_spells_them() -> None:
    """Capitals, Unicode, URLs and a trailing dot lead to the same host; anything but a host is refused."""
    given = ["Example.COM", "https://example.com/a?b", "example.com.", "*.Example.com.", "bücher.example"]
    assert [exclusion_of(name) for name in given] == [*["example.com"] * 3, "*.example.com", "xn--bcher-kva.example"]
    for name in ("", "a b", "*.a b", "*/x", "[a*]", "*.exämple.com", "com"):
        with pytest.raises(UnusableUrl):
            exclusion_of(name)
    assert exclusion_of("COM", is_new=False) == "com"  # it can be removed from an older log


@pytest.mark.parametrize("pattern", ["*", "**", "*.*", "*.com", "*com", "casino*", "*.co.uk", "*example.com", "a*.org"])
def test_a_pattern_beyond_one_domain_is_boundless(pattern: str) -> None:
    """Each of these matches hosts of several registrable domains."""
    assert is_boundless(pattern)


def test_the_reach_is_said_in_words() -> None:
    """The command describes an exclusion in words: a host, a domain, or hosts that match."""
    assert [reach_of(name) for name in ("www.example.com", "example.com", "*.example.com", "192.0.2.1")] == [
        "this host",
        "the domain with all its hosts",
        "each host that matches",
        "this host",
    ]


@pytest.mark.parametrize("name", ["*.example.com", "a*.example.com", "*.x.shop.co.uk", "*.me.blogspot.com", "com"])
def test_a_pattern_within_a_domain_is_not(name: str) -> None:
    """A pattern below a registrable domain may match anything; a plain name is not a pattern."""
    assert not is_boundless(name)
