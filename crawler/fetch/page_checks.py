"""What an answer with a page's URL is, by the rules of the live crawl and of imported archives. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from crawler.reasons import TURNED_AWAY
from crawler.robots.opt_outs import forbids_mining, opt_outs
from crawler.robots.preferences import prefers_no
from crawler.settings import CrawlSettings
from crawler.web import content_type as content
from crawler.web.inspection import Inspector
from stream.schema.vocabulary import FetchOutcome

ERROR_CAP_BYTES = 64 * 1024  # read of the body of an error or a redirect, for a tap or an inspection


class CheckedPage(NamedTuple):
    """The fields of a result that follow from the answer. `keeps_body`: the record has it."""

    outcome: FetchOutcome
    reason: str = ""
    transient: bool = False
    encoding: str = ""
    opt_out: Sequence[str] = ()
    outline: bytes = b""
    keeps_body: bool = False


def is_passing(status: int) -> bool:
    """Whether an error may pass soon."""
    return status == 429 or status >= 500


def may_say_more(status: int, headers: Mapping[str, str]) -> bool:
    """Whether the body of an error may show why, as that of a bot challenge does."""
    return status >= 400 and status not in (404, 410) and content.may_be_html(headers.get("content-type", ""))


def is_obeyed_no(settings: CrawlSettings, signals: Sequence[str]) -> bool:
    """Whether one of these signals of a page is a no that the operator obeys."""
    return (settings.obey_opt_out and forbids_mining(signals)) or (settings.obey_preferences and prefers_no(signals))


def check_page(
    settings: CrawlSettings,
    inspector: Inspector | None,
    url: str,
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    truncated: bool,
    robots_tags: Sequence[str] = (),
    has_outline: bool = False,
) -> CheckedPage:
    """What an answer is; of an error that does not show more than its status, a failure.

    `headers` are the kept ones, `body` is inflated. `robots_tags`: the full X-Robots-Tag fields, if `headers` may have
    cut them. Without an `inspector`, all HTML with a status of 2xx is a page. `has_outline`: the outline is needed.
    """
    failed = CheckedPage(FetchOutcome.FAILED, f"http_{status}", transient=is_passing(status))
    is_ok = 200 <= status < 300
    kind = headers.get("content-type", "")
    if body and not content.is_html(kind, body):
        return CheckedPage(FetchOutcome.REFUSED, "content_type") if is_ok else failed
    if not is_ok and not body:
        return failed
    encoding = content.charset_of(content.counting_type(kind), body, truncated=truncated)
    opt_out = opt_outs(headers, body, settings.name, robots_tags, encoding)
    reason, outline = "", b""
    if inspector is not None:
        inspection = inspector.inspect(url, status, headers, body, encoding, has_outline)
        reason, outline = inspection.reason, inspection.outline
    may_pass = reason == "challenge" or is_passing(status)
    if not is_ok and (not reason or (may_pass and reason not in TURNED_AWAY)):
        return failed
    is_kept = not is_obeyed_no(settings, opt_out)
    checked = CheckedPage(FetchOutcome.FETCHED, "", False, encoding, opt_out, outline, is_kept)
    if reason:
        return checked._replace(outcome=FetchOutcome.NO_PAGE, reason=reason, transient=may_pass)
    return checked if is_kept else checked._replace(outcome=FetchOutcome.REFUSED, reason="opt_out")
