"""Decides whether an answer is a page or something served in its place, such as a challenge or a "not found" text.

Headers decide first. Then the less text of its own a document has, the less evidence is enough: words in the title or
in a heading, marks of known products, words of the text, and the structure. A document with the text of an article is a
page, whatever it is about and whatever it embeds.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

import re2

from filters.no_page.consent import is_about_consent, offers_choice, tells_reader_of_consent
from filters.no_page.outline import error_class, outline_of
from filters.no_page.view import PROSE_SIZE, View, body_class, lowered, markup_text, text_size, title_of, view

REASONS: tuple[str, ...] = (
    *("partial", "not_html", "challenge", "blocked", "login_wall", "consent_wall", "parked", "maintenance"),
    *("default_page", "soft_404"),
)
"""In the order in which they are decided."""

# Chosen between the labelled articles, of which .5 % have a text of at most 700 and 2.4 % of at most 2,000, and the
# answers of the tests, of which 97 % and 99 % do. Labelled pages "not found" have up to 47 links.
BARE = 700  # size of a document's own text of which one sign is enough
SHORT = 2_000  # ... of which two signs are enough
LONG = 5_000  # ... above which no sign counts
FEW_LINKS = 60
NEXT_TO_NO_LINKS = 15  # a wall links to its policies; pages have menus
ASKING_SIZE = 200  # of the text that asks for consent; less is the banner of an application's shell
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
    **dict.fromkeys((401, 407, 511), "login_wall"),
    **dict.fromkeys((403, 429, 451), "blocked"),
    503: "maintenance",
}
_NOISE = (
    r"(?:https?|errors?|err|code|status|oo+ps|whoops|uh[- ]?oh|oh no|sorry|ups|hoppla|the|this|your|erreur|désolé|"
    r"fehler|fout|errore|erro|ops|błąd|ошибка|помилка|エラー|错误|錯誤|오류|خطأ|hata|chyba|[^\pL])*"
)
_BANNERS = ("login_wall", "consent_wall")
_DFA_BYTES = 64 << 20  # most memory of an automaton
_BETWEEN = re.compile(r" [-–—|·•»«/:~] |[|·•»«]|[:：] ?|[｜_] ?")
_PASSWORD = re.compile(rb"<input [^>]{0,300}type *= *[\"']?password")
_LABEL = re.compile(
    rb"<(?:button|a)(?: [^>]*+)?>((?:[^<]++|<(?!/?(?:button|a)[ >])){1,24})</(?:button|a)|value=[\"']([^\"'<>]{1,80})"
)
_ASKED = re.compile(rb"class=[\"']?(?:g-recaptcha|h-captcha|cf-turnstile|frc-captcha)[\"' >]")
_XML = re.compile(
    rb"<(?:rss|feed|rdf:rdf|urlset|sitemapindex|opml|svg|soap|wsdl|kml|gpx|error|response|listbucketresult)[\s:>]"
)
_ROOT = re.compile(rb"<[!?][^>]{0,2000}>|\s+")
_JSON = re.compile(rb"[\[{] *(?:[\[{\"}\]]|-?\d)|\)\]\}'")
_SCRIPT = re.compile(
    rb"(?:[!;(+ ]*(?:async )?function[ (*]|(?:var|let|const) [\w${]+ *[=,;}]|[\"']use strict[\"']"
    rb"|(?:window|document|self)[.\[]|import [\w{*\"']|define\(|[\w$.]{1,60}\( *[{\[\"']|/\*[!*]"
    rb"|@(?:charset|import|media|font-face)|[\w.#*,: -]{1,80}\{[\w -]{1,40}:)"
)
_ELEMENT = re.compile(
    rb"<(?:!doctype html|html|head|body|title|meta|link|div|p|br|a|table|span|h[1-6]|ul|ol|center|font|img|form|iframe"
    rb"|script|noscript|section|article|main|frameset|pre|b|i|hr)[ />]"
)

_Found = tuple[set[str], set[str], set[str], set[str]]
_Titled = dict[str, set[str]]


class Inspected(NamedTuple):
    """What an answer is."""

    reason: str  # one of REASONS, "" = a page
    outline: bytes  # compact digest of title and text, for `filters.no_page.outline.same`; b"" = hardly any text


def inspect(
    url: str, status: int, headers: Mapping[str, str], body: bytes | str, encoding: str, has_outline: bool = True
) -> Inspected:
    """Inspect an answer: header names in lower case, body inflated, charset ("" = UTF-8). Never raises."""
    if not has_outline:
        return Inspected(reason_of(status, headers, body, encoding), b"")
    seen = view(lowered(body, encoding), LONG)
    return Inspected(_reason(status, headers, seen, _titled(seen.title)), outline_of(url, seen))


def reason_of(status: int, headers: Mapping[str, str], body: bytes | str, encoding: str) -> str:
    """The reason of `inspect`, of less text and without an outline."""
    document = lowered(body, encoding)
    title = _titled(title_of(document))
    return _reason(status, headers, view(document, LONG if title else SHORT), title)


def _reason(status: int, headers: Mapping[str, str], seen: View, title: _Titled) -> str:
    if status == 206:
        return "partial"
    for name, value, reason in _HEADERS:
        if value in headers.get(name, "-").lower() and name in headers:
            return reason
    if not _is_html(seen.document):
        return "not_html" if seen.document.strip() else ""
    if seen.size > (LONG if title else SHORT):  # too long for the signs that it may have
        return ""
    signs_of = _found(seen, title)
    expected = _STATUSES.get(status, "")
    if status == 503 and "retry-after" not in headers:
        expected = ""
    for reason in REASONS[2:]:
        if reason == "maintenance" and status >= 400 and status != 503:
            continue  # one URL is broken, not the site
        if reason == "consent_wall" and _only_asks_for_consent(seen):
            return reason
        titled, headed, marked, said = (reason in kind for kind in signs_of[reason in _BANNERS])
        if not (titled or headed or marked or said):
            continue  # structure alone says nothing
        built = expected == reason or _structure(reason, seen)
        if _enough(reason, seen, titled, headed, marked, said, built):
            return reason
    return expected if seen.size <= BARE and _few_links(seen) else ""


def _is_html(document: bytes) -> bool:
    """Whether it is no feed, sitemap, JSON, script, style sheet, text or binary file; an empty document is no HTML."""
    start = document.lstrip()
    if _JSON.match(start) or _SCRIPT.match(start):
        # a page may begin with a stray bracket or a line of script, but then its elements follow soon
        return b"<html" in start[:4096] or b"<!doctype html" in start[:4096]
    if start.startswith((b"<?xml", b"<!--", b"<")):
        root = start[:4096]
        while before := _ROOT.match(root):
            root = root[before.end() :]
        if _XML.match(root):
            return False
        if start.startswith(b"<?xml") and not _ELEMENT.search(root):
            return False
    return bool(_ELEMENT.search(document))


def _found(seen: View, title: _Titled) -> tuple[_Found, _Found]:
    """The reasons of title, headings, marks and text, with all headings and with the first."""
    titles, texts, marks = _automata()
    titled = set().union(*title.values())
    headed = [  # the words of the title are no second sign, nor are they below in the text
        {reason for part in _segments(heading) if _letters(part) not in title for reason in titles(part)}
        for heading in seen.headings
    ]
    marked = marks(seen.document)
    lines = seen.lines() if seen.size <= SHORT else []
    if title:
        lines = [line for line in lines if _letters(line) not in title]
    said = texts("\n".join(lines)[:TEXT_CHARS])
    first = headed[0] if headed else set()
    return (titled, set().union(*headed), marked, said), (titled, first, marked, said)


def _enough(reason: str, seen: View, titled: bool, headed: bool, marked: bool, said: bool, built: bool) -> bool:
    """Whether the signs are enough for the size of the document's own text."""
    if reason in _BANNERS:  # many pages have a banner, a form or a hint with the same words and marks
        if not titled and (not headed or seen.size > SHORT or len(seen.headings) > 2 or not _few_links(seen)):
            return built and marked and seen.size <= BARE
        return built or marked or said or (titled and seen.size <= BARE and (headed or reason == "consent_wall"))
    if seen.size > SHORT or seen.prose > BARE:
        return titled and (marked or (headed and 2 * seen.prose < seen.size))
    if seen.size > BARE:
        return titled + headed + marked + said + built >= 2
    if titled or (built and (headed or said)) or (marked and (not seen.prose or headed or said)):
        return True
    return (headed or (said and reason != "maintenance")) and _few_links(seen)


def _only_asks_for_consent(seen: View) -> bool:
    """Whether most of a short document, and each paragraph, tells a reader of consent, and a button offers a choice."""
    if seen.size > SHORT or not _leads_nowhere(seen.document) or is_about_consent(seen.title):
        return False
    asking = [block for block in seen.blocks if tells_reader_of_consent(block)]
    if sum(map(text_size, asking)) < max(ASKING_SIZE, seen.size / 2):
        return False
    if any(text_size(block) >= PROSE_SIZE and block not in asking for block in seen.blocks):
        return False
    return any(offers_choice(markup_text(label or value)) for label, value in _LABEL.findall(seen.document))


def _leads_nowhere(document: bytes) -> bool:
    at = -1
    for _ in range(NEXT_TO_NO_LINKS + 1):  # counting would read all of it
        at = document.find(b"<a ", at + 1)
        if at < 0:
            return True
    return False


def _few_links(seen: View) -> bool:
    return seen.visible.count(b"<a ") <= FEW_LINKS


def _structure(reason: str, seen: View) -> bool:
    if reason == "login_wall":
        return bool(_PASSWORD.search(seen.document))
    if reason == "soft_404":
        return error_class(body_class(seen.visible))
    return reason == "challenge" and bool(_ASKED.search(seen.document))


def _segments(title: str) -> list[str]:
    return [title, *_BETWEEN.split(title)] if title else []


def _titled(title: str) -> _Titled:
    """The segments of a title that speak for reasons, by their letters."""
    titles = _automata()[0]
    return {_letters(segment): reasons for segment in _segments(title) if (reasons := titles(segment))}


def _letters(segment: str) -> str:
    return "".join(filter(str.isalnum, segment))


def signs() -> dict[str, dict[str, list[str]]]:
    """`titles`, `texts` and `marks`, by reason."""
    return tomllib.loads(resources.files("filters.no_page").joinpath("signs.toml").read_text("utf-8"))


@cache
def _automata() -> tuple[Callable[[str], set[str]], Callable[[str], set[str]], Callable[[bytes], set[str]]]:
    """Automata that tell the reasons of a title's segment, of a text and of markup, in one pass each."""
    of = signs()
    titles = {reason: f"{_NOISE}(?:{'|'.join(patterns)}){_NOISE}" for reason, patterns in of["titles"].items()}
    texts = {reason: "|".join(patterns) for reason, patterns in of["texts"].items()}
    marks = {reason: "|".join(map(re2.escape, strings)) for reason, strings in of["marks"].items()}
    search = re2.Set.SearchSet
    return _automaton(re2.Set.FullMatchSet, titles), _automaton(search, texts), _automaton(search, marks)


def _automaton(kind: Any, patterns: dict[str, str]) -> Callable[[Any], set[str]]:
    options = re2.Options()
    options.max_mem = _DFA_BYTES
    options.log_errors = False
    made = kind(options)
    for pattern in patterns.values():
        made.Add(pattern)
    made.Compile()
    reasons = list(patterns)
    return lambda text: {reasons[index] for index in made.Match(text) or ()}
