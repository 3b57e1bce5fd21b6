"""Registrable domains: what one owner holds."""

from __future__ import annotations

import pytest

from crawler.web.registrable_domain import registrable_domain


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("example.com", "example.com"),
        ("www.example.com", "example.com"),
        ("a.b.shop.example.co.uk", "example.co.uk"),
        ("one.blogspot.com", "one.blogspot.com"),
        ("www.one.blogspot.com", "one.blogspot.com"),
        ("someone.github.io", "someone.github.io"),
        ("blogspot.com", "blogspot.com"),
        ("co.uk", "co.uk"),
        ("x.y.kawasaki.jp", "x.y.kawasaki.jp"),
        ("www.city.kawasaki.jp", "city.kawasaki.jp"),
        ("www.xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("a.nosuchtld", "a.nosuchtld"),
        ("b.a.nosuchtld", "a.nosuchtld"),
        ("localhost", "localhost"),
        ("192.0.2.7", "192.0.2.7"),
        ("[2001:db8::1]", "[2001:db8::1]"),
        ("www.example.com.", "example.com"),
        ("", ""),
    ],
)
def test_registrable_domains(host: str, domain: str) -> None:
    """Public suffixes, private ones among them, part owners; literals and single labels are their own domain."""
    assert registrable_domain(host) == domain
