"""`/ads.txt` of a site (IAB Tech Lab, ads.txt 1.1): who owns it, and its own accounts with Google.

OWNERDOMAIN is the registrable domain of the site's owner. A DIRECT line names an account of the owner, a RESELLER line
one that many sites share. Where the file has a MANAGERDOMAIN, the accounts may be those of a firm that sells the ads of
many sites, and none is kept; nor is one of a long list, as it is copied from a network's instructions.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from crawler.errors import UnusableUrl
from crawler.web.urls import host_of, normalise
from stream.text.registrable_domain import is_public_suffix, registrable_domain

ADS_TXT_PATH = "/ads.txt"
ADS_TXT_CAP_BYTES = 512 * 1024
LINES_CAP = 20_000
ACCOUNTS_CAP = 20  # accounts of Google that one owner may have
DOMAINS_CAP = 10  # different values of a variable that stands once in a file

_EOL = re.compile(r"\r\n?|\n")
_ACCOUNT = re.compile(r"(?:ca-)?pub-([0-9]{10,16})", re.IGNORECASE)
_NAME_CAP = 253  # characters of a host
_LOADS_ADS = (  # by publishers; `googleads.g.doubleclick.net` also serves the advertisers' own measuring
    *(b"ca-pub-", b"googlesyndication.com/pagead/js/", b"googlesyndication.com/tag/js/gpt.js"),
    *(b"securepubads.g.doubleclick.net", b"googletagservices.com/tag/js/gpt.js"),
)


def loads_google_ads(body: bytes) -> bool:
    """Whether a page names a script or an account of Google's ads for publishers: a cheap look at its bytes."""
    return any(literal in body for literal in _LOADS_ADS)


class StatedOwner(NamedTuple):
    """What an ads.txt says of the owner: a registrable domain, "" if it names none, and accounts `pub-N` of Google."""

    domain: str = ""
    google_ids: tuple[str, ...] = ()

    @classmethod
    def read(cls, body: bytes) -> StatedOwner:
        """Read a file. Never raises: an HTML page or other text says nothing, and nothing is read beyond the caps."""
        text = _text_of(body[:ADS_TXT_CAP_BYTES])
        lines = _EOL.split(text, LINES_CAP)[:LINES_CAP]
        if len(body) >= ADS_TXT_CAP_BYTES:
            del lines[-1]  # the cap may have cut it
        if text.lstrip().startswith("<"):
            return cls()
        owners, managers, ids = set[str](), set[str](), set[str]()
        for line in lines:
            said = line.partition("#")[0].partition(";")[0]
            name, is_variable, value = said.partition("=")
            if not is_variable:
                if account := _direct_account(said):
                    ids.add(account)
            elif (variable := name.strip().lower()) == "ownerdomain":
                owners.add(value.strip().lower())
            elif variable == "managerdomain":
                managers.add(value.partition(",")[0].strip().lower())  # a country may follow
        if max(len(owners), len(managers)) > DOMAINS_CAP:
            return cls()
        owners = {*map(_domain_of, owners)} - {""}
        is_of_owner = {*map(_domain_of, managers)} <= {*owners, ""}
        ids = ids if is_of_owner and len(ids) <= ACCOUNTS_CAP else set()
        return cls(owners.pop() if len(owners) == 1 else "", tuple(sorted(ids)))


def _text_of(body: bytes) -> str:
    """The text without a byte order mark; one in UTF-16 is readable without its zeros."""
    return body.replace(b"\0", b"").decode("utf-8", "replace").lstrip("\ufeff\ufffd")


def _direct_account(line: str) -> str:
    """The account `pub-N` of a line such as `google.com, pub-0123456789012345, DIRECT, f08c47fec0942fa0`, or ""."""
    system, _, rest = line.partition(",")
    account, _, rest = rest.partition(",")
    found = _ACCOUNT.fullmatch(account.strip())
    is_direct = rest.partition(",")[0].strip().lower() == "direct"
    return f"pub-{found[1]}" if found and is_direct and system.strip().lower() == "google.com" else ""


def _domain_of(value: str) -> str:
    """The registrable domain of a host, or of a URL; "" if it is none."""
    try:
        host = host_of(normalise(f"http://{value[:_NAME_CAP].rpartition('://')[2]}"))
    except UnusableUrl:
        return ""
    domain = registrable_domain(host)
    is_name = "." in domain and not domain.rpartition(".")[2].isdigit() and not domain.startswith("[")
    return domain if is_name and not is_public_suffix(domain) else ""
