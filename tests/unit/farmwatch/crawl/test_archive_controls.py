"""Old archives as controls: their pages measure the detector, and count in no share, list or crawl."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from farmwatch.__main__ import run
from farmwatch.demo.site_pages import llm_articles
from filters.settings import MeasureSettings
from scoring.lite_ngram.detector import LiteNgram
from stream.opening import open_log
from stream.schema.control_sites import control_site
from stream.schema.topics import HITS, PAGES, SITES, TEMPLATES, VERDICTS
from stream.text.user_errors import Exit
from tests.support.front_door import PARTITIONS, Runner
from tests.support.logs.stage_work import work_all
from tests.support.web.article_head import ARTICLE_HEAD
from tests.support.web.warc_check import capture, write

OLD_MS, NEW_MS = 1_600_000_000_000, 1_700_000_000_000  # September 2020, November 2023
HOST = "old.site.test"
TEXTS = [article.text for article in llm_articles()["tidynest.example"]][:4]  # so that the detector errs


def archive(folder: Path, started_ms: int, host: str = HOST) -> Path:
    """A WARC file of pages without any date of their own."""
    pages = [
        f"<!doctype html><html>{ARTICLE_HEAD}<body><article>{''.join(f'<p>{part}</p>' for part in text.split(chr(10)))}"
        f"</article></body></html>".encode()
        for text in TEXTS
    ]
    captures = [
        capture(number, url=f"http://{host}/{number}", started_ms=started_ms + number, address="", body=body)
        for number, body in enumerate(pages)
    ]
    (file,) = write(folder, captures)
    return file


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return archive(tmp_path_factory.mktemp("old"), OLD_MS)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, old: Path) -> Path:
    """A log in which the stages have worked on an old archive as controls, and on a new one as sites."""
    folder = tmp_path_factory.mktemp("made")
    log = ["--log", f"sqlite:{folder / 'log'}", "--set", f"log.partitions={PARTITIONS}"]
    later = archive(folder / "later", NEW_MS, "new.site.test")
    for command in (["--controls", str(old)], [str(later)]):
        assert run(["log", "import", *command, *log, "--set", "crawl.allow_private=true"]) == Exit.OK
    with closing(open_log(log[1])) as opened:
        work_all(opened, MeasureSettings(workers=1), "default", LiteNgram.load())  # type: ignore[arg-type]
    return folder / "log"


@pytest.fixture
def url(made: Path, tmp_path: Path) -> str:
    """A copy of it."""
    shutil.copytree(made, tmp_path / "log")
    return f"sqlite:{tmp_path / 'log'}"


def keys(url: str, topic: str) -> list[bytes]:
    """Keys of a topic's records."""
    with closing(open_log(url, read_only=True)) as log:
        return [m.key for part in range(log.topics()[topic]) for m in log.read(topic, part) if m.value is not None]


def test_an_archive_is_an_arm_of_controls(farmwatch: Runner, url: str, tmp_path: Path) -> None:
    """Pages without a date are controls by the time of their fetch; they are in `rate` and `review controls` alone.

    The share, the lists of sites, pages and hits, the canaries and the templates are as without them.
    """
    (line,) = map(json.loads, farmwatch("rate", "--json", "--log", url).out.splitlines())
    assert (line["sites"], line["scored_sites"]) == (1, 1)
    assert (line["controls"]["sites"], line["controls"]["pages"]) == (1, len(TEXTS))
    assert line["controls"]["flagged"] > 0
    of_all = farmwatch("review", "controls", "--where", "by=all", "--json", "--log", url).lines[0]
    counts = {name: of_all[name] for name in ("sites", "pages", "flagged")}
    assert counts == {name: line["controls"][name] for name in counts} and of_all["articles"] == len(TEXTS)
    for command in (["sites"], ["pages"]):
        listed = farmwatch(*command, "--json", "--log", url).out
        assert "new.site.test" in listed and HOST not in listed
    assert farmwatch("review", "canaries", "--json", "--log", url).out == ""
    assert not any(key.startswith(control_site(HOST).encode()) for key in keys(url, TEMPLATES))
    hits = tmp_path / "hits.jsonl"
    assert farmwatch("log", "export", "--what", "hits", hits, "--log", url).code == Exit.OK
    assert "new.site.test" in hits.read_text() and HOST not in hits.read_text()


def test_a_control_archive_without_dates_counts_nothing(farmwatch: Runner, tmp_path: Path, old: Path) -> None:
    """Without a WARC-Date nothing shows when a page was fetched: each record is named, and no page is appended."""
    url, undated = f"sqlite:{tmp_path / 'log'}", tmp_path / "undated.warc"
    undated.write_bytes(re.sub(rb"WARC-Date: [^\r]*\r\n", b"", gzip.decompress(old.read_bytes())))
    ran = farmwatch("log", "import", "--controls", undated, "--log", url)
    assert ran.code == Exit.PROBLEM and ran.err.count("WARC-Date") >= len(TEXTS)
    assert "no page was surely fetched before 2022-11-30" in ran.err
    with closing(open_log(url, read_only=True)) as log:
        assert all(log.end(topic)[part] == 0 for topic in (PAGES, HITS) for part in range(log.topics()[topic]))


def test_an_archive_of_later_pages_has_no_controls(farmwatch: Runner, tmp_path: Path) -> None:
    """They are passed over and counted, whatever dates they state, and the command says that there are none."""
    url = f"sqlite:{tmp_path / 'log'}"
    ran = farmwatch("log", "import", "--controls", archive(tmp_path / "new", NEW_MS), "--log", url)
    assert ran.code == Exit.PROBLEM and f"passed over: {len(TEXTS)} fetched_later" in ran.out
    assert "there are no controls here" in ran.err


def test_controls_are_imported_once_and_forgotten_with_their_host(
    farmwatch: Runner, url: str, old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second import skips known pages. `crawl forget` finds a host with control pages alone, and keeps them out."""
    again = farmwatch("log", "import", "--controls", old, "--log", url)
    assert again.code == Exit.OK and f"{len(TEXTS)} known" in again.out
    monkeypatch.setattr("farmwatch.upkeep.forgetting._SETTLED_S", 0.0)
    monkeypatch.setattr("farmwatch.upkeep.forgetting._LOOK_S", 0.01)
    ran = farmwatch("crawl", "forget", HOST, "--yes", "--log", url)
    assert ran.code == Exit.OK, ran.err
    for topic in (PAGES, HITS, VERDICTS, SITES):
        assert control_site(HOST).encode() not in keys(url, topic)
    (line,) = map(json.loads, farmwatch("rate", "--json", "--log", url).out.splitlines())
    assert line["controls"] is None
    farmwatch("log", "import", "--controls", old, "--log", url)
    assert control_site(HOST).encode() not in keys(url, PAGES)
