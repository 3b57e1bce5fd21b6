"""Blocklists, read by parsers that know only the formats' own documentation."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from farmwatch.share.blocklists import blocklist, is_plain_host
from farmwatch.tables.files import Blocklist

LISTED = ["farm.example", "b.farm.co.uk", "xn--bcher-kva.example", "under_score.example", "a-b.example"]
OTHERS = ["www.farm.example", "deep.www.farm.example", "notfarm.example", "farm.example.org", "afarm.example"]
HOSTILE = ["127.0.0.1", "[::1]", "localhost", "a.example\n0.0.0.0 bank.example", "a.example # x", "*.example", "'.ex"]
HEADER = ["by a detector\n0.0.0.0 bank.example", "||bank.example^"]
TITLE = "LLM sites"

Blocks = Callable[[str], bool]  # whether a host is blocked


def read_ublacklist(text: str) -> Blocks:
    """Front matter, `#` comments, and match patterns: scheme `*` is http or https, a host with `*.` has subdomains."""
    front, rules = re.fullmatch(r"---\n(.*?)---\n(.*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
    assert yaml.safe_load(front) == {"name": TITLE}
    hosts = []
    for line in rules.splitlines():
        if rule := line.partition("#")[0].strip():
            match = re.fullmatch(r"(\*|https?)://(\*|(?:\*\.)?[^*/]+)/(.*)", rule)
            assert match and match[1] == "*" and match[3] == "*" and not match[2].startswith("*")
            hosts.append(match[2])
    return hosts.__contains__


def read_hosts(text: str) -> Blocks:
    """hosts(5): an address and names, separated by blanks; what follows a `#` is a comment."""
    names: set[str] = set()
    for line in text.splitlines():
        address, *of_line = line.partition("#")[0].split() or [""]
        assert not address or ipaddress.ip_address(address).is_unspecified
        names.update(of_line)
    return names.__contains__


def read_adblock(text: str) -> Blocks:
    """`!` comments; `||` is the beginning of the host or of a part of it, `|` of the URL; `^` is a separator."""
    first, *lines = text.splitlines()
    assert re.fullmatch(r"\[Adblock Plus [\d.]+\]", first) and lines[0] == f"! Title: {TITLE}"
    rules = [line for line in lines if not line.startswith("!")]
    found = [re.fullmatch(r"(\|\||\|https?://)([^*^|$#@/]+)\^(\$document)?", rule) for rule in rules]
    assert all(found)
    below = {match[2] for match in found if match and match[1] == "||"}
    exact = {match[1].strip("|") + match[2] for match in found if match}

    def blocks(host: str) -> bool:
        return {f"http://{host}", f"https://{host}"} <= exact or any(f".{host}".endswith(f".{of}") for of in below)

    return blocks


def read_searxng(text: str) -> Blocks:
    """A YAML list of regular expressions, which are searched in the host of a result's URL."""
    patterns = yaml.safe_load(text)
    assert isinstance(patterns, list)
    return lambda host: any(re.compile(pattern).search(host) for pattern in patterns)


READERS: dict[Blocklist, Callable[[str], Blocks]] = {
    "ublacklist": read_ublacklist,
    "hosts": read_hosts,
    "adblock": read_adblock,
    "searxng": read_searxng,
}


def blocked(form: Blocklist, hosts: list[str], header: Iterable[str] = HEADER) -> Blocks:
    """What the list blocks, by its reader."""
    return READERS[form](blocklist(form, TITLE, header, hosts))


@pytest.mark.parametrize("form", READERS)
def test_a_list_blocks_its_hosts_and_no_other(form: Blocklist) -> None:
    """Neither a site below a listed one, nor a name that contains it, nor one that a header or a host smuggles in."""
    blocks = blocked(form, [*LISTED, *HOSTILE])
    assert all(map(blocks, LISTED))
    assert not any(map(blocks, [*OTHERS, *HOSTILE, "bank.example", "farmxexample"]))


@pytest.mark.parametrize("form", READERS)
@given(st.lists(st.one_of(st.text(max_size=30), st.text("ab.-_*#^|$\n'\\ 0", max_size=12)), max_size=5))
def test_no_name_can_break_a_list(form: Blocklist, names: list[str]) -> None:
    """Whatever a host is called, the list is read as its format, and blocks plain hosts alone."""
    blocks = blocked(form, [*names, "farm.example"], names)
    assert blocks("farm.example")
    assert not blocks("bank.example") and not blocks("")
    assert all(blocks(name) == is_plain_host(name) for name in names)


@pytest.mark.parametrize("form", READERS)
def test_an_empty_list_is_a_list(form: Blocklist) -> None:
    """Without a site nothing is blocked, and the file is still of its format."""
    assert not blocked(form, [])("farm.example")
