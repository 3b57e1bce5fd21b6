"""Normalised URLs, and the ids made from them.

The rules are those of the URL Standard (url.spec.whatwg.org), as ada-url implements it: host names in lower case and
punycode, no default ports, dots in paths resolved. In addition, fragments, credentials and the dot after a host name
are dropped, and a host with an empty label is refused. Query parameters stay: any of them may select the page.
"""

from __future__ import annotations

import re

import ada_url
import xxhash

from crawler.errors import UnusableUrl

URL_CAP = 2048  # characters; longer ones are traps or data

# Ports of other protocols, where a request may act as a command (Fetch Standard, section 2.10)
_BAD_PORTS = frozenset(
    """0 1 7 9 11 13 15 17 19 20 21 22 23 25 37 42 43 53 69 77 79 87 95 101 102 103 104 109 110 111 113 115 117 119 123
    135 137 139 143 161 179 389 427 465 512 513 514 515 526 530 531 532 540 548 554 556 563 587 601 636 989 990 993
    995 1719 1720 1723 2049 3659 4045 4190 5060 5061 6000 6566 6665 6666 6667 6668 6669 6679 6697 10080
    """.split()  # noqa: SIM905  # a table
)
# Indexes, logins, media: never articles, and endless on many sites.
_SKIPPED_ENDINGS = frozenset(
    """jpg jpeg png gif webp avif svg ico bmp tif tiff mp3 mp4 m4a m4v webm ogg wav avi mov mkv pdf doc docx xls xlsx
    ppt pptx epub zip gz tgz bz2 xz 7z rar tar exe dmg apk iso css js mjs json xml rss atom txt csv ics woff woff2
    ttf eot""".split()  # noqa: SIM905  # a table of words
)
_SKIPPED_PARTS = frozenset(
    """tag tags category categories topic topics author authors user users member members archive archives label search
    calendar kalender calendrier suche recherche find results wp-admin wp-login wp-json xmlrpc cgi-bin cdn-cgi
    login log-in signin sign-in signup sign-up register account logout cart basket checkout wishlist password
    feed feeds rss atom amp print embed trackback
    """.split()  # noqa: SIM905
)
_SKIPPED_QUERIES = frozenset(
    """s q query search keyword replytocom share print add-to-cart orderby sort filter
    sid sessid sessionid session_id session-id session phpsessid jsessionid oscsid zenid cfid cftoken
    year month day week date calendar cal ical eventdisplay tribe-bar-date
    """.split()  # noqa: SIM905
)
_PAGED = re.compile(r"/page/\d+/?$")
# Session ids in paths: /a;jsessionid=1F, /(S(lit3py55))/a
_SESSION = re.compile(r";(?:jsession|phpsess|session|sess|s)id=|/\((?:[a-z]\([^/()]*\))+\)/")
_ARCHIVE = re.compile(r"(?:.*/)?(?:19|20)\d\d(?:/\d\d?){0,2}/?")  # posts of a year, month or day: not an article
_DEPTH_CAP = 20  # parts of a path; deeper ones come from wrongly relative links
_REPEATS_CAP = 3  # repetitions of one part in a path, of the same mistake: /a/b/a/b/a/b/a


def normalise(url: str, base: str | None = None) -> str:
    """The normalised form of a URL, joined to `base` if given.

    Raises UnusableUrl for all but http(s) URLs with a host, and for ports that no web server has.
    """
    if len(url) > URL_CAP:
        raise UnusableUrl(f"URL of {len(url)} characters, at most {URL_CAP} are taken: {url[:80]!r}…")
    try:  # around each assignment too: ada-url checks them all
        parsed = ada_url.URL(url.strip(), base)
        if "@" in parsed.href:
            parsed.username = parsed.password = ""
        host = parsed.hostname.removesuffix(".")
        if host != parsed.hostname:
            parsed.hostname = host
    except ValueError:
        raise UnusableUrl(f"not an absolute URL: {url[:200]!r}") from None
    if parsed.protocol not in ("http:", "https:"):
        raise UnusableUrl(f"neither http nor https: {url[:200]!r}")
    if parsed.port in _BAD_PORTS:
        raise UnusableUrl(f"the port of another protocol: {url[:200]!r}")
    if "" in host.split("."):
        raise UnusableUrl(f"no host name in {url[:200]!r}")
    href: str = parsed.href.partition("#")[0]
    if len(href) > URL_CAP:
        raise UnusableUrl(f"URL of {len(href)} characters once written out, at most {URL_CAP} are taken: {url[:80]!r}…")
    return href


def hit_url(url: str) -> str:
    """`normalise` for the URL of a search result. Raises UnusableUrl, also for hosts under `.invalid`.

    RFC 2606 reserves `.invalid`. Our own canary sites are there, and their verdicts measure errors, so no hit may look
    like one.
    """
    normal = normalise(url)
    if host_of(normal).rpartition(".")[2] == "invalid":
        raise UnusableUrl(f"no site can be under .invalid, which is reserved (RFC 2606): {url[:200]!r}")
    return normal


def host_of(url: str) -> str:
    """Host name of a normalised URL (IPv6 in brackets), without the port."""
    authority = url.split("/", 3)[2]
    if authority.endswith("]"):
        return authority
    return authority.rpartition(":")[0] or authority


def origin_of(url: str) -> str:
    """`scheme://host[:port]` of a normalised URL."""
    return "/".join(url.split("/", 3)[:3])


def port_of(url: str) -> str:
    """The port in a normalised URL, or "" for the scheme's default."""
    authority = url.split("/", 3)[2]
    return "" if authority.endswith("]") else authority.rpartition(":")[2] if ":" in authority else ""


def is_at(url: str, origin: str) -> bool:
    """Whether a normalised URL has the host and the port of an origin, with any scheme."""
    return host_of(url) == host_of(origin) and port_of(url) == port_of(origin)


def site_of(url: str) -> str:
    """The site of any URL: its host name, lower case, punycode, no port. Raises UnusableUrl."""
    return host_of(normalise(url))


def page_id(url: str) -> str:
    """The page id of any form of a URL: xxh3-128 of the normalised one. Raises UnusableUrl."""
    return page_id_of_normal(normalise(url))


def page_id_of_normal(url: str) -> str:
    """`page_id` of a normalised URL."""
    return xxhash.xxh3_128_hexdigest(url.encode())


def page_bytes(url: str) -> bytes:
    """The 16 bytes of `page_id_of_normal`."""
    return xxhash.xxh3_128_digest(url.encode())


def fetch_id(url: str, visit: int) -> str:
    """Id of one visit to a normalised URL; a visit repeated after a crash has the same id."""
    return xxhash.xxh3_128_hexdigest(f"{visit}\n{url}".encode())


def is_skipped(url: str) -> bool:
    """Whether a discovered URL (normalised) is not worth a request.

    These are indexes, searches, logins, feeds, media, and crawler traps: session ids, calendars, repeating paths.
    """
    path, _, query = url.split("/", 3)[3].lower().partition("?")
    parts = path.split("/")
    stem, _, ending = parts[-1].rpartition(".")
    if len(parts) == 1 and not query and (stem or ending) in ("", "index"):
        return True
    if stem and ending in _SKIPPED_ENDINGS:
        return True
    if not _SKIPPED_PARTS.isdisjoint(parts) or stem in _SKIPPED_PARTS:
        return True
    if query:
        for parameter in query.split("&"):
            if parameter.partition("=")[0] in _SKIPPED_QUERIES:
                return True
    if (";" in path or "(" in path) and _SESSION.search("/" + path):
        return True
    repeats = max(map(parts.count, set(filter(None, parts))), default=0) if len(parts) > _REPEATS_CAP + 1 else 0
    if len(parts) > _DEPTH_CAP or repeats > _REPEATS_CAP:  # as wrongly relative links cause
        return True
    if parts[-1].isdigit() or not parts[-1]:
        return _ARCHIVE.fullmatch(path) is not None or _PAGED.search("/" + path) is not None
    return False


def twin_of(host: str) -> str:
    """The same name with `www.`, or without it."""
    return host[4:] if host.startswith("www.") else f"www.{host}"
