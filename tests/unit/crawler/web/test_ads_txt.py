"""ads.txt: what a file says of the site's owner, and which pages make it be requested."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.web.ads_txt import ACCOUNTS_CAP, ADS_TXT_CAP_BYTES, DOMAINS_CAP, LINES_CAP, StatedOwner, loads_google_ads

FILE = """# ads.txt of a.example
OWNERDOMAIN=Owner.Example
google.com, pub-1234567890123456, DIRECT, f08c47fec0942fa0 # ours
Google.com,ca-pub-0000000000,direct
google.com, pub-9999999999999999, RESELLER, f08c47fec0942fa0
other.example, pub-8888888888888888, DIRECT
contact=ads@a.example
"""
OURS = ("pub-0000000000", "pub-1234567890123456")


@pytest.mark.parametrize(
    "body",
    [
        FILE.encode(),
        b"\xef\xbb\xbf" + FILE.encode(),
        FILE.replace("\n", "\r\n").encode(),
        FILE.replace("\n", "\r").encode(),
        FILE.encode("utf-16"),
        FILE.encode("utf-16-be"),
        f"# \xfc{FILE}".encode("latin-1"),
    ],
)
def test_the_owner_and_its_direct_accounts_are_read(body: bytes) -> None:
    """In any encoding and with any line ends; lines of resellers and of other systems are left out."""
    assert StatedOwner.read(body) == StatedOwner("owner.example", OURS)


@pytest.mark.parametrize(
    ("value", "domain"),
    [
        ("www.owner.co.uk", "owner.co.uk"),
        ("https://owner.example/about", "owner.example"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("owner.example. # ours", "owner.example"),
        ("", ""),
        ("co.uk", ""),
        ("blogspot.com", ""),
        ("localhost", ""),
        ("192.0.2.1", ""),
        ("[2001:db8::1]", ""),
        ("Owner Publishing Ltd", ""),
        ("a" * 300 + ".example", ""),
    ],
)
def test_the_owner_is_a_registrable_domain(value: str, domain: str) -> None:
    """Of a host or a URL; a suffix, an address or a name that is no host is none."""
    assert StatedOwner.read(f"OwnerDomain = {value}\n".encode()).domain == domain


def test_two_owners_are_none() -> None:
    """The same one twice is one."""
    assert StatedOwner.read(b"OWNERDOMAIN=a.example\nownerdomain=www.a.example") == StatedOwner("a.example")
    assert StatedOwner.read(b"OWNERDOMAIN=a.example\nOWNERDOMAIN=b.example\n").domain == ""


def test_the_accounts_of_a_managed_site_may_be_the_manager_s() -> None:
    """They are left out; a manager that is the owner is none."""
    for manager, ids in (("m.example", ()), ("m.example, US", ()), ("owner.example", OURS)):
        assert StatedOwner.read(f"{FILE}MANAGERDOMAIN={manager}".encode()) == StatedOwner("owner.example", ids)


@pytest.mark.parametrize(
    "body", [b"", b"\n <!DOCTYPE html><html>OWNERDOMAIN=a.example", b"<pre>\nOWNERDOMAIN=a.example"]
)
def test_markup_and_nothing_say_nothing(body: bytes) -> None:
    """An error page with status 200 is no ads.txt."""
    assert StatedOwner.read(body) == StatedOwner()


def test_a_long_list_of_accounts_is_nobody_s() -> None:
    """10,000 accounts, or more than one owner has: none is kept; the owner is."""
    for number, kept in ((ACCOUNTS_CAP, ACCOUNTS_CAP), (ACCOUNTS_CAP + 1, 0), (10_000, 0)):
        lines = "".join(f"google.com, pub-{n:016}, DIRECT\n" for n in range(number))
        found = StatedOwner.read(f"OWNERDOMAIN=owner.example\n{lines}".encode())
        assert (found.domain, len(found.google_ids)) == ("owner.example", kept)
    owners = "".join(f"OWNERDOMAIN=o{n}.example\n" for n in range(DOMAINS_CAP + 1))
    assert StatedOwner.read(f"google.com, pub-{1:016}, DIRECT\n{owners}".encode()) == StatedOwner()


def test_nothing_is_read_beyond_the_caps() -> None:
    """Bytes and lines beyond them do not count, nor does a line that the cap may have cut."""
    owner = b"\nOWNERDOMAIN=owner.example"
    assert StatedOwner.read(b"\n" * LINES_CAP + owner) == StatedOwner()
    room = ADS_TXT_CAP_BYTES - len(owner)
    assert StatedOwner.read(b"#" * (room - 1) + owner) == StatedOwner("owner.example")
    assert StatedOwner.read(b"#" * room + owner + b".co.uk") == StatedOwner()


LINES = st.sampled_from(
    ["OWNERDOMAIN=", "a.example", "google.com,", "pub-1234567890,", "DIRECT", "\n", "#", "\r", "=", ","]
)


@given(st.one_of(st.binary(), st.lists(LINES).map("".join).map(str.encode)))
def test_any_bytes_are_read(body: bytes) -> None:
    """Reading raises nothing; what is kept is a domain and accounts in order, the same with a comment before."""
    found = StatedOwner.read(body)
    assert list(found.google_ids) == sorted(found.google_ids) and all(of.startswith("pub-") for of in found.google_ids)
    assert found.domain == found.domain.lower()
    if b"<" not in body and b"\0" not in body and not body[:1] > b"\x7f":
        assert StatedOwner.read(b"# a comment\n" + body) == found


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"<script async src='https://pagead2.googlesyndication.com/pagead/js/adsbygoogle.js?client=ca-pub-1'>", True),
        (b'<ins data-ad-client="ca-pub-1234567890123456">', True),
        (b"<script src=https://securepubads.g.doubleclick.net/tag/js/gpt.js>", True),
        (b"<script src=https://www.googletagservices.com/tag/js/gpt.js>", True),
        (b"<img src=https://googleads.g.doubleclick.net/pagead/viewthroughconversion/1/>", False),
        (b"<script src=https://www.googletagmanager.com/gtag/js?id=G-ABC12345>", False),
        (b"<p>ads.txt</p>", False),
    ],
)
def test_pages_that_load_google_s_ads(body: bytes, expected: bool) -> None:
    """The publisher's side only: an advertiser's own measuring is none."""
    assert loads_google_ads(body) is expected
