"""What a source of hits is: a query becomes a request, an answer becomes results. Neither knows of HTTP or the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable
from urllib.parse import urlsplit

from crawler.errors import CrawlError

if TYPE_CHECKING:
    from crawler.warc.pages import ArchivedPage  # it brings the WARC reader along


class SourceError(CrawlError):
    """A source of hits gave no results. `wait_s` is how long it asked to be left alone; None = it did not say."""

    def __init__(self, said: str, wait_s: float | None = None) -> None:
        """Say what happened, where, and how to mend it."""
        super().__init__(said)
        self.wait_s = wait_s


class MissingKey(SourceError):
    """A source needs a key and has none. The operator sets the variable or the file that the message names."""


class SourceBusy(SourceError):
    """The source is overloaded, rations its answers (429, 5xx), or cannot be reached. The query is asked again."""

    retriable = True


class BadAnswer(SourceError):
    """An answer that has not the documented shape. It is asked for again; the operator checks the URL if it stays."""

    retriable = True


class SourceRefused(SourceError):
    """The source refuses everything of us: a wrong key, a format that is turned off. The operator does as it says."""


class QueryRefused(SourceError):
    """The source refuses this one query, which is passed over. The operator mends the query."""


class QuotaSpent(SourceError):
    """No request is left in this day or month. The operator waits, or raises the quota of the plan and the setting."""


@dataclass(frozen=True, slots=True)
class Query:
    """What is searched for. `language` and `country` are used by the sources that can be asked for them."""

    id: str
    text: str
    language: str = ""
    country: str = ""


@dataclass(frozen=True, slots=True)
class SourceRequest:
    """A GET as a source wants it. What is secret stands apart, so that `shown` can never hold it."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    secret_headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    secret_params: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def shown(self) -> str:
        """The URL as it may be printed: without its query string."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}{parts.path}"


@dataclass(frozen=True, slots=True)
class SourceAnswer:
    """What came back, whatever its status. Names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    at_s: float  # when it came, Unix time


@dataclass(frozen=True, slots=True)
class ArchivePlace:
    """Where in a web archive a page lies: the file, and the bytes of its record."""

    file: str
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class SearchResult:
    """One result. `rank` is its place on this result page, from 1."""

    url: str
    rank: int
    title: str = ""
    snippet: str = ""
    engine: str = ""
    place: ArchivePlace | None = None  # of a page that is imported from an archive


@dataclass(frozen=True, slots=True)
class Results:
    """One result page. `places` counts the items on it, bad ones included, so that ranks go on behind it."""

    found: Sequence[SearchResult]
    places: int
    bad: Sequence[str] = ()  # why items were passed over
    more: bool = False  # the source may have another page
    unresponsive: Mapping[str, str] = field(default_factory=dict)  # engine -> why it did not answer
    left: int | None = None  # requests that the source says are left
    reset_s: float = 0.0  # seconds until they are renewed


class Source(Protocol):
    """A search engine, or what stands for one. Pure: no network, no clock."""

    @property
    def name(self) -> str:
        """Its name in hits, settings and metrics."""

    @property
    def pages_cap(self) -> int:
        """Result pages that it gives of a query, at most."""

    @property
    def at_once(self) -> int:
        """Queries that may be under way at the same time."""

    @property
    def key_mark(self) -> str:
        """Which key it asks with, see `crawler.sources.keys.key_mark`; "" for none."""

    def request(self, query: Query, page: int) -> SourceRequest:
        """The request for a result page, from 1."""

    def results(self, answer: SourceAnswer, page: int) -> Results:
        """What an answer says. Raises SourceError: what its status or its words mean for this source."""


@runtime_checkable
class Archive(Source, Protocol):
    """A source whose results are pages of an archive, which are read from there."""

    def record_request(self, place: ArchivePlace) -> SourceRequest:
        """The request for the bytes of a record."""

    def record(self, answer: SourceAnswer, place: ArchivePlace) -> ArchivedPage | str:
        """The page of a record, or in a word why there is none. Raises SourceError where it could not be had."""
