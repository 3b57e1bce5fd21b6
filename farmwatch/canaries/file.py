"""Reads the canary file, pages of known truth, and makes page records of it.

A line is a page: `truth` (human or llm), `site` (a label), `title`, and `text` or `html`. `made_at`, the day on which
the page was written, is required for human pages. Lines with the same truth and label are one canary site. Text becomes
a plain page: it is escaped, and empty lines separate paragraphs.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import msgspec
import xxhash
import zstandard

from crawler.web.urls import fetch_id, page_id
from farmwatch.canaries.rounds import CanaryRounds
from farmwatch.config.settings import CanarySettings
from farmwatch.terminal.jsonl import binary_input
from scoring.rates.canary import CanaryName, is_label
from stream.processing.stage import Context
from stream.schema.records import Page
from stream.schema.topics import SITES
from stream.schema.vocabulary import Truth
from stream.text.packed_files import bounded_lines
from stream.text.times import DAY_MS
from stream.text.user_errors import ConfigError, FarmwatchError

SITES_CAP = 500  # canary sites of a file
PAGE_CAP_BYTES = 200_000  # of one page's text or HTML
HUMAN_BEFORE = date(2022, 11, 1)  # the month in which models that write whole articles became public

_KEPT_ON_MS = 7 * DAY_MS  # time between the end of counting a canary site and the removal of its row

_PARAGRAPHS = re.compile(r"\n[ \t\r]*\n")


class CanaryLine(msgspec.Struct, frozen=True):
    """A line of the file; further fields are ignored."""

    truth: Truth
    site: str
    title: str = ""
    text: str = ""
    html: str = ""
    made_at: date | None = None


@dataclass(frozen=True, slots=True)
class CanarySite:
    """The pages of one label and truth, in the order of the file, as HTML in UTF-8."""

    truth: str
    label: str
    digest: str  # of the pages, 16 hexadecimal digits
    pages: Sequence[bytes]
    newest: date | None  # when the newest page was written, if known

    def name(self, number: int) -> CanaryName:
        """The name of the site in a round."""
        return CanaryName(self.label, self.digest, len(self.pages), number, self.truth)

    def records(self, number: int, now_ms: int) -> Iterator[Page]:
        """The page records of a round, as CRAWL writes them, fetched a millisecond apart in the order of the file.

        TALLY judges pages in the order of their fetch. With equal times it would use the ids, which contain the round,
        so verdicts could differ between rounds.
        """
        site = self.name(number).site
        compressor = zstandard.ZstdCompressor(level=3)
        for place, body in enumerate(self.pages, 1):
            url = f"https://{site}/{place}"
            yield Page(
                id=fetch_id(url, 1),
                site=site,
                page_id=page_id(url),
                url=url,
                final_url=url,
                status=200,
                headers={"content-type": "text/html; charset=utf-8"},
                content_type="text/html",
                encoding="utf-8",
                body=compressor.compress(body),
                body_bytes=len(body),
                fetched_at=now_ms - len(self.pages) + place,
                found_by="canary",
            )


def read_canaries(settings: CanarySettings) -> list[CanarySite]:
    """The sites of the canary file, with the first `canary.pages` pages of each; none without a file.

    Raises ConfigError with file and line: a file with errors would measure something else.
    """
    if not settings.file:
        return []
    file = Path(settings.file).expanduser()
    pages: dict[tuple[str, str], list[bytes]] = {}
    made: dict[tuple[str, str], list[date]] = {}
    seen: dict[bytes, tuple[str, int]] = {}  # digest of a text -> its truth, and the line
    try:
        with binary_input(file) as stream:
            lines = list(bounded_lines(stream))
    except FarmwatchError as error:
        raise ConfigError(f"{error}; canary.file names it") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            page = _decoder.decode(line)
            body = _body(page)
            _refuse_two_truths(page, number, seen)
        except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
            text = " ".join(str(error).split())[:300]
            problem = "truth must be human or llm" if text.endswith("`$.truth`") else text
            raise ConfigError(f"{file}: line {number}: {problem}") from error
        site = (page.truth, page.site)
        if site not in pages and len(pages) == SITES_CAP:
            raise ConfigError(f"{file}: line {number}: more than {SITES_CAP} canary sites")
        of_site = pages.setdefault(site, [])
        if len(of_site) < settings.pages:
            of_site.append(body)
            made.setdefault(site, []).extend([page.made_at] if page.made_at else [])
    if not pages:
        raise ConfigError(f"{file}: no page in the file")
    sites = []
    for (truth, label), bodies in sorted(pages.items()):
        digest = xxhash.xxh3_64_hexdigest(b"\0".join(bodies))
        sites.append(CanarySite(truth, label, digest, tuple(bodies), max(made[truth, label], default=None)))
    return sites


def canary_sender(
    settings: CanarySettings,
    canary_days: float,
    partitions: int,
    rows: str = SITES,
    sent_before: Callable[[int], int] = lambda _: -1,
) -> Callable[[Mapping[int, Context]], None]:
    """The function that TALLY calls at each tick to send canaries and remove old ones. Raises ConfigError.

    A site counts for `canary_days`; its row is removed a week later, also if no file is configured any more. The file
    is read again for each round. `rows` and `sent_before` are those of `CanaryRounds`.
    """
    read_canaries(settings)

    def pages_of(number: int, now_ms: int) -> Iterator[Page]:
        for site in read_canaries(settings):
            yield from site.records(number, now_ms)

    keep_ms = int(canary_days * DAY_MS) + _KEPT_ON_MS
    sent = pages_of if settings.file else None
    return CanaryRounds(sent, settings.every_s, keep_ms, partitions, rows, sent_before).tick


_decoder = msgspec.json.Decoder(CanaryLine)


def _body(page: CanaryLine) -> bytes:
    """The page as HTML. Raises ValueError with a message for the operator."""
    if not is_label(page.site):
        raise ValueError(f"site {page.site[:60]!r} is not a label: a-z, 0-9 and dashes, at most 40")
    if bool(page.text.strip()) == bool(page.html.strip()):
        raise ValueError("a page needs either text or html")
    if page.truth == Truth.HUMAN and (page.made_at is None or page.made_at >= HUMAN_BEFORE):
        made_at = page.made_at or "none"
        raise ValueError(
            f"made_at of a human page: {made_at}; only pages written before {HUMAN_BEFORE} are surely human"
        )
    body = (page.html or page_of_text(page.title, page.text)).encode()  # UnicodeEncodeError is a ValueError
    if len(body) > PAGE_CAP_BYTES:
        raise ValueError(f"a page of {len(body)} bytes; at most {PAGE_CAP_BYTES} are allowed")
    return body


def _refuse_two_truths(page: CanaryLine, number: int, seen: dict[bytes, tuple[str, int]]) -> None:
    """Raise ValueError if an earlier line has the same text, apart from white space, with the other truth."""
    digest = xxhash.xxh3_128_digest(" ".join((page.html or page.text).split()).encode())
    truth, first = seen.setdefault(digest, (page.truth, number))
    if truth != page.truth:
        raise ValueError(f"the text is {page.truth} here and {truth} in line {first}")


def page_of_text(title: str, text: str) -> str:
    """A plain page with this text; markup in it is escaped."""
    heading = html.escape(" ".join(title.split()))
    paragraphs = "\n".join(f"<p>{html.escape(part.strip())}</p>" for part in _PARAGRAPHS.split(text) if part.strip())
    return (
        f'<!DOCTYPE html>\n<html><head><meta charset="utf-8"><title>{heading}</title></head>\n'
        f"<body><article>\n<h1>{heading}</h1>\n{paragraphs}\n</article></body></html>\n"
    )
