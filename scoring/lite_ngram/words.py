"""Words of a text, without numpy: normalised prose, its tokens, and the limits that all detectors share.

Normalising brings a text of a page or a data set to plain prose, so that a style classifier sees only style. Without
these cuts the strongest features are artefacts: bullets, numbering, the "Sure, here is …:" of an assistant, the spaced
quotes of a tokenised corpus. Linear in the length: every pattern is bounded or begins at a line start.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable

from stream.text.invisible import without_invisible

LONGEST_CHARS, LONGEST_WORDS = 1_000_000, 50_000  # a longer text is a book or a dump, not an article
MIN_FUNCTION_WORDS_PER_100 = 18  # with fewer, a text is a list, a table or another language; English prose has 40-55

_TOKEN = re.compile(rb"[a-z]+(?:'[a-z]+)?|\d+|[.,!?;:\"()]|\xe2\x80\x94")  # the last is the dash of `normalise`
_WORDS = b"""
a about above across after again against all almost along also although always am among an and another any anyone
anything are around as at away be became because become been before behind being below between both but by can can't
cannot could couldn't did didn't do does doesn't doing don't down during each either else enough even ever every
everyone everything few for from further had hadn't has hasn't have haven't having he he's her here hers herself him
himself his how however i i'd i'll i'm i've if in instead into is isn't it it's its itself just least less like many
may maybe me might mine more most much must my myself near neither never no nobody none nor not nothing now of off
often on once one only onto or other others our ours ourselves out over own perhaps quite rather really same shall
she she's should shouldn't since so some someone something sometimes soon still such than that that's the their
theirs them themselves then there there's therefore these they they're they've this those though through thus to
together too toward towards under unless until up upon us very was wasn't we we'll we're we've were weren't what
what's whatever when where whether which while who who's whom whose why will with within without won't would
wouldn't yes yet you you'll you're you've your yours yourself
"""

FUNCTION_WORDS = frozenset(_WORDS.split())


def tokens(normalised: str) -> list[bytes]:
    """Lower-case tokens of a normalised text: words, ASCII digits, punctuation. Other scripts give none."""
    return _TOKEN.findall(normalised.lower().encode())


def has_few_function_words(tokens: Iterable[bytes], words: int) -> bool:
    """Whether lower-case `tokens` of a text with this many words have too few English function words for prose."""
    return not words or 100 * sum(map(FUNCTION_WORDS.__contains__, tokens)) < MIN_FUNCTION_WORDS_PER_100 * words


_TYPOGRAPHY = {
    **dict.fromkeys("‘’‚‛′ʼ´", "'"),
    **dict.fromkeys("“”„‟″«»", '"'),
    **dict.fromkeys("‐‑", "-"),
    **dict.fromkeys("‒–―−─", "—"),
}
_TYPOGRAPHIC = re.compile(f"[{''.join(_TYPOGRAPHY)}]")
_ENTITY = re.compile(
    r"&(?:[a-zA-Z]{2,31};|shy|#0{0,99}[0-9]{1,7}(?![0-9]);?|#[xX]0{0,99}[0-9a-fA-F]{1,6}(?![0-9a-fA-F]);?)"
)
_TURN = re.compile(r"\[ ?(?:assistant|user|system) ?\] ?:?", re.IGNORECASE)  # remains between the turns of a dialogue
_LINK = re.compile(r"!?\[([^\]\n]{0,300})\]\([^)\s]{0,2000}(?:\s[^)\n]{0,300})?\)")
_URL = re.compile(r"(?:https?://|www\.)[^\s<>\"]+")
_LINE_START = re.compile(r"^[ \t]*+(?:[#>*+=|•‣◦▪●■·—-]++[ \t]*+)*+(?:\(?\d{1,3}[.)](?=[ \t]))?", re.MULTILINE)
_DASHES = re.compile(r" -{1,3}(?=\s)|--+")
_SPACED_NOT = re.compile(r" ?n ?' ?t\b")  # "do n' t", as in tokenised corpora
_SPACED_CLITIC = re.compile(r" ?' ?(?=(?:s|m|re|ve|ll|d)\b)")
_PREAMBLES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\[ ?[a-z]{2} ?\]\s*",  # prompt tags of a story forum: [WP], [ TT ]
        r"\[?(?:assistant|answer|response|output)\]?:\s*",
        r"(?:sure(?: thing)?|certainly|of course|absolutely|okay|ok|great|yes)\b[,!.:]?[^\n:]{0,300}:(?=\D)\s*",
        r"(?:sure(?: thing)?|certainly|of course|absolutely)!\s+",
        r"(?:here(?:'s| is| are)|below (?:is|are)|the following (?:is|are))\b[^\n:.]{0,300}:(?=\D)\s*",
        r"(?:title|headline|subject|abstract|review|essay|article|story|introduction)\s?:\s*",
    )
)


def normalise(text: str) -> str:
    """Fold `text` to plain prose on one line: NFKC, straight quotes, one dash, `URL`, no markdown, no preamble.

    HTML entities are resolved, the turns of a dialogue ("[assistant]:") go. Lone surrogates are dropped; any string is
    taken, an empty one may come out.
    """
    if not text.isascii():
        text = text.encode("utf-8", "ignore").decode("utf-8")
    if "&" in text:
        text = _ENTITY.sub(lambda match: html.unescape(match[0]), text)
    if not text.isascii():
        text = unicodedata.normalize("NFKC", without_invisible(text))
        text = _TYPOGRAPHIC.sub(lambda match: _TYPOGRAPHY[match[0]], text)
    if "[" in text:
        text = _TURN.sub(" ", text)
    if "](" in text:
        text = _LINK.sub(r"\1", text)
    if "://" in text or "www." in text:
        text = _URL.sub(" URL ", text)
    text = _LINE_START.sub("", text)
    if "--" in text or " - " in text:
        text = _DASHES.sub("—", text)
    for mark in "*_~|#`":
        if mark in text:
            text = text.replace(mark, " ")
    if "''" in text:
        text = text.replace("''", '"')
    if " '" in text or "' " in text or "n 't" in text:
        text = _SPACED_CLITIC.sub("'", _SPACED_NOT.sub("n't", text))
    text = text.lstrip()
    for pattern in _PREAMBLES:
        text = pattern.sub("", text, count=1) if pattern.match(text) else text
    return " ".join(text.split())
