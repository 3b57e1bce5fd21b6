"""Files of the console beside the log, from which a forgotten host is removed too: its index, and labels of people."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from farmwatch.labels.labels_file import LabelsFile
from stream.schema.forgotten import Forgotten

INDEX = "console.sqlite"
INDEX_VERSION = 9  # of its tables; another one is rebuilt
LABELS, REVIEW, REVIEW_LABELS = "labels.jsonl", "review.jsonl", "review-labels.jsonl"  # of flips; of drawn sites
SITE_TABLES = ("site", "page", "visit", "judged", "score", "sitemaps")  # of the index, with a column `site`


def forget_in_files(folder: Path, forgotten: Forgotten, review: str = "") -> None:
    """Remove the forgotten hosts from the files in the folder of the log, and from the labels of the `review`."""
    if (index := folder / INDEX).exists():
        with closing(sqlite3.connect(index, timeout=10)) as db:
            if is_current := index_version(db) == INDEX_VERSION:
                forget_in_index(db, forgotten)
        if not is_current:  # the console makes it anew
            index.unlink()
    named = Path(review).expanduser() if review else folder / REVIEW_LABELS
    in_force = sorted(named.glob("*.jsonl")) if named.is_dir() else [named]
    for labels in {folder / LABELS, folder / REVIEW, folder / REVIEW_LABELS, *in_force}:
        if labels.exists():
            with closing(LabelsFile(labels)) as file:
                file.forget(forgotten.covers)


def index_version(db: sqlite3.Connection) -> int:
    """The version of the index's tables; -1 of a damaged file."""
    try:
        return int(db.execute("PRAGMA user_version").fetchone()[0])
    except sqlite3.DatabaseError:
        return -1


def forget_in_index(db: sqlite3.Connection, forgotten: Forgotten) -> None:
    """Remove the forgotten hosts from the index, unless it lacks those of this version of the ledger already."""
    version = str(forgotten.version)
    if db.execute("SELECT 1 FROM about WHERE name = 'forgotten' AND value = ?", [version]).fetchone():
        return
    with db:
        for table in SITE_TABLES:
            sites = [site for (site,) in db.execute(f"SELECT DISTINCT site FROM {table}")]
            db.executemany(f"DELETE FROM {table} WHERE site = ?", [[site] for site in sites if forgotten.covers(site)])
        db.execute("INSERT OR REPLACE INTO about VALUES ('forgotten', ?)", [version])
        db.execute("INSERT INTO name (name) VALUES ('rebuild')")  # it keeps deleted names otherwise
    db.execute("VACUUM")
