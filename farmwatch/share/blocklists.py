"""Lists of sites in the formats that browsers, resolvers and search engines block by.

| format | an entry | of |
|---|---|---|
| ublacklist | `*://HOST/*` | uBlacklist: match patterns of web extensions, `#` comments, front matter in YAML |
| hosts | `0.0.0.0 HOST` | the file /etc/hosts, also of Pi-hole and AdGuard Home |
| adblock | `|https://HOST^$document` | uBlock Origin and others; `||HOST^` would have the hosts below too |
| searxng | `- '^HOST$'` | the plugin `hostnames` of SearXNG: a list of regular expressions in YAML |

An entry is of one host name, and never of the hosts below it: those of a platform have other owners, most of them
unknown to the log. What is not plainly a host name, such as an IP address, is in no list.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version

from farmwatch.share.site_lines import ListedSite
from farmwatch.tables.files import Blocklist
from stream.text.wording import counted, one_line

_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_HOST = re.compile(rf"(?=.{{4,253}}\Z)(?:{_LABEL}\.)+[a-z](?:[a-z0-9-]{{0,61}}[a-z0-9])?")


def is_plain_host(site: str) -> bool:
    """Whether a site is a host name with a top-level domain, and so an entry of every format."""
    return _HOST.fullmatch(site) is not None


def expected_false(lines: Iterable[ListedSite]) -> float:
    """How many sites of a list are expected not to be LLM sites; `lines` have cautious probabilities."""
    return sum(1 - (line.p_llm or 0) for line in lines)


def made_by() -> str:
    """The program and its version."""
    return f"farmwatch {version('farmwatch')}"


def part_of_list(shown: int, whole: int) -> str:
    """How many sites of a list are shown, and what leaves out the others."""
    if shown == whole:
        return f"{counted(whole, 'site')} in the list"
    return f"{shown:,} of the {counted(whole, 'site')} in the list (--where and --limit leave out the others)"


def header_of(
    lines: Sequence[ListedSite], whole: int, contact: str, warnings: Mapping[str, str], now_ms: int
) -> Iterator[str]:
    """When, what, by what, how often it errs, and whom an owner writes to; `lines` have cautious probabilities.

    `whole`: how many sites the list has without --where and --limit.
    """
    yield f"{datetime.fromtimestamp(now_ms / 1000, UTC):%Y-%m-%d %H:%M} UTC, {made_by()}"
    false = expected_false(lines)
    part = f"{false:.1f} ({false / max(len(lines), 1):.2%})"
    yield f"{part_of_list(len(lines), whole)}, of which {part} are expected not to be written by language models"
    yield "Each entry is one host, judged by its articles of its newest term"
    versions = {(line.row.ruleset, line.row.digest, line.row.detector, line.row.epoch) for line in lines}
    for ruleset, digest, detector, epoch in sorted(versions):
        yield f"Ruleset {ruleset} {digest}; detector {detector}; feature epoch {epoch or '-'}"
    yield from (f"Caution: {detector}: {warning}" for detector, warning in warnings.items() if warning)
    yield f"Owner of a site that should not be here? Write to {contact}"


def blocklist(form: Blocklist, title: str, header: Iterable[str], hosts: Sequence[str]) -> str:
    """The text of a list of plain hosts."""
    sign = "!" if form == "adblock" else "#"
    comments = [f"{sign} {one_line(line)}\n" for line in header]
    listed = sorted(filter(is_plain_host, set(hosts)))
    match form:
        case "ublacklist":
            before, entries = f"---\nname: {title}\n---\n", [f"*://{host}/*" for host in listed]
        case "hosts":
            before, entries = f"# {title}\n", [f"0.0.0.0 {host}" for host in listed]
        case "adblock":
            before = f"[Adblock Plus 2.0]\n! Title: {title}\n"
            entries = [f"|{scheme}://{host}^$document" for host in listed for scheme in ("http", "https")]
        case "searxng":
            dotted = (host.replace(".", r"\.") for host in listed)
            before, entries = f"# {title}\n", [f"- '^{host}$'" for host in dotted] or ["[]"]
    return "".join((before, *comments, *(f"{entry}\n" for entry in entries)))
