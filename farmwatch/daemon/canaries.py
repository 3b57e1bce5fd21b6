"""The canary file: pages of known truth, and the page records by which they travel the live path.

A line is a page: `truth` (human or llm), `site` (a label), `title`, and `text` or `html`; `made_at` is the day on which
it was written, which a human page must name. Lines of one truth and label are one canary site. Text becomes a plain
page: what it says is escaped, each run of lines between empty ones is a paragraph.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Literal

import msgspec
import xxhash
import zstandard

from crawler.web.urls import fetch_id, page_id
from farmwatch.config.settings import CanarySettings
from farmwatch.daemon.canary_rounds import CanaryRounds
from farmwatch.terminal.jsonl import binary_input
from scoring.rates.canary import HUMAN_TRUTH, CanaryName, is_label
from stream.processing.stage import Context
from stream.schema.records import Page
from stream.schema.topics import SITES
from stream.text.user_errors import Exit, FarmwatchError

FOUND_BY = "canary"
SITES_CAP = 500  # canary sites of a file
PAGE_CAP_BYTES = 200_000  # of one page's text or HTML
HUMAN_BEFORE = date(2022, 11, 1)  # in that month models that write whole articles were opened to everyone

_DAY_MS = 86_400_000
_KEPT_ON_MS = 7 * _DAY_MS  # rows of canary sites stay for so long after they count no more

_PARAGRAPHS = re.compile(r"\n[ \t\r]*\n")


class BadCanaries(FarmwatchError):
    """The file of canary pages cannot be used; the message names file and line. The operator mends it, or unsets it."""

    exit = Exit.USAGE


class CanaryLine(msgspec.Struct, frozen=True):
    """A line of the file; further fields are ignored."""

    truth: Literal["human", "llm"]
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
    newest: date | None  # when the newest page was written, where the file says so

    def name(self, number: int) -> CanaryName:
        """Its name in a round."""
        return CanaryName(self.label, self.digest, len(self.pages), number, self.truth)

    def records(self, number: int, now_ms: int) -> Iterator[Page]:
        """Its pages as CRAWL would have written them, in a round, fetched a millisecond apart in the file's order.

        TALLY judges pages in the order of their fetch. Left to their ids, which hold the round, a verdict
        would move from round to round though nothing has changed.
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
                found_by=FOUND_BY,
            )


def read_canaries(settings: CanarySettings) -> list[CanarySite]:
    """The sites of the canary file, the first `canary.pages` pages of each; none without a file.

    Raises BadCanaries with file and line: what is not as it should be would measure something else.
    """
    if not settings.file:
        return []
    file = Path(settings.file).expanduser()
    pages: dict[tuple[str, str], list[bytes]] = {}
    made: dict[tuple[str, str], list[date]] = {}
    seen: dict[bytes, tuple[str, int]] = {}  # digest of a text -> its truth, and the line
    for number, line in enumerate(_lines(file), 1):
        if not line.strip():
            continue
        try:
            page = _decoder.decode(line)
            body = _body(page)
            _refuse_two_truths(page, number, seen)
        except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
            said = "truth is human or llm" if str(error).endswith("`$.truth`") else " ".join(str(error).split())[:300]
            raise BadCanaries(f"{file}: line {number}: {said}") from error
        site = (page.truth, page.site)
        if site not in pages and len(pages) == SITES_CAP:
            raise BadCanaries(f"{file}: line {number}: more than {SITES_CAP} canary sites")
        of_site = pages.setdefault(site, [])
        if len(of_site) < settings.pages:
            of_site.append(body)
            made.setdefault(site, []).extend([page.made_at] if page.made_at else [])
    if not pages:
        raise BadCanaries(f"{file}: no page in it")
    return [
        CanarySite(truth, label, _digest(bodies), tuple(bodies), max(made[truth, label], default=None))
        for (truth, label), bodies in sorted(pages.items())
    ]


def canary_sender(
    settings: CanarySettings,
    canary_days: float,
    partitions: int,
    rows: str = SITES,
    sent_before: Callable[[int], int] = lambda _: -1,
) -> Callable[[Mapping[int, Context]], None]:
    """What TALLY calls at each tick to send the configured canaries and take old ones away. Raises BadCanaries.

    A site's row goes a week after it counts no more, which is after `canary_days`. The file is read again for each
    round: pages may have been added to it. Without a file, canaries sent earlier are taken away all the same. `rows`
    and `sent_before` are as `CanaryRounds` has them.
    """
    read_canaries(settings)

    def pages_of(number: int, now_ms: int) -> Iterator[Page]:
        for site in read_canaries(settings):
            yield from site.records(number, now_ms)

    keep_ms = int(canary_days * _DAY_MS) + _KEPT_ON_MS
    sent = pages_of if settings.file else None
    return CanaryRounds(sent, settings.every_s, keep_ms, partitions, rows, sent_before).tick


_decoder = msgspec.json.Decoder(CanaryLine)


def _lines(file: Path) -> list[bytes]:
    try:
        with binary_input(file) as stream:
            return stream.read().split(b"\n")
    except FarmwatchError as error:
        raise BadCanaries(f"{error}; canary.file names it") from error


def _body(page: CanaryLine) -> bytes:
    """The page as HTML. Raises ValueError in plain words."""
    if not is_label(page.site):
        raise ValueError(f"site {page.site[:60]!r} is no label: a-z, 0-9 and dashes, at most 40")
    if bool(page.text.strip()) == bool(page.html.strip()):
        raise ValueError("a page has either text or html")
    if page.truth == HUMAN_TRUTH and (page.made_at is None or page.made_at >= HUMAN_BEFORE):
        raise ValueError(
            f"a human page {f'of {page.made_at}' if page.made_at else 'without made_at'}: only what was written before"
            f" {HUMAN_BEFORE} is known to be human"
        )
    body = (page.html or page_of_text(page.title, page.text)).encode()  # UnicodeEncodeError is a ValueError
    if len(body) > PAGE_CAP_BYTES:
        raise ValueError(f"a page of {len(body)} bytes, at most {PAGE_CAP_BYTES} are taken")
    return body


def _refuse_two_truths(page: CanaryLine, number: int, seen: dict[bytes, tuple[str, int]]) -> None:
    """Raise ValueError where an earlier line gives the text, whatever its white space, as one of the other truth."""
    digest = xxhash.xxh3_128_digest(" ".join((page.html or page.text).split()).encode())
    truth, first = seen.setdefault(digest, (page.truth, number))
    if truth != page.truth:
        raise ValueError(f"the text is {page.truth} here and {truth} in line {first}: it cannot be both")


def page_of_text(title: str, text: str) -> str:
    """A plain page that says the text and nothing else; what looks like markup in it is text."""
    heading = html.escape(" ".join(title.split()))
    paragraphs = "\n".join(f"<p>{html.escape(part.strip())}</p>" for part in _PARAGRAPHS.split(text) if part.strip())
    return (
        f'<!DOCTYPE html>\n<html><head><meta charset="utf-8"><title>{heading}</title></head>\n'
        f"<body><article>\n<h1>{heading}</h1>\n{paragraphs}\n</article></body></html>\n"
    )


def _digest(bodies: Sequence[bytes]) -> str:
    return xxhash.xxh3_64_hexdigest(b"\0".join(bodies))
