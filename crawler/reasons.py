"""The meaning of every reason on a page record, a site or a parked host. docs/reference/reasons.md shows them.

Most reasons end one URL. Those of `crawler.frontier.rows.Stop` stop a site, and are then the reasons of its remaining
URLs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple


class Meaning(NamedTuple):
    """The meaning of a reason, and what resolves it."""

    text: str
    passes: str = ""  # "" = nothing does


_HTTP = re.compile(r"http_([1-5][0-9]{2})")
_AGAIN = "retried after crawl.retry_s, doubling, up to crawl.tries times"
_REOPENED = "a new hit, from a day after the stop on"
_TURNED = f"{_AGAIN}; a site that only answers so is stopped until {_REOPENED}"
_EMPTY = f"of the URL nothing; a site that only answers so is stopped until {_REOPENED}"

# Answers that are no page: the body stays in the record
NO_PAGES: Mapping[str, Meaning] = {
    "challenge": Meaning("a bot challenge came instead of the page; none is solved or evaded", _TURNED),
    "blocked": Meaning("the server answered that the crawler is blocked", f"with status 429 or 5xx: {_TURNED}"),
    "maintenance": Meaning("the site said that it is under maintenance", f"with status 503: {_TURNED}"),
    "login_wall": Meaning("the page is a form to log in"),
    "consent_wall": Meaning("the page asks for consent and shows nothing else"),
    "parked": Meaning("the domain is parked or for sale", _EMPTY),
    "soft_404": Meaning("a page that says that there is none, or is like the site's answer to a random URL", _EMPTY),
    "default_page": Meaning("the default page of a server, of a host or of an empty site", _EMPTY),
    "not_html": Meaning("a feed, JSON or text that was sent as HTML"),
    "partial": Meaning("the server sent a part of the page (206), which was not asked for"),
}
TURNED_AWAY = frozenset({"challenge", "blocked", "maintenance"})  # a later attempt may succeed
EMPTY = frozenset({"parked", "soft_404", "default_page"})  # so answers a site without pages

STOPS: Mapping[str, Meaning] = {
    "site_decided": Meaning("TALLY has read enough of the site", "TALLY withdraws the decision"),
    "budget": Meaning("crawl.page_budget pages of the site were fetched"),
    "too_many_requests": Meaning("three times the page budget was requested, and few pages came"),
    "unreachable": Meaning("no answer, for another cause than the connection failures below", _REOPENED),
    "robots_unavailable": Meaning(
        "robots.txt failed three times, which forbids all; of one URL: that of its www twin failed", _REOPENED
    ),
    "crawl_delay": Meaning("robots.txt asks for a Crawl-delay above crawl.crawl_delay_cap_s"),
    "private_address": Meaning("the host has an address that is not public; nothing was sent to it"),
    "internal_error": Meaning("this program failed on it; its log has the trace", "a new version, and a fresh log"),
    "excluded": Meaning("an exclusion of the operator covers the site", "a new hit, after the exclusion has ended"),
    **{reason: meaning for reason, meaning in NO_PAGES.items() if reason in TURNED_AWAY | EMPTY},
}

PAGES: Mapping[str, Meaning] = {
    "robots": Meaning("robots.txt forbids the URL"),
    "opt_out": Meaning("it opts out of mining or of use by AI, and crawl.obey_opt_out or crawl.obey_preferences is on"),
    "content_type": Meaning("the response is no HTML"),
    "redirect_offsite": Meaning("it redirects to another site"),
    "redirect_port": Meaning("it redirects to another port of the site, and so to another server"),
    "other_host": Meaning("the URL has another host than the site; the site's rules do not apply to it"),
    "bad_redirect": Meaning("it redirects to an invalid URL"),
    "too_many_redirects": Meaning("more than ten redirects"),
    "same_page": Meaning("a redirect leads from it or to it; the page has its record under another URL of the site"),
    "other_port": Meaning("the hit names another port than the first hit of the site"),
    "timeout": Meaning("no answer, or only a part of it, in time", _AGAIN),
    "dns": Meaning("no nameserver returned an address of the host", _AGAIN),
    "dns_no_name": Meaning("DNS says that there is no such host", _AGAIN),
    "dns_no_address": Meaning("DNS has no address for the host", _AGAIN),
    "connection": Meaning("the connection failed, or broke off", _AGAIN),
    "proxy_refused": Meaning("crawl.proxy refuses a tunnel to the host and port (403)", _AGAIN),
    "busy": Meaning("its turn between two redirects did not come in time, or this machine had no socket left", _AGAIN),
    "tls": Meaning("TLS failed: no common version or cipher, or a broken handshake"),
    "tls_expired": Meaning("the certificate has expired, or is not valid yet"),
    "tls_name": Meaning("the certificate is another host's"),
    "tls_untrusted": Meaning("no authority that this machine trusts has signed the certificate"),
    "bad_url": Meaning("no request can be made from the URL"),
    "bad_encoding": Meaning("the body is not encoded as its Content-Encoding says, and it is no text"),
    "bad_response": Meaning("the response is no HTTP"),
    "record_too_large": Meaning(
        "the log does not take a record of the page's size; CRAWL's log has the error",
        "for later pages, on Kafka: a higher max.message.bytes of the topic",
    ),
    "http_429": Meaning("too many requests; the host was parked", _AGAIN),
    "http_5xx": Meaning("the server failed", _AGAIN),
    "http_4xx": Meaning("the page is missing or forbidden"),
    "http_3xx": Meaning("a redirect without a target"),
    "http_1xx": Meaning("no final response"),
}

REASONS: Mapping[str, Meaning] = {**STOPS, **PAGES, **NO_PAGES}
UNANSWERED = frozenset({"dns", "dns_no_name", "dns_no_address", "connection", "proxy_refused", "timeout"})
CONNECTION_FAILURES = UNANSWERED | {"tls", "tls_expired", "tls_name", "tls_untrusted"}
"""In a row, they stop a site."""


_GROUPS = (  # how reasons begin
    ("refused by robots.txt", ("robots", "crawl_delay")),
    ("opted out of mining", ("opt_out",)),
    (
        "host unreachable",
        ("dns", "connection", "timeout", "tls", "unreachable", "busy", "private", "proxy", "http_5", "http_429"),
    ),
    ("turned away by a bot challenge or block", ("challenge", "blocked")),
    ("under maintenance", ("maintenance",)),
    ("behind a login or consent wall", ("login_wall", "consent_wall")),
    ("parked, or the page of a server", ("parked", "default_page")),
    ("pages gone or forbidden", ("http_", "soft_404")),
    ("no HTML", ("content_type", "not_html", "partial")),
)


def group_of_reason(reason: str) -> str:
    """A few words for why a site has no page; "" where the reason says nothing of it."""
    word = reason.rpartition(":")[2]
    return next((group for group, starts in _GROUPS if word.startswith(starts)), "")


def meaning_of_reason(reason: str) -> Meaning:
    """The meaning of a reason; a status without an entry has the meaning of its class.

    The reason of a parked host may begin with the file that failed: `robots.txt:http_503`.
    """
    where, _, word = reason.rpartition(":")
    if where:
        meaning = meaning_of_reason(word)
        return Meaning(f"{where} was not available: {meaning.text}", meaning.passes)
    known = REASONS.get(reason)
    if known is None and (status := _HTTP.fullmatch(reason)):
        known = REASONS.get(f"http_{status[1][0]}xx")
    return known or Meaning("a reason of another version of this program")


def what_ends_stop(reason: str) -> str:
    """What ends the stop of a site for this reason; "" = nothing does."""
    return _REOPENED if reason in CONNECTION_FAILURES | TURNED_AWAY | EMPTY else meaning_of_reason(reason).passes


def reason_text(reason: str) -> str:
    """The reason with its meaning, in one line."""
    return f"{reason}: {meaning_of_reason(reason).text}"
