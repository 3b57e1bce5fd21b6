"""The interface of a source of hits: a query becomes a request, a response becomes results. No HTTP, no log."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from crawler.errors import CrawlError


class SourceError(CrawlError):
    """A source gave no results. `wait_s` is the wait that it asked for; None = it asked for none."""

    def __init__(self, said: str, wait_s: float | None = None) -> None:
        super().__init__(said)
        self.wait_s = wait_s


class MissingKey(SourceError):
    """A source needs a key and has none. The operator sets the variable or the file that the message names."""


class SourceBusy(SourceError):
    """The source is overloaded, limits requests (429, 5xx), or is unreachable. The query is retried."""

    retriable = True


class BadAnswer(SourceError):
    """A response without the documented shape. It is retried; the operator checks the URL if that does not help."""

    retriable = True


class SourceRefused(SourceError):
    """The source refuses all requests, such as for a wrong key. The operator follows the message."""


class QueryRefused(SourceError):
    """The source refuses this query, which is skipped. The operator fixes the query."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query. Some sources use `language` and `country`."""

    id: str
    text: str
    language: str = ""
    country: str = ""


@dataclass(frozen=True, slots=True)
class SourceRequest:
    """A GET request to a source. Secrets are separate, so that `shown` never holds one."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    secret_headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    secret_params: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def shown(self) -> str:
        """The URL without its query string, for messages."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}{parts.path}"


@dataclass(frozen=True, slots=True)
class SourceAnswer:
    """A response, whatever its status. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    at_s: float  # time of its arrival, Unix


@dataclass(frozen=True, slots=True)
class ArchivePlace:
    """The place of a page in a web archive: the file, and the bytes of its record."""

    file: str
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class SearchResult:
    """One result. `rank` is its position on this result page, from 1."""

    url: str
    rank: int
    title: str = ""
    snippet: str = ""
    engine: str = ""
    place: ArchivePlace | None = None  # of an archived page


@dataclass(frozen=True, slots=True)
class Results:
    """One result page. `places` counts the items on it, bad ones included, so that ranks continue after it."""

    found: Sequence[SearchResult]
    places: int
    bad: Sequence[str] = ()  # why items were skipped
    more: bool = False  # the source may have another page
    unresponsive: Mapping[str, str] = field(default_factory=dict)  # engine -> why it did not answer
    left: int | None = None  # requests left by the source's count
    reset_s: float = 0.0  # seconds until they are renewed


class Source(ABC):
    """A search engine, or an archive. Pure: no network, no clock."""

    name: str  # in hits, settings and metrics
    pages_cap = 10  # the most result pages of a query
    at_once = 1  # the most concurrent queries
    key_is_optional = False  # it answers without a key

    def __init__(self, key: str = "") -> None:
        self._key = key
        # An identity of the key that does not reveal it: 32 bits
        self.key_mark = hashlib.sha256(key.encode()).hexdigest()[:8] if key else ""

    @abstractmethod
    def request(self, query: Query, page: int) -> SourceRequest:
        """The request for a result page, from 1. Raises QueryRefused."""

    @abstractmethod
    def results(self, answer: SourceAnswer, page: int) -> Results:
        """The results of a response. Raises SourceError."""
