"""The signals of a parsed page, by the addresses that it loads or links to and by its inline scripts.

Comments, text and structured data are not read: a page about AdSense does not run it. Ads count by loads only,
affiliate services also by links. Of each kind of account a page gives the first few ids.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import re2

from filters.signals.hosts import HOSTS, LOADED
from filters.signals.ids import (
    ADDRESS_MARKS,
    GENERATORS,
    IDS,
    LINK_IDS,
    SCHEMA_CLASSES,
    SCRIPT_MARKS,
    THEME,
    VERIFICATIONS,
)
from stream.schema.signals import SignalKind

MOST_IDS = 4
"""Ids of one kind of account that a page gives."""
MOST_SIGNALS = 100
"""Signals that a page gives, without their ids."""

_LOADING = ("script", "iframe", "link", "ins", "embed", "amp-ad", "amp-analytics", "amp-auto-ads")
_ADDRESS_CHARS = 400  # of an address in a script that is read
_PARTS = 6  # of a host name that are looked at
_HOST = re.compile(r"[\w.-]{4,253}")
_SCHEME_CHARS = len("https:")
_WORD = re.compile(r"\w+")
_ID = re.compile(r"[\w.=/+*-]{4,80}")
_ADSENSE = re.compile(r"ca-pub-([0-9]{10,16})")
_LITERALS = sorted({*ADDRESS_MARKS, *SCRIPT_MARKS, *(literal for _, literal, _ in IDS)})
_OPTIONS = re2.Options()
_OPTIONS.max_mem = 64 << 20  # of an automaton: with too little it would find nothing
_SEARCH = re2.Set.SearchSet(_OPTIONS)  # one search for all takes an eighth of the time of one for each
for _literal in _LITERALS:
    _SEARCH.Add(re2.escape(_literal))
_SEARCH.Compile()


def signals_of(of: Mapping[str, Sequence[Any]], url: str = "") -> list[str]:
    """The signals of the page at `url`, whose elements `of` has by tag: sorted, each once; the tree stays."""
    inline, own = _inline(of["script"]), url.partition("//")[2].partition("/")[0]
    loads = _loads(of)
    found: dict[str, list[str]] = {}  # signal -> its ids
    links = [href for link in of["a"] if (href := link.get("href"))]
    for signal, of_id in chain(
        _of_addresses([*loads, *_in_scripts(inline)], own, is_load=True),
        _of_addresses(links, own, is_load=False),
        _of_metas(of["meta"]),
    ):
        _add(found, signal, of_id)
    blob = "\n".join(loads)
    present = {_LITERALS[place] for place in _SEARCH.Match(f"{blob}\n{inline}") or ()}
    for signal in _marked(blob, inline, present):
        _add(found, signal)
    for signal, literal, pattern in IDS:
        for text in (blob, inline) if literal in present else ():
            for of_id in _ids(text, literal, pattern):
                _add(found, signal, of_id)
    for theme in THEME.findall(blob):
        _add(found, f"{SignalKind.THEME}:{theme.lower()}")
    for script in of["script"]:
        if plugin := SCHEMA_CLASSES.get(script.get("class", "")):
            _add(found, plugin)
    return sorted(name for signal, ids in found.items() for name in (signal, *(f"{signal}:{of_id}" for of_id in ids)))


def _add(found: dict[str, list[str]], signal: str, of_id: str = "") -> None:
    if signal not in found and len(found) >= MOST_SIGNALS:
        return
    ids = found.setdefault(signal, [])
    if of_id and of_id not in ids and len(ids) < MOST_IDS:
        ids.append(of_id)


def _inline(scripts: Sequence[Any]) -> str:
    """The text of the inline scripts, without data."""
    texts = [of_one.text for of_one in scripts if of_one.text and "json" not in of_one.get("type", "")]
    return "\n".join(texts).replace("\\/", "/")


def _loads(of: Mapping[str, Sequence[Any]]) -> list[str]:
    """The values of the elements that load: also of attributes from which a script takes the address later."""
    loads = [image.get("src", "") for image in of["img"]]
    for tag in _LOADING:
        for element in of[tag]:
            loads += element.values()
    return loads


def _in_scripts(inline: str) -> Iterator[str]:
    """What follows each `//` of the inline scripts."""
    pieces = inline.split("//")
    return (f"//{piece[:_ADDRESS_CHARS]}" for piece in pieces[1:])


def _of_addresses(addresses: Iterable[str], own: str, *, is_load: bool) -> Iterator[tuple[str, str]]:
    """Signal and id, or "", of each address of a known host. A network's or shop's `own` pages earn nothing by it."""
    known: dict[str, list[tuple[str, str]]] = {}
    of_own = {signal.rstrip(":") for _, signal in _entries(own)}
    for address in addresses:
        start = address.find("//")
        host = _HOST.match(address, start + 2) if 0 <= start <= _SCHEME_CHARS else None
        if host is None:
            continue
        if host[0] not in known:
            known[host[0]] = _entries(host[0].lower())
        if entries := known[host[0]]:
            path = address[host.end() :].lower()
            entry = next((signal for prefix, signal in entries if path.startswith(prefix)), "")
            kind, _, name = entry.rstrip(":").partition(":")
            if kind == SignalKind.AFFILIATE:
                if is_load and name not in LOADED:
                    continue
            elif not is_load:
                continue
            pattern = LINK_IDS.get(name) if kind == SignalKind.AFFILIATE else None
            of_id = pattern.search(address) if pattern else None
            if name and (of_id or not entry.endswith(":")) and entry.rstrip(":") not in of_own:
                yield entry.rstrip(":"), of_id[1] if of_id else ""


def _entries(host: str) -> list[tuple[str, str]]:
    """The entries of a host name, and after them those of the domains that it is in."""
    parts = host.split(".")[-_PARTS:]
    return [entry for first in range(len(parts) - 1) for entry in HOSTS.get(".".join(parts[first:]), ())]


def _marked(blob: str, inline: str, present: Collection[str]) -> Iterator[str]:
    yield from (signal for mark, signal in ADDRESS_MARKS.items() if mark in present and mark in blob)
    yield from (signal for mark, signal in SCRIPT_MARKS.items() if mark in present and mark in inline)


def _ids(text: str, literal: str, pattern: re.Pattern[str]) -> Iterator[str]:
    at = text.find(literal)
    while at >= 0:
        if match := pattern.match(text, at):
            yield match[1]
        at = text.find(literal, at + len(literal))


def _of_metas(metas: Sequence[Any]) -> Iterator[tuple[str, str]]:
    for element in metas:
        name, content = (element.get("name") or "").strip().lower(), (element.get("content") or "").strip()
        if service := VERIFICATIONS.get(name):
            if _ID.fullmatch(content):
                yield f"{SignalKind.VERIFICATION}:{service}", content
        elif name == "generator":
            software = _WORD.match(content.lower())
            if software and software[0] in GENERATORS:
                yield f"{SignalKind.CMS}:{software[0]}", ""
        elif name == "google-adsense-account" and (account := _ADSENSE.fullmatch(content)):
            yield f"{SignalKind.ADS}:adsense", account[1]
