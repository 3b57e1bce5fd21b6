"""The tables of the console's index, and how a record changes them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter

from msgspec.json import encode as to_json

from farmwatch.explain.page_records import FeaturesHead
from farmwatch.share.page_lines import PageHead, VerdictHead
from farmwatch.upkeep.console_files import INDEX_VERSION, SITE_TABLES
from stream.log.contract import Message
from stream.processing.topic_reader import records_of, rows_of
from stream.schema.records import Score, Sitemaps, SiteState
from stream.schema.runs import RunNames
from stream.schema.topics import PAGES, SCORES, SITEMAPS

Readers = Mapping[str, Callable[[sqlite3.Connection, Sequence[Message]], None]]  # by topic

NOT_CANARY_SITE = "substr(site, -8) <> '.invalid'"  # canary sites have names that no real site can have
_SITE_SOURCES = """INSERT INTO site_source
        SELECT DISTINCT value, new.id FROM site, json_each(sources) WHERE site.id = new.id AND NOT_CANARY"""
SORTED = ("verdict", "hits", "pages", "articles", "scored", "flagged", "updated_at")  # columns with an order of sites
_ORDERS = "CREATE INDEX site_by_site ON site (site, state, articles) WHERE NOT_CANARY;" + "".join(
    f"CREATE INDEX site_by_{column} ON site ({column}, site, state, articles) WHERE NOT_CANARY;" for column in SORTED
)
# All rows of a site stand together: they are written, read and forgotten together.
_TABLES = (
    """
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE position (topic TEXT, partition INTEGER, next INTEGER NOT NULL, PRIMARY KEY (topic, partition))
    WITHOUT ROWID;
CREATE TABLE site (id INTEGER PRIMARY KEY, site TEXT NOT NULL UNIQUE, verdict TEXT NOT NULL, hits INTEGER NOT NULL,
    pages INTEGER NOT NULL, articles INTEGER NOT NULL, scored INTEGER NOT NULL, flagged INTEGER NOT NULL,
    updated_at INTEGER NOT NULL, sources TEXT NOT NULL, row BLOB NOT NULL,
    state TEXT AS (CASE WHEN verdict IN ('llm', 'human') THEN verdict WHEN scored THEN 'open' ELSE 'not judged' END));
SITE_ORDERS
CREATE VIRTUAL TABLE name USING fts5 (site, content = 'site', content_rowid = 'id', tokenize = 'trigram');
CREATE TABLE site_source (source TEXT, id INTEGER, PRIMARY KEY (source, id)) WITHOUT ROWID;
CREATE INDEX source_by_site ON site_source (id);
CREATE TRIGGER site_comes AFTER INSERT ON site BEGIN
    INSERT INTO name (rowid, site) VALUES (new.id, new.site);
    SITE_SOURCES;
END;
CREATE TRIGGER site_changes AFTER UPDATE ON site WHEN old.sources <> new.sources BEGIN
    DELETE FROM site_source WHERE id = new.id;
    SITE_SOURCES;
END;
CREATE TRIGGER site_goes AFTER DELETE ON site BEGIN
    INSERT INTO name (name, rowid, site) VALUES ('delete', old.id, old.site);
    DELETE FROM site_source WHERE id = old.id;
END;
CREATE TABLE page (site TEXT, page_id TEXT, url TEXT NOT NULL, partition INTEGER NOT NULL,
    fetched_at INTEGER NOT NULL DEFAULT 0, page_at INTEGER, outcome TEXT NOT NULL DEFAULT '',
    reason TEXT NOT NULL DEFAULT '', found_by TEXT NOT NULL DEFAULT '', verdict TEXT NOT NULL DEFAULT '',
    first_failed TEXT NOT NULL DEFAULT '', failed TEXT, dates TEXT, text_digest TEXT NOT NULL DEFAULT '',
    kind TEXT AS (CASE WHEN verdict <> '' THEN verdict ELSE outcome END),
    why TEXT AS (CASE WHEN verdict <> '' THEN first_failed ELSE reason END),
    PRIMARY KEY (site, page_id)) WITHOUT ROWID;
CREATE INDEX page_by_kind ON page (kind, why);
CREATE TABLE outcome (kind TEXT, why TEXT, pages INTEGER NOT NULL, PRIMARY KEY (kind, why)) WITHOUT ROWID;
CREATE TRIGGER page_comes AFTER INSERT ON page WHEN NOT_CANARY_NEW BEGIN
    INSERT INTO outcome VALUES (new.kind, new.why, 1) ON CONFLICT DO UPDATE SET pages = pages + 1;
END;
CREATE TRIGGER page_changes AFTER UPDATE ON page
    WHEN (old.kind, old.why) <> (new.kind, new.why) AND NOT_CANARY_NEW BEGIN
    UPDATE outcome SET pages = pages - 1 WHERE (kind, why) = (old.kind, old.why);
    INSERT INTO outcome VALUES (new.kind, new.why, 1) ON CONFLICT DO UPDATE SET pages = pages + 1;
END;
CREATE TRIGGER page_goes AFTER DELETE ON page WHEN NOT_CANARY_OLD BEGIN
    UPDATE outcome SET pages = pages - 1 WHERE (kind, why) = (old.kind, old.why);
END;
CREATE TABLE visit (site TEXT, at INTEGER, page_id TEXT NOT NULL, epoch TEXT NOT NULL, error TEXT NOT NULL,
    PRIMARY KEY (site, at)) WITHOUT ROWID;
CREATE TABLE judged (site TEXT, page_id TEXT, at INTEGER, PRIMARY KEY (site, page_id, at)) WITHOUT ROWID;
CREATE TABLE score (site TEXT, text_digest TEXT, detector TEXT, at INTEGER NOT NULL, score REAL, p_llm REAL,
    flag INTEGER, abstain TEXT NOT NULL, flagged_windows REAL, PRIMARY KEY (site, text_digest, detector)) WITHOUT ROWID;
CREATE TABLE sitemaps (site TEXT PRIMARY KEY, row BLOB NOT NULL) WITHOUT ROWID;
""".replace("SITE_ORDERS", _ORDERS)
    .replace("SITE_SOURCES", _SITE_SOURCES)
    .replace("NOT_CANARY_NEW", NOT_CANARY_SITE.replace("site", "new.site"))
    .replace("NOT_CANARY_OLD", NOT_CANARY_SITE.replace("site", "old.site"))
    .replace("NOT_CANARY", NOT_CANARY_SITE)
)
_DROPS = "".join(
    f"DROP TABLE IF EXISTS {table};" for table in ("about", "position", "outcome", "name", "site_source", *SITE_TABLES)
)
MAKE = f"BEGIN; {_DROPS} {_TABLES} PRAGMA user_version = {INDEX_VERSION}; COMMIT;"


def readers(names: RunNames) -> Readers:
    """Topic of the live run -> what takes its records."""
    return {
        names.sites: _take_sites,
        PAGES: _take_pages,
        names.features: _take_features,
        names.verdicts: _take_verdicts,
        SCORES: _take_scores,
        SITEMAPS: _take_sitemaps,
    }


def _take_sites(db: sqlite3.Connection, messages: Sequence[Message]) -> None:
    rows = {message.key: (message, row) for message, row in rows_of(SiteState, messages)}  # the newest of each
    gone = [[key.decode(errors="replace")] for key, (_, row) in rows.items() if row is None]
    db.executemany("DELETE FROM site WHERE site = ?", gone)
    values = (
        (row.site, *(getattr(row, name) for name in SORTED), to_json(row.sources).decode(), message.value)
        for message, row in rows.values()
        if row is not None
    )
    names = (*SORTED, "sources", "row")
    query = f"""
        INSERT INTO site (site, {", ".join(names)}) VALUES (?{", ?" * len(names)})
        ON CONFLICT DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in names)}"""
    db.executemany(query, values)


def _take_pages(db: sqlite3.Connection, messages: Sequence[Message]) -> None:
    """A page that did not change on a later visit keeps the record with its body."""
    query = """
        INSERT INTO page (site, page_id, url, partition, fetched_at, page_at, outcome, reason, found_by)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET fetched_at = excluded.fetched_at,
            page_at = excluded.page_at, outcome = excluded.outcome, reason = excluded.reason,
            found_by = excluded.found_by WHERE excluded.outcome <> 'unchanged'"""
    values = (
        (p.site, p.page_id, p.url, message.partition, p.fetched_at, message.offset, p.outcome, p.reason, p.found_by)
        for message, p in records_of(PageHead, messages)
    )
    db.executemany(query, values)


def _take_features(db: sqlite3.Connection, messages: Sequence[Message]) -> None:
    values = (
        (head.site, message.offset, head.page_id, head.epoch, head.extract_error)
        for message, head in records_of(FeaturesHead, messages)
    )
    db.executemany("INSERT OR REPLACE INTO visit VALUES (?, ?, ?, ?, ?)", values)


def _take_verdicts(db: sqlite3.Connection, messages: Sequence[Message]) -> None:
    query = """
        INSERT INTO page (site, page_id, url, fetched_at, verdict, first_failed, text_digest, partition, failed, dates)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET verdict = excluded.verdict,
            first_failed = excluded.first_failed, failed = excluded.failed, text_digest = excluded.text_digest,
            dates = excluded.dates"""
    verdicts = list(records_of(VerdictHead, messages))
    of = attrgetter("site", "page_id", "url", "fetched_at", "verdict", "first_failed", "text_digest")
    values = (
        (*of(verdict), message.partition, to_json(verdict.failed), to_json(verdict.dates))
        for message, verdict in verdicts
    )
    db.executemany(query, values)
    judged = ((verdict.site, verdict.page_id, message.offset) for message, verdict in verdicts)
    db.executemany("INSERT OR REPLACE INTO judged VALUES (?, ?, ?)", judged)


def _take_sitemaps(db: sqlite3.Connection, messages: Sequence[Message]) -> None:
    rows = ((row.site, message.value) for message, row in records_of(Sitemaps, messages))
    db.executemany("INSERT OR REPLACE INTO sitemaps VALUES (?, ?)", rows)


def _take_scores(db: sqlite3.Connection, messages: Sequence[Message]) -> None:
    values = (
        (s.site, s.text_digest, s.detector, message.offset, s.score, s.p_llm, s.flag, s.abstain, s.flagged_windows)
        for message, s in records_of(Score, messages)
    )
    db.executemany("INSERT OR REPLACE INTO score VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
