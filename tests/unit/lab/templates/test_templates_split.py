"""`farmwatch lab templates split`, on archives made here."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.front_door import Ran, Runner

DAYS = ("2024-05-01T10:00:00Z", "2024-05-02T10:00:00Z", "2024-05-03T10:00:00Z")
MENU = "<ul><li>home of the paper</li><li>all of the news</li></ul>"
TYPE = "text/html; charset=utf-8"


def html(body: str, day: int = 0) -> bytes:
    return f"<html><body>{MENU}<p>{body}</p><div>seen {day} times this week</div></body></html>".encode()


TEXTS = {
    "red": "The river rose slowly during the night.",
    "green": "Villagers moved their boats to higher ground.",
    "blue": "Nobody expected rain before Sunday evening.",
}


def record(url: str, date: str, body: bytes, content_type: str = TYPE, status: str = "200 OK") -> bytes:
    block = f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\n\r\n".encode() + body
    head = (
        f"WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:x:{url}{date}>\r\nWARC-Date: {date}\r\n"
        f"WARC-Target-URI: {url}\r\nContent-Type: application/http\r\nContent-Length: {len(block)}\r\n"
    )
    return gzip.compress(head.encode() + b"\r\n" + block + b"\r\n\r\n")


SITE = [
    record(f"http://a.example/{name}", date, html(text, day))
    for day, date in enumerate(DAYS)
    for name, text in TEXTS.items()
]


@pytest.fixture
def split(farmwatch: Runner, tmp_path: Path) -> Callable[..., tuple[Ran, list[dict[str, Any]]]]:
    """Split an archive of these records; returns what the command said, and the report."""

    def run(records: Sequence[bytes], *options: str, index: str = "") -> tuple[Ran, list[dict[str, Any]]]:
        archive = tmp_path / "one.warc.gz"
        archive.write_bytes(b"".join(records))
        if index:
            (tmp_path / "one.cdxj").write_text(index)
        ran = farmwatch("lab", "templates", "split", archive, "--out", tmp_path / "out", *options)
        report = tmp_path / "out" / "report.jsonl"
        return ran, [json.loads(line) for line in report.read_text().splitlines()] if report.exists() else []

    return run


Split = Callable[..., tuple[Ran, list[dict[str, Any]]]]


def test_a_page_has_html_text_and_a_line(split: Split, tmp_path: Path) -> None:
    """The content is what only a page's own snapshots have; menus and what changes are boilerplate."""
    ran, rows = split(SITE)
    assert ran.code == 0 and "9 pages of 1 site split" in ran.out
    assert len(rows) == 9
    (row,) = [row for row in rows if row["url"].endswith("/red") and row["at"].startswith("2024-05-02")]
    assert row["cross"]["prev"] == {"url": "http://a.example/red", "at": "2024-05-01T10:00:00.000Z"}
    assert row["cross"]["next"]["at"] == "2024-05-03T10:00:00.000Z"
    assert {row["cross"][role]["url"][-4:] for role in ("up", "down")} == {"reen", "blue"}
    assert row["nodes"] == {"content": 1, "boilerplate": 5, "invalid": 0} and row["remarks"] == []
    assert row["similarity"] == 1.0
    assert (tmp_path / "out" / f"{row['file']}.txt").read_text() == f"{TEXTS['red']}\n"
    assert '<mark data-class="content"' in (tmp_path / "out" / f"{row['file']}.html").read_text()


def test_json_has_the_totals(split: Split) -> None:
    """With --json the totals are one document."""
    found = split(SITE, "--json")[0].json
    assert found["pages"] == 9 and found["sites"] == 1 and found["not_split"] == {}
    assert found["nodes"]["content"] == 9


@pytest.mark.parametrize("options", [["--positional", "0.3"], ["--method", "t001"], ["--method", "t006"]])
def test_every_way_splits_every_page(split: Split, options: list[str]) -> None:
    """The methods and comparisons of the thesis run."""
    ran, rows = split(SITE, *options)
    assert ran.code == 0 and len(rows) == 9 and all("nodes" in row for row in rows)


def test_one_page_has_nothing_beside_it(split: Split) -> None:
    """A site with one URL is not split, whatever its snapshots: exit code 1, with the reason."""
    ran, rows = split(SITE[::3])
    assert ran.code == 1
    assert [row["reason"] for row in rows] == ["no_other_url"] * 3
    assert "no_other_url 3" in ran.out


def test_one_snapshot_is_split_with_a_remark(split: Split) -> None:
    """Without snapshots, what no other page has is content."""
    ran, rows = split(SITE[:2])
    assert ran.code == 0
    assert [row["remarks"] for row in rows] == [["one_other_url", "one_snapshot"]] * 2


BROKEN = SITE[1][:60] + bytes(20) + SITE[1][80:]


@pytest.mark.parametrize("damaged", [1, 8], ids=["within", "cut"])
def test_a_damaged_archive_is_split_around_the_damage(split: Split, damaged: int) -> None:
    """A broken record, also one that is cut at the end, is named, in the report, and the exit code is 1."""
    ran, rows = split([SITE[0], BROKEN, *SITE[2:]] if damaged == 1 else [*SITE[:-1], SITE[-1][:100]])
    offset = sum(map(len, SITE[:damaged]))
    assert ran.code == 1 and f"one.warc.gz: offset {offset}: " in ran.err
    assert [row["offset"] for row in rows if "reason" in row] == [offset]
    assert sum("nodes" in row for row in rows) == 8


def test_other_records_have_a_reason(split: Split) -> None:
    """Non-HTML, error pages, large, deep, empty and repeated pages are passed over, each with its reason."""
    odd = [
        record("http://a.example/pdf", DAYS[0], b"%PDF-1.4", "application/pdf"),
        record("http://a.example/gone", DAYS[0], html("gone"), status="404 Not Found"),
        record("http://a.example/large", DAYS[0], html("x " * 25_000_000)),
        record("http://a.example/deep", DAYS[0], html("<div>" * 5000)),
        record("http://a.example/text", DAYS[0], b"no element at all"),
        record("ftp://a.example/", DAYS[0], html("x")),
        record("http://a.example/empty", DAYS[0], b"<html><body><div></div></body></html>"),
        SITE[0],
    ]
    ran, rows = split([*SITE, *odd])
    assert ran.code == 0
    reasons = {row["url"].rpartition("/")[2]: row["reason"] for row in rows if "reason" in row}
    assert reasons == {
        "pdf": "content_type",
        "gone": "http_404",
        "large": "truncated",
        "deep": "too_deep",
        "text": "not_html",
        "": "unusable_url",
        "empty": "no_text",
        "red": "same_time",
    }
    assert sum("nodes" in row for row in rows) == 9


def test_sites_are_split_apart(split: Split) -> None:
    """A page is compared with pages of its own host only."""
    other = [record(f"http://b.example/{n}", DAYS[0], html(f"number {n} of another paper")) for n in (1, 2)]
    _, rows = split([other[0], *SITE, other[1]])
    for row in rows:
        assert {page["url"].split("/")[2] for page in row["cross"].values()} == {row["url"].split("/")[2]}
    assert len({row["file"].split("/")[1] for row in rows}) == 2


def index_of(records: Sequence[bytes], names: Sequence[str]) -> str:
    """The CDXJ lines of records of these names, on the first days."""
    lines, offset = [], 0
    for number, (data, name) in enumerate(zip(records, names, strict=False)):
        time = DAYS[number // 3].translate(str.maketrans("", "", "-:TZ"))
        fields = {"url": f"http://a.example/{name}", "mime": "text/html", "status": "200", "offset": str(offset)}
        lines.append(f"example,a)/{name} {time} {json.dumps(fields | {'filename': 'one.warc.gz'})}\n")
        offset += len(data)
    return "".join(sorted(lines))


NAMES = ("red", "green", "blue") * 3


def test_an_index_saves_the_read(split: Split) -> None:
    """Pages are found by a CDXJ file: what it does not list is not read, not even what is broken."""
    ran, rows = split([*SITE[:6], b"no archive at all" * 99], index=index_of(SITE, NAMES[:6]))
    assert ran.code == 0, ran.err
    assert len(rows) == 6 and all("nodes" in row for row in rows)


def test_an_index_in_the_old_form_is_read(split: Split, tmp_path: Path) -> None:
    """A CDX file with a legend names the fields of its lines."""
    (tmp_path / "one.cdx").write_text(
        " CDX N b a m s k r M S V g\n"
        + "".join(
            f"example,a)/{n} 20240501100000 http://a.example/{n} text/html 200 X - - 9 {at} one.warc.gz\n"
            for n, at in (("red", 0), ("green", len(SITE[0])))
        )
        + "example,a)/i 20240501100000 http://a.example/i image/png 200 X - - 9 7 one.warc.gz\n"
        + "example,a)/g 20240501100000 http://a.example/g text/html 301 X - - 9 7 one.warc.gz\n"
    )
    os.utime(tmp_path / "one.cdx", (4e9, 4e9))
    ran, rows = split(SITE)
    assert ran.code == 0
    assert sorted(row.get("reason", "split") for row in rows) == ["content_type", "http_301", "split", "split"]


@pytest.mark.parametrize("fault", ["form", "stale"])
def test_a_faulty_index_is_not_used(split: Split, tmp_path: Path, fault: str) -> None:
    """An index with a line of another form, or older than its archive, is named, and the archive is read."""
    index = index_of(SITE, NAMES[:6]) + ("broken line\n" if fault == "form" else "")
    if fault == "stale":
        (tmp_path / "one.cdxj").write_text(index)
        os.utime(tmp_path / "one.cdxj", (1, 1))
        index = ""
    ran, rows = split(SITE, index=index)
    assert ran.code == 0 and "one.cdxj: not used, one.warc.gz is read as a whole" in ran.err
    assert len(rows) == 9


LIES = {  # records, and a further line of the index
    "no record": (SITE, 'example,a)/x 20240501100000 {"url": "http://a.example/x", "offset": 17}\n'),
    "another page": (SITE, 'example,b)/ 20240501100000 {"url": "http://b.example/", "offset": 0}\n'),
    "damage": ([SITE[0], BROKEN, *SITE[2:]], ""),
}


@pytest.mark.parametrize("lie", LIES)
def test_an_index_cannot_name_what_is_not_there(split: Split, lie: str) -> None:
    """It is the page's reason, the index is named, exit code 1; the rest is split."""
    records, line = LIES[lie]
    ran, rows = split(records, index=index_of(SITE, NAMES) + line)
    assert ran.code == 1 and "one.cdxj: 1 page not where it says" in ran.err
    assert f"{9 + bool(line)} pages by an index" in ran.out
    assert [row["reason"] for row in rows if "reason" in row] == ["not_at_offset"]
    assert len(rows) == 9 + bool(line)


def test_no_page_gets_the_text_of_another(split: Split) -> None:
    """An archive that is one gzip member has one offset for all: only the page that is there can be read."""
    ran, rows = split([gzip.compress(b"".join(map(gzip.decompress, SITE)))])
    assert ran.code == 1 and "0 pages of 1 site split" in ran.out
    assert sorted(row["reason"] for row in rows) == ["no_other_url", *["packed_together"] * 8]


@pytest.mark.parametrize("index", ["\n", 'a)/ 20240501100000 {"url": "http://a.example/", "offset": 1e30}\n'])
def test_an_index_without_a_record_of_the_archive_is_not_used(split: Split, index: str) -> None:
    """It is empty, or its offsets lie outside: the archive is read."""
    ran, rows = split(SITE, index=index)
    assert ran.code == 0 and "not used" in ran.err and len(rows) == 9


def test_an_archive_without_pages_is_said(split: Split) -> None:
    """It has its line, and nothing is split."""
    ran, rows = split([])
    assert ran.code == 1 and [row["reason"] for row in rows] == ["empty_archive"]


def test_a_page_at_two_addresses_keeps_its_content(split: Split) -> None:
    """A copy under another URL is compared with other pages, as the page is: nothing of it is boilerplate for that."""
    copies = [record(f"http://a.example/{name}?utm=x", DAYS[0], html(text)) for name, text in TEXTS.items()]
    ran, rows = split([*SITE[:3], *copies])
    assert ran.code == 0 and len(rows) == 6 and all(row["nodes"]["content"] == 1 for row in rows)


def test_pages_that_differ_in_images_are_compared(split: Split) -> None:
    """An image is a word: galleries with one text are different pages."""
    pages = [
        record(f"http://a.example/{n}", DAYS[0], html("").replace(b"<p>", b"<p><img src='/%d.jpg'>" % n))
        for n in (1, 2)
    ]
    ran, rows = split(pages)
    assert ran.code == 0 and all("nodes" in row for row in rows)


def test_of_two_records_the_readable_one_is_split(split: Split) -> None:
    """If the first record of a URL and time cannot be used, the second one is, and each has its line."""
    cut = record("http://a.example/red", DAYS[0], html("x " * 25_000_000))
    _, rows = split([cut, *SITE])
    assert [row["reason"] for row in rows if "reason" in row] == ["truncated"]
    assert sum("nodes" in row for row in rows) == 9


def test_pages_below_the_threshold_have_their_own_reason(split: Split) -> None:
    """There are other URLs of the host, but none is as similar as --positional wants."""
    others = [record(f"http://a.example/{n}", DAYS[0], f"<html><body>{'<p>' * n}x {n}".encode()) for n in (9, 40)]
    _, rows = split(others, "--positional", "0.99")
    assert [row["reason"] for row in rows] == ["no_similar_url"] * 2


def test_an_index_changes_no_file(split: Split, tmp_path: Path) -> None:
    """Files have the same names with an index and without."""
    names = {row["file"] for row in split(SITE)[1]}
    shutil.rmtree(tmp_path / "out")
    assert {row["file"] for row in split(SITE, index=index_of(SITE, NAMES))[1]} == names


def test_http_and_https_are_one_page(split: Split) -> None:
    """The copy under the other scheme is a snapshot: it makes no boilerplate of the content."""
    copies = [record(f"https://a.example/{name}", DAYS[1], html(text)) for name, text in TEXTS.items()]
    _, rows = split([*SITE[:3], *copies])
    assert len(rows) == 6 and all(row["nodes"]["content"] == 1 for row in rows)


def test_hosts_make_no_trouble_as_folders(split: Split) -> None:
    """A host with the name of the report, and one that is longer than a folder's name may be."""
    hosts = ("report.jsonl", ".".join(["long" * 12] * 5))
    pages = [record(f"http://{host}/{name}", DAYS[0], html(text)) for host in hosts for name, text in TEXTS.items()]
    ran, rows = split(pages)
    assert ran.code == 0 and len(rows) == 6 and all("nodes" in row for row in rows)


def test_wrong_usage_is_refused(farmwatch: Runner, tmp_path: Path, split: Split) -> None:
    """A missing archive, one in zstd, and a folder in use are refused, and nothing is overwritten."""
    assert farmwatch("lab", "templates", "split", "no.warc.gz", "--out", "o").code == 3
    (tmp_path / "x.warc.zst").touch()
    assert farmwatch("lab", "templates", "split", "x.warc.zst", "--out", "o").code == 2
    split(SITE)
    ran, _ = split(SITE)
    assert ran.code == 2 and "not empty" in ran.err
    ran = farmwatch("lab", "templates", "split", "one.warc.gz", "--out", "one.warc.gz")
    assert ran.code == 3 and "one.warc.gz" in ran.err
