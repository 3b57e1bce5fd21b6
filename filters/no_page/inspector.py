"""Decides whether an answer is a page or something served in its place, such as a challenge or a "not found" text.

Headers decide first. Then the less text of its own a document has, the less evidence is enough: words in the title or
in a heading, marks of known products, words of the text, and the structure. A document with an article's text is a page,
whatever it is about and whatever it embeds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from filters.no_page.foreign import is_html
from filters.no_page.outline import error_class, outline
from filters.no_page.signs.marks import MARKS
from filters.no_page.signs.texts import TEXTS
from filters.no_page.signs.titles import TITLES
from filters.no_page.view import View, body_class, lowered, size_of, view

REASONS: tuple[str, ...] = (
    "partial",
    "not_html",
    "challenge",
    "blocked",
    "login_wall",
    "consent_wall",
    "parked",
    "maintenance",
    "default_page",
    "soft_404",
)
"""In the order in which they are decided."""

BARE = 700  # size of a document's own text of which one sign is enough
SHORT = 2_000  # ... of which two signs are enough
LONG = 5_000  # ... above which no sign counts
FEW_LINKS = 40
TEXT_CHARS = 4_000  # of a short document, in which words are searched for

_HEADERS = (
    ("cf-mitigated", "challenge", "challenge"),  # Cloudflare, documented for detecting challenges
    ("x-amzn-waf-action", "challenge", "challenge"),
    ("x-amzn-waf-action", "captcha", "challenge"),
    ("x-vercel-mitigated", "challenge", "challenge"),
    ("x-vercel-mitigated", "deny", "blocked"),
    ("x-sucuri-block", "", "blocked"),
)
_STATUSES = {
    401: "login_wall",
    403: "blocked",
    407: "login_wall",
    429: "blocked",
    451: "blocked",
    500: "maintenance",
    502: "maintenance",
    503: "maintenance",
    504: "maintenance",
    511: "login_wall",
}
_NOISE = (
    r"(?:https?|errors?|err|code|status|oo+ps|whoops|uh[- ]?oh|oh no|sorry|ups|hoppla|the|this|your|erreur|désolé|"
    r"fehler|fout|errore|erro|ops|błąd|ошибка|помилка|エラー|错误|錯誤|오류|خطأ|hata|chyba|[\W\d_])"
)
_BETWEEN = re.compile(r" [-–—|·•»«/:~] |[|·•»«]|[:：] ?|[｜_] ?")
_PASSWORD = re.compile(rb"<input [^>]{0,300}type *= *[\"']?password")
_ASKED = re.compile(rb"class=[\"']?(?:g-recaptcha|h-captcha|cf-turnstile|frc-captcha)[\"' >]")


class Inspection(NamedTuple):
    """What an answer is."""

    reason: str  # one of REASONS, "" = a page
    outline: bytes  # compact digest of title and text, for `filters.no_page.outline.same`; b"" = no text


class _Signs(NamedTuple):
    title: re.Pattern[str]
    text: re.Pattern[str]
    marks: tuple[bytes, ...]


def inspect(url: str, status: int, headers: Mapping[str, str], body: bytes | str, encoding: str) -> Inspection:
    """Inspect an answer: header names in lower case, body inflated, charset ("" = UTF-8). Never raises."""
    document = lowered(body, encoding)
    seen = view(document)
    return Inspection(_reason(status, headers, seen), outline(url, seen))


def _reason(status: int, headers: Mapping[str, str], seen: View) -> str:
    if status == 206:
        return "partial"
    for name, value, reason in _HEADERS:
        if value in headers.get(name, "-").lower() and name in headers:
            return reason
    if not is_html(seen.document):
        return "not_html" if seen.document.strip() else ""
    if seen.size > LONG:
        return ""
    expected = _STATUSES.get(status, "")
    if status == 503 and "retry-after" not in headers:
        expected = ""
    segments = _segments(seen.title)
    headings = [segment for heading in seen.headings[:3] for segment in (heading, *_segments(heading))]
    text = ""
    if seen.size <= SHORT:
        text = seen.text()[:TEXT_CHARS]
    for reason in REASONS[2:]:
        signs = _signs(reason)
        titled = any(signs.title.fullmatch(segment) for segment in segments)
        headed = any(signs.title.fullmatch(segment) for segment in headings)
        if seen.size > SHORT and not titled:
            continue
        marked = any(mark in seen.document for mark in signs.marks)
        said = bool(signs.text.search(text))
        if _enough(reason, seen, titled, headed, marked, said, expected == reason or _structure(reason, seen)):
            return reason
    return expected if seen.size <= BARE and size_of(text) <= 2 * BARE else ""


def _enough(reason: str, seen: View, titled: bool, headed: bool, marked: bool, said: bool, built: bool) -> bool:
    """Whether the signs are enough for the size of the document's own text."""
    few_links = seen.links <= FEW_LINKS
    if reason == "consent_wall":  # a page with a banner has the same words and marks, but another title
        return (titled and (said or marked or seen.size <= BARE)) or (headed and said and few_links and seen.size <= SHORT)
    if reason == "login_wall":  # many pages have a form or a hint to log in
        return few_links and (titled or (seen.size <= BARE and (headed or said or marked))) and (
            built or (seen.size <= BARE and titled + headed + said + marked >= 2)
        )
    if seen.size <= BARE:
        return titled or marked or (built and (headed or said)) or (few_links and (headed or said))
    if seen.size <= SHORT:
        return titled + headed + marked + said + built >= 2
    return titled and (headed or marked)


def _structure(reason: str, seen: View) -> bool:
    if reason == "login_wall":
        return bool(_PASSWORD.search(seen.document))
    if reason == "soft_404":
        return error_class(body_class(seen.document))
    return reason == "challenge" and bool(_ASKED.search(seen.document))


def _segments(title: str) -> list[str]:
    return [title, *_BETWEEN.split(title)] if title else []


@lru_cache
def _signs(reason: str) -> _Signs:
    titles, texts = _listed(TITLES[reason]), _listed(TEXTS[reason])
    return _Signs(
        re.compile(rf"{_NOISE}*(?:{'|'.join(titles)}){_NOISE}*"),
        re.compile("|".join(texts)),
        tuple(mark.encode() for mark in _listed(MARKS.get(reason, "")) if mark),
    )


def _listed(table: str) -> list[str]:
    """The entries of a table. A line ends after a "|" or in the place of a space."""
    return re.split(r" ;\s", re.sub(r"(?<!\|)\n", " ", table.strip()).replace("\n", ""))
