"""The records on the topics: msgspec structs packed as msgpack arrays, the schema version first.

Fields are appended with defaults and never reordered, so an older record reads as a newer one with defaults; a record
of a newer schema is refused by name (`SchemaTooNew`). Times are integer milliseconds UTC. `site` is the host name.
"""

from __future__ import annotations

from functools import cache
from typing import ClassVar, TypeVar

import msgspec

from stream.log.contract import Message
from stream.log.errors import BadRecord, SchemaTooNew
from stream.schema import topics
from stream.schema.dates import PageDates
from stream.schema.vocabulary import FetchOutcome, SiteClass


class Record(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """The fields of all records. `v` is the schema version of the writer, `VERSION` the newest that this code reads."""

    VERSION: ClassVar[int] = 1

    v: int = 1
    id: str
    site: str


class Hit(Record, frozen=True, kw_only=True):
    """One search result. `id` digests (source, query_id, engine, rank, url, fetched_at)."""

    url: str
    query_id: str = ""
    query: str = ""
    source: str = "file"
    engine: str = ""
    rank: int = 0  # 1 = first; 0 = unknown
    result_page: int = 0
    title: str = ""
    snippet: str = ""
    fetched_at: int = 0
    imported: bool = False  # its page came from an archive: the crawler skips it


class Page(Record, frozen=True, kw_only=True):
    """One fetched or refused URL. `id` is the fetch id: digest of (url, visit), stable across crashes."""

    page_id: str  # digest of the URL; the same on every visit
    url: str
    visit: int = 1
    outcome: str = FetchOutcome.FETCHED.value
    reason: str = ""  # why not fetched: challenge, soft_404, robots, private_address, http_404, timeout, …
    final_url: str = ""
    status: int = 0  # HTTP; 0 = no answer
    headers: dict[str, str] = {}  # content-type, last-modified, etag, x-robots-tag, cf-mitigated, …
    content_type: str = ""
    encoding: str = ""  # the decided charset
    body: bytes = b""  # zstd of the decoded (inflated) bytes as sent; of what is no page too
    body_bytes: int = 0  # before zstd
    truncated: bool = False
    fetched_at: int = 0
    duration_ms: int = 0
    found_by: str = "hit"  # hit | sitemap | link | import
    opt_out: list[str] = []  # opt-out signals seen on the page
    hits: list[str] = []  # ids of the hits with this URL
    address: str = ""  # IP address that answered; "" = none, or unknown
    first_at: int = 0  # fetch time of the first crawled page of the site; 0 = it is not crawled


class Segments(msgspec.Struct, array_like=True, frozen=True):
    """The segments of one kind of a page, without lines of earlier pages of its site. See `filters.segments`."""

    kind: str  # article | post | comment | teaser | list
    path: str = ""  # of the records: tag and class of their parent and of themselves; "" = of the main text
    texts: list[str] = []  # of each record; that of an article is the main text
    without: bytes = b""  # marks the lines of the main text that are not of the article
    words: int = 0
    language: str | None = None
    language_probability: float | None = None
    repetition: float | None = None  # share of characters in repeated sequences of 5 words


class Features(Record, frozen=True, kw_only=True):
    """The measures of a page, without a decision. `id` is the fetch id."""

    page_id: str
    url: str
    epoch: str  # feature_epoch
    extract_path: str = ""  # recall | precision | fallback | plain | none
    extract_error: str = ""  # "" when a main text was found
    text: str = ""  # main text
    text_digest: str = ""  # xxh3_128 hex of the main text's UTF-8
    measures: dict[str, float | str | None] = {}  # None = unknown
    blocks: bytes = b""  # packed block table, see filters.extraction.blocks
    fetched_at: int = 0
    found_by: str = "hit"
    measured_at: int = 0
    quality: dict[str, list[float | None]] = {}  # text -> values in the order of filters.quality.measures.MEASURES
    first_at: int = 0  # as in Page
    structure: list[float | None] = []  # in the order of filters.structure.names.MEASURES; empty = not parsed
    template_lines: bytes = b""  # marks lines of `text`, see filters.duplicates.lines.pack_marks
    segments: list[Segments] | None = None  # None = of an older epoch
    dates: PageDates | None = None  # None = not parsed, or of an older epoch
    signals: list[str] | None = None  # see `stream.schema.signals`, sorted; None as of dates


class RuleOutcome(msgspec.Struct, array_like=True, frozen=True):
    """One rule of a verdict. `outcome` is pass, fail or n/a (the measure is unknown)."""

    name: str
    value: float | str | None
    op: str
    threshold: float | str | list[str] | None
    outcome: str


class Verdict(Record, frozen=True, kw_only=True):
    """The verdict of a ruleset on a page. `id` is the fetch id."""

    page_id: str
    url: str
    verdict: str  # PageClass
    first_failed: str = ""
    failed: list[str] = []
    rules: list[RuleOutcome] = []
    ruleset: str = ""
    digest: str = ""  # of the ruleset
    epoch: str = ""
    extract_path: str = ""
    text_digest: str = ""  # of the scored text, see the ruleset's `scores`
    fetched_at: int = 0
    judged_at: int = 0
    run: str = "live"
    first_at: int = 0  # as in Page
    # Both follow from `dates`, which TALLY would take long to decode
    published: str = ""  # trusted day of publication, such as 2021-05-01; "" = none
    age: str = ""  # PageAge
    dates: PageDates | None = None  # as in Features
    signals: list[str] = []  # of the page, as in Features
    needs_script: bool = False  # it asks for JavaScript, and has no text without it


class ScoreRequest(Record, frozen=True, kw_only=True):
    """A request to score an article's text. `id` is the fetch id."""

    page_id: str
    url: str
    text_digest: str
    text: str
    fetched_at: int = 0
    run: str = "live"
    detector: str = ""  # the wanted identity; "" = all detectors of SCORE


class Score(Record, frozen=True, kw_only=True):
    """A detector's score of a text. `id` = text digest + ":" + detector identity; flag is None if it abstains."""

    page_id: str
    fetch_id: str
    text_digest: str
    detector: str  # identity; never pooled with another's
    score: float | None = None
    p_llm: float | None = None
    flag: bool | None = None
    abstain: str = ""  # the reason; "" = not abstained
    tokens: int = 0
    fetched_at: int = 0
    scored_at: int = 0
    windows: int = 0  # that the detector read, see TextScore; 0 = one without windows, or an older record
    windows_flagged: int | None = None
    windows_spread: float | None = None

    @property
    def flagged_windows(self) -> float | None:
        """Share of the windows with a flag."""
        return None if self.windows_flagged is None or not self.windows else self.windows_flagged / self.windows


class SiteState(Record, frozen=True, kw_only=True):
    """The site verdict of a term and its evidence: the newest term on `sites`, earlier ones on `sites.terms`.

    `id` is the site. Rows of earlier terms omit the data from search results.
    """

    verdict: str = SiteClass.UNCLASSIFIABLE.value
    detector: str = ""
    digest: str = ""  # of the ruleset
    ruleset: str = ""
    pages: int = 0  # pages with features
    articles: int = 0
    scored: int = 0  # articles with a score
    abstained: int = 0
    flagged: int = 0
    pages_used: int = 0  # scores used for the decision
    llr: float = 0.0  # log-likelihood ratio, nats; of the method deciles the margin
    dropped_by: dict[str, int] = {}  # first failed rule -> pages
    sources: list[str] = []
    queries: list[str] = []
    best_rank: int = 0
    hits: int = 0
    updated_at: int = 0
    run: str = "live"
    method: str = "sprt"  # method of the verdict: sprt | deciles
    mixed: bool = False  # two clear groups of scores: part of the site looks written by a model, part does not
    decided_at: int = 0  # fetch time of the page whose score decided; 0 = not decided
    days: list[int] = []  # days (since 1970, UTC) with a hit of the site, sorted; the newest MAX_DAYS of them
    method_digest: str = ""  # of the method's parameters and its closing rule, 8 hex; "" = an older row
    term: int = 0  # counted from the site's first page
    term_start: int = 0  # ms; 0 = an older row, or a site that is not crawled: its term has no end
    term_end: int = 0
    epoch: str = ""  # feature epoch of its pages; "" = an older row, or no page
    former: SiteState | None = None  # the row of the term before, while it has a verdict and this row has none
    through_segments: int = 0  # scored articles whose evidence is of their segments
    control_scored: int = 0  # of the scored articles, the control pages: see `stream.schema.page_age`
    control_flagged: int = 0
    declared_scored: int = 0  # those declared older without a day of change
    declared_flagged: int = 0
    before_scored: int = 0  # texts of before ChatGPT and since, by trusted days: see `scoring.sites.turn`
    before_flagged: int = 0
    since_scored: int = 0
    since_flagged: int = 0
    turn_p: float | None = None  # of its test of a change; None: too few texts, or the flags did not change
    quarters: dict[str, list[int]] = {}  # quarter of publication, such as 2021-Q3 -> scored and flagged texts
    signals: dict[str, int] = {}  # signal -> pages with it, sorted; see `stream.schema.signals`
    needs_script: int = 0  # pages that ask for JavaScript, and have no text without it


class Template(Record, frozen=True, kw_only=True):
    """A template that a page of the site was the first to have. `id` is the page's measure `template_id`."""

    url: str  # of that page
    sketch: bytes  # see filters.structure.tag_paths


class Sitemaps(Record, frozen=True, kw_only=True):
    """What the sitemaps of a site list, as last read. `id` is the site. A lower bound: some files may be unread."""

    urls: int  # on the site's own host and port, in the files that were read; two files may list the same
    files_read: int
    files_listed: int  # known, those that were read included
    months: dict[str, int] = {}  # "2024-05" -> URLs whose `lastmod` is in this month
    read_at: int = 0


class AdsTxt(Record, frozen=True, kw_only=True):
    """What the ads.txt of a site states of its owner, as last read; nothing if it has none. `id` is the site."""

    owner_domain: str = ""  # a registrable domain; "" = not stated
    google_ids: list[str] = []  # its own accounts of AdSense and Ad Manager, such as pub-1234567890123456; sorted
    read_at: int = 0


class RatePoint(Record, frozen=True, kw_only=True):
    """One point of a series: the rate of a group of sites at the time `at`. `id` names series and time; no site."""

    at: int  # ms, start of its interval
    by: str = ""  # "" = all sites; source | query | rank | week | …
    group: str = ""
    rate: float | None = None  # by site verdicts alone: the judged share
    low: float | None = None
    high: float | None = None
    llm: int = 0
    human: int = 0
    undecided: int = 0
    unclassifiable: int = 0
    mixed: int = 0
    confidence: float = 0.95
    method: str = ""  # of the judged share: corrected | uncorrected | …
    ruleset: str = ""
    digest: str = ""  # of the ruleset
    detector: str = ""  # identity
    run: str = "live"
    site_method: str = ""  # of the site verdicts: sprt | deciles
    site_method_digest: str = ""  # of the site method's parameters
    share: float | None = None  # the direct estimate; older points have none
    share_low: float | None = None  # valid at every look; the other pair is below
    share_high: float | None = None
    share_method: str = ""  # direct | ppi | too few sites | too wide | no scored articles
    scored_sites: int = 0
    answer: bytes = b""  # unused
    share_low_once: float | None = None  # valid at a time fixed in advance; older points have none
    share_high_once: float | None = None
    epoch: str = ""  # feature epoch of the live run at this time; older points have none


class RateAnswer(Record, frozen=True, kw_only=True):
    """The rates of a large log at one time, on the topic of points: its `id`, and its key, begin with ANSWER_KEY."""

    at: int  # ms
    rates: bytes  # JSON


ANSWER_KEY = "answer "


class Decision(Record, frozen=True, kw_only=True):
    """TALLY to CRAWL: this site is decided, or has enough articles; stop. Or: a new term began; measure it again.

    `id` is the site, so that the newest decision replaces the others.
    """

    stop: bool
    reason: str
    decided_at: int = 0
    term: int = 0  # of the site: a stop for an earlier term than the crawl's does not count
    first_at: int = 0  # as in Page


R = TypeVar("R", bound=Record)

_encoder = msgspec.msgpack.Encoder()
_decoder_of = cache(msgspec.msgpack.Decoder)


def encode(record: Record) -> bytes:
    """The bytes of a record on its topic."""
    return _encoder.encode(record)


def decode(kind: type[R], value: bytes) -> R:
    """Decode a record of `kind`, also of an older schema. Raises SchemaTooNew or BadRecord."""
    try:
        record: R = _decoder_of(kind).decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        version = _version_of(value)
        if version is not None and version > kind.VERSION:
            raise _too_new(kind, version) from error
        raise BadRecord(f"not a {_name_of(kind)} record: {error}") from error
    if record.v > kind.VERSION:
        raise _too_new(kind, record.v)
    return record


_KINDS: dict[str, type[Record]] = {
    topics.HITS: Hit,
    topics.PAGES: Page,
    topics.FEATURES: Features,
    topics.VERDICTS: Verdict,
    topics.SCORE_REQUESTS: ScoreRequest,
    topics.SCORES: Score,
    topics.SITES: SiteState,
    topics.RATES: RatePoint,
    topics.DECISIONS: Decision,
    topics.TEMPLATES: Template,
    topics.SITEMAPS: Sitemaps,
    topics.ADS_TXT: AdsTxt,
}


def kind_of(topic: str) -> type[Record] | None:
    """The record type of a topic, also of a run's own (`verdicts.NAME`); None if it has none of these."""
    return next((_KINDS[name] for name in (topic, topic.rpartition(".")[0]) if name in _KINDS), None)


def _name_of(kind: type[Record]) -> str:
    """Its name, or of what a topic has if it is a view of that."""
    return next((base for base in kind.__mro__ if base in _KINDS.values()), kind).__name__.lstrip("_")


def read(kind: type[R], message: Message) -> R:
    """Decode the record of a message. Raises as `decode`, and BadRecord for damaged bytes."""
    if message.damage:
        raise BadRecord(message.damage)
    return decode(kind, message.value or b"")


def _version_of(value: bytes) -> int | None:
    try:
        fields = msgspec.msgpack.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return fields[0] if isinstance(fields, list) and fields and isinstance(fields[0], int) else None


def _too_new(kind: type[Record], version: int) -> SchemaTooNew:
    return SchemaTooNew(f"{_name_of(kind)} record has schema {version}, this farmwatch reads up to {kind.VERSION}")
