"""The meaning of every reason on a page record, a site or a parked host. docs/reference/reasons.md shows them.

Most reasons end one URL. Those of `crawler.frontier.rows.Stop` stop a site, and then stand on its remaining URLs.
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
_AGAIN = "asked again after crawl.retry_s, doubling, crawl.tries times"
_MENDED = "the site's owner mends it; crawl.refetch_error_s asks again"

STOPS: Mapping[str, Meaning] = {
    "site_decided": Meaning("TALLY has read enough of the site", "TALLY takes its decision back"),
    "budget": Meaning("crawl.page_budget pages of the site were fetched"),
    "too_many_requests": Meaning("crawl.requests_per_page times the page budget was asked for, and little came of it"),
    "unreachable": Meaning(
        "nobody answered, for a reason without a word of its own (see the words of failures below)",
        "a new hit, from crawl.reopen_s after the stop on",
    ),
    "robots_unavailable": Meaning(
        "robots.txt answered with errors crawl.robots_tries times, which forbids all; of one URL: its twin's did",
        "a new hit, from crawl.reopen_s after the stop on",
    ),
    "crawl_delay": Meaning("robots.txt asks for a Crawl-delay above crawl.crawl_delay_cap_s"),
    "private_address": Meaning("the host stands at an address that is not public; nothing was sent to it"),
    "internal_error": Meaning("this program failed at it; its log has the trace", "a new version, and a fresh log"),
}

PAGES: Mapping[str, Meaning] = {
    "robots": Meaning("robots.txt forbids the URL", "crawl.refetch_refused_s asks again"),
    "opt_out": Meaning(
        "the page, its headers or tdmrep.json opt out of mining, and crawl.obey_opt_out is on",
        "crawl.refetch_refused_s asks again",
    ),
    "content_type": Meaning("what came is no HTML"),
    "redirect_offsite": Meaning("it leads to another site, whose pages are that site's"),
    "redirect_port": Meaning("it leads to another port, and so to another server, of the site"),
    "other_host": Meaning("the URL stands under another host than the site's: none of its rules are for it"),
    "bad_redirect": Meaning("it leads to something that is no URL", _MENDED),
    "too_many_redirects": Meaning("it leads on and on: crawl.redirects hops were followed", _MENDED),
    "same_page": Meaning("a redirect leads from it, or to it, and the page has its record by another URL of the site"),
    "other_port": Meaning("the hit names another port than the one that the site is known by"),
    "timeout": Meaning("no answer, or not the whole of it, in time", _AGAIN),
    "dns": Meaning("no nameserver told an address of the host", _AGAIN),
    "dns_no_name": Meaning("DNS says that there is no such host", _AGAIN),
    "dns_no_address": Meaning("DNS has no address for the host", _AGAIN),
    "connection": Meaning("the connection failed, or broke off", _AGAIN),
    "busy": Meaning("its turn between two redirects did not come in time, or this machine had no socket left", _AGAIN),
    "tls": Meaning("TLS failed: no common version or cipher, or a broken handshake", _MENDED),
    "tls_expired": Meaning("the certificate has expired, or is not valid yet", _MENDED),
    "tls_name": Meaning("the certificate is another host's", _MENDED),
    "tls_untrusted": Meaning("nobody whom this machine trusts has signed the certificate", _MENDED),
    "bad_url": Meaning("no request can be made of the URL"),
    "bad_encoding": Meaning("the body cannot be inflated as its Content-Encoding says", _MENDED),
    "bad_response": Meaning("the answer is no HTTP", _MENDED),
    "http_429": Meaning("too many requests, said the server: the host was parked", _AGAIN),
    "http_5xx": Meaning("the server failed", _AGAIN),
    "http_4xx": Meaning("gone, forbidden, or never there", "crawl.refetch_error_s asks again"),
    "http_3xx": Meaning("a redirect without a place to go to", _MENDED),
    "http_1xx": Meaning("no final answer", _MENDED),
}

REASONS: Mapping[str, Meaning] = {**STOPS, **PAGES}


_GROUPS = (  # how reasons begin
    ("refused by robots.txt", ("robots", "crawl_delay")),
    ("opted out of mining", ("opt_out",)),
    (
        "host unreachable",
        ("dns", "connection", "timeout", "tls", "unreachable", "busy", "private", "http_5", "http_429"),
    ),
    ("pages gone or forbidden", ("http_",)),
    ("no HTML", ("content_type",)),
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
        return Meaning(f"{where} could not be had: {meaning.text}", meaning.passes)
    known = REASONS.get(reason)
    if known is None and (status := _HTTP.fullmatch(reason)):
        known = REASONS.get(f"http_{status[1][0]}xx")
    return known or Meaning("a reason of another version of this program")


def in_words(reason: str) -> str:
    """The reason with its meaning, in one line."""
    return f"{reason}: {meaning_of_reason(reason).text}"
