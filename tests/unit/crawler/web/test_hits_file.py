"""Hits from CSV, JSONL and plain lists, broken lines included."""

from __future__ import annotations

import gzip
import io
import re
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.sources.queries import read_queries
from crawler.web.columns import HIT_NAMES, UnknownColumn
from crawler.web.hits_file import QUERY_ID_CAP, BadLine, hit_columns, read_hits
from scoring.stages.site_tally import SiteTally
from stream.schema.records import Hit
from tests.support.paths import ROOT

NOW_MS = 1_795_341_600_000  # 2026-11-22T10:00:00Z


def read(data: bytes) -> tuple[list[Hit], list[BadLine]]:
    """All hits and all broken lines of a file."""
    found = list(read_hits(io.BytesIO(data), now_ms=NOW_MS))
    return [f for f in found if isinstance(f, Hit)], [f for f in found if isinstance(f, BadLine)]


def test_csv_with_all_columns() -> None:
    """CSV columns are the fields of a hit, in any order and case; other columns are ignored."""
    hits, bad = read(
        b"\xef\xbb\xbfRank,url,query,query_id,source,engine,title,snippet,fetched_at,extra\n"
        b'3,https://A.example/x,best shoes,q7,searxng,bing,"A, ""quoted"" title","two\nlines",2026-11-21T10:00:00Z,?\n'
    )
    assert bad == []
    hit = hits[0]
    assert (hit.site, hit.url, hit.rank, hit.query, hit.query_id) == (
        "a.example", "https://A.example/x", 3, "best shoes", "q7",
    )  # fmt: skip
    assert (hit.source, hit.engine, hit.title, hit.snippet) == ("searxng", "bing", 'A, "quoted" title', "two\nlines")
    assert hit.fetched_at == 1795255200000


EXPORTS = {  # header lines of search tools, and the columns that are fields
    "search results as JSON": (
        "position,title,link,redirect_link,displayed_link,snippet",
        {"rank": "position", "title": "title", "url": "link", "snippet": "snippet"},
    ),
    "Search Console": (
        "Query,Page,Clicks,Impressions,CTR,Position,Date",
        {"query": "Query", "url": "Page", "rank": "Position", "fetched_at": "Date"},
    ),
    "Ahrefs": (
        "Keyword\tVolume\tKD\tPrevious position\tCurrent position\tPrevious URL\tCurrent URL\tCurrent date",
        {"query": "Keyword", "rank": "Current position", "url": "Current URL", "fetched_at": "Current date"},
    ),
    "Semrush": (
        "Domain;Keyword;Position;Previous Position;Search Volume;CPC;URL;Traffic (%);Trends;Timestamp",
        {"query": "Keyword", "rank": "Position", "url": "URL", "fetched_at": "Timestamp"},
    ),
    "SE Ranking": (
        "Keyword,Search engine,Position,Landing page,Date",
        {
            "query": "Keyword",
            "engine": "Search engine",
            "rank": "Position",
            "url": "Landing page",
            "fetched_at": "Date",
        },
    ),
    "Bing": (
        "Page,Keyword,Impressions,Clicks,Avg. Position",
        {"url": "Page", "query": "Keyword", "rank": "Avg. Position"},
    ),
}


@pytest.mark.parametrize("tool", EXPORTS)
def test_columns_have_the_names_that_search_tools_give_them(tool: str) -> None:
    """The fields of an export are found by name, every other column is named as not used, and its row is a hit."""
    header, fields = EXPORTS[tool]
    names = re.split("[,;\t]", header)
    mark = header[len(names[0])]
    values = {"rank": "3", "url": "https://a.example/x", "fetched_at": "2026-11-21"}
    of_column = {name: values.get(field, field) for field, name in fields.items()}
    row = mark.join(of_column.get(name, "") for name in names)
    columns = hit_columns()
    (hit,) = read_hits([f"{header}\n".encode(), row.encode()], now_ms=NOW_MS, columns=columns)
    assert isinstance(hit, Hit) and (hit.url, hit.rank) == ("https://a.example/x", 3)
    assert (columns.used, list(columns.unused)) == (fields, [name for name in names if name not in of_column])


def test_the_documented_names_of_columns_are_those_that_are_read() -> None:
    """docs/reference/formats.md lists each field with the further names of its column."""
    page = (ROOT / "docs/reference/formats.md").read_text(encoding="utf-8")
    for field, names in HIT_NAMES.items():
        assert not names or f"| `{field}` | {', '.join(names)} |" in page


def test_values_that_do_not_fit_a_column_of_another_name_are_left_out() -> None:
    """A date in words and an average as position cost no hit, and are counted; under the field's own name they do."""
    columns = hit_columns()
    table = 'Date,Position,{}\n"May 1, 2026",4.2,https://a.example/\n'
    (hit,) = read_hits(io.BytesIO(table.format("Link").encode()), now_ms=NOW_MS, columns=columns)
    assert isinstance(hit, Hit) and (hit.rank, hit.fetched_at) == (0, NOW_MS)
    assert columns.left_out == {"rank": 1, "fetched_at": 1}
    assert read(b"rank,url\n4.2,https://a.example/\n")[1][0].number == 2
    assert not isinstance(next(read_hits([b"Link\n", b"no url\n"])), Hit)


def test_given_names_of_columns_come_before_all_others() -> None:
    """A named column is the field's only one, an empty name is none, and a name that the header lacks is an error."""
    table = [b"Url,Web,Source,Rank\n", b"https://a.example/,https://b.example/,Wikipedia,2\n"]
    columns = hit_columns({"url": "web", "source": ""})
    (hit,) = read_hits(table, columns=columns)
    assert isinstance(hit, Hit) and (hit.site, hit.source, hit.rank) == ("b.example", "file", 2)
    assert list(columns.unused) == ["Url", "Source"] and columns.guessed == {}
    with pytest.raises(UnknownColumn):
        list(read_hits(table, columns=hit_columns({"query": "Keyword"})))
    with pytest.raises(UnknownColumn):
        list(read_hits([b'{"link": "https://a.example/"}'], columns=hit_columns({"query": "Keyword"})))


def test_jsonl_and_plain_lists() -> None:
    """JSONL and a plain list give hits; comments and blank lines of a list are skipped."""
    hits, bad = read(b'{"url": "http://a.example/", "rank": 2, "fetched_at": 1700000000, "other": [1]}\n')
    assert [(hit.rank, hit.fetched_at) for hit in hits] == [(2, 1_700_000_000_000)] and not bad
    hits, bad = read(b"# list\n\nhttp://a.example/\r\n  https://b.example/x  \n")
    assert [hit.url for hit in hits] == ["http://a.example/", "https://b.example/x"] and not bad


def test_broken_lines_are_named_and_skipped() -> None:
    """Each broken line is reported with its number and a reason, and the rest of the file is read."""
    hits, bad = read(
        b"url,rank\n"
        b"http://a.example/1,1\n"
        b"no url here,2\n"
        b"http://a.example/3,first\n"
        b'"http://a.example/open,4\n'
        b"http://a.example/5,5,6,7\n"
        b"http://\xff.example/,6\n"
        b",7\n"
        b"ftp://a.example/,8\n"
        b"http://a.example/9,9\n"
    )
    assert [hit.rank for hit in hits] == [1, 9]
    assert [line.number for line in bad] == [3, 4, 5, 6, 7, 8, 9]
    assert all(line.reason for line in bad)
    hits, bad = read(b'{"url": "http://a.example/"}\n[1]\n{"url": 5}\n{"url": \n' + b"[" * 5000 + b"\n")
    assert len(hits) == 1 and [line.number for line in bad] == [2, 3, 4, 5]
    hits, bad = read(b"http://a.example/" + b"a" * 2_000_000 + b"\nhttp://b.example/\n")
    assert [hit.site for hit in hits] == ["b.example"] and [line.number for line in bad] == [1]
    assert read(b"") == ([], []) == read(b"\n\n")


def test_a_hit_that_imitates_a_canary_is_refused() -> None:
    """A line with the site of a canary is broken: a file of hits cannot add canaries."""
    found = list(read_hits([b"https://x.5f0c2a91d3b7e604.9.1.llm.canary.invalid/1", b"https://a.example/"]))
    assert isinstance(found[0], BadLine) and "reserved (RFC 2606)" in found[0].reason
    assert isinstance(found[1], Hit)


def test_a_hit_without_a_time_is_of_the_time_of_reading() -> None:
    """A hit without a time has the time of reading, which is not part of its id; its own time is kept.

    The same URL at another rank is another hit.
    """
    lines = [b"url,rank,fetched_at\n", b"http://a.example/,1,\n", b"http://a.example/,2,1700000000\n"]
    first, later = (
        [hit for hit in read_hits(lines, now_ms=now) if isinstance(hit, Hit)] for now in (NOW_MS, NOW_MS + 9)
    )
    assert [hit.fetched_at for hit in first] == [NOW_MS, 1_700_000_000_000]
    assert [hit.fetched_at for hit in later] == [NOW_MS + 9, 1_700_000_000_000]
    assert [hit.id for hit in first] == [hit.id for hit in later] == [hit.id for hit in read(b"".join(lines))[0]]
    assert first[0].id != first[1].id and len(first[0].id) == 32


def test_the_time_of_a_hit_is_read_by_the_rules_for_times() -> None:
    """A time is a number or a text in any accepted form; a line with another value, or with 2100, is bad."""
    given = ["20261122", '"20261122T100000Z"', "1795341600.5", "true", '"1_000"', '"2100-01-01"']
    hits, bad = read("".join(f'{{"url": "http://a.example/", "fetched_at": {text}}}\n' for text in given).encode())
    assert [hit.fetched_at for hit in hits] == [1_795_305_600_000, NOW_MS, NOW_MS + 500]
    assert [line.number for line in bad] == [4, 5, 6]
    assert all(line.reason.startswith("fetched_at is ") for line in bad)


@pytest.mark.parametrize("rank", ["true", "2.5", '"1_0"', '"٣"', "-1", "2147483648", "[1]", "0", '"0"'])
def test_a_rank_is_a_whole_number(rank: str) -> None:
    """A rank starts at 1 and is written in digits; 3.0 is 3. Any other rank is a bad line."""
    hits, bad = read(
        f'{{"url": "http://a.example/", "rank": 3.0}}\n{{"url": "http://a.example/", "rank": {rank}}}\n'.encode()
    )
    assert [hit.rank for hit in hits] == [3]
    assert [line.number for line in bad] == [2] and "not a whole number from 1" in bad[0].reason


def test_ids_may_be_whole_numbers() -> None:
    """A whole number of any size is an id by its digits; fractions, booleans and lists are not."""
    rows = ["17", '"17"', "-1", "18446744073709551616", "1.5", "true", '["a"]']
    hits, bad = read("".join(f'{{"url": "http://a.example/", "query_id": {row}}}\n' for row in rows).encode())
    assert [hit.query_id for hit in hits] == ["17", "17", "-1", "18446744073709551616"]
    assert [line.number for line in bad] == [5, 6, 7]
    assert all("neither a text nor a whole number" in line.reason for line in bad)


def test_a_query_without_an_id_is_its_own_id() -> None:
    """Without query ids, hits of two queries differ, and a site's row counts its queries by their text."""
    hits, _ = read(
        b"query,url,rank\nbest  shoes ,http://a.example/,1\ngood hats,http://a.example/,1\n,http://a.example/,2\n"
    )
    assert [hit.query_id for hit in hits] == ["best shoes", "good hats", ""]
    assert len({hit.id for hit in hits}) == 3
    tally = SiteTally()
    tally.add_hits(hits)
    assert tally.queries == ["best shoes", "good hats"]
    (long,), _ = read(b"query,url\n" + b"x" * 5000 + b",http://a.example/\n")
    assert len(long.query_id) == QUERY_ID_CAP and len(long.query) == 5000
    (own,), _ = read(b"query,query_id,url\nbest shoes,q7,http://a.example/\n")
    assert own.query_id == "q7"


@pytest.mark.parametrize(
    "first",
    [
        *("web,query", "web;query", "web\tquery", '"web","query"', "https://a.example,b", "1,https://a.example/x"),
        *("https://a.example/x,best shoes", "https://a.example/x\tshoes", '"https://a.example/x",shoes'),
    ],
)
def test_csv_without_a_url_column_is_refused(first: str) -> None:
    """A CSV without a header, or without a column url, gives no hit and one bad line with the reason."""
    hits, bad = read(b"\n" + first.encode() + b"\nhttps://a.example/,b\nhttps://a.example/c\n")
    assert hits == [] and [line.number for line in bad] == [2]
    assert bad[0].reason == f"a CSV needs a header with a column url; found: {' '.join(first.split())}"


def test_commas_in_urls_and_hosts_of_a_list() -> None:
    """In a list, commas after the host belong to the URL; an impossible host is a broken line."""
    good = ["http://a.example/1,2.html;x", "http://a.example/?q=a,b", "http://[::1]/", "http://a_b.example/,"]
    hits, bad = read(("\n".join(good) + "\nhttp://a.example,b\nhttp://a.example;b/x\nhttp://a!b.example/\n").encode())
    assert [hit.url for hit in hits] == good
    assert [line.number for line in bad] == [5, 6, 7]


@pytest.mark.parametrize("delimiter", [b",", b";", b"\t"])
def test_a_repeated_header_is_no_line(delimiter: bytes) -> None:
    """The header of joined CSV files is repeated: it is neither a hit nor a bad line."""
    hits, bad = read(b"url,rank\nhttp://a.example/,1\nURL,rank\nhttp://b.example/,2\n".replace(b",", delimiter))
    assert [(hit.site, hit.rank) for hit in hits] == [("a.example", 1), ("b.example", 2)] and not bad


@pytest.mark.parametrize("packed", [gzip.compress(b"url\nhttp://a.example/\n"), b"\x1f\x8b\x08,;\n"])
def test_a_gzip_file_is_named_as_one(packed: bytes) -> None:
    """A gzip file without .gz in its name is one bad line that says how to name it."""
    hits, bad = read(packed)
    assert hits == [] and [line.number for line in bad] == [1]
    assert "looks like a gzip file" in bad[0].reason and ".csv.gz" in bad[0].reason and bad[0].reason.isascii()
    queries, bad = read_queries(packed.splitlines(keepends=True), is_table=True)
    assert queries == [] and "looks like a gzip file" in bad[0].reason


def _excel() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as sheet:
        sheet.writestr("xl/workbook.xml", "<x/>")
    return packed.getvalue()


@pytest.mark.parametrize(
    ("data", "named"),
    [
        (_excel(), "Excel"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(100), "Excel"),
        (b"\x28\xb5\x2f\xfd\x04\x00", "zstd"),
        ("url,query\nhttp://a.example/,b\n".encode("utf-16"), "UTF-16"),
        ("url,query\nhttp://a.example/,b\n".encode("utf-16-le"), "UTF-16"),
        ("\nurl\thttp://a.example/\n".encode("utf-16-be"), "UTF-16"),
        (b'[{"url": "http://a.example/"}, {"url": "http://b.example/"}]', "JSON array"),
        (b'\xef\xbb\xbf\n[\n{"url": "http://a.example/"}\n]\n', "JSON array"),
        (b'["http://a.example/"]', "JSON array"),
        (b'{\n "organic_results": [\n', "JSON object over several lines"),
    ],
)
def test_files_of_other_kinds_are_named(data: bytes, named: str) -> None:
    """A file of another kind is one bad line with the name of its kind and what to do."""
    hits, bad = read(data)
    assert hits == [] and len(bad) == 1
    assert f"looks like {'' if named == 'UTF-16' else 'a'}" in bad[0].reason and named in bad[0].reason


URLS = ["http://a.example/1", "http://a.example/2"]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize(
    ("above", "reported"),
    [
        ("", []),
        ("# exported\n\n#x{0}y\n", []),
        ("Report of May\n", [1]),
        ("Report{0} of May 2026\n\n# by us\nsep={0}\n", [1]),
        ("sep={0}\n", []),
        ('\n"sep={0}"\r\n', []),
        ('"A ""quoted"" title"\n', [1]),
        ("http://above.example/\n", [1]),
    ],
)
def test_a_table_below_titles_and_comments(above: str, reported: list[int], delimiter: str) -> None:
    """A table begins with its header; comments above it are skipped, and any other line there is reported."""
    table = f"Rank{delimiter}URL\n1{delimiter}{URLS[0]}\n2{delimiter}{URLS[1]}\n"
    hits, bad = read((above.format(delimiter) + table).encode())
    assert [(hit.url, hit.rank) for hit in hits] == [(URLS[0], 1), (URLS[1], 2)]
    assert [line.number for line in bad] == reported


@pytest.mark.parametrize("eol", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"])
def test_only_cr_and_lf_end_a_line(mark: str, eol: str) -> None:
    """Other separators of lines are characters of a cell, a text or a URL; a CR alone ends a line."""
    table = [f"title{mark},url,rank", f"Sheds{mark}and tools,{URLS[0]},7", f'"x{mark}",{URLS[1]},8']
    hits, bad = read((eol.join(table).replace(f"title{mark}", "title") + eol).encode())
    assert [(hit.title, hit.url, hit.rank) for hit in hits] == [
        (f"Sheds{mark}and tools", URLS[0], 7), (f"x{mark}", URLS[1], 8)
    ]  # fmt: skip
    assert not bad
    hits, bad = read(eol.join([URLS[0], f"http://b.example/x{mark}y", URLS[1]]).encode())
    assert [hit.site for hit in hits] == ["a.example", "b.example", "a.example"] and not bad
    hits, bad = read(eol.join(f'{{"url": "{url}", "title": "a"}}' for url in URLS).encode())
    assert [hit.url for hit in hits] == URLS and not bad


@pytest.mark.parametrize(
    ("row", "title"),
    [
        ('5" floppy disk,http://a.example/1,7', '5" floppy disk'),
        ('He said "hi",http://a.example/1,7', 'He said "hi"'),
        ('"He said ""hi""",http://a.example/1,7', 'He said "hi"'),
        ('"5"" and 6""",http://a.example/1,7', '5" and 6"'),
        ('"He said "hi" there",http://a.example/1,7', 'He said hi" there"'),
        ('"two\nlines, and a ""quote""",http://a.example/1,7', 'two\nlines, and a "quote"'),
        ('"a\r\nb",http://a.example/1,7', "a\r\nb"),
    ],
)
def test_quotes_are_those_of_the_csv_module(row: str, title: str) -> None:
    """A quote opens a cell only at its start; elsewhere it is a character, in any number."""
    hits, bad = read(f"title,url,rank\n{row}\nplain,http://a.example/2,8\n".encode())
    assert [(hit.title, hit.url, hit.rank) for hit in hits] == [(title, URLS[0], 7), ("plain", URLS[1], 8)]
    assert not bad


def test_a_broken_quote_hides_no_row() -> None:
    """Rows between a quote that is never closed and the next cell in quotes are read, each with its own cells."""
    rows = [f'"http://a.example/{n},x' if n == 1 else f'http://a.example/{n},"cell {n}"' for n in range(4)]
    hits, bad = read(("url,title\n" + "\n".join(rows)).encode())
    assert [(hit.url, hit.title) for hit in hits] == [(f"http://a.example/{n}", f"cell {n}") for n in (0, 2, 3)]
    assert [line.number for line in bad] == [3]
    hits, bad = read(
        b'url,title,rank\nhttp://a.example/0,"open,1\nhttp://a.example/1,"whole",2\nhttp://a.example/2,,3\n'
    )
    assert [(hit.title, hit.rank) for hit in hits] == [("whole", 2), ("", 3)] and [line.number for line in bad] == [2]


@pytest.mark.parametrize("row", ["http://a.example/1,x,1,", "http://a,b,c,d", "http://a.example/1,x,,1"])
def test_a_row_with_more_cells_than_the_header_is_reported(row: str) -> None:
    """A row with more cells than the header is a bad line: nothing says which cells it has."""
    hits, bad = read(f"url,query,rank\n{row}\nhttp://a.example/2,y,2\n\n".encode())
    assert [hit.url for hit in hits] == [URLS[1]]
    assert [line.number for line in bad] == [2] and "where the header has 3" in bad[0].reason


@pytest.mark.parametrize(
    ("row", "query", "title"),
    [("http://a.example/1", "", ""), ("http://a.example/1,x", "x", ""), ('http://a.example/1,x,"y\nz"', "x", "y\nz")],
)
def test_a_row_may_leave_out_its_last_cells(row: str, query: str, title: str) -> None:
    """Many programs leave out empty cells at the end of a row; only the URL must be there."""
    hits, bad = read(f"url,query,title,rank\n{row}\nhttp://a.example/2,y,z,2\n".encode())
    assert [(hit.url, hit.query, hit.title, hit.rank) for hit in hits] == [
        (URLS[0], query, title, 0), (URLS[1], "y", "z", 2)
    ]  # fmt: skip
    assert not bad
    hits, bad = read(b"query,url\nx\ny,http://a.example/2\n")
    assert [hit.url for hit in hits] == [URLS[1]] and [line.number for line in bad] == [2]


def test_a_header_of_one_column_is_the_first_line() -> None:
    """A line `url` below URLs is a bad line of a list, and costs no URL; below comments alone it is a header."""
    hits, bad = read(f"{URLS[0]}\nurl\n{URLS[1]}\n".encode())
    assert [hit.url for hit in hits] == URLS and [line.number for line in bad] == [2]
    hits, bad = read(f"# mine\n\nsep=,\n URL \n{URLS[0]}\n{URLS[1]}\n".encode())
    assert [hit.url for hit in hits] == URLS and not bad


def test_comments_above_json_lines_and_queries() -> None:
    """Comments and blank lines say nothing of the kind of a file."""
    above = b"# exported\n\n# by us\n"
    hits, bad = read(above + b'{"url": "http://a.example/1"}\n{"url": "http://a.example/2"}\n')
    assert [hit.url for hit in hits] == URLS and not bad
    for data in (b'{"query": "vpn"}\n{"query": "tea"}\n', b"query,language\nvpn\ntea,de\n", b"vpn\ntea\n"):
        queries, bad = read_queries((above + data).splitlines(keepends=True))
        assert [query.text for query in queries] == ["vpn", "tea"] and not bad


@pytest.mark.parametrize("first", ['["exact phrase" tips', '["exact phrase"', "[draft] query", "tea"])
def test_queries_that_look_like_other_formats(first: str) -> None:
    """A list of queries may begin with a bracket, and a query that names a column begins no table."""
    lines = [first, "url,query", "query", "sheds, query"]
    queries, bad = read_queries([f"{line}\n".encode() for line in lines])
    assert [query.text for query in queries] == lines and not bad


@given(st.binary(max_size=200), st.sampled_from([b"", b"url,rank\n", b'{"url":"http://a.example/"}\n']))
def test_no_file_raises(data: bytes, start: bytes) -> None:
    """Any bytes give hits and broken lines with their line numbers, and no exception."""
    lines = re.split(b"\r\n|\r|\n", start + data)
    for found in read_hits(io.BytesIO(start + data)):
        if isinstance(found, BadLine):
            assert 1 <= found.number <= len(lines)


@given(st.lists(st.booleans(), max_size=30))
def test_every_line_is_a_hit_or_a_broken_line(kinds: list[bool]) -> None:
    """A line with an open quote does not swallow the good lines after it."""
    rows = [f"http://a.example/{n},{n}\n" if good else f'"http://a.example/{n}\n' for n, good in enumerate(kinds, 1)]
    hits, bad = read(("url,rank\n" + "".join(rows)).encode())
    assert [hit.rank for hit in hits] == [n for n, good in enumerate(kinds, 1) if good]
    assert [line.number for line in bad] == [n + 1 for n, good in enumerate(kinds, 1) if not good]


def test_two_urls_on_a_line_of_a_list_are_reported() -> None:
    """They are no URL with a space; one with a space in its path is."""
    hits, bad = read(b"http://a.example/a b\nhttp://a.example/1 https://a.example/2\n")
    assert [hit.url for hit in hits] == ["http://a.example/a b"] and [line.number for line in bad] == [2]


def test_a_url_is_no_header() -> None:
    """A URL of a list that has the word url between commas does not begin a table."""
    urls = ["http://a.example/1", "http://a.example/2,url,x", "http://a.example/?a=|url|"]
    hits, bad = read("\n".join(urls).encode())
    assert [hit.url for hit in hits] == urls and not bad
