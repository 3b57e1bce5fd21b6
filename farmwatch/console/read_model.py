"""An index of the log for the console: sites, pages and the offsets of their records. Rebuilt from the log at any time.

It holds no text and no HTML: a page's records are read from the log by their offsets. One thread writes, requests read.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from json import dumps
from pathlib import Path
from typing import NamedTuple

import structlog
from msgspec.json import decode as from_json

from farmwatch.console.index_tables import MAKE, NOT_CANARY_SITE, SORTED, Readers, readers
from farmwatch.console.site_filter import FEW, SORTS, Likely, SiteFilter, SiteSums, conditions_of
from farmwatch.explain.page_records import FeaturesHead
from farmwatch.share.page_lines import ListedPage
from farmwatch.upkeep.console_files import INDEX_VERSION, forget_in_index
from replay.runs.lookup import names_to_read
from stream.log.contract import Log, Message
from stream.log.private_folders import give_to_owner
from stream.schema.dates import PageDates
from stream.schema.forgotten import Forgotten, site_of_key
from stream.schema.records import Sitemaps, SiteState, decode
from stream.schema.vocabulary import KEPT

_log = structlog.get_logger()
_MANY = 10_000  # records that are read within seconds
_BATCH, _BATCH_BYTES = 2_000, 8_000_000  # records of a transaction, at most
_CACHE_KIB, _WAL_PAGES = 65_536, 16_384  # while it writes; 64 MiB each
JUDGED = "judged"  # kind of pages: two of the others
_NONE = Likely({})
_EVERY = SiteFilter()


class Located(NamedTuple):
    """Where the records of a page are."""

    site: str
    partition: int
    page_at: int | None  # offset of the record with its HTML
    visits: list[tuple[int, FeaturesHead]]  # features of the site's pages by offset
    judged: list[int]  # offsets of the page's verdicts


class ReadModel:
    """The tables in one file. `follow` is for one thread; all else may be called from any."""

    def __init__(self, path: Path) -> None:
        """Open the file, or make it. A file of another version, or a damaged one, is made anew."""
        self.left = 0  # offsets that `follow` has still to read of those that it found at its start
        self._path = path
        try:
            self._prepare()
        except sqlite3.DatabaseError:
            for end in ("", "-wal", "-shm"):
                Path(f"{path}{end}").unlink(missing_ok=True)
            self._prepare()

    def follow(self, log: Log, forgotten: Forgotten, goes_on: Callable[[], bool] = lambda: True) -> bool:
        """Read new records of the live run; True if there were any. Ends early when `goes_on` is false."""
        names = names_to_read(log)
        with closing(self._connect()) as db:
            if not db.execute("PRAGMA user_version").fetchone()[0] or _run_of(db) != "\n".join(names):
                db.executescript(MAKE)  # it is of another run, or the file was deleted
                with db:
                    db.execute("INSERT INTO about VALUES ('run', ?)", ["\n".join(names)])
                _log.info("console_rebuilds", verdicts=names.verdicts)
            forgotten.refresh()
            forget_in_index(db, forgotten)
            self.left = 0
            has_read = self._read(db, log, readers(names), forgotten, goes_on)
            self.left = 0  # markers and gaps of compaction are no records
            return has_read

    def _read(
        self, db: sqlite3.Connection, log: Log, readers: Readers, forgotten: Forgotten, goes_on: Callable[[], bool]
    ) -> bool:
        unread = list(self._unread(db, log, readers))
        self.left = max(self.left, sum(end - start for _, _, start, end in unread))
        has_read = False
        for topic, partition, start, end in unread:
            for batch in _batches(log.read(topic, partition, start, end)):
                with db:
                    readers[topic](db, [m for m in batch if not forgotten.covers(site_of_key(m.key))])
                    self._move(db, topic, partition, batch[-1].offset + 1)
                self.left = max(0, self.left - len(batch))
                has_read = True
                if not goes_on():
                    return True
            with db:
                self._move(db, topic, partition, end)  # a transaction marker may follow the last record
        return has_read

    @property
    def rebuilding(self) -> int:
        """Records that it lacks while it is rebuilt; 0 where it follows the log."""
        return self.left if self.left > _MANY else 0

    def behind(self, log: Log) -> int:
        """Offsets of the live run that `follow` has still to read."""
        names = names_to_read(log)
        with self.reading() as db:
            if _run_of(db) != "\n".join(names):
                return 1
            return sum(end - start for _, _, start, end in self._unread(db, log, readers(names)))

    def sites(
        self,
        of: SiteFilter = _EVERY,
        *,
        sort: str = "site",
        is_reversed: bool = False,
        after: str = "",
        limit: int = 50,
        likely: Likely = _NONE,
    ) -> list[SiteState]:
        """Rows of sites without canaries, after the site `after`; `likely` has the probabilities of the order p_llm.

        In the order `sort`, of all but the name the largest first, unless it is reversed.
        """
        column, down = SORTS[sort], (sort != "site") != is_reversed
        order = ", ".join(f"{name}{' DESC' if down else ''}" for name in dict.fromkeys((column, "site")))
        with self.reading() as db:
            db.create_function("p_llm", 1, likely.p_llm)
            where, values, are_few = conditions_of(db, of)
            if sort == "p_llm" and not are_few:
                ids = islice(likely.ordered(db, where, values, after, down=down), limit)
                where, values, after, are_few = ["id IN (SELECT value FROM json_each(?))"], [dumps([*ids])], "", True
            if after:  # two values use the whole index, a subquery only its first column
                key = db.execute(f"SELECT {column}, site FROM site WHERE site = ?", [after]).fetchone()
                where.append(f"({column}, site) {'<' if down else '>'} (?, ?)")
                values += key or (None, None)
            index = "NOT INDEXED" if are_few else f"INDEXED BY site_by_{column if column in SORTED else 'site'}"
            chosen = f"SELECT id FROM site {index} WHERE {' AND '.join(where)} ORDER BY {order} LIMIT ?"
            rows = db.execute(f"SELECT row FROM site WHERE id IN ({chosen}) ORDER BY {order}", [*values, limit])
            return [decode(SiteState, row) for (row,) in rows]

    def site_sums(self, of: SiteFilter) -> list[SiteSums]:
        """Of the sites by state and verdict: how many they are, and the sums of their counts."""
        sums = ", ".join(f"SUM({name})" for name in SiteSums._fields[3:])
        with self.reading() as db:
            where, values, _ = conditions_of(db, of)
            columns = f"state, verdict, COUNT(*), {sums}"
            rows = db.execute(f"SELECT {columns} FROM site WHERE {' AND '.join(where)} GROUP BY 1, 2", values)
            return [SiteSums(*row) for row in rows]

    def sources(self) -> dict[str, int]:
        """The sources of the sites by name, with their numbers of sites."""
        with self.reading() as db:
            return dict(db.execute("SELECT source, COUNT(*) FROM site_source GROUP BY source ORDER BY source"))

    def site(self, site: str) -> SiteState | None:
        """The row of a site."""
        with self.reading() as db:
            row = db.execute("SELECT row FROM site WHERE site = ?", [site]).fetchone()
        return None if row is None else decode(SiteState, row[0])

    def sitemaps(self, site: str) -> Sitemaps | None:
        """What the sitemaps of a site list."""
        with self.reading() as db:
            row = db.execute("SELECT row FROM sitemaps WHERE site = ?", [site]).fetchone()
        return None if row is None else decode(Sitemaps, row[0])

    def pages(self, site: str, detector: str, *, after: str = "", limit: int = 100) -> list[ListedPage]:
        """Pages of a site in the order of their fetch, after the page with the id `after`; scores of `detector`."""
        since = "AND (fetched_at, page_id) > (SELECT fetched_at, page_id FROM page WHERE site = ? AND page_id = ?)"
        values = [site, *([site, after] if after else [])]
        return self._pages(f"site = ? {since if after else ''}", values, "fetched_at, page_id", limit, detector)

    def pages_of_kind(
        self, kind: str, why: str | None, detector: str, *, after: tuple[str, str] = ("", ""), limit: int = 100
    ) -> list[ListedPage]:
        """Pages by site without canaries, after the site and page `after`; `kind` "" = any, JUDGED = with a verdict."""
        where, values = [NOT_CANARY_SITE, "(site, page_id) > (?, ?)"], [*after]
        if kind == JUDGED:
            where.append("verdict <> ''")
        elif kind:
            is_rare = sum(pages for other, _, pages in self.outcomes() if other == kind) <= FEW
            where.append("kind = ?" if is_rare or why is not None else "+kind = ?")  # + leaves the order of sites
            values.append(kind)
        if why is not None:
            where.append("why = ?")
            values.append(why)
        return self._pages(" AND ".join(where), values, "site, page_id", limit, detector)

    def _pages(self, where: str, values: Sequence[str], order: str, limit: int, detector: str) -> list[ListedPage]:
        chosen = f"SELECT * FROM page WHERE {where} ORDER BY {order} LIMIT ?"
        query = f"""
            SELECT page.site, url, kind AS result, why, p_llm, flag, score.score, COALESCE(abstain, '') AS abstain,
                flagged_windows, failed, dates, found_by, fetched_at, page.page_id, page.text_digest
            FROM ({chosen}) AS page LEFT JOIN score ON verdict IN ('{"', '".join(KEPT)}') AND score.site = page.site
                AND score.text_digest = page.text_digest AND score.detector = ?
            ORDER BY {", ".join(f"page.{name}" for name in order.split(", "))}"""
        with self.reading() as db:
            db.row_factory = sqlite3.Row
            rows = [dict(row) for row in db.execute(query, [*values, limit, detector])]
        for row in rows:  # SQLite has neither truths nor lists
            row["flag"] = None if row["flag"] is None else bool(row["flag"])
            row["failed"] = row["failed"] and from_json(row["failed"])
            row["dates"] = row["dates"] and from_json(row["dates"], type=PageDates | None)
        return [ListedPage(**row) for row in rows]

    def located(self, site: str, page: str) -> Located | None:
        """Where the records of a page are, by its site and id."""
        with self.reading() as db:
            page_row = db.execute(
                "SELECT partition, page_at FROM page WHERE site = ? AND page_id = ?", [site, page]
            ).fetchone()
            if page_row is None:
                return None
            partition, page_at = page_row
            visits = db.execute("SELECT at, page_id, epoch, error FROM visit WHERE site = ? ORDER BY at", [site])
            heads = [
                (at, FeaturesHead(id="", site=site, page_id=page_id, url="", epoch=epoch, extract_error=error))
                for at, page_id, epoch, error in visits
            ]
            offsets = db.execute("SELECT at FROM judged WHERE site = ? AND page_id = ? ORDER BY at", [site, page])
            judged = [at for (at,) in offsets]
        return Located(site, partition, page_at, heads, judged)

    def scores_at(self, site: str, text_digests: Collection[str]) -> list[int]:
        """Offsets of the newest scores of these texts on the site, in log order."""
        marks = ", ".join("?" * len(text_digests))
        query = f"SELECT at FROM score WHERE site = ? AND text_digest IN ({marks}) ORDER BY at"
        with self.reading() as db:
            return [at for (at,) in db.execute(query, [site, *text_digests])]

    def outcomes(self) -> list[tuple[str, str, int]]:
        """(verdict or outcome of the fetch, first failed rule or reason, pages), the most pages first."""
        query = "SELECT kind, why, pages FROM outcome WHERE pages ORDER BY 3 DESC, 1, 2"
        with self.reading() as db:
            return db.execute(query).fetchall()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection that cannot write."""
        with closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True, timeout=10)) as db:
            yield db

    def _prepare(self) -> None:
        with closing(self._connect()) as db:
            (version,) = db.execute("PRAGMA user_version").fetchone()
            if version != INDEX_VERSION:
                if version or db.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]:
                    raise sqlite3.DatabaseError("another version")
                db.executescript(MAKE)

    def _connect(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.touch(0o600)  # as the log's own files
        give_to_owner(self._path)
        db = sqlite3.connect(self._path, timeout=10)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = OFF")  # it is rebuilt from the log
        db.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        db.execute(f"PRAGMA wal_autocheckpoint = {_WAL_PAGES}")
        return db

    def _unread(self, db: sqlite3.Connection, log: Log, topics: Iterable[str]) -> Iterator[tuple[str, int, int, int]]:
        """Topic, partition, first and last offset + 1 of what is not read yet."""
        existing = log.topics()
        for topic in topics:
            if topic not in existing:
                continue
            known = dict(db.execute("SELECT partition, next FROM position WHERE topic = ?", [topic]))
            ends = log.end(topic)
            if all(known.get(partition, 0) >= end for partition, end in enumerate(ends)):
                continue
            for partition, (first, end) in enumerate(zip(log.beginning(topic), ends, strict=True)):
                start = max(first, known.get(partition, 0))
                if start < end:
                    yield topic, partition, start, end

    def _move(self, db: sqlite3.Connection, topic: str, partition: int, until: int) -> None:
        db.execute("INSERT OR REPLACE INTO position VALUES (?, ?, ?)", [topic, partition, until])


def _run_of(db: sqlite3.Connection) -> str:
    row = db.execute("SELECT value FROM about WHERE name = 'run'").fetchone()
    return "" if row is None else str(row[0])


def _batches(messages: Iterator[Message]) -> Iterator[Sequence[Message]]:
    batch: list[Message] = []
    size_bytes = 0
    for message in messages:
        batch.append(message)
        size_bytes += len(message.value or b"")
        if len(batch) == _BATCH or size_bytes > _BATCH_BYTES:
            yield batch
            batch, size_bytes = [], 0
    if batch:
        yield batch
