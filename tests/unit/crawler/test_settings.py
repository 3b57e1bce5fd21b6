"""Settings with which the crawler refuses to start."""

from __future__ import annotations

import msgspec
import pytest

from crawler.errors import BadCrawlSettings, NoContact
from crawler.settings import CrawlSettings


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
