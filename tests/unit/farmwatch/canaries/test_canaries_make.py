"""`farmwatch canaries make`: human sites of old captures, LLM sites of folders of texts, in a file that `up` reads."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from farmwatch.canaries.file import CanarySite, read_canaries
from farmwatch.config.settings import CanarySettings
from stream.text.user_errors import Exit
from tests.support.front_door import Runner, article_html
from tests.support.web.search_engines import Asked, Engine, Reply

OLD, NEW = "2021-08-01T00:00:00Z", "2022-11-01T00:00:00Z"
FILE = "crawl-data/CC-MAIN-2021-31/segments/1/warc/CC-MAIN-1.warc.gz"


def warc(host: str, pages: int, date: str = OLD) -> tuple[bytes, list[dict[str, str]]]:
    """A WARC file of articles of a host, captured on that day, and its lines in the index of Common Crawl."""
    made, lines = io.BytesIO(), []
    writer = WARCWriter(made, gzip=True)
    for number in range(pages):
        url = f"https://{host}/{number}"
        head = StatusAndHeaders("200 OK", [("Content-Type", "text/html; charset=utf-8")], protocol="HTTP/1.1")
        body = article_html().replace("A garden", f"Garden {number} of \u00e9t\u00e9").encode()
        start = made.tell()
        record = writer.create_warc_record(
            url, "response", payload=io.BytesIO(body), http_headers=head, warc_headers_dict={"WARC-Date": date}
        )
        writer.write_record(record)
        place = {"offset": str(start), "length": str(made.tell() - start), "filename": FILE}
        lines.append({"url": url, "mime": "text/html", "status": "200", "timestamp": "20210801000000", **place})
    return made.getvalue(), lines


def texts(folder: Path, number: int) -> Path:
    """A folder of texts, the first line of each a title."""
    folder.mkdir(parents=True)
    for text in range(number):
        (folder / f"text-{text}.md").write_text(f"# Tips {text}\n\nFirst <b>paragraph</b> {text}.\n\nSecond one.\n")
    return folder


def sites(file: Path, truth: str) -> list[CanarySite]:
    return [site for site in read_canaries(CanarySettings(file=str(file))) if site.truth == truth]


def test_llm_sites_are_made_of_folders(farmwatch: Runner, tmp_path: Path) -> None:
    """A site for each folder, further ones where it has more than canary.pages texts; too small ones are left out."""
    folder = tmp_path / "texts"
    texts(folder / "Model A!", 40)
    texts(folder / "small", 14)
    (folder / "Model A!" / "bad.txt").write_bytes(b"\xff\xfe\xfa")
    ran = farmwatch("canaries", "make", "made.jsonl.zst", "--llm", folder)
    assert (ran.code, ran.out) == (Exit.PROBLEM, "llm: 2 sites, 40 pages\n")  # too few to correct a share
    assert "1 page skipped: no UTF-8\n" in ran.err and "1 llm site left out: fewer than 15 pages\n" in ran.err
    assert "fewer than 20 sites of a truth" in ran.err
    found = sites(tmp_path / "made.jsonl.zst", "llm")
    assert [(site.label, len(site.pages)) for site in found] == [("model-a", 20), ("model-a-2", 20)]
    assert b"<h1>Tips 0</h1>" in found[0].pages[0] and b"&lt;b&gt;paragraph" in found[0].pages[0]


def test_human_sites_are_made_of_old_captures(farmwatch: Runner, tmp_path: Path) -> None:
    """Of WARC files, with the day of their capture; pages of November 2022 and later are refused and counted."""
    for name, (content, _) in {
        "old.warc.gz": warc("www.old.example", 18),
        "new.warc.gz": warc("new.example", 18, NEW),
    }.items():
        (tmp_path / name).write_bytes(content)
    ran = farmwatch(*("canaries", "make", "made.jsonl", "--human", "old.warc.gz", "--human", "new.warc.gz"))
    assert (ran.code, ran.out) == (Exit.PROBLEM, "human: 1 site, 18 pages\n")
    assert "18 pages skipped: captured in November 2022 or later\n" in ran.err
    (site,) = sites(tmp_path / "made.jsonl", "human")
    assert (site.label, len(site.pages), str(site.newest)) == ("www-old-example", 18, "2021-08-01")
    assert "Garden 3 of \u00e9t\u00e9" in site.pages[3].decode()


def test_human_sites_come_from_common_crawl_over_a_log(farmwatch: Runner, tmp_path: Path) -> None:
    """A search of an old crawl fills a log; the canaries are made of its pages. All on loopback."""
    content, lines = warc("a.example", 16)

    def archive(asked: Asked) -> Reply:
        if asked.path == f"/{FILE}":
            first, _, last = asked.headers["Range"].removeprefix("bytes=").partition("-")
            return Reply(content[int(first) : int(last) + 1], 206)
        return Reply("\n".join(map(json.dumps, lines)).encode())

    (tmp_path / "hosts.txt").write_text("a.example\n")
    with Engine(archive) as engine:
        options = {"crawl": "CC-MAIN-2021-31", "url": engine.url, "data_url": engine.url, "rate": "100", "pages": "1"}
        settings = [part for name, text in options.items() for part in ("--set", f"search.commoncrawl.{name}={text}")]
        where = ("--log", f"sqlite:{tmp_path / 'old'}", "--set", "crawl.contact=https://contact.example/")
        ran = farmwatch("search", "--source", "commoncrawl", "--queries", "hosts.txt", *settings, *where)
    assert ran.code == Exit.OK, ran.err
    ran = farmwatch(*("canaries", "make", "made.jsonl.gz", "--human", f"sqlite:{tmp_path / 'old'}"))
    assert (ran.code, ran.out) == (Exit.PROBLEM, "human: 1 site, 16 pages\n")
    assert [site.label for site in sites(tmp_path / "made.jsonl.gz", "human")] == ["a-example"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("made.jsonl",), "give --human LOG or WARC, or --llm FOLDER"),
        (("there.jsonl", "--llm", "texts"), "there.jsonl exists"),
        (("made.jsonl", "--llm", "nowhere"), "--llm nowhere: no such folder"),
        (("made.jsonl", "--llm", "texts"), "no site has enough pages: nothing was written"),
    ],
)
def test_what_cannot_be_made_is_refused(
    farmwatch: Runner, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    """With exit code 2; no file is made or changed."""
    (tmp_path / "there.jsonl").write_text("kept")
    texts(tmp_path / "texts", 3)
    ran = farmwatch("canaries", "make", *arguments)
    assert (ran.code, ran.out) == (Exit.USAGE, "") and said in ran.err
    assert not (tmp_path / "made.jsonl").exists() and (tmp_path / "there.jsonl").read_text() == "kept"


def test_a_place_that_cannot_be_written_is_named(farmwatch: Runner, tmp_path: Path) -> None:
    """With exit code 3; a text above the cap is counted."""
    texts(tmp_path / "texts", 15)
    (tmp_path / "texts" / "long.txt").write_text("x" * 100_001)
    ran = farmwatch("canaries", "make", "no/such/folder/made.jsonl", "--llm", "texts")
    assert ran.code == Exit.UNAVAILABLE and "cannot be written" in ran.err
    assert "1 page skipped: empty, or above 100,000 bytes of text" in ran.err
