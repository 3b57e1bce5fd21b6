"""Settings with which the crawler refuses to start."""

from __future__ import annotations

import base64

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from crawler.errors import BadCrawlSettings, NoContact
from crawler.settings import CrawlSettings, SignatureSettings


@pytest.mark.parametrize(
    "contact",
    [
        "",
        "  ",
        "me",
        "http://",
        "someone(at)example",
        "a b@example.com",
        "https://a.example/\x7f",
        "https://bücher.example",
    ],
)
def test_no_start_without_a_contact(contact: str) -> None:
    """A missing or unusable contact is refused with a message that says how to fix it."""
    with pytest.raises(NoContact, match=r"crawl\.contact"):
        CrawlSettings(contact=contact).check()


@pytest.mark.parametrize("contact", ["https://example.org/bot", "bot@example.org"])
def test_user_agent_names_us_and_the_contact(contact: str) -> None:
    """The user agent is name/version (+contact)."""
    settings = CrawlSettings(contact=contact)
    settings.check()
    name, _, rest = settings.user_agent.partition("/")
    assert name == "farmwatch" and rest.endswith(f" (+{contact})")


@pytest.mark.parametrize(
    "changes",
    [{"resolve_to": {"*": "127.0.0.1:1"}}, {"delay_s": 0}, {"delay_s": -1}, {"page_budget": 0}, {"name": "a b"},
     {"max_in_flight": 0}, {"body_bytes": 2**30},
     {"domain_delay_s": -1}, {"address_delay_s": float("nan")}, {"refetch_fetched_s": -1},
     {"crawl_delay_cap_s": 86_401}, {"delay_s": float("inf")}],
)  # fmt: skip
def test_rude_or_contradictory_settings(changes: dict[str, object]) -> None:
    """Settings without a delay or limit, and a resolver override outside tests, are refused by name."""
    settings = msgspec.structs.replace(CrawlSettings(contact="a@example.org"), **changes)
    with pytest.raises(BadCrawlSettings, match=next(iter(changes))):
        settings.check()


@given(st.binary(min_size=32, max_size=32), st.booleans())
def test_a_key_is_told_from_the_path_of_its_file(seed: bytes, is_short: bool) -> None:
    """Hex and Base64 of a seed, of a seed with its public key, and of PKCS #8 are refused, and paths are not."""
    whole = seed if is_short else seed + bytes(range(32))
    encoded = base64.b64encode(whole).decode()
    assume(sum(letter.isupper() for letter in encoded) > 3)  # as in all but one of a million keys
    keys = (whole.hex(), whole.hex(":").upper(), encoded, base64.urlsafe_b64encode(whole).decode().rstrip("="))
    for key in keys:
        for written in (key, f"/etc/farmwatch/{key}"):
            with pytest.raises(ValueError, match="path of a file"):
                SignatureSettings(key=written)
        assert SignatureSettings(key=f"/etc/farmwatch/{key}.pem")


@pytest.mark.parametrize(
    "path",
    ["/home/someone/projects/farmwatch/secrets/signing-key/of-the-crawler-2026", "/Users/Ann/keys/crawl", "key.pem"],
)
def test_the_path_of_a_key_is_accepted(path: str) -> None:
    """Paths have few capitals, or an ending."""
    assert SignatureSettings(key=path).key == path
