"""Settings of the sources of hits: one table [search.<name>] each. They name the place of a key, never the key."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar
from urllib.parse import parse_qsl, urlsplit

import msgspec

from stream.text import ranges

_VARIABLE = re.compile(r"(?=.{1,12}\Z|.*_)[A-Z_][A-Z0-9_]{0,63}")  # a long word without `_` might be a key
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_SECRETS = frozenset(
    ["apikey", "appid", "appkey", "auth", "authkey", "authorization", "bearer", "cookie", "credential", "credentials"]
) | {"key", "passphrase", "passwd", "password", "pwd", "secret", "sig", "signature", "token"}
_FIELDS = ("query", "page", "offset", "count", "language", "country")
_ONLY_FIELDS = re.compile(rf"(\{{({'|'.join(_FIELDS)})\}})+")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}")  # a token of RFC 9110 section 5.6.2
_CRAWL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

RESERVED = frozenset({"file", "warc", "json_http", "all", "other"})  # no names of sources

Count = Annotated[int, msgspec.Meta(ge=1, le=1000)]
Hundred = Annotated[int, msgspec.Meta(ge=1, le=100)]
Ten = Annotated[int, msgspec.Meta(ge=1, le=10)]


def is_secret_name(name: str) -> bool:
    """Whether a header or parameter of that name holds a secret, by its words (`api_key`, `X-Auth`)."""
    return not _SECRETS.isdisjoint(word.lower() for word in _WORD.findall(name))


def refuse_url(url: str) -> None:
    """Raises ValueError for a URL that is not http(s) or holds a secret; the message repeats none of it."""
    if not url:
        return
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not url.isprintable() or "{" in parts.netloc:
        raise ValueError("url is no http or https URL with a host")
    if "@" in parts.netloc:
        raise ValueError("url holds a user or a password: a secret goes into key_env or key_file")
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    if any(is_secret_name(name) and not _ONLY_FIELDS.fullmatch(value) for name, value in pairs):
        raise ValueError("url holds a key in its query string: it goes into key_env or key_file")


class SourceSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Settings of every source of hits."""

    url: str = ""
    """Address of the API."""
    pages: Hundred = 1
    """Result pages per query; each is a request."""
    rate: Annotated[float, msgspec.Meta(gt=0, le=100)] = 1.0
    """Requests per second, at most."""
    quota_day: ClassVar[int] = 0
    quota_month: ClassVar[int] = 0

    def __post_init__(self) -> None:
        refuse_url(self.url)


class KeyedSettings(SourceSettings, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Settings of a source that may take a key."""

    quota_day: ranges.Count = 0  # type: ignore[misc]  # a source without a key has none
    """Requests per day (UTC), at most; 0: no such limit."""
    quota_month: ranges.Count = 0  # type: ignore[misc]
    """Requests per calendar month (UTC), at most; 0: no such limit."""
    key_env: ClassVar[str] = ""  # environment variable that holds the key
    key_file: str = ""
    """File that holds only the key; it takes precedence over the environment variable."""


class SearxngSettings(KeyedSettings, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A SearXNG instance: `url` is its address, such as http://127.0.0.1:8080."""

    engines: list[str] = []
    """Engines to query; empty: those of the instance."""
    categories: list[str] = []
    """Categories to query; empty: those of the instance."""


class BraveSettings(KeyedSettings, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The Brave Web Search API."""

    pages: Ten = 1
    """Result pages per query; each is a request."""

    url: str = "https://api.search.brave.com/res/v1/web/search"
    """Address of the API."""
    key_env: ClassVar[str] = "BRAVE_API_KEY"
    count: ClassVar[int] = 20  # results per page: the most of the API


class CommonCrawlSettings(SourceSettings, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Common Crawl: lists the pages of a site in one crawl and imports them; a query is a host name."""

    url: str = "https://index.commoncrawl.org"
    """Address of the index."""
    data_url: ClassVar[str] = "https://data.commoncrawl.org"  # of the records
    crawl: str = ""
    """The crawl, such as CC-MAIN-2026-43."""
    count: Count = 40
    """Pages imported per page of the index."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.crawl and not _CRAWL.fullmatch(self.crawl):
            raise ValueError(f"crawl is {self.crawl[:40]!r}: write its name, such as CC-MAIN-2026-43")


class JsonHttpSettings(KeyedSettings, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Any search that answers a GET with JSON: [search.json_http.NAME]. Paths are dotted names or positions."""

    items: str = "results"
    """Path to the list of results."""
    error: str = ""
    """Path to an error or a status that comes with HTTP status 200: anything there but OK refuses everything."""
    item_url: str = "url"
    """Path to the address, from a result."""
    title: str = "title"
    """Path to the title, from a result."""
    snippet: str = "snippet"
    """Path to the snippet, from a result."""
    rank: str = ""
    """Path to the rank on the page; empty: the position in the list."""
    first_page: Annotated[int, msgspec.Meta(ge=0, le=1)] = 1
    """Value of {page} for the first result page."""
    count: Count = 10
    """Value of {count}."""
    key_env: str = ""  # type: ignore[misc]  # the other sources have a variable each
    """Name of the environment variable that holds the key; never the key itself."""
    key_header: str = ""
    """Header that carries the key, such as X-Api-Key."""
    key_prefix: str = ""
    """Put before the key in that header, such as `Bearer `."""
    key_param: str = ""
    """Parameter of the URL that carries the key, if no header does."""
    headers: dict[str, str] = {}
    """Further headers; no secrets."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.url and "{query}" not in self.url:
            raise ValueError("url has no {query}: it is where the query goes")
        if set(re.findall(r"\{([^{}]*)\}", self.url)) - {*_FIELDS}:
            raise ValueError(f"url may hold {', '.join(f'{{{name}}}' for name in _FIELDS)}, and no other braces")
        if self.pages > 1 and not self.can_page:
            raise ValueError(f"pages is {self.pages}, and url has neither {{page}} nor {{offset}}: it gives one page")
        for name, value in self.headers.items():
            if is_secret_name(name):
                raise ValueError(f"headers holds {name[:40]!r}: a key goes into key_env or key_file, with key_header")
            if not _HEADER.fullmatch(name) or not value.isprintable():
                raise ValueError(f"headers: {name[:40]!r} is no header")
        for name in ("key_header", "key_param"):
            if getattr(self, name) and not _HEADER.fullmatch(getattr(self, name)):
                raise ValueError(f"{name} is no name of a header or a parameter")
        if (self.key_env or self.key_file) and not (self.key_header or self.key_param):
            raise ValueError("a key is named and not how it is sent: set key_header or key_param")
        if self.key_env and not _VARIABLE.fullmatch(self.key_env):
            raise ValueError(
                "key_env is no name of an environment variable (capitals, digits and _, such as BRAVE_API_KEY); the key"
                " itself does not belong here"
            )

    @property
    def can_page(self) -> bool:
        return "{page}" in self.url or "{offset}" in self.url


class SearchSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The sources of hits that a search may ask; see docs/reference/sources.md."""

    searxng: SearxngSettings = SearxngSettings()
    brave: BraveSettings = BraveSettings()
    commoncrawl: CommonCrawlSettings = CommonCrawlSettings()
    deepen_above: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1.0
    """Where LLM sites hold a larger share of a query's first ten results, the next round of `hits search --every` asks
    for twice as many result pages of it; 1: never."""
    json_http: dict[str, JsonHttpSettings] = {}
    """Name of your own -> a table [search.json_http.NAME]."""

    def __post_init__(self) -> None:
        for name in self.json_http:
            if name in self.__struct_fields__:
                raise ValueError(f"json_http: {name} is a built-in source, its table is [search.{name}]")
            if not _NAME.fullmatch(name) or name in RESERVED:
                raise ValueError(f"json_http: {name[:40]!r} cannot be a source's name: small letters, digits, _ and -")
