"""Queries from a file: a plain list, or CSV and JSONL with the columns query, query_id, language and country."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import xxhash

from crawler.sources.source import Query
from crawler.web.columns import QUERY_NAMES, FileColumns
from crawler.web.hits_file import QUERY_ID_CAP, BadLine
from crawler.web.record_lines import read_records
from stream.text.ids import ident_of

_TEXT_CAP = 2000  # characters of a query
_CODE = re.compile(r"[A-Za-z0-9-]{0,16}")  # of a language or a country


def read_queries(lines: Iterable[bytes], *, is_table: bool = False) -> tuple[list[Query], list[BadLine]]:
    """The queries in the order of the file, each id once, and the bad lines.

    `is_table`: the file is CSV by its name, so it needs a header with `query`. A query without `query_id` is its own
    id, with folded white space, as with hits from a file.
    """
    queries: dict[str, Query] = {}
    bad: list[BadLine] = []
    for number, fields in read_records(lines, FileColumns("query", QUERY_NAMES), is_table=is_table):
        if isinstance(fields, str):
            bad.append(BadLine(number, fields))
            continue
        try:
            query = _query(fields)
        except ValueError as error:
            bad.append(BadLine(number, str(error)))
            continue
        if query.id in queries and queries[query.id] != query:
            bad.append(BadLine(number, f"query_id {query.id[:40]!r} is the id of another query above"))
        queries.setdefault(query.id, query)
    return list(queries.values()), bad


def query_file(name: Path) -> Path:
    """The set of queries that ships under this name, unless a file of that name exists."""
    shipped = Path(str(resources.files("crawler.sources.query_sets"))) / f"{name}.csv"
    return shipped if len(name.parts) == 1 and shipped.is_file() and not name.exists() else name


def digest_of(queries: Sequence[Query]) -> str:
    """xxh3-64 of the queries in order, hexadecimal: identifies the queries of a round."""
    digest = xxhash.xxh3_64()
    for query in queries:
        for part in (query.id, query.text, query.language, query.country):
            digest.update(part.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()


def _query(fields: dict[str, Any]) -> Query:
    text = fields.get("query")
    if not isinstance(text, str) or not text.strip():
        raise ValueError("no query")
    text = " ".join(text.split())
    if len(text) > _TEXT_CAP:
        raise ValueError(f"a query of {len(text)} characters; at most {_TEXT_CAP} are taken")
    codes = {}
    for name in ("language", "country"):
        code = fields.get(name) or ""
        if not isinstance(code, str) or not _CODE.fullmatch(code):
            raise ValueError(f"{name} is no code such as {'de' if name == 'language' else 'DE'}")
        codes[name] = code
    given = fields.get("query_id")
    try:
        ident = text if given in (None, "") else ident_of(given).strip()
    except ValueError as error:
        raise ValueError(f"query_id {error}") from None
    return Query(ident[:QUERY_ID_CAP], text, codes["language"], codes["country"])
