"""Opt-outs of pages from mining: X-Robots-Tag, robots metas, and TDMRep's header and metas.

| signal | where | obeyed with `crawl.obey_opt_out` |
|---|---|---|
| `noindex`, `none`, `noai`, `noimageai` | X-Robots-Tag, meta `robots` or of our name | yes |
| `nofollow` | the same | no: links of such a page are never followed, with any setting |
| `tdm-reservation` | header, meta, /.well-known/tdmrep.json (`crawler.robots.tdmrep`) | yes |
| `content-usage`, `content-signal` | see `crawler.robots.preferences` | with `crawl.obey_preferences` |

A reservation in any of TDMRep's three places counts, though its section 6.4 lets a page override the site's file.
`unavailable_after`, `max-snippet` and the like are no opt-outs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from crawler.robots.preferences import is_preference, stated_in_headers

FIELD_END = ";"  # joins several X-Robots-Tag fields: a robot's name applies within one field only

_ROBOT_WORDS = frozenset({"noindex", "nofollow", "none", "noai", "noimageai"})
_WITH_VALUE = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})
_ROBOT = re.compile(r"\*|[a-z][a-z0-9_/.-]*")
# Comments, scripts and styles match as a whole, closed or not, so that each byte is read once
_HEAD = re.compile(
    rb"<(?:!--.*?(?:-->|\Z)|script\b.*?(?:</script|\Z)|style\b.*?(?:</style|\Z)|meta[\s/]([^<>]{1,1000})>|(body\b))",
    re.IGNORECASE | re.DOTALL,
)
_ATTRIBUTE = re.compile(rb"""(?<![\w-])(name|content)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE)
_METAS = 2000  # parsed per page
_NOT_OBEYED = ":nofollow"


def opt_outs(
    headers: Mapping[str, str], body: bytes, agent: str, tags: Sequence[str] = (), encoding: str = ""
) -> list[str]:
    """The signals on a page, as `where:what`, each once. Never raises; takes time linear in the page's head.

    `headers` has lower-case names; `agent` is our product token: rules for other robots are ignored. `tags`: the full
    X-Robots-Tag fields, if `headers` may have cut them. `encoding`: the page's, if known.
    """
    agent = agent.lower()
    joined = FIELD_END.join(tags) if tags else headers.get("x-robots-tag")
    signals: list[str] = []
    if joined is not None:
        fields = joined.lower().split(FIELD_END)
        signals = [f"header:{word}" for field in fields for word in _robot_words(field, agent)]
    if _reserves(headers.get("tdm-reservation", "")):
        signals.append("header:tdm-reservation")
    signals += stated_in_headers(headers)
    for name, content in _metas(body, agent.encode(), encoding):
        if name in ("robots", agent):
            signals.extend(f"meta:{word}" for word in _robot_words(content, agent))
        elif name == "tdm-reservation" and _reserves(content):
            signals.append("meta:tdm-reservation")
    return list(dict.fromkeys(signals))


def forbids_mining(signals: Iterable[str]) -> bool:
    """Whether a crawler that obeys opt-outs skips a page with these signals."""
    return any(not signal.endswith(_NOT_OBEYED) and not is_preference(signal) for signal in signals)


def _metas(body: bytes, agent: bytes, encoding: str) -> Iterator[tuple[str, str]]:
    """Name and content of the head's metas that may be signals, lower case."""
    if encoding.startswith(("utf-16", "utf-32")) or body.startswith((b"\xff\xfe", b"\xfe\xff")):
        body = body.replace(b"\0", b"")  # markup is ASCII between zeros
    left = _METAS
    for match in _HEAD.finditer(body):
        if match[2] is not None or not left:
            return
        if match[1] is None:
            continue
        text = match[1].lower()
        if b"robots" not in text and b"tdm" not in text and agent not in text:
            continue
        left -= 1
        attributes: dict[bytes, bytes] = {}
        for attribute in _ATTRIBUTE.finditer(text):
            attributes.setdefault(attribute[1], attribute[2] or attribute[3] or attribute[4] or b"")
        name = attributes.get(b"name", b"").strip()
        if name:
            yield name.decode("ascii", "replace"), attributes.get(b"content", b"").decode("ascii", "replace")


def _robot_words(field: str, agent: str) -> Iterator[str]:
    """The signals in `noindex, otherbot: noai`; a name before a colon restricts the words after it to that robot."""
    meant = True
    for part in field.split(","):
        name, colon, rest = (piece.strip() for piece in part.partition(":"))
        if colon and name not in _WITH_VALUE:
            if not _ROBOT.fullmatch(name):
                continue  # the time of a date
            meant = name in ("*", "robots") or name.partition("/")[0] == agent
            part = rest
        if meant:
            yield from (word for word in part.split() if word in _ROBOT_WORDS)


def _reserves(value: str) -> bool:
    return any(part.strip() == "1" for part in value.split(","))
