"""The canary file: its lines, errors with file and line, pages made of text, and files made of logs and folders."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from crawler.sources.settings import CommonCrawlSettings
from farmwatch.canaries.file import HUMAN_BEFORE, PAGE_CAP_BYTES, SITES_CAP, CanarySite, page_of_text, read_canaries
from farmwatch.config.config import load
from farmwatch.config.settings import CanarySettings
from farmwatch.doctor.checks import require_fit
from scoring.rates.canary import truth_of
from stream.schema.records import Page
from stream.schema.roles import Role
from stream.text.user_errors import ConfigError, Exit
from tests.support.front_door import Runner, article_html
from tests.support.web.search_engines import Asked, Engine, Reply


def write(folder: Path, *lines: dict[str, Any] | str, name: str = "canaries.jsonl") -> CanarySettings:
    """A file of these lines."""
    data = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines).encode()
    path = folder / name
    path.write_bytes(zstandard.ZstdCompressor().compress(data) if name.endswith(".zst") else data)
    return CanarySettings(file=str(path), pages=3)


def line(number: int = 0, **more: Any) -> dict[str, Any]:
    """A page of a human site."""
    fields = {"title": f"Chapter {number}", "text": f"Text {number}.", "made_at": "1999-12-31"}
    return {"truth": "human", "site": "novels", **fields, **more}


def body(page: Page) -> str:
    """The HTML of a page record."""
    return zstandard.ZstdDecompressor().decompress(page.body).decode()


@pytest.mark.parametrize("name", ["canaries.jsonl", "canaries.jsonl.zst"])
def test_lines_of_a_label_and_truth_are_a_site(tmp_path: Path, name: str) -> None:
    """At most canary.pages pages of each, in the order of the file; the name contains truth, content and pages."""
    made: dict[str, Any] = {"truth": "llm", "text": "Made.", "made_at": "2026-01-02"}
    lines = [line(n) for n in range(5)] + [line(**made), line(**made, site="notes")]
    sites = read_canaries(write(tmp_path, *lines, "", name=name))
    assert [(site.label, site.truth, len(site.pages)) for site in sites] == [
        ("novels", "human", 3),
        ("notes", "llm", 1),
        ("novels", "llm", 1),
    ]
    assert truth_of(sites[0].name(7).site) == "human"
    assert len({site.digest for site in sites}) == 2  # the same page under two labels is one content
    pages = list(sites[0].records(7, 99))
    assert [page.url for page in pages] == [f"https://{sites[0].name(7).site}/{n}" for n in (1, 2, 3)]
    assert "<p>Text 1.</p>" in body(pages[1])


def test_a_byte_order_mark_is_no_part_of_the_first_page(tmp_path: Path) -> None:
    """A canary file may begin with the mark that Windows editors write."""
    (site,) = read_canaries(write(tmp_path, "\ufeff" + json.dumps(line(1)), line(2)))
    assert len(site.pages) == 2


def test_records_are_the_same_in_a_round_and_new_in_the_next(tmp_path: Path) -> None:
    """Ids depend on content, round and place; new texts under a label are another site."""
    from crawler.web.urls import page_id

    (site,) = read_canaries(write(tmp_path, line(1), line(2)))
    one, again, later = (list(site.records(number, 5)) for number in (1, 1, 2))
    assert one == again
    (changed,) = read_canaries(write(tmp_path, line(1), line(2, text="New.")))
    assert (site.label, site.digest) != (changed.label, changed.digest)
    assert not {page.id for page in one} & {page.id for page in later}
    assert all(page.page_id == page_id(page.url) for page in one)
    assert all(page.outcome == "fetched" and page.found_by == "canary" for page in one)


def test_pages_are_fetched_in_the_order_of_the_file(tmp_path: Path) -> None:
    """One millisecond apart, the last one now: TALLY judges them in the same order in every round."""
    (site,) = read_canaries(write(tmp_path, line(1), line(2), line(3)))
    for number in range(20):
        pages = sorted(site.records(number, 1000), key=lambda page: page.fetched_at)
        assert [(page.fetched_at, page.url[-2:]) for page in pages] == [(998, "/1"), (999, "/2"), (1000, "/3")]


@given(st.text(max_size=200), st.text(max_size=400))
def test_text_never_becomes_markup(title: str, text: str) -> None:
    """For any text, the page contains only its own elements."""
    tags = [part.split(">", 1)[0] for part in page_of_text(title, text).split("<")[1:]]
    allowed = {"!DOCTYPE html", "html", "head", 'meta charset="utf-8"', "title", "body", "article", "h1", "p"}
    assert {tag.removeprefix("/") for tag in tags} <= allowed


def test_paragraphs_are_kept(tmp_path: Path) -> None:
    """Empty lines separate paragraphs; markup is escaped."""
    (site,) = read_canaries(write(tmp_path, line(text="One <b>\ntwo\n \nthree & four")))
    tree = site.pages[0].decode()
    assert "<p>One &lt;b&gt;\ntwo</p>\n<p>three &amp; four</p>" in tree


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ("{", "line 2"),
        ('{"truth": "robot", "site": "a", "text": "x"}', "line 2: truth must be human or llm"),
        ({"truth": "llm", "text": "x"}, "line 2: Object missing required field `site`"),
        (line(site="No Label"), "line 2: site 'No Label' is not a label"),
        (line(text="  "), "line 2: a page needs either text or html"),
        (line(html="<p>x"), "line 2: a page needs either text or html"),
        (line(made_at="2022-11-01"), "made_at of a human page: 2022-11-01; only pages written before 2022-11-01"),
        (line(made_at=None), "line 2: made_at of a human page: none; only pages"),
        (line(truth="llm", text=" Text\n1. "), "line 2: the text is llm here and human in line 1"),
        (line(made_at="May"), "line 2: Invalid"),
        (line(text="x" * (PAGE_CAP_BYTES + 1)), "at most 200000 are allowed"),
        ('{"truth":"llm","site":"a","text":"\\ud800"}', "line 2"),
        ("[" * 100_000, "line 2"),
    ],
)
def test_bad_lines_are_refused_with_their_number(tmp_path: Path, bad: dict[str, Any] | str, said: str) -> None:
    """One bad line makes the file invalid, with the number of the line."""
    with pytest.raises(ConfigError) as caught:
        read_canaries(write(tmp_path, line(1), bad))
    assert said in str(caught.value)
    assert len(str(caught.value)) < 600 + len(str(tmp_path))


def test_unusable_files_are_refused(tmp_path: Path) -> None:
    """Missing, empty, not zstd, too many sites: each has its message. No configured file is valid."""
    assert read_canaries(CanarySettings()) == []
    with pytest.raises(ConfigError, match="No such file"):
        read_canaries(CanarySettings(file=str(tmp_path / "none")))
    with pytest.raises(ConfigError, match="no page in the file"):
        read_canaries(write(tmp_path, ""))
    (tmp_path / "x.zst").write_bytes(b"nothing of the kind")
    with pytest.raises(ConfigError, match="no zstd file"):
        read_canaries(CanarySettings(file=str(tmp_path / "x.zst")))
    many = [line(site=f"s{n}") for n in range(SITES_CAP + 1)]
    with pytest.raises(ConfigError, match="more than 500 canary sites"):
        read_canaries(write(tmp_path, *many))


def test_human_pages_must_be_old(tmp_path: Path) -> None:
    """The last valid day is 31 October 2022; LLM pages may have any day, or none."""
    llm = [line(truth="llm", text="a", made_at="2026-11-01"), line(truth="llm", text="b", made_at=None)]
    sites = read_canaries(write(tmp_path, line(made_at="2022-10-31"), *llm))
    assert [site.newest.isoformat() for site in sites if site.newest] == ["2022-10-31", "2026-11-01"]
    assert HUMAN_BEFORE.isoformat() == "2022-11-01"


def test_a_broken_file_is_refused_before_any_role_starts(tmp_path: Path) -> None:
    """Otherwise the supervisor would restart TALLY forever. The exit code is that of a usage error."""
    settings = write(tmp_path, "{")
    config = load(None, [f"canary.file={settings.file}"], {}).config
    with pytest.raises(ConfigError, match="line 1") as caught:
        require_fit(config, [Role.TALLY])
    assert caught.value.exit == Exit.USAGE
    require_fit(config, [Role.MEASURE])


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
    ran = farmwatch("review", "canaries", "make", "made.jsonl.zst", "--llm", folder)
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
    ran = farmwatch(*("review", "canaries", "make", "made.jsonl", "--human", "old.warc.gz", "--human", "new.warc.gz"))
    assert (ran.code, ran.out) == (Exit.PROBLEM, "human: 1 site, 18 pages\n")
    assert "18 pages skipped: captured in November 2022 or later\n" in ran.err
    (site,) = sites(tmp_path / "made.jsonl", "human")
    assert (site.label, len(site.pages), str(site.newest)) == ("www-old-example", 18, "2021-08-01")
    assert "Garden 3 of \u00e9t\u00e9" in site.pages[3].decode()


def test_human_sites_come_from_common_crawl_over_a_log(
    farmwatch: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search of an old crawl fills a log; the canaries are made of its pages. All on loopback."""
    content, lines = warc("a.example", 16)

    def archive(asked: Asked) -> Reply:
        if asked.path == f"/{FILE}":
            first, _, last = asked.headers["Range"].removeprefix("bytes=").partition("-")
            return Reply(content[int(first) : int(last) + 1], 206)
        return Reply("\n".join(map(json.dumps, lines)).encode())

    (tmp_path / "hosts.txt").write_text("a.example\n")
    with Engine(archive) as engine:
        monkeypatch.setattr(CommonCrawlSettings, "data_url", engine.url)
        options = {"crawl": "CC-MAIN-2021-31", "url": engine.url, "rate": "100", "pages": "1"}
        settings = [part for name, text in options.items() for part in ("--set", f"search.commoncrawl.{name}={text}")]
        where = ("--log", f"sqlite:{tmp_path / 'old'}", "--set", "crawl.contact=https://contact.example/")
        ran = farmwatch("hits", "search", "--source", "commoncrawl", "--queries", "hosts.txt", *settings, *where)
    assert ran.code == Exit.OK, ran.err
    ran = farmwatch(*("review", "canaries", "make", "made.jsonl.gz", "--human", f"sqlite:{tmp_path / 'old'}"))
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
    ran = farmwatch("review", "canaries", "make", *arguments)
    assert (ran.code, ran.out) == (Exit.USAGE, "") and said in ran.err
    assert not (tmp_path / "made.jsonl").exists() and (tmp_path / "there.jsonl").read_text() == "kept"


def test_a_place_that_cannot_be_written_is_named(farmwatch: Runner, tmp_path: Path) -> None:
    """With exit code 3, before any text is read."""
    ran = farmwatch("review", "canaries", "make", "no/such/folder/made.jsonl", "--llm", "texts")
    assert ran.code == Exit.UNAVAILABLE and "cannot be written" in ran.err
